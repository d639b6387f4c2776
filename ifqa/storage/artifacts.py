"""Artifacts: folders that are written completely or not at all, with a manifest of inputs and files.

An artifact is made in a temporary folder beside its place, `.NAME.partial`. `manifest.json` is written last, so a folder
with a manifest is finished; then the folder is renamed into place. The manifest has two halves. `inputs` (stage, settings,
identities of the inputs, version of the plugin) alone decides whether the artifact is reused. `record` (time, duration,
libraries, SHA-256 of every file) is for people.
"""

import errno
import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, TypedDict, cast, get_args, get_origin, get_type_hints, is_typeddict

from filelock import FileLock, Timeout

from ifqa.errors import IfqaError
from ifqa.progress import say
from ifqa.records import SpentTable, Usage
from ifqa.storage.circumstances import circumstances
from ifqa.storage.files import cached_sha256, read_json, sha256, write_json
from ifqa.storage.replacing import (
    ONLY_THERE,
    discard_empty,
    partial,
    prepare,
    publish,
    refuse_links,
    room_for,
)

MANIFEST = "manifest.json"
_SMALL = 64_000_000  # bytes
_OF_STAGE = {
    "passages": frozenset(("passages", "sources")),
    "index": frozenset(("passages",)),
}  # keys that its record has


class _File(TypedDict):
    bytes: int
    sha256: str


class StageRecord(Usage):
    """The half `record` of a manifest; a stage writes the optional keys that apply to it (`left_out` of passages is a table)."""

    files: dict[str, _File]
    at: str  # ISO time
    seconds: float
    ifqa: str
    commit: str
    libraries: dict[str, str]
    python: str
    hardware: str
    passages: NotRequired[int]
    sources: NotRequired[dict[str, list[int | str]]]  # path -> bytes, time of change (ns), SHA-256
    questions: NotRequired[int]
    hits: NotRequired[int]
    made: NotRequired[dict[str, int]]  # questions by rule, before and after the reader's check
    kept: NotRequired[dict[str, int]]
    label: NotRequired[str]
    trained_on_them: NotRequired[bool]


class Manifest(TypedDict):
    """Both halves."""

    inputs: dict[str, object]
    record: StageRecord


@dataclass
class Draft:
    """A folder to fill, and facts for the manifest's `record`.

    `inputs` becomes the manifest's `inputs`. Some inputs are known only once they are read (a pipe); the code that fills the
    folder then replaces `inputs`.
    """

    folder: Path
    inputs: dict[str, object]
    record: dict[str, Any] = field(default_factory=dict)


