"""Pairs of answers: made by rule, consistent with the passages they come with, and the same for the same seed."""

import re

from hypothesis import given
from hypothesis import strategies as st

from ifqa.plugins import open_benchmark
from ifqa.records import Question
from ifqa.training.preference_pairs import make_preference_pairs

TOWNS = ["Bath", "Wick", "Lund", "Rye", "New York", "Ann Arbor"]


def asked(number, answer, text, **more):
    return Question(f"t/{number}", "If she had stayed, what then?", (answer,), (text,), **more)


def test_a_name_is_replaced_by_another_answer_of_as_many_words():
    questions = [asked(n, town, f"Ada was born in {town}; {town}'s mills closed.") for n, town in enumerate(TOWNS)]
    for question, pair in zip(questions, make_preference_pairs(questions, 0), strict=True):
        assert pair.rejected == question.answers[0] != pair.chosen
        assert len(pair.chosen.split()) == len(pair.rejected.split())
        assert pair.passages == (question.gold_passages[0].replace(pair.rejected, pair.chosen),)


@given(st.integers(0, 9999), st.integers(0, 5))
def test_a_number_is_changed_in_answer_and_passage_alike(number, seed):
    [pair] = make_preference_pairs(
        [asked(0, f"{number} men", f"It took {number} men; 1{number:04} others, and 3.{number} miles.")], seed
    )
    new = re.match(r"\d+", pair.chosen)[0]
    assert new != str(number)
    assert abs(int(new) - number) <= 9
    assert pair.passages == (f"It took {new} men; 1{number:04} others, and 3.{number} miles.",)
    assert pair.rejected == f"{number} men"


def test_no_pair_is_made_where_no_rule_holds():
    other = asked(9, "Wick", "Bo came from Wick.")
    for question in [
        asked(0, "the mayor", "The mayor opened it."), asked(0, "Bath", "She left."), asked(0, "Rye", "Ryegrass grew."),
        Question("t/0", "If Bath had burnt, where?", ("Bath",), ("She lived in Bath.",)), Question("t/0", "If?", ("Bath",)),
        Question("t/0", "If?", (), ("She lived in Bath.",)), asked(0, "12", "It had 12,000 men."),
    ]:  # fmt: skip
        assert [
            pair.question.id for pair in make_preference_pairs([question, other], 0) if pair.question.id == "t/0"
        ] == []


def test_pairs_of_the_sample_depend_on_the_seed_and_not_on_order():
    questions = open_benchmark("sample").questions("train")
    made = make_preference_pairs(questions, 0)
    assert len({bool(re.search(r"\d", one.chosen)) for one in made}) == 2, "numbers and names"
    by_id = [
        sorted(some, key=lambda one: one.question.id) for some in (make_preference_pairs(questions[::-1], 0), made)
    ]
    assert by_id[0] == by_id[1]
    assert make_preference_pairs(questions, 1) != made
    for one in made:
        assert any(one.chosen in text or re.search(r"\d", one.chosen) for text in one.passages)
        assert one.chosen != one.rejected


def test_a_name_is_replaced_by_the_answer_to_a_question_that_asks_alike():
    asking = {
        "who would have led?": ("Ada", "Bo"),
        "where would she live?": ("Bath", "Wick"),
        "which town won?": ("Rye", "Lund"),
    }
    opening, told = "If Cy had left Hove, where he was born,", "They said that {} had."
    questions = [
        Question(f"t/{town}", f"{opening} {text}", (town,), (told.format(town),)) for text, towns in asking.items() for town in towns
    ]  # fmt: skip
    made = {frozenset((pair.chosen, pair.rejected)) for pair in make_preference_pairs(questions, 0)}
    assert made == set(map(frozenset, asking.values()))
    capital = Question("t/Boxes", "If so, where would it lie?", ("Boxes",), ("Boxes were there.",))
    assert "Boxes" not in {pair.chosen for pair in make_preference_pairs([*questions, capital], 0)}
