"""The records that stages and plugins exchange: questions, passages, hits, predictions, requests, completions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import overload

from ifqa.how import How
from ifqa.how import parted as parted
from ifqa.progress import printable, printable_line


@dataclass(frozen=True, slots=True)
class Question:
    """A counterfactual question with its annotation.

    Attributes:
        id: benchmark, split and number ("ifqa/full-dev/17").
        text: the question.
        answers: all valid forms of the gold answer; any of them counts.
        gold_passages: the texts that annotators answered from; not ids, because dumps differ.
        choices: the options of a multiple-choice question; else empty.
        context: a text that comes with the question.
        group: the part of the benchmark that the question belongs to (a dataset, a paragraph).
        labels: further facts, as (name, value).
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
        """The value of a label; empty if the question has no label of that name."""
        return dict(self.labels).get(name, "")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of an article. `text` does not repeat the title. `id` has no white space, at which TREC runs are split."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of a ranking."""

    passage_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Step:
    """One of several searches for a question: its query, and the passages that no earlier step had found, best first."""

    query: str
    passage_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """What a retriever returns for a question: a sequence of hits, best first. A slice keeps `generated` and `steps`.

    Attributes:
        hits: the ranking, best first.
        generated: the passages that the retriever writes or brings itself, which are in no corpus; None if it brings none.
        steps: the searches for the question, of a retriever that takes several; None if it searches once.
    """

    hits: Sequence[Hit]
    generated: Sequence[Passage] | None = None
    steps: Sequence[Step] | None = None

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> "SearchResult": ...
    def __getitem__(self, place: int | slice) -> "Hit | SearchResult":
        return replace(self, hits=self.hits[place]) if isinstance(place, slice) else self.hits[place]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A reader's answer to one question. Without an answer it is a failure, or an abstention if it has a `candidate`.

    Failures and abstentions are counted apart, and both score 0.

    Attributes:
        question_id: the question's id.
        answer: the answer; empty if the reader found none.
        completion: the raw text that the answer was parsed from.
        passage_ids: the evidence, most important first.
        error: why there is no answer.
        score: the answer's log probability, if the reader gives it.
        passage_scores: a score for each of `passage_ids`, highest first, if the reader gives them.
        factual: the answer in the real world, without the question's condition, if the reader gives it.
        how: the sentence of the answer, or what it was computed from, if the reader gives it.
        confidence: the probability that the answer, or else the candidate, is right, if the reader gives it.
        candidate: the best candidate of a reader that abstained; `answer` and `error` are then empty.
    """

    question_id: str
    answer: str
    completion: str = ""
    passage_ids: tuple[str, ...] = ()
    error: str = ""
    score: float | None = None
    passage_scores: tuple[float, ...] = ()
    factual: str = ""
    how: How | None = None
    confidence: float | None = None
    candidate: str = ""

    @property
    def failed(self) -> bool:
        """Whether the reader should have answered and did not; `n_failed` counts these."""
        return bool(self.error) or not (self.answer.strip() or self.candidate.strip())

    @property
    def abstained(self) -> bool:
        """Whether the reader found its best candidate too doubtful; `n_abstained` counts these."""
        return not self.failed and not self.answer.strip()

    def below(self, threshold: float) -> "Prediction":
        """This prediction as an abstention if its confidence is below the threshold, otherwise unchanged."""
        if self.failed or self.abstained or self.confidence is None or self.confidence >= threshold:
            return self
        return replace(self, answer="", candidate=self.answer)


@dataclass(frozen=True, slots=True)
class Answer:
    """An opened system's answer to a question: `text`, which is empty if there is no answer.

    Attributes:
        question: the question.
        text: the answer; empty after a failure or an abstention.
        evidence: the passages of the answer, most important first.
        factual: the answer in the real world, if the reader gives it.
        error: why there is no answer; empty after an abstention.
        how: the sentence of the answer, or what it was computed from, which `str` shows, if the reader gives it.
        confidence: the probability that the answer, or else the candidate, is right, if the reader gives it.
        candidate: the best candidate of a system that abstained.
        steps: the searches for its passages, if the retriever tells them.
    """

    question: Question
    text: str
    evidence: tuple[Passage, ...] = ()
    factual: str = ""
    error: str = ""
    how: How | None = None
    confidence: float | None = None
    candidate: str = ""
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        computed = str(self.how.calculation) if self.text and self.how and self.how.calculation else ""
        return printable(computed or self.text or f"({self.why_not})")

    @property
    def why_not(self) -> str:
        """Why there is no answer, with the best candidate of a system that abstained; empty if there is one."""
        if self.text:
            return ""
        if self.candidate and not self.error:
            sure = "" if self.confidence is None else f" (confidence {self.confidence:.0%})"
            return f"no answer found in these passages; the best candidate is {self.candidate}{sure}"
        return f"no answer: {self.error or 'the reader found nothing'}"

    def marked(self, passage: Passage) -> list[str]:
        """The text of a passage in pieces; every second piece is the answer, or a number that it was computed from."""
        from_here = self.how and self.how.passage_id == passage.id
        return (
            self.how.pieces(passage.text)
            if self.how and from_here
            else parted(passage.text, self.text or self.candidate)
        )

    def _repr_html_(self) -> str:
        factual = f"<p>In fact: {escape(self.factual)}</p>" if self.factual else ""
        sure = f" <small>confidence {self.confidence:.0%}</small>" if self.text and self.confidence is not None else ""
        found = "".join(f"<li>{_passage_html(passage, self.marked(passage))}</li>" for passage in self.evidence)
        return f"<p>{escape(self.question.text)}</p><p><b>{escape(str(self))}</b>{sure}</p>{factual}<ol>{found}</ol>"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The passages that an opened system retrieves for a question: `hits`, best first, and their `passages`."""

    question: Question
    hits: tuple[Hit, ...]
    passages: tuple[Passage, ...]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[tuple[Passage, float]]:
        """Each passage with its score, best first."""
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


def _passage_html(passage: Passage, pieces: Sequence[str] = ()) -> str:
    """A passage as HTML, its text escaped, every second one of its pieces marked."""
    parts = enumerate(pieces or [passage.text])
    text = "".join(f"<mark>{escape(part)}</mark>" if n % 2 else escape(part) for n, part in parts)
    return f"<b>{escape(passage.title)}</b> <small>{escape(passage.id)}</small><br>{text}"


@dataclass(frozen=True)
class Cost:
    """What building an index will take: seconds, bytes of disk, bytes of memory. `about` is an extra note."""

    seconds: float
    disk: float
    memory: float
    about: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt for a language model: messages of a chat, or a text to continue; exactly one of the two.

    Attributes:
        messages: (role, content) in their order; roles are "system", "user" and "assistant".
        text: the prompt of a model that takes no messages.
        max_tokens: the longest completion, in tokens.
        temperature: 0 for the most probable completion.
        stop: strings at which the completion ends; it does not contain them.
        sample: a number that distinguishes requests with the same prompt, for several samples of it.
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
    """The text that a model generated, or the error.

    Attributes:
        text: the generated text.
        prompt_tokens, completion_tokens: as the server counted them; 0 if it sent no count.
        finish: why the text ends: "stop", "length", ...
        error: one line if the request failed; the other attributes are then empty.
        cached: whether the completion comes from the store.
    """

    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish: str = ""
    error: str = ""
    cached: bool = False
