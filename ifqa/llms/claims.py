"""Who asks for which completion: of all threads and processes that want the same one, one at a time."""

import errno
import os
import threading
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: there only the threads of a process are kept apart
    fcntl = None  # type: ignore[assignment]

_HELD = {errno.EACCES, errno.EAGAIN}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}  # a network's file system without them


class Claims:
    """Claims on the completions of a store: each a lock on one byte of an empty file, whose place its key gives.

    The system gives back what a process held, however it ended, so no claim outlives who made it. Such locks are the
    process's, and go with the first of its handles on the file that is closed: all of a process share one, and
    remember which thread holds what.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".claims"
        self._lock = threading.Lock()
        self._held: set[int] = set()
        self._file = -1

    def take(self, key: str) -> bool:
        """Claim a completion by its key, in hexadecimal; False where somebody else asks for it."""
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
        """Give a claim back; its completion is in the store, or will not be."""
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
        """Let go of the file when nothing is held."""
        if not self._held:
            os.close(self._file)


_ALL: dict[Path, Claims] = {}
_LOCK = threading.Lock()


def claims_on(folder: Path) -> Claims:
    """The claims on the completions of a folder, the same for all who ask in this process."""
    with _LOCK:
        return _ALL.setdefault(folder.resolve(), Claims(folder.resolve()))
