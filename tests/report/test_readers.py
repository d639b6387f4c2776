"""The grid of readers: a score for each reader, benchmark and kind of passages, or the reason why there is none."""

import importlib
import inspect
import re

import pytest

from ifqa.config.experiment import parse_experiment
from ifqa.plugins import load, names, open_benchmark
from ifqa.report.readers import ASKED, TITLE, reader_grid
from ifqa.report.results import Result, needs

HEADLINES = {"sample": "EM", "sample-causal": "ROUGE-L", "sample-wiqa": "accuracy", "wiqa": "accuracy"}
SPLITS = {"sample-wiqa": "test", "wiqa": "test"}
RETRIEVED = {"retriever": {"name": "bm25"}, "corpus": "sample"}
GIVEN = {"retriever": {"name": "gold"}}


def result(name, reader="extractive", value=None, benchmark="sample", made=None, of=83, **tables):
    own = {"benchmark": benchmark, "split": SPLITS.get(benchmark, "dev"), "reader": {"name": reader}, **tables}
    experiment = parse_experiment(name, own, name)
    if value is None:
        return Result(experiment, needs=needs(experiment))
    means = {HEADLINES[benchmark]: {"value": value, "low": value - 1, "high": value + 1}}
    scores = {"questions": 83, "of": of, "measures": means, "subsets": {}, "n_failed": 0, "not_asked": 0, "retry": 0}
    return Result(experiment, scores, made or {})


def grid(*results):
    [found] = reader_grid(results)
    return found


def cell(table, questions, passages, reader):
    """The cell of a reader, a letter replaced by its reason."""
    row = next(row for row in table.rows if row[:2] == (questions, passages))
    text = row[table.columns.index(reader)]
    reasons = dict(re.findall(r"\(([a-z])\) (.+?)(?:; (?=\([a-z]\) )|\.$)", table.note))
    return reasons.get(text, text)


def test_a_score_stands_in_the_cell_of_its_reader_and_passages():
    table = grid(result("open", value=60, **RETRIEVED), result("gold", value=70, **GIVEN))
    assert table.title == TITLE
    assert cell(table, "sample dev", "retrieved from sample", "extractive") == "60.0 [59.0, 61.0]"
    assert cell(table, "sample dev", "given", "extractive") == "70.0 [69.0, 71.0]"
    assert [(row[2], row[-1]) for row in table.rows] == [("EM", ""), ("EM", "gold"), ("EM", "open")]


def test_every_cell_has_a_score_or_a_letter_with_a_reason():
    table = grid(result("open", value=60, **RETRIEVED), result("what-if", "polarity", benchmark="wiqa"))
    assert len(table.rows) == 6
    letters = re.findall(r"\(([a-z])\) ", table.note)
    cells = [text for row in table.rows for text in row[3:-1]]
    assert len(letters) == len(set(letters))
    assert {text for text in cells if not text.startswith("60.0")} == set(letters)


def test_a_reader_that_cannot_answer_says_why():
    open_ones = grid(result("open", value=60, **RETRIEVED))
    assert "offer no answers to choose from" in cell(open_ones, "sample dev", "given", "polarity")
    assert cell(open_ones, "sample dev", "closed book", "extractive") == "the reader takes its answers from passages"
    assert cell(open_ones, "sample dev", "given", "extractive") == "no experiment"
    assert cell(open_ones, "sample dev", "given", "fid") == "no experiment: the reader needs a trained FiD, a GPU"
    assert cell(open_ones, "sample dev", "given", "llm") == "no experiment: the reader needs a language model"
    choosing = grid(result("what-if", "polarity", 35, "sample-wiqa"))
    assert cell(choosing, "sample-wiqa test", "closed book", "polarity") == "35.0 [34.0, 36.0]"
    assert "reads no passages" in cell(choosing, "sample-wiqa test", "given", "polarity")


def test_an_experiment_that_was_not_run_says_what_it_needs():
    small = {"llm": {"name": "hf", "model": "smollm2"}}
    table = grid(result("small", "llm", **GIVEN, **small), result("fetched", "polarity", benchmark="wiqa"))
    assert cell(table, "sample dev", "given", "llm") == "not run: needs SmolLM2 (ifqa data smollm2)"
    assert cell(table, "wiqa test", "closed book", "polarity") == "not run: needs the questions (ifqa data wiqa)"


def test_no_score_decides_which_of_several_experiments_is_shown():
    several = [result("b", value=70, **GIVEN), result("c", value=60, **GIVEN), result("a", value=80, of=99, **GIVEN)]
    assert cell(grid(*several), "sample dev", "given", "extractive") == "70.0 [69.0, 71.0]"
    assert (
        cell(grid(several[2]), "sample dev", "given", "extractive") == "80.0 [79.0, 81.0] PARTIAL: 83 of 99 questions"
    )


@pytest.mark.parametrize(
    "other",
    [
        result("mine+k=5", value=60, **RETRIEVED),
        result("elsewhere", value=60, **RETRIEVED | {"corpus": "enwiki"}),
        result("one", value=60, **RETRIEVED, questions=["sample/dev/3"]),
        result("seen", value=60, made={"trained_on_them": True}, **RETRIEVED),
    ],
    ids=lambda one: one.experiment.name,
)
def test_what_is_not_comparable_is_left_out(other):
    table = grid(other, result("gold", value=70, **GIVEN))
    assert cell(table, "sample dev", "retrieved from sample", "extractive") == "no experiment"


def test_other_benchmarks_have_no_grid():
    assert reader_grid([result("hard", value=60, split="hard", **RETRIEVED)]) == []


@pytest.mark.parametrize("asked", [one for one in ASKED if one.benchmark.startswith("sample")])
def test_the_grid_knows_which_questions_offer_answers(asked):
    questions = open_benchmark(asked.benchmark).questions(asked.split)
    assert {bool(one.choices) for one in questions} == {asked.offers}


@pytest.mark.parametrize("name", sorted(names("reader")))
def test_a_reader_that_only_chooses_says_so(name):
    plugin = load("reader", name)
    source = inspect.getsource(importlib.import_module(plugin.__module__))
    assert plugin.chooses == ("require_choices(questions" in source)
