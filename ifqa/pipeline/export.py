"""`ifqa index --export` and `--from`: a corpus's passages and indexes as one archive.

The archive has the corpus's file, whose only source is "exported", and its artifacts, each with a
manifest of its files' SHA-256. It says nothing of where the sources were.
"""

import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import tomli_w

from ifqa.config.corpus import CorpusConfig, load_corpus
from ifqa.corpus.sources import parse_source, user_folders
from ifqa.errors import ConfigError, DamagedArtifact, FormatError, IfqaError
from ifqa.formatting import pluralize
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.pipeline.index import Index
from ifqa.pipeline.passages import PASSAGES
from ifqa.pipeline.stage import Stage
from ifqa.storage.archives import pack, unpack
from ifqa.storage.artifacts import (
    MANIFEST,
    Artifact,
    Manifest,
    compute_fingerprint,
    hash_files,
    list_files,
    lock,
    read_manifest,
    report_full_disk,
)
from ifqa.storage.files import atomic_write, sha256, write_bytes
from ifqa.storage.resources import check_name

logger = logging.getLogger(__name__)

_CORPUS = "corpus.toml"  # its name in the archive


def export_corpus(corpus: CorpusConfig, names: Sequence[str], target: Path) -> Path:
    """Pack a corpus's passages and the indexes `names` into a new file.

    Raises IfqaError like `refuse_export`, and if a part is not built or damaged.
    """
    refuse_export(corpus, target)
    build = CorpusBuild(corpus)
    with lock(corpus.folder), report_full_disk(target):
        passages = build.finished(PASSAGES)
        section: dict[str, object] = {"format": "exported", "built_from": build.identity(PASSAGES)}
        moved = replace(corpus, sources=(parse_source(section, str(target), corpus.plugins),))
        stages = [Index(name) for name in names]
        manifests = {PASSAGES.name: _moved_passages(moved, passages)}
        identity = compute_fingerprint(manifests[PASSAGES.name]["inputs"])
        for stage in stages:
            manifest = build.finished(stage)
            inputs = manifest["inputs"] | {"passages": identity}
            manifests[stage.name] = Manifest(inputs=inputs, record=manifest["record"])
        text = _corpus_file(corpus, section, names)
        with atomic_write(target) as handle:
            pack(handle, _members(build, text, manifests))
    size = target.stat().st_size
    logger.info(f"{target}: {pluralize(passages['record']['passages'], 'passage')}, {size:,} bytes")
    logger.info(f"SHA-256 {sha256(target)}; unpack it with: ifqa index NAME --from {target.name}")
    return target


def refuse_export(corpus: CorpusConfig, target: Path) -> None:
    """Raise IfqaError if the file exists, or the passages are a user's own documents.

    The places of answers in these would lead nowhere.
    """
    if folders := user_folders(corpus.sources):
        raise ConfigError(
            f"--export: corpus {corpus.name} searches the documents of {', '.join(folders)}, which "
            "an archive of passages lacks; hand over the folder itself"
        )
    if target.exists():
        raise IfqaError(f"--export: {target} exists; remove it, or name another file")


def import_corpus(archive: Path, name: str, root: Path = Path()) -> Path:
    """Unpack an archive of `export_corpus` as the new corpus `name`; returns its folder.

    Raises IfqaError if the corpus exists, the archive is of something else or hostile, or a file's
    SHA-256 is not that of its manifest.
    """
    file = root / "indexes" / f"{check_name(name, 'corpus')}.toml"
    folder = file.with_suffix("")
    if not archive.is_file():
        raise FormatError(f"--from: {archive} is not a file; wanted one of ifqa index --export")
    draft = folder.with_name(f".{name}.partial")
    with lock(file.parent), report_full_disk(folder):
        for path in (file, folder):
            if path.exists():
                raise IfqaError(f"--from: {path} exists; remove it, or name another corpus")
        shutil.rmtree(draft, ignore_errors=True)
        unpack(archive, draft)
        _verify(draft, archive)
        text = (draft / _CORPUS).read_bytes()
        (draft / _CORPUS).unlink()
        draft.rename(folder)
        # Last, so that a killed import leaves no corpus
        with atomic_write(file) as handle:
            write_bytes(handle, text)
    corpus = load_corpus(name, root)
    build = CorpusBuild(corpus)
    for stage in (PASSAGES, *map(Index, corpus.indexes)):
        _report(build, stage)
    return folder


def _moved_passages(corpus: CorpusConfig, manifest: Manifest) -> Manifest:
    """The manifest of passages as those of the exported corpus."""
    record = manifest["record"] | {"sources": {}}  # not where the files were
    return Manifest(inputs=PASSAGES.inputs(CorpusBuild(corpus)), record=record)


def _corpus_file(corpus: CorpusConfig, section: Mapping[str, object], names: Sequence[str]) -> str:
    content: dict[str, object] = {}
    if corpus.about:
        content["about"] = corpus.about
    if corpus.language:
        content["language"] = corpus.language
    content["passages"] = {"sources": [section]}
    content["index"] = {name: corpus.indexes[name].given_section for name in names}
    return tomli_w.dumps(content)


def _members(
    build: CorpusBuild, text: str, manifests: dict[str, Manifest]
) -> Iterator[tuple[str, Path | bytes]]:
    """The archive's files; each artifact's manifest is the last of them."""
    yield _CORPUS, text.encode()
    for name, manifest in manifests.items():
        folder = build.folder / name
        for path in list_files(folder):
            yield f"{name}/{path.relative_to(folder).as_posix()}", path
        yield f"{name}/{MANIFEST}", json.dumps(manifest, indent=1).encode()


def _verify(folder: Path, archive: Path) -> None:
    """Refuse an unpacked archive that is not as `export_corpus` writes it."""
    if not (folder / _CORPUS).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        raise FormatError(f"{archive} has no {_CORPUS}; wanted an archive of ifqa index --export")
    for part in sorted(path for path in folder.iterdir() if path.is_dir()):
        manifest = read_manifest(part)
        files = hash_files(part)
        files.pop(MANIFEST, None)
        if manifest is None or files != manifest["record"]["files"]:
            shutil.rmtree(folder, ignore_errors=True)
            raise DamagedArtifact(
                f"{archive} is damaged: {part.name} is not as its manifest says; get it again"
            )


def _report(build: CorpusBuild, stage: Stage[CorpusBuild]) -> None:
    """Say that a part is there, or must be built again because the code is of another version."""
    artifact: Artifact = build.artifact(stage.name)
    if build.is_current(stage):
        logger.info(f"{artifact.folder}: verified")
    else:
        logger.warning(
            f"{artifact.folder}: verified, but of another version of ifqa or of a model that is "
            f"not here; build it: {stage.command(build)}"
        )
