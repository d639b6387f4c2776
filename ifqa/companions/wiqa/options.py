"""The base of multiple-choice readers: predictions from scores, and the manifest of weights."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from ifqa.errors import ConfigError, MissingInput
from ifqa.protocols import ProgressCallback, RankedPassages, Reader, no_progress
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.files import read_json


class OptionReader(Reader):
    """Chooses among the answers that a question offers."""

    gives_confidence = False
    name: ClassVar[str]  # in settings and messages
    batch: ClassVar[int] = 256  # questions answered at a time

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """One prediction per question, in order; `score` is the log of the choice's probability."""
        if open_question := next(
            (question for question in questions if not question.choices), None
        ):
            name = open_question.id or open_question.text[:60]
            problem = f"question {name!r} offers no choices, which reader {self.name!r} needs"
            raise ConfigError(f"{problem}; take a reader for open questions, such as 'extractive'")
        predictions: list[Prediction] = []
        for start in range(0, len(questions), self.batch):
            batch = slice(start, start + self.batch)
            predictions += self._choose(questions[batch], passages[batch])
            advance(len(questions[batch]))
        return predictions

    def _choose(self, questions: Sequence[Question], passages: RankedPassages) -> list[Prediction]:
        """The predictions of a batch of questions, all with choices."""
        raise NotImplementedError


class ChoiceManifest(StoredModel):
    """The `manifest.json` of a training."""

    reader: str
    family: str
    sources: dict[str, str]  # file of questions -> SHA-256
    settings: dict[str, Any]
    classes: Sequence[str] = ()  # a classifier's, normalised by `normalize_choice`


def normalize_choice(text: str) -> str:
    """A choice in lower case, with single spaces."""
    return " ".join(text.casefold().split())


def choose_option(
    question: Question, scores: Sequence[float], passages: Sequence[Passage] = ()
) -> Prediction:
    """The choice with the highest logit, on a tie the first; `score` is the log of its softmax.

    `passages` are those read.
    """
    best = max(range(len(scores)), key=lambda n: scores[n])
    total = sum(math.exp(score - scores[best]) for score in scores)
    ids = tuple(passage.id for passage in passages)
    return Prediction(question.id, question.choices[best], passage_ids=ids, score=-math.log(total))


def load_choice_manifest(checkpoint: str, reader: str) -> ChoiceManifest:
    """The manifest of a reader's weights."""
    mend = f"name a folder that `ifqa train {reader}` made"
    path = Path(checkpoint) / "manifest.json"
    if not path.exists() and (Path(checkpoint) / "inputs.json").exists():
        raise MissingInput(
            f"{checkpoint} holds an unfinished training; run the same `ifqa train {reader}` again"
        )
    if not path.exists():
        raise MissingInput(f"weights of reader {reader!r} not found: {path} does not exist; {mend}")
    manifest = parse_stored(ChoiceManifest, read_json(path), str(path), mend)
    if manifest.reader != reader:
        raise ConfigError(f"{checkpoint} holds weights of reader {manifest.reader!r}; {mend}")
    return manifest