def identity(inputs: Mapping[str, object]) -> str:
    """Hex SHA-256 of an artifact's inputs; artifacts made from it name it by this hash."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _check_manifest(manifest: object) -> None:
    """Check that both halves of a manifest have the keys and types that this version reads.

    Raises:
        IfqaError: a key is missing or of another type; the message says which.
    """
    if not isinstance(manifest, dict) or not all(isinstance(manifest.get(half), dict) for half in ("inputs", "record")):
        raise IfqaError("wanted the tables 'inputs' and 'record'")
    record, needed = manifest["record"], _OF_STAGE.get(str(manifest["inputs"].get("stage")), frozenset())
    _check(record, StageRecord, "record", needed)
    if not record["files"]:
        raise IfqaError("record.files is empty")
    for name, facts in record["files"].items():
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            raise IfqaError(f"record.files.{name} is outside the folder")
        _check(facts, _File, f"record.files.{name}")
    for path, facts in record.get("sources", {}).items():
        if not isinstance(facts, list) or [type(fact) for fact in facts] != [int, int, str]:
            raise IfqaError(f"record.sources.{path} is not [bytes, time of change, SHA-256]")
    if "spent" in record:
        _check(record["spent"], SpentTable, "record.spent")
    if [type(tokens) for tokens in record.get("took", (0, 0))] != [int, int]:
        raise IfqaError("record.took is not two numbers of tokens")


def _check(table: object, shape: type, where: str, needed: frozenset[str] = frozenset()) -> None:
    """Check the keys of a table that its TypedDict requires, and the types of those that are there."""
    if not isinstance(table, dict):
        raise IfqaError(f"{where} is not a table")
    hints = get_type_hints(shape)
    required: frozenset[str] = shape.__required_keys__ | needed  # type: ignore[attr-defined]
    for key in (key for key in hints if key != "left_out" and key in required | table.keys()):
        if key not in table:
            raise IfqaError(f"{where}.{key} is missing")
        value, kinds = table[key], _kinds(hints[key])
        if not isinstance(value, kinds) or (isinstance(value, int | float) and not 0 <= value < math.inf):
            names = " or ".join("null" if kind is NoneType else kind.__name__ for kind in kinds)
            raise IfqaError(f"{where}.{key} is {value!r:.40}; wanted {names}")


def _kinds(hint: object) -> tuple[type, ...]:
    """The types that JSON values of an annotation have."""
    if isinstance(hint, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _kinds(part))
    kind: Any = get_origin(hint) or hint
    if kind is float:
        return (int, float)
    return (list,) if kind is Sequence else (dict,) if is_typeddict(kind) else (kind,)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a finished artifact, or None if the folder has no manifest.

    Raises:
        IfqaError: the file is no manifest of this version.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    mend = f"remove the folder {folder} to make it anew"
    try:
        manifest = read_json(path)
    except IfqaError as error:
        raise IfqaError(f"{error}; {mend}") from error
    try:
        _check_manifest(manifest)
    except IfqaError as error:
        raise IfqaError(f"{path}: not a manifest ({error}); {mend}") from error
    return cast(Manifest, manifest)


class Artifact:
    """The folder of an artifact: its manifest is read once, and its files are checked once, until it is made again.

    Attributes:
        folder: the artifact's place.
        copied: whether `make` copied it from another folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.copied = False

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest; None if the artifact is not finished. Raises as `read_manifest`."""
        return read_manifest(self.folder)

    @cached_property
    def damage(self) -> str:
        """A file that is missing or damaged; empty if there is none (see `damaged`)."""
        return next(damaged(self.folder, self.manifest), "") if self.manifest else ""

    def reread(self) -> None:
        """Read manifest and files again where they are needed next: they may have changed."""
        vars(self).pop("manifest", None)
        vars(self).pop("damage", None)

    def is_made_from(self, inputs: Mapping[str, object]) -> bool:
        """Whether the artifact was made from exactly these inputs and has no damaged file.

        False if its `record` says "retry": a language model left questions unanswered, and the artifact is to be made again.
        """
        if self.manifest is None or self.manifest["record"].get("retry"):
            return False
        return identity(self.manifest["inputs"]) == identity(inputs) and not self.damage

    def require(self, command: str) -> Manifest:
        """The manifest of an artifact that another stage needs.

        Raises:
            IfqaError: the artifact is not there, or a file of it is damaged; the message names the `command` that makes it.
        """
        if self.manifest is None:
            raise IfqaError(f"{self.folder} is not there yet; make it with: {command}")
        if self.damage:
            raise IfqaError(
                f"{self.folder} is damaged: {self.damage} is missing, or not as it was written; make it again: {command}"
            )
        return self.manifest

    def require_from(self, inputs: Mapping[str, object], command: str) -> Manifest:
        """The manifest of an artifact that must have been made from these inputs.

        Raises:
            IfqaError: as `require`; or it was made from something else.
        """
        manifest = self.require(command)
        before = manifest["inputs"]
        if identity(before) != identity(inputs):
            changed = sorted(key for key in before.keys() | inputs.keys() if before.get(key) != inputs.get(key))
            raise IfqaError(
                f"{self.folder} was made from something else (changed: {', '.join(changed)}); make it again: {command}"
            )
        return manifest

    @contextmanager
    def make(
        self,
        inputs_of: Callable[[], dict[str, object]],
        again: Callable[[], dict[str, object]] | None = None,
        others: Iterable[Path] = (),
        resume: Literal["", "same", "any"] = "",
    ) -> Iterator[Draft | None]:
        """Make the artifact, all or nothing; yields `None` if there is nothing to do.

        An artifact that is there is replaced once the new one is complete. A failure leaves no draft without a result.

        Args:
            inputs_of: gives the artifact's inputs.
            again: gives them at the end from the files of then, to see that no input changed meanwhile.
            others: folders of the same artifact elsewhere; one with the same inputs is copied.
            resume: whether to keep what a killed attempt left in the temporary folder. "same": if its inputs were the same;
                "any": always, if the caller can tell which parts are reusable; "": never.

        Raises:
            IfqaError: the disk is full, another process is at work here, an input changed meanwhile, the folder is a link, or
                it holds a file that is in no manifest.
        """
        folder = self.folder
        with lock(folder.parent), room_for(folder):
            if folder.is_symlink():
                raise IfqaError(
                    f"{folder} is a link, and would be replaced by a folder; make {folder.parent} the link instead"
                )
            refuse_links(folder)
            inputs = inputs_of()
            if self.is_made_from(inputs):
                say(f"{folder}: nothing to do, made from exactly this before")
                yield None
                return
            _refuse_strangers(folder)
            if self.copy(inputs, others):
                yield None
            elif Artifact(partial(folder)).is_made_from(inputs):  # killed after the manifest, before the rename
                publish(folder)
                self.reread()
                yield None
            else:
                if self.damage and self.manifest and identity(self.manifest["inputs"]) == identity(inputs):
                    say(f"{folder}: {self.damage} is not as it was written; it is made again")
                started = time.monotonic()
                draft = Draft(prepare(folder, inputs, resume), inputs)
                (draft.folder / MANIFEST).unlink(missing_ok=True)
                with ExitStack() as failure:
                    failure.callback(discard_empty, folder)
                    yield draft
                    if identity((again or inputs_of)()) != identity(inputs):
                        raise IfqaError(
                            f"what {folder} is made from changed while it was being made; run the same command again"
                        )
                    failure.pop_all()
                record = {"files": _facts(draft.folder), **circumstances(time.monotonic() - started), **draft.record}
                write_json(draft.folder / MANIFEST, {"inputs": draft.inputs, "record": record})
                _refuse_strangers(folder)  # a file may have come during the work
                publish(folder)
                self.reread()

    def copy(self, inputs: Mapping[str, object], others: Iterable[Path]) -> bool:
        """Copy the artifact from the first of other folders that holds it with the same inputs; whether there is one.

        The other folders are not locked, because a process may work there for hours; the copy is verified instead. A folder
        with an unreadable manifest is skipped.
        """
        folder = self.folder
        for other in others:
            try:
                if not is_made(other, inputs):
                    continue
            except IfqaError as error:
                say(f"{folder}: not taken over from {other.parent.name}: {error}")
                continue
            with lock(folder.parent):
                refuse_links(folder)
                if _copy(other, partial(folder), inputs):
                    publish(folder)
                    self.reread()
                    self.copied = True
                    say(f"{folder}: taken over from {other.parent.name}")
                    return True
        return False


def is_made(folder: Path, inputs: Mapping[str, object], thorough: bool = False) -> bool:
    """Whether a folder holds an artifact made from exactly these inputs (`Artifact.is_made_from`)."""
    artifact = Artifact(folder)
    if not artifact.is_made_from(inputs) or artifact.manifest is None:
        return False
    return not (thorough and any(damaged(folder, artifact.manifest, thorough)))


def make(
    folder: Path, inputs_of: Callable[[], dict[str, object]], resume: Literal["", "same", "any"] = ""
) -> AbstractContextManager[Draft | None]:
    """Make the artifact of a folder (`Artifact.make`); `inputs_of` is called before and after the work."""
    return Artifact(folder).make(inputs_of, resume=resume)


@contextmanager
def lock(folder: Path, wait: bool = False) -> Iterator[None]:
    """Keep every other process out of the folder of a corpus or an experiment; a process that dies releases its lock.

    On a read-only file system nothing is locked: finished artifacts can be used, and none can be made.

    Args:
        folder: holds the lock's file; created if missing.
        wait: wait for another process that holds the lock, and say so after a second.

    Raises:
        IfqaError: another process holds the lock, and `wait` is not set.
    """
    guard = FileLock(folder / ".lock", timeout=0, is_singleton=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        guard.acquire(timeout=1 if wait else 0)
    except Timeout as error:
        if not wait:
            raise IfqaError(f"another process is at work in {folder}; wait until it ends, or stop it") from error
        say(f"another process is at work in {folder}; waiting until it ends")
        guard.acquire(timeout=-1)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    try:
        yield
    finally:
        guard.release()


def _copy(artifact: Path, to: Path, inputs: Mapping[str, object]) -> bool:
    """Copy an artifact's own files; whether the copy is complete. It is not if the artifact was replaced meanwhile."""
    shutil.rmtree(to, ignore_errors=True)
    try:
        for path in (*files_of(artifact), artifact / MANIFEST):
            target = to / path.relative_to(artifact)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    except FileNotFoundError:
        return False
    return is_made(to, inputs, thorough=True)


