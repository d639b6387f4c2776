"""The cache of completions: an SQLite file that keeps every answer that was paid for, and says who is asking for which.

Every program that reads SQLite can look into it: `completions` has a row for each, `record` its request and answer as JSON.
Any number of threads and processes of one machine may use it at once.
"""

import errno
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from heapq import nlargest
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

from filelock import FileLock, Timeout

from ifqa.errors import IfqaError
from ifqa.protocols import ProgressCallback
from ifqa.records import Completion, Request
from ifqa.settings import StoredModel, StrictModel

logger = logging.getLogger(__name__)

FILE = "completions.sqlite"
VERSION = 1  # of a record, and of the tables
LONGEST_TEXT = 200_000  # characters kept of an answer; a line of a file holds several answers, and is read up to 16 MB
BUSY = 60.0  # seconds to wait for another process that writes

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS completions (key TEXT PRIMARY KEY, record TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, asker TEXT NOT NULL)",
    f"PRAGMA user_version = {VERSION}",
)
_REMOTE_FILE_SYSTEMS = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse",
    "gpfs",
    "lustre",
    "ncp",
    "nfs",
    "smb",
    "virtiofs",
)
_TOKEN_BYTES = 32  # at most, of an answer's token as JSON
_LOCK_SUFFIX = ".asking"
_PAGE = 4096 + 24  # bytes of a page and its header in SQLite's log
_PAGES = 8  # that a completion changes beside those of its own: of the tables, their indexes and the list of free pages
_FULL = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}  # a quota, or a limit on a file's size, is an error of input or output


def truncate_completion(completion: Completion) -> Completion:
    """A completion whose text is cut after LONGEST_TEXT characters; it then ends for its length, as at a limit on tokens."""
    fits = len(completion.text) <= LONGEST_TEXT
    return completion if fits else replace(completion, text=completion.text[:LONGEST_TEXT], finish="length")


