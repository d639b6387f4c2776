"""Results as tables; `test_publish` holds those of this repository byte by byte."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.config.experiment import parse_experiment
from ifqa.report.result_tables import reader_tables, readme_table, result_tables, results_markdown, summary_table
from ifqa.report.results_log import Entry, list_needs
from ifqa.report.table import Table

TABLES = {
    "benchmark": "sample", "split": "dev", "corpus": "sample", "retriever": {"name": "bm25"}, "reader": {"name": "extractive"},
}  # fmt: skip
MADE = {
    "at": "2026-11-21T08:00:00+00:00", "hardware": "2 cores", "python": "3.11.7", "commit": "abc", "passages": 1234,
    "seconds": {"retrieve": 3.0, "read": 600.0},
}  # fmt: skip


def mean(value, less=4.0, more=4.0):
    return {"value": value, "low": value - less, "high": value + more}


def scores(em=40.0, questions=83, **more):
    means = {"gold_any@1": mean(50.0), "gold_any@5": mean(60.0), "EM": mean(em), "F1": mean(em + 8)}
    subsets = {"numeric": {"questions": 20, "measures": {"EM": mean(31.5, 11.5, 11.5)}}}
    counts = {"questions": questions, "n_failed": 0, "not_asked": 0, "retry": 0, "of": 83}
    return counts | {"measures": means, "subsets": subsets} | more


def result(name="mine", scored=None, made=MADE, **tables):
    experiment = parse_experiment(name, TABLES | tables, name)
    return Entry(experiment, scored, made) if scored else Entry(experiment, needs=list_needs(experiment))


def cell(tables, name, column):
    grid = next(table for table in tables if any(row[0] == name for row in table.rows))
    row = next(row for row in grid.rows if row[0] == name)
    return row[grid.columns.index(column)] if column in grid.columns else None


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [
        ({"EM": {"value": 40.5, "tolerance": 1}}, "OK"), ({"EM": {"value": 43, "tolerance": 1}}, "near"),
        ({"EM": {"value": 50, "tolerance": 1}}, "off"), ({"EM": {"value": 40}, "F1": {"value": 90}}, "off"),
        ({"EM": {"value": 40}, "F1": {"value": 51}}, "near"), ({"EM": {"value": 90, "retired": "m"}}, "model retired"),
        ({"EM": [{"value": 90, "retired": "m"}, {"value": 40}]}, "OK"), ({"numeric.EM": {"value": 31.5}}, "OK"),
        ({"gold_read.EM": {"value": 31.5}}, "off"), ({}, ""),
    ],
)  # fmt: skip
def test_the_verdict_of_a_row_is_the_worst_over_its_expected_values(expected, wanted):
    assert cell(result_tables([result(scored=scores(), expected=expected)]), "mine", "verdict") == wanted


def test_a_partial_result_says_so_and_is_not_in_the_readme():
    whole, limited = result("whole", scores(), limit=500), result("limited", scores(questions=8), limit=8)
    capped, down = result("capped", scores(not_asked=3, retry=3)), result("down", scores(retry=79, n_failed=79))
    some = [whole, limited, capped, down, result("some", scores(questions=1), questions=["sample/dev/3"])]
    tables = result_tables(some)
    assert [cell(tables, one.experiment.name, "verdict") for one in some] == [
        "", "PARTIAL: 8 of 83 questions", "PARTIAL: 3 not asked", "PARTIAL: 79 not wholly answered; 79 failed",
        "PARTIAL: 1 of 83 questions",
    ]  # fmt: skip
    assert re.findall(r"`ifqa run (\w+)`", readme_table(some)) == ["whole"]


def test_what_a_result_cost_and_who_was_asked_is_told():
    paid = result("paid", scores(), MADE | {"cost": 1.234, "tokens": 5000, "label": "untrained", "model": "m-1"})
    unknown = MADE | {"cost": None, "tokens": 70, "model": "m-1", "server": "http://vm:8765"}
    assert cell(result_tables([paid]), "paid", "verdict") == "untrained"
    tables = result_tables([paid, result("unknown", scores(), unknown)])[-1:]
    assert [cell(tables, name, "cost") for name in ("paid", "unknown")] == [
        "$1.23 in the last attempt, 5,000 tokens in all", "at an unknown price in the last attempt, 70 tokens in all"
    ]  # fmt: skip
    assert [cell(tables, name, "notes") for name in ("paid", "unknown")] == ["asked m-1", "asked m-1 at http://vm:8765"]


@given(st.lists(st.text(), min_size=4, max_size=4))
def test_no_text_breaks_out_of_a_markdown_cell_or_a_heading(texts):
    title, note, *cells = texts
    lines = results_markdown([Table(f"T{title}", f"N{note}", ("a", "b"), (tuple(cells),))], []).split("\n")
    start = max(n for n, line in enumerate(lines) if line.startswith("## T"))
    assert len(lines) - start == 8  # the heading and the note are a line each, the table is three, blank lines between
    table = [line for line in lines[start:] if line.startswith("|")]
    assert len(table) == 3
    assert len(re.split(r"(?<!\\)\|", table[2])) == 4
    assert "<" not in table[2]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[x](javascript:alert(1))", "[x]\\(javascript:alert(1))"),
        ("![x](http://a/b.png)", "![x]\\(http://a/b.png)"),
        ("[x][y] [y]: javascript:a", "[x]\\[y] [y]\\: javascript:a"),
        ("<javascript:a> <img src=x>", "&lt;javascript:a> &lt;img src=x>"),
        ("40.0 [36.0, 44.0] of 9", "40.0 [36.0, 44.0] of 9"),
        ("\x1b[31mred\n\x9b", "\ufffd[31mred \ufffd"),
    ],
)
def test_no_link_image_or_html_comes_of_a_text(text, written):
    page = results_markdown([Table(f"T {text}", f"N {text}", ("a",), ((text,),))], [])
    assert page.endswith(f"## T {written}\n\n| a |\n|---|\n| {written} |\n\nN {written}\n")


def by_class(**more):
    tables = {"benchmark": "sample-causal", "retriever": {"name": "context", "k": 1}, "corpus": ""}
    means = {name: mean(20.0, 10.0, 10.0) for name in ("ROUGE-L", "EM", "F1", "answer@1")}
    part = {"questions": 14, "measures": means}
    groups = {"groups": {"cause": part, "result": part}, "macro": {"measures": means}}
    return tables | more, scores(questions=45, of=45, subsets={}, measures=means) | groups


def test_scores_by_group_stand_beside_the_expected_ones():
    tables, scored = by_class(expected={"cause.ROUGE-L": {"value": 20}, "result.ROUGE-L": {"value": 90}})
    grid = result_tables([result("mine", scored, **tables)])[1]
    assert (grid.title, grid.columns) == ("sample-causal dev, by class", ("experiment", "measure", "cause", "result"))
    told = (f"20.0 [10.0, 30.0] of 14; expected {verdict}" for verdict in ("20 OK", "90 off"))
    assert grid.rows[0] == ("mine", "ROUGE-L", *told)
    assert ("mine", "answer recall @1 / @5 / @20 / @100", "20.0 / - / - / -", "20.0 / - / - / -") in grid.rows
    tables, _ = by_class(expected={"cause.ROUGE-L": {"value": 20}, "macro.EM": {"value": 3}, "EM": {"value": 4}})
    grid = result_tables([result("mine", **tables)])[1]  # without a run
    assert (grid.columns, grid.rows) == (("experiment", "measure", "cause"), (("mine", "ROUGE-L", "expected 20"),))


def best(*results):
    grid = summary_table(results)
    return [dict(zip(grid.columns, row, strict=True)) for row in grid.rows]


def test_the_best_row_of_the_summary_searches_a_corpus_and_covers_its_split():
    gold = result("gold", scores(90.0), retriever={"name": "gold"}, corpus="")
    partly = result("partly", scores(80.0, of=700))
    trained = result("trained", scores(70.0), MADE | {"trained_on_them": True})
    high = result("high", scores(45.0), expected={"EM": {"value": 45.2, "tolerance": 1, "source": "this project"}})
    [row] = best(result("low", scores(40.0)), high, gold, partly, trained)
    assert (row["best row"], row["score"], row["verdict"]) == ("high", "EM 45.0 [41.0, 49.0]", "OK")
    [row] = best(gold)
    assert (row["best row"], row["verdict"]) == ("gold", "")
    assert best(partly, result("undone")) == []


GIVEN = {"retriever": {"name": "gold"}, "corpus": ""}


def test_no_score_decides_which_of_several_readers_rows_is_shown():
    partly = result("a", scores(80.0, of=99), **GIVEN)
    whole = [result(name, scores(em), **GIVEN) for name, em in (("b", 70.0), ("c", 75.0))]
    assert reader_tables([*whole, partly])[0].rows[0][-1] == "b"
    assert reader_tables([partly])[0].rows[0][-2] == "80.0 [76.0, 84.0] PARTIAL: 83 of 99 questions"
    seen = result("seen", scores(60.0), MADE | {"trained_on_them": True})
    one = result("one", scores(60.0), questions=["sample/dev/3"])
    assert reader_tables([result("mine+k=5", scores(60.0)), one, seen, result("undone")]) == []
