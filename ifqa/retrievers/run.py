"""Rankings that another system made, from its TREC run file."""

from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.files import require, sha256
from ifqa.records import Hit, Question
from ifqa.runs import read_run


class Run:
    """The rankings of a TREC run; its question ids are ours ("ifqa/full-dev/17"), its passages those of the corpus."""

    version = 1

    def __init__(self, path: str) -> None:
        """Read the run.

        Args:
            path: the run file, plain or compressed.

        Raises:
            IfqaError: the file is missing, or a line of it is no line of a run.
        """
        self.path = path
        self.rankings = read_run(Path(path))

    def search(self, questions: Sequence[Question], k: int) -> list[list[Hit]]:
        """The first k of each question's ranking; empty for a question the run leaves out.

        Raises:
            IfqaError: the run is of another split: no question id in it begins as the questions' do.
        """
        splits = {question_id.rpartition("/")[0] for question_id in self.rankings}
        for question in questions:
            if question.id.rpartition("/")[0] not in splits:
                found = next(iter(self.rankings), "nothing")
                raise IfqaError(f"{self.path} ranks other questions: wanted ids like {question.id}, found {found}")
        return [self.rankings.get(question.id, [])[:k] for question in questions]

    @classmethod
    def fingerprint(cls, path: str) -> str:
        """SHA-256 of the run file."""
        return sha256(require(Path(path), "run"))
