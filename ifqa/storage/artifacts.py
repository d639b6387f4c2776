"""Artifacts: folders that are written completely or not at all, with a manifest of inputs and
files.

An artifact is built in a temporary folder beside its target, `.NAME.partial`. `manifest.json` is
written last, so a folder with a manifest is complete; then the folder is renamed. The manifest's
`inputs` (stage, settings, fingerprints of the inputs, version of the plugin) alone decide reuse.
Its `record` (time, duration, libraries, SHA-256 of every file) documents the build.
"""

import errno
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NotRequired

from filelock import FileLock, Timeout
from pydantic import Field
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict only from Python 3.12

from ifqa.errors import DamagedArtifact, IfqaError, MissingInput
from ifqa.formatting import pluralize
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
# Stage -> required keys of `record`
_STAGE_KEYS = {"passages": ("passages", "sources"), "index": ("passages",)}


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
    failed: NotRequired[Natural]  # questions without an answer or an abstention
    hits: NotRequired[Natural]
    label: NotRequired[str]
    trained_on_them: NotRequired[bool]
    calibrated_on_them: NotRequired[bool]


class Manifest(TypedDict):
    """The content of `manifest.json`."""

    inputs: dict[str, object]
    record: StageRecord


@dataclass
class Draft:
    """A folder to fill, and both halves of its manifest.

    The build may update `inputs` with what it read.
    """

    folder: Path
    inputs: dict[str, object]
    record: dict[str, Any] = field(default_factory=dict)


