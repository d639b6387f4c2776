"""What a benchmark from outside counts and fetches: its functions are commands."""

import json
from pathlib import Path

import pytest
from command_line import ifqa_here

BENCHMARK = '''
from pathlib import Path
from ifqa.protocols import Counts, CountTable
class Plain:
    def questions(self, split):
        return []
class Teams(Plain):
    def counts(self):
        return {"teams": self.count}
    def count(self, least: int = 0):
        """Count the questions of each team.

        Only of teams that have enough.
        """
        counts = {"team[0]": 3, "team[1]": 1}
        rows = [(team, str(number)) for team, number in counts.items() if number >= least]
        return Counts([CountTable(("team", "questions"), rows, "All teams")])
    def fetcher(self):
        return self.make
    def make(self, source: Path | None = None):
        """Make the questions of teams."""
        yield f"made from {source}"
class More(Teams):
    def counts(self):
        return super().counts() | {"towns": self.count_file}
    def count_file(self, file):
        """Count the lines of a file."""
        return Counts([], {"lines": len(Path(file).read_text().splitlines())})
'''


@pytest.fixture(autouse=True)
def _benchmarks(importable):
    Path("my_teams.py").write_text(BENCHMARK)


def ifqa(*arguments):
    return ifqa_here(*arguments, folder=Path())


def test_the_only_counts_of_a_benchmark_are_named_by_it_alone():
    lines = ifqa("stats", "my_teams:Teams").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["All", "teams"],
        ["team", "questions"],
        ["team[0]", "3"],
        ["team[1]", "1"],
    ]


def test_a_parameter_is_an_option():
    assert "team[1]" not in ifqa("stats", "my_teams:Teams", "--least", "2").stdout


def test_an_option_has_the_parameters_type():
    refused = ifqa("stats", "my_teams:Teams", "--least", "many").stderr
    assert "ifqa: Invalid value for '--least': Input should be a valid integer" in refused


def test_the_docstring_is_the_help():
    assert "Only of teams that have enough." in ifqa("stats", "my_teams:Teams", "--help").stdout


def test_tables_without_content_are_the_json():
    [table] = json.loads(ifqa("stats", "my_teams:Teams", "--least", "2", "--json").stdout)
    assert table["title"] == "All teams"
    assert table["columns"] == ["team", "questions"]
    assert table["rows"] == [["team[0]", "3"]]


def test_one_of_several_counts_is_named():
    done = ifqa("stats", "my_teams:More", "towns", "my_teams.py", "--json")
    assert json.loads(done.stdout) == {"lines": len(BENCHMARK.splitlines())}


def test_several_counts_are_listed_without_a_name():
    shown = ifqa("stats", "my_teams:More")
    assert "Count the lines of a file." in shown.stdout + shown.stderr


def test_a_benchmark_without_counts_is_refused_in_one_line():
    done = ifqa("stats", "my_teams:Plain")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "ifqa: benchmark 'my_teams:Plain' counts nothing; give it a method counts, or run: "
        "ifqa stats questions --benchmark my_teams:Plain"
    )


def test_an_unknown_verb_is_refused_in_one_line():
    done = ifqa("stats", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ifqa: No such command 'nonsense'.\n"


def test_a_fetcher_is_called_in_place_of_a_download():
    done = ifqa("data", "my_teams:Teams", "--source", "there")
    assert (done.returncode, done.stdout) == (0, "made from there\n")
