"""Archives of files (tar), whose bytes depend on the files alone, and which are unpacked safely."""

import errno
import io
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO

from ifqa.errors import FormatError
from ifqa.progress import bar

#: What the system says of a member's name that cannot be a file's.
_WRONG_NAME = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG)


def pack(handle: IO[bytes], files: Iterable[tuple[str, Path | bytes]]) -> None:
    """Write an archive that depends on the names and the content of files alone.

    `files` are pairs of a name in the archive and a path, or the content itself. Nothing is
    compressed: Lucene's files are already.
    """
    with (
        tarfile.open(fileobj=handle, mode="w", format=tarfile.PAX_FORMAT) as archive,
        bar("packing", None, "bytes") as advance,
    ):
        for name, content in files:
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.size = content.stat().st_size
                with open(content, "rb") as source:
                    archive.addfile(member, source)
            advance(member.size)


def unpack(archive: Path, folder: Path, mend: str) -> None:
    """Unpack an archive, compressed or not; links, devices and paths outside of the folder are
    refused.

    `mend` ends the message of a FormatError.
    """
    if not tarfile.is_tarfile(archive):
        raise FormatError(f"{archive} is not an archive (tar, also .gz, .bz2 or .xz); {mend}")
    try:
        with tarfile.open(archive, "r:*") as tar, bar("unpacking", None, "bytes") as advance:
            for member in tar:
                _extract(tar, member, folder)
                advance(member.size)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (None, *_WRONG_NAME):
            raise
        reason = " ".join(str(error).split())[:200]
        raise FormatError(
            f"{archive} cannot be unpacked ({type(error).__name__}: {reason}); {mend}"
        ) from error


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a file of an archive; `extractall` is safe only from Python 3.11.4 on."""
    if member.isdir():
        return
    path = PurePosixPath(member.name)
    source = tar.extractfile(member) if member.isfile() else None
    if source is None or path.is_absolute() or ".." in path.parts:
        raise tarfile.ExtractError(f"{member.name!r:.80} is a link, or outside of the archive")
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with source, open(place, "wb") as handle:
        shutil.copyfileobj(source, handle)
