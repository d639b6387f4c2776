"""Artifacts: folders that are written completely or not at all, with a manifest of inputs and files.

An artifact is built in a temporary folder beside its target, `.NAME.partial`. `manifest.json` is written last, so a folder
with a manifest is complete; then the folder is renamed. The manifest has two halves. `inputs` (stage, settings, fingerprints of
the inputs, version of the plugin) alone decides whether the artifact is reused. `record` (time, duration, libraries, SHA-256 of
every file) documents the build.
"""

import errno
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NotRequired

from filelock import FileLock, Timeout
from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads typing's own from Python 3.12 on

from ifqa.errors import DamagedArtifact, IfqaError, MissingInput
from ifqa.records import StageUsage
from ifqa.settings import Natural, NotNegative, check_shape
from ifqa.storage.files import cached_sha256, read_json, sha256, write_json
from ifqa.storage.resources import describe_environment

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
INPUTS = "inputs.json"  # in the temporary folder: the inputs of the build
LOG = "chunks.jsonl"  # in the temporary folder: the finished chunks (`ifqa.storage.append_log`)
DRAFT_FILES = (INPUTS, LOG)
_SMALL = 64_000_000  # bytes
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_STAGE_KEYS = {"passages": ("passages", "sources"), "index": ("passages",)}  # stage -> required keys of `record`


class _File(TypedDict):
    bytes: Natural
    sha256: str


class StageRecord(StageUsage):
    """The `record` of a manifest; a stage writes the optional keys that apply to it."""

    files: Annotated[dict[str, _File], Field(min_length=1)]
    at: str  # ISO time
    seconds: NotNegative
    ifqa: str
    commit: str
    libraries: dict[str, str]
    python: str
    hardware: str
    passages: NotRequired[Natural]
    #: path -> bytes, time of change (ns), SHA-256
    sources: NotRequired[dict[str, Annotated[list[int | str], Field(min_length=3, max_length=3)]]]
    questions: NotRequired[Natural]
    hits: NotRequired[Natural]
    made: NotRequired[dict[str, Natural]]  # questions by rule, before and after the reader's check
    kept: NotRequired[dict[str, Natural]]
    label: NotRequired[str]
    trained_on_them: NotRequired[bool]


class Manifest(TypedDict):
    """The content of `manifest.json`."""

    inputs: dict[str, object]
    record: StageRecord


@dataclass
class Draft:
    """A folder to fill, and both halves of its manifest. `inputs` may be updated while the inputs are read."""

    folder: Path
    inputs: dict[str, object]
    record: dict[str, Any] = field(default_factory=dict)


