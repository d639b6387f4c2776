"""What an opened system searches: the corpus, its folders and their files."""

from collections.abc import Mapping
from dataclasses import dataclass

from ifqa.corpus.documents.indexed_file import IndexedFile, indexed_files
from ifqa.corpus.sources import user_folders
from ifqa.formatting import pluralize
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.run import Run


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """The searched corpus: its number of passages, its folders of documents, and the numbers of
    files read and left out.
    """

    corpus: str  # empty if the experiment retrieves nothing
    passages: int = 0
    folders: tuple[str, ...] = ()
    files: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        if not self.corpus:
            return "nothing: the experiment retrieves no passages"
        if not self.folders:
            return f"{pluralize(self.passages, 'passage')} of the corpus {self.corpus}"
        left = f"; {pluralize(self.left_out, 'file')} left out" if self.left_out else ""
        read = f"{pluralize(self.files, 'file')}, {pluralize(self.passages, 'passage')}"
        return f"{read} in {', '.join(self.folders)}{left} (corpus {self.corpus})"


def summarize_corpus(run: Run) -> CorpusSummary:
    """The corpus that an experiment searches."""
    build = run.corpus
    if not (run.experiment.retriever and build):
        return CorpusSummary("")
    manifest = build.artifact(PASSAGES.name).manifest
    record = dict(manifest["record"]) if manifest else {}
    passages = _count(record, "passages")
    folders = user_folders(build.corpus.sources)
    if not folders:
        return CorpusSummary(build.corpus.name, passages)
    read = _count(record, "pages")
    return CorpusSummary(build.corpus.name, passages, folders, read, _count(record, "bad"))


def _count(record: Mapping[str, object], key: str) -> int:
    count = record.get(key)
    return count if isinstance(count, int) else 0


def searched_documents(run: Run) -> Mapping[str, IndexedFile]:
    """The files of the searched folder of documents, by their names as in the ids of their
    passages.
    """
    build = run.corpus
    if build is None or not summarize_corpus(run).folders:
        return {}
    return indexed_files(build.sources, build.built_files)