def compute_fingerprint(inputs: Mapping[str, object]) -> str:
    """Hex SHA-256 of an artifact's inputs, by which later artifacts refer to it."""
    return hashlib.sha256(
        json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()


def _has_inputs(manifest: Manifest, inputs: Mapping[str, object]) -> bool:
    return compute_fingerprint(manifest["inputs"]) == compute_fingerprint(inputs)


def warn_of_failures(folder: Path, counts: Mapping[str, object]) -> None:
    """Say how many questions failed, by a stage's record or its scores, before they are compared
    with others.
    """
    remedies = {"retry": "a new run asks again", "stored_failures": "--retry-failed asks again"}
    for key, remedy in remedies.items():
        count = counts.get(key)
        if isinstance(count, int) and count:
            logger.warning(
                f"{folder}: {pluralize(count, 'question')} failed, which counts as wrong; {remedy}"
            )


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a finished artifact; None if there is none.

    Raises IfqaError if the file is not a valid manifest.
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
    missing = [
        key
        for key in _STAGE_KEYS.get(str(manifest["inputs"].get("stage")), ())
        if key not in record
    ]
    outside = [
        name
        for name in record["files"]
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts
    ]
    if missing or outside:
        fault = (
            f"record.{missing[0]}: missing"
            if missing
            else f"record.files.{outside[0]}: outside the folder"
        )
        raise DamagedArtifact(f"{path}: not as ifqa writes it ({fault}); {mend}")
    return manifest


class Artifact:
    """An artifact in a folder.

    Its manifest is read once and its files are checked once, until it is built again.

    `incomplete` are the counts of its `record` that show that a part is missing, so that the next
    run builds it again.
    """

    def __init__(self, folder: Path, incomplete: Sequence[str] = ("retry",)) -> None:
        self.folder = folder
        self._incomplete = incomplete
        self.copied = False  # whether `make` copied it from another folder

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest; None if the artifact is not complete. Raises like `read_manifest`."""
        return read_manifest(self.folder)

    @cached_property
    def damage(self) -> str:
        """The name of a missing or changed file (see `damaged_files`); empty if there is none."""
        return next(damaged_files(self.folder, self.manifest), "") if self.manifest else ""

    def reread(self) -> None:
        """Forget the manifest and the check of the files."""
        vars(self).pop("manifest", None)
        vars(self).pop("damage", None)

    def is_current_for(self, inputs: Mapping[str, object]) -> bool:
        """Whether the artifact is undamaged and was built from exactly these inputs.

        False if it is incomplete: a language model left questions unanswered.
        """
        if self.manifest is None or any(
            self.manifest["record"].get(key) for key in self._incomplete
        ):
            return False
        return _has_inputs(self.manifest, inputs) and not self.damage

    def require(self, command: str, inputs: Mapping[str, object] | None = None) -> Manifest:
        """The manifest of an artifact that another stage needs.

        Raises IfqaError if it is missing, damaged, or not built from `inputs`; the message names
        the `command` that builds it.
        """
        folder = self.folder
        again = f"make it again: {command}"
        if self.manifest is None:
            raise MissingInput(
                f"{folder} is not there yet; make it with: {command}",
                wanted=str(folder),
                mend=command,
            )
        if self.damage:
            raise DamagedArtifact(
                f"{folder} is damaged: {self.damage} is missing or was changed; {again}",
                found=f"{self.damage} is missing or was changed",
                mend=command,
            )
        if inputs is not None and not _has_inputs(self.manifest, inputs):
            old = self.manifest["inputs"]
            changed = sorted(
                key for key in old.keys() | inputs.keys() if old.get(key) != inputs.get(key)
            )
            raise IfqaError(
                f"{folder} was made from other inputs (changed: {', '.join(changed)}); {again}",
                found=f"changed: {', '.join(changed)}",
                mend=command,
            )
        return self.manifest

    @contextmanager
    def make(
        self,
        inputs_of: Callable[[], dict[str, object]],
        again: Callable[[Path], dict[str, object]] | None = None,
        others: Iterable[Path] = (),
        resume: Literal["", "same", "any"] = "",
    ) -> Iterator[Draft | None]:
        """Build the artifact, all or nothing; yields None if it is current already or was copied.

        An existing artifact is replaced once the new one is complete. After a failure, a draft
        without results is removed. Raises IfqaError if the disk is full, another process works in
        the folder, an input changed during the build, the folder is a link, or it holds a file that
        no manifest lists.

        Args:
            inputs_of: computes the artifact's inputs.
            again: computes them at the end from the folder that was filled, to detect that an input
                changed during the build; by default `inputs_of`.
            others: folders of the same artifact elsewhere; the first with the same inputs is
                copied.
            resume: when to keep the files of an interrupted build. "same": if it had the same
                inputs; "any": always, for a caller that can tell which parts are reusable; "":
                never.
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
            complete = Artifact(partial_folder(folder), self._incomplete)
            if complete.is_current_for(inputs):  # killed after the manifest, before the rename
                self._publish()
                yield None
                return
            if self.manifest and _has_inputs(self.manifest, inputs) and self.damage:
                logger.info(
                    f"{folder}: {self.damage} is missing or was changed; "
                    "building the artifact again"
                )
            started = time.monotonic()
            draft = Draft(prepare_draft(folder, inputs, resume), inputs)
            (draft.folder / MANIFEST).unlink(missing_ok=True)
            with ExitStack() as failure:
                failure.callback(_discard_empty, draft.folder)
                yield draft
                inputs_now = again(draft.folder) if again else inputs_of()
                if compute_fingerprint(inputs_now) != compute_fingerprint(inputs):
                    raise IfqaError(
                        f"an input of {folder} changed while it was being made; "
                        "run the same command again"
                    )
                failure.pop_all()
            environment = describe_environment(time.monotonic() - started)
            record = {"files": hash_files(draft.folder), **environment, **draft.record}
            write_json(draft.folder / MANIFEST, {"inputs": draft.inputs, "record": record})
            _refuse_unlisted(folder)  # the user may have put a file there meanwhile
            self._publish()

    def copy(self, inputs: Mapping[str, object], others: Iterable[Path]) -> bool:
        """Copy the artifact from the first other folder that has it with the same inputs.

        Returns whether there is one.

        The other folders are not locked, because a process may work there for hours; instead the
        copy is verified. A folder with an unreadable manifest is skipped.
        """
        for other in others:
            try:
                if not Artifact(other, self._incomplete).is_current_for(inputs):
                    continue
            except IfqaError as error:
                logger.info(f"{self.folder}: not copied from {other.parent.name}: {error}")
                continue
            with lock(self.folder.parent):
                refuse_links(self.folder)
                if _copy(other, partial_folder(self.folder), inputs):
                    self._publish()
                    self.copied = True
                    logger.info(f"{self.folder}: copied from {other.parent.name}")
                    return True
        return False

    def _publish(self) -> None:
        publish_draft(self.folder)
        self.reread()


@contextmanager
def lock(folder: Path, wait: bool = False) -> Iterator[None]:
    """Lock a folder, created if missing, against other processes; the lock ends with its process.

    If another process holds the lock, raises IfqaError; with `wait`, waits instead and logs that
    after a second. A read-only file system is not locked: its artifacts can be read, and none can
    be built.
    """
    guard = FileLock(folder / ".lock", timeout=0, is_singleton=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        guard.acquire(timeout=1 if wait else 0)
    except Timeout as error:
        if not wait:
            raise IfqaError(
                f"another process is working in {folder}; wait until it ends, or stop it",
                mend="wait until it ends, or stop it",
            ) from error
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
    """Raise IfqaError if a temporary folder or a path is a link: a write or removal would reach the
    link's target.
    """
    for path in (partial_folder(folder), _old_folder(folder), *paths):
        if path.is_symlink():
            raise IfqaError(
                f"{path} is a link, and its target is not part of {folder}; remove the link"
            )


def prepare_draft(folder: Path, inputs: dict[str, object], resume: str) -> Path:
    """Prepare the temporary folder: `INPUTS`, and the files of an interrupted build if `resume`
    keeps them.

    Emptying the folder removes links, which a killed BM25 build leaves, and does not follow them.
    Raises IfqaError if a file to keep is a link.
    """
    draft = partial_folder(folder)
    inputs_path = draft / INPUTS
    text = json.dumps(inputs, indent=2, ensure_ascii=False).encode()
    if resume == "any" or (
        resume == "same" and inputs_path.exists() and inputs_path.read_bytes().strip() == text
    ):
        refuse_links(folder, *draft.rglob("*"))
        for temporary in draft.glob(".*.tmp"):
            temporary.unlink()
    else:
        shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True, exist_ok=True)
    write_json(inputs_path, inputs)
    return draft


def _discard_empty(draft: Path) -> None:
    """Remove the temporary folder if it holds only `INPUTS` and empty files."""
    if draft.is_dir() and not any(
        path.is_dir() or path.is_symlink() or (path.name != INPUTS and path.stat().st_size)
        for path in draft.iterdir()
    ):
        shutil.rmtree(draft)


def publish_draft(folder: Path) -> None:
    """Replace the old folder with the new one.

    A kill leaves the old, the new or neither, never a mixture.
    """
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
    """Raise IfqaError, which names the folder and the free bytes, if the disk or the quota is
    full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        free = shutil.disk_usage(folder.parent).free
        raise IfqaError(
            f"no room on the disk to write {folder} ({os.strerror(error.errno)}; "
            f"{free:,} bytes free): "
            "make room and run the same command again; finished files are unchanged"
        ) from error


def _copy(artifact: Path, to: Path, inputs: Mapping[str, object]) -> bool:
    """Copy an artifact's listed files.

    Returns False if the artifact was replaced during the copy.
    """
    shutil.rmtree(to, ignore_errors=True)
    try:
        for path in (*list_files(artifact), artifact / MANIFEST):
            target = to / path.relative_to(artifact)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    except FileNotFoundError:
        return False
    manifest = read_manifest(to)
    files = hash_files(to)
    files.pop(MANIFEST)
    return (
        manifest is not None
        and _has_inputs(manifest, inputs)
        and files == manifest["record"]["files"]
    )


def list_files(folder: Path) -> list[Path]:
    """The existing files that an artifact's manifest lists, so not the user's own.

    Without a manifest, all files.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for name in manifest["record"]["files"] if (path := folder / name).is_file()]


