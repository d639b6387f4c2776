"""HTTP downloads: small files into memory.

Large files to disk, resumed and checked by size and checksum.

A partial download is stored next to its target as `.NAME.part`, the server's ETag or modification
time as `.NAME.tag`. The complete and checked file is renamed to its final name.
"""

import hashlib
import http.client
import logging
import os
import platform
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ifqa.errors import DamagedArtifact, IfqaError, ServiceError
from ifqa.progress import bar
from ifqa.storage.artifacts import lock, report_full_disk
from ifqa.storage.files import write_bytes
from ifqa.storage.object_store import ObjectResponse, list_objects
from ifqa.version import __version__

logger = logging.getLogger(__name__)

CONTACT = "IFQA_CONTACT"
_CHUNK = 1 << 20
_TIMEOUT = 60  # seconds without a byte
_PAUSE = 5.0  # seconds before a broken connection is opened again
# ValueError: a redirect to a malformed address
_CONNECTION_ERRORS = (OSError, http.client.HTTPException, ValueError)
_RETRY = "run the same command again to resume"
_Step = Callable[[float], None]


@dataclass(frozen=True)
class RemoteFile:
    """A file on a server and its local path.

    Size and checksum are None or empty if not published.
    """

    url: str
    path: Path
    size: int | None = None  # bytes
    algorithm: str = ""  # of the checksum; a name in hashlib
    checksum: str = ""  # hexadecimal

    def sidecar(self, suffix: str) -> Path:
        """The path of `.NAME.part`, the partial download, or `.NAME.tag`, its version on the
        server.
        """
        return self.path.with_name(f".{self.path.name}.{suffix}")

    def resumable_bytes(self) -> int:
        """The size of a partial download that can be resumed; 0 without one."""
        part = self.sidecar("part")
        return part.stat().st_size if part.exists() and self.sidecar("tag").exists() else 0


class DownloadError(ServiceError):
    """A file cannot be fetched.

    `reason` is the message without advice; `status` is the HTTP status, if there is one.
    """

    def __init__(self, url: str, error: BaseException, mend: str = "") -> None:
        self.status = error.code if isinstance(error, urllib.error.HTTPError) else None
        if self.status == http.client.FORBIDDEN:
            mend = (
                f"the server may require a contact: set {CONTACT} to your "
                "e-mail address or web page"
            )
        self.reason = f"cannot fetch {url} ({' '.join(str(error).split()) or repr(error)})"
        super().__init__(f"{self.reason}{mend and '; '}{mend}")


def read_url(url: str, limit: int) -> bytes:
    """The content of a small file.

    Raises ServiceError if it cannot be fetched or has more than `limit` bytes.
    """
    try:
        with _open(url, {}) as response:
            content: bytes = response.read(limit + 1)
            missing = int(response.headers.get("Content-Length", len(content))) - len(content)
            # The connection broke, which read(n) does not report
            if missing > 0 and len(content) <= limit:
                raise http.client.IncompleteRead(content, missing)
    except _CONNECTION_ERRORS as error:
        raise DownloadError(url, error) from error
    if len(content) > limit:
        raise ServiceError(f"{url} has more than {limit:,} bytes; is the address right?")
    return content


def download_objects(url: str, folder: Path) -> list[RemoteFile]:
    """Download files of an object store (see `list_objects`) into a folder.

    Raises like `download_all`.
    """
    try:
        files = [
            RemoteFile(address, folder / name, size) for name, address, size in list_objects(url)
        ]
    except OSError as error:
        raise DownloadError(url, error) from error
    if not files:
        raise DownloadError(url, FileNotFoundError("no such file"))
    download_all(files, folder)
    return files


def download_all(files: Sequence[RemoteFile], folder: Path) -> None:
    """Download files one after another, with `folder` locked against other processes.

    A local file with the published size (or the checksum, if no size is published) is kept. A
    connection that breaks after some bytes is opened again. Partial downloads are resumed only if
    the server confirms that its file is unchanged (`If-Range`, RFC 9110, section 13.1.5). Raises
    IfqaError if a file cannot be fetched or differs from the published file, or if the disk has no
    room for all files.
    """
    with lock(folder):
        todo = [file for file in files if not _is_downloaded(file)]
        for file in todo:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            for sidecar in (file.sidecar("part"), file.sidecar("tag")):
                if sidecar.is_symlink():
                    sidecar.unlink()
        if todo:
            _check_room(
                folder,
                sum(max((file.size or 0) - file.resumable_bytes(), 0) for file in todo),
                todo,
            )
            sizes = [file.size for file in todo if file.size is not None]
            total = sum(sizes) if len(sizes) == len(todo) else None
            label = f"download of {todo[0].path.name if len(todo) == 1 else f'{len(todo)} files'}"
            with bar(label, total, unit="bytes") as advance:
                for file in todo:
                    _download_one(file, advance)


def _is_downloaded(file: RemoteFile) -> bool:
    if not file.path.exists():
        return False
    size = file.path.stat().st_size
    if file.size not in (None, size):
        sizes = f"{size:,} bytes, the published file {file.size:,}"
        raise DamagedArtifact(f"{file.path} has {sizes}; remove it to fetch it again")
    return file.size is not None or not file.checksum or _digest(file, file.path) == file.checksum


