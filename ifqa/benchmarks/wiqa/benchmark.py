"""The benchmark `wiqa` (Tandon et al., EMNLP 2019), read from data/wiqa/SPLIT.jsonl in the released layout (`release.py`).

The splits are train, dev and test. A file of your own, data/wiqa/NAME.jsonl, is the split NAME; `ifqa data wiqa
--questions-from` writes the splits made-train, made-dev and made-test. Other files are optional: `topics.tsv` has the topic of
each paragraph; `graphs.jsonl`, or `made-graphs.jsonl` for made questions, has the graphs, to name the nodes of a question.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ifqa.benchmarks.wiqa.consistency import DISJUNCTIVE, SYMMETRY, TRANSITIVITY
from ifqa.benchmarks.wiqa.graphs import Graph, locate, read_graphs
from ifqa.benchmarks.wiqa.phenomena import PHENOMENA, phenomena
from ifqa.benchmarks.wiqa.release import CHOICES, DOWNLOADS, SPLITS, Item, read_items, read_topics
from ifqa.errors import IfqaError, unknown
from ifqa.protocols import Benchmark, Subset
from ifqa.reading.multiple_choice.wiqa_question import parts
from ifqa.records import Question
from ifqa.scoring.measures.exact_match import ACCURACY
from ifqa.scoring.measures.gold_recall import GOLD_ANY
from ifqa.storage.files import cached_by_file, read_jsonl
from ifqa.storage.resources import BUNDLED

_GRAPHS = ("graphs", "made-graphs")  # files that hold no questions
#: The topics of the test split, in the order of the paper's Table 3.
TOPICS = (
    "igneous rock", "plant crops", "solar eclipse", "frog", "DNA replication", "water cycle", "fish", "pumpkin", "pollination",
    "blood", "mountain", "evaporation",
)  # fmt: skip
MEASURES = (
    replace(ACCURACY, unit="group", about="how often the answer is the right one of the three choices"),
    TRANSITIVITY,
    DISJUNCTIVE,
    SYMMETRY,
    GOLD_ANY,
)


def _labelled(label: str, value: str) -> Callable[[Question], bool]:
    return lambda question: value in question.label(label).split(", ")


def _of_topic(topic: str) -> Callable[[Question], bool | None]:
    return lambda question: True if question.label("topic").casefold() == topic.casefold() else None


KINDS = {
    "in_para": "the questions whose change is in the paragraph",
    "out_of_para": "the questions whose change is outside the paragraph and affects it",
    "no_effect": "the questions whose change is from another paragraph",
}
HOPS = {
    "1_hop": "the questions whose effect is one step from the change",
    "2_hops": "those whose effect is two steps from it",
    "3_hops": "those whose effect is three steps from it",
}
SUBSETS = (
    *(Subset(name, _labelled("type", name), in_tables=True, about=about) for name, about in KINDS.items()),
    *(Subset(name, _labelled("hops", name[0]), in_tables=True, about=about) for name, about in HOPS.items()),
    *(
        Subset(name, _labelled("phenomena", name), about=f"the questions {about}, by rule")
        for name, about in PHENOMENA.items()
    ),
)


class Wiqa(Benchmark):
    """Questions with three choices, scored by accuracy and by how consistent the answers are; intervals are over paragraphs.

    A question's group is its paragraph, which is its context and its gold passage too. Its labels are "type", "hops" (empty
    without effect), "topic", "graph", "source" and "target" (nodes of the graph), "phenomena" and "explanation"; a label is
    empty, or left out, where it is not known.
    """

    name = "wiqa"
    groups = "paragraph"
    measures = MEASURES
    downloads = DOWNLOADS
    missing = "run: ifqa data wiqa"

    def __init__(self, root: Path = Path()) -> None:
        self.folder = root / "data" / self.name

    @property
    def splits(self) -> list[str]:
        """The three splits, and the user's files that are there."""
        names = [path.name.removesuffix(".jsonl") for path in sorted(self.folder.glob("*.jsonl"))]
        return [*SPLITS, *(name for name in names if name not in (*SPLITS, *_GRAPHS))]

    @property
    def subsets(self) -> list[Subset]:  # type: ignore[override]  # the topics are known only from the folder
        """By type, by hops, by phenomenon, and by topic: the test split's, and those of `topics.tsv`."""
        named = {topic.casefold(): topic for topic in (*TOPICS, *sorted(self.topics().values()))}
        return [*SUBSETS, *(Subset(name, _of_topic(name), about=f"the questions on {name}") for name in named.values())]

    def files(self, split: str) -> list[Path]:
        """The one file of a split."""
        path = self.folder / f"{split}.jsonl"
        if split not in self.splits:
            raise unknown(f"split of {self.name}", split, self.splits)
        if not path.is_file():
            raise IfqaError(f"{self.name} {split}: {path} is missing; {self.missing}")
        return [path]

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, in the file's order."""
        (path,) = self.files(split)
        topics, graphs = self.topics(), self.graphs(split)
        return [self._question(item, split, topics, graphs.get(item.graph)) for item in _items(path)]

    def family(self, split: str) -> str:
        """The benchmark's name for its own splits, which share no topic; empty for a user's file."""
        return self.name if split in SPLITS else ""

    def topics(self) -> dict[str, str]:
        """Paragraph -> topic; empty if they are not known."""
        path = self.folder / "topics.tsv"
        return {name: topic.topic for name, topic in read_topics(path).items()} if path.is_file() else {}

    def graphs(self, split: str) -> Mapping[str, Graph]:
        """Id -> graph of a split's questions; empty if the graphs are not there."""
        path = self.folder / ("made-graphs.jsonl" if split.startswith("made-") else "graphs.jsonl")
        return _graphs(path) if path.is_file() else {}

    def _question(self, item: Item, split: str, topics: Mapping[str, str], graph: Graph | None) -> Question:
        change, effect = parts(item.stem)
        source, target = locate(graph, change, effect, item.path_len) if graph else ("", "")
        context = " ".join(step for step in item.steps if step.strip())  # as AllenAI's code joins them for BERT
        labels = {
            "type": item.kind,
            "hops": str(item.hops or ""),
            "topic": topics.get(item.paragraph, ""),
            "graph": item.graph,
            "source": source,
            "target": target,
            "phenomena": ", ".join(phenomena(change, item.steps, item.kind == "in_para")),
        }
        if (why := item.explanation) is not None:
            labels["explanation"] = f"{why.di}: {item.steps[why.i]} {why.dj}: {item.steps[why.j]} {why.de}: {effect}"
        return Question(
            id=f"{self.name}/{split}/{item.id}",
            text=item.stem,
            answers=(CHOICES[item.label][1],),
            gold_passages=(context,),
            choices=tuple(text for _, text in CHOICES.values()),
            context=context,
            group=item.paragraph,
            labels=tuple(labels.items()),
        )


class SampleWiqa(Wiqa):
    """Questions made from the bundled influence graphs of twelve processes, which a language model wrote for this project.

    Seven processes are train, two dev and three test. Each is a topic of its own.
    """

    name = "sample-wiqa"
    subsets = SUBSETS  # type: ignore[assignment]
    downloads = {}  # noqa: RUF012
    folder = BUNDLED / "wiqa"

    def __init__(self) -> None:
        pass

    @property
    def splits(self) -> list[str]:
        """The three splits."""
        return [*SPLITS]

    def topics(self) -> dict[str, str]:
        """Paragraph -> topic."""
        return {record["para_id"]: record["topic"] for _, record in read_jsonl(self.folder / "processes.jsonl")}


@cached_by_file(4)
def _items(path: Path) -> tuple[Item, ...]:
    items = tuple(read_items(path))
    if blank := next((item.id for item in items if item.id.split() != [item.id]), ""):
        raise IfqaError(f"{path}: the ques_id {blank!r} has white space, at which rankings are cut; wanted one without")
    return items


@cached_by_file(2)
def _graphs(path: Path) -> Mapping[str, Graph]:
    return read_graphs(path)
