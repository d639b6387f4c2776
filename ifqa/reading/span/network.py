"""The extractive reader's network: scores the candidate answers of a question and a passage.

Candidates are (1) the spans of the passage, as in DPR's reader (Karpukhin et al. 2020, section
6.1), (2) answers computed from a number in the passage plus or minus a number in the question (or
multiplied by "twice", "half" ...), and (3) if the question asks for it, answers computed from two
numbers or a list in the passage, such as the years between two dates. One softmax runs over all
candidates of all passages of a question. Titles are not read: IfQA's gold passages have none and
articles do, so titles would give gold passages away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ifqa.errors import ConfigError
from ifqa.models.span_encoder import load_tokenizer, special_token_ids
from ifqa.models.transformer import Encoder
from ifqa.reading.span.arithmetic import (
    StepResults,
    compute_answers,
    compute_list,
    compute_two,
    has_supposition,
)
from ifqa.reading.span.numbers import (
    DATED,
    IMPLICIT_ONE,
    Number,
    find_lists,
    find_numbers,
    format_answer,
    is_whole,
)
from ifqa.reading.span.whole_lists import Span, find_whole_lists, join_items, list_of

MAX_SPAN = 24  # tokens in an answer
MAX_QUESTION = 80  # tokens of the question that are read
MAX_TOKENS = 256  # question, passage and special tokens together; a 100-word passage has about 140
HEADS = 8  # scores per token
_CUT = 4  # spans ranked per span kept, because most begin or end within a word


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """A question and a passage as input of the network.

    Token positions count from the start of the pair.
    """

    question: str
    text: str
    ids: list[int]
    start: int  # position of the passage's first token
    offsets: list[tuple[int, int]]  # character positions of the passage's tokens
    # For each row of `computed`: a number, two numbers, or a list
    numbers: list[tuple[Number, ...]]
    question_numbers: list[Number]  # IMPLICIT_ONE first
    passage_anchors: list[int]  # the first token of each single number
    # The first tokens of two numbers, or the first and last token of a list
    double_anchors: list[tuple[int, int]]
    # The first token of each of the question's numbers, 0 for IMPLICIT_ONE
    question_anchors: list[int]
    # [passage numbers, then pairs and lists][question numbers][2 operations]
    computed: list[list[StepResults]]
    as_written: bool = False
    # The lists that the question asks for as a whole, in a document's passage
    lists: Sequence[tuple[Span, ...]] = ()

    def span(self, first: int, last: int) -> Span:
        """The characters of tokens `first` to `last`, inclusive."""
        return self.offsets[first - self.start][0], self.offsets[last - self.start][1]

    def items(self, first: int, last: int) -> tuple[Span, ...]:
        """The items of the list that tokens `first` to `last`, inclusive, are a part of, if the
        question asks for it.
        """
        return list_of(self.span(first, last), self.lists, self.text) or ()

    def span_text(self, first: int, last: int) -> str:
        """The text of tokens `first` to `last`, inclusive, as the passage has it (`as_written`) or
        as IfQA writes answers.

        All items of a list that the question asks for.
        """
        if items := self.items(first, last):
            return join_items([self.text[start:end] for start, end in items])
        start, end = self.span(first, last)
        return (
            self.text[start:end]
            if self.as_written
            else format_answer(self.text, start, end, self.question)
        )

    def is_whole(self, first: int, last: int) -> bool:
        """Whether tokens `first` to `last`, inclusive, are whole words and amounts of one line.

        A line break parts the rows of a table and the items of a list.
        """
        start, end = self.span(first, last)
        return "\n" not in self.text[start:end] and is_whole(self.text, start, end)


def encode_pair(folder: Path, question: str, text: str, as_written: bool = False) -> EncodedPair:
    """Encode `[CLS] question [SEP] passage [SEP]`, with the special tokens of the encoder in
    `folder`, and find the numbers.

    Long texts are truncated. With `as_written`, for documents, dates in answers keep the passage's
    form, else they take that of IfQA's answers; and a list that the question asks for is one
    answer.
    """
    before, between, after = special_token_ids(folder)
    query = load_tokenizer(folder).encode(question, add_special_tokens=False)
    passage = load_tokenizer(folder).encode(text, add_special_tokens=False)
    question_ids = query.ids[:MAX_QUESTION]
    start = len(before) + len(question_ids) + len(between)
    passage_ids = passage.ids[: MAX_TOKENS - start - len(after)]
    offsets = [_without_space(text, *token) for token in passage.offsets[: len(passage_ids)]]
    read_text = text[: offsets[-1][1]] if offsets else ""
    numbers = _anchored(
        find_numbers(read_text, question=question, as_written=as_written), offsets, start
    )
    places = [(IMPLICIT_ONE, 0, 0)]
    places += _anchored(
        find_numbers(question, in_question=True), query.offsets[: len(question_ids)], len(before)
    )
    steps = [number for number, *_ in places]
    doubles: list[tuple[tuple[Number, ...], tuple[int, int], list[StepResults]]] = [
        ((number, other), (first, second), compute_two(number, other, steps, question))
        for (number, first, _), (other, second, _) in combinations(numbers, 2)
    ]
    doubles += [
        ((items,), (first, last), compute_list(items, steps, question))
        for items, first, last in _anchored(find_lists(read_text), offsets, start)
    ]
    singles = [[compute_answers(left, right, question) for right in steps] for left, *_ in numbers]
    if not has_supposition(question):  # nothing is supposed to be more or less than it was
        nothing: StepResults = [None, None]
        singles = [
            [
                answers if step.unit in DATED else nothing
                for step, answers in zip(steps, row, strict=True)
            ]
            for row in singles
        ]
        doubles = [
            (
                operands,
                anchors,
                [
                    rows[0] if len(operands) == 2 else [rows[0][0], None],
                    *(nothing for _ in steps[1:]),
                ],
            )
            for operands, anchors, rows in doubles
        ]
    doubles = [double for double in doubles if any(map(any, double[2]))]
    return EncodedPair(
        question,
        text,
        [*before, *question_ids, *between, *passage_ids, *after],
        start,
        offsets,
        [*((number,) for number, *_ in numbers), *(operands for operands, *_ in doubles)],
        steps,
        [anchor for _, anchor, _ in numbers],
        [anchors for _, anchors, _ in doubles],
        [anchor for _, anchor, _ in places],
        [*singles, *(rows for *_, rows in doubles)],
        as_written,
        find_whole_lists(question, text) if as_written else (),
    )


def _without_space(text: str, start: int, end: int) -> tuple[int, int]:
    """A token's characters without the white space before them, which some tokenizers count to the
    token.
    """
    return end - len(text[start:end].lstrip()), end


def token_span(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """First and last token of the characters `start` to `end`, exclusive.

    None if truncation removed them.
    """
    inside = [index for index, (left, right) in enumerate(offsets) if right > start and left < end]
    return (inside[0], inside[-1]) if inside and offsets[inside[-1]][1] >= end else None


def _anchored(
    numbers: list[Number], offsets: Sequence[tuple[int, int]], base: int
) -> list[tuple[Number, int, int]]:
    """The numbers with their first and last tokens, without those that truncation removed."""
    spans = [(number, token_span(offsets, number.start, number.end)) for number in numbers]
    return [(number, base + span[0], base + span[1]) for number, span in spans if span]


class SpanModel(nn.Module):
    """An encoder, and heads that give eight scores per token.

    They are: start of an answer; end of an answer; number to compute with; at a question's number,
    adding it and subtracting it; one of two numbers to compute with, or an end of a list; at a
    question's number, the two operations on these. A span's score is start + end + its length's
    score; a computed answer's is the passage's number, or both numbers, + the operation.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if encoder.positions < MAX_TOKENS:
            reads = f"{encoder.folder} reads {encoder.positions} tokens"
            raise ConfigError(f"{reads}; wanted an encoder of {MAX_TOKENS} or more")
        self.encoder = encoder
        self.heads = nn.Linear(encoder.size, HEADS)
        self.length = nn.Parameter(torch.zeros(MAX_SPAN))

    def initialise(self, generator: torch.Generator) -> None:
        """Initialise the heads at random."""
        nn.init.normal_(self.heads.weight, std=0.02, generator=generator)
        nn.init.zeros_(self.heads.bias)

    def forward(
        self, pairs: Sequence[EncodedPair], generator: torch.Generator | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Float32 scores of all candidates of the pairs, on the CPU, whatever the encoder's
        precision and device.

        Spans are [pairs, tokens, MAX_SPAN]: entry (p, i, n) is the span of pair p with n + 1 tokens
        from token i, very low outside the passage. Each pair's computed answers are [rows, question
        numbers, 2] as in `EncodedPair.computed`, very low where that is None.
        """
        longest = max(len(pair.ids) for pair in pairs)
        # rounded up, because kernels are built once per shape
        ids = torch.full((len(pairs), -(-longest // 16) * 16), self.encoder.padding)
        types = torch.zeros_like(ids)
        mask = torch.zeros_like(ids).bool()
        inside = torch.zeros_like(ids).bool()
        for row, pair in enumerate(pairs):
            size = len(pair.ids)
            ids[row, :size] = torch.tensor(pair.ids)
            types[row, pair.start : size] = 1
            mask[row, :size] = True
            inside[row, pair.start : pair.start + len(pair.offsets)] = True
        device = self.length.device
        hidden = self.encoder(ids.to(device), types.to(device), mask.to(device), generator)
        # Each of the small steps below would start a GPU's kernel
        scores = self.heads(hidden.float()).cpu()
        starts = scores[..., 0].masked_fill(~inside, -1e4)
        ends = F.pad(scores[..., 1].masked_fill(~inside, -1e4), (0, MAX_SPAN - 1), value=-1e4)
        spans = starts[:, :, None] + ends.unfold(1, MAX_SPAN, 1) + self.length.cpu()
        return spans, [self._computed(scores[row], pair) for row, pair in enumerate(pairs)]

    def _computed(self, scores: Tensor, pair: EncodedPair) -> Tensor:
        operations = scores[pair.question_anchors]
        computed = scores[pair.passage_anchors, 2][:, None, None] + operations[:, 3:5]
        if pair.double_anchors:
            doubles = (
                scores[torch.tensor(pair.double_anchors), 5].sum(1)[:, None, None]
                + operations[:, 6:8]
            )
            computed = torch.cat([computed, doubles])
        none = torch.tensor(
            [[[text is None for text in steps] for steps in row] for row in pair.computed]
        ).bool()
        return computed.masked_fill(none.view(computed.shape), -1e4)


#: Score, text, and origin: a span's first and last token, or the row, question number and operation
#: in `EncodedPair.computed`.
AnswerCandidate = tuple[float, str, tuple[int, ...]]


def rank_candidates(
    pair: EncodedPair, spans: Tensor, computed: Tensor, count: int
) -> list[AnswerCandidate]:
    """The `count` best candidates of a pair, best first; spans of whole words only."""
    top = spans.flatten().topk(min(_CUT * count, spans.numel()))
    best: list[AnswerCandidate] = []
    for score, place in zip(top.values.tolist(), top.indices.tolist(), strict=True):
        first, more = divmod(place, MAX_SPAN)
        if score > -1e3 and pair.is_whole(first, first + more):
            best.append((score, pair.span_text(first, first + more), (first, first + more)))
    for row, (row_scores, row_texts) in enumerate(
        zip(computed.tolist(), pair.computed, strict=True)
    ):
        for number, (scores, texts) in enumerate(zip(row_scores, row_texts, strict=True)):
            steps = enumerate(zip(scores, texts, strict=True))
            best += [(score, text, (row, number, step)) for step, (score, text) in steps if text]
    return sorted(best, key=lambda candidate: -candidate[0])[:count]
