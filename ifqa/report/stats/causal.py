"""Causal questions by the rules of Webis-CausalQA, and the corpus made with them: counts, shares, precision and recall.

The paper's values are shown beside ours. Questions are read one at a time, so memory does not grow with their number.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.benchmarks.causalqa.benchmark import SPLITS
from ifqa.benchmarks.causalqa.builder import DatasetFacts, read_facts
from ifqa.benchmarks.causalqa.release import ALL, PUBLISHED
from ifqa.benchmarks.causalqa.rules import RULES, TABLE, match_rules
from ifqa.errors import IfqaError, unknown_name
from ifqa.formats.causalqa_datasets import PUBLISHERS
from ifqa.formats.questions import iter_questions
from ifqa.formats.tables import unpacked_suffix
from ifqa.formatting import pluralize
from ifqa.plugins import open_benchmark, plugin_names
from ifqa.progress import bar
from ifqa.records import Question
from ifqa.report.stats import interval_cell, select_splits
from ifqa.report.table import Table
from ifqa.scoring.statistics import Interval, wilson_interval

ANY = "any"
_TITLES = {ANY: "any rule"} | {rule.name: f"{rule.name} {rule.short}" for rule in TABLE}

#: Bondarenko et al., COLING 2022: the questions that each rule matches (section 3, in thousands), out of all.
PAPER_RULES = {
    ANY: 1_079_436, "R1": 505_000, "R2": 313_000, "R3": 132_000, "R4": 131_000, "R5": 10_000, "R6": 15_000, "R7": 4_000
}  # fmt: skip
#: Precision of each rule, and recall of all, on 1,000 labelled questions (R6 and R7: on 50 sampled ones).
PAPER_PRECISION, PAPER_RECALL = 1.0, 0.8

_CORPUS_COLUMNS = {
    "questions": "questions",
    "causal": "causal",
    "unanswered": "no answer",
    "share": "share",
    "question_words": "question",
    "answer_words": "answer",
}


@dataclass
class RuleCounts:
    """Counts of questions under one reading of the rules, by rule and for "any".

    `matched` counts the questions that the rule matches, `judged` the labelled ones of these, and `right` those labelled causal.
    `datasets` counts the questions that any rule matches, by dataset.
    """

    matched: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    datasets: Counter[str] = field(default_factory=Counter)


@dataclass
class QuestionCounts:
    """The counts of a source: questions by dataset ("" if unnamed), labelled and causal ones, and rule counts by reading."""

    source: str
    tallies: dict[str, RuleCounts]
    questions: Counter[str] = field(default_factory=Counter)
    labelled: int = 0
    positive: int = 0

    @property
    def in_paper(self) -> bool:
        """Whether all questions come from datasets of the paper."""
        return bool(self.questions) and self.questions.keys() <= PUBLISHED.keys()


def measure(source: str, readings: Sequence[str] = (), dataset: str = "") -> QuestionCounts:
    """Count the causal questions of a file or a benchmark.

    Args:
        source: a file of `ifqa.formats.tables`, or BENCHMARK or BENCHMARK:SPLIT. Without a split, the distinct questions of
            all splits whose files exist.
        readings: readings of the rules to count; empty for all.
        dataset: the paper's dataset of all questions; empty to use each question's own.
    """
    if wrong := [reading for reading in readings if reading not in RULES]:
        raise unknown_name("rules", wrong[0], RULES)
    if dataset and dataset not in PUBLISHED:
        raise unknown_name("dataset of the paper", dataset, PUBLISHED)
    counts = QuestionCounts(source, {reading: RuleCounts() for reading in readings or RULES})
    with bar(f"rules, {source}", None) as advance:
        for question in _questions(source):
            label, group = question.label("causal"), dataset or question.group
            counts.questions[group] += 1
            counts.labelled += bool(label)
            counts.positive += label == "true"
            for reading, tally in counts.tallies.items():
                if rules := match_rules(question.text, reading):
                    tally.datasets[group] += 1
                    tally.matched.update((ANY, *rules))
                    tally.judged.update((ANY, *rules) if label else ())
                    tally.right.update((ANY, *rules) if label == "true" else ())
            advance(1)
    return counts


def _questions(source: str) -> Iterator[Question]:
    path = Path(source)
    if (path.exists() and not path.is_dir()) or unpacked_suffix(path) or "/" in source.partition(":")[0]:
        yield from iter_questions(path)
        return
    head, *rest = source.split(":")
    more = 0 if head in plugin_names("benchmark") else 1  # a benchmark from outside is named my_module:Class
    benchmark, named = open_benchmark(":".join([head, *rest[:more]])), ":".join(rest[more:])
    seen: set[str] = set()  # splits may overlap
    for split in select_splits(benchmark, [named] if named else ()):
        for question in benchmark.questions(split):
            if named or question.text not in seen:
                seen.add(question.text)
                yield question


def rule_scores(counts: QuestionCounts, tally: RuleCounts) -> dict[str, dict[str, Interval | None]]:
    """Rule or "any" -> precision and recall on the labelled questions, as (share, low, high); None if undefined."""
    return {
        name: {
            "precision": wilson_interval(tally.right[name], tally.judged[name]),
            "recall": wilson_interval(tally.right[name], counts.positive),
        }
        for name in _TITLES
    }


def stats_json(counts: QuestionCounts) -> dict[str, object]:
    """The counts as JSON data: shares from 0 to 1, precision and recall with their 95% intervals, and the paper's values."""
    total = counts.questions.total()
    rules = {
        reading: {
            "matched": {name: tally.matched[name] for name in _TITLES},
            "share": {name: tally.matched[name] / total for name in _TITLES},
            **({"judged": rule_scores(counts, tally)} if counts.labelled else {}),
        }
        for reading, tally in counts.tallies.items()
    }
    result: dict[str, object] = {"source": counts.source, "questions": total, "rules": rules}
    if any(counts.questions):
        result["datasets"] = {
            dataset: {
                "questions": number,
                "causal": {reading: tally.datasets[dataset] for reading, tally in counts.tallies.items()},
            }
            for dataset, number in counts.questions.items()
        }
    if counts.labelled:
        result["labels"] = {"labelled": counts.labelled, "causal": counts.positive}
    if counts.in_paper:
        datasets = {
            name: {"questions": PUBLISHED[name].questions, "percent": PUBLISHED[name].share}
            for name in counts.questions
        }
        result["paper"] = {"questions": ALL.questions, "matched": PAPER_RULES, "datasets": datasets}
    return result


