"""The process that reads documents: a file that breaks it is unreadable for that reason, and the
next file is read.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.worker import Worker, tell_share


def read(request, content):
    """Stands in for the readers, in the process."""
    match content:
        case b"crash":
            os.abort()
        case b"hang":
            re.match("(a+)+$", "a" * 99 + "b")  # in C, as PDFium would
        case b"memory":
            bytes(1 << 31)
        case b"raise":
            int("1" * 5_000)
        case b"refuse":
            raise UnreadableFile("no text in it")
        case b"refuse at length":
            raise UnreadableFile("no column " * 1_000_000)
        case b"long":
            for share in (0.25, 0.5, 0.75):
                tell_share(share)
                time.sleep(0.35)
        case b"print":
            print("not an answer")
        case b"mutter":
            print("out of memory", file=sys.stderr, flush=True)
    return {"process": os.getpid()}, content.upper()


@pytest.fixture(scope="module")
def worker():
    worker = Worker(f"{__name__}:read", seconds=2, memory=1 << 30)
    yield worker
    worker.close()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hang", "it takes more than 2 seconds to read"),
        (b"memory", "it takes more than 1.1 GB of memory to read"),
        (
            b"raise",
            (
                r"its reader ended \(ValueError: Exceeds the limit \(4300 digits\) for integer "
                r"string conversion"
            ),
        ),
        (b"refuse", "no text in it"),
        (b"refuse at length", "^(no column ){10,}.{,10}$"),
    ],
)
def test_an_unreadable_file_does_not_affect_the_next(worker, content, reason):
    with pytest.raises(UnreadableFile, match=reason) as caught:
        worker.read({}, content)
    assert len(str(caught.value)) <= 300
    assert worker.read({}, b"fine")[1] == b"FINE"


def processes_of(worker):
    """The processes that read some files, of which two make their reader print messages."""
    files = (b"a", b"print", b"mutter", b"b" * 1_000_000)
    return {worker.read({}, file)[0]["process"] for file in files}


def test_one_process_reads_many_files_whatever_it_prints(worker):
    assert len(processes_of(worker)) == 1


def test_earlier_messages_of_a_process_are_no_part_of_a_reason(worker):
    processes_of(worker)
    with pytest.raises(
        UnreadableFile,
        match=r"its reader ended \(signal 6: it is damaged, or takes more than 1.1 GB",
    ):
        worker.read({}, b"crash")


@pytest.mark.parametrize(("content", "ending"), [(b"", "SIGTERM"), (b"hang", "SIGKILL")])
def test_the_process_ends_with_its_parent(content, ending):
    code = (
        "import os, signal, threading, time; from ifqa.corpus.documents.worker import Worker\n"
        f"worker = Worker('{__name__}:read'); print(worker.read({{}}, "
        "b'')[0]['process'], flush=True)\n"
        f"threading.Thread(target=worker.read, args=({{}}, {content!r})).start()\n"
        f"time.sleep(0.3); os.kill(os.getpid(), signal.{ending})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    child = Path(f"/proc/{int(done.stdout)}")
    deadline = time.monotonic() + 10
    while child.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not child.exists()


def test_a_long_file_tells_how_much_of_it_is_read_at_most_twice_a_second(worker):
    shares: list[float] = []
    assert worker.read({}, b"long", shares.append)[1] == b"LONG"
    assert shares == [0.25, 0.75]
    tell_share(0.5)  # this process reads no request
