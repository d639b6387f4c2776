"""If-clauses and main clauses of counterfactual questions."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.clauses import Clauses, question_advice, split_question

# Each question has a bar where its if-clause ends.
LEADING = {
    "plain": "If the mill had burned down,| who would have baked the bread?",
    "no comma": "If the miller had died in 1950| how old would he have been?",
    "apposition": (
        "If Ada Brook, the pilot, had caught a cold on May 3, 1931,| who would have flown the mail?"
    ),
    "participle": "If the mill, designed by Ada Brook, was sold in 1931,| who became its owner?",
    "comma within the quotation": 'If Ada had not sung "Blue Mill,"| which song would she have sung?',
    "relative clause": "If the mill, which was built in 1900, had burned down,| what would stand there?",
    "relative clause after the verb": "If Ada had beaten Bob, who was champion,| which prize would she have won?",
    "noun apart from its verb": "If Ada had won,| which prize, named after a miller, would she hold?",
    "verb apart from its subject": "If the Moon, a body of rock, were to vanish,| would the tides stop?",
    "question not turned": "If Ada had joined a choir,| she would have sung in which town?",
    "several if-clauses": "If Ada had left and if Bob, her son, had stayed,| who would lead?",
    "second if-clause": "If Ada had left,| what would Bob do if the mill closed?",
    "two questions": "If Ada had left,| who would lead? And what would she sing?",
    "inversion with had": "Had Ada not left,| who would lead?",
    "inversion with should": "Should the dam break,| which towns would flood?",
    "sentence": "Suppose that the miller had fled.| Who would have baked?",
    "context before": "The mill was built in 1900. If it had been built later,| when would it have opened?",
    "dash": "If Ada had won| - how many prizes would she hold?",
}


@pytest.mark.parametrize("kind", LEADING)
def test_a_leading_if_clause_ends_where_the_question_starts(kind):
    presupposition, question = LEADING[kind].split("|")
    clauses = split_question(LEADING[kind].replace("|", ""))
    assert clauses == Clauses(presupposition.rstrip(","), question.strip(" -"))


TRAILING = {
    "Who would lead": "if Ada had left", "How old would Ada be": "unless she had died",
    "What should a miller do": "if the river, usually high, runs dry",
}  # fmt: skip


@pytest.mark.parametrize("link", [" ", ", "])
@pytest.mark.parametrize(("question", "presupposition"), TRAILING.items())
def test_a_trailing_if_clause_is_the_presupposition(question, presupposition, link):
    assert split_question(f"{question}{link}{presupposition}?") == Clauses(presupposition, question)


@pytest.mark.parametrize(
    "text",
    [
        "Who baked the bread?",
        "Were the Larks, who sang in Troy, from Ohio?",
        "Had Ada a brother?",
        "If Ada had left.",
        "If",
        "",
        "Who has sung as if possessed?",
        "What if Ada had left?",
        "What would, if Ada had won, have been her prize?",
    ],
)
def test_a_text_without_two_clauses_is_all_main_clause(text):
    assert split_question(f" {text} ") == Clauses("", text)


@pytest.mark.parametrize("then", [", then ", " then "])
def test_then_belongs_to_neither_clause(then):
    assert split_question(f"If Ada had left{then}who would lead?") == Clauses(
        "If Ada had left", "who would lead?"
    )


def test_the_supposition_is_the_presupposition_without_its_conjunction():
    for presupposition, supposition in (
        ("If Ada had left", "Ada had left"),
        ("Suppose that Ada had left.", "Ada had left."),
        ("By law, if Ada had left", "By law, Ada had left"),
        ("Had Ada left", "Had Ada left"),
        ("", ""),
    ):
        assert Clauses(presupposition, "who would lead?").supposition == supposition


PIECES = st.sampled_from(
    """If|if|Had|had|not|then|who|which|would|was|,|, |. |?|"|'|(| |—|Ada|10,000""".split("|")
)


@given(st.text() | st.lists(PIECES).map(" ".join) | st.lists(PIECES).map("".join))
def test_clauses_are_stripped_substrings_and_lose_only_then(text):
    clauses = split_question(text)
    assert clauses.presupposition in text
    assert clauses.question in text
    assert all(
        part == part.strip()
        for part in (clauses.presupposition, clauses.question, clauses.supposition)
    )
    remaining = re.findall(r"\w+", f"{clauses.presupposition} {clauses.question}")
    lost = Counter(re.findall(r"\w+", text)) - Counter(remaining)
    assert [word.lower() for word in lost.elements()] in ([], ["then"])


@pytest.mark.parametrize(
    "text",
    [
        "Who left?",
        "if so",
        "誰が水門を閉めましたか",
        "ใครปิดประตูน้ำ",
        "Wer war's?",
        "누가 닫았어?",
        "why 42 not",
    ],
)
def test_a_text_of_two_words_may_be_a_question(text):
    assert question_advice(text) == ""


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("", "no word"),
        ("?!... 12", "no word"),
        ("💥" * 2000, "no word"),
        ("Why?", "only one word"),
        ("Ann's", "only one word"),
        ("Schleswig-Holstein", "only one word"),
        ("水", "only one word"),
    ],
)
def test_a_text_without_two_words_gets_advice(text, lacks):
    assert question_advice(text).startswith(f"There is {lacks} in it: ask a whole question")
