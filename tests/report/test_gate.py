"""The regression gate: fails on a significant loss only, and refuses scores of other questions,
labels or passages.
"""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from prediction_files import run_answers, write_predictions
from scored_experiments import write
from typer.testing import CliRunner

from ifqa.cli.app import app
from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import open_benchmark
from ifqa.report.gate import check_gate, refuse_changes
from ifqa.storage.files import sha256

SEARCHES = 'benchmark = "sample"\nsplit = "dev"\nlimit = 12\n[retriever]\nname = "gold"\nk = 5\n'


@pytest.fixture
def good():
    return run_answers("good", range(60), wrong="[bold]never[/bold]")


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *arguments, "--fail-if-worse"])


@pytest.fixture
def worse(good):
    return run_answers("worse", range(40), wrong="[bold]never[/bold]")


def test_a_significant_loss_fails(good, worse):
    assert check_gate(good, worse).failed == ["EM", "F1"]
    result = run("good", "worse", "--show", "1")
    assert result.exit_code == 1
    assert "EM, F1 got worse on 20 questions" in result.output


def test_the_gate_lists_the_questions_that_got_worse(good, worse):
    gate = check_gate(good, worse)
    assert [question.id for question, _, _ in gate.measures[0].worse] == [
        f"sample/dev/{n}" for n in range(40, 60)
    ]
    result = run("good", "worse", "--show", "1")
    assert "EM 100 -> 0, F1 100 -> 0" in result.output
    assert "-> [bold]never[/bold]" in result.output
    assert "and 19 more" in result.output


def test_the_gate_lists_the_pairs_that_got_worse(here):
    questions = open_benchmark("obedience").questions("sample-dev")
    for name, right in (("good", 60), ("worse", 40)):
        answers = {
            question.id: question.answers[0] if number % 2 == 0 and number < 2 * right else "never"
            for number, question in enumerate(questions)
        }
        stages.run(Run(write_predictions(name, answers, "obedience", "sample-dev")))
    gate = check_gate(load_experiment("good"), load_experiment("worse"))
    assert gate.measures[0].difference.measure == "obeyed"
    assert gate.measures[0].difference.lost == 20
    assert [question.id for question, _, _ in gate.measures[0].worse] == [
        question.id for question in questions[80:120:2]
    ]
    result = run("good", "worse", "--show", "1")
    assert "obeyed, real_world, right got worse on 20 pairs, A -> B:" in result.output
    assert "obeyed 100 -> 0" in result.output


def test_a_significant_gain_passes(good, worse):
    assert check_gate(worse, good).failed == []
    assert run("worse", "good").exit_code == 0


def test_a_loss_within_chance_passes(good):
    other = run_answers("other", [*range(57), *range(60, 62)])
    gate = check_gate(good, other, "EM")
    assert (gate.failed, gate.measures[0].difference.lost, len(gate.measures[0].worse)) == (
        [],
        3,
        3,
    )
    content = json.loads(run("good", "other", "--json", "--measure", "EM").output)
    assert (content["failed"], [row["measure"] for row in content["measures"]]) == ([], ["EM"])
    assert content["measures"][0]["p"] > 0.05
    assert 5 < content["noticed"] < 20


def test_a_measure_is_corrected_for_the_others(good):
    other = run_answers("other", range(55))  # one-sided p of 5 losses without a win is 1/32 = .031
    assert check_gate(good, other, "EM").failed == ["EM"]
    assert check_gate(good, other).failed == []


def test_the_gate_says_which_loss_it_notices(good):
    result = run("good", "good")
    assert (
        "a loss of 6 answers (7.2%) fails the gate 4 times in 5; one fewer does so less often"
        in result.output
    )


