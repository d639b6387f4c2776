"""Causal questions lose their asking words and nothing else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ifqa.retrieval.queries import CONNECTIVES, FORMS, QUERIES, content_terms, split_causal

# Question -> the rule of the form that fits, what is sought, what is stated.
EXAMPLES = {
    "Why did Rome fall?": ("R1", "cause", "Rome fall"),
    "Why is it that Rome fell?": ("R1", "cause", "Rome fell"),
    "Why's the sky blue?": ("R1", "cause", "the sky blue"),
    "Why didn't Ann write?": ("R1", "cause", "didn't Ann write"),
    "According to Ann, why did Rome fall?": ("R1", "cause", "According to Ann, Rome fall"),
    "Where was the first dam built and why?": ("R1", "cause", "Where was the first dam built and"),
    "If it rains, why do worms come up?": ("R1", "cause", "If it rains, worms come up"),
    "What causes rust?": ("R2", "cause", "rust"),
    "what are the most common causes of floods in Peru": ("R2", "cause", "floods in Peru"),
    "Because of what was the envoy dismissed?": ("R2", "cause", "the envoy dismissed"),
    "The fire was caused by what?": ("R2", "cause", "The fire was"),
    "What lack of vitamins causes scurvy?": ("R2", "cause", "lack of vitamins scurvy"),
    "What disease do rats cause?": ("R2", "effect", "disease do rats"),
    "In 1836, how did Sam Houston win?": ("R3", "cause", "In 1836, Sam Houston win"),
    "long term side effects of salt": ("R4", "effect", "salt"),
    "What effect did the war have on trade?": ("R4", "effect", "the war on trade"),
    "How did the war affect trade?": ("R4", "effect", "the war trade"),
    "How was trade affected by the war?": ("R4", "effect", "trade the war"),
    "Which organs does PKU affect?": ("R4", "effect", "organs does PKU"),
    "What affects the tides?": ("R4", "cause", "the tides"),
    "Which treaty led to the war?": ("R5", "cause", "treaty the war"),
    "What did the treaty lead to?": ("R5", "effect", "the treaty"),
    "What happens to ice when salt is added?": ("R6", "effect", "ice salt is added"),
    "If ice melts, what will happen to the sea?": ("R6", "effect", "ice melts, the sea"),
    "What to do when the pipes freeze?": ("R7", "remedy", "the pipes freeze"),
}
# Questions that state both sides, name a title, or ask for something else.
OTHERS = (
    "Why?", "What is the cause?", "Who sang Tell Me Why?", "Does gout cause pain?", "What happens in May?", "",
    "What was Lincoln's cause of death?", "When did the tariffs go into effect?", "Who would lead if Ann had left?",
    "What name was given to the scandal of the seventies that led to an indictment?",
)  # fmt: skip
ASKING = frozenset(
    "why how come did do does is was are it that what which because of if when to cause causes caused by for on effect effects "
    "affect affected led lead leads have happens will would might happen be should done the most main side".split()
)
WORDS = [*sorted(ASKING), "Rome", "fell,", "Ann", "ice", "and", "trade", "1836.", "?"]


def words(text):
    return text.lower().rstrip("? ").split()


@pytest.mark.parametrize("question", EXAMPLES)
def test_a_causal_question_loses_its_asking_words(question):
    found = split_causal(question)
    assert (found.rule, found.seeks, found.stated) == EXAMPLES[question]
    assert QUERIES["causal-connectives"](question) == f"{found.stated} {CONNECTIVES[found.seeks]}"
    assert all(term in found.stated for term in content_terms(question))
    assert split_causal(found.stated).stated == found.stated


def test_the_examples_have_every_form():
    assert {form[:2] for form in FORMS} == {(rule, seeks) for rule, seeks, _ in EXAMPLES.values()}


@pytest.mark.parametrize("question", OTHERS)
def test_a_question_of_no_form_stays(question):
    assert split_causal(question).stated == question
    assert QUERIES["causal-connectives"](question) == question
    assert not split_causal(question).seeks


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=60))
@example("why did how did")
def test_only_asking_words_go_and_something_is_left(text):
    found = split_causal(text)
    assert found.stated.strip() or not text.strip()
    left = iter(words(text))
    if found.seeks:
        assert all(word in left for word in words(found.stated))  # in their order
        gone = set(words(text)) - set(words(found.stated))
        assert {word.strip(" ?\"'()") for word in gone} <= ASKING | {""}
