"""The bundled sample is what the README says it is."""

import json
import re
from collections import Counter
from xml.etree import ElementTree

import pytest

from ifqa.benchmarks.ifqa import Sample
from ifqa.corpus.sources import open_source
from ifqa.records import Passage
from ifqa.report.stats.questions import measure
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.scoring.measures.gold_recall import covers
from ifqa.storage.resources import BUNDLED

DUMP = BUNDLED / "sample" / "encyclopedia.xml"


@pytest.fixture(scope="module")
def passages():
    source = {"format": "dump", "path": "sample/encyclopedia.xml"}
    lines = (line for unit in open_source(source).work_units() for line in unit.make_shard().data.splitlines())
    return [Passage(record["id"], record["title"], record["contents"]) for record in map(json.loads, lines)]


@pytest.fixture(scope="module")
def pages():
    mark = "{http://www.mediawiki.org/xml/export-0.11/}"
    root = ElementTree.parse(DUMP).getroot()
    assert root.find(f"{mark}siteinfo/{mark}namespaces") is not None
    return [
        {part: page.findtext(f"{mark}{part}") for part in ("title", "ns", "id")}
        | {"redirect": page.find(f"{mark}redirect") is not None, "text": page.findtext(f"{mark}revision/{mark}text")}
        for page in root.iter(f"{mark}page")
    ]


def questions():
    return [one for split in Sample().splits for one in Sample().questions(split)]


def test_it_is_a_dump_with_articles_redirects_and_namespaces(pages):
    kinds = Counter("redirect" if page["redirect"] else "article" if page["ns"] == "0" else "other" for page in pages)
    assert kinds["article"] >= 60
    assert kinds["redirect"] >= 10
    assert kinds["other"] >= 5
    assert len({page["id"] for page in pages}) == len(pages)


@pytest.mark.parametrize(
    "mark", ["{{Infobox", "<ref", "{|", "[[File:", "<!--", "\n* ", "\n# ", "\n== ", "&nbsp;", "{{convert", "'''"]
)
def test_its_pages_are_written_in_real_wikitext(pages, mark):
    assert sum(mark.lower() in page["text"].lower() for page in pages) >= 2


def test_it_gives_at_least_200_passages_of_the_articles_alone(passages, pages):
    assert len(passages) >= 200
    articles = {page["title"] for page in pages if page["ns"] == "0" and not page["redirect"]}
    assert {passage.title for passage in passages} <= articles


def test_there_are_questions_of_every_kind():
    every = questions()
    assert {split: len(Sample().questions(split)) for split in Sample().splits} == {"train": 34, "dev": 83, "hard": 83}
    inside = [any(has_answer(text, one.answers) for text in one.gold_passages) for one in every]
    assert 0.6 < sum(inside) / len(every) < 0.9
    assert sum(len(one.answers) > 1 for one in every) >= 5
    assert sum(len(one.gold_passages) > 1 for one in every) >= 5
    assert sum(any(re.fullmatch(r"\d{1,2}|\d[\d,.]+", answer) for answer in one.answers) for one in every) >= 10
    assert sum(any(re.search(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b", answer) for answer in one.answers) for one in every) >= 10


def test_no_question_stands_twice_or_in_two_parts():
    texts = [one.text for one in questions()]
    assert len(set(texts)) == len(texts)


def test_every_gold_passage_is_covered_by_a_passage_of_the_dump(passages):
    texts = {passage.text for passage in passages}
    for question in questions():
        for gold in set(question.gold_passages) - texts:
            assert any(covers(passage.text, gold) for passage in passages), question.id


def test_dev_asks_one_question_about_each_article_in_the_words_of_its_passages(passages, pages):
    titles = {passage.text: passage.title for passage in passages}
    asked = [{titles[gold] for gold in one.gold_passages} for one in Sample().questions("dev")]
    assert [len(found) for found in asked] == [1] * 83
    namesakes = {page["title"] for page in pages if "{{disambiguation" in page["text"].lower()}
    assert {title for found in asked for title in found} == set(titles.values()) - namesakes


def test_dev_has_the_releases_share_of_answers_within_a_gold_passage_and_of_kinds():
    every = Sample().questions("dev")
    inside = [any(has_answer(text, one.answers) for text in one.gold_passages) for one in every]
    assert sum(inside) / len(every) == pytest.approx(0.751, abs=0.03)  # Yu et al. 2023: 75.1% span answers
    kinds = measure("sample", ["dev"])["splits"]["dev"]["types"]
    published = {"entity": 49.7, "number": 15.9, "date": 14.5, "other": 19.9}  # their Table 2, in %
    assert {kind: 100 * number / len(every) for kind, number in kinds.items()} == pytest.approx(published, abs=4)
    assert all(one.text.startswith("If ") and one.text.endswith("?") for one in every)
