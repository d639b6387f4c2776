"""The corpus of causal questions in numbers, by dataset and split, beside the paper's (`ifqa stats causal-corpus`).

The files are read line by line. How many questions the rules were tried on is known from the build alone; its manifest says it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.benchmarks.causalqa.corpus import facts_of
from ifqa.benchmarks.causalqa.output import SPLITS
from ifqa.benchmarks.causalqa.published import ALL, PUBLISHED, Published
from ifqa.errors import IfqaError
from ifqa.formats.publishers import LAYOUTS
from ifqa.progress import bar
from ifqa.storage.files import field, read_jsonl, texts_field

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class Counts:
    """Questions of a split, and the words of their texts and of their first answers, parted at white space."""

    questions: int = 0
    question_words: int = 0
    answer_words: int = 0

    def add(self, other: "Counts") -> None:
        """Add the counts of another split."""
        self.questions += other.questions
        self.question_words += other.question_words
        self.answer_words += other.answer_words


@dataclass(frozen=True)
class Counted:
    """Of one dataset.

    Attributes:
        read: the questions that the rules were tried on; None if it came from the authors' release.
        unanswered: causal questions that were left out because they have no answer.
        splits: the counts of each of `SPLITS`.
    """

    read: int | None
    unanswered: int
    splits: Mapping[str, Counts]

    @property
    def causal(self) -> Counts:
        """The causal questions: each is in one part of the random split."""
        found = Counts()
        found.add(self.splits["random-train"])
        found.add(self.splits["random-valid"])
        return found

    @property
    def share(self) -> float | None:
        """Causal questions with an answer in percent of all that were read; the paper's shares are so, too."""
        return 100 * self.causal.questions / self.read if self.read else None


def measure(folder: Path) -> dict[str, Counted]:
    """Count a finished corpus; dataset -> counts, in the paper's order.

    Raises:
        IfqaError: the corpus is not built, or a line is not as it was written.
    """
    facts = facts_of(folder)
    if not facts:
        raise IfqaError(f"{folder} is not there; run: ifqa data causalqa --from FOLDER")
    counted = {}
    for name in LAYOUTS:
        if name in facts:
            splits = {split: _count(folder / split / f"{name}.jsonl") for split in SPLITS}
            own = facts[name]
            counted[name] = Counted(own["questions"] or None, own["unanswered"], splits)
    return counted


def _count(path: Path) -> Counts:
    found = Counts()
    with bar(f"{path.parent.name}/{path.name}", None) as advance:
        for number, record in read_jsonl(path):
            where = f"{path}:{number}"
            answers = texts_field(record, "answers", where)
            if not answers:
                raise IfqaError(f"{where}: 'answers' is empty; build the corpus again")
            words = len(field(record, "question", str, where).split())
            found.add(Counts(1, words, len(answers[0].split())))
            advance(1)
    return found


def stats_json(counted: Mapping[str, Counted]) -> dict[str, object]:
    """The counts and the paper's values, for --json."""
    return {
        name: {
            "questions": own.read,
            "causal": own.causal.questions,
            "unanswered": own.unanswered,
            "share": own.share,
            "question_words": _mean(own.causal, "question_words"),
            "answer_words": _mean(own.causal, "answer_words"),
            "splits": {split: vars(counts) for split, counts in own.splits.items()},
            "paper": PUBLISHED[name]._asdict(),
        }
        for name, own in counted.items()
    }


def show(counted: Mapping[str, Counted]) -> None:
    """Print the counts as two tables, with the paper's values in the line below each dataset's."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print("[italic]Questions, and the causal ones (the paper: Tables 1 and 2)[/italic]")
    console.print(_sizes(counted))
    console.print("no answer: causal, but left out. question, answer: mean words of a causal")
    console.print("question, and of its first answer.")
    console.print("\n[italic]Causal questions by split (the paper: the N of Table 4)[/italic]")
    console.print(_splits(counted))
    if absent := [name for name in LAYOUTS if name not in counted]:
        console.print(f"Absent: {', '.join(absent)}.")


def _sizes(counted: Mapping[str, Counted]) -> "Table":
    table = _table("", "questions", "causal", "no answer", "share", "question", "answer")
    for name, own in counted.items():
        table.add_row(name, *_cells(own))
        table.add_row(*_paper(PUBLISHED[name]), style="dim")
    if len(counted) == len(LAYOUTS):
        table.add_row("all", *_cells(_all(counted)))
        table.add_row(*_paper(ALL), style="dim")
    return table


def _cells(own: Counted) -> Iterator[str]:
    yield "-" if own.read is None else f"{own.read:,}"
    yield f"{own.causal.questions:,}"
    yield f"{own.unanswered:,}"
    yield "-" if own.share is None else f"{own.share:.1f}%"
    for what in ("question_words", "answer_words"):
        mean = _mean(own.causal, what)
        yield "-" if mean is None else f"{mean:.1f}"


def _paper(own: Published) -> tuple[str, ...]:
    words = f"{own.question_words:.1f}", f"{own.answer_words:.1f}"
    return ("  paper", f"{own.questions:,}", f"{own.causal:,}", "-", f"{own.share:.1f}%", *words)


def _all(counted: Mapping[str, Counted]) -> Counted:
    """All datasets as one. Each question counts the same, as in the paper: its 12.0 words a question are so weighted."""
    splits = {split: Counts() for split in SPLITS}
    for own in counted.values():
        for split in SPLITS:
            splits[split].add(own.splits[split])
    read = [own.read for own in counted.values()]
    whole = None if None in read else sum(one or 0 for one in read)
    return Counted(whole, sum(own.unanswered for own in counted.values()), splits)


def _splits(counted: Mapping[str, Counted]) -> "Table":
    table = _table("", *SPLITS)
    for name, own in counted.items():
        table.add_row(name, *(f"{own.splits[split].questions:,}" for split in SPLITS))
        paper = PUBLISHED[name]
        table.add_row("  paper", "-", f"{paper.original:,}", "-", f"{paper.random:,}", style="dim")
    return table


def _mean(counts: Counts, what: str) -> float | None:
    return getattr(counts, what) / counts.questions if counts.questions else None


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    return table
