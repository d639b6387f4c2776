"""Rewrites a question as a retriever's query: a clause, the question with its names repeated, or a
causal question's statement.

A counterfactual question supposes something false, but passages state facts: `ifqa.clauses` splits
it. "Why did Rome fall?" states an effect, "Rome fall", and seeks its cause; the passage need not
say "why". The rules are regular expressions, without a parser or a model.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ifqa.clauses import AUXILIARY, CONJUNCTION, WH, split_question
from ifqa.errors import unknown_name
from ifqa.records import Question

VERSION = 1  # raise this when a rule changes

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)? )?{_MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,? "
    rf"\d{{4}})?\b(?<=\d)|\d{{1,2}} {_MONTH}\b"
)
_NUMBER = r"[$€£]?\d(?:[\w.,:/–-]*\w)?%?"
_CAPITAL = (
    r"(?:(?:[A-Z]\.)+(?= [A-Z])|(?:[A-Z]\.){2,}|(?:Mrs?|Dr|St|Jr|Sr)\."
    r"|[^\W\d_a-z](?:[\w&.’'/–-]*\w)?)"
)
_LINK = r"(?:of|de|del|der|di|du|da|la|le|van|von|the|al|bin|y|&)"
_NAME = rf"{_CAPITAL}(?:(?: {_LINK}){{0,2}} (?:{_CAPITAL}|\d+\b(?!,)))*"
_TITLE = r"(?<!\w)[\"“](?=[A-Z\d])(?P<title>[^\"“”]{2,60}?),?[\"”]"
_TERM = re.compile(rf"{_TITLE}|(?<![\w$])(?:{_DATE}|{_NUMBER}|{_NAME})")
_SENTENCE_END = re.compile(r"\w\w[.?!][\"”’']?\s")
_NO_NAME = (
    r"(?i:(?!may \d)"
    r"(?:an?|after|and|as|at|before|but|by|each|every|for|from|he|her|his|i|in|it|its|my|no"
    r"|of|on|once|one|our|she"
    r"|since|the|their|these|they|this|those|until|we|while|with|you|your|according"
    rf"|{CONJUNCTION}|{WH}|{AUXILIARY})(?: |$))"
)


def content_terms(text: str) -> list[str]:
    """The distinct names, quoted titles, dates and numbers of a text, in order, for boosting in a
    keyword search.

    A name of several words is a single term, and so is a date. A sentence's first word counts as a
    name only if a capitalised word follows, if it has another capital or a digit, or if it is
    capitalised again later.
    """
    terms: dict[str, None] = {}
    last_positions = {match[0]: match.start() for match in re.finditer(r"(?<=[\w,] )\w+", text)}
    position = 0
    while match := _TERM.search(text, position):
        position = match.end()
        is_first = not match["title"] and _opens_sentence(text, match.start())
        if is_first and (lead := re.match(_NO_NAME, match[0])):
            position = match.start() + lead.end()  # "If Ann", "The mill"
            continue
        name = re.sub(r"['’]s?$", "", match["title"] or match[0])
        uncertain = is_first and re.fullmatch(r"\w[^\W\dA-Z_]*", name)
        recurs = uncertain and last_positions.get(name, 0) >= position + 2
        if name != "I" and not name[0].islower() and (recurs or not uncertain):
            terms[name] = None
    return list(terms)


def _opens_sentence(text: str, start: int) -> bool:
    """Whether a sentence starts at `start`, or at punctuation before it."""
    last = start
    while last and not text[last - 1].isalnum():
        last -= 1
    return not last or _SENTENCE_END.search(text, max(0, last - 2), start) is not None


_BE = r"(?:is|are|was|were)\b"
_AUX = rf"(?:{_BE}|do|does|did|has|have|had|can|could|will|would|may|might|must|should)\b(?!['’])"
_AUXES = rf"(?: {_AUX}){{0,2}}"
_NOUN = rf"(?: (?!{_AUX})[\w’'-]+){{1,5}}"
_START = r"(?:^\W*|(?<=[,;:.?!] )|(?<=\band ))"
_KIND = (
    r"(?:(?:the|an?|some|one|of|most|more|main|primary|leading|major|chief|principal|common"
    r"|likely|possible|probable|immediate"
    r"|direct|root|underlying|real|actual|side|long|short|term|negative|positive|adverse"
    r"|harmful|worst) )*"
)


#: The seven rules of Webis-CausalQA-22 (Bondarenko et al., COLING 2022, Table 3) as forms: rule,
#: what the question seeks, and the patterns before and after the statement. Of forms that start at
#: the same word, the first applies: "How did X affect Y?" seeks an effect, although R3's "how did"
#: matches.
CAUSAL_FORMS = (
    ("R7", "remedy", r"^\W*what (?:to do|should be done) (?:if|when|to)\b", ""),
    (
        "R6",
        "effect",
        rf"{_START}what (?:happens|(?:will|would|might) happen)\b(?: to\b)?",
        r"\b(?:if|when)\b",
    ),
    (
        "R6",
        "effect",
        r"^\W*(?:if|when)\b",
        r"\bwhat (?:happens|(?:will|would|might) happen)\b(?: to\b)?",
    ),
    ("R4", "effect", rf"{_START}(?:what(?:['’]s| {_AUX}) )?{_KIND}effects? (?:of|on)\b", ""),
    ("R4", "effect", rf"{_START}(?:what|which) {_KIND}effects? {_AUX}", r"\bhave\b"),
    ("R4", "effect", rf"{_START}how {_AUX}", r"\b(?:affect|affected by)\b"),
    ("R4", "effect", rf"{_START}(?:what|which)\b(?! {_BE}){_AUXES}", r"\baffect\W*$"),
    ("R4", "cause", rf"{_START}what{_AUXES} affect(?:s|ed)?\b", ""),
    ("R5", "cause", rf"{_START}what{_AUXES} (?:leads?|led) to\b", ""),
    ("R5", "effect", rf"{_START}what {_AUX}", r"\blead to\b"),
    (
        "R5",
        "cause",
        rf"{_START}(?:what|which)(?={_NOUN} (?:leads?|led) to\b)",
        r"\b(?:leads?|led) to\b",
    ),
    ("R2", "cause", rf"{_START}(?:what(?:['’]s| {_AUX}) )?{_KIND}causes? (?:of|for|behind)\b", ""),
    ("R2", "cause", rf"{_START}what{_AUXES} cause[sd]?\b", ""),
    ("R2", "cause", rf"{_START}because of what\b(?: {_AUX})?", ""),
    ("R2", "cause", r"\bcaused by what\b", ""),
    ("R2", "cause", rf"{_START}what {_AUX}", r"\bcaused by\b"),
    ("R2", "effect", rf"{_START}(?:what|which)\b(?! {_BE}){_AUXES}", r"\bcause\W*$"),
    ("R2", "cause", rf"{_START}(?:what|which)(?={_NOUN} cause[sd]?\b)", r"\bcause[sd]?\b"),
    ("R3", "cause", rf"{_START}how (?:come|did)\b(?!['’])", ""),
    ("R1", "cause", rf"{_START}why\b(?: (?:is|was) it that\b| {_AUX}|['’]s\b)?", ""),
)
#: What the question seeks -> words that connect cause and effect in passages.
CONNECTIVES = {
    "cause": "because due to caused by led to",
    "effect": "leads to results in causes effect",
    "remedy": "treated by prevented by should",
}


class CausalForm(NamedTuple):
    """A question's statement, and what it seeks: "cause", "effect", "remedy", or "" without a known
    form.
    """

    statement: str
    seeks: str = ""
    rule: str = ""


def parse_causal_form(text: str) -> CausalForm:
    """The causal form of a question, by the earliest match.

    Without a known form, the whole text is its statement.

    A form that leaves no statement is ignored, so "Why?" stays unchanged.
    """
    best = CausalForm(text)
    start = len(text)
    for rule, seeks, opening, closing in CAUSAL_FORMS:
        if not (first := re.search(opening, text, re.I)) or first.start() >= start:
            continue
        if second := re.compile(closing, re.I).search(text, first.end()):
            parts = (
                text[: first.start()],
                text[first.end() : second.start()],
                text[second.end() :],
            )
            statement = " ".join(" ".join(parts).split()).rstrip("? ")
            if re.search(r"\w", statement):
                best = CausalForm(statement, seeks, rule)
                start = first.start()
    return best


def _add_connectives(text: str) -> str:
    form = parse_causal_form(text)
    return f"{form.statement} {CONNECTIVES[form.seeks]}" if form.seeks else text


QUERIES: dict[str, Callable[[str], str]] = {
    "question": str,
    "presupposition": lambda text: split_question(text).supposition or text,  # "Ann had not left"
    "main": lambda text: split_question(text).question,  # "who would lead?"
    # Doubles the weight of names and numbers in BM25
    "names": lambda text: " ".join([text, *content_terms(text)]),
    "causal": lambda text: parse_causal_form(text).statement,  # "Rome fall" of "Why did Rome fall?"
    "causal-connectives": _add_connectives,  # "Rome fall because due to caused by led to"
    "causal-names": lambda text: " ".join(
        [parse_causal_form(text).statement, *content_terms(text)]
    ),  # "Rome fall Rome"
}


def rewrite_questions(questions: Sequence[Question], query: str) -> list[Question]:
    """The questions with their texts rewritten by a query of `QUERIES`.

    Raises ConfigError for an unknown query.
    """
    if not isinstance(query, str) or query not in QUERIES:
        raise unknown_name("query", query, QUERIES)
    return [replace(question, text=QUERIES[query](question.text)) for question in questions]