def sum_tokens(completions: Iterable[Completion], before: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Tokens of prompts and of answers, added to those `before`. Cached completions count; repeated ones count each time."""
    tokens = [(completion.prompt_tokens, completion.completion_tokens) for completion in completions]
    return sum((prompt for prompt, _ in tokens), before[0]), sum((answer for _, answer in tokens), before[1])


def request_json(model: str, request: Request) -> dict[str, object]:
    """What identifies a completion, as JSON: model, messages or text, parameters, number of the sample."""
    messages = [list(message) for message in request.messages]
    prompt = {"messages": messages} if messages else {"text": request.text}
    parameters = {"max_tokens": request.max_tokens, "temperature": float(request.temperature)}
    return {"model": model, **prompt, **parameters, "stop": list(request.stop), "sample": request.sample}


def cache_key(model: str, request: Request) -> str:
    """The SHA-256 of `content`, by which a completion is found; two models with one name are one model."""
    canonical = json.dumps(request_json(model, request), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def format_record(model: str, request: Request, completion: Completion) -> str:
    """A completion and its request as one line of JSON, in the cache and in a recording."""
    if completion.error:
        raise ValueError("a failed request has nothing to keep")
    values = {
        "text": completion.text, "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens, "finish": completion.finish,
    }  # fmt: skip
    # in ASCII, as a lone surrogate cannot be written in UTF-8
    return json.dumps({"version": VERSION, "request": request_json(model, request), "completion": values})


def check_store(folder: str) -> None:
    """Refuse a folder for completions that a file names outside of the working directory."""
    path = Path(folder)
    if path.anchor or ".." in path.parts:
        raise IfqaError(
            f"store = {folder!r} is outside of the working directory; wanted a folder in it, as 'completions'"
        )


class StoredCompletion(StrictModel):
    """The completion of a record."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish: str


class CacheRecord(StoredModel):
    """A record of the cache, and a line of a recording."""

    version: int
    request: dict[str, object]
    completion: StoredCompletion


class CompletionCache:
    """The completions of a folder, by the SHA-256 of their requests.

    The file is made with the first completion, readable by its owner alone. Files of earlier versions (`ab/abcdef….json`, one a
    completion, named by the same key) are read where the table has no row, and left as they are.
    """

    def __init__(self, folder: Path = Path("completions")) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE

    def has_completions(self) -> bool:
        """Whether it holds any completion."""
        with self.reading() as connection:
            stored = connection and connection.execute("SELECT 1 FROM completions LIMIT 1").fetchone()
        return bool(stored) or any(self.folder.glob("??/*.json"))

    def get(self, model: str, requests: Iterable[Request]) -> dict[Request, Completion]:
        """Those of the requests that have a completion. Each that is damaged counts as none, and a message says so."""
        with self.reading() as connection:
            completions = {request: self.find(connection, model, request) for request in requests}
        return {request: completion for request, completion in completions.items() if completion}

    def missing(self, model: str, requests: Iterable[Request]) -> list[Request]:
        """Those of the requests that have none, each once."""
        unique = dict.fromkeys(requests)
        stored = self.get(model, unique)
        return [request for request in unique if request not in stored]

    def put(self, model: str, completions: Mapping[Request, Completion]) -> None:
        """Store completions; on return they are on the disk."""
        rows = {
            cache_key(model, request): format_record(model, request, completion)
            for request, completion in completions.items()
        }
        if not rows:
            return
        with self.explained("nothing was written"), closing(self.open()) as connection, transaction(connection):
            store_rows(connection, rows)

    def find(
        self, connection: sqlite3.Connection | None, model: str, request: Request, quiet: bool = False
    ) -> Completion | None:
        """A request's completion, from the open file or a file of an earlier version."""
        key = cache_key(model, request)
        row = connection and connection.execute("SELECT record FROM completions WHERE key = ?", (key,)).fetchone()
        path = self.folder / key[:2] / f"{key}.json"
        try:
            record = row[0] if row else path.read_bytes()
        except FileNotFoundError:
            return None
        completion, place = _parse_record(record, request_json(model, request)), f"{self.path}: {key}" if row else path
        if completion is None and not quiet:
            logger.info(f"{place}: not a completion of its request; it will be asked for again")
        return truncate_completion(completion) if completion else None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """The file, opened to read; None if there is none, or none with tables. Its errors are one line."""
        if not self.path.exists():
            yield None
            return
        mode = "rw" if os.access(self.folder, os.W_OK) else "ro&immutable=1"  # to read, SQLite writes files beside it
        with self.explained("nothing was asked", "read completions of"), closing(self._connect(mode)) as connection:
            yield connection if self._version(connection) else None

    def open(self) -> sqlite3.Connection:
        """The file, opened to read and write, and made if there is none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        connection = self._connect("rwc")
        try:
            if is_new:  # By name: closing a handle of our own on the file would end SQLite's locks of this process
                self.path.chmod(0o600)  # a prompt or an answer may be private; files beside it get the same mode
            # A log beside the file needs memory that all processes share; one of the old kind needs locks alone
            _set_journal(connection, "DELETE" if is_remote(self.folder) else "WAL")
            connection.execute("PRAGMA synchronous = EXTRA")  # what is committed survives a loss of power
            connection.execute("PRAGMA temp_store = MEMORY")
            if not self._version(connection):
                with transaction(connection):
                    for statement in _SCHEMA:
                        connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        name = f"{self.path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(name, timeout=BUSY, isolation_level=None, check_same_thread=False, uri=True)

    def _version(self, connection: sqlite3.Connection) -> int:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise IfqaError(f"{self.path} is of version {version}; this ifqa reads {VERSION}: take a newer ifqa")
        return version

    @contextmanager
    def explained(self, state: str, action: str = "write completions into") -> Iterator[None]:
        """Turn an error of the file into one line; `state` says what has been asked or kept, `action` what failed."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self.refusal(error, state, action) from error

    def refusal(self, error: sqlite3.Error | OSError, state: str, action: str = "write completions into") -> IfqaError:
        """The line for an error of the file."""
        code = _error_code(error)
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            mend = "move it away, or put a copy of it there"
            return IfqaError(f"{self.path} is damaged ({error}): {state}, and it was left as it is; {mend}")
        words = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        words = os.strerror(errno.ENOSPC) if code == sqlite3.SQLITE_FULL else words
        mend = "make room or mend that, and run the same command again"
        return IfqaError(f"cannot {action} {self.folder} ({words}): {state}; {mend}")


class CacheWriter:
    """Claims on completions, and disk space reserved for the largest that can be unwritten at the same time.

    A file without a name holds the space. It is filled with random bytes, as a disk that compresses would store zeros in
    no space. If a completion finds the disk full, the file gives space back. All space is released however the process ends.
    Claims hold as long as their asker's lock on a file `ID.asking`, which the system takes from a process that dies.

    Args:
        cache: keeps the completions.
        model: the name that they are kept under.
        requests: what will be asked.
        at_once: how many completions can be paid for and not yet stored, at most.

    Raises:
        IfqaError: the disk lacks the space, or the folder cannot be written to; nothing has been asked.
    """

    def __init__(self, cache: CompletionCache, model: str, requests: Sequence[Request], at_once: int) -> None:
        self._cache, self._model = cache, model
        self._id = secrets.token_hex(8)
        self._unwritten: dict[str, str] = {}
        self._lock = threading.Lock()  # of the connection
        self._reserve = sum(nlargest(at_once, (_max_bytes(model, request) for request in requests)))

    def __enter__(self) -> Self:
        state = f"nothing was asked, {self._reserve:,} bytes must be free"
        with ExitStack() as stack, self._cache.explained(state):
            self._connection = stack.enter_context(closing(self._cache.open()))
            alive = self._owner_lock(self._id)
            with transaction(self._connection):  # nobody looks between the file's making and its locking
                alive.acquire()
            stack.callback(self._release_lock, alive)
            self._ballast = stack.enter_context(TemporaryFile(dir=self._cache.folder, buffering=0))
            written = 0
            while written < self._reserve:
                written += self._ballast.write(os.urandom(min(1 << 20, self._reserve - written)))
            os.fsync(self._ballast.fileno())
            stack.callback(self._delete_claims)
            self._opened = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _delete_claims(self) -> None:
        self._ballast.close()
        with suppress(sqlite3.Error), transaction(self._connection):  # claims that stay lapse
            self._execute("DELETE FROM claims WHERE asker = ?", self._id)

    def _owner_lock(self, asker: str) -> FileLock:
        return FileLock(self._cache.folder / f"{asker}{_LOCK_SUFFIX}", timeout=0, thread_local=False)

    @staticmethod
    def _release_lock(lock: FileLock) -> None:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)

    def claim(self, requests: Collection[Request], limit: int) -> tuple[list[Request], dict[Request, Completion]]:
        """Claim up to `limit` completions that nobody asks for; gives their requests, and completions that are stored by now."""
        with self._lock, self._cache.explained("asking has stopped, what was answered is kept"):
            mine: list[Request] = []
            stored: dict[Request, Completion] = {}
            with transaction(self._connection):
                self._delete_stale_claims()
                claimed = {key for (key,) in self._execute("SELECT key FROM claims")}
                for request in requests:
                    if len(mine) == limit:
                        break
                    if (key := cache_key(self._model, request)) in claimed:
                        continue
                    if completion := self._cache.find(self._connection, self._model, request, quiet=True):
                        stored[request] = completion
                    else:
                        self._execute("INSERT INTO claims VALUES (?, ?)", key, self._id)
                        mine.append(request)
            return mine, stored

    def release(self, request: Request) -> None:
        """Release the claim on a completion that failed; if the file cannot be written to, it is released at the end."""
        with self._lock, suppress(sqlite3.Error), transaction(self._connection):
            self._execute("DELETE FROM claims WHERE key = ? AND asker = ?", cache_key(self._model, request), self._id)

    def keep(self, request: Request, completion: Completion) -> str:
        """Store a completion; returns "", or why asking must stop: the completion needed the reserved space.

        Threads that wait for one another are served by one transaction.

        Raises:
            IfqaError: even with the reserved space, the completion cannot be stored.
        """
        key, why = cache_key(self._model, request), ""
        self._unwritten[key] = format_record(self._model, request, completion)
        with self._lock:
            while key in self._unwritten:
                rows = dict(self._unwritten)
                try:
                    with transaction(self._connection):
                        store_rows(self._connection, rows)
                except sqlite3.Error as error:
                    why = str(self._cache.refusal(error, "asking has stopped, what was answered is kept"))
                    if _error_code(error) not in _FULL or not self._shrink_reserve(_max_bytes(self._model, request)):
                        raise self._cache.refusal(error, "asking has stopped, an answer is lost") from error
                else:
                    for written in rows:
                        del self._unwritten[written]
        return why

    def _shrink_reserve(self, size: int) -> bool:
        """Give reserved space back to the disk; False if none is left."""
        if not self._reserve:
            return False
        self._reserve = max(0, self._reserve - size)
        self._ballast.truncate(self._reserve)
        os.fsync(self._ballast.fileno())
        return True

    def _delete_stale_claims(self) -> None:
        """Delete the claims of askers that have ended without releasing them."""
        askers = {asker for (asker,) in self._execute("SELECT DISTINCT asker FROM claims")}
        askers |= {path.name.removesuffix(_LOCK_SUFFIX) for path in self._cache.folder.glob(f"*{_LOCK_SUFFIX}")}
        for asker in askers - {self._id}:
            lock = self._owner_lock(asker)
            if asker.isalnum() and Path(lock.lock_file).exists():
                try:
                    lock.acquire()
                except Timeout:
                    continue
                self._release_lock(lock)
            self._execute("DELETE FROM claims WHERE asker = ?", asker)

    def _execute(self, statement: str, *values: str) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)


