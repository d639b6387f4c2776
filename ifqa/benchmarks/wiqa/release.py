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
from typing import Any, NamedTuple

from ifqa.benchmarks.wiqa.graphs import Graph, locate, read_each
from ifqa.errors import IfqaError, unknown
from ifqa.reading.multiple_choice.wiqa_question import parts
from ifqa.storage.files import field, known_keys, read_lines, text_field, unicode_text

_BUCKET = "https://public-aristo-processes.s3-us-west-2.amazonaws.com"
#: File in data/wiqa -> (URL, SHA-256). The addresses are those of AllenAI's code (github.com/allenai/wiqa-dataset,
#: src/helpers/dataset_info.py) and of the Hugging Face loader "wiqa". The publisher gives no checksums.
DOWNLOADS: dict[str, tuple[str, str | None]] = {
    **{f"{split}.jsonl": (f"{_BUCKET}/wiqa_dataset_no_explanation_v2/{split}.jsonl", None) for split in ("train", "dev", "test")},
    "graphs.jsonl": (f"{_BUCKET}/metadata/shard123.para.ifthenBlocks.outcomes.json", None),
    "topics.tsv": (f"{_BUCKET}/metadata/para_id.prompt.topic.partition.tsv", None),
}  # fmt: skip
#: Type as released -> the paper's name.
TYPES = {
    "INPARA_EFFECT": "in_para",
    "EXOGENOUS_EFFECT": "out_of_para",
    "OUTOFPARA_DISTRACTOR": "no_effect",
    "INPARA_DISTRACTOR": "no_effect",
}
CHOICES = {"more": ("A", "more"), "less": ("B", "less"), "no_effect": ("C", "no effect")}
_OFFERED = [{"label": letter, "text": text} for letter, text in CHOICES.values()]
_KEYS = {
    "": ("question", "metadata", "explanation"),
    "question": ("stem", "para_steps", "answer_label", "answer_label_as_choice", "choices"),
    "metadata": ("ques_id", "graph_id", "para_id", "question_type", "path_len"),
    "explanation": ("i", "di", "j", "dj", "de"),
}


class Explanation(NamedTuple):
    """Why a change has its effect: sentence `i` becomes "more" or "less" true, then sentence `j`, then the effect (`de`).

    Sentences count from 0.
    """

    i: int
    di: str
    j: int
    dj: str
    de: str


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
        return record | ({"explanation": self.explanation._asdict()} if self.explanation else {})


def read_items(path: Path, graphs: Mapping[str, Graph] | None = None) -> list[Item]:
    """The questions of a file, in its order; with `graphs`, also held against the graphs' paths.

    Raises:
        IfqaError: the file is missing, or a line is not as above, or its label contradicts its path; the message begins with
            file:line.
    """

    def read(record: Mapping[str, Any], where: str) -> Item:
        item = read_item(record, where)
        if graphs is not None:
            check_label(item, graphs, where)
        return item

    return [*read_each(path, "question", "ques_id", read).values()]


def read_item(record: Mapping[str, Any], where: str) -> Item:
    """A question from a record in the released layout.

    Raises:
        IfqaError: the record is not as above; `where` opens the message.
    """
    known_keys(record, _KEYS[""], where)
    question, about = (
        known_keys(field(record, key, dict, where), _KEYS[key], where) for key in ("question", "metadata")
    )
    steps = field(question, "para_steps", list, where)
    if not all(isinstance(step, str) for step in steps):
        raise IfqaError(f"{where}: 'para_steps' must be a list of strings")
    stem = text_field(question, "stem", where)
    try:
        parts(stem)
    except IfqaError as error:
        raise IfqaError(f"{where}: {error}") from error
    label = _label(question, where)
    kind, path_len = text_field(about, "question_type", where), field(about, "path_len", int, where)
    if kind not in TYPES:
        raise IfqaError(f"{where}: {unknown('question_type', kind, TYPES)}")
    apart = TYPES[kind] == "no_effect"
    if (label == "no_effect") != apart or isinstance(path_len, bool) or (path_len != 0 if apart else path_len < 2):
        raise IfqaError(
            f"{where}: {kind} has the label {label!r} and path_len {path_len}; wanted "
            + ("no_effect and 0" if apart else "more or less, and 2 nodes at least")
        )
    explanation = record.get("explanation")
    return Item(
        id=text_field(about, "ques_id", where),
        graph=text_field(about, "graph_id", where),
        paragraph=text_field(about, "para_id", where),
        stem=stem,
        steps=tuple(unicode_text(step, "para_steps", where) for step in steps),
        label=label,
        type=kind,
        path_len=path_len,
        explanation=_explanation(explanation, len(steps), where) if explanation is not None else None,
    )


def _label(question: Mapping[str, Any], where: str) -> str:
    label, letter = (text_field(question, key, where) for key in ("answer_label", "answer_label_as_choice"))
    choices = field(question, "choices", list, where)
    if choices != _OFFERED:
        raise IfqaError(f"{where}: 'choices' is not A more, B less, C no effect, in this order")
    if label not in CHOICES:
        raise IfqaError(
            f"{where}: 'answer_label' is {label!r}, which is not offered; wanted one of {', '.join(CHOICES)}"
        )
    if letter != CHOICES[label][0]:
        raise IfqaError(f"{where}: 'answer_label_as_choice' is {letter!r}; {label} is choice {CHOICES[label][0]}")
    return label


def _explanation(record: object, steps: int, where: str) -> Explanation:
    if not isinstance(record, dict):
        raise IfqaError(f"{where}: 'explanation' must be an object with i, di, j, dj and de")
    known_keys(record, _KEYS["explanation"], where)
    i, j = (field(record, key, int, where) for key in ("i", "j"))
    di, dj, de = (text_field(record, key, where) for key in ("di", "dj", "de"))
    if isinstance(i, bool) or isinstance(j, bool) or not 0 <= i <= j < steps or not {di, dj, de} <= {"more", "less"}:
        raise IfqaError(
            f"{where}: 'explanation' is {i} {di}, {j} {dj}, {de}; wanted sentences 0 to {steps - 1}, i before j, and more or less"
        )
    return Explanation(i, di, j, dj, de)


def check_label(item: Item, graphs: Mapping[str, Graph], where: str) -> bool:
    """Whether a question is found in its graph: both its parts are phrasings there, and a path of its length joins them.

    Raises:
        IfqaError: there is no such graph, or the label contradicts the signs of the path; `where` opens the message.
    """
    if item.graph not in graphs:
        raise IfqaError(f"{where}: {unknown('graph', item.graph, graphs)}")
    graph = graphs[item.graph]
    source, target = locate(graph, *parts(item.stem), item.path_len)
    if source:
        chain = graph.chains[source, target]
        if item.label != (answer := "more" if chain.sign > 0 else "less"):
            raise IfqaError(
                f"{where}: the label is {item.label}, but by its path {' -> '.join(chain.nodes)} it is {answer}"
            )
    return bool(target)


class Topic(NamedTuple):
    """The topic of a paragraph, and the split that holds all of its paragraphs."""

    topic: str
    split: str


def read_topics(path: Path) -> dict[str, Topic]:
    """Paragraph -> topic, from the publisher's `topics.tsv`, with columns para_id, prompt, topic and partition.

    A prefix "propara_" of an id, which some rows have, is cut off, as in AllenAI's `WhatifMetadata`.

    Raises:
        IfqaError: the file is missing, or a row is not as above; the message begins with file:line.
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
