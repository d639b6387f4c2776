"""What readers share that choose among the answers a question offers: scores to a prediction, and the manifest of weights."""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from ifqa.errors import IfqaError
from ifqa.protocols import Advance, Reader, silent
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Stored, check_stored
from ifqa.storage.files import read_json, require, sha256


class OptionReader(Reader):
    """Chooses among the answers that a question offers."""

    name: ClassVar[str]  # in settings and messages
    batch: ClassVar[int] = 256  # questions that are answered at a time

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; a score is the logarithm of the choice's probability."""
        if open_question := next((question for question in questions if not question.choices), None):
            raise IfqaError(
                f"question {open_question.id or open_question.text[:60]!r} offers no choices, and reader {self.name!r} only "
                "chooses; take a reader of open questions, such as 'extractive'"
            )
        predictions: list[Prediction] = []
        for start in range(0, len(questions), self.batch):
            batch = slice(start, start + self.batch)
            predictions += self._choose(questions[batch], passages[batch])
            advance(len(questions[batch]))
        return predictions

    def _choose(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Prediction]:
        """The predictions of a batch of questions, all of which offer choices."""
        raise NotImplementedError


class Manifest(Stored):
    """The `manifest.json` of a training: the reader it is for, family, questions' files -> SHA-256, settings, classes."""

    reader: str
    family: str
    sources: dict[str, str]
    settings: dict[str, Any]
    classes: Sequence[str] = ()  # that a classifier chooses from, as `plain` writes them


class ClassifierReader(OptionReader):
    """Scores the classes of its training questions, whatever a question offers, from the question's text alone.

    A question of whose choices none is a class is a failed prediction.
    """

    weights: ClassVar[str]  # the file of the weights
    manifest: Manifest

    def _read_manifest(self, checkpoint: str) -> None:
        self.manifest = manifest_of(checkpoint, self.name)
        self.family, self.trained_on = self.manifest.family, frozenset(self.manifest.sources.values())

    def _choose(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Prediction]:
        predictions = []
        rows = self._scores([question.text for question in questions])
        for question, row in zip(questions, rows, strict=True):
            of_class = dict(zip(self.manifest.classes, row, strict=True))
            scores = [of_class.get(plain(choice), -math.inf) for choice in question.choices]
            if max(scores) == -math.inf:
                error = f"the reader learnt {', '.join(of_class)}, and none of these is offered"
                predictions.append(Prediction(question.id, "", error=error))
            else:
                predictions.append(chosen(question, scores))
        return predictions

    def _scores(self, texts: Sequence[str]) -> list[list[float]]:
        """A logit for each class, [questions, classes]."""
        raise NotImplementedError

    @classmethod
    def trained(cls, checkpoint: str, **_: object) -> str:
        """The split family of the training questions, read without the weights."""
        return manifest_of(checkpoint, cls.name).family

    @classmethod
    def fingerprint(cls, checkpoint: str, **_: object) -> str:
        """SHA-256 over the weights and what the manifest says of them."""
        manifest = manifest_of(checkpoint, cls.name)
        weights = sha256(require(Path(checkpoint) / cls.weights, f"weights of reader {cls.name!r}"))
        return hashlib.sha256(f"{weights} {manifest.settings} {manifest.classes}".encode()).hexdigest()


def plain(text: str) -> str:
    """A choice as it is compared: in lower case, with single blanks."""
    return " ".join(text.casefold().split())


def chosen(question: Question, scores: Sequence[float], passages: Sequence[Passage] = ()) -> Prediction:
    """The choice with the highest logit, the first of equals, its `score` the log of the softmax; `passages` were read."""
    best = max(range(len(scores)), key=lambda n: scores[n])
    total = sum(math.exp(score - scores[best]) for score in scores)
    ids = tuple(passage.id for passage in passages)
    return Prediction(question.id, question.choices[best], passage_ids=ids, score=-math.log(total))


def manifest_of(checkpoint: str, reader: str) -> Manifest:
    """The manifest of a reader's weights."""
    mend = f"name a folder that `ifqa train {reader}` made"
    path = Path(checkpoint) / "manifest.json"
    if not path.exists() and (Path(checkpoint) / "inputs.json").exists():
        raise IfqaError(f"{checkpoint} holds a training that is not finished; run its `ifqa train {reader}` again")
    if not path.exists():
        raise IfqaError(f"weights of reader {reader!r} not found: {path} does not exist; {mend}")
    manifest = check_stored(Manifest, read_json(path), str(path), mend)
    if manifest.reader != reader:
        raise IfqaError(f"{checkpoint} holds weights of reader {manifest.reader!r}; {mend}")
    return manifest
