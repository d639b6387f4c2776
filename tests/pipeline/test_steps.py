"""The steps of a retriever that takes several are recorded with its run, and told with an answer."""

import json
from itertools import islice
from pathlib import Path

import pytest
from openai_server import Reply, error, serving

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.corpus.store import PassageStore
from ifqa.formats.runs import write_run
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import answers_of
from ifqa.pipeline.system import System
from ifqa.plugins import open_benchmark
from ifqa.records import Hit
from ifqa.storage.files import read_json

QUESTIONS = open_benchmark("sample").questions("dev")[:2]
MINE = """
benchmark = "sample"
split = "dev"
corpus = "sample"
limit = 2
[retriever]
name = "steps"
steps = 3
[[retriever.parts]]
name = "run"
path = "given.trec"
[reader]
name = "predictions"
path = "answers.jsonl"
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    """The sample's passages, and a part that finds the same three of them whatever it is asked."""
    monkeypatch.chdir(tmp_path)
    stages.build_passages(load_corpus("sample"))
    ids = [passage.id for passage in islice(PassageStore(Path("indexes/sample/passages")), 3)]
    write_run(
        Path("given.trec"), {one.id: [Hit(name, 9.0 - n) for n, name in enumerate(ids)] for one in QUESTIONS}, "x"
    )
    Path("answers.jsonl").write_text(
        "".join(json.dumps({"question_id": one.id, "answer": "x"}) + "\n" for one in QUESTIONS)
    )
    Path("experiments").mkdir()
    Path("experiments/mine.toml").write_text(MINE)
    return load_experiment("mine"), ids


def test_every_step_of_a_run_is_recorded_for_each_question(experiment):
    mine, ids = experiment
    folder = stages.retrieve(Run(mine))
    rows = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert [row["question_id"] for row in rows] == [one.id for one in QUESTIONS]
    for row, question in zip(rows, QUESTIONS, strict=True):
        first, second = row["steps"]  # the second finds nothing new, and ends it
        assert first == {"query": question.text, "passage_ids": ids}
        assert second["query"].startswith(f"{question.text} ")
        assert second["passage_ids"] == []


def test_an_answer_tells_the_steps_to_its_passages(experiment):
    mine, ids = experiment
    with System(Run(mine)) as system:
        answers = system.answer(QUESTIONS)
    assert [one.steps[0].query for one in answers] == [one.text for one in QUESTIONS]
    assert [one.steps[0].passage_ids for one in answers] == [tuple(ids)] * 2
    stages.run(Run(mine))
    assert [one.steps for one in answers_of(mine, Run(mine).questions)] == [one.steps for one in answers]


def test_a_models_queries_are_recorded_and_only_failed_ones_asked_again(experiment, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    first, second = (one.text for one in QUESTIONS)
    works = False

    def plan(prompt, time, body):
        if second in prompt and not works:
            return error(500, "no")
        return Reply(text="What is so: nothing.\nSearch: who else" if first in prompt else "I do not know.")

    with serving(plan) as server:
        Path("experiments/asks.toml").write_text(
            MINE.replace('"steps"', '"steps-llm"')
            + f'[llm]\nmodel = "gpt-4o-mini"\nbase_url = "{server.url}"\nretries = 0\n'
        )
        folder = stages.retrieve(Run(load_experiment("asks")))
        record = read_json(folder / "manifest.json")["record"]
        assert (record["retry"], record["unparsed"], server.requests) == (1, 0, 2)
        works = True
        stages.retrieve(Run(load_experiment("asks")))
        assert server.requests == 3
    record = read_json(folder / "manifest.json")["record"]
    assert (record["retry"], record["unparsed"], record["spent"]["calls"]) == (0, 1, 1)
    assert "for 1 of them a completion could not be parsed" in capsys.readouterr().err
    rows = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert [[step["query"] for step in row["steps"]] for row in rows] == [[first, "who else"], [second]]
