"""Rankings from another system: a TREC run, or a ctxs JSON file of DPR or FiD, which holds its passages too."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

from ifqa.corpus.store import parse, passage_line
from ifqa.errors import IfqaError
from ifqa.formats.ctxs import is_ctxs, read_ctxs, refuse_pickle
from ifqa.formats.runs import read_run
from ifqa.protocols import Place, Requirement, Retriever
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.storage.files import require, sha256


class RunFile(Retriever):
    """Returns the rankings of a file.

    A TREC run names questions by ifqa's ids ("ifqa/full-dev/17") and passages by those of the corpus. An entry of a ctxs
    file belongs to the question with its id, else to the question with its text. Texts are compared without regard to
    white space and curly apostrophes (DPR writes "'" for "’"). Of several entries with the same text the first counts.
    A ctxs file brings the passages of its entries.
    """

    version = 1

    def __init__(self, path: Place) -> None:
        """Read the rankings. Only ids and scores of a ctxs file stay in memory; its passages go to a temporary file.

        Args:
            path: the file, plain or compressed.

        Raises:
            IfqaError: the file is missing or a pickle, or a line or an entry is malformed.
        """
        self.path = path
        refuse_pickle(Path(path))
        self._is_ctxs = is_ctxs(Path(path))
        if not self._is_ctxs:
            self.rankings = read_run(Path(path))
            self.question_ids = self.rankings.keys()
            return
        self._entries: list[list[Hit]] = []
        self._of_id: dict[str, int] = {}
        self._of_text: dict[str, int] = {}
        self._lines, self._starts = TemporaryFile(prefix="ifqa-"), array("Q", [0])  # noqa: SIM115 (closed below)
        finalize(self, self._lines.close)
        for number, (question, ranking) in enumerate(read_ctxs(Path(path))):
            self._entries.append([Hit(passage.id, score) for passage, score in ranking])
            self._of_id.setdefault(question.id, number)
            self._of_text.setdefault(_plain(question.text), number)
            self._lines.writelines(passage_line(passage.id, passage.title, passage.text) for passage, _ in ranking)
            self._starts.append(self._lines.tell())

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The first k of each question's ranking; empty for a question that a TREC run leaves out.

        Raises:
            IfqaError: a TREC run has no ranking of the question's split, or a ctxs file has no entry for the question.
                (A ctxs file has an entry even for a question without a result.)
        """
        if self._is_ctxs:
            numbers = [self._entry(question) for question in questions]
            return [SearchResult(self._entries[number][:k], self._passages(number)) for number in numbers]
        splits = {question_id.rpartition("/")[0] for question_id in self.rankings}
        for question in questions:
            if question.id.rpartition("/")[0] not in splits:
                found = next(iter(self.rankings), "nothing")
                raise IfqaError(f"{self.path} ranks other questions: wanted ids like {question.id}, found {found}")
        return [SearchResult(self.rankings.get(question.id, [])[:k]) for question in questions]

    def _passages(self, number: int) -> list[Passage]:
        """Every passage of an entry of a ctxs file, in the order of the file."""
        first, last = self._starts[number : number + 2]
        self._lines.seek(first)
        return [parse(line, str(self.path)) for line in self._lines.read(last - first).splitlines()]

    def _entry(self, question: Question) -> int:
        """The number of the question's entry in the ctxs file."""
        number = self._of_id.get(question.id, self._of_text.get(_plain(question.text)))
        if number is None:
            raise IfqaError(
                f"{self.path} has no entry for {question.id}: wanted the question {question.text!r}, found "
                f"{len(self._entries):,} others, such as {next(iter(self._of_text), 'nothing')!r}"
            )
        return number

    @classmethod
    def requirements(cls, *, path: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The file."""
        return [Requirement(path, "" if (root / path).exists() else "no such file; put it there or name another")]

    @classmethod
    def fingerprint(cls, path: str) -> str:
        """SHA-256 of the file."""
        refuse_pickle(require(Path(path), "run"))
        return sha256(Path(path))


def _plain(question: str) -> str:
    return " ".join(question.replace("’", "'").split())