def files_of(folder: Path) -> list[Path]:
    """The files of an artifact that its manifest lists and that exist; of a folder without a manifest, all files.

    So files that someone else put into the folder are never read as the artifact's own.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for name in manifest["record"]["files"] if (path := folder / name).is_file()]


def strangers(folder: Path) -> list[str]:
    """Names of the files in an artifact's folder that its manifest does not list, without hidden ones (`.DS_Store`)."""
    listed = {folder / MANIFEST, *files_of(folder)} if (folder / MANIFEST).exists() else set()
    found = (path for path in sorted(folder.rglob("*")) if path not in listed and not path.is_dir())
    names = (path.relative_to(folder) for path in found)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def _refuse_strangers(folder: Path) -> None:
    """Refuse to replace a folder that holds someone else's files: they would be lost.

    Raises:
        IfqaError: the folder holds such files.
    """
    if names := strangers(folder):
        raise IfqaError(
            f"{folder / names[0]} is in no manifest, and would be removed when {folder} is made again; "
            "move it elsewhere, or remove it"
        )


def damaged(folder: Path, manifest: Manifest, thorough: bool = False) -> Iterator[str]:
    """Names of an artifact's files that are missing or whose size or SHA-256 differs from the manifest's.

    Args:
        folder: the artifact.
        manifest: its manifest.
        thorough: hash every file. Otherwise files are hashed only in artifacts of up to 64 MB, because larger ones take
            longer to hash than to use; a process hashes an unchanged file once.
    """
    files = manifest["record"]["files"]
    hashed = thorough or sum(facts["bytes"] for facts in files.values()) <= _SMALL
    for name, facts in files.items():
        path = folder / name
        if (
            not path.is_file()
            or path.stat().st_size != facts["bytes"]
            or (hashed and cached_sha256(path) != facts["sha256"])
        ):
            yield name


def _facts(folder: Path) -> dict[str, _File]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in ONLY_THERE]
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    }
