"""Tables for papers: the best in bold, marks of paired tests, every text escaped."""

import csv
import json
import re
from io import StringIO
from pathlib import Path
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prediction_files import run_answers
from refusals import refused
from scored_experiments import benchmark, ctxs, scored

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.config.sweep import Variation
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.report import compare
from ifqa.report.compare import compare_to_first
from ifqa.report.score_table import NamedRow, ScoreTable, make_score_table
from ifqa.report.table import Table, latex_text
from ifqa.storage.files import read_json, read_jsonl


def rows(*names, **titles):
    return [
        NamedRow(titles.get(name, name), Variation("", (load_experiment(name),))) for name in names
    ]


@pytest.fixture
def three():
    """A answers the first 20 questions right, B the first 10 and the last 30, C the first 23."""
    right = {"a": range(20), "b": [*range(10), *range(53, 83)], "c": range(23)}
    for name, numbers in right.items():
        run_answers(name, numbers)


def cells(table: ScoreTable, column):
    at = table.columns.index(column)
    return {row.name: row.cells[at] for row in table.rows}


@pytest.mark.usefixtures("three")
def test_marks_are_those_of_compare():
    table = make_score_table(rows("a", "b", "c"), ["EM", "F1"], "a")
    first, *others = map(load_experiment, "abc")
    wanted = compare_to_first(first, others).differences
    for column in ("EM", "F1"):
        for name, difference in wanted[column].items():
            cell = cells(table, column)[name]
            assert cell is not None
            assert cell.p == difference.p
            assert cell.differs == (difference.p < 0.05)
    assert cells(table, "EM")["a"].p is None
    assert table.table().rows[1][1] == "48.2*"


@pytest.mark.usefixtures("three")
def test_marks_of_a_subset_are_over_its_questions():
    table = make_score_table(rows("a", "b", "c"), ["numeric.EM", "EM"], "a")
    subset, whole = (cells(table, column)["b"] for column in ("numeric.EM", "EM"))
    assert None not in (subset.p, whole.p)
    assert subset.questions < whole.questions == 83


@pytest.mark.usefixtures("three")
def test_intervals_are_those_of_the_scores():
    table = make_score_table(rows("a"), ["EM"])
    assert table.table().rows[0][1] == "24.1 [15.7, 33.7]"
    assert make_score_table(rows("a", "b"), ["EM"], "a").table().rows[0][1] == "24.1"
    both = make_score_table(rows("a", "b"), ["EM"], "a", intervals=True).table()
    assert both.rows[1][1].startswith("48.2* [")


@pytest.mark.usefixtures("three")
def test_the_best_of_a_column_is_bold():
    table = make_score_table(rows("a", "b", "c"), ["EM"])
    assert table.best == {(1, 0)}
    assert "| b | **48.2" in table.markdown()
    assert "b & \\textbf{48.2}" in table.latex()
    assert make_score_table(rows("b"), ["EM"]).best == set()


@pytest.mark.usefixtures("three")
def test_scores_over_other_questions_are_not_the_best():
    limited = override(load_experiment("a"), {"limit": 10})
    stages.run(Run(limited))
    table = make_score_table(
        [*rows("a", "b"), NamedRow("first", Variation("", (limited,)))], ["EM"]
    )
    assert table.best == {(1, 0)}
    assert table.table().columns[1] == "questions"
    assert table.rows[2].over == "sample dev, PARTIAL: 10 of 83 questions (the first, no sample)"
    assert "PARTIAL: 10 of 83 questions (the first, no sample)" in table.latex()
    with refused(
        "a has 83 questions and a\\+limit=10 has 10; they share 10. Compare .* questions$"
    ):
        make_score_table([*rows("a"), NamedRow("first", Variation("", (limited,)))], ["EM"], "a")


