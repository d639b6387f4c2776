"""Reader 'predictions': answers of another system, from a file."""

from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import ConfigError, FormatError
from ifqa.formats.predictions import OtherAnswer, read_answers
from ifqa.protocols import (
    PathSetting,
    ProgressCallback,
    RankedPassages,
    Reader,
    Requirement,
    no_progress,
)
from ifqa.records import Prediction, Question
from ifqa.settings import PluginSettings
from ifqa.storage.files import require_file, sha256


class Predictions(Reader):
    """Reads answers from a file, plain or compressed: JSON lines, intermediate_data.json of
    FlashRAG, samples_*.jsonl of lm-eval, or a log of inspect.

    JSON lines name questions by ifqa's ids, and all must be in the split. Answers of other tools
    are matched to questions by id, or else by text, ignoring differences in white space.
    """

    version = 2

    class Settings(PluginSettings):
        path: PathSetting
        """The file of answers."""

    def __init__(self, settings: Settings) -> None:
        """Read the answers.

        Raises IfqaError if the file is missing or malformed, or answers a question twice.
        """
        self.path = settings.path
        self._tool, answers = read_answers(Path(settings.path))
        self._by_id: dict[str, OtherAnswer] = {}
        self._by_text: dict[str, OtherAnswer] = {}
        self._ambiguous: set[str] = set()  # texts with several answers
        self._asked: dict[str, str] = {}  # text -> id of the question that got its answer
        self._matched = False
        for answer in answers:
            self._add(answer)
        if not self._tool:
            self.question_ids = self._by_id.keys()

    def _add(self, answer: OtherAnswer) -> None:
        if answer.question_id in self._by_id:
            raise FormatError(f"{answer.where}: question {answer.question_id} is answered twice")
        if answer.question_id:
            self._by_id[answer.question_id] = answer
        if text := _squeeze(answer.question):
            known = self._by_text.setdefault(text, answer)
            if (known.answer, known.error) != (answer.answer, answer.error):
                self._ambiguous.add(text)

    def answer(
        self,
        questions: Sequence[Question],
        passages: RankedPassages,
        advance: ProgressCallback = no_progress,
    ) -> list[Prediction]:
        """Each question's answer; a question that is not in the file gets a failed prediction.

        Raises ConfigError if another tool's file has no answer to the first questions at all, or if
        a text alone does not tell which question was answered.
        """
        predictions = []
        for question in questions:
            answer = self._by_id.get(question.id) or self._find_by_text(question)
            self._matched |= answer is not None
            if answer:
                predictions.append(
                    Prediction(
                        question.id,
                        answer.answer,
                        error=answer.error,
                        confidence=answer.confidence,
                    )
                )
            else:
                predictions.append(Prediction(question.id, "", error="not in the file"))
        if self._tool and questions and not self._matched:
            example = next(iter(self._by_text), next(iter(self._by_id), "nothing"))
            raise ConfigError(
                f"{self.path}: none of the first {len(questions)} questions, such as "
                f"{questions[0].text!r}, is answered in this file of {self._tool}; it has "
                f"{example!r}; wanted the questions' ids or texts"
            )
        advance(len(questions))
        return predictions

    def _find_by_text(self, question: Question) -> OtherAnswer | None:
        text = _squeeze(question.text)
        answer = self._by_text.get(text)
        if answer is None:
            return None
        if text in self._ambiguous:
            raise ConfigError(
                f"{answer.where}: the file has several answers to {question.text!r}; wanted the "
                f"ids of the benchmark in it, such as {question.id}"
            )
        if self._asked.setdefault(text, question.id) != question.id:
            raise ConfigError(
                f"{answer.where}: {self._asked[text]} and {question.id} have the same text; wanted "
                "their ids in the file, to tell whose answer it is"
            )
        return answer

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        path = settings.path
        remedy = "" if Path(path).exists() else "no such file; put it there or name another"
        return [Requirement(path, remedy)]

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        return sha256(require_file(Path(settings.path), "predictions"))


def _squeeze(text: str) -> str:
    return " ".join(text.split())
