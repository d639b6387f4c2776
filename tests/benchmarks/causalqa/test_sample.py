"""The bundled causal questions are what the docs say they are."""

import pytest

from ifqa.benchmarks.causalqa.benchmark import SampleCausal
from ifqa.benchmarks.ifqa import Sample
from ifqa.corpus.wikipedia.dump import parse_pages
from ifqa.corpus.wikipedia.wikitext import to_text
from ifqa.corpus.work_units import SkippedPages
from ifqa.errors import IfqaError
from ifqa.storage.resources import BUNDLED


def questions():
    return SampleCausal().questions("train") + SampleCausal().questions("dev")


def test_there_are_60_questions_of_six_classes_over_59_articles():
    assert [len(SampleCausal().questions(split)) for split in ("train", "dev")] == [15, 45]
    assert len({question.id for question in questions()}) == len({question.text for question in questions()}) == 60
    for split in ("train", "dev"):
        classes = {question.group for question in SampleCausal().questions(split)}
        assert classes == {"cause", "goal", "purpose", "enablement", "result", "verification"}
    assert len({question.label("article") for question in questions()}) == 59
    assert SampleCausal().family("dev") == "sample-causal" != Sample().family("dev")
    with pytest.raises(IfqaError, match="split of sample-causal"):
        SampleCausal().questions("test")


def test_each_context_is_a_paragraph_of_its_article_word_for_word():
    dump = (BUNDLED / "sample/encyclopedia.xml").read_bytes()
    articles = {page.title: to_text(page.text).split("\n") for page in parse_pages([dump], "sample", SkippedPages())}
    for question in questions():
        assert articles[question.label("article")].count(question.context) == 1, question.id
        assert question.gold_passages == (question.context,)
