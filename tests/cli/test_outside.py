"""Plugins from outside, each a typed file: retriever, reader, measure and benchmark of one
experiment.
"""

import json
import shutil
from pathlib import Path

import pytest
from command_line import ifqa_here
from scored_experiments import write

EXPERIMENT = """benchmark = "my_benchmark:Teams"
split = "all"
corpus = "teams"
measures = ["my_measure:ONE_WORD"]
retriever = { name = "my_retriever:Words", k = 2 }
reader = { name = "my_reader:LastWord" }
"""
PASSAGES = [
    "team0 has captain0.",
    "team0 plays in town0.",
    "team1 has captain1.",
    "team2 plays in town2.",
]


def test_all_four_plugins_go_through_a_run(here):
    """For team0, p0 and p1 share one word with a question. p0 comes first, so the answer is
    captain0; and so on.
    """
    for path in Path(__file__).parents[1].glob("outside/my_*.py"):
        shutil.copy(path, here)
    write("experiments/mine.toml", EXPERIMENT)
    write("indexes/teams.toml", '[[passages.sources]]\nformat = "passages"\npath = "teams.jsonl"\n')
    lines = [json.dumps({"id": f"p{n}", "contents": text}) for n, text in enumerate(PASSAGES)]
    write("teams.jsonl", "\n".join(lines) + "\n")
    done = ifqa_here("run", "mine", "--json", folder=here)
    assert done.returncode == 0, done.stderr
    rows = [
        json.loads(line)
        for line in Path("experiments/mine/score/per_question.jsonl").read_text().splitlines()
    ]
    assert [row["answer"] for row in rows] == [
        "captain0",
        "captain0",
        "captain1",
        "captain1",
        "town2",
        "town2",
    ]
    scores = json.loads(done.stdout)["scores"]
    assert {name: score["value"] for name, score in scores["measures"].items()} == {
        "accuracy": 50.0,
        "one word": 100.0,
    }
    assert scores["subsets"]["captains"]["measures"]["accuracy"]["value"] == pytest.approx(200 / 3)
    assert scores["macro"]["measures"]["accuracy"]["value"] == 50.0
