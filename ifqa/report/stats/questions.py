"""Statistics of a benchmark's questions by split, beside the IfQA paper's Tables 1 and 2.

Words are split at white space. The paper's annotations of answer types are not in the release, so
`answer_type` uses a rule. Nothing is tuned on these numbers, so test splits may be counted too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from ifqa.benchmarks.splits import select_splits
from ifqa.clauses import split_question
from ifqa.formatting import one_decimal
from ifqa.plugins import open_benchmark
from ifqa.records import Question
from ifqa.report.table import Table
from ifqa.scoring.measures.answer_recall import ceiling
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.measures.numeric import is_numeric

TYPES = ("entity", "number", "date", "other")
QUESTION_WORDS = ("what", "who", "which", "how many", "when", "where", "how", "why", "none")

_WH = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how)\b(?: (?:many|much)\b)?", re.IGNORECASE
)
_QUESTION_WORD_OF = {"whom": "who", "whose": "who", "how much": "how many"}

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
_DATE = (
    rf"\b{_MONTH}\b|\b[0-9]{{2,4}}['’]?s\b|\bcentur(?:y|ies)\b"
    r"|\bdecade\b|\b[0-9]+ (?:bc|ad|bce|ce)\b"
)
_YEARS = re.compile(r"(?:[a-z]+[ -])*(?:1[0-9]{3}|20[0-9]{2})(?:\s?[-–/]\s?[0-9]{1,4})?")
_ASKS_AMOUNT = re.compile(r"\bhow (?:many|much|long|old|far)\b|\bnumber of\b", re.IGNORECASE)
_ASKS_TIME = re.compile(
    r"\bwhen\b|\b(?:what|which)(?: [\w-]+)? (?:years?|dates?|months?|days?|decades?|century"
    r"|time|season)\b",
    re.IGNORECASE,
)
_NAME_PARTICLES = {
    *(
        "of the a an and in on at for to de la le du da del der van von with or from by & - vs. vs"
    ).split()
}

#: The IfQA paper's values (Yu et al., EMNLP 2023, arXiv text), Tables 2 and 1: "sizes" by split,
#: "percent" of all questions. The paper's splits are not the release's.
PAPER: dict[str, dict[str, dict[str, float]]] = {
    "sizes": {
        "full-train": {
            "questions": 2401,
            "question_words": 22.05,
            "answer_words": 1.81,
            "vocabulary": 11164,
        },
        "full-dev": {
            "questions": 701,
            "question_words": 22.42,
            "answer_words": 1.80,
            "vocabulary": 4524,
        },
        "full-test": {
            "questions": 701,
            "question_words": 22.12,
            "answer_words": 1.81,
            "vocabulary": 4580,
        },
        "few-train": {
            "questions": 200,
            "question_words": 21.65,
            "answer_words": 1.87,
            "vocabulary": 1665,
        },
        "few-dev": {
            "questions": 1302,
            "question_words": 21.82,
            "answer_words": 1.83,
            "vocabulary": 7199,
        },
        "few-test": {
            "questions": 1301,
            "question_words": 22.34,
            "answer_words": 1.80,
            "vocabulary": 10911,
        },
    },
    "percent": {
        "types": {"entity": 49.7, "number": 15.9, "date": 14.5, "other": 19.9},
        "asked": {
            "what": 51.7,
            "who": 14.6,
            "which": 10.1,
            "how many": 12.0,
            "when": 5.1,
            "where": 3.5,
        },
        "answers": {"several": 11.2, "in_gold": 75.1},
    },
}


class SplitCounts(TypedDict):
    questions: int
    vocabulary: int  # distinct words of the questions, lower-cased, with their punctuation
    # Words on average of "question_words" and "answer_words", of first answers; None without any
    means: dict[str, float | None]
    types: dict[str, int]  # first answers by `answer_type`
    asked: dict[str, int]  # questions by `question_word`
    several: int  # questions whose answers differ after normalisation
    #: Questions with an answer in a gold passage, and questions with gold passages. The share is
    #: the gold passages' own answer recall, None without gold passages.
    in_gold: tuple[int, int]
    percent: dict[str, dict[str, float | None]]  # "types", "asked" and "answers", as in `PAPER`


class BenchmarkCounts(TypedDict):
    """The counts of each split, and for IfQA the paper's values."""

    benchmark: str
    splits: dict[str, SplitCounts]
    paper: NotRequired[dict[str, dict[str, dict[str, float]]]]


def measure(benchmark: str, splits: Sequence[str] = ()) -> BenchmarkCounts:
    """Count the questions of a benchmark's splits.

    Without names, of all splits whose files exist.
    """
    source = open_benchmark(benchmark)
    counts: BenchmarkCounts = {
        "benchmark": benchmark,
        "splits": {
            split: count_split(source.questions(split)) for split in select_splits(source, splits)
        },
    }
    if benchmark == "ifqa":
        counts["paper"] = PAPER
    return counts


