"""Reader 'majority': the most frequent answer of the training questions, whatever is asked; a floor for every reader."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.plugins import open_benchmark
from ifqa.protocols import Advance, Reader, silent
from ifqa.reading.choice.offered import plain, require_choices
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import checked
from ifqa.storage.files import sha256


class Majority(Reader):
    """Gives one answer to all questions. It is a failed prediction where a question does not offer it.

    Args:
        split: the training questions, as benchmark/split; the first of equally frequent answers counts.
        answer: this answer instead.
        root: the folder that the benchmark's files count from.

    Raises:
        IfqaError: both are given, or neither; or the training questions have no answers.
    """

    version = 1
    chooses = True
    passages_are = "ignored"

    @checked("setting of reader 'majority'")
    def __init__(self, split: str = "", answer: str = "", root: Path = Path()) -> None:
        if bool(split) == bool(answer):
            raise IfqaError(
                "reader 'majority': wanted one of the two, split (the training questions, as in sample-wiqa/train) or answer"
            )
        self.family, self._answer = self.trained(split, root), answer
        if split:
            name, _, part = split.partition("/")
            source = open_benchmark(name, root)
            self.trained_on = frozenset(map(sha256, source.files(part)))
            counts = Counter(question.answers[0] for question in source.questions(part) if question.answers)
            if not counts:
                raise IfqaError(f"reader 'majority': no question of {split} has an answer; name training questions")
            self._answer = counts.most_common(1)[0][0]

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; the passages are not read.

        Raises:
            IfqaError: a question has no choices.
        """
        require_choices(questions, "majority")
        advance(len(questions))
        return [self._choose(question) for question in questions]

    def _choose(self, question: Question) -> Prediction:
        offered = [choice for choice in question.choices if plain(choice) == plain(self._answer)]
        error = "" if offered else f"the answer {self._answer!r} is not offered"
        return Prediction(question.id, offered[0] if offered else "", error=error)

    @classmethod
    def trained(cls, split: str = "", root: Path = Path(), **_: object) -> str:
        """The split family of the training questions; empty for a given answer."""
        name, _slash, part = split.partition("/")
        return open_benchmark(name, root).family(part) if split else ""

    @classmethod
    def fingerprint(cls, split: str = "", root: Path = Path(), **_: object) -> str:
        """SHA-256 over the files of the training questions; empty for a given answer."""
        name, _slash, part = split.partition("/")
        files = open_benchmark(name, root).files(part) if split else ()
        return hashlib.sha256(" ".join(map(sha256, files)).encode()).hexdigest() if files else ""
