"""Causal questions by the rules of Webis-CausalQA, and the corpus made with them: counts, shares, precision and recall.

The paper's values stand beside ours. The questions of a file are counted one at a time, so a million of them take no more memory
than one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.benchmarks.causalqa.benchmark import SPLITS
from ifqa.benchmarks.causalqa.corpus import Facts, facts_of
from ifqa.benchmarks.causalqa.release import ALL, PUBLISHED
from ifqa.benchmarks.causalqa.rules import RULES, TABLE, matched
from ifqa.errors import IfqaError, unknown
from ifqa.formats.publishers.datasets import PUBLISHERS
from ifqa.formats.questions import iter_questions
from ifqa.formats.rows import kind_of
from ifqa.plugins import names, open_benchmark
from ifqa.progress import bar, counted
from ifqa.protocols import Benchmark
from ifqa.records import Question
from ifqa.report.stats import interval_cell
from ifqa.report.table import Table
from ifqa.scoring.statistics import Interval, share_interval

ANY = "any"
NAMES = (ANY, *(rule.name for rule in TABLE))

#: Bondarenko et al., COLING 2022: the questions that each rule matches (section 3, in thousands), of all that were read.
PAPER_RULES = {
    ANY: 1_079_436, "R1": 505_000, "R2": 313_000, "R3": 132_000, "R4": 131_000, "R5": 10_000, "R6": 15_000, "R7": 4_000
}  # fmt: skip
PAPER_READ = ALL.questions
#: Dataset -> its questions and the percentage that is causal.
PAPER_DATASETS = {name: (one.questions, one.share) for name, one in PUBLISHED.items()}
#: Precision of each rule, and recall of all, on 1,000 labelled questions (R6 and R7: on 50 sampled ones).
PAPER_PRECISION, PAPER_RECALL = 1.0, 0.8

_TITLES = {ANY: "any rule"} | {rule.name: f"{rule.name} {rule.short}" for rule in TABLE}
_CORPUS_COLUMNS = {
    "questions": "questions",
    "causal": "causal",
    "unanswered": "no answer",
    "share": "share",
    "question_words": "question",
    "answer_words": "answer",
}


@dataclass
class Tally:
    """Counts of questions under one reading of the rules; by rule and for "any".

    Attributes:
        matched: questions that the rule matches.
        right: of these, questions that are labelled causal.
        judged: of these, questions that are labelled.
    """

    matched: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)


@dataclass
class Measured:
    """The counts of a source of questions.

    Attributes:
        source: the file, or the benchmark and split.
        questions: number of questions, by dataset ("" where none is named).
        causal: reading -> dataset -> questions that any rule matches.
        tallies: reading -> counts.
        labelled, positive: questions that are labelled, and that are labelled causal.
        differing: number of questions on which the two readings of `--differ` disagree.
        shown: the first of these: the question, and the rules of each reading that match it.
    """

    source: str
    tallies: dict[str, Tally]
    questions: Counter[str] = field(default_factory=Counter)
    causal: dict[str, Counter[str]] = field(default_factory=dict)
    labelled: int = 0
    positive: int = 0
    pair: tuple[str, str] | None = None
    differing: int = 0
    shown: list[tuple[Question, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.questions.total()

    @property
    def in_paper(self) -> bool:
        """Whether all questions come from datasets of the paper."""
        return bool(self.questions) and self.questions.keys() <= PAPER_DATASETS.keys()


def measure(
    source: str, readings: Sequence[str] = (), dataset: str = "", pair: Sequence[str] = (), show: int = 10
) -> Measured:
    """Count the causal questions of a file or a benchmark.

    Args:
        source: a file of `ifqa.formats.rows`, or BENCHMARK or BENCHMARK:SPLIT. Without a split, the distinct questions of
            all splits that are there.
        readings: readings of the rules to count; empty for all.
        dataset: the paper's dataset that all questions belong to; empty to take each question's own.
        pair: two readings to compare question by question.
        show: number of differing questions to keep.

    Raises:
        IfqaError: the source, a reading or the dataset is unknown, or the questions cannot be read.
    """
    for one in (*readings, *pair):
        if one not in RULES:
            raise unknown("rules", one, RULES)
    if dataset and dataset not in PAPER_DATASETS:
        raise unknown("dataset of the paper", dataset, PAPER_DATASETS)
    if pair and len(set(pair)) != 2:
        raise IfqaError(f"wanted two different readings to compare, such as notebook,fixed; found {','.join(pair)}")
    chosen = list(dict.fromkeys(readings)) or list(RULES)
    found = Measured(source, {one: Tally() for one in chosen}, causal={one: Counter() for one in chosen})
    found.pair = (pair[0], pair[1]) if pair else None
    with bar(f"rules, {source}", None) as advance:
        for question in _questions(source):
            _count(found, question, dataset or question.group, show)
            advance(1)
    return found


def _count(found: Measured, question: Question, dataset: str, show: int) -> None:
    rules = {one: matched(question.text, one) for one in {*found.tallies, *(found.pair or ())}}
    label = question.label("causal")
    found.questions[dataset] += 1
    found.labelled += bool(label)
    found.positive += label == "true"
    for one, tally in found.tallies.items():
        every = (ANY, *rules[one]) if rules[one] else ()
        tally.matched.update(every)
        found.causal[one][dataset] += bool(every)
        if label:
            tally.judged.update(every)
        if label == "true":
            tally.right.update(every)
    if found.pair:
        first, second = (rules[one] for one in found.pair)
        found.differing += first != second
        if first != second and len(found.shown) < show:
            found.shown.append((question, first, second))


def _questions(source: str) -> Iterator[Question]:
    path = Path(source)
    if (path.exists() and not path.is_dir()) or kind_of(path) or "/" in source.partition(":")[0]:
        return iter_questions(path)
    head, *rest = source.split(":")
    own = 0 if head in names("benchmark") else 1  # the name of one from outside is my_module:Class
    name, split = ":".join([head, *rest[:own]]), ":".join(rest[own:])
    benchmark = open_benchmark(name)
    if split and benchmark.splits and split not in benchmark.splits:
        raise unknown(f"split of {name}", split, benchmark.splits)
    return iter(benchmark.questions(split)) if split else _distinct(benchmark, name)


def _distinct(benchmark: Benchmark, name: str) -> Iterator[Question]:
    """The questions of all splits whose files are there, each text once: splits may share questions."""
    seen: set[str] = set()
    splits = benchmark.splits
    whole = [one for one in splits if "/" not in one or one.partition("/")[0] not in splits]  # not parts of others
    there = [one for one in whole if _is_there(benchmark, one)]
    if not there:
        raise IfqaError(
            f"{name}: none of its splits is in {benchmark.folder}; run: ifqa data {name}, or name one: {name}:SPLIT"
        )
    for split in there:
        for one in benchmark.questions(split):
            if one.text not in seen:
                seen.add(one.text)
                yield one


def _is_there(benchmark: Benchmark, split: str) -> bool:
    try:
        benchmark.files(split)
    except IfqaError:
        return False
    return True


def stats_json(found: Measured) -> dict[str, object]:
    """The counts as JSON data: shares from 0 to 1, precision and recall with their 95% intervals, and the paper's values."""
    readings = {
        one: {
            "matched": {name: tally.matched[name] for name in NAMES},
            "share": {name: tally.matched[name] / found.total for name in NAMES},
        }
        | ({"judged": judged(found, tally)} if found.labelled else {})
        for one, tally in found.tallies.items()
    }
    result: dict[str, object] = {"source": found.source, "questions": found.total, "rules": readings}
    if any(found.questions):
        result["datasets"] = {
            one: {"questions": number, "causal": {reading: found.causal[reading][one] for reading in found.causal}}
            for one, number in found.questions.items()
        }
    if found.labelled:
        result["labels"] = {"labelled": found.labelled, "causal": found.positive}
    if found.pair:
        result["differ"] = {
            "rules": found.pair,
            "questions": found.differing,
            "shown": [{"id": one.id, "question": one.text, "rules": rules} for one, *rules in found.shown],
        }
    if found.in_paper:
        result["paper"] = {"questions": PAPER_READ, "matched": PAPER_RULES, "datasets": _paper(found.questions)}
    return result


