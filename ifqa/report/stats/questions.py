"""Statistics of a benchmark's questions by split, beside the IfQA paper's Tables 1 and 2; and questions that splits share.

Words are split at white space, as in all lengths. The paper annotated the kinds of answers by hand. The release does not have
these annotations, so `answer_type` uses a rule instead. Nothing is tuned on these numbers, so test splits may be counted as well.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from ifqa.errors import IfqaError, unknown
from ifqa.plugins import open_benchmark
from ifqa.protocols import Benchmark
from ifqa.records import Question
from ifqa.report.stats import summary
from ifqa.report.table import Table
from ifqa.retrieval.queries import split_question
from ifqa.scoring.measures.answer_recall import ceiling
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.measures.numeric import is_numeric

TYPES = ("entity", "number", "date", "other")
QUESTION_WORDS = ("what", "who", "which", "how many", "when", "where", "how", "why", "none")
SUBSETS = ("all", "numeric", "other")

_WH = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how)\b(?: (?:many|much)\b)?", re.IGNORECASE)
_SAME = {"whom": "who", "whose": "who", "how much": "how many"}

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


#: The IfQA paper's values (Yu et al., EMNLP 2023, arXiv text). Its splits are not the release's: 2,401/701/701 and
#: 200/1,302/1,301 questions. Table 2, by split; Table 1, in percent of all questions.
PAPER_SIZES: dict[str, dict[str, float]] = {
    "full-train": {"questions": 2401, "question_words": 22.05, "answer_words": 1.81, "vocabulary": 11164},
    "full-dev": {"questions": 701, "question_words": 22.42, "answer_words": 1.80, "vocabulary": 4524},
    "full-test": {"questions": 701, "question_words": 22.12, "answer_words": 1.81, "vocabulary": 4580},
    "few-train": {"questions": 200, "question_words": 21.65, "answer_words": 1.87, "vocabulary": 1665},
    "few-dev": {"questions": 1302, "question_words": 21.82, "answer_words": 1.83, "vocabulary": 7199},
    "few-test": {"questions": 1301, "question_words": 22.34, "answer_words": 1.80, "vocabulary": 10911},
}
PAPER_SHARES: dict[str, dict[str, float]] = {
    "types": {"entity": 49.7, "number": 15.9, "date": 14.5, "other": 19.9},
    "asked": {"what": 51.7, "who": 14.6, "which": 10.1, "how many": 12.0, "when": 5.1, "where": 3.5},
    "answers": {"several": 11.2, "in_gold": 75.1},
}


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
        several_answers: questions with several answers that differ after normalisation.
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
    several_answers: int
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
        asked=_counts(QUESTION_WORDS, map(question_word, main_clauses)),
        several_answers=sum(len(set(map(normalize, question.answers))) > 1 for question in questions),
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


def question_word(main_clause: str) -> str:
    """The first question word of a main clause, one of QUESTION_WORDS: "in which year would it" -> "which"."""
    match = _WH.search(main_clause)
    if not match:
        return "none"
    word = _SAME.get(match[0].lower(), match[0].lower())
    return word if word in QUESTION_WORDS else word.split()[0]


def _subsets(question: Question) -> tuple[str, str]:
    return "all", "numeric" if is_numeric(question.answers) else "other"


def _lengths(texts: Iterable[str]) -> dict[int, int]:
    return dict(sorted(Counter(len(text.split()) for text in texts).items()))


def _counts(names: Sequence[str], found: Iterable[str]) -> dict[str, int]:
    counts = Counter(found)
    return {name: counts[name] for name in names}


@dataclass(frozen=True)
class Measured:
    """The counts of each split, the number of questions that each two splits share, and whether the paper has them."""

    benchmark: str
    splits: Mapping[str, QuestionStats]
    shared: Mapping[str, Mapping[str, int]]

    @property
    def in_paper(self) -> bool:
        return self.benchmark == "ifqa"


def measure(benchmark: str, splits: Sequence[str] = ()) -> Measured:
    """Count a benchmark's questions.

    Args:
        benchmark: name of the benchmark.
        splits: its splits to count; empty for all whose files are there.

    Raises:
        IfqaError: a split is unknown, its file is missing, or it has the wrong format.
    """
    source = open_benchmark(benchmark)
    if wrong := next((split for split in splits if split not in source.splits), None):
        raise unknown(f"split of {benchmark}", wrong, source.splits)
    chosen = splits or [split for split in source.splits if _is_there(source, split)]
    if not chosen:
        raise IfqaError(f"{benchmark}: none of its splits is in {source.folder}; run: ifqa data {benchmark}")
    questions = {split: source.questions(split) for split in chosen}
    stats = {
        split: count(own, [split_question(question.text).question for question in own])
        for split, own in questions.items()
    }
    return Measured(benchmark, stats, shared(questions))


def _is_there(benchmark: Benchmark, split: str) -> bool:
    try:
        return bool(benchmark.files(split))
    except IfqaError:
        return False


def stats_json(measured: Measured) -> dict[str, object]:
    """The statistics as JSON data: counts, their shares in percent, and the paper's values."""
    splits: dict[str, dict[str, object]] = {}
    for split, own in measured.splits.items():
        lengths = {
            "question_words": summary(own.question_words),
            "answer_words": summary(own.answer_words),
            "passage_words": summary(own.passage_words),
        }
        in_gold = {kind: _held(own, kind) for kind in SUBSETS}
        shares = {**_shares(own), "answers": _answers(own), "in_gold": in_gold}
        splits[split] = {**asdict(own), "means": lengths, "percent": shares}
    found: dict[str, object] = {"benchmark": measured.benchmark, "splits": splits, "shared": measured.shared}
    if measured.in_paper:
        found["paper"] = {"sizes": PAPER_SIZES, "percent": PAPER_SHARES}
    return found


