"""`ifqa check --verify`: hash every file of the artifacts and compare with their manifests."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ifqa.config.corpus import Corpus, load_corpus
from ifqa.config.experiment import Experiment
from ifqa.corpus.sources import files_of
from ifqa.errors import IfqaError
from ifqa.pipeline.upstream import sources_of
from ifqa.storage.artifacts import damaged, read_manifest, strangers
from ifqa.storage.files import cached_sha256


def verify(of: Experiment | Corpus) -> Iterator[tuple[str, dict[str, object]]]:
    """Hash every file of an experiment and its corpus, or of a corpus with its sources; a line and fields for each artifact.

    Raises:
        IfqaError: a file is missing, or not as it was written, or a source is not as it was read; after the lines on
            the others.
    """
    wrong: list[Path] = []
    errors: list[str] = []
    for folder in _folders(of):
        if (manifest := read_manifest(folder)) is None:
            continue
        found = list(damaged(folder, manifest, thorough=True))
        wrong += [folder / name for name in found]
        count = len(manifest["record"]["files"])
        others = strangers(folder)
        besides = f"; in no manifest, and not read: {', '.join(others[:5])}" + (" …" if len(others) > 5 else "")
        line = f"  {folder}: {len(found) or 'none'} of {count:,} files damaged{besides if others else ''}"
        yield line, {"what": str(folder), "files": count, "damaged": found, "strangers": others}
    if wrong:
        errors.append(f"not as they were written: {_few(wrong)}; remove their folders, and run the same command again")
    corpus = of if isinstance(of, Corpus) else load_corpus(of.corpus, of.root) if of.corpus else None
    manifest = read_manifest(corpus.folder / "passages") if corpus else None
    if corpus and manifest:
        read = {str(facts[2]) for facts in manifest["record"].get("sources", {}).values()}
        paths = [path for source in sources_of(corpus) for path in files_of(source)]
        changed = [path for path in paths if cached_sha256(path) not in read]
        what = f"sources of {corpus.folder / 'passages'}"
        line = f"  {what}: {len(changed) or 'none'} of {len(paths):,} files changed"
        yield line, {"what": what, "files": len(paths), "changed": [str(path) for path in changed]}
        if changed:
            errors.append(
                f"not as they were when the passages were built: {_few(changed)}; bring back the files of then, or "
                f"touch these and build the passages again: ifqa passages {corpus.name}"
            )
    if errors:
        raise IfqaError("; ".join(errors))


def _few(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths[:5])) + (" …" if len(paths) > 5 else "")


def _folders(of: Experiment | Corpus) -> Iterator[Path]:
    if isinstance(of, Corpus):
        yield from (of.folder / name for name in ("passages", *of.indexes))
        return
    if of.corpus:
        corpus = load_corpus(of.corpus, of.root)
        yield from (corpus.folder / name for name in ("passages", *of.indexes))
    yield from (of.folder / stage for stage in (*of.stages, "score"))