def compute_fingerprint(inputs: Mapping[str, object]) -> str:
    """Hex SHA-256 of an artifact's inputs; artifacts built from it refer to it by this hash."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a finished artifact, or None if the folder has no manifest.

    Raises:
        IfqaError: the file is not a manifest of this version.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    mend = f"remove the folder {folder} to build it again"
    try:
        content = read_json(path)
    except IfqaError as error:
        raise DamagedArtifact(f"{error}; {mend}") from error
    manifest = check_shape(Manifest, content, str(path), mend)
    record = manifest["record"]
    missing = [key for key in _STAGE_KEYS.get(str(manifest["inputs"].get("stage")), ()) if key not in record]
    outside = [name for name in record["files"] if PurePath(name).is_absolute() or ".." in PurePath(name).parts]
    if missing or outside:
        fault = f"record.{missing[0]}: missing" if missing else f"record.files.{outside[0]}: outside the folder"
        raise DamagedArtifact(f"{path}: not as ifqa writes it ({fault}); {mend}")
    return manifest


class Artifact:
    """The folder of an artifact. Its manifest is read once and its files are checked once, until it is built again.

    Attributes:
        folder: where the artifact is.
        copied: whether `make` copied it from another folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.copied = False

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest; None if the artifact is not complete. Raises as `read_manifest`."""
        return read_manifest(self.folder)

    @cached_property
    def damage(self) -> str:
        """The name of a missing or damaged file; empty if there is none (see `damaged_files`)."""
        return next(damaged_files(self.folder, self.manifest), "") if self.manifest else ""

    def reread(self) -> None:
        """Forget the manifest and the check of the files, so that both are read again."""
        vars(self).pop("manifest", None)
        vars(self).pop("damage", None)

    def is_current_for(self, inputs: Mapping[str, object]) -> bool:
        """Whether the artifact was built from exactly these inputs and has no damaged file.

        False if its `record` has "retry": a language model left questions unanswered, so the next run builds it again.
        """
        if self.manifest is None or self.manifest["record"].get("retry"):
            return False
        return compute_fingerprint(self.manifest["inputs"]) == compute_fingerprint(inputs) and not self.damage

    def require(self, command: str, inputs: Mapping[str, object] | None = None) -> Manifest:
        """The manifest of an artifact that another stage needs; `inputs`, if not None, are those it must be built from.

        Raises:
            IfqaError: it is missing, damaged, or built from other inputs; the message names the `command` that builds it.
        """
        if self.manifest is None:
            raise MissingInput(f"{self.folder} is not there yet; make it with: {command}")
        if self.damage:
            raise DamagedArtifact(
                f"{self.folder} is damaged: {self.damage} is missing or was changed; make it again: {command}"
            )
        earlier = self.manifest["inputs"]
        if inputs is not None and compute_fingerprint(earlier) != compute_fingerprint(inputs):
            changed = sorted(key for key in earlier.keys() | inputs.keys() if earlier.get(key) != inputs.get(key))
            raise IfqaError(
                f"{self.folder} was made from other inputs (changed: {', '.join(changed)}); make it again: {command}"
            )
        return self.manifest

    @contextmanager
    def make(
        self,
        inputs_of: Callable[[], dict[str, object]],
        again: Callable[[], dict[str, object]] | None = None,
        others: Iterable[Path] = (),
        resume: Literal["", "same", "any"] = "",
    ) -> Iterator[Draft | None]:
        """Build the artifact, all or nothing; yields None if it is current already.

        An existing artifact is replaced once the new one is complete. A failure removes a draft without results.

        Args:
            inputs_of: computes the artifact's inputs.
            again: computes them once more at the end, to detect that an input changed during the build.
            others: folders of the same artifact elsewhere; the first with the same inputs is copied.
            resume: whether to keep the files of an interrupted build. "same": if its inputs were the same; "any": always, if the
                caller can tell which parts are reusable; "": never.

        Raises:
            IfqaError: the disk is full, another process works in the folder, an input changed during the build, the folder is a
                link, or it holds a file that no manifest lists.
        """
        folder = self.folder
        with lock(folder.parent), report_full_disk(folder):
            refuse_links(folder, folder)
            inputs = inputs_of()
            if self.is_current_for(inputs):
                logger.info(f"{folder}: up to date")
                yield None
                return
            _refuse_unlisted(folder)
            if self.copy(inputs, others):
                yield None
                return
            if Artifact(partial_folder(folder)).is_current_for(inputs):  # killed after the manifest, before the rename
                publish_draft(folder)
                self.reread()
                yield None
                return
            if (
                self.damage
                and self.manifest
                and compute_fingerprint(self.manifest["inputs"]) == compute_fingerprint(inputs)
            ):
                logger.info(f"{folder}: {self.damage} is missing or was changed; building the artifact again")
            started = time.monotonic()
            draft = Draft(prepare_draft(folder, inputs, resume), inputs)
            (draft.folder / MANIFEST).unlink(missing_ok=True)
            with ExitStack() as failure:
                failure.callback(_discard_empty, draft.folder)
                yield draft
                if compute_fingerprint((again or inputs_of)()) != compute_fingerprint(inputs):
                    raise IfqaError(f"an input of {folder} changed while it was being made; run the same command again")
                failure.pop_all()
            record = {
                "files": _hash_files(draft.folder),
                **describe_environment(time.monotonic() - started),
                **draft.record,
            }
            write_json(draft.folder / MANIFEST, {"inputs": draft.inputs, "record": record})
            _refuse_unlisted(folder)  # the user may have put a file there meanwhile
            publish_draft(folder)
            self.reread()

    def copy(self, inputs: Mapping[str, object], others: Iterable[Path]) -> bool:
        """Copy the artifact from the first other folder that has it with the same inputs; returns whether there is one.

        The other folders are not locked, because a process may work there for hours; the copy is verified. A folder with an
        unreadable manifest is skipped.
        """
        for other in others:
            try:
                if not Artifact(other).is_current_for(inputs):
                    continue
            except IfqaError as error:
                logger.info(f"{self.folder}: not copied from {other.parent.name}: {error}")
                continue
            with lock(self.folder.parent):
                refuse_links(self.folder)
                if _copy(other, partial_folder(self.folder), inputs):
                    publish_draft(self.folder)
                    self.reread()
                    self.copied = True
                    logger.info(f"{self.folder}: copied from {other.parent.name}")
                    return True
        return False


@contextmanager
def lock(folder: Path, wait: bool = False) -> Iterator[None]:
    """Lock the folder of a corpus or an experiment against other processes; the lock ends with its process.

    On a read-only file system nothing is locked: existing artifacts can be read, and none can be built.

    Args:
        folder: the folder of the lock file; created if missing.
        wait: wait for another process that holds the lock; after a second this is logged.

    Raises:
        IfqaError: another process holds the lock, and `wait` is not set.
    """
    guard = FileLock(folder / ".lock", timeout=0, is_singleton=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        guard.acquire(timeout=1 if wait else 0)
    except Timeout as error:
        if not wait:
            raise IfqaError(f"another process is working in {folder}; wait until it ends, or stop it") from error
        logger.info(f"another process is working in {folder}; waiting until it ends")
        guard.acquire(timeout=-1)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    try:
        yield
    finally:
        guard.release()


def partial_folder(folder: Path) -> Path:
    """The temporary folder that becomes `folder`."""
    return folder.with_name(f".{folder.name}.partial")


def _old_folder(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def refuse_links(folder: Path, *paths: Path) -> None:
    """Check that neither the temporary folders nor `paths` are links: a write or a removal would reach the link's target.

    Raises:
        IfqaError: a path is a link.
    """
    if link := next(
        (path for path in (partial_folder(folder), _old_folder(folder), *paths) if path.is_symlink()), None
    ):
        raise IfqaError(f"{link} is a link, and its target is not part of {folder}; remove the link")


def prepare_draft(folder: Path, inputs: dict[str, object], resume: str) -> Path:
    """Prepare the temporary folder: it holds `INPUTS` alone, or also the files of an interrupted build that `resume` keeps.

    When the folder is emptied, links are removed and not followed; a killed BM25 build leaves some.

    Raises:
        IfqaError: the files of an interrupted build are kept, and there is a link among them.
    """
    draft = partial_folder(folder)
    inputs_path = draft / INPUTS
    text = json.dumps(inputs, indent=2, ensure_ascii=False).encode()
    if resume == "any" or (resume == "same" and inputs_path.exists() and inputs_path.read_bytes().strip() == text):
        refuse_links(folder, *draft.rglob("*"))
        for temporary in draft.glob(".*.tmp"):
            temporary.unlink()
    else:
        shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, exist_ok=True)
    write_json(inputs_path, inputs)
    return draft


def _discard_empty(draft: Path) -> None:
    """Remove the temporary folder if it holds no result: only `INPUTS` and empty files."""
    if draft.is_dir() and not any(
        path.is_dir() or path.is_symlink() or (path.name != INPUTS and path.stat().st_size) for path in draft.iterdir()
    ):
        shutil.rmtree(draft)


def publish_draft(folder: Path) -> None:
    """Replace the old folder by the new one; a kill in between leaves the old, the new or neither, never a mixture."""
    old = _old_folder(folder)
    for name in DRAFT_FILES:
        (partial_folder(folder) / name).unlink(missing_ok=True)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.rename(folder, old)
    os.rename(partial_folder(folder), folder)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def report_full_disk(folder: Path) -> Iterator[None]:
    """Turn a disk-full error into one line that names the folder and the free bytes.

    Raises:
        IfqaError: the disk, or the quota, is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        free = shutil.disk_usage(folder.parent).free
        raise IfqaError(
            f"no room on the disk to write {folder} ({os.strerror(error.errno)}; {free:,} bytes free): "
            "make room and run the same command again; finished files are unchanged"
        ) from error


