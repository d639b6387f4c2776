"""`ifqa check --verify`: hash every file of the artifacts and compare with their manifests."""

from collections.abc import Iterator
from pathlib import Path

from ifqa.config.corpus import Corpus, load_corpus
from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError
from ifqa.storage.artifacts import damaged, read_manifest, strangers


def verify(of: Experiment | Corpus) -> Iterator[str]:
    """Hash every file of an experiment and its corpus, or of a corpus; yields a line for each artifact that is there.

    Raises:
        IfqaError: a file is missing or not as it was written; raised after all lines.
    """
    wrong: list[Path] = []
    for folder in _folders(of):
        if (manifest := read_manifest(folder)) is None:
            continue
        found = list(damaged(folder, manifest, thorough=True))
        wrong += [folder / name for name in found]
        count = len(manifest["record"]["files"])
        others = strangers(folder)
        besides = f"; in no manifest, and not read: {', '.join(others[:5])}" + (" …" if len(others) > 5 else "")
        yield f"  {folder}: {len(found) or 'none'} of {count:,} files damaged{besides if others else ''}"
    if wrong:
        names = ", ".join(map(str, wrong[:5])) + (" …" if len(wrong) > 5 else "")
        raise IfqaError(f"not as they were written: {names}; remove their folders, and run the same command again")


def _folders(of: Experiment | Corpus) -> Iterator[Path]:
    if isinstance(of, Corpus):
        yield from (of.folder / name for name in ("passages", *of.indexes))
        return
    if of.corpus:
        corpus = load_corpus(of.corpus, of.root)
        yield from (corpus.folder / name for name in ("passages", *of.indexes))
    yield from (of.folder / stage for stage in (*of.stages, "score"))
