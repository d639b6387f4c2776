"""The steps of a retriever that takes several are recorded with its run, and told with an answer."""

import json
from itertools import islice
from pathlib import Path

import pytest

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.corpus.passage_store import PassageStore
from ifqa.formats.runs import write_run
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import answers_of
from ifqa.pipeline.system import System
from ifqa.plugins import open_benchmark
from ifqa.records import Hit
from ifqa.storage.files import write_jsonl

QUESTIONS = open_benchmark("sample").questions("dev")[:2]
MINE = """limit = 2
benchmark = "sample"
split = "dev"
corpus = "sample"
reader = { name = "predictions", path = "answers.jsonl" }
retriever = { name = "steps", steps = 3, parts = [{ name = "run", path = "given.trec" }] }
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """The sample's passages, and a part that finds the same three of them whatever it is asked."""
    monkeypatch.chdir(tmp_path)
    stages.build_passages(load_corpus("sample"))
    ids = [passage.id for passage in islice(PassageStore(Path("indexes/sample/passages")), 3)]
    hits = [Hit(name, 9.0 - n) for n, name in enumerate(ids)]
    write_run(Path("given.trec"), {question.id: hits for question in QUESTIONS}, "x")
    write_jsonl(Path("answers.jsonl"), [{"question_id": question.id, "answer": "x"} for question in QUESTIONS])
    Path("experiments").mkdir()
    Path("experiments/mine.toml").write_text(MINE)
    return load_experiment("mine"), ids


def test_every_step_of_a_run_is_recorded_for_each_question_and_told_with_its_answer(experiment):
    mine, ids = experiment
    folder = stages.retrieve(Run(mine))
    rows = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert [row["question_id"] for row in rows] == [question.id for question in QUESTIONS]
    for row, question in zip(rows, QUESTIONS, strict=True):
        first, second = row["steps"]  # the second finds nothing new, and ends it
        assert first == {"query": question.text, "passage_ids": ids}
        assert second["query"].startswith(f"{question.text} ")
        assert second["passage_ids"] == []
    with System(Run(mine)) as system:
        answers = system.answer(QUESTIONS)
    assert [answer.steps[0].query for answer in answers] == [question.text for question in QUESTIONS]
    assert [answer.steps[0].passage_ids for answer in answers] == [tuple(ids)] * 2
    stages.run(Run(mine))
    assert [answer.steps for answer in answers_of(mine, Run(mine).questions)] == [answer.steps for answer in answers]
