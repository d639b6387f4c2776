"""Scores as tables; `test_publish` compares this repository's byte by byte."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.config.experiment import parse_experiment
from ifqa.report.result_tables import (
    reader_tables,
    readme_table,
    result_tables,
    results_markdown,
    summary_table,
)
from ifqa.report.results_log import Entry, list_needs
from ifqa.report.table import Table

TABLES = {
    "benchmark": "sample",
    "split": "dev",
    "corpus": "sample",
    "retriever": {"name": "bm25"},
    "reader": {"name": "extractive"},
}
FACTS = {
    "at": "2026-11-21T08:00:00+00:00",
    "hardware": "2 cores",
    "python": "3.11.7",
    "commit": "abc",
    "passages": 1234,
    "seconds": {"retrieve": 3.0, "read": 600.0},
}


def mean(score, half=4.0):
    return {"value": score, "low": score - half, "high": score + half}


def scores(em=40.0, questions=83, **others):
    means = {"gold_any@1": mean(50.0), "gold_any@5": mean(60.0), "EM": mean(em), "F1": mean(em + 8)}
    subsets = {"numeric": {"questions": 20, "measures": {"EM": mean(31.5, 11.5)}}}
    counts = {"questions": questions, "n_failed": 0, "not_asked": 0, "retry": 0, "of": 83}
    return counts | {"measures": means, "subsets": subsets} | others


def entry(experiment_name="mine", content=None, facts=FACTS, **sections):
    experiment = parse_experiment(experiment_name, TABLES | sections, experiment_name)
    return (
        Entry(experiment, content, facts)
        if content
        else Entry(experiment, needs=list_needs(experiment))
    )


def cell(tables, name, column):
    grid = next(table for table in tables if any(row[0] == name for row in table.rows))
    row = next(row for row in grid.rows if row[0] == name)
    return row[grid.columns.index(column)] if column in grid.columns else None


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [
        ({"EM": {"value": 40.5, "tolerance": 1}}, "OK"),
        ({"EM": {"value": 43, "tolerance": 1}}, "near"),
        ({"EM": {"value": 50, "tolerance": 1}}, "off"),
        ({"EM": {"value": 40}, "F1": {"value": 90}}, "off"),
        ({"EM": {"value": 40}, "F1": {"value": 51}}, "near"),
        ({"EM": {"value": 90, "retired": "m"}}, "model retired"),
        ({"EM": {"value": 90, "other_set": "all"}}, "another test set"),
        ({"EM": [{"value": 90, "retired": "m"}, {"value": 40}]}, "OK"),
        ({"numeric.EM": {"value": 31.5}}, "OK"),
        ({"gold_read.EM": {"value": 31.5}}, "off"),
        ({}, ""),
    ],
)
def test_the_verdict_of_a_row_is_the_worst_over_its_expected_values(expected, wanted):
    assert (
        cell(result_tables([entry(content=scores(), expected=expected)]), "mine", "verdict")
        == wanted
    )


def partial_entries():
    whole = entry("whole", scores(), limit=500)
    limited = entry("limited", scores(questions=8), limit=8)
    capped = entry("capped", scores(not_asked=3, retry=3))
    down = entry("down", scores(retry=79, n_failed=79))
    return [
        whole,
        limited,
        capped,
        down,
        entry("some", scores(questions=1), questions=["sample/dev/3"]),
    ]


def test_a_partial_row_is_marked():
    entries = partial_entries()
    tables = result_tables(entries)
    assert [cell(tables, row.experiment.name, "verdict") for row in entries] == [
        "",
        "PARTIAL: 8 of 83 questions",
        "PARTIAL: 3 not asked",
        "PARTIAL: 79 not completely answered; 79 failed",
        "PARTIAL: 1 of 83 questions",
    ]


def test_a_partial_row_is_not_in_the_readme():
    assert re.findall(r"`ifqa run (\w+)`", readme_table(partial_entries())) == ["whole"]


UNKNOWN = FACTS | {"cost": None, "tokens": 70, "model": "m-1", "server": "http://vm:8765"}
PAID = FACTS | {"cost": 1.234, "tokens": 5000, "label": "untrained", "model": "m-1"}


def provenance_of(column):
    tables = result_tables([entry("paid", scores(), PAID), entry("unknown", scores(), UNKNOWN)])
    return [cell(tables[-1:], name, column) for name in ("paid", "unknown")]


def test_the_verdict_has_the_label():
    assert cell(result_tables([entry("paid", scores(), PAID)]), "paid", "verdict") == "untrained"


def test_the_provenance_has_the_cost():
    assert provenance_of("cost") == [
        "$1.23 in the last attempt, 5,000 tokens in all",
        "at an unknown price in the last attempt, 70 tokens in all",
    ]


def test_the_provenance_has_no_address():
    assert provenance_of("notes") == ["asked m-1", "asked m-1"]


def test_the_provenance_has_the_served_name():
    named = FACTS | {"cost": 0.0, "tokens": 1, "model": "m-1", "served_as": "qwen3-8b-awq"}
    tables = result_tables([entry("named", scores(), named)])[-1:]
    assert cell(tables, "named", "notes") == "asked qwen3-8b-awq"


def test_the_provenance_says_if_the_confidence_was_fitted_on_the_questions():
    tables = result_tables([entry("fitted", scores(), FACTS | {"calibrated_on_them": True})])[-1:]
    assert cell(tables, "fitted", "notes") == "confidence fitted on these questions"


@given(st.lists(st.text(), min_size=4, max_size=4))
def test_no_text_breaks_out_of_a_markdown_cell_or_a_heading(texts):
    title, note, *cells = texts
    lines = results_markdown(
        [Table(f"T{title}", f"N{note}", ("a", "b"), (tuple(cells),))], []
    ).split("\n")
    start = max(n for n, line in enumerate(lines) if line.startswith("## T"))
    # The heading and the note are a line each, the table is three, blank lines between
    assert len(lines) - start == 8
    table = [line for line in lines[start:] if line.startswith("|")]
    assert len(table) == 3
    assert len(re.split(r"(?<!\\)\|", table[2])) == 4
    assert "<" not in table[2]


ESCAPED = {
    "[x](javascript:alert(1))": "[x]\\(javascript:alert(1))",
    "![x](http://a/b.png)": "![x]\\(http://a/b.png)",
    "[x][y] [y]: javascript:a": "[x]\\[y] [y]\\: javascript:a",
    "<javascript:a> <img src=x>": "&lt;javascript:a> &lt;img src=x>",
    "40.0 [36.0, 44.0] of 9": "40.0 [36.0, 44.0] of 9",
    "\x1b[31mred\n\x9b": "\ufffd[31mred \ufffd",
}


@pytest.mark.parametrize("text", ESCAPED)
def test_markup_in_a_table_is_escaped(text):
    page = results_markdown([Table(f"T {text}", f"N {text}", ("a",), ((text,),))], [])
    cell = ESCAPED[text]
    assert page.endswith(f"## T {cell}\n\n| a |\n|---|\n| {cell} |\n\nN {cell}\n")


def causal(**sections):
    """An entry with groups: the sections of its experiment, and its scores."""
    sections |= {
        "benchmark": "sample-causal",
        "retriever": {"name": "context", "k": 1},
        "corpus": "",
    }
    means = {name: mean(20.0, 10.0) for name in ("ROUGE-L", "EM", "F1", "answer@1")}
    part = {"questions": 14, "measures": means}
    groups = {"groups": {"cause": part, "result": part}, "macro": {"measures": means}}
    return sections, scores(questions=45, of=45, subsets={}, measures=means) | groups


def test_scores_by_group_are_listed_with_the_expected_ones():
    sections, content = causal(
        expected={"cause.ROUGE-L": {"value": 20}, "result.ROUGE-L": {"value": 90}}
    )
    table = result_tables([entry("mine", content, **sections)])[1]
    assert (table.title, table.columns) == (
        "sample-causal dev, by class",
        ("experiment", "measure", "cause", "result"),
    )
    cells = (f"20.0 [10.0, 30.0] of 14; expected {verdict}" for verdict in ("20 OK", "90 off"))
    assert table.rows[0] == ("mine", "ROUGE-L", *cells)
    assert (
        "mine",
        "answer recall @1 / @5 / @20 / @100",
        "20.0 / - / - / -",
        "20.0 / - / - / -",
    ) in table.rows
    sections, _ = causal(
        expected={"cause.ROUGE-L": {"value": 20}, "macro.EM": {"value": 3}, "EM": {"value": 4}}
    )
    table = result_tables([entry("mine", **sections)])[1]  # without a run
    assert (table.columns, table.rows) == (
        ("experiment", "measure", "cause"),
        (("mine", "ROUGE-L", "expected 20"),),
    )


def best_rows(*entries):
    return [row[1:] for row in summary_table(entries).rows]


def test_the_best_row_searches_a_corpus():
    gold = entry("gold", scores(90.0), retriever={"name": "gold"}, corpus="")
    partial = entry("partial", scores(80.0, of=700))
    trained = entry("trained", scores(70.0), FACTS | {"trained_on_them": True})
    high = entry(
        "high",
        scores(45.0),
        expected={"EM": {"value": 45.2, "tolerance": 1, "source": "this project"}},
    )
    rows = best_rows(entry("low", scores(40.0)), high, gold, partial, trained)
    assert rows == [("high", "EM 45.0 [41.0, 49.0]", "OK")]


def test_a_best_row_with_the_annotated_passages_says_so():
    gold = entry("gold", scores(90.0), retriever={"name": "gold"}, corpus="")
    assert best_rows(gold) == [("gold", "EM 90.0 [86.0, 94.0]", "with the annotated passages")]


def test_the_best_row_covers_its_split():
    partial = entry("partial", scores(80.0, of=700))
    assert best_rows(partial, entry("undone")) == []


def test_a_readers_row_is_chosen_by_name_not_by_score():
    given = {"retriever": {"name": "gold"}, "corpus": ""}
    partial = entry("a", scores(80.0, of=99), **given)
    whole = [entry(name, scores(em), **given) for name, em in (("b", 70.0), ("c", 75.0))]
    assert reader_tables([*whole, partial])[0].rows[0][-1] == "b"
    assert (
        reader_tables([partial])[0].rows[0][-2] == "80.0 [76.0, 84.0] PARTIAL: 83 of 99 questions"
    )
    trained = entry("trained", scores(60.0), FACTS | {"trained_on_them": True})
    single = entry("single", scores(60.0), questions=["sample/dev/3"])
    assert reader_tables([entry("mine+k=5", scores(60.0)), single, trained, entry("undone")]) == []


def results(*entries):
    return results_markdown(result_tables(entries), entries)


def test_the_legend_explains_what_the_tables_have():
    text = results(entry("mine", scores()))
    assert '"Numeric": the questions with a numeric answer.' in text
    assert '"Gold recall @K"' in text
    for absent in ("Macro", "Gold read", "ROUGE-L", "**OK**", "**PARTIAL**", "**Not run**"):
        assert absent not in text
    expecting = entry("mine", scores(8), expected={"EM": {"value": 8.0}})
    assert "**OK**, within the tolerance." in results(expecting)
    assert "**Not run**: what a run needs" in results(expecting, entry("other"))


def test_a_row_has_the_name_in_the_experiments_file():
    entries = [entry("mine", scores(), name="BM25 + FiD")]
    first, *_, how = result_tables(entries)
    assert first.rows[0][0] == "BM25 + FiD"
    assert how.rows[0][0] == "BM25 + FiD (mine)"
    assert "| BM25 + FiD |" in readme_table(entries)
    assert summary_table(entries).rows[0][1] == "BM25 + FiD"
    assert reader_tables(entries)[0].rows[0][-1] == "BM25 + FiD"
