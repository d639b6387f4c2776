"""Answers with fields: a quote, its passage, what changes, as an object of JSON or as lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import ConfigError
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.parsing import ParsedAnswer
from ifqa.prompting.prompts import load_prompt
from ifqa.protocols import LanguageModel
from ifqa.records import Passage

GROUNDED = load_prompt("grounded")
FIELDS = {
    "quote": "The mill was built in 1804.",
    "passage": 2,
    "change": "It burns down.",
    "answer": "1805",
}
PARSED = ParsedAnswer(
    "1805", quote="The mill was built in 1804.", passage=2, change="It burns down."
)
LINES = "Quote: The mill was built in 1804.\nPassage: [2]\nChange: It burns down.\nAnswer: 1805."


class Model(LanguageModel):
    def __init__(self, takes_schema):
        self.takes_schema = takes_schema


@pytest.mark.parametrize(
    "completion",
    [
        json.dumps(FIELDS),
        f"```json\n{json.dumps(FIELDS, indent=2)}\n```",
        json.dumps(FIELDS | {"passage": "[2]"}),
        LINES,
        f"\n\n{LINES}\n",
        LINES.replace("Quote:", "**Quote:**").replace("Answer:", "**Answer:**"),
        LINES.removeprefix("Quote: "),  # as the completion form continues
        LINES.replace("Quote: ", "Quote:\n"),
    ],
)
def test_fields_are_found_in_either_form(completion):
    assert GROUNDED.parse(completion) == PARSED


@pytest.mark.parametrize(
    ("answer", "guess"),
    [
        ("not said", ""),
        ("Not said.", ""),
        ("", ""),
        ("not stated in the passages", ""),
        ("The passages do not say", None),  # a sentence of its own is an answer like another
        ("unknown", ""),
        ("not said: 1805", "1805"),
        ("Not in the passages; Ada Carr.", "Ada Carr"),
    ],
)
def test_a_model_may_say_that_no_passage_has_the_answer(answer, guess):
    parsed = GROUNDED.parse(json.dumps(FIELDS | {"answer": answer}))
    if guess is None:
        assert not parsed.not_said
    else:
        assert (parsed.answer, parsed.not_said, parsed.guess) == ("", True, guess)


@pytest.mark.parametrize("change", ["nothing", "Nothing.", "none", ""])
def test_a_supposition_that_changes_nothing_is_no_change(change):
    assert GROUNDED.parse(json.dumps(FIELDS | {"change": change})).change == ""


def test_null_is_not_said():
    assert GROUNDED.parse(json.dumps(FIELDS | {"answer": None})).not_said


@pytest.mark.parametrize(("quote", "not_said"), [("", True), ("None came.", False)])
def test_none_is_an_answer_only_beside_a_quote(quote, not_said):
    parsed = GROUNDED.parse(json.dumps(FIELDS | {"answer": "none", "quote": quote}))
    assert parsed.not_said == not_said


@pytest.mark.parametrize(
    ("completion", "problem"),
    [
        ("", "empty"),
        ("I think it was in 1805.", "no line 'Answer:'"),
        ('{"quote": "a", "passage": 1}', "no key 'answer'"),
    ],
)
def test_a_completion_without_an_answer_has_a_problem(completion, problem):
    parsed = GROUNDED.parse(completion)
    assert parsed.problem == problem
    assert not parsed.not_said


def test_a_completion_that_was_cut_has_no_answer():
    assert "truncated" in GROUNDED.parse('{"quote": "The mill', cut="in text").problem


@given(st.fixed_dictionaries({name: st.text(max_size=60) for name in FIELDS}))
def test_any_object_has_an_answer_or_says_why_not(fields):
    parsed = GROUNDED.parse(json.dumps(fields))
    assert sum([bool(parsed.answer.strip()), parsed.not_said, bool(parsed.problem)]) == 1


@pytest.mark.parametrize("takes_schema", [True, False])
def test_a_schema_is_asked_for_where_the_model_keeps_to_one(takes_schema):
    fitted = fit_prompt(GROUNDED, "If so?", [Passage("p", "T", "x")], Model(takes_schema))
    assert bool(fitted.request.schema) == takes_schema
    system = fitted.request.messages[0][1]
    assert ("one object of JSON" in system) == takes_schema


def test_the_schema_has_a_number_for_the_passage():
    properties = json.loads(GROUNDED.answer_schema())["properties"]
    assert {name: field["type"] for name, field in properties.items()} == {
        "quote": "string",
        "passage": "integer",
        "change": "string",
        "answer": "string",
    }


def test_a_demonstration_is_shown_as_the_object_that_is_asked_for():
    steps = {"quote": 'He said "no".', "passage": "2", "change": "He says yes."}
    demo = Demo("If so?", "yes", (Passage("p", "", "x"),), steps)
    shown = json.loads(GROUNDED.show(demo, as_json=True))
    assert shown == steps | {"passage": 2, "answer": "yes"}


def test_passages_are_numbered_in_the_order_in_which_they_are_shown():
    passages = [Passage(name, "T", name) for name in ("best", "second")]
    fitted = fit_prompt(GROUNDED, "If so?", passages, Model(True), order="best last")
    assert [passage.id for passage in fitted.shown] == ["second", "best"]


def test_a_prompt_that_needs_a_schema_is_refused_without_one():
    prompt = load_prompt("open-book-json")
    with pytest.raises(ConfigError, match="by a schema"):
        fit_prompt(prompt, "If so?", [], Model(False))


def test_a_prompt_may_have_the_model_write_the_question():
    drafting = load_prompt("draft-plain")
    written = {
        "quote": "It was built in 1804.",
        "question": "When was it\nbuilt?",
        "answer": "1804",
    }
    parsed = drafting.parse(json.dumps(written))
    assert (parsed.question, parsed.answer) == ("When was it built?", "1804")


def test_a_prompt_that_writes_questions_shows_that_of_a_demonstration():
    demo = Demo("If so?", "1804", (), {"quote": "It was built in 1804."})
    assert load_prompt("draft-plain").show(demo) == (
        "Quote: It was built in 1804.\nQuestion: If so?\nAnswer: 1804"
    )
