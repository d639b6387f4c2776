"""The records that stages and plugins speak in."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class Question:
    """A counterfactual question with its annotation.

    `id` is namespaced by benchmark and split ("ifqa/full-dev/17"); `answers` are all valid forms, any of which counts;
    `gold_passages` are the texts annotators answered from, not ids, because dumps differ; `choices` is empty unless
    the benchmark is multiple-choice.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    gold_passages: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of an article: `text` does not repeat the title. `id` holds no white space (TREC runs are split at it)."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of a ranking; a ranking is a `list[Hit]`, best first."""

    passage_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """A reader's answer. `completion` is the raw text it was parsed from; `passage_ids` the evidence, most important first.

    A prediction with an `error`, or with an empty `answer`, is a failure: it scores 0 and is counted. Readers that have
    them give the answer's `score` (the logarithm of its probability) and one of each of `passage_ids`, highest first, and
    `factual`, the answer in the real world, which the question supposes away.
    """

    question_id: str
    answer: str
    completion: str = ""
    passage_ids: tuple[str, ...] = ()
    error: str = ""
    score: float | None = None
    passage_scores: tuple[float, ...] = ()
    factual: str = ""

    @property
    def failed(self) -> bool:
        """Whether the reader gave no answer; what counts as `n_failed`."""
        return bool(self.error) or not self.answer.strip()


@dataclass(frozen=True)
class Cost:
    """What building an index will take: seconds, bytes of disk, bytes of memory; `about` is said besides."""

    seconds: float
    disk: float
    memory: float
    about: str = ""


def gold_id(text: str) -> str:
    """Id of a gold passage, which has none of its own: `gold/` and 12 hex digits of the SHA-1 of its text."""
    return "gold/" + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]


def questions_identity(questions: Iterable[Question]) -> str:
    """SHA-256 over everything the questions hold, as `ifqa.storage.artifacts.identity` has it of {"questions": [...]}."""
    return _questions_identity(tuple(questions))


@lru_cache(maxsize=8)  # a command asks for that of one split for each stage, and before and after it
def _questions_identity(questions: tuple[Question, ...]) -> str:
    """Question by question, so that a large split is never written out as a whole."""
    names = [field.name for field in fields(Question)]
    values = attrgetter(*names)
    digest = hashlib.sha256(b'{"questions": [')
    for number, question in enumerate(questions):
        record = dict(zip(names, values(question), strict=True))
        comma = ", " if number else ""
        digest.update((comma + json.dumps(record, sort_keys=True, ensure_ascii=False)).encode())
    digest.update(b"]}")
    return digest.hexdigest()
