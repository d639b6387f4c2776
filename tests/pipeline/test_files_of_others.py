"""Answers and rankings of a file belong to the experiment's questions, or are refused."""

import json

import pytest
from scored_experiments import write

from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import open_benchmark
from ifqa.scoring.score_files import read_scores

pytestmark = pytest.mark.usefixtures("here")


def answering(questions, split, benchmark="file"):
    lines = [json.dumps({"question_id": one.id, "answer": one.answers[0]}) for one in questions]
    write("said.jsonl", "\n".join(lines))
    reader = '[reader]\nname = "predictions"\npath = "said.jsonl"\n'
    write("experiments/mine.toml", f'benchmark = "{benchmark}"\nsplit = "{split}"\n{reader}')
    return load_experiment("mine")


def test_answers_to_one_file_of_questions_are_not_scored_on_another():
    for name, text in {"a": "If so, who?", "b": "If not, who?"}.items():
        write(f"{name}/q.csv", f'question,answers\n"{text}",Ada\n')
    [one] = open_benchmark("file").questions("a/q.csv")
    assert read_scores(stages.run(Run(answering([one], "a/q.csv"))))["measures"]["EM"]["value"] == 100
    with pytest.raises(IfqaError, match=f"said.jsonl has 1 question, of 1, that file b/q.csv does not have: {one.id};"):
        stages.run(Run(answering([one], "b/q.csv")))
    train, dev = (open_benchmark("sample").questions(split) for split in ("train", "dev"))
    with pytest.raises(
        IfqaError, match=r"said\.jsonl has 4 questions, of 87, .*: sample/train/0, \S+, sample/train/2, …;"
    ):
        stages.read(Run(answering([*dev, *train[:4]], "dev", "sample")))


def test_a_ranking_of_a_question_that_the_split_lacks_is_refused():
    write("run.trec", "sample/dev/0 Q0 p 1 1.0 t\nsample/dev/999 Q0 p 1 1.0 t\n")
    write(
        "experiments/mine.toml",
        'benchmark = "sample"\nsplit = "dev"\ncorpus = "sample"\n[retriever]\nname = "run"\npath = "run.trec"\nk = 1\n',
    )
    with pytest.raises(
        IfqaError, match=r"run\.trec has 1 question, of 2, .*: sample/dev/999; wanted ids as sample/dev/0"
    ):
        stages.retrieve(Run(load_experiment("mine")))
