"""Reader 'predictions': answers of another system, from a file of JSON lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ifqa.errors import ConfigError, FormatError
from ifqa.protocols import (
    PathSetting,
    ProgressCallback,
    RankedPassages,
    Reader,
    Requirement,
    no_progress,
)
from ifqa.records import Prediction, Question
from ifqa.settings import PluginSettings, StoredModel, Text, parse_stored
from ifqa.storage.files import read_jsonl, require_file, sha256


class AnswerLine(StoredModel):
    """A line of the file; `question_id` is in the form "ifqa/full-dev/17"."""

    question_id: Text
    answer: str
    confidence: Annotated[int | float, Field(ge=0, le=1)] | None = None


class Predictions(Reader):
    """Reads answers from a file, plain or compressed; each line is an `AnswerLine`."""

    version = 2

    class Settings(PluginSettings):
        path: PathSetting
        """The file of answers."""

    def __init__(self, settings: Settings) -> None:
        path = settings.path
        self.path = path
        self.answers: dict[str, AnswerLine] = {}
        for number, record in read_jsonl(Path(path)):
            answer = parse_stored(AnswerLine, record, f"{path}:{number}")
            if answer.question_id in self.answers:
                raise FormatError(
                    f"{path}:{number}: question {answer.question_id} is answered twice"
                )
            self.answers[answer.question_id] = answer
        self.question_ids = self.answers.keys()

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """Each question's answer; a question that is not in the file gets a failed prediction."""
        splits = {question_id.rpartition("/")[0] for question_id in self.answers}
        predictions = []
        for question in questions:
            if question.id.rpartition("/")[0] not in splits:
                first = next(iter(self.answers), "nothing")
                raise ConfigError(
                    f"{self.path} answers other questions: wanted ids like "
                    f"{question.id}, found {first}"
                )
            if answer := self.answers.get(question.id):
                predictions.append(
                    Prediction(question.id, answer.answer, confidence=answer.confidence)
                )
            else:
                predictions.append(Prediction(question.id, "", error="not in the file"))
        advance(len(questions))
        return predictions

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        path = settings.path
        remedy = "" if Path(path).exists() else "no such file; put it there or name another"
        return [Requirement(path, remedy)]

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        return sha256(require_file(Path(settings.path), "predictions"))
