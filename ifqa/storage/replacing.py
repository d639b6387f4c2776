"""Fill a folder beside its place, as `.NAME.partial`, and rename it into place when it is complete.

What a killed attempt left in the temporary folder is removed, or kept so that the next attempt can go on.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.storage.files import write_json

INPUTS = "inputs.json"  # in the temporary folder: what it is being made from
LOG = "chunks.jsonl"  # in the temporary folder: the chunks that are there (`ifqa.storage.chunks`)
ONLY_THERE = (INPUTS, LOG)
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def partial(folder: Path) -> Path:
    """The temporary folder that becomes `folder`."""
    return folder.with_name(f".{folder.name}.partial")


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def refuse_links(folder: Path) -> None:
    """Refuse links in place of the temporary folders: writing or removing would reach the link's target.

    Raises:
        IfqaError: `.NAME.partial` or `.NAME.old` is a link.
    """
    for place in (partial(folder), _aside(folder)):
        if place.is_symlink():
            raise _link_in_the_way(place, folder)


def _link_in_the_way(link: Path, folder: Path) -> IfqaError:
    return IfqaError(f"{link} is a link, and its target is not part of {folder}; remove the link")


def prepare(folder: Path, inputs: dict[str, object], resume: str) -> Path:
    """Prepare the temporary folder: it holds `INPUTS` alone, or what an earlier attempt left if `resume` keeps that.

    A folder that is emptied may hold links, which are removed and not followed; a killed BM25 build leaves some.

    Raises:
        IfqaError: what an earlier attempt left is kept, and a link is in it.
    """
    place = partial(folder)
    left = place / INPUTS
    text = json.dumps(inputs, indent=2, ensure_ascii=False).encode()
    if resume == "any" or (resume == "same" and left.exists() and left.read_bytes().strip() == text):
        if link := next((path for path in place.rglob("*") if path.is_symlink()), None):
            raise _link_in_the_way(link, folder)
        for torn in place.glob(".*.tmp"):
            torn.unlink()
    else:
        shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    write_json(left, inputs)
    return place


def discard_empty(folder: Path) -> None:
    """Remove the temporary folder if it holds no result: only `INPUTS` and empty files."""
    place = partial(folder)
    if place.is_dir() and not any(
        path.is_dir() or path.is_symlink() or (path.name != INPUTS and path.stat().st_size) for path in place.iterdir()
    ):
        shutil.rmtree(place)


def publish(folder: Path) -> None:
    """Move the old folder aside, rename the new one into place, remove the old: a kill leaves the old, the new or none."""
    aside = _aside(folder)
    for name in ONLY_THERE:
        (partial(folder) / name).unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    if folder.exists():
        os.rename(folder, aside)
    os.rename(partial(folder), folder)
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def room_for(folder: Path) -> Iterator[None]:
    """Turn the errors of a full disk into one line that names the folder and the bytes free.

    Raises:
        IfqaError: the disk, or the quota, is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        free = shutil.disk_usage(folder.parent).free
        raise IfqaError(
            f"no room on the disk to write {folder} ({os.strerror(error.errno)}; {free:,} bytes free): "
            "make room and run the same command again; finished files are unchanged"
        ) from error
