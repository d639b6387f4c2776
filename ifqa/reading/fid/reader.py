"""Reader 'fid': Fusion-in-Decoder encodes each passage alone, attends to all of them, and generates the answer."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ifqa.protocols import Advance, Place, Reader, silent
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, Positive, Precision, YesNo, checked

if TYPE_CHECKING:
    from ifqa.reading.fid.answer import Reading

_CHOICE = {"auto": None, "yes": True, "no": False}


class Fid(Reader):
    """Fusion-in-Decoder (Izacard & Grave 2021) with any checkpoint of T5's family; greedy decoding as the original.

    Batching changes no answer, except by bfloat16's rounding. A question without passages is answered from its own text
    alone.

    Args:
        checkpoint: a folder that `ifqa train fid` made, one of facebookresearch/FiD's (`nq_reader_base`), or a T5 of the
            hub; empty for google/flan-t5-base, which is not trained on IfQA.
        tokenizer: a folder or a model of the hub; empty for the checkpoint's own, or T5's if it has none.
        max_tokens: most tokens of question and passage together; 0 for the checkpoint's own (250, as published, by default).
        titles: whether passages' titles are read: "yes", "no", or "auto" for the checkpoint's own (yes).
        encoder_eos: whether inputs end in `</s>`: "yes", "no", or "auto" for the checkpoint's own: facebookresearch/FiD's
            were trained without, by a tokenizer that added none.
        max_answer_tokens: most tokens of an answer, including the token that starts decoding (FiD test_reader.py:42-46).
        beams: 1 for greedy decoding; more beams take longer and that many times the memory.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware multiplies in it.
        batch_tokens: tokens encoded at a time, padding included; 0 for the device's default. Halved, with a message, if
            memory runs out.

    Attributes:
        family: split family the checkpoint was trained on, such as "ifqa/full"; empty if `ifqa train fid` did not make it.
        trained_on: SHA-256 of the files of its training questions.
        label: shown with the scores if the checkpoint was not trained on a benchmark.

    Raises:
        IfqaError: the checkpoint is missing or not a T5, or a setting has an invalid value.
    """

    version = 1
    not_identity = ("device", "batch_tokens")

    @checked("setting of reader 'fid'")
    def __init__(
        self,
        checkpoint: Place = "",
        tokenizer: Place = "",
        max_tokens: Natural = 0,
        titles: YesNo = "auto",
        encoder_eos: YesNo = "auto",
        max_answer_tokens: Annotated[int, Field(ge=2)] = 50,
        beams: Positive = 1,
        device: str = "auto",
        precision: Precision = "auto",
        batch_tokens: Natural = 0,
    ) -> None:
        import torch

        from ifqa.models.devices import half_precision, resolve_device
        from ifqa.reading.fid.answer import budget
        from ifqa.reading.fid.checkpoint import DEFAULT, open_checkpoint
        from ifqa.reading.fid.text import check

        device = resolve_device(device)
        opened = open_checkpoint(checkpoint, tokenizer)
        self.family, self.trained_on = opened.family, opened.sources
        self.label = "" if self.family else f"{checkpoint or DEFAULT} is not trained on IfQA"
        given: dict[str, Any] = {
            "max_tokens": max_tokens or None,
            "titles": _CHOICE[titles],
            "encoder_eos": _CHOICE[encoder_eos],
        }
        self.conventions = replace(opened.conventions, **{key: one for key, one in given.items() if one is not None})
        check(self.conventions)
        dtype = half_precision(device) if precision == "auto" else getattr(torch, precision)
        self.tokenizer, self.model = opened.tokenizer, opened.model.to(device=device, dtype=dtype)
        self.max_answer_tokens, self.beams = max_answer_tokens, beams
        self.room = budget(self.model, beams, batch_tokens)

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; `passages` are each question's, best first.

        Passages are ordered by the decoder's attention to them (see `FusionInDecoder.passage_scores`).

        Raises:
            IfqaError: a single question does not fit into the memory.
        """
        from ifqa.reading.fid.answer import read
        from ifqa.reading.fid.text import passage_inputs, tokenise

        if not questions:  # batch_decode gives one text for an empty batch
            return []
        texts = [
            passage_inputs(question.text, several, self.conventions.titles)
            for question, several in zip(questions, passages, strict=True)
        ]
        readings = read(
            self.model, tokenise(self.tokenizer, [text for several in texts for text in several], self.conventions),
            [len(several) for several in texts], max_answer_tokens=self.max_answer_tokens, beams=self.beams,
            room=self.room,
        )  # fmt: skip
        answers = self.tokenizer.batch_decode([one.tokens for one in readings], skip_special_tokens=True)
        advance(len(questions))
        return [
            _prediction(question, several, reading, text)
            for question, several, reading, text in zip(questions, passages, readings, answers, strict=True)
        ]

    def pace(self) -> float:
        """Passages per second, measured now, for `ifqa check`."""
        question, passages = (
            Question("check", "If " + "it were so, " * 5 + "how long?"),
            [Passage("", "", "words " * 100)] * 8,
        )
        self.answer([question], [passages[:1]])
        start = time.perf_counter()
        self.answer([question], [passages])
        return len(passages) / (time.perf_counter() - start)

    @classmethod
    def trained(cls, checkpoint: str = "", **_: object) -> str:
        """The split family a checkpoint was trained on, read without loading it; empty if unknown."""
        from ifqa.reading.fid.checkpoint import checkpoint_folder, family_of

        return family_of(checkpoint_folder(checkpoint))

    @classmethod
    def fingerprint(cls, checkpoint: str = "", tokenizer: str = "", **_: object) -> str:
        """SHA-256 over the checkpoint's files, and the tokenizer's files if they are in another folder."""
        from ifqa.models.hub import weights_identity
        from ifqa.reading.fid.checkpoint import checkpoint_folder, tokenizer_folder

        folder = checkpoint_folder(checkpoint)
        other = tokenizer_folder(folder, tokenizer)
        files = [weights_identity(folder), *([weights_identity(other)] if other != folder else [])]
        return hashlib.sha256("".join(files).encode()).hexdigest()


def _prediction(question: Question, passages: Sequence[Passage], reading: "Reading", text: str) -> Prediction:
    # Without passages there is still one score, for the question read alone
    scored = sorted(zip(reading.passage_scores, passages, strict=False), key=lambda pair: -pair[0])
    ids, scores = tuple(passage.id for _, passage in scored), tuple(score for score, _ in scored)
    return Prediction(
        question.id, text.strip(), completion=text, passage_ids=ids, score=reading.score, passage_scores=scores
    )
