"""The files of WIQA's release: where they are, and strict readers of its questions and topics.

A line of questions (`train.jsonl`, `dev.jsonl`, `test.jsonl`); this one is made up:

    {"question": {"stem": "suppose the wind stops happens, how will it affect more seeds are carried off.",
                  "para_steps": ["Trees make seeds", "Wind carries them."], "answer_label": "less",
                  "answer_label_as_choice": "B", "choices": [{"label": "A", "text": "more"}, {"label": "B", "text": "less"},
                                                             {"label": "C", "text": "no effect"}]},
     "metadata": {"ques_id": "influence_graph:3:7:U-Y#0", "graph_id": "7", "para_id": "3", "question_type": "INPARA_EFFECT",
                  "path_len": 2}}

`path_len` counts the nodes of the path; it is 0 if the change comes from another paragraph. A line may also have
`"explanation": {"i": 1, "di": "less", "j": 1, "dj": "less", "de": "less"}`, as AllenAI's `WIQADataPoint` writes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ifqa.benchmarks.wiqa.graphs import Graph, Words, locate, read_each
from ifqa.errors import IfqaError, unknown
from ifqa.reading.multiple_choice.wiqa_question import parts
from ifqa.settings import Natural, Table, Text, check_table
from ifqa.storage.files import read_lines

_BUCKET = "https://public-aristo-processes.s3-us-west-2.amazonaws.com"
SPLITS = ("train", "dev", "test")
#: File in data/wiqa -> (URL, SHA-256). The addresses are those of AllenAI's code (github.com/allenai/wiqa-dataset,
#: src/helpers/dataset_info.py) and of the Hugging Face loader "wiqa". The publisher gives no checksums.
DOWNLOADS: dict[str, tuple[str, str | None]] = {
    **{f"{split}.jsonl": (f"{_BUCKET}/wiqa_dataset_no_explanation_v2/{split}.jsonl", None) for split in SPLITS},
    "graphs.jsonl": (f"{_BUCKET}/metadata/shard123.para.ifthenBlocks.outcomes.json", None),
    "topics.tsv": (f"{_BUCKET}/metadata/para_id.prompt.topic.partition.tsv", None),
}
#: Type as released -> the paper's name.
TYPES = {
    "INPARA_EFFECT": "in_para",
    "EXOGENOUS_EFFECT": "out_of_para",
    "OUTOFPARA_DISTRACTOR": "no_effect",
    "INPARA_DISTRACTOR": "no_effect",
}
CHOICES = {"more": ("A", "more"), "less": ("B", "less"), "no_effect": ("C", "no effect")}
_OFFERED = [{"label": letter, "text": text} for letter, text in CHOICES.values()]
Direction = Literal["more", "less"]


class LineTable(Table):
    """A line of a file of questions."""

    question: dict[str, object]
    metadata: dict[str, object]
    explanation: dict[str, object] | None = None


class QuestionTable(Table):
    """`question` of a line."""

    stem: Text
    para_steps: list[Words]
    answer_label: Literal["more", "less", "no_effect"]
    answer_label_as_choice: str
    choices: list[dict[str, str]]


class MetadataTable(Table):
    """`metadata` of a line."""

    ques_id: Text
    graph_id: Text
    para_id: Text
    question_type: Literal["INPARA_EFFECT", "EXOGENOUS_EFFECT", "OUTOFPARA_DISTRACTOR", "INPARA_DISTRACTOR"]
    path_len: Natural


class Explanation(Table):
    """Why a change has its effect: sentence `i` becomes "more" or "less" true, then sentence `j`, then the effect (`de`).

    Sentences count from 0.
    """

    i: Natural
    di: Direction
    j: Natural
    dj: Direction
    de: Direction


@dataclass(frozen=True)
class Item:
    """A question as released.

    Attributes:
        id, graph, paragraph: the ids of the question, its graph and its paragraph.
        stem: "suppose ... happens, how will it affect ....".
        steps: the sentences of the paragraph; the release has empty ones.
        label: "more", "less" or "no_effect".
        type: a key of TYPES.
        path_len: nodes of the path; 0 if the change comes from another paragraph.
        explanation: None if there is none.
    """

    id: str
    graph: str
    paragraph: str
    stem: str
    steps: tuple[str, ...]
    label: str
    type: str
    path_len: int
    explanation: Explanation | None = None

    @property
    def kind(self) -> str:
        """The type in the paper's words: in_para, out_of_para or no_effect."""
        return TYPES[self.type]

    @property
    def hops(self) -> int:
        """Edges of the path; 0 if there is none."""
        return max(self.path_len - 1, 0)

    def record(self) -> dict[str, object]:
        """The released layout."""
        record: dict[str, object] = {
            "question": {
                "stem": self.stem,
                "para_steps": list(self.steps),
                "answer_label": self.label,
                "answer_label_as_choice": CHOICES[self.label][0],
                "choices": _OFFERED,
            },
            "metadata": {
                "ques_id": self.id,
                "graph_id": self.graph,
                "para_id": self.paragraph,
                "question_type": self.type,
                "path_len": self.path_len,
            },
        }
        return record | ({"explanation": self.explanation.model_dump()} if self.explanation else {})


