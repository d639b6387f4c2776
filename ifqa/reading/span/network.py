"""The extractive reader's network: scores the candidate answers of a question and a passage.

Candidates are (1) the spans of the passage, as in DPR's reader (Karpukhin et al. 2020, section 6.1), (2) answers computed
from a number of the passage plus or minus a number of the question (or times "twice", "half" ...), and (3) answers computed
from two numbers or a list of the passage, where the question asks for that: the years between two, the number of items.
One softmax runs over all candidates of all passages of a question.

Titles are not read: IfQA's gold passages have none and retrieved articles do, so a network that saw titles could tell
gold passages from negatives by them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ifqa.errors import IfqaError
from ifqa.models.encoders import special_token_ids
from ifqa.models.transformer import Encoder, load_tokenizer
from ifqa.reading.span.arithmetic import StepResults, compute_answers, compute_list, compute_two
from ifqa.reading.span.numbers import IMPLICIT_ONE, Number, find_lists, find_numbers, format_answer, is_boundary

MAX_SPAN = 24  # tokens in an answer
MAX_QUESTION = 80  # tokens of the question that are read
MAX_TOKENS = 256  # of question, passage and special tokens; a 100-word passage has about 140
HEADS = 8  # scores of a token
_CUT = 4  # spans that are looked at for each that is kept: most of the others begin or end within a word


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """A question and a passage as input of the network.

    Token positions count from the start of the pair. `offsets` are the character positions of the passage's tokens.
    Answers are computed from one number of the passage (the first rows of `computed`), or from two numbers or a list (the
    other rows). Anchors are the first tokens of these numbers, or the first and last token of a list, and the first tokens of
    the question's numbers. The question's first number is the implicit `ONE`, anchored at the first token.
    """

    question: str
    text: str
    ids: list[int]
    start: int  # position of the passage's first token
    offsets: list[tuple[int, int]]
    numbers: list[tuple[Number, ...]]  # of each row of `computed`
    asked: list[Number]
    passage_anchors: list[int]
    double_anchors: list[tuple[int, int]]
    question_anchors: list[int]
    computed: list[list[StepResults]]  # [passage numbers, then pairs and lists][question numbers][2 operations]
    as_written: bool = False

    def span_text(self, first: int, last: int) -> str:
        """The passage's text from token `first` to token `last`, inclusive, as it stands there or as IfQA's answers write it."""
        start, end = self.offsets[first - self.start][0], self.offsets[last - self.start][1]
        return self.text[start:end] if self.as_written else format_answer(self.text, start, end, self.question)

    def is_whole(self, first: int, last: int) -> bool:
        """Whether the tokens `first` to `last`, inclusive, are whole words and amounts."""
        start, end = self.offsets[first - self.start][0], self.offsets[last - self.start][1]
        return is_boundary(self.text, start) and is_boundary(self.text, end)


def encode_pair(folder: Path, question: str, text: str, as_written: bool = False) -> EncodedPair:
    """Encode `[CLS] question [SEP] passage [SEP]`, or as the encoder in `folder` marks a pair, truncated; find the numbers.

    Args:
        as_written: dates of answers have the form that the passage gives them; else that of IfQA's answers.
    """
    before, between, after = special_token_ids(folder)
    query = load_tokenizer(folder).encode(question, add_special_tokens=False)
    read = load_tokenizer(folder).encode(text, add_special_tokens=False)
    question_ids = query.ids[:MAX_QUESTION]
    start = len(before) + len(question_ids) + len(between)
    passage_ids = read.ids[: MAX_TOKENS - start - len(after)]
    offsets = read.offsets[: len(passage_ids)]
    read_text = text[: offsets[-1][1]] if offsets else ""
    numbers = _anchored(find_numbers(read_text, question=question, as_written=as_written), offsets, start)
    places = [(IMPLICIT_ONE, 0, 0)]
    places += _anchored(find_numbers(question, asked=True), query.offsets[: len(question_ids)], len(before))
    asked = [number for number, *_ in places]
    doubles: list[tuple[tuple[Number, ...], tuple[int, int], list[StepResults]]] = [
        ((number, other), (first, second), compute_two(number, other, asked, question))
        for (number, first, _), (other, second, _) in combinations(numbers, 2)
    ]
    doubles += [
        ((items,), (first, last), compute_list(items, asked, question))
        for items, first, last in _anchored(find_lists(read_text), offsets, start)
    ]
    doubles = [double for double in doubles if any(map(any, double[2]))]
    return EncodedPair(
        question, text, [*before, *question_ids, *between, *passage_ids, *after], start, offsets,
        [*((number,) for number, *_ in numbers), *(several for several, *_ in doubles)], asked,
        [anchor for _, anchor, _ in numbers], [anchors for _, anchors, _ in doubles], [anchor for _, anchor, _ in places],
        [*([compute_answers(left, right, question) for right in asked] for left, *_ in numbers), *(rows for *_, rows in doubles)],
        as_written,
    )  # fmt: skip


def token_span(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """First and last token of the characters `start` to `end`, exclusive; None if they were cut off."""
    inside = [index for index, (left, right) in enumerate(offsets) if right > start and left < end]
    return (inside[0], inside[-1]) if inside and offsets[inside[-1]][1] >= end else None


def _anchored(numbers: list[Number], offsets: Sequence[tuple[int, int]], base: int) -> list[tuple[Number, int, int]]:
    """The numbers with their first and last tokens; those that were cut off are left out."""
    spans = [(number, token_span(offsets, number.start, number.end)) for number in numbers]
    return [(number, base + span[0], base + span[1]) for number, span in spans if span]


class SpanModel(nn.Module):
    """Encoder and heads.

    The heads give eight scores per token: start of an answer; end of an answer; number to compute with; at a number of the
    question, adding it and subtracting it; one of two numbers to compute with, or an end of a list; at a number of the
    question, the two operations on these. A span's score is start + end + a score of its length. A computed answer's score
    is that of the passage's number, or of both, + the operation's.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if encoder.positions < MAX_TOKENS:
            raise IfqaError(
                f"{encoder.folder} reads {encoder.positions} tokens; wanted an encoder of {MAX_TOKENS} or more"
            )
        self.encoder = encoder
        self.heads = nn.Linear(encoder.size, HEADS)
        self.length = nn.Parameter(torch.zeros(MAX_SPAN))

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the heads."""
        nn.init.normal_(self.heads.weight, std=0.02, generator=generator)
        nn.init.zeros_(self.heads.bias)

    def forward(
        self, pairs: Sequence[EncodedPair], generator: torch.Generator | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Scores of all candidates of the pairs, in float32 at any precision of the encoder.

        Returns:
            Spans, [pairs, tokens, MAX_SPAN]: entry (p, i, n) is the span of pair p that starts at token i and has n + 1
            tokens; very low outside the passage. For each pair its computed answers, as in `Pair.computed`,
            [rows, question numbers, 2]; very low where there is none.
        """
        device = self.length.device
        longest = max(len(pair.ids) for pair in pairs)
        # few shapes, because kernels are built once per shape
        ids = torch.full((len(pairs), -(-longest // 16) * 16), self.encoder.padding)
        types, mask, inside = torch.zeros_like(ids), torch.zeros_like(ids).bool(), torch.zeros_like(ids).bool()
        for row, pair in enumerate(pairs):
            size = len(pair.ids)
            ids[row, :size] = torch.tensor(pair.ids)
            types[row, pair.start : size] = 1
            mask[row, :size] = True
            inside[row, pair.start : pair.start + len(pair.offsets)] = True
        hidden = self.encoder(ids.to(device), types.to(device), mask.to(device), generator)
        scores = self.heads(hidden.float())
        outside = ~inside.to(device)
        starts = scores[..., 0].masked_fill(outside, -1e4)
        ends = F.pad(scores[..., 1].masked_fill(outside, -1e4), (0, MAX_SPAN - 1), value=-1e4)
        spans = starts[:, :, None] + ends.unfold(1, MAX_SPAN, 1) + self.length
        return spans, [self._computed(scores[row], pair) for row, pair in enumerate(pairs)]

    def _computed(self, scores: Tensor, pair: EncodedPair) -> Tensor:
        asked = scores[pair.question_anchors]
        one = scores[pair.passage_anchors, 2][:, None, None] + asked[:, 3:5]
        if pair.double_anchors:
            two = scores[torch.tensor(pair.double_anchors), 5].sum(1)[:, None, None] + asked[:, 6:8]
            one = torch.cat([one, two])
        none = torch.tensor([[[text is None for text in steps] for steps in row] for row in pair.computed]).bool()
        return one.masked_fill(none.to(scores.device).view(one.shape), -1e4)


#: Score and text; and where it comes from: first and last token of a span, or row, question's number and operation of `computed`.
AnswerCandidate = tuple[float, str, tuple[int, ...]]


def rank_candidates(pair: EncodedPair, spans: Tensor, computed: Tensor, count: int) -> list[AnswerCandidate]:
    """The `count` best candidates of one pair, best first; a span is of whole words."""
    values, places = spans.flatten().topk(min(_CUT * count, spans.numel()))
    best: list[AnswerCandidate] = []
    for value, place in zip(values.tolist(), places.tolist(), strict=True):
        first, more = divmod(place, MAX_SPAN)
        if value > -1e3 and pair.is_whole(first, first + more):
            best.append((value, pair.span_text(first, first + more), (first, first + more)))
    for row, (scores, texts) in enumerate(zip(computed.tolist(), pair.computed, strict=True)):
        for number, both in enumerate(zip(scores, texts, strict=True)):
            best += [
                (score, text, (row, number, step)) for step, (score, text) in enumerate(zip(*both, strict=True)) if text
            ]
    return sorted(best, key=lambda candidate: -candidate[0])[:count]
