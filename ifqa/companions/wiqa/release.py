"""WIQA's release: the addresses of its files, and strict readers of its questions and topics.

An invented line of a file of questions (`train.jsonl`, `dev.jsonl`, `test.jsonl`):

    {"question": {"stem": "suppose the wind stops happens, how will it affect more seeds ...",
                  "para_steps": ["Trees make seeds", "Wind carries them."], "answer_label": "less",
                  "answer_label_as_choice": "B",
                  "choices": [{"label": "A", "text": "more"}, {"label": "B", "text": "less"},
                              {"label": "C", "text": "no effect"}]},
     "metadata": {"ques_id": "influence_graph:3:7:U-Y#0", "graph_id": "7", "para_id": "3",
                  "question_type": "INPARA_EFFECT", "path_len": 2}}

`path_len` is the number of nodes on the path; 0 for a distractor. An "explanation", as in AllenAI's
`WIQADataPoint`, is not read.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ifqa.companions.wiqa.graphs import Graph, Words, locate_nodes, read_records
from ifqa.errors import ConfigError, FormatError, IfqaError, unknown_name
from ifqa.settings import Natural, StrictModel, Text, parse_section
from ifqa.storage.files import read_lines

_BUCKET = "https://public-aristo-processes.s3-us-west-2.amazonaws.com"
SPLITS = ("train", "dev", "test")
#: File in data/wiqa -> (URL, SHA-256). The addresses are in AllenAI's code
#: (github.com/allenai/wiqa-dataset, src/helpers/dataset_info.py) and in the Hugging Face loader
#: "wiqa". The publisher gives no checksums.
DOWNLOADS: dict[str, tuple[str, str | None]] = {
    **{
        f"{split}.jsonl": (f"{_BUCKET}/wiqa_dataset_no_explanation_v2/{split}.jsonl", None)
        for split in SPLITS
    },
    "graphs.jsonl": (f"{_BUCKET}/metadata/shard123.para.ifthenBlocks.outcomes.json", None),
    "topics.tsv": (f"{_BUCKET}/metadata/para_id.prompt.topic.partition.tsv", None),
}
#: Released type -> the paper's name.
TYPES = {
    "INPARA_EFFECT": "in_para",
    "EXOGENOUS_EFFECT": "out_of_para",
    "OUTOFPARA_DISTRACTOR": "no_effect",
    "INPARA_DISTRACTOR": "no_effect",
}
CHOICES = {"more": ("A", "more"), "less": ("B", "less"), "no_effect": ("C", "no effect")}
_CHOICE_RECORDS = [{"label": letter, "text": text} for letter, text in CHOICES.values()]


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
    question_type: Literal[
        "INPARA_EFFECT", "EXOGENOUS_EFFECT", "OUTOFPARA_DISTRACTOR", "INPARA_DISTRACTOR"
    ]
    path_len: Natural


class WiqaQuestion(StrictModel):
    """A question in the released layout."""

    question: QuestionRecord
    metadata: MetadataRecord
    explanation: object = None

    @property
    def kind(self) -> str:
        """The type as the paper names it: in_para, out_of_para or no_effect."""
        return TYPES[self.metadata.question_type]

    @property
    def hops(self) -> int:
        """Number of edges of the path; 0 without a path."""
        return max(self.metadata.path_len - 1, 0)

    def record(self) -> dict[str, object]:
        """The question in the released layout."""
        return self.model_dump(exclude_none=True)


_STEM = re.compile(r"suppose (.*?) happens, how will it affect (.*)\.", re.DOTALL)


def split_stem(stem: str) -> tuple[str, str]:
    """Change and effect of WIQA's question "suppose CHANGE happens, how will it affect EFFECT."."""
    match = _STEM.fullmatch(stem)
    if not match:
        raise FormatError(
            f"the question {stem!r} is not: suppose CHANGE happens, how will it affect EFFECT."
        )
    return match[1], match[2]


