"""Drafts: questions that a language model writes about a passage, and the reasons to reject one.

A draft that is not even a question, or that gives its answer away, is dropped before anybody is
asked it.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ifqa.clauses import split_question
from ifqa.corpus.sentences import sentence_span
from ifqa.formatting import CONTROLS, is_formula
from ifqa.prompting.parsing import ParsedAnswer
from ifqa.prompting.quotes import find_quote
from ifqa.records import Passage
from ifqa.scoring.measures.exact_match import contains, f1

Kind = Literal["plain", "counterfactual", "unanswerable"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: Why a draft is dropped, as it is counted; "" if it is kept.
Flaw = Literal[
    "",
    "the model wrote none",
    "no question",
    "it speaks of the passage",
    "it was asked before",
    "it supposes nothing",
    "no answer, or a long one",
    "it contains its answer",
    "its sentence is not in the passage",
    "its answer is not in its sentence",
    "the supposition changes nothing",
    "asked again, the model answers otherwise",
    "another passage, without the answer, gives it",
    "the documents answer it",
]

_FEWEST_WORDS = 4  # of a question
_MOST_WORDS = 60
_LONGEST_ANSWER = 12  # words
_CLOSEST = 0.5  # F1 of two answers that are the same in other words
_PLACE = r"(?:passage|text|excerpt|paragraph|snippet|quote|sentence)s?"
_OF_PASSAGE = re.compile(
    rf"\b(?:the|this|that|these|given|above) (?:\w+ )?{_PLACE}\b"
    r"|\b(?:this|according to the|in the) (?:document|article)\b"
    r"|\b(?:the document|the article) (?:say|state|mention|describe|does)s?\b"
    r"|\b(?:mentioned|described|stated|said|given) above\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that a language model has written about a passage.

    Attributes:
        kind: what kind of question was asked for.
        passage: the passage.
        question: the question; empty if the model wrote none.
        answers: the forms of its answer; none for an unanswerable question.
        sentence: start and end, in the passage, of the sentence that it rests on; (0, 0) if the
            model names none.
        flaw: why it is dropped; empty as long as nothing speaks against it.
    """

    kind: Kind
    passage: Passage
    question: str = ""
    answers: tuple[str, ...] = ()
    sentence: tuple[int, int] = (0, 0)
    flaw: Flaw = ""

    @property
    def sentence_text(self) -> str:
        start, end = self.sentence
        return self.passage.text[start:end]


def read_draft(kind: Kind, passage: Passage, parsed: ParsedAnswer) -> Draft:
    """The draft that a completion of the prompt `draft-KIND` has, with its flaw if it has one."""
    if parsed.problem:
        return Draft(kind, passage, flaw="the model wrote none")
    draft = Draft(
        kind,
        passage,
        parsed.question,
        (parsed.answer,) if parsed.answer else (),
        _quoted_sentence(parsed.quote, passage),
    )
    flaw = _flaw_of_question(draft) or _flaw_of_answer(draft, parsed.factual)
    return replace(draft, flaw=flaw)


def same_answer(first: str, second: str) -> bool:
    """Whether two answers are the same, up to a few more words in one of them."""
    one_in_other = contains(first, [second]) or contains(second, [first])
    return bool(one_in_other) and f1(first, [second]) >= _CLOSEST


def _quoted_sentence(quote: str, passage: Passage) -> tuple[int, int]:
    """Start and end of the sentence of the passage that a quote is from; (0, 0) if it is not."""
    found = find_quote(quote, [passage])
    if found.outcome != "exact":
        return 0, 0
    [place] = found.places
    return sentence_span(passage.text, place.start, place.end)


def _flaw_of_question(draft: Draft) -> Flaw:
    question = draft.question
    words = len(question.split())
    if not question.endswith("?") or not _FEWEST_WORDS <= words <= _MOST_WORDS:
        return "no question"
    if CONTROLS.search(question) or is_formula(question):
        return "no question"
    if _OF_PASSAGE.search(question):
        return "it speaks of the passage"
    if draft.kind == "counterfactual" and not split_question(question).presupposition:
        return "it supposes nothing"
    return ""


def _flaw_of_answer(draft: Draft, factual: str) -> Flaw:
    """What speaks against the answer; `factual` is that in the real world."""
    if draft.kind == "unanswerable":
        return "the documents answer it" if draft.answers else ""
    if not draft.answers:
        return "no answer, or a long one"
    [answer] = draft.answers
    if CONTROLS.search(answer) or is_formula(answer) or len(answer.split()) > _LONGEST_ANSWER:
        return "no answer, or a long one"
    if contains(draft.question, [answer]):
        return "it contains its answer"
    if not draft.sentence_text:
        return "its sentence is not in the passage"
    if draft.kind == "plain" and not contains(draft.sentence_text, [answer]):
        return "its answer is not in its sentence"
    if factual and same_answer(answer, factual):
        return "the supposition changes nothing"
    return ""
