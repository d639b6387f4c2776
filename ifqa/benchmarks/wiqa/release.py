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
from pathlib import Path
from typing import Literal, NamedTuple

from ifqa.benchmarks.wiqa.graphs import Graph, Words, locate_nodes, read_records
from ifqa.errors import IfqaError, unknown_name
from ifqa.reading.multiple_choice.wiqa_question import split_stem
from ifqa.settings import Natural, StrictModel, Text, parse_section
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
_CHOICE_RECORDS = [{"label": letter, "text": text} for letter, text in CHOICES.values()]
Direction = Literal["more", "less"]


class QuestionLine(StrictModel):
    """A line of a file of questions."""

    question: dict[str, object]
    metadata: dict[str, object]
    explanation: dict[str, object] | None = None


class QuestionRecord(StrictModel):
    """`question` of a line."""

    stem: Text
    para_steps: list[Words]
    answer_label: Literal["more", "less", "no_effect"]
    answer_label_as_choice: str
    choices: list[dict[str, str]]


class MetadataRecord(StrictModel):
    """`metadata` of a line."""

    ques_id: Text
    graph_id: Text
    para_id: Text
    question_type: Literal["INPARA_EFFECT", "EXOGENOUS_EFFECT", "OUTOFPARA_DISTRACTOR", "INPARA_DISTRACTOR"]
    path_len: Natural


class ExplanationRecord(StrictModel):
    """Why a change has its effect: sentence `i` becomes "more" or "less" true, then sentence `j`, then the effect (`de`).

    Sentences count from 0.
    """

    i: Natural
    di: Direction
    j: Natural
    dj: Direction
    de: Direction


class WiqaQuestion(StrictModel):
    """A question as released."""

    question: QuestionRecord
    metadata: MetadataRecord
    explanation: ExplanationRecord | None = None

    @property
    def kind(self) -> str:
        """The type in the paper's words: in_para, out_of_para or no_effect."""
        return TYPES[self.metadata.question_type]

    @property
    def hops(self) -> int:
        """Edges of the path; 0 if there is none."""
        return max(self.metadata.path_len - 1, 0)

    def record(self) -> dict[str, object]:
        """The released layout."""
        return self.model_dump(exclude_none=True)


def new_wiqa_question(graph: Graph, name: str, stem: str, label: str, kind: str, length: int) -> WiqaQuestion:
    """A question of a graph whose path has `length` nodes; `kind` is a key of TYPES."""
    question = {
        "stem": stem, "para_steps": graph.steps, "answer_label": label, "answer_label_as_choice": CHOICES[label][0],
        "choices": _CHOICE_RECORDS,
    }  # fmt: skip
    about = {
        "ques_id": name,
        "graph_id": graph.id,
        "para_id": graph.paragraph_id,
        "question_type": kind,
        "path_len": length,
    }
    return WiqaQuestion.model_validate({"question": question, "metadata": about})


def read_wiqa_questions(path: Path) -> list[WiqaQuestion]:
    """The questions of a file, in its order."""
    return [*read_records(path, "question", parse_wiqa_question, lambda item: item.metadata.ques_id).values()]


def parse_wiqa_question(record: Mapping[str, object], where: str) -> WiqaQuestion:
    """A question from a record in the released layout."""
    line = parse_section(QuestionLine, record, where)
    question = parse_section(QuestionRecord, line.question, f"{where}: question")
    about = parse_section(MetadataRecord, line.metadata, f"{where}: metadata")
    try:
        split_stem(question.stem)
    except IfqaError as error:
        raise IfqaError(f"{where}: {error}") from error
    label, letter, length = question.answer_label, question.answer_label_as_choice, about.path_len
    if question.choices != _CHOICE_RECORDS:
        raise IfqaError(f"{where}: 'choices' is not A more, B less, C no effect, in this order")
    if letter != CHOICES[label][0]:
        raise IfqaError(f"{where}: 'answer_label_as_choice' is {letter!r}; {label} is choice {CHOICES[label][0]}")
    apart = TYPES[about.question_type] == "no_effect"
    if (label == "no_effect") != apart or (length != 0 if apart else length < 2):
        raise IfqaError(
            f"{where}: {about.question_type} has the label {label!r} and path_len {length}; wanted "
            + ("no_effect and 0" if apart else "more or less, and 2 nodes at least")
        )
    why = (
        parse_section(ExplanationRecord, line.explanation, f"{where}: explanation")
        if line.explanation is not None
        else None
    )
    if why and not why.i <= why.j < len(question.para_steps):
        raise IfqaError(
            f"{where}: 'explanation' has the sentences {why.i} and {why.j}; wanted 0 to {len(question.para_steps) - 1}, "
            "i before j"
        )
    return WiqaQuestion(question=question, metadata=about, explanation=why)


def check_label(item: WiqaQuestion, graphs: Mapping[str, Graph], where: str) -> bool:
    """Whether a question is found in its graph: both its parts are phrasings there, and a path of its length joins them."""
    name, label = item.metadata.graph_id, item.question.answer_label
    if name not in graphs:
        raise IfqaError(f"{where}: {unknown_name('graph', name, graphs)}")
    graph = graphs[name]
    source, target = locate_nodes(graph, *split_stem(item.question.stem), item.metadata.path_len)
    if source and label != (chain := graph.chains[source, target]).answer:
        raise IfqaError(
            f"{where}: the label is {label}, but by its path {' -> '.join(chain.nodes)} it is {chain.answer}"
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
