"""The bundled sample is what the README says it is."""

import json
import re
from collections import Counter
from xml.etree import ElementTree

import pytest

from ifqa.benchmarks.sample import Sample
from ifqa.corpus import sources
from ifqa.corpus.blocks import make_shard
from ifqa.records import Passage
from ifqa.scoring.measures.covers import covers
from ifqa.scoring.measures.has_answer import has_answer
from ifqa.storage.resources import BUNDLED

DUMP = BUNDLED / "sample" / "encyclopedia.xml"


@pytest.fixture(scope="module")
def passages():
    source = {"format": "dump", "path": "sample/encyclopedia.xml"}
    lines = (line for block in sources.blocks(source) for line in make_shard(block).data.splitlines())
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
    return Sample().questions("train") + Sample().questions("dev")


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
    assert len(Sample().questions("dev")) >= 60
    inside = [any(has_answer(text, one.answers) for text in one.gold_passages) for one in every]
    assert 0.6 < sum(inside) / len(every) < 0.9
    assert sum(len(one.answers) > 1 for one in every) >= 5
    assert sum(len(one.gold_passages) > 1 for one in every) >= 5
    assert sum(any(re.fullmatch(r"\d{1,2}|\d[\d,.]+", answer) for answer in one.answers) for one in every) >= 10
    assert sum(any(re.search(r"\b1[0-9]{3}\b|\b20[0-9]{2}\b", answer) for answer in one.answers) for one in every) >= 10


def test_no_question_stands_twice_or_in_both_parts():
    texts = [one.text for one in questions()]
    assert len(set(texts)) == len(texts)


def test_every_gold_passage_is_covered_by_a_passage_of_the_dump(passages):
    for question in questions():
        for gold in question.gold_passages:
            assert any(covers(passage.text, gold) for passage in passages), question.id
