"""Pairs of answers: made by rule, consistent with the passages they come with, and the same for the same seed."""

import re

from hypothesis import given
from hypothesis import strategies as st

from ifqa.plugins import open_benchmark
from ifqa.records import Question
from ifqa.training.preference_pairs import make_preference_pairs

TOWNS = ["Bath", "Wick", "Lund", "Rye", "New York", "Ann Arbor"]


def question_of(number, answer, text, **more):
    return Question(f"t/{number}", "If she had stayed, what then?", (answer,), (text,), **more)


def test_a_name_is_replaced_by_another_answer_of_as_many_words():
    text = "Ada was born in {0}; {0}'s mills closed."
    questions = [question_of(n, town, text.format(town)) for n, town in enumerate(TOWNS)]
    for question, pair in zip(questions, make_preference_pairs(questions, 0), strict=True):
        assert pair.rejected == question.answers[0] != pair.chosen
        assert len(pair.chosen.split()) == len(pair.rejected.split())
        assert pair.passages == (question.gold_passages[0].replace(pair.rejected, pair.chosen),)


@given(st.integers(0, 9999), st.integers(0, 5))
def test_a_number_is_changed_in_answer_and_passage_alike(number, seed):
    question = question_of(0, f"{number} men", f"It took {number} men; 1{number:04} others, and 3.{number} miles.")
    [pair] = make_preference_pairs([question], seed)
    new = re.match(r"\d+", pair.chosen)[0]
    assert new != str(number)
    assert abs(int(new) - number) <= 9
    assert pair.passages == (f"It took {new} men; 1{number:04} others, and 3.{number} miles.",)
    assert pair.rejected == f"{number} men"


def test_no_pair_is_made_where_no_rule_holds():
    other = question_of(9, "Wick", "Bo came from Wick.")
    for question in [
        question_of(0, "the mayor", "The mayor opened it."), question_of(0, "Bath", "She left."), question_of(0, "Rye", "Ryegrass grew."),
        Question("t/0", "If Bath had burnt, where?", ("Bath",), ("She lived in Bath.",)), Question("t/0", "If?", ("Bath",)),
        Question("t/0", "If?", (), ("She lived in Bath.",)), question_of(0, "12", "It had 12,000 men."),
    ]:  # fmt: skip
        assert "t/0" not in {pair.question.id for pair in make_preference_pairs([question, other], 0)}


def test_pairs_of_the_sample_depend_on_the_seed_and_not_on_order():
    questions = open_benchmark("sample").questions("train")
    pairs = make_preference_pairs(questions, 0)
    assert {bool(re.search(r"\d", pair.chosen)) for pair in pairs} == {True, False}, "numbers and names"
    assert sorted(make_preference_pairs(questions[::-1], 0), key=pairs.index) == pairs
    assert make_preference_pairs(questions, 1) != pairs
    for pair in pairs:
        assert any(pair.chosen in text or re.search(r"\d", pair.chosen) for text in pair.passages)
        assert pair.chosen != pair.rejected


def test_a_name_is_replaced_by_the_answer_to_a_question_that_asks_alike():
    names = {"who would lead?": ("Ada", "Bo"), "where would she live?": ("Bath", "Wick"), "which won?": ("Rye", "Lund")}
    opening = "If Cy had left Hove, where he was born,"
    questions = [
        Question(f"t/{name}", f"{opening} {text}", (name,), (f"They said that {name} had.",))
        for text, answers in names.items()
        for name in answers
    ]
    swaps = {frozenset((pair.chosen, pair.rejected)) for pair in make_preference_pairs(questions, 0)}
    assert swaps == set(map(frozenset, names.values()))
    capital = Question("t/Boxes", "If so, where would it lie?", ("Boxes",), ("Boxes were there.",))
    assert "Boxes" not in {pair.chosen for pair in make_preference_pairs([*questions, capital], 0)}
