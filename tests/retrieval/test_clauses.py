"""The clause rules on questions of every form, and on odd texts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.retrieval.queries import Clauses, content_terms, split_question

# Each question has a bar where its if-clause ends.
LEADING = {
    "plain": "If the mill had burned down,| who would have baked the bread?",
    "no comma": "If the miller had died in 1950| how old would he have been?",
    "apposition": "If Ada Brook, the pilot, had caught a cold on May 3, 1931,| who would have flown the mail?",
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
    parts = split_question(LEADING[kind].replace("|", ""))
    assert parts == Clauses(presupposition.rstrip(","), question.strip(" -"))


@pytest.mark.parametrize(
    ("question", "presupposition"),
    [
        ("Who would lead", "if Ada had left"),
        ("How old would Ada be", "unless she had died"),
        ("What should a miller do", "if the river, usually high, runs dry"),
    ],
)
def test_a_trailing_if_clause_is_the_presupposition(question, presupposition):
    assert split_question(f"{question} {presupposition}?") == Clauses(presupposition, question)
    assert split_question(f"{question}, {presupposition}?") == Clauses(presupposition, question)


@pytest.mark.parametrize(
    "text",
    [
        "Who baked the bread?", "Were the Larks, who sang in Troy, from Ohio?", "Had Ada a brother?", "If Ada had left.", "If", "",
        "Who has sung as if possessed?", "What if Ada had left?", "What would, if Ada had won, have been her prize?",
    ],
)  # fmt: skip
def test_a_text_without_two_clauses_is_all_main_clause(text):
    assert split_question(f" {text} ") == Clauses("", text)


def test_then_belongs_to_neither_clause():
    assert split_question("If Ada left, then what would Bob do?").question == "what would Bob do?"
    assert split_question("If Ada had left then who would lead?") == Clauses("If Ada had left", "who would lead?")


def test_supposed_is_the_presupposition_without_its_conjunction():
    assert Clauses("If Ada had left", "who would lead?").supposed == "Ada had left"
    assert Clauses("Suppose that Ada had left.", "Who would lead?").supposed == "Ada had left."
    assert Clauses("By law, if Ada had left", "who would lead?").supposed == "By law, Ada had left"
    assert Clauses("Had Ada left", "who would lead?").supposed == "Had Ada left"
    assert Clauses("", "Who leads?").supposed == ""


PIECES = st.sampled_from("""If|if|Had|had|not|then|who|which|would|was|,|, |. |?|"|'|(| |—|Ada|10,000""".split("|"))
ODD_TEXTS = st.text() | st.lists(PIECES).map(" ".join) | st.lists(PIECES).map("".join)


@given(ODD_TEXTS)
def test_clauses_are_stripped_substrings_and_lose_only_then(text):
    parts = split_question(text)
    for part in (parts.presupposition, parts.question, parts.supposed):
        assert part == part.strip()
    assert parts.presupposition in text
    assert parts.question in text
    kept = sorted(re.findall(r"\w+", parts.presupposition) + re.findall(r"\w+", parts.question))
    lost = sorted(re.findall(r"\w+", text))
    for word in kept:
        lost.remove(word)
    assert [word.lower() for word in lost] in ([], ["then"])


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("If Ada Brook had met J. K. Stone in Troy", ["Ada Brook", "J. K. Stone", "Troy"]),
        ("If it had opened on July 14, 1969, or 5 June 1970", ["July 14, 1969", "5 June 1970"]),
        ("If the 10,000 had paid $2.50, or 3%, for a 1950s F.8", ["10,000", "$2.50", "3%", "1950s", "F.8"]),
        ("If the University of Troy had left the U.S. Senate", ["University of Troy", "U.S. Senate"]),
        ("If Ada's song “The Wheel of Time,” had beaten Bob's", ["Ada", "The Wheel of Time", "Bob"]),
        ("If Ada had met Ada", ["Ada"]),
        ("If Émile had seen Åland", ["Émile", "Åland"]),
        ("Which mill would The Hague and Will Stone have built?", ["The Hague", "Will Stone"]),
        ("In May 1950, I sang. If May 3, 1951 had come", ["May 1950", "May 3, 1951"]),
        ("", []),
    ],
)
def test_names_titles_dates_and_numbers_are_terms_once_in_order(text, terms):
    assert content_terms(text) == terms


def test_a_sentences_first_word_is_a_name_only_with_evidence():
    assert content_terms("Bread was dear. Mills stood still.") == []
    assert content_terms("Bread was dear, said Bread.") == ["Bread"]
    assert content_terms("Ada Brook flew. NASA paid.") == ["Ada Brook", "NASA"]
    assert content_terms("Mr. Brook flew to St. Louis.") == ["Mr. Brook", "St. Louis"]
