"""Counts of WIQA's questions by split, beside the paper's Table 1.

And labels checked against the graphs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ifqa.companions.wiqa.graphs import Graph, read_graphs
from ifqa.companions.wiqa.question_generation import FOLDER, SAMPLE
from ifqa.companions.wiqa.release import check_label, read_topics, read_wiqa_questions
from ifqa.errors import ConfigError, MissingInput
from ifqa.formatting import pluralize
from ifqa.protocols import CountTable
from ifqa.storage.files import read_jsonl

KINDS = ("in_para", "out_of_para", "no_effect")
_SPLITS = ("train", "dev", "test")
#: Table 1 of the paper (Tandon et al., EMNLP 2019): train, dev, test. The test split of the release
#: has 3,003 questions.
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

SplitCounts = dict[str, dict[str, int]]  # split or file name -> category -> count


def measure(sources: Sequence[str], graphs: Path | None = None) -> SplitCounts:
    """Count topics (if known), paragraphs, graphs, and questions by type and hops.

    `sources` are files of questions, folders of released and generated splits (train.jsonl,
    made-train.jsonl), or "sample-wiqa". With a file of `graphs`, labels are checked, and "located"
    counts the questions whose nodes are in their graph.
    """
    graphs_by_id = read_graphs(graphs) if graphs else None
    counts: SplitCounts = {}
    for path in (path for source in sources for path in _question_files(source)):
        if path.stem in counts:
            raise ConfigError(
                f"{path}: another file is also named {path.stem}; count them in separate commands"
            )
        counts[path.stem] = _count_file(path, graphs_by_id)
    return counts


def _question_files(source: str) -> list[Path]:
    folder = FOLDER if source == SAMPLE else Path(source)
    if not folder.is_dir():
        return [folder]
    names = [f"{kind}{split}.jsonl" for kind in ("", "made-") for split in _SPLITS]
    files = [folder / name for name in names if (folder / name).exists()]
    if not files:
        raise MissingInput(
            f"no train.jsonl, dev.jsonl or test.jsonl in {folder}; run: ifqa data wiqa"
        )
    return files


def _count_file(path: Path, graphs: Mapping[str, Graph] | None) -> dict[str, int]:
    questions = read_wiqa_questions(path)
    types = Counter(question.kind for question in questions)
    hops = Counter(question.hops for question in questions if question.hops)
    paragraphs = {question.metadata.para_id for question in questions}
    topics = {
        topic for paragraph, topic in _read_topics(path.parent).items() if paragraph in paragraphs
    }
    ids = {question.metadata.graph_id for question in questions}
    counts = {"topics": len(topics)} if topics else {}
    counts |= {"paragraphs": len(paragraphs), "graphs": len(ids), "questions": len(questions)}
    counts |= {kind: types[kind] for kind in KINDS}
    counts |= {pluralize(n, "hop"): hops[n] for n in range(1, max([3, *hops]) + 1)}
    if graphs is not None:
        located = (
            check_label(question, graphs, f"{path}: {question.metadata.ques_id}")
            for question in questions
        )
        counts["located"] = sum(located)
    return counts


def _read_topics(folder: Path) -> dict[str, str]:
    """Paragraph -> topic, from the folder's topics.tsv or processes.jsonl."""
    if (path := folder / "topics.tsv").exists():
        return {paragraph: topic.topic for paragraph, topic in read_topics(path).items()}
    if folder == FOLDER:
        return {
            record["para_id"]: record["topic"]
            for _, record in read_jsonl(folder / "processes.jsonl")
        }
    return {}


def table(counts: SplitCounts, published: bool) -> CountTable:
    """The counts, one column per split; `published` adds the paper's columns."""
    columns: dict[str, Mapping[str, int]] = {**counts}
    notes = []
    if published:
        for n, split in enumerate(_SPLITS):
            columns[f"paper {split}"] = {name: row[n] for name, row in PUBLISHED.items()}
        notes.append(
            "paper: Table 1 of Tandon et al., 2019. The released test split has 3,003 questions."
        )
    if any("located" in column for column in columns.values()):
        notes.append(
            "located: questions whose nodes are in their graph; each label agrees with the "
            "path between the nodes."
        )
    names = dict.fromkeys(name for column in columns.values() for name in ("topics", *column))
    rows = [
        (name, *(f"{column[name]:,}" if name in column else "-" for column in columns.values()))
        for name in names
    ]
    return CountTable(("", *columns), rows, note="\n".join(notes))