def _paper(datasets: Iterable[str]) -> Mapping[str, Mapping[str, float]]:
    return {one: dict(zip(("questions", "percent"), PAPER_DATASETS[one], strict=True)) for one in datasets}


def judged(found: Measured, tally: Tally) -> dict[str, dict[str, Interval | None]]:
    """Precision and recall of each rule and of "any", as (share, low, high), on the labelled questions; None if undefined."""
    return {
        name: {
            "precision": share_interval(tally.right[name], tally.judged[name]),
            "recall": share_interval(tally.right[name], found.positive),
        }
        for name in NAMES
    }


def tables(found: Measured) -> Iterator[Table]:
    """How many questions each rule matches, with the paper's values for its datasets, and what was asked for besides."""
    readings, paper = list(found.tallies), ["the paper"] if found.in_paper else []
    rows = []
    for name in NAMES:
        cells = [_cell(tally.matched[name], found.total) for tally in found.tallies.values()]
        rows.append((_TITLES[name], *cells, *(_cell(PAPER_RULES[name], PAPER_READ) for _ in paper)))
    title = f"{found.source}: {counted(found.total, 'question')}, matched by each rule"
    yield Table(title, "", ("", *readings, *paper), tuple(rows))
    if any(found.questions):
        rows = []
        for dataset, number in found.questions.items():
            shares = [f"{100 * found.causal[reading][dataset] / number:.2f}" for reading in readings]
            theirs = PUBLISHED.get(dataset)
            published = (f"{theirs.questions:,}", f"{theirs.share:.1f}") if theirs else ("-", "-")
            rows.append((dataset or "(none named)", f"{number:,}", *shares, *published))
        columns = ("", "questions", *readings, "the paper's", "percent")
        yield Table("By dataset: causal questions, in %", "", columns, tuple(rows))
    if found.labelled:
        rows = []
        for reading, tally in found.tallies.items():
            for name, shares_of in judged(found, tally).items():
                title = f"{reading}, any rule" if name == ANY else f"  {_TITLES[name]}"
                rows.append((title, f"{tally.judged[name]:,}", *map(interval_cell, shares_of.values())))
        title = f"Of {found.labelled:,} labelled questions, {found.positive:,} of them causal"
        note = (
            f"In brackets: 95% intervals. The paper, on 1,000 questions: {PAPER_PRECISION:.2f} and {PAPER_RECALL:.2f}."
        )
        yield Table(title, note, ("", "matched", "precision", "recall"), tuple(rows))
    if found.pair:
        title = f"{counted(found.differing, 'question')} on which {' and '.join(found.pair)} differ"
        lines = []
        for question, *rules in found.shown:
            matches = " | ".join(" ".join(names) or "none" for names in rules)
            lines.append(f"{question.id}  {matches}  {' '.join(question.text.split())}")
        yield Table(title, "\n".join(lines), (), ())