def tables(counts: QuestionCounts) -> Iterator[Table]:
    """The number of questions that each rule matches, also by dataset, and its precision, beside the paper's values."""
    total, tallies = counts.questions.total(), counts.tallies
    paper = ["the paper"] if counts.in_paper else []
    rows: list[tuple[str, ...]] = []
    for name, title in _TITLES.items():
        cells = [_share_cell(tally.matched[name], total) for tally in tallies.values()]
        rows.append((title, *cells, *(_share_cell(PAPER_RULES[name], ALL.questions) for _ in paper)))
    title = f"{counts.source}: {pluralize(total, 'question')}, matched by each rule"
    yield Table(title, "", ("", *tallies, *paper), tuple(rows))
    if any(counts.questions):
        rows = []
        for dataset, number in counts.questions.items():
            shares = [f"{100 * tally.datasets[dataset] / number:.2f}" for tally in tallies.values()]
            paper_counts = PUBLISHED.get(dataset)
            published = (f"{paper_counts.questions:,}", f"{paper_counts.share:.1f}") if paper_counts else ("-", "-")
            rows.append((dataset or "(none named)", f"{number:,}", *shares, *published))
        columns = ("", "questions", *tallies, "the paper's", "percent")
        yield Table("By dataset: causal questions, in %", "", columns, tuple(rows))
    if counts.labelled:
        rows = []
        for reading, tally in tallies.items():
            for name, shares_of in rule_scores(counts, tally).items():
                title = f"{reading}, any rule" if name == ANY else f"  {_TITLES[name]}"
                rows.append((title, f"{tally.judged[name]:,}", *map(interval_cell, shares_of.values())))
        title = f"Of {counts.labelled:,} labelled questions, {counts.positive:,} of them causal"
        note = (
            f"In brackets: 95% intervals. The paper, on 1,000 questions: {PAPER_PRECISION:.2f} and {PAPER_RECALL:.2f}."
        )
        yield Table(title, note, ("", "matched", "precision", "recall"), tuple(rows))


