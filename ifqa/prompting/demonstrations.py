"""Demonstrations: questions with answers that a prompt shows before the question (few-shot
prompting).

In `prompts/demos/NAME.jsonl` the first line describes the file; each further line is a
demonstration:

    {"about": "…", "source": "this project", "family": "sample"}
    {"question": "If …?", "answer": "1865", "factual": "1869", "steps": {"reasoning": "…"},
     "passages": [{"id": "176-1", "title": "Suez Canal", "text": "…"}]}

A multiple-choice question also has `"choices": ["more", "less"]`. `family` is `Benchmark.family` of
the questions' split, "" for none. IfQA's split families share questions, so demonstrations from one
family may not be used for the other.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ifqa.errors import ConfigError, FormatError
from ifqa.records import Passage, Question, draw_key, gold_id
from ifqa.settings import StrictModel, Text, check_record, parse_section
from ifqa.storage.files import read_jsonl
from ifqa.storage.resources import require_resource


class DemosHeader(StrictModel):
    """The first line of a file of demonstrations."""

    family: str
    about: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Demo:
    """A question with its answer and other parts for a prompt; unknown parts are empty."""

    question: Text
    answer: Text
    passages: tuple[Passage, ...] = ()  # they contain the answer, best first
    # The reasoning, by names of steps in prompts
    steps: Mapping[str, str] = field(default_factory=dict)
    factual: str = ""  # the answer in the real world
    choices: tuple[str, ...] = ()  # the choices that the question offers


@dataclass(frozen=True, slots=True)
class Demos:
    """Demonstrations and their questions' split family."""

    family: str
    demos: tuple[Demo, ...]


def demos_path(name: str, root: Path = Path()) -> Path:
    """The file of written demonstrations."""
    return require_resource("demonstrations", "prompts/demos", ".jsonl", name, root)


def load_demos(name: str, root: Path = Path()) -> Demos:
    """The demonstrations of `prompts/demos/NAME.jsonl`, in the file's order."""
    path = demos_path(name, root)
    lines = list(read_jsonl(path))
    if len(lines) < 2:
        keys = ", ".join(DemosHeader.model_fields)
        raise FormatError(f"{path}: wanted a first line with {keys}, then demonstrations")
    (number, first), *rest = lines
    header = parse_section(DemosHeader, first, f"{path}:{number}")
    return Demos(
        header.family, tuple(_parse_demo(record, f"{path}:{number}") for number, record in rest)
    )


def draw_demos(
    questions: Sequence[Question],
    count: int,
    seed: int,
    family: str = "",
    avoid: Collection[str] = (),
) -> Demos:
    """Sample demonstrations from training questions, each with its first answer and gold passages,
    without reasoning.

    `draw_key` decides, so a smaller sample is the start of a larger one. `avoid` has texts of
    questions to exclude: some evaluation questions are also training questions.
    """
    excluded = set(map(_normalize, avoid))
    answered = [
        question for question in questions if question.answers and question.answers[0].strip()
    ]
    candidates = [question for question in answered if _normalize(question.text) not in excluded]
    if len(candidates) < count:
        raise ConfigError(
            f"wanted {count} demonstrations, found {len(candidates)} questions; ask for fewer"
        )
    sample = sorted(candidates, key=partial(draw_key, seed))[:count]
    return Demos(family, tuple(map(_demo_from_question, sample)))


def _demo_from_question(question: Question) -> Demo:
    context = (question.context,) if question.choices else ()
    texts = [text for text in question.gold_passages or context if text.strip()]
    passages = tuple(Passage(gold_id(text), "", text) for text in texts)
    return Demo(question.text, question.answers[0], passages, choices=question.choices)


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


def _parse_demo(record: dict[str, Any], where: str) -> Demo:
    check_record(Demo, record, "key", where)
    passages = record.get("passages", [])
    for passage in passages:
        if not isinstance(passage, dict):
            raise FormatError(f"{where}: passages: wanted an object, found {passage!r:.80}")
        check_record(Passage, passage, "key", f"{where}: passages")
    if not all(isinstance(step, str) for step in record.get("steps", {}).values()):
        raise FormatError(
            f"{where}: key 'steps': wanted a text for each step's name, found {record['steps']}"
        )
    choices = tuple(record.get("choices", ()))
    return Demo(
        **record
        | {"passages": tuple(Passage(**passage) for passage in passages), "choices": choices}
    )
