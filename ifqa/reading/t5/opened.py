"""A checkpoint in memory that answers: what the readers `fid`, `rag` and `unifiedqa` share."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ifqa.protocols import Reader
from ifqa.reading.t5.answer import Budget, Reading, budget, read
from ifqa.reading.t5.checkpoint import open_checkpoint
from ifqa.reading.t5.text import Conventions, check, tokenise
from ifqa.records import Passage, Question

if TYPE_CHECKING:
    from ifqa.reading.t5.model import FusionInDecoder

_CHOICE = {"auto": None, "yes": True, "no": False}


@dataclass
class Opened:
    """A network on its device, and how it reads and answers.

    Attributes:
        model, tokenizer, conventions, family, sources: those of the `Checkpoint`; given settings replace its conventions.
        max_answer_tokens: most tokens of an answer, including the token that starts decoding.
        beams: 1 for greedy decoding.
        room: batch sizes; smaller once memory ran out.
    """

    model: "FusionInDecoder"
    tokenizer: Any
    conventions: Conventions
    family: str
    sources: frozenset[str]
    max_answer_tokens: int
    beams: int
    room: Budget

    def answer(
        self, texts: Sequence[Sequence[str]], decode: Callable[..., list[Reading]] = read
    ) -> list[tuple[Reading, str]]:
        """What the decoder gives for each question, and its text; `texts` has one or more inputs for each question.

        `decode` takes the arguments of `ifqa.reading.t5.answer.read`.

        Raises:
            IfqaError: a single question does not fit into the memory.
        """
        if not texts:  # batch_decode gives one text for an empty batch
            return []
        readings = decode(
            self.model, tokenise(self.tokenizer, [text for several in texts for text in several], self.conventions),
            [len(several) for several in texts], max_answer_tokens=self.max_answer_tokens, beams=self.beams,
            room=self.room,
        )  # fmt: skip
        answers = self.tokenizer.batch_decode([one.tokens for one in readings], skip_special_tokens=True)
        return list(zip(readings, answers, strict=True))


def opened(
    reader: str, checkpoint: str, tokenizer: str, *, max_tokens: int, titles: str, max_answer_tokens: int, beams: int,
    device: str, precision: str, batch_tokens: int, encoder_eos: str = "auto",
) -> Opened:  # fmt: skip
    """Open a checkpoint with a reader's settings, which are described at the readers.

    Raises:
        IfqaError: the checkpoint is missing or not a T5, there is no such device, or `max_tokens` is too small.
    """
    import torch

    from ifqa.models.devices import half_precision, resolve_device

    device = resolve_device(device)
    found = open_checkpoint(checkpoint, tokenizer, reader)
    given: dict[str, Any] = {
        "max_tokens": max_tokens or None,
        "titles": _CHOICE[titles],
        "encoder_eos": _CHOICE[encoder_eos],
    }
    conventions = replace(found.conventions, **{key: one for key, one in given.items() if one is not None})
    check(conventions)
    dtype = half_precision(device) if precision == "auto" else getattr(torch, precision)
    model = found.model.to(device=device, dtype=dtype)
    room = budget(model, beams, batch_tokens)
    return Opened(model, found.tokenizer, conventions, found.family, found.sources, max_answer_tokens, beams, room)


def measured_pace(reader: Reader, group: str = "") -> float:
    """Passages a second that a reader reads now, with eight passages of 100 words for one question of a group."""
    question = Question("check", "If " + "it were so, " * 5 + "how long?", group=group)
    passages = [Passage("", "", "words " * 100)] * 8
    reader.answer([question], [passages[:1]])
    start = time.perf_counter()
    reader.answer([question], [passages])
    return len(passages) / (time.perf_counter() - start)
