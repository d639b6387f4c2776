"""Causal questions by the rules of Webis-CausalQA, and the corpus selected with them: counts,
shares, precision and recall.

The paper's values are shown beside ours. Memory use does not grow with the number of questions.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.benchmarks.splits import select_splits
from ifqa.companions.causalqa.builder import DatasetFacts, read_facts
from ifqa.companions.causalqa.release import ALL, DATASETS, PUBLISHED, SPLITS
from ifqa.companions.causalqa.rules import RULES, TABLE, match_rules
from ifqa.errors import MissingInput, unknown_name
from ifqa.formats.questions import iter_questions
from ifqa.formats.tables import unpacked_suffix
from ifqa.formatting import one_decimal, pluralize
from ifqa.plugins import open_benchmark, plugin_names
from ifqa.progress import bar
from ifqa.protocols import CountTable
from ifqa.records import Question
from ifqa.scoring.statistics import Interval, wilson_interval

ANY = "any"
_TITLES = {ANY: "any rule"} | {rule.name: f"{rule.name} {rule.short}" for rule in TABLE}

#: Bondarenko et al., COLING 2022, section 3: the questions that each rule matches, for single rules
#: in whole thousands.
PAPER_RULES = {
    ANY: 1_079_436,
    "R1": 505_000,
    "R2": 313_000,
    "R3": 132_000,
    "R4": 131_000,
    "R5": 10_000,
    "R6": 15_000,
    "R7": 4_000,
}
#: Precision of each rule, and recall of all, on 1,000 labelled questions (R6 and R7: on 50 sampled
#: ones).
PAPER_PRECISION, PAPER_RECALL = 1.0, 0.8

_CORPUS_COLUMNS = {
    "questions": "questions",
    "causal": "causal",
    "share": "share",
    "question_words": "question",
    "answer_words": "answer",
}


@dataclass
class RuleCounts:
    """Counts of questions under a reading of the rules, by rule and for "any"."""

    matched: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)  # matched and labelled
    right: Counter[str] = field(default_factory=Counter)  # matched and labelled causal
    datasets: Counter[str] = field(default_factory=Counter)  # matched by any rule, by dataset


@dataclass
class QuestionCounts:
    source: str
    readings: dict[str, RuleCounts]
    questions: Counter[str] = field(default_factory=Counter)  # by dataset, "" if unnamed
    labelled: int = 0
    positive: int = 0  # labelled causal

    @property
    def in_paper(self) -> bool:
        """Whether all questions come from datasets of the paper."""
        return bool(self.questions) and self.questions.keys() <= PUBLISHED.keys()


def measure(source: str, readings: Sequence[str] = (), dataset: str = "") -> QuestionCounts:
    """Count the causal questions of a file or a benchmark, by some `readings` of the rules (empty
    for all).

    `source` is a file that `ifqa.formats.tables` reads, or BENCHMARK or BENCHMARK:SPLIT. Without a
    split, the distinct questions of all splits whose files exist are counted. `dataset`: the
    paper's dataset of all questions; if empty, each has its own.
    """
    if wrong := [reading for reading in readings if reading not in RULES]:
        raise unknown_name("rules", wrong[0], RULES)
    if dataset and dataset not in PUBLISHED:
        raise unknown_name("dataset of the paper", dataset, PUBLISHED)
    counts = QuestionCounts(source, {reading: RuleCounts() for reading in readings or RULES})
    with bar(f"rules, {source}", None) as advance:
        for question in _questions(source):
            label = question.label("causal")
            group = dataset or question.group
            counts.questions[group] += 1
            counts.labelled += bool(label)
            counts.positive += label == "true"
            for reading, rule_counts in counts.readings.items():
                if rules := match_rules(question.text, reading):
                    rule_counts.datasets[group] += 1
                    rule_counts.matched.update((ANY, *rules))
                    rule_counts.judged.update((ANY, *rules) if label else ())
                    rule_counts.right.update((ANY, *rules) if label == "true" else ())
            advance(1)
    return counts


def _questions(source: str) -> Iterator[Question]:
    path = Path(source)
    if (
        (path.exists() and not path.is_dir())
        or unpacked_suffix(path)
        or "/" in source.partition(":")[0]
    ):
        yield from iter_questions(path)
        return
    parts = source.split(":")
    count = 1 if parts[0] in plugin_names("benchmark") else 2  # a plugin is named my_module:Class
    benchmark = open_benchmark(":".join(parts[:count]))
    split_name = ":".join(parts[count:])
    seen: set[str] = set()  # splits may overlap
    for split in select_splits(benchmark, [split_name] if split_name else ()):
        for question in benchmark.questions(split):
            if split_name or question.text not in seen:
                seen.add(question.text)
                yield question


def _rule_scores(
    counts: QuestionCounts, rules: RuleCounts
) -> dict[str, dict[str, Interval | None]]:
    """Rule or "any" -> precision and recall on the labelled questions, as (share, low, high).

    None if undefined.
    """
    scores = {}
    for name in _TITLES:
        right = rules.right[name]
        precision, recall = (
            wilson_interval(right, of) for of in (rules.judged[name], counts.positive)
        )
        scores[name] = {"precision": precision, "recall": recall}
    return scores


def stats_json(counts: QuestionCounts) -> dict[str, object]:
    """The counts as JSON data: shares from 0 to 1, precision and recall with their 95% intervals,
    and the paper's values.
    """
    total = counts.questions.total()
    readings = dict[str, dict[str, object]]()
    for reading, rules in counts.readings.items():
        matched = {name: rules.matched[name] for name in _TITLES}
        readings[reading] = {
            "matched": matched,
            "share": {name: matched[name] / total for name in matched},
        }
        readings[reading] |= {"judged": _rule_scores(counts, rules)} if counts.labelled else {}
    content: dict[str, object] = {"source": counts.source, "questions": total, "rules": readings}
    if any(counts.questions):
        datasets = content["datasets"] = dict[str, object]()
        for dataset, number in counts.questions.items():
            causal = {
                reading: rules.datasets[dataset] for reading, rules in counts.readings.items()
            }
            datasets[dataset] = {"questions": number, "causal": causal}
    if counts.labelled:
        content["labels"] = {"labelled": counts.labelled, "causal": counts.positive}
    if counts.in_paper:
        published = {}
        for name in counts.questions:
            published[name] = {
                "questions": PUBLISHED[name].questions,
                "percent": PUBLISHED[name].share,
            }
        content["paper"] = {
            "questions": ALL.questions,
            "matched": PAPER_RULES,
            "datasets": published,
        }
    return content


def tables(counts: QuestionCounts) -> Iterator[CountTable]:
    """The number of questions that each rule matches, by dataset too, and its precision and recall,
    beside the paper's values.
    """
    total = counts.questions.total()
    readings = counts.readings
    paper = ["the paper"] if counts.in_paper else []
    rows: list[tuple[str, ...]] = []
    for name, title in _TITLES.items():
        cells = [_share_cell(rules.matched[name], total) for rules in readings.values()]
        rows.append(
            (title, *cells, *(_share_cell(PAPER_RULES[name], ALL.questions) for _ in paper))
        )
    title = f"{counts.source}: {pluralize(total, 'question')}, matched by each rule"
    yield CountTable(("", *readings, *paper), rows, title)
    if any(counts.questions):
        rows = []
        for dataset, number in counts.questions.items():
            shares = [
                f"{100 * rules.datasets[dataset] / number:.2f}" for rules in readings.values()
            ]
            published = PUBLISHED.get(dataset)
            cells = (
                [f"{published.questions:,}", one_decimal(published.share)]
                if published
                else ["-", "-"]
            )
            rows.append((dataset or "(none named)", f"{number:,}", *shares, *cells))
        columns = ("", "questions", *readings, "the paper's", "percent")
        yield CountTable(columns, rows, "By dataset: causal questions, in %")
    if counts.labelled:
        rows = []
        for reading, rules in readings.items():
            for name, scores in _rule_scores(counts, rules).items():
                title = f"{reading}, any rule" if name == ANY else f"  {_TITLES[name]}"
                rows.append(
                    (title, f"{rules.judged[name]:,}", *map(interval_cell, scores.values()))
                )
        title = f"Of {counts.labelled:,} labelled questions, {counts.positive:,} of them causal"
        shown = f"{PAPER_PRECISION:.2f} and {PAPER_RECALL:.2f}"
        note = f"In brackets: 95% intervals. The paper, on 1,000 questions: {shown}."
        yield CountTable(("", "matched", "precision", "recall"), rows, title, note)


def _share_cell(number: int, of: int) -> str:
    return f"{number:,} {100 * number / of:.2f}%"


def measure_corpus(folder: Path) -> dict[str, DatasetFacts]:
    """Dataset -> counts of a finished corpus of causal questions, from its manifest, in the paper's
    order.
    """
    facts = read_facts(folder)
    if not facts:
        raise MissingInput(f"no corpus in {folder}; run: ifqa data causalqa")
    return {name: facts[name] for name in DATASETS if name in facts}


def corpus_json(facts: Mapping[str, DatasetFacts]) -> dict[str, object]:
    return {
        name: _corpus_counts(counts) | {"paper": PUBLISHED[name]._asdict()}
        for name, counts in facts.items()
    }


def _corpus_counts(*facts: DatasetFacts) -> dict[str, object]:
    """The counts of one or more datasets; all questions count equally, as in the paper.

    Words are split at white space.
    """
    splits: dict[str, list[int]] = {}
    for split in SPLITS:
        splits[split] = [
            sum(column)
            for column in zip(*(counts["splits"][split] for counts in facts), strict=True)
        ]
    causal, words, answer_words = (
        sum(splits[f"random-{part}"][n] for part in ("train", "valid")) for n in range(3)
    )
    keys = ("questions", "question_words", "answer_words")
    return {
        "causal": causal,
        "question_words": words / causal if causal else None,
        "answer_words": answer_words / causal if causal else None,
        "splits": {split: dict(zip(keys, counts, strict=True)) for split, counts in splits.items()},
    }


def corpus_tables(facts: Mapping[str, DatasetFacts]) -> Iterator[CountTable]:
    """The counts by dataset and by split, with the paper's values in the line below each
    dataset's.
    """
    groups = [((counts,), PUBLISHED[name], name) for name, counts in facts.items()]
    whole = [(tuple(facts.values()), ALL, "all")] if len(facts) == len(DATASETS) else []
    rows: list[tuple[str, ...]] = []
    for datasets, paper, name in [*groups, *whole]:
        for title, counts in ((name, _corpus_counts(*datasets)), ("  paper", paper._asdict())):
            rows.append((title, *(_corpus_cell(key, counts.get(key)) for key in _CORPUS_COLUMNS)))
    note = (
        "The release has only causal questions. question, answer: mean words of a causal\n"
        "question, and of its first answer."
    )
    title = "Questions, and the causal ones (the paper: Tables 1 and 2)"
    yield CountTable(("", *_CORPUS_COLUMNS.values()), rows, title, note, published="paper")
    rows = []
    for (dataset,), paper, name in groups:
        rows.append((name, *(f"{dataset['splits'][split][0]:,}" for split in SPLITS)))
        rows.append(("  paper", "-", f"{paper.original:,}", "-", f"{paper.random:,}"))
    absent = [name for name in DATASETS if name not in facts]
    note = f"Absent: {', '.join(absent)}." if absent else ""
    title = "Causal questions by split (the paper: the N of Table 4)"
    yield CountTable(("", *SPLITS), rows, title, note, published="paper")


def _corpus_cell(key: str, count: object) -> str:
    if not isinstance(count, int | float):
        return "-"
    if key == "share":
        return f"{one_decimal(count)}%"
    return one_decimal(count) if key.endswith("words") else f"{count:,}"


def interval_cell(share: Interval | None) -> str:
    """A share from 0 to 1 with its interval, as the text of a cell."""
    return "-" if share is None else "{:.2f} [{:.2f}, {:.2f}]".format(*share)
