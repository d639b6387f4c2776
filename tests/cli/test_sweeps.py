"""Sweeps and tables on the command line: several values after one flag, stages shared by runs."""

import json
from functools import partial
from pathlib import Path

import pytest
from command_line import ifqa_here
from hypothesis import given
from hypothesis import strategies as st
from prediction_files import run_answers, write_answers

from ifqa.cli.options import repeat_flags

KINDS = {"--k": float, "--prompt": str}


@pytest.fixture
def ifqa(here):
    return partial(ifqa_here, folder=here)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("x --k 5 10 --json", "x --k 5 --k 10 --json"),
        ("--k 5 10 sample", "--k 5 --k 10 sample"),
        ("--k=5 10", "--k=5 --k 10"),
        ("--k -5 -10", "--k -5 --k -10"),
        ("--k 5 smaple", "--k 5 smaple"),
        ("--prompt a b --k 5", "--prompt a --prompt b --k 5"),
        ("--prompt a sample sample-hard", "--prompt a sample sample-hard"),
        ("--prompt a experiments/sample.toml", "--prompt a experiments/sample.toml"),
        ("--other a b", "--other a b"),
        ("--k 5 -- 10", "--k 5 -- 10"),
        ("--k", "--k"),
    ],
)
def test_a_word_after_a_value_is_another_value(given, wanted, here):
    assert repeat_flags(given.split(), KINDS) == wanted.split()


@given(st.lists(st.sampled_from(["--k", "--prompt", "--x", "5", "a", "-1", "--", "--k=2"])))
def test_no_argument_is_lost_or_moved(arguments):
    repeated = repeat_flags(arguments, KINDS)
    rest = iter(repeated)
    assert all(argument in rest for argument in arguments)
    assert {*repeated} <= {*arguments, "--k"}


def test_a_sweep_prints_one_table(ifqa):
    write_answers("x", range(40))
    done = ifqa("run", "x", "--sample", "10", "20")
    assert done.returncode == 0
    head, *rows = done.stdout.splitlines()
    assert head.split()[:3] == ["questions", "EM", "F1"]
    assert [row.split("  ")[0] for row in rows[:2]] == ["sample=10", "sample=20"]
    assert "PARTIAL: 10 of 83 questions (random sample, seed 0)" in rows[0]


def test_seeds_give_a_mean_with_its_deviation(ifqa):
    write_answers("x", range(40))
    done = ifqa("run", "x", "--sample", "20", "--seeds", "3", "--json")
    table = json.loads(done.stdout)
    [row] = table["rows"]
    assert row["seeds"] == [0, 1, 2]
    ems = [
        json.loads(Path("experiments", name, "score/scores.json").read_text())["measures"]["EM"]
        for name in row["experiments"]
    ]
    values = [em["value"] for em in ems]
    mean = sum(values) / 3
    assert row["scores"]["EM"]["value"] == pytest.approx(mean)
    spread = (sum((value - mean) ** 2 for value in values) / 2) ** 0.5
    assert row["scores"]["EM"]["sd"] == pytest.approx(spread)


def test_two_readings_share_their_retrieval(ifqa):
    write_answers("x", range(40), more='[retriever]\nname = "gold"\nk = 4\n')
    done = ifqa("run", "x", "--k", "2", "3", "--passages", "1", "2")
    assert done.returncode == 0
    assert done.stderr.count("/retrieve: copied from") == 2
    assert len(list(Path("experiments").glob("x+*/retrieve"))) == 4


def test_a_sweep_by_set_has_a_row_for_each_value(ifqa):
    write_answers("x", range(40))
    done = ifqa("run", "x", "--set", "sample=5", "sample=6")
    assert [line.split("  ")[0] for line in done.stdout.splitlines()[1:3]] == [
        "sample=5",
        "sample=6",
    ]


def test_a_sweep_shows_what_finished(ifqa):
    write_answers("x", range(40))
    done = ifqa("run", "x", "--set", "reader.path=x.jsonl", "reader.path=none.jsonl")
    assert done.returncode == 2
    assert "reader.path=x.jsonl" in done.stdout
    assert "none.jsonl" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["run", "x", "--limit", "2", "3", "--show", "1"], "--show 1 is for one value of each"),
        (["run", "x", "--limit", "2", "2"], "limit: the value 2 is given twice"),
        (["run", "x", "--seeds", "2"], "nothing in it is drawn by a seed"),
        (["run", "x", "--limit", "2", "--set", "limit=3"], "limit is given twice: [2] by a flag"),
        (["table", "x"], "experiments/x/score is not there yet; make it with: ifqa run x"),
        (["table", "x", "--format", "latx"], "unknown format 'latx'; did you mean 'latex'?"),
        (["table", "x", "--names", "x"], "--names wants NAME=TEXT, such as bm25=BM25; found 'x'"),
    ],
)
def test_a_wrong_sweep_or_table_is_refused_in_one_line(arguments, problem, ifqa):
    write_answers("x", range(40))
    done = ifqa(*arguments)
    assert done.returncode == 2
    assert problem in done.stderr


def test_check_names_every_run_of_a_sweep(ifqa):
    write_answers("x", range(40), more='[retriever]\nname = "gold"\nk = 4\n')
    done = ifqa("check", "x", "--k", "2", "3", "--passages", "1", "2")
    assert done.stdout.count("experiment x+k=") == 4
    assert done.stdout.count("to do  retrieve with gold: once, with a run above") == 2


def test_a_table_is_written_in_each_format(ifqa):
    run_answers("a", range(40))
    run_answers("b", range(20))
    names = ["--names", "a=A & B", "EM=Exact"]
    columns = ["--columns", "EM", "F1"]
    latex = ifqa("table", "a", "b", "--format", "latex", *columns, *names).stdout
    assert "A \\& B & \\textbf{48.2} {\\footnotesize [" in latex
    assert " & Exact & F1 \\\\" in latex
    markdown = ifqa("table", "a", "b", "--format", "markdown", *columns, "--against", "b").stdout
    assert "| a | **48.2\\*** |" in markdown
    csv = ifqa("table", "a", "b", "--format", "csv", *columns).stdout
    assert csv.splitlines()[0].startswith(
        "name,experiments,questions,EM,EM low,EM high,EM questions,F1"
    )
    assert csv.splitlines()[1].startswith("a,a,83 questions of sample dev,48.192771,")


def test_runs_are_listed_with_their_scores(ifqa):
    run_answers("a", range(40))
    run_answers("b", range(20))
    listed = ifqa("runs").stdout.splitlines()
    assert len(listed) == 3
    assert "EM 48.2 [" in ifqa("runs", "A", "predictions").stdout
    assert ifqa("runs", "nowhere").stdout == "no finished run here with nowhere\n"
    assert json.loads(ifqa("runs", "--json", "--count", "1").stdout)["runs"][0]["stale"] == ""
    assert "1 more: ifqa runs --count 2" in ifqa("runs", "--count", "1").stdout
