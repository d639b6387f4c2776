"""A folder that is filled beside its place, as `.NAME.partial`, and renamed into its place when it is whole.

What an earlier attempt left in the temporary folder is removed, or kept for the next attempt to go on with.
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
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def partial(folder: Path) -> Path:
    """The temporary folder that becomes `folder`."""
    return folder.with_name(f".{folder.name}.partial")


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def refuse_links(folder: Path) -> None:
    """Refuse a link in the place of a folder that will be written or removed: its target may be anything.

    Raises:
        IfqaError: the temporary folder, or the one that holds the old artifact for a moment, is a link.
    """
    for place in (partial(folder), _aside(folder)):
        if place.is_symlink():
            raise _link_in_the_way(place, folder)


def _link_in_the_way(link: Path, folder: Path) -> IfqaError:
    return IfqaError(f"{link} is a link, and what it leads to is not for {folder}; remove the link")


def prepare(folder: Path, inputs: dict[str, object], resume: str) -> Path:
    """The temporary folder, ready to fill: empty but for `INPUTS`, or as an earlier attempt left it.

    A folder that is emptied may hold links, which are removed and not followed; BM25's build leaves some when it is killed.

    Raises:
        IfqaError: the work of an earlier attempt goes on, and a link lies in it.
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


def publish(folder: Path) -> None:
    """Old folder aside, whole new folder in, old folder away: a kill between leaves the old, the new, or none."""
    aside = _aside(folder)
    (partial(folder) / INPUTS).unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    if folder.exists():
        os.rename(folder, aside)
    os.rename(partial(folder), folder)
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def room_for(folder: Path) -> Iterator[None]:
    """Turn the errors of a full disk into one line.

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
            "make room and run the same command again; nothing finished was touched"
        ) from error