class RequestBatch:
    """The requests of one call of `LanguageModel.complete`: stored ones are not asked, equal ones once.

    Attributes:
        missing: the requests to ask, in their order.
        cached: how many completions came from the cache, or from an equal request.
    """

    def __init__(
        self, cache: CompletionCache, model: str, requests: Sequence[Request], advance: ProgressCallback
    ) -> None:
        self._requests, self._times, self._advance = requests, Counter(requests), advance
        self._done: dict[Request, Completion] = {}
        self.cached = 0
        for request, completion in cache.get(model, self._times).items():
            self.settle(request, completion)
        self.missing = [request for request in self._times if request not in self._done]

    def settle(self, request: Request, completion: Completion) -> None:
        """Take a completion or a failure, and report its requests as done."""
        self._done[request] = completion
        if not completion.error:
            self.cached += self._times[request] - (not completion.cached)
        self._advance(self._times[request])

    def completions(self) -> list[Completion]:
        """One a request, in their order."""
        return [self._done[request] for request in self._requests]


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that writes: all of it is on the disk at its end, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _set_journal(connection: sqlite3.Connection, mode: str) -> None:
    """Set the kind of log, once no other opens the same new file: here alone SQLite itself does not wait."""
    until = time.monotonic() + BUSY
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode = {mode}")
        except sqlite3.OperationalError as error:
            if _error_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def store_rows(connection: sqlite3.Connection, rows: Mapping[str, str]) -> None:
    """Write records by key within a transaction, and release their claims."""
    connection.executemany("INSERT OR REPLACE INTO completions VALUES (?, ?)", rows.items())
    connection.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in rows])