def _cell(number: int, of: int) -> str:
    return f"{number:,} {100 * number / of:.2f}%"


def measure_corpus(folder: Path) -> dict[str, Facts]:
    """The counts of a finished corpus of causal questions, as its manifest has them; dataset -> counts, in the paper's order.

    Raises:
        IfqaError: the corpus is not built, or its manifest is not as it was written.
    """
    facts = facts_of(folder)
    if not facts:
        raise IfqaError(f"{folder} is not there; run: ifqa data causalqa --from FOLDER")
    return {name: facts[name] for name in PUBLISHERS if name in facts}


def corpus_json(facts: Mapping[str, Facts]) -> dict[str, object]:
    """The counts and the paper's values, for --json."""
    return {name: _corpus_counts(own) | {"paper": PUBLISHED[name]._asdict()} for name, own in facts.items()}


def _corpus_counts(*facts: Facts) -> dict[str, object]:
    """The counts of one dataset, or of several together: each question counts the same, as in the paper.

    "questions" are those that the rules were tried on, None if some came from the authors' release, and "share" is the percentage
    of them that is causal and has an answer; the paper's shares are so, too. Words are parted at white space.
    """
    splits = {
        split: [sum(place) for place in zip(*(own["splits"][split] for own in facts), strict=True)] for split in SPLITS
    }
    causal, words, answer_words = (sum(splits[f"random-{part}"][n] for part in ("train", "valid")) for n in range(3))
    read = None if any(not own["questions"] for own in facts) else sum(own["questions"] for own in facts)
    return {
        "questions": read,
        "causal": causal,
        "unanswered": sum(own["unanswered"] for own in facts),
        "share": 100 * causal / read if read else None,
        "question_words": words / causal if causal else None,
        "answer_words": answer_words / causal if causal else None,
        "splits": {
            split: dict(zip(("questions", "question_words", "answer_words"), counts, strict=True))
            for split, counts in splits.items()
        },
    }


def corpus_tables(facts: Mapping[str, Facts]) -> Iterator[Table]:
    """The counts by dataset and by split, with the paper's values in the line below each dataset's."""
    pairs = [((own,), PUBLISHED[name], name) for name, own in facts.items()]
    rows = []
    for every, paper, name in [
        *pairs,
        *([(tuple(facts.values()), ALL, "all")] if len(facts) == len(PUBLISHERS) else []),
    ]:
        counts = _corpus_counts(*every)
        rows.append((name, *(_corpus_cell(key, counts[key]) for key in _CORPUS_COLUMNS)))
        theirs = paper._asdict() | {"unanswered": None}
        rows.append(("  paper", *(_corpus_cell(key, theirs[key]) for key in _CORPUS_COLUMNS)))
    note = (
        "no answer: causal, but left out. question, answer: mean words of a causal\nquestion, and of its first answer."
    )
    title = "Questions, and the causal ones (the paper: Tables 1 and 2)"
    yield Table(title, note, ("", *_CORPUS_COLUMNS.values()), tuple(rows), published="paper")
    rows = []
    for (own,), paper, name in pairs:
        rows.append((name, *(f"{own['splits'][split][0]:,}" for split in SPLITS)))
        rows.append(("  paper", "-", f"{paper.original:,}", "-", f"{paper.random:,}"))
    absent = [name for name in PUBLISHERS if name not in facts]
    note = f"Absent: {', '.join(absent)}." if absent else ""
    title = "Causal questions by split (the paper: the N of Table 4)"
    yield Table(title, note, ("", *SPLITS), tuple(rows), published="paper")


def _corpus_cell(key: str, value: object) -> str:
    if not isinstance(value, int | float):
        return "-"
    return f"{value:.1f}%" if key == "share" else f"{value:.1f}" if key.endswith("words") else f"{value:,}"
