"""What the readers of T5 checkpoints share: a network in memory that answers, and what is known of a checkpoint without it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ifqa.errors import IfqaError
from ifqa.protocols import Reader, Requirement
from ifqa.reading.t5.checkpoint import (
    DEFAULT,
    Conventions,
    check,
    checkpoint_folder,
    checkpoint_requirement,
    family_of,
    identity,
    open_checkpoint,
    tokenise,
)
from ifqa.reading.t5.generation import Budget, Reading, budget, read
from ifqa.records import Passage, Prediction, Question

if TYPE_CHECKING:
    from ifqa.reading.t5.model import FusionInDecoder

Mode = Literal["sequence", "token"]  # of RAG (see `ifqa.reading.t5.rag_model.log_likelihoods`)
MAX_ANSWER = 50  # tokens of an answer, including the token that starts decoding (FiD test_reader.py:42-46)
_CHOICE = {"auto": None, "yes": True, "no": False}


@dataclass
class OpenedT5:
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

        `decode` takes the arguments of `ifqa.reading.t5.generation.read`.

        Raises:
            IfqaError: a single question does not fit into the memory.
        """
        if not texts:  # batch_decode gives one text for an empty batch
            return []
        flat = [text for inputs in texts for text in inputs]
        readings = decode(
            self.model, tokenise(self.tokenizer, flat, self.conventions), list(map(len, texts)),
            max_answer_tokens=self.max_answer_tokens, beams=self.beams, room=self.room,
        )  # fmt: skip
        answers = self.tokenizer.batch_decode([reading.tokens for reading in readings], skip_special_tokens=True)
        return list(zip(readings, answers, strict=True))


def open_t5(
    reader: str, checkpoint: str, tokenizer: str, *, max_tokens: int, titles: str, max_answer_tokens: int, beams: int,
    device: str, precision: str, batch_tokens: int, encoder_eos: str = "auto",
) -> OpenedT5:  # fmt: skip
    """Open a checkpoint with a reader's settings, which are described at the readers.

    Raises:
        IfqaError: the checkpoint is missing or not a T5, there is no such device, or `max_tokens` is too small.
    """
    from ifqa.models.devices import resolve_device, resolve_precision

    device = resolve_device(device)
    stored = open_checkpoint(checkpoint, tokenizer, reader)
    settings: dict[str, Any] = {
        "max_tokens": max_tokens or None,
        "titles": _CHOICE[titles],
        "encoder_eos": _CHOICE[encoder_eos],
    }
    changes = {name: setting for name, setting in settings.items() if setting is not None}
    conventions = replace(stored.conventions, **changes)
    check(conventions)
    model = stored.model.to(device=device, dtype=resolve_precision(precision, device))
    room = budget(model, beams, batch_tokens)
    return OpenedT5(model, stored.tokenizer, conventions, stored.family, stored.sources, max_answer_tokens, beams, room)


class T5Reader(Reader):
    """Reads with a checkpoint of T5's family; a subclass may have one for each group of questions."""

    name: ClassVar[str]  # of the reader, in settings and messages
    not_identity = ("device", "batch_tokens")
    _group = ""  # whose checkpoint is in memory

    @classmethod
    def checkpoints(cls, checkpoint: str, root: Path = Path()) -> Mapping[str, str]:
        """Group -> the checkpoint that answers its questions; "" -> the checkpoint of all questions."""
        return {"": checkpoint}

    def pace(self) -> float:
        """Passages a second, measured now with eight passages of 100 words for one question, for `ifqa check`."""
        question = Question("check", "If " + "it were so, " * 5 + "how long?", group=self._group)
        passages = [Passage("", "", "words " * 100)] * 8
        self.answer([question], [passages[:1]])
        start = time.perf_counter()
        self.answer([question], [passages])
        return len(passages) / (time.perf_counter() - start)

    @classmethod
    def requirements(cls, *, checkpoint: str = "", root: Path = Path(), **_: object) -> list[Requirement]:
        """The checkpoint, of every group."""
        name = checkpoint or DEFAULT[cls.name]
        try:
            return [checkpoint_requirement(name, cls.name, cls.checkpoints(name, root).values(), root)]
        except IfqaError as error:
            return [Requirement(f"the checkpoint {name}", str(error).removeprefix(f"checkpoint {name}: "))]

    @classmethod
    def trained(cls, checkpoint: str = "", root: Path = Path(), **_: object) -> str:
        """The split family a checkpoint was trained on, read without loading it; empty if unknown.

        Raises:
            IfqaError: the groups' checkpoints were trained on several families.
        """
        folders = [checkpoint_folder(name, cls.name) for name in cls.checkpoints(checkpoint, root).values()]
        families = sorted({family_of(folder, cls.name) for folder in folders} - {""})
        if len(families) > 1:
            raise IfqaError(
                f"{checkpoint}: its models were trained on {' and '.join(families)}, which may share questions; "
                "keep the models of one split family under one name"
            )
        return families[0] if families else ""

    @classmethod
    def fingerprint(cls, checkpoint: str = "", tokenizer: str = "", **_: Any) -> str:
        """SHA-256 over the checkpoint's files, and the tokenizer's files if they are in another folder."""
        return identity(checkpoint_folder(checkpoint, cls.name), tokenizer)


class PassageReader(T5Reader):
    """Reads each passage of a question apart."""

    def _open(self, checkpoint: str, tokenizer: str, **settings: Any) -> None:
        """Open the checkpoint; `settings` are those of `open_t5`."""
        self._t5 = open_t5(self.name, checkpoint, tokenizer, **settings)
        self.conventions, self.family, self.trained_on = self._t5.conventions, self._t5.family, self._t5.sources
        self.label = "" if self.family else f"{checkpoint or DEFAULT[self.name]} is not trained on IfQA"

    def _texts(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[list[str]]:
        """The inputs of each question."""
        titles = self.conventions.titles
        return [
            passage_inputs(question.text, texts, titles) for question, texts in zip(questions, passages, strict=True)
        ]


def passage_inputs(question: str, passages: Sequence[Passage], titles: bool) -> list[str]:
    """The input texts of a question's passages, best first; without passages, the question alone.

    `question: {q} title: {t} context: {x}` (FiD src/data.py:16-18, 40, 44-46, 114). Without passages FiD's code would read the
    question alone, but that code is never reached (src/data.py:46-51).
    """
    start = f"question: {question}"
    if not passages:
        return [start]
    return [f"{start} title: {passage.title if titles else ''} context: {passage.text}" for passage in passages]


def predictions_of(
    questions: Sequence[Question], passages: Sequence[Sequence[Passage]], answers: Sequence[tuple[Reading, str]]
) -> list[Prediction]:
    """Decoded answers as predictions, each with its passages by their scores, highest first."""
    predictions = []
    for question, texts, (reading, text) in zip(questions, passages, answers, strict=True):
        # Without passages there is still one score, for the question read alone
        scored = sorted(zip(reading.passage_scores, texts, strict=False), key=lambda pair: -pair[0])
        ids, scores = tuple(passage.id for _, passage in scored), tuple(score for score, _ in scored)
        predictions.append(
            Prediction(
                question.id, text.strip(), completion=text, passage_ids=ids, score=reading.score, passage_scores=scores
            )
        )
    return predictions
