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
from typing import Any

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
    Manifest,
    compute_fingerprint,
    hash_files,
    list_files,
    lock,
    read_manifest,
    report_full_disk,
)
from ifqa.storage.files import atomic_write, read_toml, sha256, write_bytes
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

    Raises IfqaError, and leaves nothing, if the corpus exists, the archive is of something else or
    hostile, its passages are of another version of ifqa, or a file's SHA-256 is not that of its
    manifest.
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
        try:
            text, lines = _unpack_verified(archive, name, draft)
            (draft / "indexes" / name).rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        # Last, so that a killed import leaves no corpus
        with atomic_write(file) as handle:
            write_bytes(handle, text)
    for line in lines:
        logger.info(line)
    return folder


def _unpack_verified(archive: Path, name: str, draft: Path) -> tuple[bytes, list[str]]:
    """Unpack an archive below the root `draft` and verify it.

    Returns the corpus's file, and a line about each part.
    """
    folder = draft / "indexes" / name
    unpack(archive, folder, "get it again")
    packed = folder / _CORPUS
    if not packed.is_file():
        raise FormatError(f"{archive} has no {_CORPUS}; wanted an archive of ifqa index --export")
    text = packed.read_bytes()
    packed.rename(draft / "indexes" / f"{name}.toml")
    content = read_toml(draft / "indexes" / f"{name}.toml")
    _refuse_other_sources(content, archive)
    corpus = load_corpus(name, draft)
    wanted = {PASSAGES.name, *corpus.indexes}
    found = {path.name for path in folder.iterdir()}
    if found != wanted:
        raise FormatError(
            f"{archive} has {', '.join(sorted(found))}; wanted {', '.join(sorted(wanted))}, "
            f"which its {_CORPUS} names; get it again"
        )
    for part in sorted(wanted):
        _refuse_damage(folder / part, archive)
    build = CorpusBuild(corpus)
    if not build.is_current(PASSAGES):
        raise IfqaError(
            f"{archive} has passages of another version of ifqa, which cannot be built again here; "
            "ask for an archive of this version"
        )
    return text, [_describe(build, Index(index)) for index in corpus.indexes]


def _refuse_other_sources(content: Mapping[str, Any], archive: Path) -> None:
    """Raise FormatError for a corpus's file that would read anything of this machine."""
    sources = content.get("passages", {}).get("sources", [])
    formats = [source.get("format") for source in sources]
    if formats != ["exported"]:
        raise FormatError(
            f"{archive}: its {_CORPUS} has the sources {formats}; wanted 'exported' alone; "
            "get it again"
        )


def _refuse_damage(part: Path, archive: Path) -> None:
    """Refuse a part whose files are not those of its manifest."""
    fault = DamagedArtifact(
        f"{archive} is damaged: {part.name} is not as its manifest says; get it again"
    )
    try:
        manifest = read_manifest(part)
    except IfqaError as error:
        raise fault from error
    files = hash_files(part)
    files.pop(MANIFEST, None)
    if manifest is None or files != manifest["record"]["files"]:
        raise fault


def _describe(build: CorpusBuild, stage: Stage[CorpusBuild]) -> str:
    """Whether an index is ready, or must be built again because the code is of another version."""
    if build.is_current(stage):
        return f"index {stage.name}: verified"
    return (
        f"index {stage.name}: verified, but of another version of ifqa or of a model that is not "
        f"here; build it: {stage.command(build)}"
    )


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