def _digest(file: RemoteFile, path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, file.algorithm).hexdigest()


def _download_one(file: RemoteFile, step: _Step) -> None:
    """Fetch, check and rename a file.

    A broken connection is opened again as long as each connection brings some bytes.
    """
    before = file.resumable_bytes()
    step(before)
    while True:
        try:
            _fetch_rest(file, step)
            break
        except _CONNECTION_ERRORS as error:
            received = file.resumable_bytes()
            if isinstance(error, urllib.error.HTTPError) or received <= before:
                raise DownloadError(
                    file.url, error, f"{_RETRY}, or put the file at {file.path}"
                ) from error
            before = received
            logger.info(f"{file.url}: the connection broke after {received:,} bytes; resuming")
            time.sleep(_PAUSE)
    part = file.sidecar("part")
    size = part.stat().st_size
    wrong = (
        f"{size:,} bytes, not {file.size:,} as published" if file.size not in (None, size) else ""
    )
    if file.checksum and not wrong and (digest := _digest(file, part)) != file.checksum:
        wrong = f"{file.algorithm.upper()} {digest[:12]}…, not {file.checksum[:12]}… as published"
    if wrong:
        part.unlink()
    else:
        os.replace(part, file.path)
    file.sidecar("tag").unlink(missing_ok=True)
    if wrong:
        advice = "it was removed, run the same command again to fetch it"
        raise ServiceError(f"{file.url}: the downloaded file has {wrong}; {advice}")
    checked = (
        f"{file.algorithm.upper()} as published" if file.checksum else "no checksum is published"
    )
    logger.info(f"{file.path}: complete, {checked}")


def _fetch_rest(file: RemoteFile, step: _Step) -> None:
    """Fetch the missing part of a file over one connection."""
    part = file.sidecar("part")
    tag = file.sidecar("tag")
    here = file.resumable_bytes()
    headers = (
        {"Range": f"bytes={here}-", "If-Range": tag.read_text(encoding="utf-8")} if here else {}
    )
    try:
        is_object = not file.url.startswith(("http://", "https://", "file://"))
        response = ObjectResponse(file.url, headers) if is_object else _open(file.url, headers)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        if error.headers.get("Content-Range") == f"bytes */{here}":  # the file is already complete
            return
        part.unlink()  # the server's file has changed
        raise
    with response:
        if here and response.status != http.client.PARTIAL_CONTENT:
            logger.info(
                f"{file.url}: the server sends the file from the start; it has changed, or "
                "cannot be resumed"
            )
            step(-here)
            here = 0
        length = response.headers.get("Content-Length")
        total = here + int(length) if length else None
        _check_response(file, response, here, total)
        _check_room(part.parent, (total or here) - here, [file])
        if not here:
            part.unlink(missing_ok=True)
            tag.unlink(missing_ok=True)
            # If-Range takes a strong ETag, or else the time of the last change
            etag = response.headers.get("ETag", "")
            if (
                validator := etag
                if etag.startswith('"')
                else response.headers.get("Last-Modified", "")
            ):
                tag.write_text(validator, encoding="utf-8")
        with report_full_disk(file.path), open(part, "ab") as handle:
            while chunk := response.read1(_CHUNK):  # does not wait for a full chunk
                write_bytes(handle, chunk)
                step(len(chunk))
            handle.flush()
            os.fsync(handle.fileno())
    if total is not None and (size := part.stat().st_size) < total:
        raise http.client.IncompleteRead(b"", total - size)


def _check_response(
    file: RemoteFile,
    response: http.client.HTTPResponse | ObjectResponse,
    here: int,
    total: int | None,
) -> None:
    """Check that a response has the requested range and the published size."""
    sent = response.headers.get("Content-Range", "")
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", sent)
    if here and (not match or int(match[1]) != here or match[2] not in ("*", str(total))):
        sent = sent or "a part without Content-Range"
        raise ServiceError(
            f"{file.url}: requested bytes from {here:,} on, but the server sent {sent!r}; "
            f"{_RETRY}, or remove {file.sidecar('part')} to start over"
        )
    if file.size is not None and total not in (None, file.size):
        sizes = f"the server's file has {total:,} bytes, the published one {file.size:,}"
        raise ServiceError(f"{file.url}: {sizes}; try again later or elsewhere")


def _open(url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    # "client/version (contact) library/version":
    # https://foundation.wikimedia.org/wiki/Policy:User-Agent_policy
    contact = os.environ.get(CONTACT) or "question answering; https://arxiv.org/abs/2305.14010"
    agent = f"ifqa/{__version__} ({contact}) Python-urllib/{platform.python_version()}"
    request = urllib.request.Request(url, headers={"User-Agent": agent, **headers})
    try:
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()  # frees the connection; status and headers stay readable
        raise
    return response


def _check_room(folder: Path, needed: int, files: Sequence[RemoteFile]) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        name = files[0].url if len(files) == 1 else f"the download of {len(files)} files"
        raise IfqaError(
            f"{name} needs {needed:,} bytes more, but {folder} has {free:,} free; make room"
        )
