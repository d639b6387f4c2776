"""Counts of WIQA's questions by split, beside the paper's Table 1; and labels held against the graphs' paths."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ifqa.benchmarks.wiqa.derive import FOLDER, SAMPLE
from ifqa.benchmarks.wiqa.graphs import Graph, read_graphs
from ifqa.benchmarks.wiqa.release import CHOICES, Item, check_label, read_items, read_topics
from ifqa.errors import IfqaError
from ifqa.report.table import Table
from ifqa.storage.files import read_jsonl

KINDS = ("in_para", "out_of_para", "no_effect")
#: Table 1 of the paper (Tandon et al., EMNLP 2019): train, dev, test. The test split of the release has 3,003 questions.
PUBLISHED: dict[str, tuple[int, int, int]] = {
    "topics": (87, 23, 12),
    "paragraphs": (261, 77, 41),
    "graphs": (1453, 424, 230),
    "questions": (29808, 6894, 3993),
    "in_para": (7303, 1655, 935),
    "out_of_para": (12567, 2941, 1598),
    "no_effect": (9936, 2298, 1460),
    "1 hop": (6754, 1510, 835),
    "2 hops": (8969, 2145, 1153),
    "3 hops": (4149, 941, 545),
}
_SPLITS = ("train", "dev", "test")


@dataclass
class Counts:
    """A split's counts.

    Attributes:
        topics: None if the topics of the paragraphs are not known.
        types, answers: the questions of each type, and of each label.
        hops: edges of the path -> questions with an effect.
        located: questions whose two parts are found in their graph; None if no graphs are given.
    """

    topics: int | None
    paragraphs: int
    graphs: int
    questions: int
    types: dict[str, int] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    hops: dict[int, int] = field(default_factory=dict)
    located: int | None = None


def measure(sources: Sequence[str], graphs: Path | None = None) -> dict[str, Counts]:
    """Name of a file without its suffix -> its counts.

    Args:
        sources: files of questions, folders with train.jsonl, dev.jsonl, test.jsonl and made ones, or "sample-wiqa".
        graphs: a file of graphs, to hold the labels against their paths.

    Raises:
        IfqaError: a file is missing or not as it should be, two have the same name, or a label contradicts its path.
    """
    known = read_graphs(graphs) if graphs else None
    found: dict[str, Counts] = {}
    for path in (path for source in sources for path in _files(source)):
        if path.stem in found:
            raise IfqaError(f"{path}: another file is called {path.stem} too; count them one after the other")
        found[path.stem] = _count(path, known)
    return found


def _files(source: str) -> list[Path]:
    folder = FOLDER if source == SAMPLE else Path(source)
    if not folder.is_dir():
        return [folder]
    there = [folder / f"{made}{split}.jsonl" for made in ("", "made-") for split in _SPLITS]
    files = [path for path in there if path.exists()]
    if not files:
        raise IfqaError(f"{folder}: no train.jsonl, dev.jsonl or test.jsonl in it; run: ifqa data wiqa")
    return files


def _count(path: Path, graphs: Mapping[str, Graph] | None) -> Counts:
    items = read_items(path)
    located = None
    if graphs is not None:
        located = sum(check_label(item, graphs, f"{path}: {item.id}") for item in items)
    paragraphs = {item.paragraph for item in items}
    topics = {topic for paragraph, topic in _topics(path.parent).items() if paragraph in paragraphs}
    types, answers = Counter(item.kind for item in items), Counter(item.label for item in items)
    return Counts(
        topics=len(topics) or None,
        paragraphs=len(paragraphs),
        graphs=len({item.graph for item in items}),
        questions=len(items),
        types={kind: types[kind] for kind in KINDS},
        answers={label: answers[label] for label in CHOICES},
        hops=_hops(items),
        located=located,
    )


def _hops(items: Sequence[Item]) -> dict[int, int]:
    counts = Counter(item.hops for item in items if item.hops)
    return {hops: counts[hops] for hops in range(1, max([3, *counts]) + 1)}


def _topics(folder: Path) -> dict[str, str]:
    """Paragraph -> topic, from the folder's topics.tsv or processes.jsonl."""
    if (path := folder / "topics.tsv").exists():
        return {paragraph: one.topic for paragraph, one in read_topics(path).items()}
    if folder == FOLDER:
        return {record["para_id"]: record["topic"] for _, record in read_jsonl(folder / "processes.jsonl")}
    return {}


def stats_json(found: Mapping[str, Counts]) -> dict[str, object]:
    """The counts as JSON data, with the paper's beside them."""
    paper = {split: {name: row[n] for name, row in PUBLISHED.items()} for n, split in enumerate(_SPLITS)}
    return {"splits": {name: asdict(counts) for name, counts in found.items()}, "paper": paper}


def tables(counted: Mapping[str, Counts], published: bool) -> Iterator[Table]:
    """The counts, a column a split; `published` adds the paper's columns."""
    columns: dict[str, Mapping[str, int | None]] = {name: _rows(counts) for name, counts in counted.items()}
    notes = []
    if published:
        for number, split in enumerate(_SPLITS):
            columns[f"paper {split}"] = {name: row[number] for name, row in PUBLISHED.items()}
        notes.append("paper: Table 1 of Tandon et al., 2019. The released test split has 3,003.")
    if any(counts.located is not None for counts in counted.values()):
        notes.append("located: both parts are found in the graph; no label contradicts its path.")
    rows = []
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        counts_of = (column.get(name) for column in columns.values())
        rows.append((name, *("-" if count is None else f"{count:,}" for count in counts_of)))
    yield Table("", "\n".join(notes), ("", *columns), tuple(rows))


def _rows(counts: Counts) -> dict[str, int | None]:
    rows: dict[str, int | None] = {
        name: getattr(counts, name) for name in ("topics", "paragraphs", "graphs", "questions")
    }
    rows |= counts.types
    rows |= {f"{hops} hop{'s' if hops > 1 else ''}": number for hops, number in counts.hops.items()}
    rows |= {f"answer {label}": number for label, number in counts.answers.items()}
    return rows | ({"located": counts.located} if counts.located is not None else {})
