"""Artifacts: folders that are whole or not there, and know what they were made from.

An artifact is made in a temporary sibling `.NAME.partial`; `manifest.json` is written into it last, so its presence means
done, and then the whole folder is renamed into place. The manifest has two halves: `inputs` (stage,
settings, identity of the inputs, version of the plugin), which alone decides whether the artifact is used again, and
`record` (when, how long, with what, SHA-256 of every file), which is for people.
"""

import errno
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from filelock import FileLock, Timeout

from ifqa.errors import IfqaError
from ifqa.progress import say
from ifqa.records import Usage
from ifqa.storage.circumstances import circumstances
from ifqa.storage.files import known_sha256, read_json, sha256, write_json
from ifqa.storage.manifests import check_manifest
from ifqa.storage.replacing import INPUTS, partial, prepare, publish, refuse_links, room_for

MANIFEST = "manifest.json"
_SMALL = 64_000_000  # bytes


class _File(TypedDict):
    bytes: int
    sha256: str


class StageRecord(Usage):
    """The half `record` of a manifest; the optional ones where the stage tells them (`left_out` of passages is a table)."""

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
    label: NotRequired[str]
    trained_on_them: NotRequired[bool]


class Manifest(TypedDict):
    """Both halves."""

    inputs: dict[str, object]
    record: StageRecord


@dataclass
class Work:
    """A folder to fill, and facts about the filling for the manifest's `record`.

    `inputs` is what it is made from; where some of it is known only once it has been read (a pipe), whoever fills the
    folder puts another in its place.
    """

    folder: Path
    inputs: dict[str, object]
    record: dict[str, Any] = field(default_factory=dict)


