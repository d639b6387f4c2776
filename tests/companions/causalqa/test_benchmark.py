"""CausalQA from built files, a user's file and the bundled questions.

The published values of Table 4.
"""

from pathlib import Path

import pytest

from ifqa.benchmarks.ifqa import Sample
from ifqa.companions.causalqa.benchmark import ANSWER_MEASURES, DATASETS, CausalQA, SampleCausal
from ifqa.config.experiment import load_experiment
from ifqa.corpus.wikipedia.dump import parse_pages
from ifqa.corpus.wikipedia.wikitext import to_text
from ifqa.corpus.work_units import SkippedPages
from ifqa.errors import IfqaError
from ifqa.storage.files import write_jsonl
from ifqa.storage.resources import BUNDLED

LINE = {
    "id": "7",
    "question": "why is it so?",
    "context": "It is so because.",
    "answers": ["because"],
    "rules": ["R1"],
}


pytestmark = pytest.mark.usefixtures("here")


def write(name, *lines):
    write_jsonl(Path("data/causalqa") / name, lines)


def test_a_dataset_is_read_with_its_context_group_and_rules():
    write("original-valid/paq.jsonl", LINE, LINE | {"id": "8", "context": "", "rules": []})
    first, second = CausalQA().questions("original-valid/paq")
    fields = (
        "causalqa/original-valid/paq/7",
        "why is it so?",
        "It is so because.",
        ("because",),
        "paq",
        (),
    )
    assert (
        first.id,
        first.text,
        first.context,
        first.answers,
        first.group,
        first.gold_passages,
    ) == fields
    assert (first.label("rules"), second.context, second.labels) == ("R1", "", ())


def test_a_split_is_all_datasets_in_the_papers_order():
    for name in reversed(DATASETS):
        write(f"random-train/{name}.jsonl", LINE)
    assert [question.group for question in CausalQA().questions("random-train")] == list(DATASETS)
    assert [question.group for question in CausalQA().questions("random-train/squad2+paq")] == [
        "squad2",
        "paq",
    ]


def test_splits_of_the_same_questions_share_a_family():
    original = "causalqa/original"
    random = "causalqa/random"
    families = {
        "original-train/paq": original,
        "original-valid": original,
        "random-valid": random,
        "mine": "",
    }
    write("mine.jsonl", LINE)
    assert {split: CausalQA().family(split) for split in families} == families


def test_datasets_without_questions_are_named():
    write("original-valid/paq.jsonl", LINE)
    write("original-valid/squad2.jsonl", LINE)
    write("original-valid/gooaq.jsonl")
    missing = ", ".join(name for name in DATASETS if name not in ("paq", "squad2"))
    for split, message in {
        "original-valid": rf"missing or empty: {missing}; run: .*split = 'original-valid/paq\+squad2'",
        "original-valid/eli5": "wanted 1 dataset in .*: eli5; run: ifqa data causalqa$",
        "valid": "original-valid",
        "original-valid/pac": "dataset of causalqa 'pac'.*paq",
    }.items():
        with pytest.raises(IfqaError, match=message):
            CausalQA().questions(split)


def test_a_users_file_names_each_lines_dataset():
    line = {"id": "7", "question": "why?"}
    write(
        "mine.jsonl",
        line | {"dataset": "gooaq", "answers": ["a", "b"]},
        line | {"dataset": "paq", "answer": "a\tb c"},
    )
    questions = {
        question.id: (question.group, question.answers) for question in CausalQA().questions("mine")
    }
    assert questions == {
        "causalqa/mine/gooaq/7": ("gooaq", ("a", "b")),
        "causalqa/mine/paq/7": ("paq", ("a", "b c")),
    }
    splits = CausalQA().splits
    assert len(splits) == 4 + 4 * 10 + 1
    assert {"original-valid", "random-train/triviaqa", "mine"} <= set(splits)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([LINE | {"answers": []}], "mine.jsonl:1: 'answers' is empty"),
        ([LINE | {"dataset": "wiqa"}], "mine.jsonl:1: 'dataset' is 'wiqa'; wanted one of paq"),
        ([LINE | {"id": "a b"}], "mine.jsonl:1: 'id' is 'a b'; wanted an id without white space"),
        ([{"id": "1", "question": "why?"}], "key 'answers' is missing"),
        ([LINE, LINE], "two questions have the id 'causalqa/mine/paq/7'"),
        ([], "wanted questions, found none"),
    ],
)
def test_an_invalid_line_is_named(lines, message):
    write("mine.jsonl", *({"dataset": "paq"} | line for line in lines))
    with pytest.raises(IfqaError, match=message):
        CausalQA().questions("mine")


def questions():
    return SampleCausal().questions("train") + SampleCausal().questions("dev")


def test_there_are_60_questions_of_six_classes_over_59_articles():
    assert [len(SampleCausal().questions(split)) for split in ("train", "dev")] == [15, 45]
    assert (
        len({question.id for question in questions()})
        == len({question.text for question in questions()})
        == 60
    )
    for split in ("train", "dev"):
        classes = {question.group for question in SampleCausal().questions(split)}
        assert classes == {"cause", "goal", "purpose", "enablement", "result", "verification"}
    assert len({question.label("article") for question in questions()}) == 59
    assert SampleCausal().family("dev") == "sample-causal" != Sample().family("dev")
    with pytest.raises(IfqaError, match="split of sample-causal"):
        SampleCausal().questions("test")


def test_each_context_is_a_paragraph_of_its_article_word_for_word():
    dump = (BUNDLED / "sample/encyclopedia.xml").read_bytes()
    articles = {
        page.title: to_text(page.text).split("\n")
        for page in parse_pages([dump], "sample", SkippedPages())
    }
    for question in questions():
        assert articles[question.label("article")].count(question.context) == 1, question.id
        assert question.gold_passages == (question.context,)


MEASURES = [measure.name for measure in ANSWER_MEASURES[:5]]
# Questions of each dataset, in DATASETS' order
ORIGINAL = (76_961, 33, 2_558, 71, 13_104, 117, 252, 29, 35, 66)
RANDOM = (76_961, 14_629, 2_557, 121, 13_104, 78, 321, 66, 39, 71)
HALVES = {
    "causalqa-table4-base": ("original-valid", ORIGINAL),
    "causalqa-table4-finetuned": ("original-valid", ORIGINAL),
    "causalqa-table4-random": ("random-valid", RANDOM),
}


@pytest.mark.parametrize("name", HALVES)
def test_every_dataset_has_five_published_values_and_the_averages_follow_from_them_within_rounding(
    name,
):
    experiment = load_experiment(name)
    (split, counts) = HALVES[name]
    assert experiment.split == split
    assert {(row.source, row.tolerance) for row in experiment.expected} == {
        ("CausalQA, COLING 2022, Table 4", 1)
    }
    values = {row.measure: row.value for row in experiment.expected}
    parts = [*(f"{dataset}." for dataset in DATASETS), "macro.", ""]
    assert set(values) == {part + measure for part in parts for measure in MEASURES}
    for measure in MEASURES:
        rows = [values[f"{dataset}.{measure}"] for dataset in DATASETS]
        micro = sum(value * count for value, count in zip(rows, counts, strict=True)) / sum(counts)
        # Values are rounded to a hundredth, one point: half a point for the rows, and half for the
        # average.
        assert abs(values[f"macro.{measure}"] - sum(rows) / len(rows)) <= 1
        assert abs(values[measure] - micro) <= 1
