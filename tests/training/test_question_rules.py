"""Questions that rules make from passages: each rule's questions, and doubtful clauses that give none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.training.question_rules import make_questions

#: Rule, passage, a pattern of the question with its step, and the number that the step changes.
CASES = [
    ("number", "Ann Lee won 500 medals in her life.", r"If Ann Lee had won (\w+) (more|fewer) medals in her life, how many medals would .*", 500),
    ("until", "Ann Lee lived in Kiel from 1901 to 1907.", r"If Ann Lee had lived in Kiel for (\w+) (more) years, until which year .*", 1907),
    ("year", "The mill was built in 1905.", r"If the mill had been built (\w+) years? (later|earlier), in which year would .*", 1905),
    ("year", "In March 1905, the mill burned and fell. In 1910, the mill collapsed.", r"If the mill had collapsed (\w+) years? (later|earlier), .*", 1910),
]  # fmt: skip
NAMED = [
    ("name", "Mill Lane was originally called Elm Street, after a tree.", "If Mill Lane had kept its original name, what would it be called?", "Elm Street"),
    ("schedule", "The race was originally scheduled for 4 May 2020, but it rained.", "If the race had kept to the original schedule, when would that have been?", "4 May 2020"),
    ("move", "The club moved from Kiel to Rome in May.", "If the club had not moved to Rome, where would the club have stayed?", "Kiel"),
    ("move", "The club was moved from Kiel, Germany, to Rome.", "If the club had not been moved to Rome, where would the club have stayed?", "Kiel"),
    ("succession", "Ann Lee replaced Ben Fox as mayor of Kiel in 1990.", "If Ann Lee had not taken the place of another as mayor of Kiel, who would have stayed mayor of Kiel?", "Ben Fox"),
    ("defeat", "Ann Lee defeated Ben Fox in the final of the cup.", "If Ann Lee had lost in the final of the cup, who would have won?", "Ben Fox"),
    ("cause", "The old fair was cancelled due to heavy rain.", "If it had not been for heavy rain, who or what would not have been cancelled?", "the old fair"),
    ("cause", "Because of the war, the games moved to Rome.", "If it had not been for the war, who or what would not have moved to Rome?", "the games"),
    ("cause", "The games ended early because the hall collapsed at noon.", "If the hall had not collapsed at noon, who or what would not have ended early?", "the games"),
]  # fmt: skip
_STEPS = "zero one two three four five six seven eight nine".split()


def question_by(rule, text, title=""):
    [question] = [question for question in make_questions(text, title, "0 p") if question.rule == rule]
    return question


@pytest.mark.parametrize(("rule", "text", "pattern", "number"), CASES)
def test_a_number_of_the_passage_is_changed_and_the_answer_computed(rule, text, pattern, number):
    question = question_by(rule, text)
    match = re.fullmatch(pattern, question.text)
    step = _STEPS.index(match[1]) * (1 if match[2] in ("more", "later") else -1)
    assert question.answers[0] == str(number + step)


@pytest.mark.parametrize(("rule", "text", "question", "answer"), NAMED)
def test_what_happened_is_undone_and_the_answer_stands_in_the_passage(rule, text, question, answer):
    generated = question_by(rule, text)
    assert (generated.text, generated.answers[0]) == (question, answer)
    assert answer.lower() in text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "It was built in 1905.", "He died in 1905.", "The mill is built of stone.", "The mill was in use until 1905.", "",
        "The band was formed when its members met in 1905.", "The fair was cancelled due to this.",
        "Ann Lee defeated a girl in the final.",
    ],
)  # fmt: skip
def test_doubtful_clauses_give_no_question(text):
    assert make_questions(text, "", "0 p") == []


def test_draws_depend_on_the_seed_alone():
    text = "The mill was built in 1905. The tower was opened in 1911. Ann Lee won 50 medals."
    assert make_questions(text, "", "0 p") == make_questions(text, "", "0 p")
    assert len({tuple(make_questions(text, "", f"{seed} p")) for seed in range(9)}) > 3
    question = question_by("year", "She died in 1905.", title="Ann Lee (singer)")  # the article's subject
    assert question.text.startswith("If Ann Lee had died ")


WORDS = 'The Ann Lee Kiel by instead was were won built in 1905 from to originally called due because of . , ( ) " five 7 \n ½ İ the'.split(" ")  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join), st.sampled_from(["", "(", "T"]))
def test_any_text_is_taken(text, title):
    for question in make_questions(text, title, "0 p"):
        assert question.text.endswith("?")
        assert all(question.answers)
