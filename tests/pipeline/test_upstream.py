"""A stage checks its inputs against its questions: files of earlier stages and other systems, and
weights of a family.
"""

import json
from contextlib import nullcontext

import pytest
from prediction_files import write_predictions
from scored_experiments import write

from ifqa.config.corpus import CorpusConfig
from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.corpus.sources import parse_source
from ifqa.errors import IfqaError
from ifqa.formats.runs import write_run
from ifqa.pipeline import stages
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.opening import refuse_other_families
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import (
    prediction_line,
    predictions_of,
    rankings_of,
    read_predictions,
)
from ifqa.pipeline.system import System
from ifqa.plugins import Plugins, open_benchmark
from ifqa.records import Calculation, Explanation, Hit, Prediction, Question, Term
from ifqa.scoring.stored_scores import read_scores
from ifqa.storage.files import write_jsonl
from ifqa.storage.resources import list_resources

pytestmark = pytest.mark.usefixtures("here")

QUESTIONS = [
    Question("ifqa/full-dev/1", "If?", ("a",)),
    Question("ifqa/full-dev/2", "If so?", ("b",)),
]


@pytest.fixture
def experiment():
    plugins = {"retriever": {"name": "gold"}, "reader": {"name": "predictions", "path": "p"}}
    return parse_experiment(
        "mine", {"benchmark": "ifqa", "split": "full-dev", **plugins}, "mine.toml"
    )


def write_rankings(experiment, *questions):
    path = experiment.folder / "retrieve" / "run.trec"
    write_run(path, {question: [Hit("p", 1.0)] for question in questions}, "t")


def test_a_missing_ranking_is_empty(experiment):
    write_rankings(experiment, "ifqa/full-dev/2")
    assert list(rankings_of(experiment, QUESTIONS)) == [[], [Hit("p", 1.0)]]


def test_a_ranking_of_a_foreign_question_is_refused(experiment):
    write_rankings(experiment, "ifqa/few-dev/9")
    with pytest.raises(IfqaError, match="ifqa/few-dev/9 is not in ifqa full-dev"):
        list(rankings_of(experiment, QUESTIONS))


def test_rankings_in_another_order_are_refused(experiment):
    write_rankings(experiment, *(question.id for question in reversed(QUESTIONS)))
    with pytest.raises(
        IfqaError,
        match="full-dev/1 is not in the order of ifqa full-dev; run the stage 'retrieve' again",
    ):
        list(rankings_of(experiment, QUESTIONS))


def write_answers(experiment, *questions):
    path = experiment.folder / "read" / "predictions.jsonl"
    write_jsonl(path, [{"question_id": question, "answer": "b"} for question in questions])
    return path


def test_a_missing_prediction_fails(experiment):
    write_answers(experiment, "ifqa/full-dev/2")
    predictions = list(predictions_of(experiment, QUESTIONS))
    assert [prediction.failed for prediction in predictions] == [True, False]
    assert predictions[0].error == "no prediction"


def test_a_second_prediction_of_a_question_is_refused(experiment):
    write_answers(experiment, "ifqa/full-dev/2", "ifqa/full-dev/2")
    with pytest.raises(
        IfqaError, match=r"predictions\.jsonl:2: question ifqa/full-dev/2 is answered twice"
    ):
        list(predictions_of(experiment, QUESTIONS))
    path = write_answers(experiment, "q/1", "q/2", "q/1")
    with pytest.raises(IfqaError, match=r"predictions\.jsonl:3: question q/1 is answered twice"):
        read_predictions(path)


def test_a_prediction_of_a_foreign_question_is_refused(experiment):
    write_answers(experiment, "ifqa/full-train/2")
    with pytest.raises(IfqaError, match="ifqa/full-train/2 is not in ifqa full-dev"):
        list(predictions_of(experiment, QUESTIONS))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"answer": None}, "answer: .* found None"),
        ({"more": 1}, "unknown key 'more'; wanted question_id, answer"),
        ({"passage_ids": [1]}, "passage_ids.0: "),
        ({"score": "x"}, "score: .* valid number"),
        ({"confidence": 1.5}, "confidence: wanted 0 to 1, or none; found 1.5"),
        ({"answerable": -0.5}, "answerable: wanted 0 to 1, or none; found -0.5"),
        (
            {"how": {"passage_id": "p", "sentence": [0, 9], "span": [3], "calculation": None}},
            r"how\.span",
        ),
    ],
)
def test_a_line_that_is_no_prediction_is_named(experiment, line, complaint):
    path = experiment.folder / "read" / "predictions.jsonl"
    first, second = ({"question_id": question.id, "answer": "b"} for question in QUESTIONS)
    write_jsonl(path, [first, second | line])
    with pytest.raises(IfqaError, match=rf"predictions\.jsonl:2: .*{complaint}"):
        list(predictions_of(experiment, QUESTIONS))


@pytest.mark.parametrize(
    "terms", [(), (Term("1951", "1951", "passage", 3, 7), Term("later", "1", "question", 2, 7))]
)
def test_a_prediction_is_read_as_it_was_written(experiment, terms):
    calculation = Calculation("1952", "plus", terms) if terms else None
    how = Explanation("p", (0, 9), (3, 7), calculation)
    whole = Prediction(
        "ifqa/full-dev/1",
        "a",
        "So: a.",
        ("p", "q"),
        "",
        -0.5,
        (2.0, 1),
        "b",
        how=how,
        confidence=0.25,
    )
    abstention = Prediction("ifqa/full-dev/2", "", confidence=0.0, candidate="c")
    path = experiment.folder / "read" / "predictions.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(prediction_line(whole) + prediction_line(abstention))
    assert list(predictions_of(experiment, QUESTIONS)) == [whole, abstention]
    assert set(json.loads(prediction_line(Prediction("q", "a")))) == {  # none that older files lack
        "question_id",
        "answer",
        "completion",
        "passage_ids",
        "error",
        "score",
        "passage_scores",
        "factual",
    }


