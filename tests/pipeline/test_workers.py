"""Retrieving and reading by worker processes: the same bytes and records as by one process, and
resumption.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from outside_plugins import PLUGINS, WORDS, corpus, experiment, outside, question
from scored_experiments import benchmark

from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.asking import add_counts
from ifqa.pipeline.run import Run
from ifqa.protocols import Retriever
from ifqa.storage.artifacts import read_manifest
from ifqa.workers.pool import Workers

pytestmark = pytest.mark.usefixtures("five")

TWO = Workers(2)
MORE = '''
class Slow(Words):
    """Stops at the fifth question while there is a file "stop", and reports what it searched; its first chunk is slow."""
    searched = 0
    def search(self, questions, k):
        if Path("stop").exists() and questions[0].id.endswith("/4"):
            raise KeyboardInterrupt
        time.sleep(0.2 * questions[0].id.endswith("/0"))
        self.searched += len(questions)
        return [
            SearchResult(hits, [Passage("all", "", "of them"), Passage(f"made/{question.id}", "", question.text)])
            for question, hits in zip(questions, super().search(questions, k), strict=True)
        ]
    def usage(self): return {"took": (self.searched, 1), "retry": 0}
class Pairs(Last):
    """Reads two questions at a time, and has a label."""
    chunk = 2
    label = "a toy"
'''
SLOW = WORDS | {"name": "outside_of_stages:Slow"}


@pytest.fixture
def eleven_questions(monkeypatch):
    monkeypatch.setattr(Retriever, "chunk", 2)
    benchmark(*map(question, range(11)))
    outside("import time\n", PLUGINS, MORE)
    corpus('retriever = "outside_of_stages:Slow"')


def files_and_facts(name, stage):
    folder = Path("experiments", name, stage)
    manifest = read_manifest(folder)
    assert manifest is not None
    record: Any = manifest["record"]
    facts = {
        key: record[key]
        for key in ("questions", "hits", "label", "took", "trained_on_them")
        if key in record
    }
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"
    }, facts


def test_two_processes_write_the_same_as_one(eleven_questions, capfd):
    tables = {
        "corpus": "few",
        "retriever": SLOW,
        "reader": {"name": "outside_of_stages:Pairs", "passages": 2},
    }
    stages.run(Run(experiment("one", **tables)))
    alone = capfd.readouterr().err
    stages.run(Run(experiment("two", **tables)), None, TWO)
    parallel = capfd.readouterr().err
    assert alone.count("a toy") == parallel.count("a toy") == 1
    files, facts = files_and_facts("two", "retrieve")
    assert files == files_and_facts("one", "retrieve")[0]
    assert sorted(files) == ["passages.jsonl", "run.trec"]
    assert len(files["passages.jsonl"].splitlines()) == 1 + 11
    # 1 of each process
    assert facts == {"questions": 11, "hits": 33, "took": [11, 2], "trained_on_them": False}
    assert files_and_facts("two", "read") == files_and_facts("one", "read")
    assert files_and_facts("two", "read")[1] == {
        "questions": 11,
        "label": "a toy",
        "trained_on_them": False,
    }
    scores = [
        Path("experiments", name, "score/scores.json").read_bytes() for name in ("one", "two")
    ]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("workers", "missed"), [(Workers(1), False), (Workers(1), True), (TWO, False)]
)
def test_an_interrupted_retrieval_resumes_after_its_last_whole_chunk(
    eleven_questions, capsys, workers, missed
):
    whole, mine = (experiment(name, corpus="few", retriever=SLOW) for name in ("whole", "mine"))
    stages.prepare(Run(whole))
    stages.retrieve(Run(whole))
    Path("stop").touch()
    with pytest.raises(KeyboardInterrupt):
        stages.retrieve(Run(mine))
    assert not Path("experiments/mine/retrieve").exists()
    Path("stop").unlink()
    log = Path("experiments/mine/.retrieve.partial/chunks.jsonl")
    first, second = log.read_text().splitlines()
    if missed:  # a model did not answer in the second chunk
        log.write_text(f"{first}\n{json.dumps(json.loads(second) | {'usage': {'retry': 1}})}\n")
    stages.retrieve(Run(mine), None, workers)
    assert (
        f"experiments/mine/retrieve: resuming after {2 if missed else 4} of 11 questions"
        in capsys.readouterr().err
    )
    files, facts = files_and_facts("mine", "retrieve")
    assert files == files_and_facts("whole", "retrieve")[0]
    assert facts["took"][0] == 11


def test_a_plugin_with_a_language_model_runs_in_this_process_alone(eleven_questions, capsys):
    asks = (
        'class Asks(Last):\n    "Asks."\n    def __init__(self, llm) -> None:\n        '
        'Path("opened").touch(exist_ok=False)\n'
    )
    outside(PLUGINS, asks)
    tables = {
        "reader": {"name": "outside_of_stages:Asks"},
        "llm": {"model": "m", "base_url": "http://127.0.0.1:9/v1"},
    }
    stages.read(Run(experiment(**tables)), None, TWO)
    assert (
        "reader 'outside_of_stages:Asks' asks a language model, so this process alone"
        in capsys.readouterr().err
    )
    assert files_and_facts("mine", "read")[1]["questions"] == 11


@pytest.mark.parametrize("settings", [{"engine": "rye"}, {"number": -1}, {"number": True}])
def test_settings_of_workers_that_make_no_sense_are_refused(settings):
    with pytest.raises(IfqaError, match=r"unknown engine 'rye'|wanted a whole"):
        Workers(**settings)


def test_counts_of_processes_are_added():
    first = {
        "retry": 1,
        "took": (3, 4),
        "spent": {"calls": 2, "cost": 0.5},
        "server": "s",
        "cut": 1,
    }
    second = {"retry": 2, "took": [1, 1], "spent": {"calls": 1, "cost": None}, "server": "s"}
    both = {
        "retry": 3,
        "took": [4, 5],
        "spent": {"calls": 3, "cost": None},
        "server": "s",
        "cut": 1,
    }
    assert add_counts(first, second) == both
    assert add_counts(first, first, -1) == {
        "retry": 0,
        "took": [0, 0],
        "spent": {"calls": 0, "cost": 0.0},
        "server": "s",
        "cut": 0,
    }
