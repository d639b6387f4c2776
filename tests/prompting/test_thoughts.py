"""Thoughts are told from the answer, and a text that was cut within them is no answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.prompting.parsing import TRUNCATED, AnswerParser
from ifqa.prompting.thoughts import answer_part, boxed, has_thoughts

FIRST = AnswerParser(rule="first line", answer="Answer:")
LAST = AnswerParser(rule="last marker", answer="Answer:")
UNMARKED = "Okay, the user asks about a chess match. The first passage says"


@pytest.mark.parametrize(
    "completion",
    [
        "<think>\nHmm, Answer: wrong.\n</think>\n\nBelgrade",
        "<thinking>\nThe passage says so.\n</thinking>\nBelgrade",
        "The passage says so.\n</think>\nBelgrade",
        "[THINK]so[/THINK]Belgrade",
        (
            "<|channel|>analysis<|message|>We need "
            "it.<|end|><|start|>assistant<|channel|>final<|message|>Belgrade<|return|>"
        ),
        "**Final Answer:** \\boxed{Belgrade}",
        "So \\boxed{\\text{Belgrade}}.",
        "ANSWER: Belgrade",
    ],
)
def test_the_answer_behind_thoughts_is_found(completion):
    assert FIRST.parse(completion).answer == "Belgrade"


@pytest.mark.parametrize(
    "completion",
    [
        "<think>\nThe user asks. Answer: maybe baht. Let me",
        "<thinking>Answer: baht",
        "[THINK]Answer: baht",
        "<|channel|>analysis<|message|>Answer: baht",
    ],
)
@pytest.mark.parametrize("parser", [FIRST, LAST])
def test_a_text_that_ends_within_marked_thoughts_is_truncated(completion, parser):
    assert parser.parse(completion).problem == TRUNCATED


@pytest.mark.parametrize("parser", [FIRST, LAST])
def test_a_text_that_is_cut_within_its_answer_is_truncated(parser):
    assert parser.parse(UNMARKED, cut="in text").problem == TRUNCATED


def test_a_text_that_is_cut_behind_its_answer_keeps_it():
    assert FIRST.parse("Belgrade\n\nThe match would have", cut="in text").answer == "Belgrade"


@pytest.mark.parametrize(
    "text", ["1900\n\nIt was built in 1900", "5\nIn total 15", "Paris\n\nIt is, of course, Paris"]
)
def test_an_answer_in_a_complete_line_is_kept_whatever_words_the_text_ends_with(text):
    assert FIRST.parse(text, cut="in text").answer == text.split()[0]


def test_a_full_stop_at_the_cut_does_not_complete_an_answer():
    assert FIRST.parse("It was in the U.S.", cut="in text").problem == TRUNCATED


def test_a_box_is_complete_even_in_a_text_that_is_cut():
    assert FIRST.parse("So \\boxed{Belgrade} and", cut="in text").answer == "Belgrade"


def test_an_answer_in_a_complete_line_is_kept_where_the_text_is_cut():
    assert LAST.parse("So it is.\nAnswer: Belgrade\nAnd the", cut="in text").answer == "Belgrade"


def test_unmarked_thoughts_of_a_model_that_thinks_are_no_answer():
    assert FIRST.parse("Okay.\nThe user asks", cut="in thoughts").problem == TRUNCATED


def test_marked_thoughts_of_a_model_that_thinks_leave_its_answer():
    assert FIRST.parse("Okay.</think>Belgrade\nThe", cut="in thoughts").answer == "Belgrade"


def test_a_text_that_is_not_cut_is_read_as_before():
    assert FIRST.parse(UNMARKED).answer == UNMARKED


@given(st.text(alphabet="ab {}\\"))
def test_a_box_is_balanced_or_none(text):
    content = boxed(f"\\boxed{{{text}}}")
    assert content.count("{") >= content.count("}") or not content
    assert boxed(text) == "" or "\\boxed" in text


@given(st.text())
def test_a_text_without_marks_is_its_own_answer_part(text):
    if not has_thoughts(text):
        assert answer_part(text) == text