def _percent(of: Iterable[int], counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(of)
    return {name: 100 * number / total if total else 0.0 for name, number in counts.items()}


def _answers(own: QuestionStats) -> dict[str, float]:
    """Shares of questions, in percent."""
    counts = {
        "several_answers": own.several_answers,
        "several_passages": own.several_passages,
        "yes_no": own.yes_no,
        "numeric": own.numeric,
    }
    return _percent([own.questions], counts)


def _shares(own: QuestionStats) -> dict[str, dict[str, float]]:
    """Shares in percent of the kinds of answers, and of the question words."""
    return {name: _percent(counts.values(), counts) for name, counts in (("types", own.types), ("asked", own.asked))}


def _held(own: QuestionStats, kind: str) -> float | None:
    """The share of questions whose gold passages hold an answer, in percent; None if no question has gold passages."""
    held, of = own.in_gold[kind]
    return 100 * held / of if of else None


def tables(measured: Measured) -> Iterator[Table]:
    """The statistics as tables that fit 80 columns, with the paper's values below ours."""
    by_hand = "; the paper annotated" if measured.in_paper else ""
    yield _sizes_table(measured)
    yield _shares_table(measured, f"What the answer is, in %: by rule{by_hand}", "types", TYPES)
    yield _answers_table(measured)
    yield _shares_table(measured, "The question word of the main clause, in %", "asked", QUESTION_WORDS)
    rows = tuple((split, *(f"{number:,}" for number in row.values())) for split, row in measured.shared.items())
    title = "Distinct questions that stand in both splits, word for word"
    note = "A split with itself: its distinct questions. Do not test on what was trained on."
    yield Table(title, note, ("", *measured.splits), rows)


def _sizes_table(measured: Measured) -> Table:
    rows: list[tuple[str, ...]] = []
    for split, own in measured.splits.items():
        means = [summary(sizes).get("mean") for sizes in (own.question_words, own.answer_words, own.passage_words)]
        question, answer, passage = ("-" if mean is None else f"{mean:.2f}" for mean in means)
        passages = sum(own.passage_words.values())
        whole = _cell(100 * own.passage_words.get(100, 0) / passages if passages else None, "%")
        counts = (f"{own.vocabulary:,}", f"{passages:,}", passage, whole)
        rows.append((split, f"{own.questions:,}", question, answer, *counts))
        if measured.in_paper and split in PAPER_SIZES:
            paper = PAPER_SIZES[split]
            lengths = [f"{paper[name]:.2f}" for name in ("question_words", "answer_words")]
            rows.append(("  paper", f"{paper['questions']:,}", *lengths, f"{paper['vocabulary']:,}", "", "", ""))
    columns = ("", "questions", "words", "answer", "vocabulary", "passages", "words", "of 100 words")
    return Table(f"{measured.benchmark}: sizes, words on average", "", columns, tuple(rows), published="paper")


def _cell(share: float | None, sign: str = "") -> str:
    return "-" if share is None else f"{share:.1f}{sign}"


def _shares_table(measured: Measured, title: str, what: str, names: Sequence[str]) -> Table:
    rows = [(split, *map(_cell, _shares(own)[what].values())) for split, own in measured.splits.items()]
    if measured.in_paper and what in PAPER_SHARES:
        rows.append(("paper, all", *(_cell(PAPER_SHARES[what].get(name)) for name in names)))
    return Table(title, "", ("", *names), tuple(rows), published="paper")


def _answers_table(measured: Measured) -> Table:
    rows = [
        (split, *map(_cell, [*_answers(own).values(), *(_held(own, kind) for kind in SUBSETS)]))
        for split, own in measured.splits.items()
    ]
    if measured.in_paper:
        paper = PAPER_SHARES["answers"]
        rows.append(("paper, all", _cell(paper["several"]), *"---", _cell(paper["in_gold"]), *"--"))
    note = (
        "several: more than one answer. in gold: a gold passage holds an answer (the\n"
        "ceiling of answer recall); then the same of numeric and of other questions."
    )
    columns = ("", "several", "passages", "yes/no", "numeric", "in gold", "numeric", "other")
    return Table("Answers and gold passages, in %", note, columns, tuple(rows), published="paper")
