"""The benchmark `wiqa` (Tandon et al., EMNLP 2019), read from data/wiqa/SPLIT.jsonl in the released layout (`release.py`).

The splits are train, dev and test. Your own file data/wiqa/NAME.jsonl is the split NAME; `ifqa data wiqa --questions-from` writes
the splits made-train, made-dev and made-test. Optional files are `topics.tsv`, with each paragraph's topic, and `graphs.jsonl`
(`made-graphs.jsonl` for generated questions), with the graphs, in which a question's nodes are found.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ifqa.benchmarks.wiqa.consistency import DISJUNCTIVE, SYMMETRY, TRANSITIVITY
from ifqa.benchmarks.wiqa.direction_lexicon import direction
from ifqa.benchmarks.wiqa.graphs import Graph, locate_nodes, read_graphs
from ifqa.benchmarks.wiqa.release import (
    CHOICES,
    DOWNLOADS,
    SPLITS,
    WiqaQuestion,
    read_topics,
    read_wiqa_questions,
    split_stem,
)
from ifqa.errors import FormatError, MissingInput, unknown_name
from ifqa.protocols import Benchmark, Subset
from ifqa.records import Question
from ifqa.scoring.measures.exact_match import ACCURACY
from ifqa.scoring.measures.gold_recall import GOLD_ANY
from ifqa.storage.files import cached_by_file, read_jsonl
from ifqa.storage.resources import BUNDLED

_GRAPHS = ("graphs", "made-graphs")  # files without questions
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


def _has_label(label: str, value: str) -> Callable[[Question], bool]:
    return lambda question: value in question.label(label).split(", ")


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
#: What makes a change hard (the paper's section 5.4), by rules over its words; docs/wiqa.md has the rules. A direction word that
#: is also in the paragraph, such as "cools" in a text on rocks, does not count, unless it is in _AMOUNTS.
PHENOMENA = {
    "qualitative": "whose change has a word for an increase or a decrease",
    "lexical match": "whose change is in the paragraph, and one of its sentences has the words of the change",
    "negation": "whose change is negated",
    "juxtaposed": "whose change has words for both an increase and a decrease",
}
_NEGATION = re.compile(
    r"\b(no|not|never|none|nothing|nobody|nowhere|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
_AMOUNTS = ("more", "less", "fewer", "most", "least", "many", "few", "much", "little")
_WORD = re.compile(r"[^\W\d_]+")
_ENDS = re.compile(r"n['’]t\b|['’]s\b")  # doesn't, the sun's
_FUNCTION = frozenset(
    "a an the this that these those it its they them their there here of to in into on onto at by for from with as and "
    "or but if when while is are was were be been being has have had do does did will would can could may might ca wo not no "
    "never without cannot about very too so than then also some any all each every one".split()
)
_SUFFIX = re.compile(r"(?<=..)(ies|es|s|ed|ing|e|y)$")
SUBSETS = (
    *(Subset(name, _has_label("type", name), in_tables=True, about=about) for name, about in KINDS.items()),
    *(Subset(name, _has_label("hops", name[0]), in_tables=True, about=about) for name, about in HOPS.items()),
    *(
        Subset(name, _has_label("phenomena", name), about=f"the questions {PHENOMENA[name]}, by rule")
        for name in PHENOMENA
    ),
)


class Wiqa(Benchmark):
    """Questions with three choices, scored by accuracy and by the answers' consistency; intervals are over paragraphs.

    A question's group is its paragraph's id; the paragraph is its context and gold passage. Its labels are "type", "hops" (empty
    for "no effect"), "topic", "graph", "source" and "target" (nodes of the graph), "phenomena" and "explanation"; an unknown
    label is empty or missing.
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
        """The three splits, and the user's files."""
        names = [path.name.removesuffix(".jsonl") for path in sorted(self.folder.glob("*.jsonl"))]
        return [*SPLITS, *(name for name in names if name not in (*SPLITS, *_GRAPHS))]

    @property
    def subsets(self) -> list[Subset]:  # type: ignore[override]  # the topics are known only from the folder
        """Subsets by type, hops, phenomenon, and topic: the test split's topics and those of `topics.tsv`."""
        topics = {topic.casefold(): topic for topic in (*TOPICS, *sorted(self.topics().values()))}.values()
        return [*SUBSETS, *(Subset(topic, _has_topic(topic), about=f"the questions on {topic}") for topic in topics)]

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
        topics, graphs = self.topics(), self.graphs(split)
        return [
            self._convert(question, split, topics, graphs.get(question.metadata.graph_id))
            for question in _read_questions(path)
        ]

    def family(self, split: str) -> str:
        """The benchmark's name for its own splits, which share no topic; empty for a user's file."""
        return self.name if split in SPLITS else ""

    def topics(self) -> dict[str, str]:
        """Paragraph -> topic; empty without `topics.tsv`."""
        path = self.folder / "topics.tsv"
        return {name: topic.topic for name, topic in read_topics(path).items()} if path.is_file() else {}

    def graphs(self, split: str) -> Mapping[str, Graph]:
        """Graph id -> graph, for a split's questions; empty without the file of graphs."""
        path = self.folder / ("made-graphs.jsonl" if split.startswith("made-") else "graphs.jsonl")
        return _read_graphs(path) if path.is_file() else {}

    def _convert(self, released: WiqaQuestion, split: str, topics: Mapping[str, str], graph: Graph | None) -> Question:
        question, metadata, why = released.question, released.metadata, released.explanation
        change, effect = split_stem(question.stem)
        source, target = locate_nodes(graph, change, effect, metadata.path_len) if graph else ("", "")
        steps, kind = question.para_steps, released.kind
        context = " ".join(step for step in steps if step.strip())  # joined as in AllenAI's code for BERT
        labels = {
            "type": kind, "hops": str(released.hops or ""), "topic": topics.get(metadata.para_id, ""),
            "graph": metadata.graph_id, "source": source, "target": target,
            "phenomena": ", ".join(find_phenomena(change, steps, kind == "in_para")),
        }  # fmt: skip
        if why is not None:
            labels["explanation"] = f"{why.di}: {steps[why.i]} {why.dj}: {steps[why.j]} {why.de}: {effect}"
        return Question(
            f"{self.name}/{split}/{metadata.ques_id}", question.stem, (CHOICES[question.answer_label][1],), (context,),
            choices=tuple(text for _, text in CHOICES.values()), context=context, group=metadata.para_id,
            labels=tuple(labels.items()),
        )  # fmt: skip


