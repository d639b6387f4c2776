"""Plugins from outside, each a typed file: retriever, reader, measure and benchmark, by command line and by Python."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import ifqa_here as ifqa

ROOT = Path(__file__).parents[2]
OUTSIDE = ROOT / "tests" / "outside"
EXPERIMENT = """benchmark = "my_benchmark:Teams"
split = "all"
corpus = "teams"
measures = ["my_measure:ONE_WORD"]
retriever = { name = "my_retriever:Words", k = 2 }
reader = { name = "my_reader:LastWord" }
"""
PASSAGES = ["team0 has captain0.", "team0 plays in town0.", "team1 has captain1.", "team2 plays in town2."]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    for path in OUTSIDE.glob("my_*.py"):
        shutil.copy(path, folder)
    for name in ("experiments", "indexes"):
        (folder / name).mkdir()
    (folder / "experiments/mine.toml").write_text(EXPERIMENT)
    (folder / "indexes/teams.toml").write_text('[[passages.sources]]\nformat = "passages"\npath = "teams.jsonl"\n')
    lines = [json.dumps({"id": f"p{n}", "contents": text}) for n, text in enumerate(PASSAGES)]
    (folder / "teams.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_all_four_plugins_go_through_run_and_report(work):
    """For team0, p0 and p1 share one word with a question. p0 comes first, so the answer is captain0; and so on."""
    done = ifqa("run", "mine", "--json", folder=work)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["scores"]
    rows = [json.loads(line) for line in (work / "experiments/mine/score/per_question.jsonl").read_text().splitlines()]
    assert [row["answer"] for row in rows] == ["captain0", "captain0", "captain1", "captain1", "town2", "town2"]
    assert {name: score["value"] for name, score in scores["measures"].items()} == {"accuracy": 50.0, "one word": 100.0}
    assert scores["subsets"]["captains"]["measures"]["accuracy"]["value"] == 66.67
    assert scores["macro"]["measures"]["accuracy"]["value"] == 50.0
    done = ifqa("report", folder=work)
    assert done.returncode == 0, done.stderr
    results = (work / "experiments/RESULTS.md").read_text()
    assert "| mine |  | 50.0 [" in results
    assert "one word" in results