def unlisted_files(folder: Path) -> list[str]:
    """Names of the files in an artifact's folder that its manifest does not list, except hidden
    files (`.DS_Store`).
    """
    listed = {folder / MANIFEST, *list_files(folder)} if (folder / MANIFEST).exists() else set()
    others = (
        path for path in sorted(folder.rglob("*")) if path not in listed and not path.is_dir()
    )
    names = (path.relative_to(folder) for path in others)
    return [
        name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)
    ]


def _refuse_unlisted(folder: Path) -> None:
    """Raise IfqaError if replacing a folder would remove the user's files."""
    if names := unlisted_files(folder):
        raise IfqaError(
            f"{folder / names[0]} was not written by ifqa, and would be removed when {folder} "
            "is made again; move it elsewhere, or remove it"
        )


def damaged_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Names of an artifact's files that are missing, or whose size or SHA-256 differs from the
    manifest's.

    Files are hashed, once per process, only in artifacts of up to 64 MB: larger artifacts take
    longer to hash than to use.
    """
    files = manifest["record"]["files"]
    is_small = sum(facts["bytes"] for facts in files.values()) <= _SMALL
    for name, facts in files.items():
        path = folder / name
        same_size = path.is_file() and path.stat().st_size == facts["bytes"]
        if not same_size or (is_small and cached_sha256(path) != facts["sha256"]):
            yield name


def hash_files(folder: Path) -> dict[str, _File]:
    """The size and SHA-256 of each file in a folder and its folders, without what only a draft
    has.
    """
    files: dict[str, _File] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in DRAFT_FILES:
            files[path.relative_to(folder).as_posix()] = {
                "bytes": path.stat().st_size,
                "sha256": sha256(path),
            }
    return files
