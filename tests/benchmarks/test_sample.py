"""The bundled sample is what the README says it is."""

import json
from collections import Counter

import pytest

from ifqa.benchmarks.ifqa import Sample
from ifqa.corpus.sources import open_source
from ifqa.records import Passage
from ifqa.report.stats.questions import measure
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.scoring.measures.gold_recall import covers


@pytest.fixture(scope="module")
def passages():
    source = {"format": "dump", "path": "sample/encyclopedia.xml"}
    lines = (line for unit in open_source(source).work_units() for line in unit.make_shard().lines.splitlines())
    return [Passage(record["id"], record["title"], record["contents"]) for record in map(json.loads, lines)]


def questions():
    return [question for split in Sample().splits for question in Sample().questions(split)]


def test_each_question_stands_once_and_its_gold_passages_are_covered_by_passages_of_the_dump(passages):
    texts = {passage.text for passage in passages}
    every = questions()
    assert len({question.text for question in every}) == len(every) == 34 + 83 + 83
    for question in every:
        for gold in set(question.gold_passages) - texts:
            assert any(covers(passage.text, gold) for passage in passages), question.id


def test_dev_asks_of_each_article_once_in_the_releases_shares_of_kinds_and_of_answers_within_a_gold_passage(passages):
    every, titles = Sample().questions("dev"), {passage.text: passage.title for passage in passages}
    asked = Counter(title for one in every for title in {titles[gold] for gold in one.gold_passages})
    assert set(asked.values()) == {1}
    assert len(asked) == 83 >= len(set(titles.values())) - 10  # all but the lists of namesakes
    inside = [any(has_answer(text, one.answers) for text in one.gold_passages) for one in every]
    assert sum(inside) / len(every) == pytest.approx(0.751, abs=0.03)  # Yu et al. 2023: 75.1% span answers
    kinds = measure("sample", ["dev"])["splits"]["dev"]["types"]
    published = {"entity": 49.7, "number": 15.9, "date": 14.5, "other": 19.9}  # their Table 2, in %
    assert {kind: 100 * number / len(every) for kind, number in kinds.items()} == pytest.approx(published, abs=4)
    assert all(one.text.startswith("If ") and one.text.endswith("?") for one in every)
