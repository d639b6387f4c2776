"""Standard input as a source of passages."""

import hashlib
import sys
from io import RawIOBase
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Pipe(RawIOBase):
    """Standard input. It can be read only once, so its bytes are counted and hashed while it is read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        """Always True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read at most `len(buffer)` bytes into the buffer; returns how many."""
        room = memoryview(buffer)
        data = self._source.read(len(room))
        room[: len(data)] = data
        self._digest.update(data)
        self.count += len(data)
        return len(data)

    def facts(self) -> tuple[int, int, str]:
        """Bytes read so far, 0 for the time of change, and SHA-256: the same shape as `file_facts`."""
        return self.count, 0, self._digest.hexdigest()


def something_is_piped_in() -> bool:
    """Whether standard input is open and is not a terminal."""
    return sys.stdin is not None and not sys.stdin.isatty()