def read_items(path: Path) -> list[Item]:
    """The questions of a file, in its order."""
    return [*read_each(path, "question", read_item).values()]


def read_item(record: Mapping[str, object], where: str) -> Item:
    """A question from a record in the released layout."""
    line = check_table(LineTable, record, where)
    question = check_table(QuestionTable, line.question, f"{where}: question")
    about = check_table(MetadataTable, line.metadata, f"{where}: metadata")
    try:
        parts(question.stem)
    except IfqaError as error:
        raise IfqaError(f"{where}: {error}") from error
    label, letter = question.answer_label, question.answer_label_as_choice
    if question.choices != _OFFERED:
        raise IfqaError(f"{where}: 'choices' is not A more, B less, C no effect, in this order")
    if letter != CHOICES[label][0]:
        raise IfqaError(f"{where}: 'answer_label_as_choice' is {letter!r}; {label} is choice {CHOICES[label][0]}")
    apart = TYPES[about.question_type] == "no_effect"
    if (label == "no_effect") != apart or (about.path_len != 0 if apart else about.path_len < 2):
        raise IfqaError(
            f"{where}: {about.question_type} has the label {label!r} and path_len {about.path_len}; wanted "
            + ("no_effect and 0" if apart else "more or less, and 2 nodes at least")
        )
    why = None
    if line.explanation is not None:
        why = check_table(Explanation, line.explanation, f"{where}: explanation")
        if not why.i <= why.j < len(question.para_steps):
            raise IfqaError(
                f"{where}: 'explanation' has the sentences {why.i} and {why.j}; wanted 0 to {len(question.para_steps) - 1}, "
                "i before j"
            )
    return Item(
        about.ques_id, about.graph_id, about.para_id, question.stem, tuple(question.para_steps), label, about.question_type,
        about.path_len, why,
    )  # fmt: skip


def check_label(item: Item, graphs: Mapping[str, Graph], where: str) -> bool:
    """Whether a question is found in its graph: both its parts are phrasings there, and a path of its length joins them."""
    if item.graph not in graphs:
        raise IfqaError(f"{where}: {unknown('graph', item.graph, graphs)}")
    graph = graphs[item.graph]
    source, target = locate(graph, *parts(item.stem), item.path_len)
    if source and item.label != (chain := graph.chains[source, target]).answer:
        raise IfqaError(
            f"{where}: the label is {item.label}, but by its path {' -> '.join(chain.nodes)} it is {chain.answer}"
        )
    return bool(target)


class Topic(NamedTuple):
    """The topic of a paragraph, and the split that holds all of its paragraphs."""

    topic: str
    split: str


def read_topics(path: Path) -> dict[str, Topic]:
    """Paragraph -> topic, from the publisher's `topics.tsv`, with columns para_id, prompt, topic and partition.

    A prefix "propara_" of an id, which some rows have, is cut off, as in AllenAI's `WhatifMetadata`.
    """
    lines = read_lines(path)
    names = next(lines, (0, ""))[1].split("\t")
    topics: dict[str, Topic] = {}
    for number, line in lines:
        row = dict(zip(names, line.split("\t"), strict=False))
        if line.strip() and not all(row.get(key) for key in ("para_id", "topic", "partition")):
            raise IfqaError(f"{path}:{number}: wanted columns para_id, prompt, topic and partition, separated by tabs")
        if line.strip():
            topics[row["para_id"].removeprefix("propara_")] = Topic(row["topic"], row["partition"])
    return topics
