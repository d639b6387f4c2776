"""Guards the store while requests are out: one asker per completion, and disk space reserved for the answers."""

import errno
import os
import threading
from collections.abc import Sequence
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

from ifqa.errors import IfqaError
from ifqa.llms.claims import claims_on
from ifqa.llms.completions import Store, content, json_of
from ifqa.records import Completion, Request

_OF_A_TOKEN = 32  # bytes, at most, of an answer's token in the store's JSON
_BLOCK = 4096  # bytes of a disk block: the least that a file or a folder's entry takes
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Keeper:
    """Claims on completions, and disk space reserved for the largest that can be unwritten at the same time.

    A file without a name holds the space. It is filled with random bytes, as a disk that compresses would store zeros in
    no space. If a completion finds the disk full, the file gives space back. All space and all claims are released at the
    end, however the process ends.

    Args:
        store: keeps the completions.
        model: the name that they are kept under.
        requests: what will be asked.
        at_once: how many completions can be paid for and not yet stored, at most.

    Raises:
        IfqaError: the disk lacks the space, or the folder cannot be written to; nothing has been asked.
    """

    def __init__(self, store: Store, model: str, requests: Sequence[Request], at_once: int) -> None:
        self._store, self._model = store, model
        self._lock = threading.Lock()
        self._claimed: dict[Request, str] = {}
        self._left = sum(sorted((_most(model, request) for request in requests), reverse=True)[:at_once])
        try:
            store.folder.mkdir(parents=True, exist_ok=True)
            self._claims = claims_on(store.folder)
            self._file = TemporaryFile(dir=store.folder, buffering=0)  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise self._refusal(error, "nothing was asked") from error
        try:
            written = 0
            while written < self._left:
                written += self._file.write(os.urandom(min(1 << 20, self._left - written)))
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.close()
            raise self._refusal(error, f"nothing was asked, {self._left:,} bytes must be free") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        for request in list(self._claimed):
            self.release(request)

    def claim(self, request: Request) -> bool:
        """Claim a request's completion; False if another thread or process is asking for it."""
        key = self._store.path(self._model, request).stem
        if taken := self._claims.take(key):
            self._claimed[request] = key
        return taken

    def release(self, request: Request) -> None:
        """Release the claim on a completion; it is in the store, or failed."""
        self._claims.give(self._claimed.pop(request))

    def get(self, request: Request) -> Completion | None:
        """A completion that someone else has stored in the meantime."""
        return self._store.get(self._model, request, quiet=True)

    def keep(self, request: Request, completion: Completion) -> str:
        """Store a completion; returns "", or why asking must stop: the completion needed the reserved space.

        Raises:
            IfqaError: even with the reserved space, the completion cannot be stored.
        """
        why = ""
        while True:
            try:
                self._store.put(self._model, request, completion)
            except OSError as error:
                why = str(self._refusal(error, "asking has stopped, what was answered is kept"))
                if error.errno not in _NO_ROOM or not self._give(_most(self._model, request)):
                    raise self._refusal(error, "asking has stopped, an answer is lost") from error
            else:
                return why

    def _give(self, size: int) -> bool:
        """Give reserved space back to the disk; False if none is left."""
        with self._lock:
            if not self._left:
                return False
            self._left = max(0, self._left - size)
            self._file.truncate(self._left)
            os.fsync(self._file.fileno())
            return True

    def _refusal(self, error: OSError, what: str) -> IfqaError:
        mend = "make room" if error.errno in _NO_ROOM else "mend that"
        words = f"cannot write completions into {self._store.folder} ({os.strerror(error.errno or 0)})"
        return IfqaError(f"{words}: {what}; {mend} and run the same command again")


def _most(model: str, request: Request) -> int:
    """Bytes on the disk that a completion takes at most: its file and its folder, in whole blocks."""
    most = len(json_of(content(model, request), Completion())) + _OF_A_TOKEN * request.max_tokens
    return -(-most // _BLOCK) * _BLOCK + 2 * _BLOCK
