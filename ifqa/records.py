"""The records that stages and plugins speak in."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from html import escape
from operator import attrgetter
from typing import NamedTuple, TypedDict

from ifqa.progress import printable, printable_line


@dataclass(frozen=True, slots=True)
class Question:
    """A counterfactual question with its annotation.

    `id` is namespaced by benchmark and split ("ifqa/full-dev/17"); `answers` are all valid forms, any of which counts;
    `gold_passages` are the texts annotators answered from, not ids, because dumps differ; `choices` is empty unless
    the benchmark is multiple-choice. `context` is a text that comes with the question; `group` is the part of the benchmark
    it is of (a dataset, a paragraph), and `labels` what else is known of it, as (name, value).
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    gold_passages: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    context: str = ""
    group: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def label(self, name: str) -> str:
        """The value of a label; empty where the question has none of that name."""
        return dict(self.labels).get(name, "")


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


@dataclass(frozen=True, slots=True)
class Answer:
    """What an opened system answers: `text`, empty where `error` says why there is none.

    `evidence` are the passages it was read from, the most telling first; `factual` is the answer in the real world, where the
    reader gives one.
    """

    question: Question
    text: str
    evidence: tuple[Passage, ...] = ()
    factual: str = ""
    error: str = ""

    def __str__(self) -> str:
        return printable(self.text or f"(no answer: {self.error or 'the reader found nothing'})")

    def _repr_html_(self) -> str:
        factual = f"<p>In fact: {escape(self.factual)}</p>" if self.factual else ""
        found = "".join(f"<li>{_passage_html(one, self.text)}</li>" for one in self.evidence)
        return f"<p>{escape(self.question.text)}</p><p><b>{escape(str(self))}</b></p>{factual}<ol>{found}</ol>"


@dataclass(frozen=True, slots=True)
class Ranking:
    """What an opened system retrieves for a question: `hits`, best first, and the `passages` that they name."""

    question: Question
    hits: tuple[Hit, ...]
    passages: tuple[Passage, ...]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[tuple[Passage, float]]:
        """Passages with their scores."""
        return ((passage, hit.score) for passage, hit in zip(self.passages, self.hits, strict=True))

    def __str__(self) -> str:
        lines = (f"{score:10.4f}  {passage.id}  {passage.text[:80]}" for passage, score in self)
        return "\n".join(map(printable_line, [self.question.text, *lines]))

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><td>{rank}</td><td>{score:.4f}</td><td>{_passage_html(passage)}</td></tr>"
            for rank, (passage, score) in enumerate(self, start=1)
        )
        return f"<p>{escape(self.question.text)}</p><table>{''.join(rows)}</table>"


_LONGEST = 500  # characters of an answer that is marked in a passage


def parted(text: str, answer: str) -> list[str]:
    """A text in pieces, of which every second is the answer where it stands as words; one piece where there is no answer.

    An answer of more than 500 characters is not looked for: the time grows with its length times that of the text.
    """
    if not answer.strip() or len(answer) > _LONGEST:
        return [text]
    return re.split(rf"(?i)(?<!\w)({re.escape(answer)})(?!\w)", text)


def _passage_html(passage: Passage, answer: str = "") -> str:
    """A passage with the answer marked where it stands as words; nothing in it is taken as HTML."""
    parts = parted(passage.text, answer)
    text = "".join(f"<mark>{escape(part)}</mark>" if n % 2 else escape(part) for n, part in enumerate(parts))
    return f"<b>{escape(passage.title)}</b> <small>{escape(passage.id)}</small><br>{text}"


@dataclass(frozen=True)
class Cost:
    """What building an index will take: seconds, bytes of disk, bytes of memory; `about` is said besides."""

    seconds: float
    disk: float
    memory: float
    about: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model: messages of a chat, or a text to go on from; exactly one of the two.

    Attributes:
        messages: (role, content) in their order; roles are "system", "user" and "assistant".
        text: the prompt of a model that takes no messages.
        max_tokens: the answer's room, in tokens.
        temperature: 0 for the likeliest answer.
        stop: strings at which the answer ends, themselves left out.
        sample: tells requests apart that are otherwise the same, where several samples of one prompt are wanted.
    """

    messages: tuple[tuple[str, str], ...] = ()
    text: str = ""
    max_tokens: int = 256
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    sample: int = 0

    def __post_init__(self) -> None:
        if bool(self.messages) == bool(self.text):
            raise ValueError("a request has either messages or a text")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; an answer needs room for one token")


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote, or why there is nothing.

    Attributes:
        text: the answer.
        prompt_tokens, completion_tokens: as the server counted them; 0 where it did not say.
        finish: why it ended: "stop", "length", ...
        error: one line where the request failed; the rest is empty then.
        cached: whether it came out of the store.
    """

    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish: str = ""
    error: str = ""
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """What a model was used for: requests sent (retries among them), answers out of the store, tokens, US dollars.

    Tokens of a request whose use the server never told are counted at their upper bound. `cost` is None where the
    price is unknown.
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def since(self, before: "Spent") -> "Spent":
        """What came on top of an earlier state."""
        cost = None if self.cost is None else self.cost - (before.cost or 0.0)
        return Spent(
            self.calls - before.calls, self.cached - before.cached, self.prompt_tokens - before.prompt_tokens,
            self.completion_tokens - before.completion_tokens, cost,
        )  # fmt: skip


class SpentTable(TypedDict):
    """A `Spent` as JSON has it."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Usage(TypedDict, total=False):
    """What a plugin asked of a language model: counts of questions; of passages `left_out`; tokens that all answers `took`."""

    spent: SpentTable
    took: Sequence[int]  # tokens of prompts, and of completions
    retry: int
    not_asked: int
    too_long: int
    unparsed: int
    left_out: int
    cut: int


class Estimate(NamedTuple):
    """What requests would take: those not in the store, their tokens, the answers' room, US dollars (None: unknown)."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


def gold_id(text: str) -> str:
    """Id of a gold passage, which has none of its own: `gold/` and 12 hex digits of the SHA-1 of its text."""
    return "gold/" + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]


_LATER = ("context", "group", "labels")  # questions without them keep the identity they had before there were any


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
        record = {name: value for name, value in record.items() if value or name not in _LATER}
        comma = ", " if number else ""
        digest.update((comma + json.dumps(record, sort_keys=True, ensure_ascii=False)).encode())
    digest.update(b"]}")
    return digest.hexdigest()
