"""Results as tables: every experiment has a row, and only measured experiments have numbers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.config.experiment import parse_experiment
from ifqa.report.result_tables import readme_table, result_tables, results_markdown
from ifqa.report.results import Result, needs
from ifqa.report.table import Table

TABLES = {
    "benchmark": "sample",
    "split": "dev",
    "corpus": "sample",
    "retriever": {"name": "bm25"},
    "reader": {"name": "extractive"},
}
MADE = {"at": "2026-11-21T08:00:00+00:00", "hardware": "2 cores", "python": "3.11.7", "commit": "abc", "passages": 1234,
        "seconds": {"retrieve": 3.0, "read": 600.0}}  # fmt: skip


def scores(em=40.0, questions=83, **more):
    means = {
        "gold_any@1": {"value": 50.0, "low": 45.0, "high": 55.0},
        "gold_any@5": {"value": 60.0, "low": 55.0, "high": 65.0},
        "EM": {"value": em, "low": em - 4, "high": em + 4},
        "F1": {"value": em + 8, "low": em + 4, "high": em + 12},
    }
    return {
        "questions": questions,
        "measures": means,
        "subsets": {"numeric": {"questions": 20, "measures": {"EM": {"value": 31.5, "low": 20.0, "high": 43.0}}}},
        "n_failed": 0,
        "not_asked": 0,
        "retry": 0,
        "of": 83,
        **more,
    }


def result(name="mine", scored=None, made=MADE, **tables):
    experiment = parse_experiment(name, TABLES | tables, name)
    return Result(experiment, scored, made) if scored else Result(experiment, needs=needs(experiment))


def cell(tables, name, column):
    grid = next(one for one in tables if any(row[0] == name for row in one.rows))
    row = next(row for row in grid.rows if row[0] == name)
    return row[grid.columns.index(column)] if column in grid.columns else None


def test_a_measured_row_has_scores_with_intervals_and_subsets():
    tables = result_tables([result(scored=scores())])
    assert cell(tables, "mine", "EM") == "40.0 [36.0, 44.0]"
    assert cell(tables, "mine", "F1") == "48.0 [44.0, 52.0]"
    assert cell(tables, "mine", "gold recall @1 / @5 / @20 / @100") == "50.0 / 60.0 / - / -"
    assert cell(tables, "mine", "EM, numeric") == "31.5 [20.0, 43.0] of 20"
    assert cell(tables, "mine", "passages") == "1,234 (sample)"


def test_an_experiment_not_run_shows_what_it_needs_and_no_scores():
    llm = {"reader": {"name": "llm"}, "llm": {"model": "m"}, "corpus": "enwiki"}
    tables = result_tables([result("asked", **llm), result("free")])
    assert cell(tables, "asked", "verdict") == "not run: needs the Wikipedia dump, a key"
    assert cell(tables, "free", "verdict") == "not run"
    rows = [row for table in tables for row in table.rows]
    assert not [text for row in rows for text in row if re.search(r"\d", text)]


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [
        ({"EM": {"value": 40.5, "tolerance": 1}}, "OK"),
        ({"EM": {"value": 43, "tolerance": 1}}, "near"),
        ({"EM": {"value": 50, "tolerance": 1}}, "off"),
        ({"EM": {"value": 40}, "F1": {"value": 90}}, "off"),
        ({"EM": {"value": 40}, "F1": {"value": 51}}, "near"),
        ({"EM": {"value": 90, "retired": "m"}}, "model retired"),
        ({"EM": [{"value": 90, "retired": "m"}, {"value": 40}]}, "OK"),
        ({"numeric.EM": {"value": 31.5}}, "OK"),
        ({"gold_read.EM": {"value": 31.5}}, "off"),
        ({}, ""),
    ],
)
def test_the_verdict_of_a_row_is_the_worst_over_its_expected_values(expected, wanted):
    assert cell(result_tables([result(scored=scores(), expected=expected)]), "mine", "verdict") == wanted


def test_a_partial_result_says_so_and_is_not_in_the_readme():
    limited, whole = result("limited", scores(questions=8), limit=8), result("whole", scores(), limit=500)
    capped, down = result("capped", scores(not_asked=3, retry=3)), result("down", scores(retry=79, n_failed=79))
    some = result("some", scores(questions=1), questions=["sample/dev/3"])
    tables = result_tables([limited, whole, capped, down, some])
    told = {name: cell(tables, name, "verdict") for name in ("limited", "whole", "capped", "down", "some")}
    assert told == {
        "limited": "PARTIAL: 8 of 83 questions",
        "whole": "",
        "capped": "PARTIAL: 3 not asked",
        "down": "PARTIAL: 79 not wholly answered; 79 failed",
        "some": "PARTIAL: 1 of 83 questions",
    }
    listed = readme_table([limited, whole, capped, down, some])
    assert [name for name in told if f"`ifqa run {name}`" in listed] == ["whole"]


def test_a_variant_is_in_no_readme_and_says_what_it_changes():
    variant = result("mine+k=5", scores(), about="Mine.")
    assert "mine+k=5" not in readme_table([variant])
    assert cell(result_tables([variant])[-1:], "mine+k=5", "what it is") == "Mine. Changed: k=5."


def test_an_experiment_with_a_plus_in_its_name_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, variant = (result(name, scores(), about="Both.") for name in ("a+b", "a+b+k=5"))
    assert cell(result_tables([own])[-1:], "a+b", "what it is") == "Both."
    assert cell(result_tables([variant])[-1:], "a+b+k=5", "what it is") == "Both. Changed: k=5."
    assert readme_table([result("mine", scores())]).splitlines()[2].startswith("| mine | "), (
        "a result without `about` is listed by its name"
    )


def test_a_stale_result_shows_the_reason_and_no_scores():
    stale = Result(parse_experiment("mine", TABLES, "mine"), stale="its passages have changed")
    tables = result_tables([stale])
    assert cell(tables, "mine", "verdict") == "stale: its passages have changed"
    assert cell(tables, "mine", "EM") is None


def test_expected_values_are_grouped_by_model_with_their_source_once():
    published = {
        "EM": [
            {"value": 46.08, "retired": "davinci", "source": "Table 3"},
            {"value": 40.66, "retired": "text", "source": "Table 3"},
        ],
        "F1": [{"value": 55.27, "retired": "davinci", "source": "Table 3"}],
    }
    tables = result_tables([result(scored=None, expected=published)])
    assert cell(tables, "mine", "published or expected") == "EM 46.08, F1 55.27 [davinci]; EM 40.66 [text]"
    assert tables[0].note == "Expected values: Table 3."


def test_results_are_grouped_by_heading_and_measured_tables_come_first():
    several = [result("a", table="B"), result("b", scores(), table="C"), result("c", table="A")]
    assert [one.title for one in result_tables(several)] == ["C", "A", "B", "How they were made"]


def test_the_last_table_shows_date_hardware_time_and_cost_of_each_result():
    paid = result("paid", scores(), MADE | {"cost": 1.234, "tokens": 5000, "label": "untrained", "model": "m-1"})
    assert cell(result_tables([paid]), "paid", "verdict") == "untrained"
    free, unknown = result("free", scores()), result("unknown", scores(), MADE | {"cost": None, "tokens": 70})
    tables = result_tables([free, paid, unknown])[-1:]
    assert cell(tables, "free", "date") == "2026-11-21"
    assert cell(tables, "free", "time") == "retrieve 3 s, read 10 min"
    assert [cell(tables, name, "cost") for name in ("free", "paid", "unknown")] == [
        "$0", "$1.23 in the last attempt, 5,000 tokens in all", "at an unknown price in the last attempt, 70 tokens in all"
    ]  # fmt: skip
    assert cell(tables, "paid", "notes") == "asked m-1"
    elsewhere = result_tables([result("there", scores(), MADE | {"model": "m-1", "server": "http://vm:8765"})])
    assert cell(elsewhere[-1:], "there", "notes") == "asked m-1 at http://vm:8765"


@given(st.lists(st.text(), min_size=4, max_size=4))
def test_no_text_breaks_out_of_a_markdown_cell_or_a_heading(texts):
    title, note, *cells = texts
    lines = results_markdown([Table(f"T{title}", f"N{note}", ("a", "b"), (tuple(cells),))], []).split("\n")
    start = max(n for n, line in enumerate(lines) if line.startswith("## T"))
    assert len(lines) - start == 8, (
        "the heading and the note are a line each and the table is three, with blank lines between"
    )
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


def test_the_readme_table_has_measured_rows_with_their_commands():
    table = readme_table([result("mine", scores(), about="Mine."), result("other")])
    assert table.splitlines()[2:] == [
        "| Mine | 1,234 (sample) | 50.0 / 60.0 / - / - | 40.0 [36.0, 44.0] | 48.0 [44.0, 52.0] | `ifqa run mine` |"
    ]


def by_class(**more):
    tables = {"benchmark": "sample-causal", "retriever": {"name": "context", "k": 1}, "corpus": ""}
    means = {name: {"value": 20.0, "low": 10.0, "high": 30.0} for name in ("ROUGE-L", "EM", "F1", "answer@1")}
    part = {"questions": 14, "measures": means}
    scored = {"questions": 45, "of": 45, "n_failed": 0, "not_asked": 0, "retry": 0, "subsets": {}, "measures": means}
    return tables | more, scored | {"groups": {"cause": part, "result": part}, "macro": {"measures": means}}


def test_scores_by_group_stand_beside_the_expected_ones():
    tables, scored = by_class(expected={"cause.ROUGE-L": {"value": 20}, "result.ROUGE-L": {"value": 90}})
    grid = result_tables([result("mine", scored, **tables)])[1]
    assert (grid.title, grid.columns) == ("sample-causal dev, by class", ("experiment", "measure", "cause", "result"))
    assert grid.rows[0] == (
        "mine",
        "ROUGE-L",
        "20.0 [10.0, 30.0] of 14; expected 20 OK",
        "20.0 [10.0, 30.0] of 14; expected 90 off",
    )
    assert ("mine", "answer recall @1 / @5 / @20 / @100", "20.0 / - / - / -", "20.0 / - / - / -") in grid.rows


def test_without_a_run_the_expected_scores_by_group_are_shown():
    tables, _ = by_class(expected={"cause.ROUGE-L": {"value": 20}, "macro.EM": {"value": 3}, "EM": {"value": 4}})
    grid = result_tables([result("mine", **tables)])[1]
    assert (grid.columns, grid.rows) == (("experiment", "measure", "cause"), (("mine", "ROUGE-L", "expected 20"),))


def test_many_expected_scores_by_group_fill_no_cell():
    groups = {f"c{n}.EM": {"value": n} for n in range(20)}
    tables, _ = by_class(expected=groups | {"macro.EM": {"value": 9.5}})
    tables = result_tables([result("mine", **tables)])
    assert cell(tables, "mine", "published or expected") == "EM (macro) 9.5"
    assert len(tables[1].columns) == 22


def test_benchmarks_without_groups_have_no_table_by_group():
    assert [one.title for one in result_tables([result(scored=scores())])] == ["sample dev", "How they were made"]
