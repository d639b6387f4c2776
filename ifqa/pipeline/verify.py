"""`ifqa check --verify`: hash every file of the artifacts and compare with their manifests."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ifqa.corpus.sources import files_of
from ifqa.errors import IfqaError
from ifqa.pipeline.run import CorpusBuild, Run
from ifqa.storage.artifacts import Artifact, damaged, strangers
from ifqa.storage.files import cached_sha256


def verify(of: Run | CorpusBuild) -> Iterator[tuple[str, dict[str, object]]]:
    """Hash every file of an experiment and its corpus, or of a corpus with its sources; a line and fields for each artifact.

    Raises:
        IfqaError: a file is missing, or not as it was written, or a source is not as it was read; after the lines on
            the others.
    """
    wrong: list[Path] = []
    errors: list[str] = []
    for artifact in _artifacts(of):
        folder = artifact.folder
        if (manifest := artifact.manifest) is None:
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
    build = of if isinstance(of, CorpusBuild) else of.corpus
    if build and (manifest := build.artifact("passages").manifest):
        corpus = build.corpus
        read = {str(facts[2]) for facts in manifest["record"].get("sources", {}).values()}
        paths = [path for source in build.sources for path in files_of(source)]
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


def _artifacts(of: Run | CorpusBuild) -> Iterator[Artifact]:
    build = of if isinstance(of, CorpusBuild) else of.corpus
    if build:
        yield from map(build.artifact, ("passages", *build.corpus.indexes))
    if isinstance(of, Run):
        yield from map(of.artifact, (*of.experiment.stages, "score"))