@pytest.mark.parametrize(
    ("tables", "split", "plugin"),
    [
        ({"reader": {"name": "extractive"}}, "few-dev", "reader 'extractive'"),
        ({"reader": {"name": "extractive"}}, "full-dev", ""),
        (
            {
                "retriever": {
                    "name": "fusion",
                    "parts": [{"name": "rerank", "parts": [{"name": "gold"}]}],
                }
            },
            "few-test",
            "'rerank'",
        ),
        (
            {
                "reader": {"name": "llm", "demos": "ifqa/full-train", "shots": 2},
                "llm": {"model": "m"},
            },
            "few-dev",
            "reader 'llm'",
        ),
        ({"reader": {"name": "llm", "demos": "sample"}, "llm": {"model": "m"}}, "few-dev", ""),
    ],
)
def test_weights_of_the_other_family_are_refused_before_any_build(tables, split, plugin):
    experiment = parse_experiment(
        "mine", {"benchmark": "ifqa", "split": split, **tables}, "mine.toml"
    )
    complaint = (
        f"{plugin} (was trained on|shows demonstrations of) ifqa/full and "
        "may not be tested on ifqa/few"
    )
    with pytest.raises(IfqaError, match=complaint) if plugin else nullcontext():
        refuse_other_families(Run(experiment))
    if plugin == "reader 'extractive'":
        with pytest.raises(IfqaError, match=complaint):
            _ = System(Run(experiment)).reader


def test_every_tracked_experiment_may_be_tested_on_its_split():
    experiments = [load_experiment(name) for name in list_resources("experiments", ".toml")]
    # Checkpoints are yet to be trained
    here = [experiment for experiment in experiments if not experiment.reader_setting("checkpoint")]
    assert here
    for experiment in here:
        refuse_other_families(Run(experiment))


def test_a_dense_model_of_the_other_family_is_refused_before_indexing():
    write("model/config.json", "{}")
    write("model/manifest.json", '{"family": "ifqa/full"}')
    gold = '[[passages.sources]]\nformat = "gold"\nbenchmark = "ifqa"\nsplits = ["few-train"]\n'
    write("indexes/few.toml", f'{gold}[index.dense]\nretriever = "dense"\nmodel = "model"\n')
    tables = {
        "benchmark": "ifqa",
        "split": "few-dev",
        "corpus": "few",
        "retriever": {"name": "dense"},
    }
    with pytest.raises(IfqaError, match="retriever 'dense' was trained on ifqa/full and may not"):
        refuse_other_families(Run(parse_experiment("mine", tables, "mine.toml")))


@pytest.mark.parametrize(
    ("benchmark", "split", "complaint"),
    [
        ("sampel", "dev", "unknown benchmark 'sampel'; did you mean 'sample'"),
        ("sample", "dve", "unknown split of sample 'dve'; did you mean 'dev'"),
        ("sample", "", r"'splits': wanted at least one split of sample \(train, dev, hard\)$"),
    ],
)
def test_gold_passages_of_questions_that_are_not_there_are_refused(benchmark, split, complaint):
    section = {"format": "gold", "benchmark": benchmark, "splits": [split] if split else []}
    source = parse_source(section, "mine", Plugins())
    with pytest.raises(IfqaError, match=complaint):
        _ = CorpusBuild(CorpusConfig("mine", (source,), {})).sources


def write_experiment(questions, split, benchmark="file"):
    return write_predictions(
        "mine", {question.id: question.answers[0] for question in questions}, benchmark, split
    )


def test_answers_to_one_file_of_questions_are_not_scored_on_another():
    for name, text in {"a": "If so, who?", "b": "If not, who?"}.items():
        write(f"{name}/q.csv", f'question,answers\n"{text}",Ada\n')
    [question] = open_benchmark("file").questions("a/q.csv")
    assert (
        read_scores(stages.run(Run(write_experiment([question], "a/q.csv"))))["measures"]["EM"][
            "value"
        ]
        == 100
    )
    message = f"mine.jsonl has 1 question, of 1, that file b/q.csv does not have: {question.id};"
    with pytest.raises(IfqaError, match=message):
        stages.run(Run(write_experiment([question], "b/q.csv")))
    train, dev = (open_benchmark("sample").questions(split) for split in ("train", "dev"))
    message = r"mine\.jsonl has 4 questions, of 87, .*: sample/train/0, \S+, sample/train/2, …;"
    with pytest.raises(IfqaError, match=message):
        stages.read(Run(write_experiment([*dev, *train[:4]], "dev", "sample")))


def test_a_ranking_of_a_question_that_the_split_lacks_is_refused():
    write("run.trec", "sample/dev/0 Q0 p 1 1.0 t\nsample/dev/999 Q0 p 1 1.0 t\n")
    run = '[retriever]\nname = "run"\npath = "run.trec"\nk = 1\n'
    write("experiments/mine.toml", f'benchmark = "sample"\nsplit = "dev"\ncorpus = "sample"\n{run}')
    message = r"run\.trec has 1 question, of 2, .*: sample/dev/999; wanted ids such as sample/dev/0"
    with pytest.raises(IfqaError, match=message):
        stages.retrieve(Run(load_experiment("mine")))
