"""The bundled sample matches its description in the README."""

import json
from collections import Counter

import pytest
from opened_sources import open_section

from ifqa.benchmarks.ifqa import Sample
from ifqa.records import Passage
from ifqa.report.stats.questions import measure
from ifqa.scoring.gold_overlap import covers
from ifqa.scoring.measures.answer_recall import has_answer


@pytest.fixture(scope="module")
def passages():
    source = {"format": "dump", "path": "sample/encyclopedia.xml"}
    lines = (
        line
        for unit in open_section(source).work_units()
        for line in unit.make_shard().lines.splitlines()
    )
    return [
        Passage(record["id"], record["title"], record["contents"])
        for record in map(json.loads, lines)
    ]


def test_questions_are_unique_and_their_gold_passages_are_covered_by_passages_of_the_dump(passages):
    texts = {passage.text for passage in passages}
    questions = [question for split in Sample().splits for question in Sample().questions(split)]
    assert len({question.text for question in questions}) == len(questions) == 34 + 83 + 83
    for question in questions:
        for gold in set(question.gold_passages) - texts:
            assert any(covers(passage.text, gold) for passage in passages), question.id


def test_dev_has_a_question_per_article_and_the_releases_shares_of_answer_kinds_and_span_answers(
    passages,
):
    questions = Sample().questions("dev")
    titles = {passage.text: passage.title for passage in passages}
    counts = Counter(
        title
        for question in questions
        for title in {titles[gold] for gold in question.gold_passages}
    )
    assert set(counts.values()) == {1}
    assert len(counts) == 83 >= len(set(titles.values())) - 10  # all but the lists of namesakes
    spans = [
        any(has_answer(text, question.answers) for text in question.gold_passages)
        for question in questions
    ]
    # Yu et al. 2023: 75.1% span answers
    assert sum(spans) / len(spans) == pytest.approx(0.751, abs=0.03)
    kinds = measure("sample", ["dev"])["splits"]["dev"]["types"]
    published = {"entity": 49.7, "number": 15.9, "date": 14.5, "other": 19.9}  # their Table 2, in %
    assert {kind: 100 * number / len(spans) for kind, number in kinds.items()} == pytest.approx(
        published, abs=4
    )
    assert all(
        question.text.startswith("If ") and question.text.endswith("?") for question in questions
    )
