"""What an experiment searches: a corpus, or a user's folder, and how much of it."""

from dataclasses import dataclass
from pathlib import Path

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment
from ifqa.progress import counted
from ifqa.storage.artifacts import read_manifest


@dataclass(frozen=True, slots=True)
class Searched:
    """What was searched.

    Attributes:
        corpus: its name; empty if the experiment retrieves nothing.
        passages: how many it has.
        folders: the folders of documents that it was made from.
        files: the files among them that were read; 0 for another corpus.
        left_out: the files and folders that were not read.
    """

    corpus: str
    passages: int = 0
    folders: tuple[str, ...] = ()
    files: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        if not self.corpus:
            return "nothing: the experiment retrieves no passages"
        if not self.folders:
            return f"{counted(self.passages, 'passage')} of the corpus {self.corpus}"
        left = f"; {counted(self.left_out, 'file')} left out" if self.left_out else ""
        read = f"{counted(self.files, 'file')}, {counted(self.passages, 'passage')}"
        return f"{read} in {', '.join(self.folders)}{left} (corpus {self.corpus})"


def searched_by(experiment: Experiment) -> Searched:
    """What an experiment searches; its corpus must be built."""
    if not (experiment.retriever and experiment.corpus):
        return Searched("")
    corpus = load_corpus(experiment.corpus, experiment.root)
    manifest = read_manifest(corpus.folder / "passages")
    record = dict(manifest["record"]) if manifest else {}
    counts = [found if isinstance(found := record.get(key), int) else 0 for key in ("passages", "pages", "bad")]
    folders = [source["path"] for source in corpus.sources if source["format"] == "documents"]
    if not folders:
        return Searched(experiment.corpus, counts[0])
    return Searched(experiment.corpus, counts[0], tuple(str(Path(one)) for one in folders), *counts[1:])
