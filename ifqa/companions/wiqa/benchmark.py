"""The benchmark `wiqa` (Tandon et al., EMNLP 2019), read from data/wiqa/SPLIT.jsonl in the released
layout (`release.py`).

The splits are train, dev and test. Your own file data/wiqa/NAME.jsonl is the split NAME; `ifqa data
wiqa --questions-from` writes the splits made-train, made-dev and made-test. Optional files are
`topics.tsv`, with each paragraph's topic, and `graphs.jsonl` (`made-graphs.jsonl` for generated
questions), with the graphs, in which a question's nodes are found.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from ifqa.companions.wiqa.consistency import DISJUNCTIVE, SYMMETRY, TRANSITIVITY
from ifqa.companions.wiqa.graphs import Graph, locate_nodes, read_graphs
from ifqa.companions.wiqa.release import (
    CHOICES,
    DOWNLOADS,
    SPLITS,
    WiqaQuestion,
    read_topics,
    read_wiqa_questions,
    split_stem,
)
from ifqa.errors import FormatError, MissingInput, unknown_name
from ifqa.protocols import Benchmark, Counts, Resource, Subset
from ifqa.records import Question
from ifqa.scoring.measures.exact_match import ACCURACY
from ifqa.scoring.measures.gold_recall import GOLD_ANY
from ifqa.storage.files import cached_by_file, read_jsonl
from ifqa.storage.resources import BUNDLED

_GRAPHS = ("graphs", "made-graphs")  # files without questions
#: The topics of the test split, in the order of the paper's Table 3.
TOPICS = (
    "igneous rock",
    "plant crops",
    "solar eclipse",
    "frog",
    "DNA replication",
    "water cycle",
    "fish",
    "pumpkin",
    "pollination",
    "blood",
    "mountain",
    "evaporation",
)
MEASURES = (
    replace(
        ACCURACY, unit="group", about="how often the answer is the right one of the three choices"
    ),
    TRANSITIVITY,
    DISJUNCTIVE,
    SYMMETRY,
    GOLD_ANY,
)


def _has_label(label: str, value: str) -> Callable[[Question], bool]:
    return lambda question: question.label(label) == value


def _has_topic(topic: str) -> Callable[[Question], bool | None]:
    return lambda question: True if question.label("topic").casefold() == topic.casefold() else None


KINDS = {
    "in_para": "the questions whose change is in the paragraph",
    "out_of_para": "the questions whose change is outside the paragraph and affects it",
    "no_effect": "the questions whose change is from another paragraph",
}
HOPS = {
    "1_hop": "the questions whose effect is one step from the change",
    "2_hops": "the questions whose effect is two steps from the change",
    "3_hops": "the questions whose effect is three steps from the change",
}
SUBSETS = (
    *(
        Subset(name, _has_label("type", name), in_tables=True, about=about)
        for name, about in KINDS.items()
    ),
    *(
        Subset(name, _has_label("hops", name[0]), in_tables=True, about=about)
        for name, about in HOPS.items()
    ),
)


class Wiqa(Benchmark):
    """Questions with three choices, scored by accuracy and by the answers' consistency.

    Intervals are over paragraphs.

    A question's group is its paragraph's id; the paragraph is its context and gold passage. Its
    labels are "type", "hops" (empty for "no effect"), "topic", "graph", "source" and "target"
    (nodes of the graph); an unknown label is empty.
    """

    name = "wiqa"
    takes: ClassVar[tuple[Resource, ...]] = ("root",)
    groups = "paragraph"
    measures = MEASURES
    downloads = DOWNLOADS
    missing = "run: ifqa data wiqa"

    def __init__(self, root: Path = Path()) -> None:
        self.folder = root / "data" / self.name

    @property
    def splits(self) -> list[str]:
        """The three splits, and the user's files."""
        names = [path.name.removesuffix(".jsonl") for path in sorted(self.folder.glob("*.jsonl"))]
        return [*SPLITS, *(name for name in names if name not in (*SPLITS, *_GRAPHS))]

    @property
    def subsets(self) -> list[Subset]:  # type: ignore[override]  # the topics are known only from the folder
        """Subsets by type, hops, and topic: the test split's topics and those of `topics.tsv`."""
        topics = {
            topic.casefold(): topic for topic in (*TOPICS, *sorted(self.topics().values()))
        }.values()
        return [
            *SUBSETS,
            *(
                Subset(topic, _has_topic(topic), about=f"the questions on {topic}")
                for topic in topics
            ),
        ]

    def files(self, split: str) -> list[Path]:
        """The file of a split, as a list."""
        path = self.folder / f"{split}.jsonl"
        if split not in self.splits:
            raise unknown_name(f"split of {self.name}", split, self.splits)
        if not path.is_file():
            raise MissingInput(f"{self.name} {split}: {path} is missing; {self.missing}")
        return [path]

    def questions(self, split: str) -> list[Question]:
        """The questions of a split, in the file's order."""
        (path,) = self.files(split)
        topics = self.topics()
        graphs = self.graphs(split)
        return [
            self._convert(question, split, topics, graphs.get(question.metadata.graph_id))
            for question in _read_questions(path)
        ]

    def family(self, split: str) -> str:
        """The benchmark's name for its own splits, which share no topic.

        Empty for a user's file.
        """
        return self.name if split in SPLITS else ""

    def counts(self) -> Mapping[str, Callable[..., Counts]]:
        """The verb of the paper's Table 1."""
        from ifqa.companions.wiqa.commands import counting

        return {"wiqa": counting(self)}

    def fetcher(self) -> Callable[..., Iterable[str]] | None:
        """What fetches the release, or makes questions from graphs."""
        from ifqa.companions.wiqa.commands import fetching

        return fetching(self)

    def topics(self) -> dict[str, str]:
        """Paragraph -> topic; empty without `topics.tsv`."""
        path = self.folder / "topics.tsv"
        return (
            {name: topic.topic for name, topic in read_topics(path).items()}
            if path.is_file()
            else {}
        )

    def graphs(self, split: str) -> Mapping[str, Graph]:
        """Graph id -> graph, for a split's questions; empty without the file of graphs."""
        path = self.folder / ("made-graphs.jsonl" if split.startswith("made-") else "graphs.jsonl")
        return _read_graphs(path) if path.is_file() else {}

    def _convert(
        self, released: WiqaQuestion, split: str, topics: Mapping[str, str], graph: Graph | None
    ) -> Question:
        question = released.question
        metadata = released.metadata
        change, effect = split_stem(question.stem)
        source, target = (
            locate_nodes(graph, change, effect, metadata.path_len) if graph else ("", "")
        )
        # Joined as in AllenAI's code for BERT
        context = " ".join(step for step in question.para_steps if step.strip())
        labels = {
            "type": released.kind,
            "hops": str(released.hops or ""),
            "topic": topics.get(metadata.para_id, ""),
            "graph": metadata.graph_id,
            "source": source,
            "target": target,
        }
        return Question(
            f"{self.name}/{split}/{metadata.ques_id}",
            question.stem,
            (CHOICES[question.answer_label][1],),
            (context,),
            choices=tuple(text for _, text in CHOICES.values()),
            context=context,
            group=metadata.para_id,
            labels=tuple(labels.items()),
        )


