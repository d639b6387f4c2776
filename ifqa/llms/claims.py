"""Claims on completions: of all threads and processes that want a completion, one at a time asks for it."""

import errno
import os
import threading
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: claims hold between the threads of a process only
    fcntl = None  # type: ignore[assignment]

_HELD = {errno.EACCES, errno.EAGAIN}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}  # a network file system without locks


class Claims:
    """Claims on the completions of a store. A claim is a lock on one byte of an empty file; the key gives the byte.

    The system releases a process's locks however the process ends, so no claim outlives its owner. A process loses its
    locks as soon as it closes any handle on the file. So all threads of a process share one handle, and `_held` says
    which claims are taken.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".claims"
        self._lock = threading.Lock()
        self._held: set[int] = set()
        self._file = -1

    def take(self, key: str) -> bool:
        """Claim a completion by its key, in hexadecimal; False if someone else asks for it."""
        place = int(key[:15], 16)
        with self._lock:
            if place in self._held:
                return False
            if not self._held:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                if self._take(place):
                    self._held.add(place)
            finally:
                self._close()
            return place in self._held

    def give(self, key: str) -> None:
        """Release a claim; its completion is in the store, or failed."""
        place = int(key[:15], 16)
        with self._lock:
            self._held.remove(place)
            if fcntl:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)
            self._close()

    def _take(self, place: int) -> bool:
        if not fcntl:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except OSError as error:
            if error.errno in _HELD:
                return False
            if error.errno not in _NO_LOCKS:
                raise
        return True

    def _close(self) -> None:
        """Close the file when no claim is held."""
        if not self._held:
            os.close(self._file)


_ALL: dict[Path, Claims] = {}
_LOCK = threading.Lock()


def claims_on(folder: Path) -> Claims:
    """The claims on a folder's completions; one object per process and folder."""
    with _LOCK:
        return _ALL.setdefault(folder.resolve(), Claims(folder.resolve()))
