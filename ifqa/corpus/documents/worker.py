"""Reads documents in a process of its own: a file that crashes, hangs, or takes too much memory ends that process alone.

The process gets a line of JSON, the request, with the number of `bytes` that follow it, and these. It answers in the same way.
An exception ends it; the last line that it wrote to stderr is the reason. A new one starts with the next file.
"""

import atexit
import faulthandler
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.storage.resources import PACKAGE
from ifqa.workers.pool import block_interrupts

SECONDS = 300.0  # for a file; a PDF of 1,000 pages takes a few
MEMORY = 3 << 30  # bytes of address space of the process; macOS and Windows do not hold it to that
_REASON = 300  # characters

_Answer = tuple[dict[str, Any], bytes]


class Worker:
    """A process that reads one document after another with the function `target`, "module:function".

    It starts with the first document. Any number of threads may call `read`; they take turns.
    """

    def __init__(self, target: str, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._target, self._seconds, self._memory = target, seconds, memory
        self._running: tuple[subprocess.Popen[bytes], IO[bytes]] | None = None  # and what it says on stderr
        self._lock = threading.Lock()
        atexit.register(self.close)

    def read(self, request: Mapping[str, object], data: bytes) -> _Answer:
        """What `target` gives for a request and the bytes of a file.

        Raises:
            Unreadable: `target` raised that, or the process ended over the file.
        """
        with self._lock:
            answer = None
            try:
                process, said = self._started()
                # the process shares the place in the file: what it said of an earlier document is no reason of this one
                said.seek(0)
                said.truncate()
                if process.stdin and process.stdout:
                    with suppress(BrokenPipeError):  # the missing answer tells
                        _send(process.stdin, request, data)
                    answer = _receive(process.stdout)
                if answer is None:
                    raise UnreadableFile(self._reason(process.wait(), said))
            finally:
                if not answer:  # it ended, or the question was interrupted
                    self.close()
        if "why" in answer[0]:
            raise UnreadableFile(answer[0]["why"])
        return answer

    def _started(self) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
        if self._running is None or self._running[0].poll() is not None:
            self.close()
            said: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with the process
            code = "from ifqa.corpus.documents.worker import main; main()"
            path = os.pathsep.join([str(PACKAGE.parent), *filter(None, sys.path)])
            with block_interrupts():  # the parent decides; the process ends with its input
                process = subprocess.Popen(
                    [sys.executable, "-P", "-c", code, self._target, str(self._seconds), str(self._memory)],
                    env=os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                )
            self._running = process, said
        return self._running

    def _reason(self, code: int, said: IO[bytes]) -> str:
        """Why the process ended, by its exit code and what it said."""
        said.seek(0)
        lines = said.read().decode(errors="replace").split("\n")
        if any(line.startswith("Timeout (") for line in lines):  # faulthandler's
            return f"it takes more than {self._seconds:g} seconds to read"
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if last.startswith("MemoryError") or "bad_alloc" in last or "out of memory" in last.lower():
            return f"it takes more than {self._memory / 1e9:.1f} GB of memory to read"
        damage = f"signal {-code}: it is damaged, or takes more than {self._memory / 1e9:.1f} GB of memory"
        return f"its reader ended ({last[:_REASON] or (damage if code < 0 else f'exit code {code}')})"

    def close(self) -> None:
        """End the process, if it runs."""
        if self._running is not None:
            process, said = self._running
            self._running = None
            process.kill()
            with suppress(BrokenPipeError):  # some of a file was not sent yet
                process.communicate()
            said.close()


def _send(handle: IO[bytes], facts: Mapping[str, object], data: bytes) -> None:
    handle.write(json.dumps({**facts, "bytes": len(data)}).encode() + b"\n")
    handle.write(data)
    handle.flush()


def _receive(handle: IO[bytes]) -> _Answer | None:
    line = handle.readline()
    if not line.endswith(b"\n"):
        return None
    facts = json.loads(line)
    return facts, handle.read(facts.pop("bytes"))


def main() -> None:
    """The program of the process: `python -c ... TARGET SECONDS MEMORY`."""
    target, seconds, memory = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    module, _, name = target.partition(":")
    read: Callable[[Mapping[str, Any], bytes], _Answer] = getattr(__import__(module, fromlist=[name]), name)
    gc.set_threshold(100_000)  # a document is a million small objects, none of them garbage: 700 takes 40% longer
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit; macOS refuses it
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    while received := _receive(requests):
        faulthandler.dump_traceback_later(seconds, exit=True)
        _end_with_parent(True)
        try:
            answer = read(*received)
        except UnreadableFile as error:
            answer = {"why": str(error)[:_REASON]}, b""
        faulthandler.cancel_dump_traceback_later()
        _end_with_parent(False)
        _send(answers, *answer)


def _end_with_parent(ends: bool) -> None:
    """Whether a signal ends this process once its input is closed, whatever it is doing. Not on Windows."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(0, fcntl.F_GETFL)
        fcntl.fcntl(0, fcntl.F_SETFL, flags | os.O_ASYNC if ends else flags & ~os.O_ASYNC)
