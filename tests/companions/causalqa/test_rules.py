import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.companions.causalqa.rules import RULES, match_rules, normalize_question
from ifqa.errors import IfqaError

# Question -> the rules that match it in the readings notebook, table3 and fixed.
EXAMPLES = {
    "Why is the sky blue?": "R1 R1 R1",
    "Whyalla is in which state?": "R1 - -",
    "If it rains, why do worms come up?": "R1 R1 R1",
    "Who left, and why?": "- R1 R1",
    "Who sang Tell Me Why?": "- R1 -",
    "The milk is sour why exactly?": "R1 R1 R1",
    "What causes rust?": "R2 R2 R2",
    "What is the cause?": "- R2 R2",
    "What caused the fire?": "R2 - R2",
    "Because of what did they stop?": "R2 - R2",
    "How did the bridge fall?": "R3 R3 R3",
    "Which show did he host?": "R3 - -",
    "How come?": "- R3 R3",
    "What is the effect of salt?": "R4 R4 R4",
    "What is the Doppler effect in short?": "R4 R4 -",
    "What is the dopplar effect in short?": "- R4 R4",
    "How does salt affect ice?": "R4 R4 R4",
    "How does it affec ice?": "R4 - -",
    "What affects the tides?": "- R4 R4",
    "Who was affected?": "- - R4",
    "Does stress lead to ulcers?": "R5 R5 R5",
    "Do they lead tours?": "R5 - -",
    "What leads to rust?": "- R5 R5",
    "What led to the war?": "- - R5",
    "What happens if ice melts?": "R6 R6 R6",
    "What happens when ice melts?": "- R6 R6",
    "What will happen when ice melts?": "R6 R6 R6",
    "What happens in the life of Pi?": "R6 - -",
    "What would happen if ice sank?": "- - R6",
    "If ice melts, what might happen?": "R6 R6 R6",
    "What happens in May?": "- - -",
    "What to do if a pipe bursts?": "R7 R7 R7",
    "What to do about a pipe when it bursts?": "- R7 -",
    "What to do in May?": "- - -",
    "A pipe burst: what should be done to it?": "- R7 -",
    "Who wrote Emma?": "- - -",
    "": "- - -",
    "Why does the cause affect what leads to the effects?": "R1+R2+R4 R1+R2+R4+R5 R1+R2+R4+R5",
}


@pytest.mark.parametrize("question", EXAMPLES)
def test_each_reading_matches_the_rules_it_should(question):
    matches = [
        "+".join(match_rules(question, reading)) or "-"
        for reading in ("notebook", "table3", "fixed")
    ]
    assert " ".join(matches) == EXAMPLES[question]


def by_hand(text):
    """The notebook's rules without regular expressions, from its description in words."""

    def after(word):
        """Whether the word stands before a blank, or before one character and a blank."""
        ends = [n + len(word) for n in range(len(text)) if text.startswith(word, n)]
        return any(" " in (text[n : n + 1], text[n + 1 : n + 2]) for n in ends)

    words = text.split(" ")
    why = (
        text.startswith("why")
        or (text.startswith(("if", "when")) and "why " in text)
        or " and why " in text
    )
    inner = range(1, len(words) - 3)  # where two more words follow and then a blank
    why = why or any(
        words[n : n + 2] == ["why", "is"] or words[n : n + 3 : 2] == ["is", "why"] for n in inner
    )
    happens = any(
        what in text and ("if" in text or (when and "when" in text))
        for what, when in (
            ("what happens", False),
            ("what will happen", True),
            ("what might happen", True),
        )
    )
    begun = ("what to do", "what should be done")
    matches = {
        "R1": why,
        "R2": after(" cause")
        or "because of what" in text
        or (text.startswith("cause") and " " in text[5:7]),
        "R3": "how come " in text or "how did " in text,
        "R4": ("dopplar" not in text and after("effect"))
        or " affec " in text
        or " affect " in text,
        "R5": " lead to" in text,
        "R6": happens,
        "R7": text.startswith(
            tuple(f"{what} {link} " for what in begun for link in ("if", "when", "to"))
        ),
    }
    return tuple(name for name, is_match in matches.items() if is_match)


PIECES = (
    "why if when and is cause caused causes because of what how come did "
    "somehow effect effects affect affec"
).split()
PIECES += (
    "dopplar doppler lead to tools happens will might happen life do should be done x the led "
    "would leads causes"
).split()


@given(st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join))
def test_the_notebook_patterns_agree_with_plain_string_search_and_the_shortcut_loses_no_match(text):
    assert match_rules(text) == by_hand(text)
    for reading, rules in RULES.items():
        matches = tuple(
            name for name, rule in rules.items() if rule.search(normalize_question(text))
        )
        assert match_rules(text, reading) == matches


def test_a_text_is_lower_case_letters_and_digits_and_may_be_long():
    assert normalize_question("  What's THE  Café-effect, №5? Ёж! ") == "what s the caf effect 5 ёж"
    # seconds, were any pattern quadratic
    long = "what happens what to do why is effect cause lead " * 4_000
    assert all(match_rules(long, reading) for reading in ("notebook", "table3", "fixed"))
    with pytest.raises(
        IfqaError, match="unknown reading of the rules 'table4'; did you mean 'table3'"
    ):
        match_rules("why?", "table4")
