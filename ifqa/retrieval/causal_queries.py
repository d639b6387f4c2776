"""Causal questions without their asking words: what is left is what the question states, a cause or an effect.

"Why did Rome fall?" states an effect, "Rome fall", and seeks its cause. "What is the effect of salt on ice?" states a cause,
"salt on ice". The passage to be found need not say "why" or "effect". The forms are those of the seven rules of
Webis-CausalQA-22 (Bondarenko et al., COLING 2022, Table 3; aclanthology.org/2022.coling-1.291).
"""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

_BE = r"(?:is|are|was|were)\b"
_AUX = rf"(?:{_BE}|do|does|did|has|have|had|can|could|will|would|may|might|must|should)\b(?!['’])"
_AUXES = rf"(?: {_AUX}){{0,2}}"
_NOUN = rf"(?: (?!{_AUX})[\w’'-]+){{1,5}}"
_START = r"(?:^\W*|(?<=[,;:.?!] )|(?<=\band ))"
_KIND = (
    r"(?:(?:the|an?|some|one|of|most|more|main|primary|leading|major|chief|principal|common|likely|possible|probable|immediate"
    r"|direct|root|underlying|real|actual|side|long|short|term|negative|positive|adverse|harmful|worst) )*"
)


class Form(NamedTuple):
    """A form of asking: the words that open it and, if it goes around what is stated, the words that close it."""

    rule: str
    seeks: Literal["cause", "effect", "remedy"]
    opening: str
    closing: str = ""


#: Of forms that begin at the same word the first counts: "How did X affect Y?" seeks an effect, though R3's "how did" fits.
FORMS = (
    Form("R7", "remedy", r"^\W*what (?:to do|should be done) (?:if|when|to)\b"),
    Form(
        "R6",
        "effect",
        _START + r"what (?:happens|(?:will|would|might) happen)\b(?: to\b)?",
        r"\b(?:if|when)\b",
    ),
    Form("R6", "effect", r"^\W*(?:if|when)\b", r"\bwhat (?:happens|(?:will|would|might) happen)\b(?: to\b)?"),
    Form("R4", "effect", rf"{_START}(?:what(?:['’]s| {_AUX}) )?{_KIND}effects? (?:of|on)\b"),
    Form("R4", "effect", rf"{_START}(?:what|which) {_KIND}effects? {_AUX}", r"\bhave\b"),
    Form("R4", "effect", rf"{_START}how {_AUX}", r"\b(?:affect|affected by)\b"),
    Form("R4", "effect", rf"{_START}(?:what|which)\b(?! {_BE}){_AUXES}", r"\baffect\W*$"),
    Form("R4", "cause", rf"{_START}what{_AUXES} affect(?:s|ed)?\b"),
    Form("R5", "cause", rf"{_START}what{_AUXES} (?:leads?|led) to\b"),
    Form("R5", "effect", rf"{_START}what {_AUX}", r"\blead to\b"),
    Form("R5", "cause", rf"{_START}(?:what|which)(?={_NOUN} (?:leads?|led) to\b)", r"\b(?:leads?|led) to\b"),
    Form("R2", "cause", rf"{_START}(?:what(?:['’]s| {_AUX}) )?{_KIND}causes? (?:of|for|behind)\b"),
    Form("R2", "cause", rf"{_START}what{_AUXES} cause[sd]?\b"),
    Form("R2", "cause", rf"{_START}because of what\b(?: {_AUX})?"),
    Form("R2", "cause", r"\bcaused by what\b"),
    Form("R2", "cause", rf"{_START}what {_AUX}", r"\bcaused by\b"),
    Form("R2", "effect", rf"{_START}(?:what|which)\b(?! {_BE}){_AUXES}", r"\bcause\W*$"),
    Form("R2", "cause", rf"{_START}(?:what|which)(?={_NOUN} cause[sd]?\b)", r"\bcause[sd]?\b"),
    Form("R3", "cause", rf"{_START}how (?:come|did)\b(?!['’])"),
    Form("R1", "cause", rf"{_START}why\b(?: (?:is|was) it that\b| {_AUX}|['’]s\b)?"),
)
_COMPILED = [(form, re.compile(form.opening, re.I), re.compile(form.closing, re.I)) for form in FORMS]

#: What is sought -> words that passages join a cause and its effect with, on the side that is sought.
CONNECTIVES = {
    "cause": "because due to caused by led to",
    "effect": "leads to results in causes effect",
    "remedy": "treated by prevented by should",
}


@dataclass(frozen=True)
class Asked:
    """What a question states, and what it seeks: "cause", "effect", "remedy", or "" for a question of no known form."""

    stated: str
    seeks: str
    rule: str = ""


def asked(text: str) -> Asked:
    """What a causal question states, in its own words and their order; the whole text if it has none of the forms.

    Where several forms fit, the one that begins first counts. A form whose words are all of the text does not: "Why?" stays.
    """
    found, start = Asked(text, ""), len(text)
    for form, opening, closing in _COMPILED:
        if not (first := opening.search(text)) or first.start() >= start:
            continue
        if second := closing.search(text, first.end()):
            parts = (text[: first.start()], text[first.end() : second.start()], text[second.end() :])
            stated = " ".join(" ".join(parts).split()).rstrip("? ")
            if re.search(r"\w", stated):
                found, start = Asked(stated, form.seeks, form.rule), first.start()
    return found


def with_connectives(text: str) -> str:
    """What a causal question states, then the connectives of what it seeks; another question as it is."""
    found = asked(text)
    return f"{found.stated} {CONNECTIVES[found.seeks]}" if found.seeks else text
