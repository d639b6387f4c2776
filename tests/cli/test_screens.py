"""The helps and lists that fit one screen of 80 x 40, and `ifqa data NAME`."""

import json

import pytest
from typer.testing import CliRunner

from ifqa.cli.app import app


def output(*arguments, code=0):
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize("arguments", [["--help"], ["data", "--help"], ["list"]])
def test_it_fits_one_screen(arguments):
    lines = output(*arguments).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_the_help_groups_the_verbs():
    panels = [
        line.split("─ ")[1].split(" ─")[0]
        for line in output("--help").splitlines()
        if line.startswith("╭")
    ]
    assert panels == ["Ask and serve", "Run an experiment", "Prepare data, train", "Look"]


def test_a_kind_is_listed_whole():
    experiments = json.loads(output("list", "experiments", "--json"))["experiments"]
    assert [line.split()[0] for line in output("list", "experiments").splitlines()] == list(
        experiments
    )


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("ifqa", "--from"),
        ("causalqa", "eli5-train-kilt.jsonl"),
        ("wiqa", "--questions-from"),
        ("dewiki", "--date"),
        ("psgs_w100", "--url"),
        ("smollm2", "--from"),
    ],
)
def test_each_job_of_data_has_its_own_help(name, option):
    others = {"--questions-from", "--date"} - {option}
    text = output("data", name, "--help")
    assert option in text
    assert [other for other in others if other in text] == []
