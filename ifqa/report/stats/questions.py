"""Statistics of a benchmark's questions by split, beside the IfQA paper's Tables 1 and 2; and questions that splits share.

Nothing is tuned on these numbers, so test splits may be counted as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError, unknown
from ifqa.plugins import open_benchmark
from ifqa.protocols import Benchmark
from ifqa.report.plots import check_figure, save, without_formulas
from ifqa.report.sanitize import plain
from ifqa.report.stats.counts import PLACES, QUESTION_WORDS, SUBSETS, TYPES, QuestionStats, count, shared
from ifqa.retrieval.clauses import split_question

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

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
            "question_words": _summary(own.question_words),
            "answer_words": _summary(own.answer_words),
            "passage_words": _summary(own.passage_words),
        }
        in_gold = {kind: _held(own, kind) for kind in SUBSETS}
        shares = {**_shares(own), "answers": _answers(own), "in_gold": in_gold}
        splits[split] = {**asdict(own), "means": lengths, "percent": shares}
    found: dict[str, object] = {"benchmark": measured.benchmark, "splits": splits, "shared": measured.shared}
    if measured.in_paper:
        found["paper"] = {"sizes": PAPER_SIZES, "percent": PAPER_SHARES}
    return found


def _summary(histogram: Mapping[int, int]) -> dict[str, float]:
    """Mean, median, least and most of a histogram; {} if it is empty."""
    sizes = [size for size, number in histogram.items() for _ in range(number)]
    if not sizes:
        return {}
    return {"mean": fmean(sizes), "median": median(sizes), "least": min(sizes), "most": max(sizes)}


def _percent(of: Iterable[int], counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(of)
    return {name: 100 * number / total if total else 0.0 for name, number in counts.items()}


def _answers(own: QuestionStats) -> dict[str, float]:
    """Shares of questions, in percent."""
    counts = {
        "several_answers": own.several_answers,
        "several_meanings": own.several_meanings,
        "several_passages": own.several_passages,
        "yes_no": own.yes_no,
        "numeric": own.numeric,
    }
    return _percent([own.questions], counts)


def _shares(own: QuestionStats) -> dict[str, dict[str, float]]:
    """Shares in percent of the kinds of answers, of the question words, and of their places."""
    several = {"types": own.types, "asked": own.asked, "places": own.places}
    return {name: _percent(counts.values(), counts) for name, counts in several.items()}


def _held(own: QuestionStats, kind: str) -> float | None:
    """The share of questions whose gold passages hold an answer, in percent; None if no question has gold passages."""
    held, of = own.in_gold[kind]
    return 100 * held / of if of else None


def show(measured: Measured) -> None:
    """Print the statistics as tables that fit 80 columns, with the paper's values below ours."""
    from rich.console import Console

    console = Console(highlight=False)
    by_hand = "; the paper annotated" if measured.in_paper else ""
    console.print(f"[italic]{plain(measured.benchmark)}: sizes, words on average[/italic]")
    console.print(_sizes_table(measured))
    console.print(f"\n[italic]What the answer is, in %: by rule{by_hand}[/italic]")
    console.print(_shares_table(measured, "types", TYPES))
    console.print("\n[italic]Answers and gold passages, in %[/italic]")
    console.print(_answers_table(measured))
    console.print("several: more than one answer (meanings: without forms such as 2 and two).")
    console.print("in gold: a gold passage holds an answer (the ceiling of answer recall); then")
    console.print("the same of numeric and of other questions.")
    console.print("\n[italic]The question word of the main clause, in %[/italic]")
    console.print(_shares_table(measured, "asked", QUESTION_WORDS))
    console.print("\n[italic]Where it stands, in %: preposition, as in 'in which'[/italic]")
    console.print(_shares_table(measured, "places", PLACES))
    console.print("\n[italic]Distinct questions that stand in both splits, word for word[/italic]")
    console.print(_shared_table(measured))
    console.print("A split with itself: its distinct questions. Do not test on what was trained on.")


def _table(*columns: str, padding: int = 2) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, padding, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=not column)
    return table


