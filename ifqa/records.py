"""The records that stages and plugins exchange: questions, passages, hits, predictions, requests,
completions, usage.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, NotRequired, overload

from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict only from Python 3.12

from ifqa.clauses import split_question
from ifqa.formatting import pluralize, printable, printable_line

GOLD = "gold/"  # ids of gold passages begin with it


@dataclass(frozen=True, slots=True)
class Question:
    """A counterfactual question with its annotation.

    Attributes:
        id: benchmark, split and number ("ifqa/full-dev/17").
        text: the question.
        answers: all valid forms of the gold answer.
        gold_passages: the texts that annotators answered from; not ids, because dumps differ.
        choices: the options of a multiple-choice question.
        context: a text that comes with the question.
        group: its part of the benchmark (a dataset, a paragraph).
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
        """The value of a label; empty if there is none."""
        return dict(self.labels).get(name, "")

    def unit(self, kind: str) -> str:
        """The unit that it belongs to, of a kind that `AnyMeasure.unit` names; empty if none."""
        if kind == "group":
            return self.group
        if kind == "passages":
            return "\n".join(self.gold_passages) or self.id
        return self.label(kind)


# Left out of the hash if empty, so that older hashes stay valid
_LATER = ("context", "group", "labels")


def fingerprint_questions(questions: Iterable[Question]) -> str:
    """SHA-256 of all fields of the questions; equal to the fingerprint of {"questions": [...]}."""
    digest = hashlib.sha256(b'{"questions": [')
    names = [field.name for field in fields(Question)]
    # singly, because the JSON of a large split is long
    for number, question in enumerate(questions):
        record = {
            name: value
            for name in names
            if (value := getattr(question, name)) or name not in _LATER
        }
        if number:
            digest.update(b", ")
        digest.update(json.dumps(record, sort_keys=True, ensure_ascii=False).encode())
    digest.update(b"]}")
    return digest.hexdigest()


def draw_key(seed: int, question: Question) -> bytes:
    """The place of a question in the random order of a seed, as a key to sort by.

    A hash of seed and id, so the order is the same on every machine and in every version of Python,
    whatever the order of the questions, and a smaller sample is the start of a larger one.
    """
    return hashlib.sha256(f"{seed}:{question.id}".encode()).digest()


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of an article.

    `text` does not repeat the title. `id` has no white space, which separates columns in TREC runs.
    """

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Evidence(Passage):
    """A passage that an answer was read from.

    `source` is its place in words: the file and the page or lines of the answer ("mill.pdf, p. 4"),
    or the title and id of a passage that is from no document.
    """

    source: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked passage."""

    passage_id: str
    score: float


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """A retriever's result for a question: a sequence of hits, best first.

    A slice keeps the other field.

    `generated` are the retriever's own passages, which are not in the corpus.
    """

    hits: Sequence[Hit]
    generated: Sequence[Passage] | None = None

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> "SearchResult": ...
    def __getitem__(self, index: int | slice) -> "Hit | SearchResult":
        return (
            replace(self, hits=self.hits[index]) if isinstance(index, slice) else self.hits[index]
        )


def gold_id(text: str) -> str:
    """A gold passage's id: `gold/` and 12 hex digits of the SHA-1 of its text.

    Benchmarks have no ids for gold passages.
    """
    return GOLD + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]


_SIGNS = {"plus": "+", "minus": "-", "times": "x"}
_LONGEST = 500  # characters; a longer answer is not highlighted in a passage


@dataclass(frozen=True, slots=True)
class Term:
    """A number, date or list that an answer was computed from: its `text` from `start` to `end`
    (exclusive) in the `source`.

    `value` is the number or the date. The text is empty for a step of 1 that the question implies.
    """

    text: str
    value: str
    source: Literal["passage", "question"]
    start: int
    end: int

    def __str__(self) -> str:
        words = ", not said"
        if self.text:
            words = "" if self.text == self.value else f': "{self.text}"'
        return f"{self.value} ({self.source}{words})"


