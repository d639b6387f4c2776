"""Demonstrations: questions with their answers that a prompt shows a language model before it asks.

`prompts/demos/NAME.jsonl` holds written ones. Its first line says what they are, each further line is one:

    {"about": "…", "source": "this project", "family": "sample"}
    {"question": "If …?", "answer": "1865", "factual": "1869", "expression": "[[1859 + 6]]",
     "steps": {"reasoning": "…"}, "passages": [{"id": "176-1", "title": "Suez Canal", "text": "…"}]}

`setting` is what a benchmark's `family(split)` says of the split that the questions are from, "" if from none: IfQA's
settings hold the same questions, so demonstrations from one may not serve the other.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ifqa.errors import IfqaError, unknown
from ifqa.prompting.calculator import compute_in
from ifqa.prompting.values import CalculatorError
from ifqa.records import Passage, Question, gold_id
from ifqa.storage import files
from ifqa.storage.resources import named_resource

_HEAD = ("about", "source", "family")
_KEYS = ("question", "answer", "factual", "expression", "steps", "passages")
_PASSAGE = ("id", "title", "text")


@dataclass(frozen=True, slots=True)
class Demo:
    """A question with its answer, and what a prompt may want besides; what is not known is empty.

    Attributes:
        passages: what the answer can be read from, best first.
        steps: the reasoning, by the names that prompts use: "reasoning", "fact", "change", "world".
        factual: the answer in the real world.
        expression: the answer with the calculation in it, "[[1859 + 6]]", where it is computed.
    """

    question: str
    answer: str
    passages: tuple[Passage, ...] = ()
    steps: Mapping[str, str] = field(default_factory=dict)
    factual: str = ""
    expression: str = ""


@dataclass(frozen=True, slots=True)
class Demos:
    """Demonstrations of one origin: the name of their file, or how they were drawn, and whose family of questions they are."""

    name: str
    family: str
    demos: tuple[Demo, ...]


def demos_path(name: str, root: Path = Path()) -> Path:
    """The file of written demonstrations.

    Raises:
        IfqaError: there is none of that name.
    """
    return named_resource("demonstrations", "prompts/demos", ".jsonl", name, root)


def load_demos(name: str, root: Path = Path()) -> Demos:
    """The demonstrations of `prompts/demos/NAME.jsonl`, in the file's order.

    Raises:
        IfqaError: there is no such file, or a line is not as above (named as file:line).
    """
    path = demos_path(name, root)
    lines = list(files.read_jsonl(path))
    if len(lines) < 2:
        raise IfqaError(f"{path}: wanted a first line with {', '.join(_HEAD)}, and demonstrations after it")
    (number, head), *rest = lines
    _check_keys(head, _HEAD, f"{path}:{number}")
    family: str = files.field(head, "family", str, f"{path}:{number}")
    return Demos(name, family, tuple(_demo(record, f"{path}:{number}") for number, record in rest))


def draw_demos(
    questions: Sequence[Question], count: int, seed: int, family: str = "", avoid: Collection[str] = ()
) -> Demos:
    """Demonstrations from a benchmark's training questions: the first answer and the gold passages of each, no reasoning.

    Questions are drawn by the hashes of seed and id, so neither their order nor Python's version matters, and the first
    four of eight are the four.

    Args:
        questions: those to draw from.
        count: how many.
        seed: another one draws others.
        family: that of their split.
        avoid: texts of questions that may not be drawn, such as those that will be asked: some stand in both splits.

    Raises:
        IfqaError: there are fewer questions than that.
    """
    barred = set(map(_plain, avoid))
    fit = [one for one in questions if one.answers and one.answers[0].strip() and _plain(one.text) not in barred]
    if len(fit) < count:
        raise IfqaError(f"wanted {count} demonstrations, found {len(fit)} questions to draw them from; ask for fewer")
    drawn = sorted(fit, key=lambda one: hashlib.sha256(f"{seed}:{one.id}".encode()).digest())[:count]
    return Demos(f"{count} drawn by seed {seed}", family, tuple(map(_drawn, drawn)))


def _drawn(question: Question) -> Demo:
    passages = tuple(Passage(gold_id(text), "", text) for text in question.gold_passages if text.strip())
    return Demo(question.text, question.answers[0], passages)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _demo(record: dict[str, object], where: str) -> Demo:
    _check_keys(record, _KEYS, where)
    steps: dict[str, object] = files.field({"steps": {}} | record, "steps", dict, where)
    demo = Demo(
        question=files.text_field(record, "question", where),
        answer=files.text_field(record, "answer", where),
        passages=tuple(_passage(one, where) for one in files.field({"passages": []} | record, "passages", list, where)),
        steps={step: files.text_field(steps, step, f"{where}: steps") for step in steps},
        factual=files.text_field(record, "factual", where) if "factual" in record else "",
        expression=files.text_field(record, "expression", where) if "expression" in record else "",
    )
    try:
        value = compute_in(demo.expression)
    except CalculatorError as error:
        raise IfqaError(f"{where}: 'expression': {error}") from error
    if value and value != demo.answer:
        raise IfqaError(f"{where}: 'expression' is {value!r}, but the answer {demo.answer!r}; make them agree")
    return demo


def _passage(record: object, where: str) -> Passage:
    if not isinstance(record, dict):
        raise IfqaError(f"{where}: 'passages' must hold objects with {', '.join(_PASSAGE)}; found {record!r}")
    _check_keys(record, _PASSAGE, f"{where}: passages")
    title: str = files.field({"title": ""} | record, "title", str, where)
    return Passage(files.text_field(record, "id", where), title, files.text_field(record, "text", where))


def _check_keys(record: Mapping[str, object], known: Collection[str], where: str) -> None:
    for key in record:
        if key not in known:
            raise unknown(f"{where}: key", key, known)
