"""Reader 'predictions': answers of another system, from a file of JSON lines."""

from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.protocols import Advance, Place, Reader, Requirement, silent
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import is_share
from ifqa.storage.files import read_jsonl, require, sha256, text_field


class Predictions(Reader):
    """The answers of a file whose lines have a `question_id` ("ifqa/full-dev/17"), an `answer`, and perhaps a `confidence`."""

    version = 2

    def __init__(self, path: Place) -> None:
        """Read the answers.

        Args:
            path: the file, plain or compressed.
        """
        self.path = path
        self.answers: dict[str, str] = {}
        self.confidences: dict[str, float] = {}
        for number, record in read_jsonl(Path(path)):
            question_id = text_field(record, "question_id", f"{path}:{number}")
            if question_id in self.answers:
                raise IfqaError(f"{path}:{number}: question {question_id} is answered twice")
            if not isinstance(record.get("answer"), str):
                raise IfqaError(f"{path}:{number}: wanted a string as 'answer', found {record.get('answer')!r}")
            self.answers[question_id] = record["answer"]
            if (confidence := record.get("confidence")) is not None:
                if not is_share(confidence):
                    raise IfqaError(f"{path}:{number}: wanted 0 to 1 as 'confidence', found {confidence!r:.80}")
                self.confidences[question_id] = confidence
        self.question_ids = self.answers.keys()

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """Each question's answer; a question that is not in the file is a failure."""
        splits = {question_id.rpartition("/")[0] for question_id in self.answers}
        for question in questions:
            if question.id.rpartition("/")[0] not in splits:
                first = next(iter(self.answers), "nothing")
                raise IfqaError(f"{self.path} answers other questions: wanted ids like {question.id}, found {first}")
        advance(len(questions))
        return [
            Prediction(
                question.id,
                self.answers.get(question.id, ""),
                error="" if question.id in self.answers else "not in the file",
                confidence=self.confidences.get(question.id),
            )
            for question in questions
        ]

    @classmethod
    def requirements(cls, *, path: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The file."""
        return [Requirement(path, "" if (root / path).exists() else "no such file; put it there or name another")]

    @classmethod
    def fingerprint(cls, path: str) -> str:
        """SHA-256 of the file."""
        return sha256(require(Path(path), "predictions"))
