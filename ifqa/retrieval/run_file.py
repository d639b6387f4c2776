"""Rankings from another system: a TREC run, or a ctxs JSON file of DPR or FiD, which holds its passages too."""

from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.formats.ctxs import is_ctxs, read_ctxs, refuse_pickle
from ifqa.formats.runs import read_run
from ifqa.protocols import PathSetting, Requirement, Retriever
from ifqa.records import Hit, Question, SearchResult
from ifqa.storage.files import require_file, sha256


class RunFile(Retriever):
    """Returns the rankings of a file.

    A TREC run names questions by ifqa's ids ("ifqa/full-dev/17") and passages by those of the corpus. An entry of a ctxs
    file belongs to the question with its id, else to the question with its text. Texts are compared without regard to
    white space and curly apostrophes (DPR writes "'" for "’"). Of several entries with the same text the first counts.
    A ctxs file brings the passages of its entries.
    """

    version = 1

    def __init__(self, path: PathSetting) -> None:
        """Read the rankings.

        Args:
            path: the file, plain or compressed.

        Raises:
            IfqaError: the file is missing or a pickle, or a line or an entry is malformed.
        """
        self.path = path
        refuse_pickle(Path(path))
        self.rankings: dict[str, SearchResult] = {}  # by a question's id
        self._of_text: dict[str, SearchResult] = {}  # of a ctxs file
        self._is_ctxs = is_ctxs(Path(path))
        if not self._is_ctxs:
            self.rankings = {question: SearchResult(hits) for question, hits in read_run(Path(path)).items()}
            self.question_ids = self.rankings.keys()
            return
        for question, ranking in read_ctxs(Path(path)):
            hits = [Hit(passage.id, score) for passage, score in ranking]
            result = SearchResult(hits, [passage for passage, _ in ranking])
            self.rankings.setdefault(question.id, result)
            self._of_text.setdefault(_normalise_text(question.text), result)

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The first k of each question's ranking; empty for a question that a TREC run leaves out.

        Raises:
            IfqaError: a TREC run has no ranking of the question's split, or a ctxs file has no entry for the question.
                (A ctxs file has an entry even for a question without a result.)
        """
        splits = {question_id.rpartition("/")[0] for question_id in self.rankings}
        results = []
        for question in questions:
            result = self.rankings.get(question.id, self._of_text.get(_normalise_text(question.text)))
            if result is None and self._is_ctxs:
                raise IfqaError(
                    f"{self.path} has no entry for {question.id}: wanted the question {question.text!r}, found "
                    f"{len(self._of_text):,} others, such as {next(iter(self._of_text), 'nothing')!r}"
                )
            if result is None and question.id.rpartition("/")[0] not in splits:
                example = next(iter(self.rankings), "nothing")
                raise IfqaError(f"{self.path} ranks other questions: wanted ids like {question.id}, found {example}")
            results.append(SearchResult([]) if result is None else result[:k])
        return results

    @classmethod
    def requirements(cls, *, path: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The file."""
        return [Requirement(path, "" if (root / path).exists() else "no such file; put it there or name another")]

    @classmethod
    def fingerprint(cls, path: str) -> str:
        """SHA-256 of the file."""
        refuse_pickle(require_file(Path(path), "run"))
        return sha256(Path(path))


def _normalise_text(question: str) -> str:
    return " ".join(question.replace("’", "'").split())
