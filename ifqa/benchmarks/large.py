"""Downloads a large file to disk piece by piece; an interrupted download goes on where it was."""

import http.client
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.progress import bar
from ifqa.storage.artifacts import lock
from ifqa.storage.files import write

_CHUNK = 1 << 20


def download(url: str, path: Path) -> None:
    """Put a file into place. What came before an interruption lies beside it, as `.NAME.part`.

    It is kept only if the server says that its file is still the same one (`If-Range`, RFC 9110, section 13.1.5).

    Raises:
        IfqaError: the file cannot be fetched, the connection broke, or the disk has no room for it.
    """
    part, tag = (path.with_name(f".{path.name}.{suffix}") for suffix in ("part", "tag"))
    with lock(path.parent):
        for place in (part, tag):
            if place.is_symlink():
                place.unlink()
        try:
            _fetch(url, part, tag)
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
        ) as error:  # ValueError: a redirect to a malformed address
            reason = error.reason if isinstance(error, urllib.error.URLError) else repr(error)
            raise IfqaError(
                f"cannot fetch {url} ({reason}); run the same command again to go on, or put the file at {path}"
            ) from error
        os.replace(part, path)
        tag.unlink(missing_ok=True)


def _fetch(url: str, part: Path, tag: Path) -> None:
    here = part.stat().st_size if part.exists() and tag.exists() else 0
    headers = {"User-Agent": "ifqa"}
    if here:
        headers |= {"Range": f"bytes={here}-", "If-Range": tag.read_text(encoding="utf-8")}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        if error.headers.get("Content-Range") == f"bytes */{here}":  # all of it came before the interruption
            return
        part.unlink()  # the server's file is another one now
        raise
    with response:
        if response.status != http.client.PARTIAL_CONTENT:
            here = 0
        length = response.headers.get("Content-Length")
        total = here + int(length) if length else None
        _check_room(part.parent, (total or here) - here, url)
        if not here:
            part.unlink(missing_ok=True)
            _remember(response.headers, tag)
        with open(part, "ab") as handle, bar(f"download of {Path(url).name}", total, unit="bytes") as advance:
            advance(here)
            while chunk := response.read(_CHUNK):
                write(handle, chunk)
                advance(len(chunk))
            handle.flush()
            os.fsync(handle.fileno())
    found = part.stat().st_size
    if total is not None and found < total:
        raise http.client.IncompleteRead(b"", total - found)


def _remember(headers: http.client.HTTPMessage, tag: Path) -> None:
    """Keep what names the server's file: a strong ETag, else the time of its last change."""
    etag = headers.get("ETag", "")
    name = etag if etag.startswith('"') else headers.get("Last-Modified", "")
    tag.unlink(missing_ok=True)
    if name:
        tag.write_text(name, encoding="utf-8")


def _check_room(folder: Path, needed: int, url: str) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise IfqaError(f"{url} needs {needed:,} bytes more, and {folder} has {free:,} free; make room")
