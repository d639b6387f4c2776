"""What the command line prints: texts from outside stay text, and tables fit the screen."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from prediction_files import run_answers
from rich.console import Console

from ifqa.benchmarks.ifqa import Sample
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import answers_of
from ifqa.protocols import Measure, SetMeasure, Subset
from ifqa.records import (
    Answer,
    Calculation,
    Evidence,
    Explanation,
    Question,
    Term,
    split_at_answer,
)
from ifqa.report.answers import answer_json, excerpt, mark_parts, show_answer
from ifqa.report.console import choose_examples, list_json, outcome_of, show_examples, show_scores
from ifqa.report.scores import Scores, interval_cell, load_scores
from ifqa.scoring.measures.exact_match import EM
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.stored_scores import ScoreInterval

SCHEME = ScoringScheme((EM,))


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


def render(markup):
    file = StringIO()
    console = Console(file=file, force_terminal=False, highlight=False, width=200)
    console.print(markup)
    return file.getvalue().rstrip("\n")


passage_texts = pytest.mark.parametrize(
    "text", ["[bold red]not markup[/bold red]", "a [/] b", "[link=file:///etc]x[/link]", "plain"]
)


@passage_texts
def test_markup_in_a_passage_is_escaped(text):
    assert render(mark_parts(split_at_answer(text, "markup"))) == text


@passage_texts
def test_an_answer_without_style_is_in_brackets(text):
    parts = split_at_answer(f"then {text} sat", text)
    assert render(mark_parts(parts, styled=False)) == f"then [{text}] sat"


def test_no_answer_is_in_no_brackets():
    assert mark_parts(["cut off", "", " …"], styled=False) == "cut off …"


@passage_texts
def test_control_characters_in_a_passage_are_escaped(text):
    assert "\x1b" not in render(mark_parts(split_at_answer(f"\x1b[31m{text}\x1b[0m \x9b31m", text)))


def test_a_computed_answer_is_shown_with_its_numbers(capsys):
    passage = Evidence("p", "The mill", "It has 3 floors, [red]3[/red] of them empty.")
    terms = Term("3", "3", "passage", 7, 8), Term("two [b]more", "2", "question", 3, 11)
    how = Explanation("p", (0, 16), (7, 8), Calculation("5", "plus", terms))
    answer = Answer(Question("q", "If two [b]more, how many?"), "5", (passage,), how=how)
    show_answer(answer)
    printed = capsys.readouterr().out
    assert 'Computed  5 = 3 (passage) + 2 (question: "two [b]more")\n' in printed
    assert "It has [3] floors, [red]3[/red]" in printed
    how_as_json: Any = answer_json(answer)["how"]
    assert how_as_json["calculation"]["terms"][0]["start"] == 7


LOVELL = Question("q", "If so, who?")
KENT = Evidence("p", "Kent", "It was Jim Lovell.")
UNSURE = Answer(LOVELL, "", (KENT,), confidence=0.12, candidate="Jim [Lovell]")


def test_an_answer_shows_its_confidence(capsys):
    show_answer(Answer(LOVELL, "Jim Lovell", (KENT,), confidence=0.711))
    line = capsys.readouterr().out.splitlines()[1]
    assert line == "Answer    Jim Lovell (confidence 71%)"


def test_an_abstention_shows_its_best_candidate(capsys):
    show_answer(UNSURE)
    assert capsys.readouterr().out.splitlines()[1] == (
        "Answer    not sure enough of an answer; the best candidate is Jim [Lovell] "
        "(confidence 12%)"
    )


def test_only_an_abstention_is_withheld(capsys):
    show_answer(UNSURE, refusal="by [b]mine below 50%")
    show_answer(Answer(LOVELL, "Jim Lovell", (KENT,)), refusal="by [b]mine below 50%")
    assert capsys.readouterr().out.count("Withheld  by [b]mine below 50%\n") == 1


def test_the_json_of_an_abstention_has_its_best_candidate():
    content = answer_json(UNSURE)
    assert content["answer"] == ""
    assert content["candidate"] == "Jim [Lovell]"
    assert content["confidence"] == 0.12
    assert content["error"] == ""


@pytest.fixture
def abstaining():
    """A scored experiment with four abstentions."""
    experiment = run_answers("some", range(20))
    path = experiment.folder / "score" / "scores.json"
    content = json.loads(path.read_text()) | {"n_abstained": 4}
    path.write_text(json.dumps(content))
    return experiment


def shown_lines(experiment, capsys):
    assert show_scores(Run(experiment), experiment.folder / "score") == 0
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_few_subsets_are_columns(abstaining, capsys):
    head, first, *_ = shown_lines(abstaining, capsys)
    assert head == "some: sample dev"
    assert first == "measure  all (83) 95% interval numeric (28) other (55) no_overlap (74)"


def test_each_measure_is_a_row(abstaining, capsys):
    _, _, *rows = shown_lines(abstaining, capsys)
    file = f"{abstaining.folder / 'score'}/per_question.jsonl"
    assert [row.split()[0] for row in rows] == ["EM", "F1", "contains", "83", file]


def test_failures_are_counted(abstaining, capsys):
    _, _, *rows = shown_lines(abstaining, capsys)
    assert rows[3] == "83 questions, 0 failed (a failure scores 0), 4 abstained (also 0)"
    scores = load_scores(Run(abstaining), abstaining.folder / "score")
    assert "83 questions, 0 failed, 4 abstained" in str(scores)


def test_a_subset_that_was_not_scored_is_not_shown(abstaining):
    scores = load_scores(Run(abstaining), abstaining.folder / "score")
    del scores.content["subsets"]["no_overlap"]  # as scored before it was declared
    assert "other (55)\n" in str(scores)


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(tmp_path):
    for folder, kind in (("experiments", "experiments"), ("indexes", "corpora")):
        Path(folder).mkdir()
        Path(folder, "broken.toml").write_text("about = ")
        Path(folder, "lost.toml").symlink_to("nowhere")
        Path(folder, "whole.toml").write_text('about = "all of it"')
        rows: Any = list_json()[kind]
        listed = {
            name: row["about"] if kind == "experiments" else row for name, row in rows.items()
        }
        assert listed["broken"].startswith(
            f"cannot be read: {tmp_path / folder / 'broken.toml'}: not TOML"
        )
        assert listed["lost"] == "cannot be read: No such file or directory"
        assert listed["whole"] == "all of it"


def test_names_of_users_are_shown_as_they_are():
    odd = "[red]a\x1b[31m"
    mean = {"value": 50.0, "low": 40.0, "high": 60.0}
    part = {"questions": 1, "measures": {odd: mean}}
    content: Any = part | {
        "n_failed": 0,
        "of": 1,
        "retry": 0,
        "not_asked": 0,
        "subsets": {odd: part},
        "groups": {odd: part},
    }
    scheme = ScoringScheme((Measure(odd, lambda *_: None),), (Subset(odd, bool),), groups=odd)
    printed = str(Scores(odd, scheme, content | {"macro": {"measures": {odd: mean}}}))
    assert printed.count("[red]a\N{REPLACEMENT CHARACTER}[31m") == 6


@pytest.mark.parametrize(("questions", "printed"), [(9, "too few"), (10, "60.0 - 70.0")])
def test_few_questions_have_no_interval(questions, printed):
    mean: ScoreInterval = {"value": 66.7, "low": 60.0, "high": 70.0}
    assert interval_cell(mean, questions) == printed
    assert interval_cell(mean | {"questions": 9}, questions) == "too few"


def row(number, score, **more):
    return {"id": f"q/{number}", "subsets": [], "failed": 0.0, "EM": score, **more}


def test_examples_of_each_kind_take_turns_in_the_questions_order():
    rows = [
        row(0, 0.0),
        row(1, 1.0),
        row(2, 1.0),
        row(3, 0.0, failed=1.0),
        row(4, 1.0),
        row(5, 0.0),
        row(6, 1.0),
    ]
    kinds = {
        "q/1": "right",
        "q/0": "wrong",
        "q/3": "no answer",
        "q/2": "right",
        "q/5": "wrong",
        "q/4": "right",
    }
    assert list(choose_examples(rows, SCHEME, 6).items()) == list(kinds.items())
    assert list(choose_examples(rows, SCHEME, 2)) == ["q/1", "q/0"]
    assert (len(choose_examples(rows, SCHEME, 99)), choose_examples([], SCHEME, 3)) == (7, {})
    rows = [row(0, 1.0), row(1, 0.0), row(2, 1.0), row(3, 0.0, abstained=1.0), row(4, 0.0)]
    kinds = {"q/0": "right", "q/1": "wrong", "q/4": "wrong", "q/3": "abstained", "q/2": "right"}
    assert list(choose_examples(rows, SCHEME, 5, computed=["q/0", "q/4"]).items()) == list(
        kinds.items()
    )
    whole = SetMeasure("whole", lambda questions, predictions: 1.0)
    assert choose_examples([row(0, 1.0), row(1, 0.0)], ScoringScheme((whole,)), 1) == {"q/0": ""}


@pytest.mark.parametrize(
    ("best", "score", "kind"),
    [
        ("high", 1.0, "right"),
        ("low", 0.0, "right"),
        ("high", 0.0, "wrong"),
        ("low", 1.0, "wrong"),
        ("low", 0.4, "partly right"),
    ],
)
def test_the_headline_measure_says_which_answers_are_right(best, score, kind):
    measure = Measure("mine", lambda question, prediction: 1.0, headline=True, best=best)
    assert outcome_of(row(0, 0.5, mine=score), ScoringScheme((measure, EM))) == kind


def test_examples_are_wrapped_to_the_terminals_width(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    experiment = run_answers("some", [4], wrong="[red]never")
    show_examples(Run(experiment), experiment.folder / "score", 2)
    right, wrong = capsys.readouterr().out.split("\n\n")[:2]
    questions = Sample().questions("dev")
    assert max(map(len, [*right.splitlines(), *wrong.splitlines()])) <= 60
    assert (
        " ".join(right.split())
        == f"Question {questions[4].text} Answer {questions[4].answers[0]} (right)"
    )
    wanted = " / ".join(questions[0].answers)
    assert (
        " ".join(wrong.split())
        == f"Question {questions[0].text} Answer [red]never (wrong; wanted: {wanted})"
    )
    every = list(answers_of(experiment, questions))
    assert list(answers_of(experiment, questions, {questions[3].id: "", questions[50].id: ""})) == [
        every[3],
        every[50],
    ]


PASSAGE = (
    "left there. Design. The mill was drawn by J. P. Ash of St. Ives. "
    'It cost "nine pounds." In 1820 it burned down! '
    "Was it the miller? No. 5 of the reports blamed the U.S. consul and"
)
TOWN = (
    "Ash was born in a town. He wrote four books there. Nobody read any of them. "
    "The mill burned under Ash in May. So it was lost."
)


@pytest.mark.parametrize(
    ("text", "answer", "question", "printed"),
    [
        (
            PASSAGE,
            "1820",
            "",
            '… It cost "nine pounds." In 1820 it burned down! Was it the miller? …',
        ),
        (
            PASSAGE,
            "miller",
            "",
            (
                "… In 1820 it burned down! Was it the miller? No. 5 of the reports blamed the "
                "U.S. consul and"
            ),
        ),
        (
            PASSAGE,
            "burn",
            "Who had drawn the mill?",
            (
                "left there. Design. The mill was drawn by J. P. Ash of St. Ives. "
                'It cost "nine pounds." …'
            ),
        ),
        (
            PASSAGE,
            "",
            "Which reports blamed him?",
            "… Was it the miller? No. 5 of the reports blamed the U.S. consul and",
        ),
        (
            TOWN,
            "Ash",
            "Who had the mill when it burned?",
            "… Nobody read any of them. The mill burned under Ash in May. So it was lost.",
        ),
        (TOWN, "Ash", "Who?", "Ash was born in a town. He wrote four books there. …"),
        ("One sentence alone", "x", "y", "One sentence alone"),
    ],
)
def test_the_sentence_with_the_answer_or_the_questions_words_is_shown(
    text, answer, question, printed
):
    assert "".join(excerpt(split_at_answer(text, answer), question)) == printed


def test_an_excerpt_of_a_list_has_every_item():
    first = "It stood for ten years. "
    last = " baked all the bread."
    pieces = [
        first,
        "Ann",
        " milled all the rye. The weather was always fine. ",
        "Bo",
        f"{last} It fell in May 1890.",
    ]
    wanted = ["… ", *pieces[1:4], f"{last} …"]
    assert excerpt(pieces, "Who worked there?", every=True) == wanted


def test_an_excerpt_keeps_the_highlights():
    rest = " by Ash and Bo. It was sold in 1951 to Cy."
    pieces = ["It rose early. It was built in ", "1951", f"{rest} Nobody came to it at all."]
    assert excerpt(pieces, "When was it built?") == [*pieces[:2], f"{rest} …"]


def test_a_run_says_if_the_confidence_was_fitted_on_its_questions(capsys):
    experiment = run_answers("mine", range(20))
    path = experiment.folder / "read/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["record"]["calibrated_on_them"] = True
    path.write_text(json.dumps(manifest))
    show_scores(Run(experiment), experiment.folder / "score")
    assert "The confidence was fitted on these questions" in capsys.readouterr().out


def test_a_part_of_the_split_does_not_fail_by_its_expected_scores(here, capsys):
    experiment = run_answers("p", range(4), "limit = 8\n[expected.EM]\nvalue = 90")
    run = Run(experiment)
    assert show_scores(run, experiment.folder / "score") == 0
    assert "EM 50.0, expected 90: no verdict on a part of the split" in capsys.readouterr().out
