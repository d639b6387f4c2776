"""A span reader whose probabilities another learns (distillation; Hinton et al. 2015)."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ifqa.errors import ConfigError
from ifqa.models.devices import half_precision
from ifqa.models.span_encoder import EncoderFiles
from ifqa.reading.span.network import EncodedPair, encode_pair
from ifqa.training.extractive_phase import open_network


class CandidateScores(NamedTuple):
    """A pair's scores, by tokens of the passage: spans [tokens, MAX_SPAN], and computed answers
    [rows, question numbers, 2].
    """

    spans: Tensor
    computed: Tensor


class Teacher:
    """A trained span reader, on any encoder with the same tokens as the student's.

    It scores each pair once, because another pass or seed asks for the same again.
    """

    def __init__(self, weights: Path, encoder: EncoderFiles, device: str) -> None:
        self.folder = encoder.folder
        self.model = open_network(encoder, str(weights), 0, 0.0).to(device).eval()
        self.model.encoder.cast(half_precision(device))
        self._scores: dict[tuple[str, str], CandidateScores] = {}

    def check_tokens(self, pair: EncodedPair) -> None:
        """Raise ConfigError if the teacher parts a passage into other tokens than the student."""
        encoded = encode_pair(self.folder, pair.question, pair.text)
        common = min(len(encoded.offsets), len(pair.offsets))
        if encoded.offsets[:common] != pair.offsets[:common]:
            raise ConfigError(
                f"training setting teacher: {self.folder} parts texts into other tokens than the "
                "encoder that is trained; wanted a teacher with the same tokenizer"
            )

    def loss(
        self, pairs: Sequence[EncodedPair], spans: Sequence[Tensor], computed: Sequence[Tensor]
    ) -> Tensor:
        """The cross entropy of the student's probabilities under the teacher's, over the candidates
        of a question's pairs and the null candidate.

        `spans` and `computed` are the student's scores of the pairs, as from
        `ifqa.reading.span.network.SpanModel`.
        """
        student = []
        teacher = []
        for pair, student_spans, student_computed, scores in zip(
            pairs, spans, computed, self._score(pairs), strict=True
        ):
            # A passage that fills the reader may end a token earlier with one of the two
            common = min(len(pair.offsets), len(scores.spans))
            inside = _ends_before(scores.spans[:common], common)
            student.append(student_spans[pair.start : pair.start + common][inside])
            teacher.append(scores.spans[:common][inside])
            if student_computed.shape == scores.computed.shape:
                student.append(student_computed.flatten())
                teacher.append(scores.computed.flatten())
        null = spans[0].new_zeros(1)
        wanted = torch.softmax(torch.cat([null, *teacher]), 0)
        return -(wanted * torch.log_softmax(torch.cat([null, *student]), 0)).sum()

    def _score(self, pairs: Sequence[EncodedPair]) -> list[CandidateScores]:
        keys = [(pair.question, pair.text) for pair in pairs]
        missing = [key for key in dict.fromkeys(keys) if key not in self._scores]
        if missing:
            encoded = [encode_pair(self.folder, *key) for key in missing]
            with torch.no_grad():
                spans, computed = self.model(encoded)
            for key, pair, row, answers in zip(missing, encoded, spans, computed, strict=True):
                inside = row[pair.start : pair.start + len(pair.offsets)]
                self._scores[key] = CandidateScores(inside.clone(), answers)
        return [self._scores[key] for key in keys]


def _ends_before(spans: Tensor, tokens: int) -> Tensor:
    """Which spans of the first tokens end there too, [tokens, MAX_SPAN]."""
    first = torch.arange(len(spans))[:, None]
    more = torch.arange(spans.shape[1])
    return first + more < tokens


@cache
def open_teacher(weights: Path, encoder: EncoderFiles, device: str) -> Teacher:
    """The teacher, opened once for the trainings whose weights are averaged."""
    return Teacher(weights, encoder, device)