class SampleWiqa(Wiqa):
    """Questions from the bundled influence graphs of twelve processes, which a language model wrote for this project.

    Seven processes are in train, two in dev and three in test; each process is a topic.
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


def find_phenomena(change: str, steps: Sequence[str], in_paragraph: bool) -> tuple[str, ...]:
    """The PHENOMENA of a change; `steps` are its paragraph's sentences, `in_paragraph` says whether they mention the change."""
    words, sentences = _words(change), [_stems(_words(step)) for step in steps]
    stems = set[str]().union(*sentences)
    directions = {word: direction(word) for word in words if word in _AMOUNTS or not _stems([word]) <= stems}
    content = _stems(word for word in words if word not in _FUNCTION and not directions.get(word))
    holds = {
        "qualitative": any(directions.values()),
        "lexical match": in_paragraph and bool(content) and any(content <= sentence for sentence in sentences),
        "negation": bool(_NEGATION.search(change)),
        "juxtaposed": {1, -1} <= {*directions.values()},
    }
    return tuple(name for name in PHENOMENA if holds[name])


def _words(text: str) -> list[str]:
    return _WORD.findall(_ENDS.sub("", text.lower()))


def _stems(words: Iterable[str]) -> set[str]:
    return {_SUFFIX.sub("", word) for word in words}


@cached_by_file(4)
def _read_questions(path: Path) -> tuple[WiqaQuestion, ...]:
    questions = tuple(read_wiqa_questions(path))
    if name := next((name for question in questions if (name := question.metadata.ques_id).split() != [name]), ""):
        raise FormatError(
            f"{path}: ques_id {name!r} holds white space, which separates fields in rankings; wanted none"
        )
    return questions


_read_graphs = cached_by_file(2)(read_graphs)