@dataclass(frozen=True, slots=True)
class Calculation:
    """How an answer, the `result`, was computed.

    `rule` lists the operations between the `terms`: "plus", "minus, plus". It is empty if the
    result is the length of the only term, a list.
    """

    result: str
    rule: str
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if not self.terms or len(self._signs) != len(self.terms) - 1:
            wanted = f"{', '.join(_SIGNS)} between them"
            raise ValueError(
                f"rule {self.rule!r} does not fit {len(self.terms)} terms; wanted {wanted}"
            )

    @property
    def _signs(self) -> list[str]:
        return [_SIGNS[word] for word in self.rule.split(", ") if word in _SIGNS]

    def __str__(self) -> str:
        operations = (
            f" {sign} {term}" for sign, term in zip(self._signs, self.terms[1:], strict=True)
        )
        return f"{self.result} = {self.terms[0]}{''.join(operations)}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The passage that supports an answer.

    `sentence` is the start and end, in characters, of the supporting sentence; `span` is that of
    the answer, or of the first number in its calculation, or of a language model's quote that does
    not have the answer's words. `calculation` is None if the answer is copied from the passage.
    `origin` says who found the sentence: the reader that gave the answer ("read"), a language model
    that quoted it ("quoted"), or the span reader for a language model's answer ("found
    afterwards"). `items` are the spans of the items of an answer that is a list; `span` then
    reaches from the first to the last.
    """

    passage_id: str
    sentence: tuple[int, int]
    span: tuple[int, int]
    calculation: Calculation | None = None
    origin: Literal["read", "quoted", "found afterwards"] = "read"
    items: tuple[tuple[int, int], ...] = ()

    def pieces(self, text: str, sentence: bool = False) -> list[str]:
        """The passage's text, or only the sentence, split into alternating plain and highlighted
        (answer, items or terms) segments.
        """
        terms = self.calculation.terms if self.calculation else ()
        numbers = {(term.start, term.end) for term in terms if term.source == "passage"}
        spans = numbers or set(self.items) or {self.span}
        return _split_at_spans(text, spans, self.sentence if sentence else (0, len(text)))


def _split_at_spans(
    text: str, spans: Iterable[tuple[int, int]], within: tuple[int, int]
) -> list[str]:
    """A part of a text in pieces, every second one a span; of two that overlap, the first."""
    first, last = within
    edges: list[int] = []
    for start, end in sorted(spans):
        if max([first, *edges[-1:]]) <= start and end <= last:
            edges += (start, end)
    return [text[start:end] for start, end in pairwise([first, *edges, last])]


@dataclass(frozen=True, slots=True)
class QuotedPlace:
    """Where a quote, or a part of it, stands in a passage: `start` and `end` in characters."""

    passage_id: str
    start: int
    end: int


#: What became of a language model's quote: it stands in the passage that the model named (or in
#: any, if it named none), in another one, in parts at several places, or in none.
QuoteOutcome = Literal["exact", "other passage", "stitched", "missing"]
#: The same in words, for people and assistants.
_VERDICTS: dict[QuoteOutcome, str] = {
    "exact": "found in the passage that the model names",
    "other passage": "found, but not in the passage that the model names",
    "stitched": "stitched from several places",
    "missing": "not in these passages",
}
#: What is said beside a sentence that a language model did not quote.
FOUND_AFTERWARDS = "found afterwards for the model's answer"


@dataclass(frozen=True, slots=True)
class Quote:
    """What a language model says that its answer rests on, in the words of a passage.

    `places` are where the text was found: one for a whole quote, several for a stitched one.
    """

    text: str
    outcome: QuoteOutcome
    places: tuple[QuotedPlace, ...] = ()

    @property
    def verdict(self) -> str:
        """What became of the quote, in words."""
        return _VERDICTS[self.outcome] if self.text.strip() else "the model quotes nothing"

    def spans(self, passage: Passage) -> list[tuple[int, int]]:
        """Where the quote, or parts of it, stand in a passage."""
        return [(place.start, place.end) for place in self.places if place.passage_id == passage.id]


def split_at_answer(text: str, answer: str) -> list[str]:
    """Split a text where the answer occurs as whole words, in any case.

    Every second piece is the answer.

    Answers of more than 500 characters are not searched for, because the time grows with both
    lengths; nor are "yes" and "no", which are words of many sentences that say nothing of the
    question.
    """
    if not answer.strip() or len(answer) > _LONGEST or answer.lower().strip(" .") in ("yes", "no"):
        return [text]
    return re.split(rf"(?i)(?<!\w)({re.escape(answer)})(?!\w)", text)


@dataclass(frozen=True, slots=True)
class Step:
    """What a language model did before it answered.

    Attributes:
        action: a search of the corpus, a computation, or something that could not be done.
        text: the query, the expression, or what the model wrote.
        result: the value, or what the model was told instead; empty for a search with passages.
        passage_ids: the passages that the search found and the model was shown, best first.
    """

    action: Literal["search", "compute", "other"]
    text: str
    result: str = ""
    passage_ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.action == "search" and not self.result:
            return f"searched “{self.text}”: {pluralize(len(self.passage_ids), 'passage')}"
        verb = {"search": "searched", "compute": "computed", "other": "wrote"}[self.action]
        return f"{verb} “{self.text}”: {self.result}"


#: Why a reader abstained whose `answerable` is low.
UNLIKELY = "they are unlikely to have it"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A reader's answer to a question.

    Without an answer it is a failure, or an abstention if it has a `candidate` or an `abstention`.

    Failures and abstentions are counted separately, and both score 0. Unknown fields are empty or
    None.

    Attributes:
        question_id: the question's id.
        answer: the answer; empty if the reader found none.
        completion: the raw text that the answer was parsed from.
        passage_ids: the passages used as evidence, most important first.
        error: why there is no answer.
        score: the answer's log probability.
        passage_scores: a score for each of `passage_ids`, highest first.
        factual: the answer in the real world, without the question's condition.
        how: the sentence or the calculation behind the answer.
        confidence: the probability that the answer or candidate is right.
        answerable: the probability that a passage has the answer, whatever it is.
        candidate: the best candidate of a reader that abstained; `answer` and `error` are then
            empty.
        abstention: why a reader abstained, in words, if it was not for a low confidence.
        quote: what a language model quoted, and where it stands.
        change: what a language model says that the question's supposition changes.
        steps: what a language model did before it answered, in order.
    """

    question_id: str
    answer: str
    completion: str = ""
    passage_ids: tuple[str, ...] = ()
    error: str = ""
    score: float | None = None
    passage_scores: tuple[float, ...] = ()
    factual: str = ""
    how: Explanation | None = None
    confidence: float | None = None
    candidate: str = ""
    answerable: float | None = None
    abstention: str = ""
    quote: Quote | None = None
    change: str = ""
    steps: tuple[Step, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether there is neither an answer nor an abstention; `n_failed` counts these."""
        given = (self.answer, self.candidate, self.abstention)
        return bool(self.error) or not any(text.strip() for text in given)

    @property
    def abstained(self) -> bool:
        """Whether the reader abstained; `n_abstained` counts these."""
        return not self.failed and not self.answer.strip()

    def abstain_below(self, confidence: float, answerable: float = 0.0) -> "Prediction":
        """This prediction as an abstention if one of the two probabilities is known and below its
        limit, otherwise unchanged.
        """
        if self.failed or self.abstained:
            return self
        if self.answerable is not None and self.answerable < answerable:
            return replace(self, answer="", candidate=self.answer, abstention=UNLIKELY)
        if self.confidence is not None and self.confidence < confidence:
            return replace(self, answer="", candidate=self.answer)
        return self


@dataclass(frozen=True, slots=True)
class Ablation:
    """What a question's answer becomes if a passage, or a sentence of the supporting passage, is
    left out.
    """

    passage: Passage
    sentence: str  # empty if the whole passage is left out
    answer: str  # empty if there is none
    confidence: float | None
    same: bool  # whether it is still the same answer


@dataclass(frozen=True, slots=True)
class Answer:
    """An opened system's answer to a question.

    Attributes that `Prediction` also has are described there.

    `text` is empty after a failure or an abstention. `evidence` has the passages behind the answer,
    most important first, each with its `source` in words. `note` says why the answer means little,
    if so: the reader does not know the language, or the text is not a question. `uncalibrated` says
    why an answer has no confidence, and how to get one; empty if it has, or if its reader never
    has.
    """

    question: Question
    text: str
    evidence: tuple[Evidence, ...] = ()
    factual: str = ""
    error: str = ""
    how: Explanation | None = None
    confidence: float | None = None
    candidate: str = ""
    answerable: float | None = None
    note: str = ""
    abstention: str = ""
    quote: Quote | None = None
    change: str = ""
    uncalibrated: str = ""
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        computed = (
            str(self.how.calculation) if self.text and self.how and self.how.calculation else ""
        )
        return printable(computed or self.text or f"({self.no_answer_reason})")

    @property
    def supporting(self) -> Evidence | None:
        """The passage that the answer was read from: the one `how` names, or the most important."""
        if self.how:
            named = (part for part in self.evidence if part.id == self.how.passage_id)
            return next(named, None)
        return next(iter(self.evidence), None)

    @property
    def supposes(self) -> bool:
        """Whether there is an answer, and the question supposes something.

        The evidence then tells what is so in fact.
        """
        return bool(self.text and split_question(self.question.text).presupposition)

    @property
    def no_answer_reason(self) -> str:
        """Why there is no answer, with the best candidate after an abstention.

        Empty if there is an answer.
        """
        if self.text:
            return ""
        if (self.candidate or self.abstention) and not self.error:
            sure = "" if self.confidence is None else f" (confidence {self.confidence:.0%})"
            best = f"; the best candidate is {self.candidate}{sure}" if self.candidate else ""
            if not self.abstention:
                return f"not sure enough of an answer{best}"
            return f"no answer found in these passages: {self.abstention}{best}"
        nothing = "see the passages" if self.note else "the reader found nothing"
        return f"no answer: {self.error or nothing}"

    def highlights(self, passage: Passage) -> list[str]:
        """A passage's text in alternating plain and highlighted segments.

        Highlighted are the answer, the terms of its calculation, or what a language model quotes.
        Of a stitched quote, each part is, so that a reader sees that they stand apart.
        """
        quoted = self.quote.spans(passage) if self.quote else []
        is_stitched = self.quote is not None and self.quote.outcome == "stitched"
        explains = self.how is not None and self.how.passage_id == passage.id
        if quoted and (is_stitched or not explains):
            return _split_at_spans(passage.text, quoted, (0, len(passage.text)))
        if self.how and explains:
            return self.how.pieces(passage.text)
        return split_at_answer(passage.text, self.text or self.candidate)

    def position(self, passage: Passage) -> int | None:
        """Where the answer stands in a passage's text; None if it does not."""
        if self.how and self.how.passage_id == passage.id:
            return self.how.span[0]
        before, *highlighted = self.highlights(passage)
        return len(before) if highlighted else None

    def _repr_html_(self) -> str:
        factual = ""
        if self.factual and self.supposes:
            factual = f"<p>In fact: {escape(self.factual)}</p>"
        factual += f"<p>{escape(self.note)}</p>" if self.note else ""
        sure = ""
        if self.text and self.confidence is not None:
            sure = f" <small>confidence {self.confidence:.0%}</small>"
        elif self.text and self.uncalibrated:
            sure = f"<br><small>{escape(self.uncalibrated)}</small>"
        evidence = ""
        for passage in self.evidence:
            found = self._found_html(passage)
            evidence += f"<li>{_passage_html(passage, self.highlights(passage))}{found}</li>"
        question = escape(self.question.text)
        answer = escape(str(self))
        told = factual + self._grounds_html()
        return f"<p>{question}</p><p><b>{answer}</b>{sure}</p>{told}<ol>{evidence}</ol>"

    def _found_html(self, passage: Passage) -> str:
        """Says beside a passage that the model did not quote its sentence."""
        if self.how is None or self.how.passage_id != passage.id:
            return ""
        if self.how.origin != "found afterwards":
            return ""
        return f" <small>({FOUND_AFTERWARDS})</small>"

    def _grounds_html(self) -> str:
        """What a language model says that its answer rests on, as escaped HTML."""
        grounds = ""
        if self.quote:
            text = self.quote.text.strip()
            words = f"<q>{escape(text)}</q> " if text else ""
            grounds += f"<p>Quote: {words}<small>({self.quote.verdict})</small></p>"
        if self.change:
            grounds += f"<p>Change: {escape(self.change)}</p>"
        if self.steps:
            items = "".join(f"<li>{escape(printable_line(str(step)))}</li>" for step in self.steps)
            grounds += f"<p>Steps:</p><ol>{items}</ol>"
        return grounds


@dataclass(frozen=True, slots=True)
class Ranking:
    """An opened system's ranking for a question: `hits`, best first, and their `passages`."""

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
        cells = (
            (rank, f"{score:.4f}", _passage_html(passage))
            for rank, (passage, score) in enumerate(self, start=1)
        )
        rows = "".join(
            f"<tr><td>{rank}</td><td>{score}</td><td>{passage}</td></tr>"
            for rank, score, passage in cells
        )
        return f"<p>{escape(self.question.text)}</p><table>{rows}</table>"


def _passage_html(passage: Passage, pieces: Sequence[str] = ()) -> str:
    """A passage as escaped HTML, with every second piece highlighted."""
    parts = enumerate(pieces or [passage.text])
    text = "".join(f"<mark>{escape(part)}</mark>" if n % 2 else escape(part) for n, part in parts)
    return f"<b>{escape(passage.title)}</b> <small>{escape(passage.id)}</small><br>{text}"


@dataclass(frozen=True)
class BuildCost:
    """The cost of building an index: seconds, bytes on disk and in memory, and a note."""

    seconds: float
    disk: float
    memory: float
    about: str = ""


class ToolCall(NamedTuple):
    """A function that a language model calls, and its arguments: JSON, as the model wrote it."""

    name: str
    arguments: str


class ToolTurn(NamedTuple):
    """What a model wrote when it was offered tools, and the result of each of its calls.

    Without calls, the model wrote `text`, and the only result is what a user replied.
    """

    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt for a language model: either messages of a chat or a text to continue."""

    # (role, content); roles are "system", "user" and "assistant"
    messages: tuple[tuple[str, str], ...] = ()
    text: str = ""  # for a model that takes no messages
    max_tokens: int = 256  # limit on the completion
    temperature: float = 0.0  # 0: the most probable completion
    stop: tuple[str, ...] = ()  # strings that end the completion; it does not contain them
    sample: int = 0  # distinguishes requests with the same prompt
    schema: str = ""  # a JSON schema that the server keeps the completion to; empty for free text
    tools: str = ""  # the functions that the model may call, in the form of OpenAI's API, as JSON
    turns: tuple[ToolTurn, ...] = ()  # those so far, which follow the messages
    # Whether the reply shall have the tokens' log probabilities. They change no answer, so a
    # completion that was stored without them still counts.
    logprobs: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if bool(self.messages) == bool(self.text):
            raise ValueError("a request has either messages or a text")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; an answer needs room for one token")
        if self.turns and not self.messages:
            raise ValueError("turns follow messages; a text has none")

    @property
    def transcript(self) -> tuple[tuple[str, str], ...]:
        """The messages and the turns, each as a role and a text; calls are written as JSON."""
        turns = list[tuple[str, str]]()
        for turn in self.turns:
            calls = json.dumps(turn.calls) if turn.calls else ""
            turns.append(("assistant", turn.text + calls))
            turns += [("tool" if turn.calls else "user", result) for result in turn.results]
        return (*self.messages, *turns)


#: The end of a token in its text, in characters, and its log probability.
TokenLogprob = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Completion:
    """The text that a model generated, or the error."""

    text: str = ""
    prompt_tokens: int = 0  # the server's count, like the next field; 0 if it sent none
    completion_tokens: int = 0
    finish: str = ""  # why the text ends: "stop", "length", ...
    error: str = ""  # one line if the request failed; the text is then empty
    cached: bool = False  # whether it comes from the cache
    # Those of `prompt_tokens` that the server had read before; 0 for a stored completion
    cached_prompt_tokens: int = 0
    reasoning: str = ""  # the model's thoughts, if the server keeps them apart from the text
    # The text's tokens, empty if unknown
    logprobs: tuple[TokenLogprob, ...] = ()
    calls: tuple[ToolCall, ...] = ()  # of the request's tools, in order
    permanent: bool = False  # whether `error` is stored, because the same request would fail again


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """A model's usage: requests sent (with retries), cached completions, tokens, and US dollars.

    If the server reports no tokens, their upper bound is counted. `cost` is None if the price is
    unknown. `cached_prompt_tokens` are those of `prompt_tokens` that the server says it had read
    before.
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    cached_prompt_tokens: int = 0

    def since(self, before: "TokenUsage") -> "TokenUsage":
        """The usage since an earlier state."""
        cost = None if self.cost is None else self.cost - (before.cost or 0.0)
        return TokenUsage(
            self.calls - before.calls,
            self.cached - before.cached,
            self.prompt_tokens - before.prompt_tokens,
            self.completion_tokens - before.completion_tokens,
            cost,
            self.cached_prompt_tokens - before.cached_prompt_tokens,
        )


if TYPE_CHECKING:
    Count = int
else:
    Count = object  # unchecked: a corpus manifest has an object there


class TokenUsageJson(TypedDict):
    """A `TokenUsage` in JSON."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    cached_prompt_tokens: NotRequired[int]  # manifests of earlier versions lack it


class StageUsage(TypedDict, total=False):
    """A plugin's use of a language model, for a stage's manifest."""

    spent: TokenUsageJson
    took: Sequence[int]  # tokens of the prompts and of the completions, including cached ones
    server: str  # scheme, host and port of the server
    sent: str  # the form of the requests: their parameters, and the values that [llm] sets
    retry: int  # questions to ask again, because a request failed
    # Questions whose request failed for good; only --retry-failed asks them again
    stored_failures: int
    not_asked: int  # questions not asked, because a cap was reached
    too_long: int  # questions not asked, because the prompt does not fit the model's window
    unparsed: int  # questions whose completion has no answer
    left_out: Count  # passages left out because the model's window was full
    searches: int  # of a reader whose model may search
    computations: int
    cut: int  # questions whose completion was cut at max_tokens


class Estimate(NamedTuple):
    """The estimated cost of requests: calls for those not cached, their tokens, and US dollars
    (None: unknown).
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    def __str__(self) -> str:
        if self.cost is None:
            money = "an unknown price (no prices.toml has it)"
        else:
            money = f"up to ${self.cost:,.2f}"
        return (
            f"{pluralize(self.calls, 'call')}, {self.prompt_tokens:,} tokens of prompts and up to "
            f"{self.completion_tokens:,} of answers, {money}"
        )