def test_few_units_are_told_as_the_reason_why_no_loss_is_noticed(here):
    rows = [
        {"question": f"Who {n} of {m}?", "answers": "Ada", "passages": f"Ada wrote {m}."}
        for m in range(3)
        for n in range(31)
    ]
    write("mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    answers = {question.id: "Ada" for question in open_benchmark("file").questions("mine.jsonl")}
    for name in ("old", "new"):
        stages.run(Run(write_predictions(name, answers, "file", "mine.jsonl")))
    output = run("old", "new").output.replace("\n", " ")
    assert "with 3 paragraphs no loss fails the gate 4 times in 5" in output
    assert "few right answers" not in output


def test_few_right_answers_are_told_as_the_reason_why_no_loss_is_noticed(here):
    run_answers("few", range(2))
    assert "With so few right answers no loss" in run("few", "few").output


def test_a_measure_that_the_new_system_lacks_is_refused(here):
    write("experiments/reads.toml", SEARCHES + '[reader]\nname = "extractive"\n')
    write("experiments/searches.toml", SEARCHES)
    for name in ("reads", "searches"):
        stages.run(Run(load_experiment(name)))
    with pytest.raises(IfqaError, match="searches has no scores in EM, F1, which reads has"):
        check_gate(load_experiment("reads"), load_experiment("searches"))
    other = run("searches", "reads")
    assert other.exit_code == 0
    assert "Not tested, because A has no such scores: EM, F1" in other.output


def test_the_headline_of_retrieval_is_tested_beside_the_answers(here):
    write("experiments/reads.toml", SEARCHES + '[reader]\nname = "extractive"\n')
    stages.run(Run(load_experiment("reads")))
    gate = check_gate(load_experiment("reads"), load_experiment("reads"))
    assert [measure.difference.measure for measure in gate.measures] == ["EM", "F1", "gold_any@1"]


def test_a_stored_copy_without_a_row_is_refused(good):
    shutil.copytree("experiments/good/score", "stored")
    path = Path("stored/per_question.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    manifest = json.loads(Path("stored/manifest.json").read_text())
    facts = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    manifest["record"]["files"]["per_question.jsonl"] = facts
    Path("stored/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        IfqaError, match=r"stored has no row of sample/dev/0 \(1 question missing\)"
    ):
        check_gate(Path("stored"), good)


def test_a_copy_of_the_scores_is_compared(good):
    shutil.copytree("experiments/good/score", "stored")
    worse = run_answers("worse", range(40))
    assert check_gate(Path("stored"), worse).failed == ["EM", "F1"]
    assert run("./stored", "good").exit_code == 0


SET_MEASURES = """
from ifqa.protocols import SetMeasure

def share(holds):
    return lambda _, predictions: sum(map(holds, predictions)) / len(predictions)

SURE = SetMeasure("sure", share(lambda prediction: (prediction.confidence or 0) > 0.5))
FAILED = SetMeasure("errors", share(lambda prediction: prediction.failed), best="low")
"""


@pytest.mark.parametrize(("name", "value"), [("sure", 80), ("errors", 20)])
def test_a_copy_keeps_its_scores_in_measures_of_sets(importable, name, value):
    write("my_sets.py", SET_MEASURES)
    rows: list[dict[str, object]] = [{"answer": "x", "confidence": 0.9} for _ in range(8)]
    rows += [{"answer": "", "error": "timeout"} for _ in range(2)]
    write("q.csv", "question,answers\n" + "".join(f'"If so, who was {n}?",x\n' for n in range(10)))
    ids = [question.id for question in open_benchmark("file").questions("q.csv")]
    measures = ", ".join(f'"my_sets:{key}"' for key in ("SURE", "FAILED"))
    write_predictions("sets", {}, "file", "q.csv", f"measures = [{measures}]")
    lines = [
        json.dumps({"question_id": key} | row) + "\n" for key, row in zip(ids, rows, strict=True)
    ]
    write("sets.jsonl", "".join(lines))
    stages.run(Run(load_experiment("sets")))
    shutil.copytree("experiments/sets/score", "stored")
    gate = check_gate(Path("stored"), load_experiment("sets"), name)
    assert gate.measures[0].difference.first == gate.measures[0].difference.second == value


def test_a_changed_copy_of_the_scores_is_refused(good):
    shutil.copytree("experiments/good/score", "stored")
    write(
        "stored/per_question.jsonl",
        Path("stored/per_question.jsonl").read_text().replace('"EM": 1.0', '"EM": 0.5'),
    )
    with pytest.raises(
        IfqaError,
        match=r"stored: per_question\.jsonl is missing or was changed; copy the score folder again",
    ):
        check_gate(Path("stored"), good)


def test_a_folder_without_scores_is_refused(good):
    with pytest.raises(
        IfqaError, match="empty has no scores; wanted a copy of experiments/NAME/score"
    ):
        check_gate(Path("empty"), good)


def questions_file(answers):
    write(
        "q.csv",
        "question,answers\n"
        + "".join(f'"If so, who was {name}?",{answer}\n' for name, answer in answers.items()),
    )
    ids = [question.id for question in open_benchmark("file").questions("q.csv")]
    stages.run(Run(write_predictions("mine", dict.fromkeys(ids, "x"), "file", "q.csv")))
    return load_experiment("mine")


@pytest.fixture
def stored():
    questions_file({"a": "x", "b": "y"})
    shutil.copytree("experiments/mine/score", "stored")
    return Path("stored")


def test_changed_labels_are_refused(stored):
    labels = questions_file({"a": "x", "b": "z"})
    with pytest.raises(IfqaError, match="the texts or labels of their questions changed"):
        check_gate(stored, labels)


def test_other_questions_are_refused(stored):
    more = questions_file({"a": "x", "b": "y", "c": "z"})
    with pytest.raises(IfqaError, match="1 questions are not in both"):
        check_gate(stored, more)


def made_from(name, inputs):
    return SimpleNamespace(name=name, inputs=inputs)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("passages", "the passages of the corpus changed"),
        ("version", "different versions of the scorer"),
    ],
)
def test_scores_of_other_inputs_are_refused_with_the_reason(key, reason):
    with pytest.raises(IfqaError, match=reason):
        refuse_changes(made_from("a", {key: "1"}), made_from("b", {key: "2"}))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_scores_without_a_corpus_are_refused_with_that_reason(order):
    both = made_from("gold", {}), made_from("bm25", {"passages": "1"})
    with pytest.raises(IfqaError, match="only bm25 has a corpus; compare experiments that both"):
        refuse_changes(*(both[number] for number in order))


def measured_by(measure, version):
    return made_from("n", {"measured_by": {measure: version}})


def test_a_further_measure_is_compared():
    refuse_changes(measured_by("m", "1"), measured_by("o", "1"))


def test_another_version_of_ones_own_measure_is_refused():
    with pytest.raises(IfqaError, match="measured by another m; run both again"):
        refuse_changes(measured_by("m", "1"), measured_by("m", "2"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("good", "good", "good"), "found 3 experiments"),
        (("good", "good", "--common"), "found --common"),
        (("good", "nix"), "nix"),
    ],
)
def test_what_the_gate_cannot_test_is_refused(good, arguments, problem):
    result = run(*arguments)
    assert isinstance(result.exception, IfqaError)
    assert problem in str(result.exception)