def identity(inputs: Mapping[str, object]) -> str:
    """Hex SHA-256 of an artifact's inputs, by which another artifact names it."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a finished artifact, or None where there is none.

    Raises:
        IfqaError: the manifest is there and is not one.
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
        check_manifest(manifest)
    except IfqaError as error:
        raise IfqaError(f"{path}: not a manifest ({error}); {mend}") from error
    return cast(Manifest, manifest)


def is_made(folder: Path, inputs: Mapping[str, object], thorough: bool = False) -> bool:
    """Whether the folder holds an artifact made from exactly this, with every file as it was written (see `damaged`).

    One whose `record` says "retry", because a language model did not answer everything, is one to make again.
    """
    manifest = read_manifest(folder)
    if manifest is None or manifest["record"].get("retry"):
        return False
    return identity(manifest["inputs"]) == identity(inputs) and not any(damaged(folder, manifest, thorough))


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep every other process out of a corpus or an experiment; ends with the process, however it ends.

    On a read-only file system there is nothing to keep anyone from: what is made can be used, nothing can be made.

    Raises:
        IfqaError: another process is in it.
    """
    guard = FileLock(folder / ".lock", timeout=0, is_singleton=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        guard.acquire()
    except Timeout as error:
        raise IfqaError(f"another process is at work in {folder}; wait until it ends, or stop it") from error
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    try:
        yield
    finally:
        guard.release()


@contextmanager
def make(
    folder: Path,
    inputs_of: Callable[[], dict[str, object]],
    others: Sequence[Path] = (),
    resume: Literal["", "same", "any"] = "",
) -> Iterator[Work | None]:
    """Make an artifact, all or nothing; `None` where there is nothing to do.

    Args:
        folder: where it will stand. What stands there now is replaced only once the new one is whole.
        inputs_of: says what it is to be made from; asked again at the end, lest an input changed meanwhile.
        others: folders it may be copied from, where one was made from exactly the same.
        resume: keep in the temporary folder what an earlier, killed attempt left there: "same" if it was at the very
            same thing, "any" whatever it was at, for whoever can tell what of it is of use.

    Raises:
        IfqaError: the disk is full, another process is at work here, an input changed while it was made, the folder
            is a link, or it holds a file that is in no manifest.
    """
    with lock(folder.parent), room_for(folder):
        if folder.is_symlink():
            raise IfqaError(f"{folder} is a link, whose place a new one would take; link {folder.parent} instead")
        refuse_links(folder)
        inputs = inputs_of()
        if is_made(folder, inputs):
            say(f"{folder}: nothing to do, made from exactly this before")
            yield None
            return
        _refuse_strangers(folder)
        if take_over(folder, inputs, others):
            yield None
        elif is_made(partial(folder), inputs):  # finished, and killed just before it was in its place
            publish(folder)
            yield None
        else:
            _say_damage(folder, inputs)
            started = time.monotonic()
            work = Work(prepare(folder, inputs, resume), inputs)
            (work.folder / MANIFEST).unlink(missing_ok=True)
            yield work
            if identity(inputs_of()) != identity(inputs):
                raise IfqaError(
                    f"what {folder} is made from changed while it was being made; run the same command again"
                )
            record = {"files": _facts(work.folder), **circumstances(time.monotonic() - started), **work.record}
            write_json(work.folder / MANIFEST, {"inputs": work.inputs, "record": record})
            _refuse_strangers(folder)  # one may have come meanwhile
            publish(folder)


def _say_damage(folder: Path, inputs: Mapping[str, object]) -> None:
    """That what is made again was there, and no longer is as it was written."""
    manifest = read_manifest(folder)
    if manifest and identity(manifest["inputs"]) == identity(inputs) and (name := next(damaged(folder, manifest), "")):
        say(f"{folder}: {name} is not as it was written; it is made again")


def take_over(folder: Path, inputs: Mapping[str, object], others: Sequence[Path]) -> bool:
    """Copy an artifact from the first of other folders that holds one made from exactly this; whether there was one.

    The others are not locked, as another process may work there for hours: the copy is verified instead. A folder that cannot
    be read is passed over.
    """
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
                say(f"{folder}: taken over from {other.parent.name}")
                return True
    return False


def _copy(artifact: Path, to: Path, inputs: Mapping[str, object]) -> bool:
    """Copy an artifact's own files; whether the copy is whole, as it is not if the artifact was replaced meanwhile."""
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
    """The files of an artifact: those its manifest lists and that are there; in a folder without a manifest, all.

    Files that someone else put into an artifact's folder are thus never read as the artifact's own.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for name in manifest["record"]["files"] if (path := folder / name).is_file()]


def strangers(folder: Path) -> list[str]:
    """Names of the files in an artifact's folder that its manifest does not list, but for hidden ones (`.DS_Store`)."""
    listed = {folder / MANIFEST, *files_of(folder)} if (folder / MANIFEST).exists() else set()
    found = (path for path in sorted(folder.rglob("*")) if path not in listed and not path.is_dir())
    names = (path.relative_to(folder) for path in found)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def _refuse_strangers(folder: Path) -> None:
    """Refuse to replace a folder that holds files of someone else, which would be lost.

    Raises:
        IfqaError: it holds some.
    """
    if names := strangers(folder):
        raise IfqaError(
            f"{folder / names[0]} is in no manifest, and would be removed when {folder} is made again; "
            "move it elsewhere, or remove it"
        )


def damaged(folder: Path, manifest: Manifest, thorough: bool = False) -> Iterator[str]:
    """The files of an artifact that are missing, of another size, or of other bytes than were written.

    Args:
        folder: the artifact.
        manifest: its manifest.
        thorough: hash every file. Else those of an artifact of up to 64 MB, each once a process while it is not touched:
            larger ones would take longer to hash than to use.
    """
    files = manifest["record"]["files"]
    hashed = thorough or sum(facts["bytes"] for facts in files.values()) <= _SMALL
    for name, facts in files.items():
        path = folder / name
        if (
            not path.is_file()
            or path.stat().st_size != facts["bytes"]
            or (hashed and known_sha256(path) != facts["sha256"])
        ):
            yield name


def _facts(folder: Path) -> dict[str, _File]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != INPUTS]
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    }
