"""Rankings from another system: a TREC run, or a ctxs JSON file (DPR, FiD), which also holds the
passages.
"""

from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import FormatError
from ifqa.formats.ctxs import is_ctxs, read_ctxs, refuse_pickle
from ifqa.formats.runs import read_run
from ifqa.protocols import PathSetting, Requirement, Retriever
from ifqa.records import Hit, Question, SearchResult
from ifqa.settings import PluginSettings
from ifqa.storage.files import require_file, sha256


class RunFile(Retriever):
    """Returns the rankings of a file, compressed or not.

    A TREC run has ifqa's question ids ("ifqa/full-dev/17") and the corpus's passage ids. A ctxs
    file also brings the passages. Its entries are matched to questions by id, or else by text,
    ignoring differences in white space and apostrophes (DPR writes "'" for "’"). Of several entries
    with the same text, the first is used.
    """

    version = 1
    takes_any_text = False

    class Settings(PluginSettings):
        path: PathSetting
        """The file of rankings."""

    def __init__(self, settings: Settings) -> None:
        """Read the rankings.

        Raises IfqaError if the file is missing or a pickle, or a line or an entry is malformed.
        """
        path = settings.path
        self.path = path
        refuse_pickle(Path(path))
        self.rankings: dict[str, SearchResult] = {}  # by question id
        self._by_text: dict[str, SearchResult] = {}  # by normalised text, for a ctxs file
        self._is_ctxs = is_ctxs(Path(path))
        if not self._is_ctxs:
            self.rankings = {
                question_id: SearchResult(hits)
                for question_id, hits in read_run(Path(path)).items()
            }
            self.question_ids = self.rankings.keys()
            return
        for question, scored in read_ctxs(Path(path)):
            hits = [Hit(passage.id, score) for passage, score in scored]
            ranking = SearchResult(hits, [passage for passage, _ in scored])
            self.rankings.setdefault(question.id, ranking)
            self._by_text.setdefault(_normalise_text(question.text), ranking)

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The first k hits of each question; none for a question that a TREC run leaves out.

        Raises FormatError if a TREC run has no ranking for the question's split, or a ctxs file has
        no entry for the question (a question without hits has an entry too).
        """
        splits = {question_id.rpartition("/")[0] for question_id in self.rankings}
        rankings = []
        for question in questions:
            ranking = self.rankings.get(
                question.id, self._by_text.get(_normalise_text(question.text))
            )
            if ranking is None and self._is_ctxs:
                others = (
                    f"{len(self._by_text):,} others, such as "
                    f"{next(iter(self._by_text), 'nothing')!r}"
                )
                raise FormatError(
                    f"{self.path} has no entry for {question.id}, {question.text!r}; found {others}"
                )
            if ranking is None and question.id.rpartition("/")[0] not in splits:
                example = next(iter(self.rankings), "nothing")
                raise FormatError(
                    f"{self.path} ranks other questions: wanted ids like "
                    f"{question.id}, found {example}"
                )
            rankings.append(SearchResult([]) if ranking is None else ranking[:k])
        return rankings

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        """The file."""
        remedy = "" if Path(settings.path).exists() else "no such file; set another path"
        return [Requirement(settings.path, remedy)]

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """SHA-256 of the file."""
        path = require_file(Path(settings.path), "run")
        refuse_pickle(path)
        return sha256(path)


def _normalise_text(question: str) -> str:
    return " ".join(question.replace("’", "'").split())
