"""`ifqa data wiqa --questions-from`: questions made from graphs, split by paragraph."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ifqa.benchmarks.wiqa.derive import SPLITS, questions, read_sentences, split
from ifqa.benchmarks.wiqa.graphs import Graph
from ifqa.benchmarks.wiqa.layouts import read_graphs
from ifqa.benchmarks.wiqa.release import read_items, read_topics
from ifqa.errors import IfqaError
from ifqa.progress import counted, say
from ifqa.storage.files import read_jsonl, write_jsonl
from ifqa.storage.resources import BUNDLED

FOLDER = BUNDLED / "wiqa"
SAMPLE = "sample-wiqa"  # names the bundled graphs


def make(root: Path, sources: Sequence[str], seed: int) -> Iterator[str]:
    """Write data/wiqa/made-{train,dev,test}.jsonl, and their graphs to made-graphs.jsonl; yields a line for each file.

    A paragraph that the release has, in files that are there, or the sample stays in its split. So no question is made for
    training from a paragraph of a test split. Other paragraphs are divided by a hash.

    Args:
        root: the folder above data/.
        sources: files of graphs, or "sample-wiqa" for the bundled ones.
        seed: of the split and of all draws.

    Raises:
        IfqaError: a file is missing or not as it should be, or no graph leads to an outcome; nothing is written then.
    """
    graphs: dict[str, Graph] = {}
    lines: list[dict[str, object]] = []
    for source in sources:
        path = FOLDER / "graphs.jsonl" if source == SAMPLE else Path(source)
        found = read_graphs(path)
        if twice := next((name for name in found if name in graphs), None):
            raise IfqaError(f"{path}: graph_id {twice!r} is in two of the files; give each graph its own")
        graphs |= found
        lines += [record for _, record in read_jsonl(path)]
    usable = {name: graph for name, graph in graphs.items() if graph.usable}
    if not usable:
        raise IfqaError(f"{', '.join(sources)}: no graph leads to its outcome; wanted 'Y_affects_outcome' more or less")
    if left := len(graphs) - len(usable):
        say(f"{counted(left, 'graph')} left out: marked as without effect on the outcome")
    folder = root / "data" / "wiqa"
    parts = split((graph.paragraph_id for graph in usable.values()), seed, known_splits(folder))
    sentences = read_sentences(FOLDER / "sentences.jsonl")
    by_split = {name: [one for one in usable.values() if parts[one.paragraph_id] == name] for name in SPLITS}
    made = {name: questions(own, seed, sentences) for name, own in by_split.items()}
    for name, items in made.items():
        path, own = folder / f"made-{name}.jsonl", by_split[name]
        write_jsonl(path, (item.record() for item in items))
        paragraphs = counted(len({graph.paragraph_id for graph in own}), "paragraph")
        yield f"{path}: {counted(len(items), 'question')} of {counted(len(own), 'graph')}, {paragraphs}"
    write_jsonl(folder / "made-graphs.jsonl", (line for line in lines if line["graph_id"] in usable))
    yield f"{folder / 'made-graphs.jsonl'}: {counted(len(usable), 'graph')}"


def known_splits(folder: Path) -> dict[str, str]:
    """Paragraph -> split, as far as the sample and the release's files in a folder tell.

    Raises:
        IfqaError: one of the files is not as it should be.
    """
    known = {record["para_id"]: record["split"] for _, record in read_jsonl(FOLDER / "processes.jsonl")}
    if (topics := folder / "topics.tsv").exists():
        known |= {name: one.split for name, one in read_topics(topics).items() if one.split in SPLITS}
    for name in SPLITS:
        if (path := folder / f"{name}.jsonl").exists():
            known |= dict.fromkeys((item.paragraph for item in read_items(path)), name)
    return known
