"""The summary of all results: the best row of each split, and every measured reader."""

import pytest

from ifqa.config.experiment import parse_experiment
from ifqa.report.result_tables import readers, summary
from ifqa.report.results import Result

MADE = {"at": "2026-11-21T08:00:00+00:00", "hardware": "2 cores", "passages": 1234}


def scores(em, of=83):
    measures = {"EM": {"value": em, "low": em - 4, "high": em + 4}, "F1": {"value": em, "low": em, "high": em}}
    counts = {"questions": 83, "of": of, "n_failed": 0, "not_asked": 0, "retry": 0}
    return {"measures": measures, "subsets": {}, **counts}


def result(name, em=None, made=MADE, of=83, **tables):
    base = {"benchmark": "ifqa", "split": "full-dev", "corpus": "sample", "retriever": {"name": "bm25"}}
    experiment = parse_experiment(name, base | {"reader": {"name": "extractive"}} | tables, name)
    return Result(experiment) if em is None else Result(experiment, scores(em, of), made)


def rows(*results):
    grid = summary(results)
    return [dict(zip(grid.columns, row, strict=True)) for row in grid.rows]


def test_the_best_row_searches_a_corpus_and_covers_its_split():
    gold = result("gold", 90.0, retriever={"name": "gold"}, corpus="")
    partly = result("partly", 80.0, of=700)
    trained = result("trained", 70.0, made=MADE | {"trained_on_them": True})
    [row] = rows(result("low", 40.0), result("high", 45.0), gold, partly, trained)
    assert (row["best row"], row["score"], row["verdict"]) == ("high", "EM 45.0 [41.0, 49.0]", "")
    assert rows(gold)[0]["best row"] == "gold"
    assert rows(partly, result("undone")) == []


def test_a_row_with_expected_values_has_their_verdict():
    [row] = rows(result("mine", 45.0, expected={"EM": {"value": 45.2, "tolerance": 1, "source": "this project"}}))
    assert row["verdict"] == "OK"


SAMPLE = {"benchmark": "sample", "split": "dev"}
GOLD = SAMPLE | {"retriever": {"name": "gold"}, "corpus": ""}


def reader_rows(*results):
    return [row[:-1] if len(results) == 1 else row for table in readers(results) for row in table.rows]


def test_each_measured_reader_has_a_row_for_its_questions_and_passages():
    assert reader_rows(result("open", 60.0, **SAMPLE), result("gold", 70.0, **GOLD), result("undone", **GOLD)) == [
        ("sample dev", "given", "extractive", "EM", "70.0 [66.0, 74.0]", "gold"),
        ("sample dev", "retrieved from sample", "extractive", "EM", "60.0 [56.0, 64.0]", "open"),
    ]


def test_no_score_decides_which_of_several_experiments_is_shown():
    partly = result("a", 80.0, of=99, **GOLD)
    assert reader_rows(result("b", 70.0, **GOLD), result("c", 75.0, **GOLD), partly)[0][-1] == "b"
    assert reader_rows(partly)[0][-1] == "80.0 [76.0, 84.0] PARTIAL: 83 of 99 questions"


@pytest.mark.parametrize(
    "other",
    [
        result("mine+k=5", 60.0),
        result("one", 60.0, questions=["ifqa/full-dev/3"]),
        result("seen", 60.0, made=MADE | {"trained_on_them": True}),
        result("undone"),
    ],
    ids=lambda other: other.experiment.name,
)
def test_what_is_not_comparable_has_no_row(other):
    assert readers([other]) == []
