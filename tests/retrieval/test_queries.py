"""Queries: the names of a question, a causal question's statement, and the rewritten texts."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refused

from ifqa.records import Question
from ifqa.retrieval.queries import CONNECTIVES, QUERIES, content_terms, parse_causal_form
from ifqa.retrieval.queries import rewrite_questions as rewrite


def words(text):
    return text.lower().rstrip("?., ").split()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("If Ada Brook had met J. K. Stone in Troy", ["Ada Brook", "J. K. Stone", "Troy"]),
        ("If it had opened on July 14, 1969, or 5 June 1970", ["July 14, 1969", "5 June 1970"]),
        (
            "If the 10,000 had paid $2.50, or 3%, for a 1950s F.8",
            ["10,000", "$2.50", "3%", "1950s", "F.8"],
        ),
        (
            "If the University of Troy had left the U.S. Senate",
            ["University of Troy", "U.S. Senate"],
        ),
        (
            "If Ada's song “The Wheel of Time,” had beaten Bob's",
            ["Ada", "The Wheel of Time", "Bob"],
        ),
        ("If Ada had met Ada", ["Ada"]),
        ("If Émile had seen Åland", ["Émile", "Åland"]),
        ("Which mill would The Hague and Will Stone have built?", ["The Hague", "Will Stone"]),
        ("In May 1950, I sang. If May 3, 1951 had come", ["May 1950", "May 3, 1951"]),
        ("", []),
        # a sentence's first word is a name only with evidence
        ("Bread was dear. Mills stood still.", []),
        ("Bread was dear, said Bread.", ["Bread"]),
        ("Ada Brook flew. NASA paid.", ["Ada Brook", "NASA"]),
        ("Mr. Brook flew to St. Louis.", ["Mr. Brook", "St. Louis"]),
    ],
)
def test_terms_are_found_once_in_order(text, terms):
    assert content_terms(text) == terms


# Question -> rule, what it seeks, statement
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
# Questions that state both sides, name a title, or ask for something else
OTHERS = (
    "Why?",
    "What is the cause?",
    "Who sang Tell Me Why?",
    "Does gout cause pain?",
    "What happens in May?",
    "",
    "What was Lincoln's cause of death?",
    "When did the tariffs go into effect?",
    "Who would lead if Ann had left?",
    "What name was given to the scandal of the seventies that led to an indictment?",
)
ASKING = frozenset(
    "why how come did do does is was are it that what which because of if when to cause "
    "causes caused by for on effect effects "
    "affect affected led lead leads have happens will would might happen "
    "be should done the most main side".split()
)
WORDS = [*sorted(ASKING), "Rome", "fell,", "Ann", "ice", "and", "trade", "1836.", "?"]


@pytest.mark.parametrize("question", EXAMPLES)
def test_a_causal_question_loses_its_asking_words(question):
    form = parse_causal_form(question)
    assert (form.rule, form.seeks, form.statement) == EXAMPLES[question]
    assert QUERIES["causal-connectives"](question) == f"{form.statement} {CONNECTIVES[form.seeks]}"
    assert all(term in form.statement for term in content_terms(question))
    assert parse_causal_form(form.statement).statement == form.statement


@pytest.mark.parametrize("question", OTHERS)
def test_a_question_without_a_form_stays(question):
    assert parse_causal_form(question).statement == question
    assert QUERIES["causal-connectives"](question) == question
    assert not parse_causal_form(question).seeks


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=60))
@example("why did how did")
def test_only_asking_words_are_removed_and_a_statement_remains(text):
    form = parse_causal_form(text)
    assert form.statement.strip() or not text.strip()
    remaining = iter(words(text))
    if form.seeks:
        assert all(word in remaining for word in words(form.statement))  # in their order
        removed = set(words(text)) - set(words(form.statement))
        assert {word.strip(" ?\"'()") for word in removed} <= ASKING | {""}


LINCOLN = "If Abraham Lincoln had not been shot in 1865, who would have led the Union Army?"
LAST = "What would be the capital of Turkey if Istanbul had been chosen?"
PLAIN = "Who wrote the old song?"
CAUSAL = "Why did Sam Houston leave?"
NAMED = f"{LINCOLN} Abraham Lincoln 1865 Union Army"
REWRITTEN = {
    "question": (LINCOLN, LAST, PLAIN, CAUSAL),
    "presupposition": (
        "Abraham Lincoln had not been shot in 1865",
        "Istanbul had been chosen",
        PLAIN,
        CAUSAL,
    ),
    "main": (
        "who would have led the Union Army?",
        "What would be the capital of Turkey",
        PLAIN,
        CAUSAL,
    ),
    "names": (NAMED, f"{LAST} Turkey Istanbul", PLAIN, f"{CAUSAL} Sam Houston"),
    "causal": (LINCOLN, LAST, PLAIN, "Sam Houston leave"),
    "causal-connectives": (
        LINCOLN,
        LAST,
        PLAIN,
        "Sam Houston leave because due to caused by led to",
    ),
    "causal-names": (NAMED, f"{LAST} Turkey Istanbul", PLAIN, "Sam Houston leave Sam Houston"),
}


@pytest.mark.parametrize("query", sorted(QUERIES | REWRITTEN))
def test_every_query_rewrites_as_expected(query):
    rewritten = rewrite([Question("q", text) for text in (LINCOLN, LAST, PLAIN, CAUSAL)], query)
    assert [words(question.text) for question in rewritten] == [
        words(text) for text in REWRITTEN[query]
    ]
    for unknown in (query[:-1], 5, [query]):
        with refused("query"):
            # A file may hold a number or a list
            rewrite([Question("q", PLAIN)], unknown)  # type: ignore[arg-type]


@given(st.text(), st.sampled_from(sorted(QUERIES)))
def test_rewriting_keeps_ids_and_annotation_and_empties_no_question(text, query):
    question = Question("b/s/1", text, ("a", "b"), ("gold",), ("x", "y"))
    [rewritten] = rewrite([question], query)
    assert replace(rewritten, text=text) == question
    assert bool(rewritten.text.strip()) or not text.strip()
    assert query != "question" or rewritten == question
