"""Readers 'majority' and 'polarity', floors for every reader of WIQA: the most frequent answer, and a lexicon."""

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.plugins import open_benchmark
from ifqa.reading.multiple_choice.options import OptionReader, plain
from ifqa.reading.multiple_choice.wiqa_question import direction, parts, polarity
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import checked
from ifqa.storage.files import sha256


class Majority(OptionReader):
    """Gives one answer to all questions. It is a failed prediction where a question does not offer it.

    Args:
        split: the training questions, as benchmark/split; the first of equally frequent answers counts.
        answer: this answer instead.
        root: the folder that the benchmark's files count from.
    """

    name = "majority"
    version = 1

    @checked("setting of reader 'majority'")
    def __init__(self, split: str = "", answer: str = "", root: Path = Path()) -> None:
        if bool(split) == bool(answer):
            raise IfqaError(
                "reader 'majority': wanted one of the two, split (the training questions, as in sample-wiqa/train) or answer"
            )
        self.family, self._answer = self.trained(split, root), answer
        if split:
            benchmark, _, part = split.partition("/")
            source = open_benchmark(benchmark, root)
            self.trained_on = frozenset(map(sha256, source.files(part)))
            counts = Counter(question.answers[0] for question in source.questions(part) if question.answers)
            if not counts:
                raise IfqaError(f"reader 'majority': no question of {split} has an answer; name training questions")
            self._answer = counts.most_common(1)[0][0]

    def _choose(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Prediction]:
        predictions = []
        for question in questions:
            answer = next((choice for choice in question.choices if plain(choice) == plain(self._answer)), "")
            error = "" if answer else f"the answer {self._answer!r} is not offered"
            predictions.append(Prediction(question.id, answer, error=error))
        return predictions

    @classmethod
    def trained(cls, split: str = "", root: Path = Path(), **_: object) -> str:
        """The split family of the training questions; empty for a given answer."""
        benchmark, _slash, part = split.partition("/")
        return open_benchmark(benchmark, root).family(part) if split else ""

    @classmethod
    def fingerprint(cls, split: str = "", root: Path = Path(), **_: object) -> str:
        """SHA-256 over the files of the training questions; empty for a given answer."""
        benchmark, _slash, part = split.partition("/")
        files = open_benchmark(benchmark, root).files(part) if split else ()
        return hashlib.sha256(" ".join(map(sha256, files)).encode()).hexdigest() if files else ""


class Polarity(OptionReader):
    """Answers "more" if change and effect have the same polarity, "less" if they differ; draws one of the two if it is undecided.

    The paper (Tandon et al. 2019, section 5) calls these "correct" and "opposite". Its polarity baseline answers "no effect"
    almost never (0.27% of those questions are right), so the draw is between the two choices as well. The question's id seeds
    the draw. Which choice says more and which says less is read from their words.
    """

    name = "polarity"
    version = 1

    @checked("setting of reader 'polarity'")
    def __init__(self) -> None:
        pass

    def _choose(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Prediction]:
        predictions = []
        for question in questions:
            directed = {direction(choice): choice for choice in reversed(question.choices)}
            if not {1, -1} <= directed.keys():
                predictions.append(Prediction(question.id, "", error="no two choices say more and less"))
                continue
            change, effect = parts(question.text)
            same = polarity(change) * polarity(effect) or random.Random(question.id).choice((1, -1))
            predictions.append(Prediction(question.id, directed[same]))
        return predictions