def new_wiqa_question(
    graph: Graph, name: str, stem: str, label: str, kind: str, length: int
) -> WiqaQuestion:
    """A question about a graph, on a path of `length` nodes; `kind` is a key of TYPES."""
    question = {
        "stem": stem,
        "para_steps": graph.steps,
        "answer_label": label,
        "answer_label_as_choice": CHOICES[label][0],
        "choices": _CHOICE_RECORDS,
    }
    ids = {"ques_id": name, "graph_id": graph.id, "para_id": graph.paragraph_id}
    metadata = {**ids, "question_type": kind, "path_len": length}
    return WiqaQuestion.model_validate({"question": question, "metadata": metadata})


def read_wiqa_questions(path: Path) -> list[WiqaQuestion]:
    """The questions of a file, in its order."""
    return [
        *read_records(
            path, "question", parse_wiqa_question, lambda question: question.metadata.ques_id
        ).values()
    ]


def parse_wiqa_question(record: Mapping[str, object], where: str) -> WiqaQuestion:
    """A question from a record in the released layout."""
    for key, model in (("question", QuestionRecord), ("metadata", MetadataRecord)):
        if record.get(key) is not None:
            parse_section(model, record[key], f"{where}: {key}")  # names the key within it
    line = parse_section(WiqaQuestion, record, where)
    question = line.question
    metadata = line.metadata
    try:
        split_stem(question.stem)
    except IfqaError as error:
        raise FormatError(f"{where}: {error}") from error
    label = question.answer_label
    letter = question.answer_label_as_choice
    length = metadata.path_len
    if question.choices != _CHOICE_RECORDS:
        raise FormatError(f"{where}: 'choices' is not A more, B less, C no effect, in this order")
    if letter != CHOICES[label][0]:
        raise FormatError(
            f"{where}: 'answer_label_as_choice' is {letter!r}; {label} is choice "
            f"{CHOICES[label][0]}"
        )
    no_effect = TYPES[metadata.question_type] == "no_effect"
    if (label == "no_effect") != no_effect or (length != 0 if no_effect else length < 2):
        wanted = "no_effect and 0" if no_effect else "more or less, and at least 2 nodes"
        raise FormatError(
            f"{where}: {metadata.question_type} has the label {label!r} and path_len "
            f"{length}; wanted {wanted}"
        )
    return line


def check_label(question: WiqaQuestion, graphs: Mapping[str, Graph], where: str) -> bool:
    """Check a question's label against its graph (else FormatError).

    Returns whether `locate_nodes` finds its nodes.
    """
    name = question.metadata.graph_id
    label = question.question.answer_label
    if name not in graphs:
        raise ConfigError(f"{where}: {unknown_name('graph', name, graphs)}")
    graph = graphs[name]
    source, target = locate_nodes(
        graph, *split_stem(question.question.stem), question.metadata.path_len
    )
    if source and label != (chain := graph.chains[source, target]).answer:
        raise FormatError(
            f"{where}: the label is {label}, but the path "
            f"{' -> '.join(chain.nodes)} gives {chain.answer}"
        )
    return bool(target)


class Topic(NamedTuple):
    """The topic of a paragraph, and the split with all paragraphs of the topic."""

    topic: str
    split: str


def read_topics(path: Path) -> dict[str, Topic]:
    """Paragraph -> topic, from the publisher's `topics.tsv`, with columns para_id, prompt, topic
    and partition.

    The prefix "propara_" of some ids is removed, as in AllenAI's `WhatifMetadata`.
    """
    lines = read_lines(path)
    names = next(lines, (0, ""))[1].split("\t")
    topics: dict[str, Topic] = {}
    for number, line in lines:
        row = dict(zip(names, line.split("\t"), strict=False))
        if line.strip() and not all(row.get(key) for key in ("para_id", "topic", "partition")):
            raise FormatError(
                f"{path}:{number}: wanted columns para_id, prompt, topic and partition, "
                "separated by tabs"
            )
        if line.strip():
            topics[row["para_id"].removeprefix("propara_")] = Topic(row["topic"], row["partition"])
    return topics
