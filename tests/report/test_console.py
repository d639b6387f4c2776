"""What the command line prints: texts from outside stay text, and tables fit the screen."""

import json
from io import StringIO
from pathlib import Path

import pytest
from answered import run_answers
from rich.console import Console

from ifqa.pipeline.run import Run
from ifqa.protocols import Measure, Subset
from ifqa.records import Answer, Calculation, How, Passage, Question, Term, parted
from ifqa.report.answers import answer_json, show_answer
from ifqa.report.console import list_json, show_scores
from ifqa.report.sanitize import mark_parts
from ifqa.report.scores import Scores, interval_of, scores_of
from ifqa.scoring.scheme import Declared


def shown(markup):
    console = Console(file=StringIO(), force_terminal=False, highlight=False, width=200)
    console.print(markup)
    return console.file.getvalue().rstrip("\n")


@pytest.mark.parametrize("text", ["[bold red]not markup[/bold red]", "a [/] b", "[link=file:///etc]x[/link]", "plain"])
def test_nothing_in_a_passage_is_taken_as_markup(text):
    assert shown(mark_parts(parted(text, "markup"))) == text


def test_no_control_character_reaches_the_terminal():
    assert "\x1b" not in shown(mark_parts(parted("\x1b[31mred\x1b[0m \x9b31m", "red")))


def test_the_answer_is_marked_where_it_stands_as_words():
    assert mark_parts(parted("Art is in art, not in start.", "art")) == (
        "[bold green]Art[/bold green] is in [bold green]art[/bold green], not in start."
    )
    assert mark_parts(parted("C++ (1985)", "(1985)")) == "C++ [bold green](1985)[/bold green]"


@pytest.mark.parametrize("answer", ["Lovell", "[b]", "[/b]", "red]x", "bold"])
def test_the_answer_is_in_brackets_where_nothing_can_be_styled(answer):
    text = f"then {answer} sat; [i]there[/i]"
    assert shown(mark_parts(parted(text, answer), styled=False)) == f"then [{answer}] sat; [i]there[/i]"


def test_a_computed_answer_is_shown_with_its_numbers(capsys):
    passage = Passage("p", "The mill", "It has 3 floors, [red]3[/red] of them empty.")
    terms = Term("3", "3", "passage", 7, 8), Term("two [b]more", "2", "question", 3, 11)
    how = How("p", (0, 16), (7, 8), Calculation("5", "plus", terms))
    answer = Answer(Question("q", "If two [b]more, how many?"), "5", (passage,), how=how)
    show_answer(answer)
    shown = capsys.readouterr().out
    assert 'Computed  5 = 3 (passage) + 2 (question: "two [b]more")\n' in shown
    assert "It has [3] floors, [red]3[/red]" in shown
    assert answer_json(answer)["how"]["calculation"]["terms"][0]["start"] == 7


def test_few_subsets_have_columns_within_80_characters(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    experiment = run_answers("some", range(20))
    assert show_scores(Run(experiment), experiment.folder / "score") == 0
    head, first, *rows = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert head == "some: sample dev"
    assert first == "measure  all (83) 95% interval numeric (28) other (55) no_overlap (74)"
    assert [row.split()[0] for row in rows] == [
        "EM",
        "F1",
        "contains",
        "83",
        "experiments/some/score/per_question.jsonl",
    ]
    assert rows[3] == "83 questions, 0 failed (a failure scores 0)"


def test_scores_that_lack_a_declared_subset_are_shown_without_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiment = run_answers("some", range(20))
    scores = scores_of(experiment, experiment.folder / "score")
    assert "no_overlap (74)" in str(scores)
    del scores.content["subsets"]["no_overlap"]
    assert "other (55)\n" in str(scores)


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder, kind in (("experiments", "experiments"), ("indexes", "corpora")):
        Path(folder).mkdir()
        Path(folder, "broken.toml").write_text("about = ")
        Path(folder, "lost.toml").symlink_to("nowhere")
        Path(folder, "whole.toml").write_text('about = "all of it"')
        told = list_json()[kind]
        listed = {name: one["about"] if kind == "experiments" else one for name, one in told.items()}
        assert listed["broken"].startswith(f"cannot be read: {tmp_path / folder / 'broken.toml'}: not TOML")
        assert listed["lost"] == "cannot be read: No such file or directory"
        assert listed["whole"] == "all of it"


ODD = "[red]a\x1b[31m"
ODD_SHOWN = "[red]a\N{REPLACEMENT CHARACTER}[31m"


def test_names_of_subsets_and_measures_are_shown_as_they_are():
    mean = {"value": 50.0, "low": 40.0, "high": 60.0}
    part = {"questions": 1, "measures": {ODD: mean}}
    content = {"questions": 1, "n_failed": 0, "measures": {ODD: mean}, "subsets": {ODD: part}}
    content |= {"of": 1, "retry": 0, "not_asked": 0, "groups": {ODD: part}, "macro": {"measures": {ODD: mean}}}
    by = Declared((Measure(ODD, len),), (Subset(ODD, bool),), groups=ODD)
    assert str(Scores(ODD, by, content)).count(ODD_SHOWN) == 6


def test_an_answer_shows_how_sure_it_is_and_an_abstention_its_best_candidate(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    question, passage = Question("q", "If so, who?"), Passage("p", "Kent", "It was Jim Lovell.")
    show_answer(Answer(question, "Jim Lovell", (passage,), confidence=0.711))
    show_answer(Answer(question, "", (passage,), confidence=0.12, candidate="Jim [Lovell]"))
    sure, unsure = [one.splitlines() for one in capsys.readouterr().out.split("\n\n")[:2]]
    assert sure[1] == "Answer    Jim Lovell (confidence 71%)"
    assert unsure[1] == (
        "Answer    no answer found in these passages; the best candidate is Jim [Lovell] (confidence 12%)"
    )
    abstained = answer_json(Answer(question, "", confidence=0.12, candidate="Jim"))
    assert {key: abstained[key] for key in ("answer", "candidate", "confidence", "error")} == {
        "answer": "", "candidate": "Jim", "confidence": 0.12, "error": "",
    }  # fmt: skip


def test_abstentions_are_counted_beside_failures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    experiment = run_answers("some", range(3))
    path = experiment.folder / "score" / "scores.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_abstained": 4}))
    show_scores(Run(experiment), experiment.folder / "score")
    assert "83 questions, 0 failed (a failure scores 0), 4 abstained (0 too)" in capsys.readouterr().out
    assert "83 questions, 0 failed, 4 abstained" in str(scores_of(experiment, experiment.folder / "score"))


@pytest.mark.parametrize(("questions", "shown"), [(9, "too few"), (10, "60.0 - 70.0")])
def test_few_questions_have_no_interval(questions, shown):
    mean = {"value": 66.7, "low": 60.0, "high": 70.0}
    assert interval_of(mean, questions) == shown
    assert interval_of(mean | {"questions": 9}, questions) == "too few"