class SampleWiqa(Wiqa):
    """Questions from the bundled influence graphs of twelve processes, which a language model wrote
    for this project.

    Seven processes are in train, two in dev and three in test; each process is a topic.
    """

    name = "sample-wiqa"
    takes = ()
    subsets = SUBSETS  # type: ignore[assignment]
    downloads = {}  # noqa: RUF012
    folder = BUNDLED / "wiqa"

    def __init__(self) -> None:
        pass

    @property
    def splits(self) -> list[str]:
        """The three splits."""
        return [*SPLITS]

    def counts(self) -> Mapping[str, Callable[..., Counts]]:
        """None: `ifqa stats wiqa sample-wiqa` counts the bundled questions."""
        return {}

    def fetcher(self) -> None:
        """None: there is nothing to fetch."""

    def topics(self) -> dict[str, str]:
        """Paragraph -> topic."""
        return {
            record["para_id"]: record["topic"]
            for _, record in read_jsonl(self.folder / "processes.jsonl")
        }


@cached_by_file(4)
def _read_questions(path: Path) -> tuple[WiqaQuestion, ...]:
    questions = tuple(read_wiqa_questions(path))
    if name := next(
        (name for question in questions if (name := question.metadata.ques_id).split() != [name]),
        "",
    ):
        raise FormatError(
            f"{path}: ques_id {name!r} holds white space, which separates fields in rankings; "
            "wanted none"
        )
    return questions


_read_graphs = cached_by_file(2)(read_graphs)