def count_split(questions: Sequence[Question]) -> SplitCounts:
    clauses = [split_question(question.text).question for question in questions]
    answered = [
        (question, clause)
        for question, clause in zip(questions, clauses, strict=True)
        if question.answers
    ]
    types = _counts(TYPES, (answer_type(question, clause) for question, clause in answered))
    words = _counts(QUESTION_WORDS, map(question_word, clauses))
    several = sum(len(set(map(normalize, question.answers))) > 1 for question in questions)
    ceilings = [ceiling(question) for question in questions if question.gold_passages]
    in_gold = int(sum(ceilings))
    return {
        "questions": len(questions),
        "vocabulary": len(
            {word for question in questions for word in question.text.lower().split()}
        ),
        "means": {
            "question_words": _mean_words([question.text for question in questions]),
            "answer_words": _mean_words([question.answers[0] for question, _ in answered]),
        },
        "types": types,
        "asked": words,
        "several": several,
        "in_gold": (in_gold, len(ceilings)),
        "percent": {
            "types": _percentages(types, sum(types.values())),
            "asked": _percentages(words, sum(words.values())),
            "answers": {
                "several": 100 * several / len(questions) if questions else 0.0,
                "in_gold": 100 * in_gold / len(ceilings) if ceilings else None,
            },
        },
    }


def answer_type(question: Question, main_clause: str) -> str:
    """The type of a question's answers, one of TYPES, by a rule in place of the IfQA paper's
    annotation.

    `is_numeric` separates numbers and dates from the rest. A date has a month, a decade, a century
    or a year, or answers "when" or "which year"; if the question asks for an amount ("how many"),
    only an answer with a month is a date. An entity is a name: every word of the first answer,
    except "of" and the like, begins with a capital or a digit. Capitals are those of the gold
    passage that holds the answer, because annotators wrote both "Platinum" and "platinum". Yes, no
    and all the rest are "other".
    """
    first = question.answers[0]
    if is_numeric(question.answers):
        return (
            "date"
            if any(_is_date(answer.lower(), main_clause) for answer in question.answers)
            else "number"
        )
    pattern = re.compile(rf"(?<!\w){re.escape(first.strip())}(?!\w)", re.IGNORECASE)
    written = next(
        (match[0] for match in map(pattern.search, question.gold_passages) if match), first
    )
    words = [word.strip("\"'“”‘’().,;:!?") for word in written.split()]
    names = [word for word in words if word and word not in _NAME_PARTICLES]
    is_name = bool(names) and all(word[0].isupper() or word[0].isdigit() for word in names)
    return "entity" if is_name and normalize(first) not in ("yes", "no") else "other"


def _is_date(answer: str, main_clause: str) -> bool:
    if _ASKS_AMOUNT.search(main_clause):
        return re.search(rf"\b{_MONTH}\b", answer) is not None
    return bool(
        re.search(_DATE, answer) or _YEARS.fullmatch(answer) or _ASKS_TIME.search(main_clause)
    )


def question_word(main_clause: str) -> str:
    """The first question word of a main clause, one of QUESTION_WORDS: "in which year would it" ->
    "which".

    "how many" includes "how much", "who" includes "whom" and "whose"; "none" is a question without
    a question word, such as a yes-no question.
    """
    match = _WH.search(main_clause)
    if not match:
        return "none"
    word = _QUESTION_WORD_OF.get(match[0].lower(), match[0].lower())
    return word if word in QUESTION_WORDS else word.split()[0]


def _mean_words(texts: Sequence[str]) -> float | None:
    return sum(len(text.split()) for text in texts) / len(texts) if texts else None


def _counts(names: Sequence[str], labels: Iterable[str]) -> dict[str, int]:
    counts = Counter(labels)
    return {name: counts[name] for name in names}


def _percentages(counts: Mapping[str, int], total: int) -> dict[str, float | None]:
    return {name: 100 * number / total if total else 0.0 for name, number in counts.items()}


def tables(counts: BenchmarkCounts) -> Iterator[Table]:
    """The statistics as tables that fit 80 columns, with the paper's values below ours."""
    paper = counts.get("paper")
    splits = counts["splits"]
    rows: list[tuple[str, ...]] = []
    for split, part in splits.items():
        means = ["-" if mean is None else f"{mean:.2f}" for mean in part["means"].values()]
        rows.append((split, f"{part['questions']:,}", *means, f"{part['vocabulary']:,}"))
        if paper and split in paper["sizes"]:
            published = paper["sizes"][split]
            words = [f"{published[name]:.2f}" for name in ("question_words", "answer_words")]
            rows.append(
                ("  paper", f"{published['questions']:,}", *words, f"{published['vocabulary']:,}")
            )
    columns = ("", "questions", "words", "answer", "vocabulary")
    title = f"{counts['benchmark']}: sizes, words on average"
    yield Table(title, "", columns, tuple(rows), published="paper")
    published_shares = paper["percent"] if paper else {}

    def share_table(title: str, key: str, names: Sequence[str], note: str = "") -> Table:
        rows = [
            (split, *map(_percent_cell, part["percent"][key].values()))
            for split, part in splits.items()
        ]
        if key in published_shares:
            published = published_shares[key]
            rows.append(("paper, all", *(_percent_cell(published.get(name)) for name in names)))
        columns = ("", *(name.replace("_", " ") for name in names))
        return Table(title, note, columns, tuple(rows), published="paper")

    by_hand = "; in the paper, by annotators" if paper else ""
    yield share_table(f"What the answer is, in %: by rule{by_hand}", "types", TYPES)
    note = (
        "several: more than one answer. in gold: a gold passage holds an answer (the\n"
        "answer recall of the gold passages themselves)."
    )
    yield share_table("Answers and gold passages, in %", "answers", ("several", "in_gold"), note)
    yield share_table("The question word of the main clause, in %", "asked", QUESTION_WORDS)


def _percent_cell(share: float | None) -> str:
    return "-" if share is None else one_decimal(share)