def test_no_score_is_the_best_among_questions_chosen_by_other_ids():
    for name, numbers in (("x", range(3)), ("y", range(10, 13))):
        chosen = [f"sample/dev/{number}" for number in numbers]
        run_answers(name, range(2), f"questions = {chosen}")
    table = make_score_table(rows("x", "y"), ["EM"])
    assert [row.cells[0].value for row in table.rows if row.cells[0]] == [pytest.approx(200 / 3), 0]
    assert table.best == set()
    assert table.notes[-1] == "x; y: not all over the same questions, though as many."


def test_no_score_is_the_best_where_systems_count_different_questions():
    texts = [f"If so, who was {n}?" for n in range(4)]
    gold = [
        f"She{n} was a tailor of the town of Ayr, born there in the year {n}." for n in range(4)
    ]
    benchmark(
        *(
            {"question": text, "answers": ["x"], "context": [passage]}
            for text, passage in zip(texts, gold, strict=True)
        )
    )
    found = ctxs(
        "found.json",
        *(
            (text, [("1", "", "Nothing of use here."), ("2", "", passage)][:: 1 if n else -1])
            for n, (text, passage) in enumerate(zip(texts, gold, strict=True))
        ),
    )
    for name, depth in (("few", 1), ("more", 2)):
        scored(name, found, dict.fromkeys(range(4), "x"), reader=f"passages = {depth}")
    table = make_score_table(rows("few", "more"), ["gold_read.EM", "EM"])
    few, more = (cells(table, "gold_read.EM")[name] for name in ("few", "more"))
    assert None not in (few, more)
    assert (few.questions, more.questions) == (1, 4)
    assert {column for _, column in table.best} == {1}


@pytest.mark.usefixtures("three")
def test_a_row_over_seeds_has_their_mean_with_the_standard_deviation():
    runs = tuple(override(load_experiment("a"), {"sample": 20, "seed": seed}) for seed in range(3))
    for run in runs:
        stages.run(Run(run))
    values = [
        100 * fmean(row["EM"] for _, row in read_jsonl(run.folder / "score/per_question.jsonl"))
        for run in runs
    ]
    table = make_score_table([NamedRow("s", Variation("", runs, (0, 1, 2)))], ["EM"])
    cell = cells(table, "EM")["s"]
    assert cell is not None
    assert cell.value == pytest.approx(fmean(values))
    assert cell.sd == pytest.approx(stdev(values))
    assert table.table().rows[0][1] == f"{fmean(values):.1f} ± {stdev(values):.1f}"


@pytest.fixture
def over_seeds():
    """A row over three seeds of two questions, some of which have numeric ones."""
    run_answers("a", range(20))
    runs = tuple(override(load_experiment("a"), {"sample": 2, "seed": seed}) for seed in range(3))
    for run in runs:
        stages.run(Run(run))
    return [NamedRow("s", Variation("", runs, (0, 1, 2)))]


def test_a_mean_over_fewer_seeds_says_how_many(over_seeds):
    counts = [
        read_json(run.folder / "score/scores.json")["subsets"]["numeric"]["questions"]
        for run in over_seeds[0].variation.experiments
    ]
    assert counts == [0, 0, 1]  # the sample's draws
    table = make_score_table(over_seeds, ["EM", "numeric.EM"])
    cell = cells(table, "numeric.EM")["s"]
    assert cell is not None
    assert (cell.seeds, cell.questions) == (1, 1)
    assert "s: numeric.EM is defined for 1 of 3 seeds, and is their mean." in table.notes
    full = cells(table, "EM")["s"]
    assert full is not None
    assert (full.seeds, full.questions) == (None, 2)


@pytest.mark.usefixtures("three")
def test_a_note_is_said_once_for_all_rows_that_it_is_about(monkeypatch):
    marks = {"a": "seen", "b": "seen", "c": "unseen"}
    monkeypatch.setattr(compare, "exposure_mark", lambda run: marks[run.experiment.name])
    notes = make_score_table(rows("a", "b", "c"), ["EM"]).notes
    assert notes[-2:] == ("a; b: seen.", "c: unseen.")