def _share_cell(number: int, of: int) -> str:
    return f"{number:,} {100 * number / of:.2f}%"


def measure_corpus(folder: Path) -> dict[str, DatasetFacts]:
    """Dataset -> counts of a finished corpus of causal questions, from its manifest, in the paper's order."""
    facts = read_facts(folder)
    if not facts:
        raise IfqaError(f"no corpus in {folder}; run: ifqa data causalqa --from FOLDER")
    return {name: facts[name] for name in PUBLISHERS if name in facts}


def corpus_json(facts: Mapping[str, DatasetFacts]) -> dict[str, object]:
    """The counts and the paper's values, for --json."""
    return {name: _corpus_counts(counts) | {"paper": PUBLISHED[name]._asdict()} for name, counts in facts.items()}


def _corpus_counts(*facts: DatasetFacts) -> dict[str, object]:
    """The counts of one or more datasets; each question counts the same, as in the paper.

    "questions" are those the rules were applied to (None if some came from the authors' release), and "share" is the percentage
    of them that are causal and have an answer, as in the paper. Words are split at white space.
    """
    splits = {
        split: [sum(place) for place in zip(*(counts["splits"][split] for counts in facts), strict=True)]
        for split in SPLITS
    }
    causal, words, answer_words = (sum(splits[f"random-{part}"][n] for part in ("train", "valid")) for n in range(3))
    read = None if any(not counts["questions"] for counts in facts) else sum(counts["questions"] for counts in facts)
    return {
        "questions": read,
        "causal": causal,
        "unanswered": sum(counts["unanswered"] for counts in facts),
        "share": 100 * causal / read if read else None,
        "question_words": words / causal if causal else None,
        "answer_words": answer_words / causal if causal else None,
        "splits": {
            split: dict(zip(("questions", "question_words", "answer_words"), counts, strict=True))
            for split, counts in splits.items()
        },
    }


def corpus_tables(facts: Mapping[str, DatasetFacts]) -> Iterator[Table]:
    """The counts by dataset and by split, with the paper's values in the line below each dataset's."""
    groups = [((counts,), PUBLISHED[name], name) for name, counts in facts.items()]
    whole = [(tuple(facts.values()), ALL, "all")] if len(facts) == len(PUBLISHERS) else []
    rows: list[tuple[str, ...]] = []
    for some, paper, name in [*groups, *whole]:
        for title, counts in ((name, _corpus_counts(*some)), ("  paper", paper._asdict())):
            rows.append((title, *(_corpus_cell(key, counts.get(key)) for key in _CORPUS_COLUMNS)))
    note = (
        "no answer: causal, but left out. question, answer: mean words of a causal\nquestion, and of its first answer."
    )
    title = "Questions, and the causal ones (the paper: Tables 1 and 2)"
    yield Table(title, note, ("", *_CORPUS_COLUMNS.values()), tuple(rows), published="paper")
    rows = []
    for (dataset,), paper, name in groups:
        rows.append((name, *(f"{dataset['splits'][split][0]:,}" for split in SPLITS)))
        rows.append(("  paper", "-", f"{paper.original:,}", "-", f"{paper.random:,}"))
    absent = [name for name in PUBLISHERS if name not in facts]
    note = f"Absent: {', '.join(absent)}." if absent else ""
    title = "Causal questions by split (the paper: the N of Table 4)"
    yield Table(title, note, ("", *SPLITS), tuple(rows), published="paper")


def _corpus_cell(key: str, value: object) -> str:
    if not isinstance(value, int | float):
        return "-"
    return f"{value:.1f}%" if key == "share" else f"{value:.1f}" if key.endswith("words") else f"{value:,}"
