"""Statistics of a benchmark's questions by split, beside the IfQA paper's Tables 1 and 2.

And overlap between splits.

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
from ifqa.plugins import open_benchmark
from ifqa.records import Question
from ifqa.report.stats import Summary, percent_cell, summary
from ifqa.report.table import Table
from ifqa.scoring.measures.answer_recall import ceiling
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.measures.numeric import is_numeric

TYPES = ("entity", "number", "date", "other")
QUESTION_WORDS = ("what", "who", "which", "how many", "when", "where", "how", "why", "none")
SUBSETS = ("all", "numeric", "other")

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
    # Number of words -> questions, first answers, or distinct gold passages
    lengths: dict[str, dict[int, int]]
    means: dict[str, Summary]  # of the lengths
    types: dict[str, int]  # first answers by `answer_type`
    asked: dict[str, int]  # questions by `question_word`
    answers: dict[str, int]  # "several_answers": questions whose answers differ after normalisation
    #: All, numeric and other questions -> (questions with an answer in a gold passage, questions
    #: with gold passages). The share is the ceiling of answer recall, None without gold passages.
    in_gold: dict[str, tuple[int, int]]
    percent: dict[str, dict[str, float | None]]


class BenchmarkCounts(TypedDict):
    """The counts of each split, the distinct questions that each pair of splits shares, and the
    paper's values.
    """

    benchmark: str
    splits: dict[str, SplitCounts]
    shared: dict[str, dict[str, int]]
    paper: NotRequired[dict[str, dict[str, dict[str, float]]]]


def measure(benchmark: str, splits: Sequence[str] = ()) -> BenchmarkCounts:
    """Count the questions of a benchmark's splits.

    Without names, of all splits whose files exist.
    """
    source = open_benchmark(benchmark)
    questions = {split: source.questions(split) for split in select_splits(source, splits)}
    counts: BenchmarkCounts = {
        "benchmark": benchmark,
        "splits": {split: count_split(questions[split]) for split in questions},
        "shared": shared_questions(questions),
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
    lengths = {
        "question_words": _lengths(question.text for question in questions),
        "answer_words": _lengths(question.answers[0] for question, _ in answered),
        "passage_words": _lengths(
            {text for question in questions for text in question.gold_passages}
        ),
    }
    types = _counts(TYPES, (answer_type(question, clause) for question, clause in answered))
    words = _counts(QUESTION_WORDS, map(question_word, clauses))
    answers = {
        "several_answers": sum(
            len(set(map(normalize, question.answers))) > 1 for question in questions
        ),
        "several_passages": sum(len(question.gold_passages) > 1 for question in questions),
        "yes_no": sum(
            not {"yes", "no"}.isdisjoint(map(normalize, question.answers)) for question in questions
        ),
        "numeric": sum(is_numeric(question.answers) for question in questions),
    }
    ceilings: dict[str, list[float]] = {kind: [] for kind in SUBSETS}
    for question in questions:
        if question.gold_passages:
            kind = "numeric" if is_numeric(question.answers) else "other"
            ceilings["all"].append(ceiling(question))
            ceilings[kind].append(ceiling(question))
    in_gold = {kind: (int(sum(scores)), len(scores)) for kind, scores in ceilings.items()}
    return {
        "questions": len(questions),
        "vocabulary": len(
            {word for question in questions for word in question.text.lower().split()}
        ),
        "lengths": lengths,
        "means": {name: summary(histogram) for name, histogram in lengths.items()},
        "types": types,
        "asked": words,
        "answers": answers,
        "in_gold": in_gold,
        "percent": {
            "types": _percentages(types, sum(types.values())),
            "asked": _percentages(words, sum(words.values())),
            "answers": _percentages(answers, len(questions)),
            "in_gold": {
                kind: 100 * hits / of if of else None for kind, (hits, of) in in_gold.items()
            },
        },
    }


def shared_questions(splits: Mapping[str, Sequence[Question]]) -> dict[str, dict[str, int]]:
    """The number of distinct questions that two splits share, compared after normalisation: split
    -> split -> count.

    The diagonal has each split's number of distinct questions. IfQA's full-train has 903 of the
    1,594 distinct questions of few-dev: never test a model on its training questions.
    """
    texts = {split: {normalize(question.text) for question in splits[split]} for split in splits}
    return {split: {other: len(texts[split] & texts[other]) for other in texts} for split in texts}


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


def _lengths(texts: Iterable[str]) -> dict[int, int]:
    return dict(sorted(Counter(len(text.split()) for text in texts).items()))


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
        means = [f"{lengths['mean']:.2f}" if lengths else "-" for lengths in part["means"].values()]
        passage_lengths = part["lengths"]["passage_words"]
        passages = sum(passage_lengths.values())
        whole = percent_cell(
            100 * passage_lengths.get(100, 0) / passages if passages else None, "%"
        )
        sizes = (*means[:2], f"{part['vocabulary']:,}", f"{passages:,}", means[2], whole)
        rows.append((split, f"{part['questions']:,}", *sizes))
        if paper and split in paper["sizes"]:
            published = paper["sizes"][split]
            words = [f"{published[name]:.2f}" for name in ("question_words", "answer_words")]
            rows.append(
                (
                    "  paper",
                    f"{published['questions']:,}",
                    *words,
                    f"{published['vocabulary']:,}",
                    "",
                    "",
                    "",
                )
            )
    columns = (
        "",
        "questions",
        "words",
        "answer",
        "vocabulary",
        "passages",
        "words",
        "of 100 words",
    )
    title = f"{counts['benchmark']}: sizes, words on average"
    yield Table(title, "", columns, tuple(rows), published="paper")
    shares = {name: splits[name]["percent"] for name in splits}
    published_shares = paper["percent"] if paper else {}

    def share_table(title: str, key: str, names: Sequence[str]) -> Table:
        rows = [(split, *map(percent_cell, part[key].values())) for split, part in shares.items()]
        if key in published_shares:
            rows.append(
                ("paper, all", *(percent_cell(published_shares[key].get(name)) for name in names))
            )
        return Table(title, "", ("", *names), tuple(rows), published="paper")

    by_hand = "; in the paper, by annotators" if paper else ""
    yield share_table(f"What the answer is, in %: by rule{by_hand}", "types", TYPES)
    note = (
        "several: more than one answer. in gold: a gold passage holds an answer (the\n"
        "ceiling of answer recall); then the same for numeric and for other questions."
    )
    rows = []
    for split, part_shares in shares.items():
        rows.append(
            (
                split,
                *map(
                    percent_cell,
                    [*part_shares["answers"].values(), *part_shares["in_gold"].values()],
                ),
            )
        )
    if published_shares:
        several, in_gold = (
            percent_cell(published_shares["answers"][key]) for key in ("several", "in_gold")
        )
        rows.append(("paper, all", several, *"---", in_gold, *"--"))
    columns = ("", "several", "passages", "yes/no", "numeric", "in gold", "numeric", "other")
    yield Table("Answers and gold passages, in %", note, columns, tuple(rows), published="paper")
    yield share_table("The question word of the main clause, in %", "asked", QUESTION_WORDS)
    rows = [
        (split, *(f"{number:,}" for number in row.values()))
        for split, row in counts["shared"].items()
    ]
    title = "Distinct questions in both splits, word for word"
    note = "Diagonal: a split's distinct questions. Do not test on training questions."
    yield Table(title, note, ("", *splits), tuple(rows))