def is_remote(folder: Path) -> bool:
    """Whether a folder is on a file system that other machines write to, or that shares no memory, as far as Linux tells."""
    place, kind = folder.resolve(), ""
    with suppress(OSError):
        mounts = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        points = [(Path(left.split()[4].replace("\\040", " ")), right.split()[0]) for left, right in mounts]
        of_place = ((len(str(at)), n, kind) for n, (at, kind) in enumerate(points) if place.is_relative_to(at))
        kind = max(of_place, default=(0, 0, ""))[2]  # the table of a changed root (chroot) may name none of its mounts
    return kind.startswith(_REMOTE_FILE_SYSTEMS)


def _max_bytes(model: str, request: Request) -> int:
    """Bytes that writing a completion takes at most, in SQLite's log."""
    size = len(format_record(model, request, Completion())) + _TOKEN_BYTES * request.max_tokens
    return (-(-size // 4096) + _PAGES) * _PAGE


def _error_code(error: Exception) -> int:
    """The kind of an error of SQLite, without its details; a full disk's is the same outside of SQLite."""
    if isinstance(error, OSError):
        return sqlite3.SQLITE_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else 0
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _parse_record(record: str | bytes, request: dict[str, object]) -> Completion | None:
    """The completion of a record; None if it is of another request, or damaged."""
    try:
        values = CacheRecord.model_validate(json.loads(record))
    except (ValueError, RecursionError):
        return None
    same = values.version == VERSION and values.request == request
    return Completion(**values.completion.model_dump(), cached=True) if same else None