@pytest.mark.usefixtures("three")
def test_a_confidence_that_was_fitted_on_the_questions_has_a_note():
    path = Path("experiments/b/read/manifest.json")
    manifest = json.loads(path.read_text())
    manifest["record"]["calibrated_on_them"] = True
    path.write_text(json.dumps(manifest))
    notes = make_score_table(rows("a", "b", "c"), ["EM"]).notes
    assert notes[-1] == "b: the confidence was fitted on these questions."


@pytest.mark.usefixtures("three")
def test_a_note_about_all_rows_names_none(monkeypatch):
    monkeypatch.setattr(compare, "exposure_mark", lambda run: "seen")
    assert make_score_table(rows("a", "b"), ["EM"]).notes[-1] == "All rows: seen."


@pytest.mark.usefixtures("three")
def test_in_latex_the_notes_stand_below_the_table_where_they_widen_no_column():
    text = make_score_table(rows("a", "b"), ["EM"], "a").latex()
    before, after = text.split("\\end{tabular}")
    assert "differs from a" in after
    assert "multicolumn" not in before


@pytest.mark.usefixtures("three")
def test_a_row_over_seeds_is_not_compared():
    runs = tuple(override(load_experiment("a"), {"sample": 20, "seed": seed}) for seed in range(3))
    for run in runs:
        stages.run(Run(run))
    seeded = NamedRow("s", Variation("", runs, (0, 1, 2)))
    table = make_score_table([*rows("a", "b"), seeded], ["EM"], "a")
    assert cells(table, "EM")["s"].p is None
    assert "Rows over several seeds are not compared." in table.notes
    with refused("--against s: wanted a row of one run; it has several seeds"):
        make_score_table([*rows("a", "b"), seeded], ["EM"], "s")


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("columns", "against", "problem"),
    [
        (["EMM"], "", "unknown score of these experiments 'EMM'; did you mean 'EM'"),
        (["EM"], "d", "unknown row 'd'"),
    ],
)
def test_an_unknown_column_or_row_is_refused(columns, against, problem):
    with refused(problem):
        make_score_table(rows("a", "b"), columns, against)


@pytest.mark.usefixtures("three")
def test_the_csv_has_the_numbers_of_the_table():
    table = make_score_table(rows("a", "b", a="=1+1"), ["EM", "F1"], "a", intervals=True)
    records = list(csv.DictReader(StringIO(table.csv())))
    assert records[0]["name"] == "'=1+1"
    assert float(records[1]["EM"]) == pytest.approx(cells(table, "EM")["b"].value, abs=1e-6)
    assert float(records[1]["EM p"]) == pytest.approx(cells(table, "EM")["b"].p, abs=1e-6)
    assert records[0]["EM p"] == ""


# What each part of an escaped text prints; nothing else may stand in it
PRINTED = {
    "\\textbackslash{}": "\\",
    "\\textasciitilde{}": "~",
    "\\textasciicircum{}": "^",
    "\\textless{}": "<",
    "\\textgreater{}": ">",
    "\\textbar{}": "|",
    "\\char34{}": '"',
    "\\char96{}": "`",
    "-{}": "-",
    "?{}": "?",
    "!{}": "!",
    "{[}": "[",
    "{]}": "]",
    "{*}": "*",
} | {f"\\{character}": character for character in "{}$&#_%"}
PART = re.compile("|".join(map(re.escape, PRINTED)) + r"|[^\\{}$&#_%~^<>|\"`\[\]*?!-]")


@given(st.text(st.characters(max_codepoint=126, min_codepoint=32), max_size=30))
def test_latex_prints_a_text_as_it_is(text):
    escaped = latex_text(text)
    parts = PART.findall(escaped)
    assert "".join(parts) == escaped
    assert "".join(PRINTED.get(part, part) for part in parts) == text


def test_latex_text_is_one_line():
    assert latex_text("a\nb\tc\x1b") == "a b c\N{REPLACEMENT CHARACTER}"


def test_bold_cells_are_bold():
    table = Table("", "", ("a", "b"), (("x*", "1"), ("y", "2")), bold=frozenset({(0, 0), (1, 1)}))
    assert table.markdown().splitlines()[2:] == ["| **x\\*** | 1 |", "| y | **2** |"]
