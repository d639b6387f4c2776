"""Which questions `ifqa run --show N` shows, and how."""

import pytest
from answered import run_answers

from ifqa.benchmarks.ifqa import Sample
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import answers_of
from ifqa.protocols import Measure, SetMeasure
from ifqa.report.console import choose, kind_of, show_examples
from ifqa.scoring.measures.exact_match import EM
from ifqa.scoring.scheme import Declared

BY = Declared((EM,))


def row(number, score, **more):
    return {"id": f"q/{number}", "subsets": [], "failed": 0.0, "EM": score, **more}


def test_kinds_take_turns_in_the_questions_order():
    rows = [row(0, 0.0), row(1, 1.0), row(2, 1.0), row(3, 0.0, failed=1.0), row(4, 1.0), row(5, 0.0), row(6, 1.0)]
    kinds = {"q/1": "right", "q/0": "wrong", "q/3": "no answer", "q/2": "right", "q/5": "wrong", "q/4": "right"}
    assert list(choose(rows, BY, 6).items()) == list(kinds.items())
    assert list(choose(rows, BY, 2)) == ["q/1", "q/0"]
    assert len(choose(rows, BY, 99)) == 7
    assert choose([], BY, 3) == {}


def test_a_computed_answer_and_an_abstention_have_their_turns():
    rows = [row(0, 1.0), row(1, 0.0), row(2, 1.0), row(3, 0.0, abstained=1.0), row(4, 0.0)]
    kinds = {"q/0": "right", "q/1": "wrong", "q/4": "wrong", "q/3": "abstained", "q/2": "right"}
    assert list(choose(rows, BY, 5, computed=["q/0", "q/4"]).items()) == list(kinds.items())


@pytest.mark.parametrize(
    ("best", "score", "kind"),
    [("high", 1.0, "right"), ("low", 0.0, "right"), ("high", 0.0, "wrong"), ("low", 1.0, "wrong"), ("low", 0.4, "partly right")],
)  # fmt: skip
def test_the_headline_measure_says_which_answers_are_right(best, score, kind):
    measure = Measure("mine", lambda question, prediction: 1.0, headline=True, best=best)
    assert kind_of(row(0, 0.5, mine=score), Declared((measure, EM))) == kind


def test_without_a_measure_of_single_answers_the_first_are_shown():
    whole = SetMeasure("whole", lambda questions, predictions: 1.0)
    assert choose([row(0, 1.0), row(1, 0.0)], Declared((whole,)), 1) == {"q/0": ""}


def test_examples_are_marked_and_wrapped_to_the_terminals_width(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    experiment = run_answers("some", [4], wrong="[red]never")
    show_examples(Run(experiment), experiment.folder / "score", 2)
    right, wrong = capsys.readouterr().out.split("\n\n")[:2]
    questions = Sample().questions("dev")
    assert max(map(len, [*right.splitlines(), *wrong.splitlines()])) <= 60
    assert " ".join(right.split()) == f"Question {questions[4].text} Answer {questions[4].answers[0]} (right)"
    wanted = " / ".join(questions[0].answers)
    assert " ".join(wrong.split()) == f"Question {questions[0].text} Answer [red]never (wrong; wanted: {wanted})"
    assert all(line.startswith(("Question  ", "Answer    ", " " * 10)) for line in right.splitlines())


def test_answers_of_some_questions_are_those_of_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiment = run_answers("some", range(20))
    every = list(answers_of(experiment, Run(experiment).questions))
    chosen = {every[3].question.id: "", every[50].question.id: ""}
    assert list(answers_of(experiment, Run(experiment).questions, chosen)) == [every[3], every[50]]
