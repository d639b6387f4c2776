"""Counts of a split's questions: lengths, answers, kinds of answers, question words, gold passages.

Words are split at white space, as in all lengths. The IfQA paper (Tables 1 and 2) annotated the kinds of answers by hand. The
release does not have these annotations, so `answer_type` uses a rule instead.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ifqa.records import Question
from ifqa.report.stats.forms import forms
from ifqa.scoring.measures.answer_recall import ceiling
from ifqa.scoring.measures.normalize import normalize
from ifqa.scoring.measures.numeric import is_numeric

TYPES = ("entity", "number", "date", "other")
QUESTION_WORDS = ("what", "who", "which", "how many", "when", "where", "how", "why", "none")
PLACES = ("first", "preposition", "later", "none")
SUBSETS = ("all", "numeric", "other")

_WH = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how)\b(?: (?:many|much)\b)?", re.IGNORECASE)
_SAME = {"whom": "who", "whose": "who", "how much": "how many"}
_LEAD = re.compile(r"(?:and |or )?(?:[a-z]+ )?(?:in(?:to)?|on(?:to)?|at|by|for|from|to|towards?|with|under|of|until|after|before|"
                   r"between|against|during|through|since|within|over|about|among|as|than) ", re.IGNORECASE)  # fmt: skip

_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_DATE_LIKE = re.compile(
    rf"\b{_MONTH}\b|\b[0-9]{{2,4}}['’]?s\b|\bcentur(?:y|ies)\b|\bdecade\b|\b[0-9]+ (?:bc|ad|bce|ce)\b"
)
_YEARS = re.compile(r"(?:[a-z]+[ -])*(?:1[0-9]{3}|20[0-9]{2})(?:\s?[-–/]\s?[0-9]{1,4})?")
_ASKS_AMOUNT = re.compile(r"\bhow (?:many|much|long|old|far)\b|\bnumber of\b", re.IGNORECASE)
_ASKS_TIME = re.compile(
    r"\bwhen\b|\b(?:what|which)(?: [\w-]+)? (?:years?|dates?|months?|days?|decades?|century|time|season)\b",
    re.IGNORECASE,
)
_LINKS = frozenset("of the a an and in on at for to de la le du da del der van von with or from by & - vs. vs".split())


@dataclass(frozen=True)
class QuestionStats:
    """Counts of a split's questions. A histogram maps a number of words to how many texts have it.

    Attributes:
        questions: number of questions, repeated ones included.
        question_words, answer_words, passage_words: histograms of the questions, of their first answers, and of the distinct
            gold passages.
        vocabulary: number of distinct words of the questions, lower-cased, with their punctuation.
        types: the first answers by `answer_type`.
        asked: the questions by the question word of their main clause. "how many" includes "how much"; "who" includes
            "whom" and "whose"; "none" is a question for yes or no, or one that asks with a verb.
        places: the place of that word in the main clause: first, after a preposition ("in which"), later, or none.
        several_answers: questions with several answers that differ after normalisation.
        several_meanings: questions with several answers that are not `forms` of one another.
        yes_no: questions with the answer yes or no.
        numeric: questions whose answers are numbers or dates (`is_numeric`).
        several_passages: questions with more than one gold passage.
        in_gold: subset -> (questions with a gold passage that holds an answer, questions with gold passages), for all,
            numeric and other questions; the share is the ceiling of answer recall.
    """

    questions: int
    question_words: Mapping[int, int]
    answer_words: Mapping[int, int]
    passage_words: Mapping[int, int]
    vocabulary: int
    types: Mapping[str, int]
    asked: Mapping[str, int]
    places: Mapping[str, int]
    several_answers: int
    several_meanings: int
    yes_no: int
    numeric: int
    several_passages: int
    in_gold: Mapping[str, tuple[int, int]]


def count(questions: Sequence[Question], main_clauses: Sequence[str]) -> QuestionStats:
    """Count the questions of a split.

    Args:
        questions: the questions of the split.
        main_clauses: the main clause of each question, without its if-clause.
    """
    answered = [
        (question, clause) for question, clause in zip(questions, main_clauses, strict=True) if question.answers
    ]
    asked = [question_word(clause) for clause in main_clauses]
    passages = {text for question in questions for text in question.gold_passages}
    annotated = [question for question in questions if question.gold_passages]
    held = {kind: [ceiling(question) for question in annotated if kind in _subsets(question)] for kind in SUBSETS}
    return QuestionStats(
        questions=len(questions),
        question_words=_lengths(question.text for question in questions),
        answer_words=_lengths(question.answers[0] for question, _ in answered),
        passage_words=_lengths(passages),
        vocabulary=len({word for question in questions for word in question.text.lower().split()}),
        types=_counts(TYPES, (answer_type(question, clause) for question, clause in answered)),
        asked=_counts(QUESTION_WORDS, (word for word, _ in asked)),
        places=_counts(PLACES, (place for _, place in asked)),
        several_answers=sum(len(set(map(normalize, question.answers))) > 1 for question in questions),
        several_meanings=sum(meanings(question.answers) > 1 for question in questions),
        yes_no=sum(any(normalize(answer) in ("yes", "no") for answer in question.answers) for question in questions),
        numeric=sum(is_numeric(question.answers) for question in questions),
        several_passages=sum(len(question.gold_passages) > 1 for question in questions),
        in_gold={kind: (int(sum(values)), len(values)) for kind, values in held.items()},
    )


def shared(questions_by_split: Mapping[str, Sequence[Question]]) -> dict[str, dict[str, int]]:
    """The number of distinct questions that two splits share, compared after normalisation: split -> split -> count.

    A split with itself gives its number of distinct questions. A model must not be tested on questions of its training:
    IfQA's full-train has 903 of the 1,594 distinct questions of few-dev.
    """
    texts = {
        split: {normalize(question.text) for question in questions} for split, questions in questions_by_split.items()
    }
    return {one: {other: len(own & theirs) for other, theirs in texts.items()} for one, own in texts.items()}


def answer_type(question: Question, main_clause: str) -> str:
    """The kind of a question's answers, one of TYPES, by a rule that replaces the IfQA paper's annotation.

    `is_numeric` separates numbers and dates from the rest. A date has a month, a decade, a century or a year, or answers
    "when" or "which year"; if the question asks for an amount ("how many"), only an answer with a month is a date. An
    entity is a name: every word of the first answer, except "of" and the like, begins with a capital or a digit. If a gold
    passage holds the answer, its capitals count, because annotators wrote both "Platinum" and "platinum". Yes, no and
    everything else ("house arrest") are "other".

    Raises:
        IndexError: the question has no answers.
    """
    first = question.answers[0]
    if is_numeric(question.answers):
        return "date" if any(_is_date(answer, main_clause) for answer in question.answers) else "number"
    if normalize(first) in ("yes", "no"):
        return "other"
    return "entity" if _is_name(_as_written(first, question.gold_passages)) else "other"


def _is_date(answer: str, main_clause: str) -> bool:
    lowered = answer.lower()
    if _ASKS_AMOUNT.search(main_clause):
        return re.search(rf"\b{_MONTH}\b", lowered) is not None
    dated = _DATE_LIKE.search(lowered) or _YEARS.fullmatch(lowered) or _ASKS_TIME.search(main_clause)
    return dated is not None


def _as_written(answer: str, passages: Sequence[str]) -> str:
    """The answer with the capitals of its first place in a passage; unchanged if no passage holds it."""
    pattern = re.compile(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", re.IGNORECASE)
    found = next(filter(None, map(pattern.search, passages)), None)
    return found[0] if found else answer


def _is_name(text: str) -> bool:
    words = [bare for word in text.split() if (bare := word.strip("\"'“”‘’().,;:!?")) and bare not in _LINKS]
    return bool(words) and all(word[0].isupper() or word[0].isdigit() for word in words)


def question_word(main_clause: str) -> tuple[str, str]:
    """The first question word of a main clause, one of QUESTION_WORDS, and its place, one of PLACES.

    "in which year would it" -> ("which", "preposition"); "would it have sunk" -> ("none", "none").
    """
    found = _WH.search(main_clause)
    if not found:
        return "none", "none"
    word, before = found[0].lower(), main_clause[: found.start()].strip("\"'“”‘’., ")
    place = "first" if not before else "preposition" if _LEAD.fullmatch(f"{before} ") else "later"
    word = _SAME.get(word, word)
    return (word if word in QUESTION_WORDS else word.split()[0]), place


def meanings(answers: Sequence[str]) -> int:
    """The number of different answers; answers with a normalised form in common are the same: ("2", "two") is 1.

    If one answer contains another ("Rasputin", "Grigori Rasputin"), they are two; the paper may have counted them as one.
    """
    parents: dict[str, str] = {}  # a form -> another of the same meaning, or itself; a tree for each meaning

    def root(form: str) -> str:
        while parents.setdefault(form, form) != form:
            parents[form] = form = parents[parents[form]]
        return form

    for answer in answers:
        own = [normalize(form) for form in forms(answer)]
        for form in own:
            parents[root(form)] = root(own[0])
    return sum(form == parent for form, parent in parents.items())


def _subsets(question: Question) -> tuple[str, str]:
    return "all", "numeric" if is_numeric(question.answers) else "other"


def _lengths(texts: Iterable[str]) -> dict[int, int]:
    return dict(sorted(Counter(len(text.split()) for text in texts).items()))


def _counts(names: Sequence[str], found: Iterable[str]) -> dict[str, int]:
    counts = Counter(found)
    return {name: counts[name] for name in names}
