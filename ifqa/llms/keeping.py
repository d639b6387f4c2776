"""The store while something is asked: each completion is asked for by one at a time, and there is room to keep it."""

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

_OF_A_TOKEN = 32  # bytes of a token of an answer, at most, as the store's JSON writes it
_BLOCK = 4096  # bytes of the smallest piece that a file or a folder's entry takes
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Keeper:
    """Claims on completions, and room for the largest that can be unwritten at once, held by a file without a name.

    Its bytes are real and random, for a disk that packs them would find no room in zeros. Its room goes back to the disk
    when a completion finds none. All room and all claims go back at the end, however the process ends.

    Args:
        store: where the completions are kept.
        model: under whose name.
        requests: what will be asked.
        at_once: how many of them are paid for and not yet kept, at most.

    Raises:
        IfqaError: there is no such room, or nothing can be written there; nothing has been asked.
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
        """Claim a request's completion; False where another thread or process asks for it."""
        key = self._store.path(self._model, request).stem
        if taken := self._claims.take(key):
            self._claimed[request] = key
        return taken

    def release(self, request: Request) -> None:
        """Let others ask for a completion, which is in the store or will not be."""
        self._claims.give(self._claimed.pop(request))

    def get(self, request: Request) -> Completion | None:
        """A completion that somebody has kept in the meantime."""
        return self._store.get(self._model, request, quiet=True)

    def keep(self, request: Request, completion: Completion) -> str:
        """Keep a completion; "", or why nothing more may be asked: it took the room that was held for it.

        Raises:
            IfqaError: it could not be kept even so.
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
        """Give room back to the disk; False where none is left."""
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
    """Bytes of the disk that a completion takes at most: its file, in whole pieces, and its folder."""
    most = len(json_of(content(model, request), Completion())) + _OF_A_TOKEN * request.max_tokens
    return -(-most // _BLOCK) * _BLOCK + 2 * _BLOCK
