"""Reads documents in a separate process, so that a file that crashes, hangs or exhausts memory ends
only that process.

A request is a line of JSON with the number of `bytes` that follow, then the bytes; responses have
the same form. An error ends the process, and its last line on stderr is the reason. The next file
starts a new process.
"""

import atexit
import faulthandler
import gc
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.protocols import ProgressCallback, no_progress
from ifqa.storage.resources import PACKAGE
from ifqa.workers.pool import block_interrupts

SECONDS = 300.0  # for a file; a PDF of 1,000 pages takes a few
MEMORY = 3 << 30  # bytes of address space of the process; macOS and Windows do not enforce it
_REASON = 300  # characters
_SHARE = "share"  # the key of a message about a file that is still being read

_responses: IO[bytes] | None = None  # in the process: its responses
_next_share = 0.0  # time of the next message of `tell_share`

_Message = tuple[dict[str, Any], bytes]


class Worker:
    """A process that reads documents with the function `target` ("module:function").

    The first document starts it.
    """

    def __init__(self, target: str, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._target = target
        self._seconds = seconds
        self._memory = memory
        # The process and the file of its stderr
        self._running: tuple[subprocess.Popen[bytes], IO[bytes]] | None = None
        self._lock = threading.Lock()
        atexit.register(self.close)

    def read(
        self, request: Mapping[str, object], content: bytes, advance: ProgressCallback = no_progress
    ) -> _Message:
        """Call `target` with a request and the bytes of a file.

        Raises UnreadableFile if it does, or if the process ends.

        `advance` gets the share of the file that is read so far.
        """
        with self._lock:
            response = None
            try:
                process, stderr = self._start()
                # drop the messages about earlier documents; the process shares the file's position
                stderr.seek(0)
                stderr.truncate()
                if process.stdin and process.stdout:
                    with suppress(BrokenPipeError):  # then there is no response
                        _send(process.stdin, request, content)
                    while (response := _receive(process.stdout)) and _SHARE in response[0]:
                        advance(response[0][_SHARE])
                if response is None:
                    raise UnreadableFile(self._reason(process.wait(), stderr))
            finally:
                if not response:  # the process ended, or this call was interrupted
                    self.close()
        if "why" in response[0]:
            raise UnreadableFile(response[0]["why"])
        return response

    def _start(self) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
        if self._running is None or self._running[0].poll() is not None:
            self.close()
            stderr: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the process
            code = "from ifqa.corpus.documents.worker import main; main()"
            path = os.pathsep.join([str(PACKAGE.parent), *filter(None, sys.path)])
            with block_interrupts():  # the parent decides; the process ends with its input
                process = subprocess.Popen(
                    [
                        sys.executable,
                        "-P",
                        "-c",
                        code,
                        self._target,
                        str(self._seconds),
                        str(self._memory),
                    ],
                    env=os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                )
            self._running = process, stderr
        return self._running

    def _reason(self, code: int, stderr: IO[bytes]) -> str:
        """Why the process ended."""
        stderr.seek(0)
        lines = stderr.read().decode(errors="replace").split("\n")
        if any(line.startswith("Timeout (") for line in lines):  # faulthandler's
            return f"it takes more than {self._seconds:g} seconds to read"
        message = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if (
            message.startswith("MemoryError")
            or "bad_alloc" in message
            or "out of memory" in message.lower()
        ):
            return f"it takes more than {self._memory / 1e9:.1f} GB of memory to read"
        damage = (
            f"signal {-code}: it is damaged, or takes more than "
            f"{self._memory / 1e9:.1f} GB of memory"
        )
        return (
            "its reader ended "
            f"({message[:_REASON] or (damage if code < 0 else f'exit code {code}')})"
        )

    def close(self) -> None:
        """End the process if it is running."""
        if self._running is not None:
            process, stderr = self._running
            self._running = None
            process.kill()
            with suppress(BrokenPipeError):  # a part of a file was not sent yet
                process.communicate()
            stderr.close()


def _send(handle: IO[bytes], facts: Mapping[str, object], content: bytes) -> None:
    handle.write(json.dumps({**facts, "bytes": len(content)}).encode() + b"\n")
    handle.write(content)
    handle.flush()


def _receive(handle: IO[bytes]) -> _Message | None:
    line = handle.readline()
    if not line.endswith(b"\n"):
        return None
    facts = json.loads(line)
    return facts, handle.read(facts.pop("bytes"))


def tell_share(share: float) -> None:
    """Tell the calling process, at most twice a second, the share of the file that is read so far.

    Elsewhere do nothing.
    """
    global _next_share
    if _responses and time.monotonic() >= _next_share:
        _next_share = time.monotonic() + 0.5
        _send(_responses, {_SHARE: share}, b"")


def main() -> None:
    """The program of the process: `python -c ... TARGET SECONDS MEMORY`."""
    target = sys.argv[1]
    seconds = float(sys.argv[2])
    memory = int(sys.argv[3])
    read: Callable[[Mapping[str, Any], bytes], _Message] = pkgutil.resolve_name(target)
    # A document is a million small live objects: the default of 700 takes 40% longer
    gc.set_threshold(100_000)
    global _responses
    requests = sys.stdin.buffer
    responses = os.fdopen(os.dup(1), "wb")
    _responses = responses
    os.dup2(2, 1)  # so that output of libraries does not corrupt the responses
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit; macOS refuses it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    while received := _receive(requests):
        faulthandler.dump_traceback_later(seconds, exit=True)
        _end_with_parent(True)
        try:
            response = read(*received)
        except UnreadableFile as error:
            response = {"why": str(error)[:_REASON]}, b""
        faulthandler.cancel_dump_traceback_later()
        _end_with_parent(False)
        _send(responses, *response)


def _end_with_parent(ends: bool) -> None:
    """Set whether a signal ends this process as soon as its input is closed, even within a file.

    Not on Windows.
    """
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(0, fcntl.F_GETFL)
        fcntl.fcntl(0, fcntl.F_SETFL, flags | os.O_ASYNC if ends else flags & ~os.O_ASYNC)