def _sizes_table(measured: Measured) -> "Table":
    table = _table("", "questions", "words", "answer", "vocabulary", "passages", "words", "of 100 words", padding=1)
    for split, own in measured.splits.items():
        means = [_summary(sizes) for sizes in (own.question_words, own.answer_words, own.passage_words)]
        question, answer, passage = (f"{one['mean']:.2f}" if one else "-" for one in means)
        passages = sum(own.passage_words.values())
        whole = _cell(100 * own.passage_words.get(100, 0) / passages if passages else None, "%")
        table.add_row(
            *(
                plain(split),
                f"{own.questions:,}",
                question,
                answer,
                f"{own.vocabulary:,}",
                f"{passages:,}",
                passage,
                whole,
            )
        )
        if measured.in_paper and split in PAPER_SIZES:
            paper = PAPER_SIZES[split]
            lengths = [f"{paper[name]:.2f}" for name in ("question_words", "answer_words")]
            table.add_row("  paper", f"{paper['questions']:,}", *lengths, f"{paper['vocabulary']:,}", style="dim")
    return table


def _cell(share: float | None, sign: str = "") -> str:
    return "-" if share is None else f"{share:.1f}{sign}"


def _shares_table(measured: Measured, what: str, names: Sequence[str]) -> "Table":
    table = _table("", *names)
    for split, own in measured.splits.items():
        table.add_row(plain(split), *map(_cell, _shares(own)[what].values()))
    if measured.in_paper and what in PAPER_SHARES:
        table.add_row("paper, all", *(_cell(PAPER_SHARES[what].get(name)) for name in names), style="dim")
    return table


def _answers_table(measured: Measured) -> "Table":
    columns = ("several", "meanings", "passages", "yes/no", "numeric", "in gold", "numeric", "other")
    table = _table("", *columns, padding=1)
    for split, own in measured.splits.items():
        table.add_row(plain(split), *map(_cell, [*_answers(own).values(), *(_held(own, kind) for kind in SUBSETS)]))
    if measured.in_paper:
        paper = PAPER_SHARES["answers"]
        table.add_row("paper, all", "-", _cell(paper["several"]), *"---", _cell(paper["in_gold"]), *"--", style="dim")
    return table


def _shared_table(measured: Measured) -> "Table":
    table = _table("", *map(plain, measured.splits), padding=1)
    for split, row in measured.shared.items():
        table.add_row(plain(split), *(f"{number:,}" for number in row.values()))
    return table


def draw(measured: Measured, path: Path) -> None:
    """Draw the kinds of answers, the question words, and the questions that two splits share.

    Raises:
        IfqaError: no figure has this suffix, or matplotlib is missing.
    """
    check_figure(path)
    from matplotlib.figure import Figure

    with without_formulas():
        figure = Figure(figsize=(12.6, 3.4), layout="constrained")
        types, asked, both = figure.subplots(1, 3)
        _draw_shares(types, measured, "types", TYPES)
        _draw_shares(asked, measured, "asked", QUESTION_WORDS)
        asked.set_yticklabels([])
        _draw_shared(both, measured)
        save(figure, path)


def _draw_shares(axes: "Axes", measured: Measured, what: str, names: Sequence[str]) -> None:
    """Draw a bar for each split, and for the paper, in pieces with different colours and hatching."""
    rows = {split: _shares(own)[what] for split, own in measured.splits.items()}
    if measured.in_paper:
        given = PAPER_SHARES[what]
        rows["paper, all"] = {name: given.get(name, 0.0) for name in names}
    left = [0.0] * len(rows)
    for number, name in enumerate(names):
        widths = [row[name] for row in rows.values()]
        if not any(widths):
            continue
        axes.barh(range(len(rows)), widths, left=left, label=name, color=f"C{number}", hatch=("", "//", "..")[number % 3],
                  edgecolor="white", linewidth=0.5)  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set(xlim=(0, 100))
    axes.set_xlabel({"types": "first answer is (%)", "asked": "question word (%)"}[what])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False, fontsize=8)


def _draw_shared(axes: "Axes", measured: Measured) -> None:
    """Draw how much of the split below is in the split at the left: a leak if one is for training and one for testing."""
    names = list(measured.splits)
    shares = [
        [100 * measured.shared[row][column] / max(measured.shared[column][column], 1) for column in names]
        for row in names
    ]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for row, values in enumerate(shares):
        for column, share in enumerate(values):
            text = f"{measured.shared[names[row]][names[column]]:,}\n{share:.1f}%"
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if share > 60 else "black")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel("share of this split that stands in the one at the left", fontsize=8)