def _copy(artifact: Path, to: Path, inputs: Mapping[str, object]) -> bool:
    """Copy an artifact's listed files; returns False if the artifact was replaced during the copy."""
    shutil.rmtree(to, ignore_errors=True)
    try:
        for path in (*list_files(artifact), artifact / MANIFEST):
            target = to / path.relative_to(artifact)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    except FileNotFoundError:
        return False
    manifest = read_manifest(to)
    if manifest is None or compute_fingerprint(manifest["inputs"]) != compute_fingerprint(inputs):
        return False
    return {name: facts for name, facts in _hash_files(to).items() if name != MANIFEST} == manifest["record"]["files"]


def list_files(folder: Path) -> list[Path]:
    """The files of an artifact that its manifest lists and that exist; without a manifest, all files of the folder.

    Files that the user put there are not read as part of the artifact.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for name in manifest["record"]["files"] if (path := folder / name).is_file()]


def unlisted_files(folder: Path) -> list[str]:
    """Names of the files in an artifact's folder that its manifest does not list, except hidden ones (`.DS_Store`)."""
    listed = {folder / MANIFEST, *list_files(folder)} if (folder / MANIFEST).exists() else set()
    others = (path for path in sorted(folder.rglob("*")) if path not in listed and not path.is_dir())
    names = (path.relative_to(folder) for path in others)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def _refuse_unlisted(folder: Path) -> None:
    """Check that replacing a folder loses no files of the user."""
    if names := unlisted_files(folder):
        raise IfqaError(
            f"{folder / names[0]} was not written by ifqa, and would be removed when {folder} is made again; "
            "move it elsewhere, or remove it"
        )


def damaged_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Names of an artifact's files that are missing, or whose size or SHA-256 differs from the manifest's.

    Files are hashed only in artifacts of up to 64 MB: larger ones take longer to hash than to use. A process hashes an unchanged
    file once.
    """
    files = manifest["record"]["files"]
    is_small = sum(facts["bytes"] for facts in files.values()) <= _SMALL
    for name, facts in files.items():
        path = folder / name
        has_size = path.is_file() and path.stat().st_size == facts["bytes"]
        if not has_size or (is_small and cached_sha256(path) != facts["sha256"]):
            yield name


def _hash_files(folder: Path) -> dict[str, _File]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in DRAFT_FILES]
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    }
