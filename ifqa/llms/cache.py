"""The cache of completions: an SQLite file with every completion, and with claims on those that are
being requested.

A row of `completions` holds a request and its completion as JSON. Threads and processes of one
machine may share the file.
"""

import errno
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from heapq import nlargest
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any, Self

from filelock import FileLock, Timeout
from pydantic import Field

from ifqa.errors import ConfigError, DamagedArtifact, IfqaError
from ifqa.protocols import ProgressCallback
from ifqa.records import Completion, Request, ToolCall, ToolTurn
from ifqa.settings import StoredModel, StrictModel

logger = logging.getLogger(__name__)

FILE = "completions.sqlite"
VERSION = 1  # of records and tables
# Characters of an answer; lines of files hold several answers and are read up to 16 MB
LONGEST_TEXT = 200_000
BUSY = 60.0  # seconds to wait while another process writes

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS completions (key TEXT PRIMARY KEY, record TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, asker TEXT NOT NULL)",
    f"PRAGMA user_version = {VERSION}",
)
# Files of 0.2 lack it
_SERVERS = "CREATE TABLE IF NOT EXISTS servers (model TEXT PRIMARY KEY, facts TEXT NOT NULL)"
_TOKEN_BYTES = 56  # upper bound for a token as JSON, with its end and log probability
_LOCK_SUFFIX = ".asking"
_PAGE = 4096 + 24  # bytes of a page and its header in SQLite's journal
# In addition to the completion's: eight of tables, indexes and the free list, and these and a
# header in the journal
_PAGES = 17
# An exceeded quota or file size limit is an I/O error
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def truncate_completion(completion: Completion) -> Completion:
    """The completion, cut after LONGEST_TEXT characters.

    `finish` is then "length", as at a limit on tokens. Calls beyond as many characters are left
    out.
    """
    if completion.calls:
        sizes = accumulate(len(call.name) + len(call.arguments) for call in completion.calls)
        calls = [
            call for call, size in zip(completion.calls, sizes, strict=True) if size <= LONGEST_TEXT
        ]
        completion = replace(completion, calls=tuple(calls))
    if len(completion.reasoning) > LONGEST_TEXT:
        completion = replace(completion, reasoning=completion.reasoning[:LONGEST_TEXT])
    if len(completion.text) <= LONGEST_TEXT:
        return completion
    text = completion.text[:LONGEST_TEXT]
    return replace(completion, text=text, finish="length", logprobs=())


def sum_tokens(
    completions: Iterable[Completion], before: tuple[int, int] = (0, 0)
) -> tuple[int, int]:
    """Tokens of prompts and of answers, plus those `before`.

    Cached and repeated completions count too.
    """
    tokens = [
        (completion.prompt_tokens, completion.completion_tokens) for completion in completions
    ]
    return sum((prompt for prompt, _ in tokens), before[0]), sum(
        (answer for _, answer in tokens), before[1]
    )


def request_json(model: str, request: Request) -> dict[str, object]:
    """The identity of a completion as JSON: model, messages or text, parameters, sample number."""
    messages = [list(message) for message in request.messages]
    prompt = {"messages": messages} if messages else {"text": request.text}
    parameters = {"max_tokens": request.max_tokens, "temperature": float(request.temperature)}
    # Requests of earlier versions lack these keys
    later: dict[str, object] = {"schema": request.schema} if request.schema else {}
    later |= {"tools": request.tools} if request.tools else {}
    later |= {"turns": [_turn_json(turn) for turn in request.turns]} if request.turns else {}
    return {
        "model": model,
        **prompt,
        **parameters,
        "stop": list(request.stop),
        "sample": request.sample,
        **later,
    }


def _turn_json(turn: ToolTurn) -> list[object]:
    return [turn.text, [list(call) for call in turn.calls], list(turn.results)]


def request_from_json(values: Mapping[str, Any]) -> Request:
    """The request of `request_json`, whose keys may be missing; ValueError if it is none."""
    messages = tuple((role, text) for role, text in values.get("messages", ()))
    turns = tuple(
        ToolTurn(text, _calls_from_json(calls), tuple(results))
        for text, calls, results in values.get("turns", ())
    )
    lists = {"messages": messages, "stop": tuple(values.get("stop", ())), "turns": turns}
    known = {key: value for key, value in values.items() if key != "model"}
    return Request(**known | lists)


def _calls_from_json(calls: Iterable[Sequence[str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(name, arguments) for name, arguments in calls)


def cache_key(model: str, request: Request) -> str:
    """The SHA-256 of `request_json`. Models with the same name share completions."""
    canonical = json.dumps(request_json(model, request), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def request_seed(request: Request) -> int:
    """The seed of a request's sample: 63 bits of the SHA-256 of its content and sample number."""
    return int(cache_key("", request)[:16], 16) >> 1


def format_record(model: str, request: Request, completion: Completion) -> str:
    """A completion, or a permanent failure, and its request as one line of JSON, in the cache and
    in a recording.
    """
    if completion.error and not completion.permanent:
        raise ValueError("a request that failed for now has nothing to store")
    values = {
        "text": completion.text,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "finish": completion.finish,
    }
    # Keys that most completions lack, and that earlier versions do not know
    values |= {"reasoning": completion.reasoning} if completion.reasoning else {}
    values |= {"error": completion.error} if completion.error else {}
    values |= {"logprobs": completion.logprobs} if completion.logprobs else {}
    values |= {"calls": completion.calls} if completion.calls else {}
    # ASCII, as UTF-8 cannot encode a lone surrogate
    return json.dumps(
        {"version": VERSION, "request": request_json(model, request), "completion": values}
    )


def check_store(folder: str) -> None:
    """Refuse a setting `store` that is outside of the working directory."""
    path = Path(folder)
    if path.anchor or ".." in path.parts:
        raise ConfigError(
            f"store = {folder!r} is outside of the working directory; wanted one like 'completions'"
        )


class StoredCompletion(StrictModel):
    text: str
    prompt_tokens: int
    completion_tokens: int
    finish: str
    reasoning: str = ""
    error: str = ""
    logprobs: list[list[int | float]] = Field(default_factory=list)
    calls: list[Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(
        default_factory=list
    )


class CacheRecord(StoredModel):
    """A record of the cache, and a line of a recording."""

    version: int
    request: dict[str, object]
    completion: StoredCompletion


class CompletionCache:
    """The completions of a folder, by the SHA-256 of their requests.

    And what has been learnt of servers, by a model's name.

    The first completion creates the file, which only its owner can read. A failure that would come
    again is stored too. With `retry_failed`, failures of earlier runs count as missing.
    """

    def __init__(self, folder: Path = Path("completions"), retry_failed: bool = False) -> None:
        self.folder = Path(folder)
        self.path = self.folder / FILE
        self._retry_failed = retry_failed
        self._failed_now: set[str] = set()  # keys of failures that this process has stored

    def has_completions(self) -> bool:
        with self.reading() as connection:
            stored = (
                connection and connection.execute("SELECT 1 FROM completions LIMIT 1").fetchone()
            )
        return bool(stored)

    def get(self, model: str, requests: Iterable[Request]) -> dict[Request, Completion]:
        """The stored completions of the requests. A damaged record is logged and ignored."""
        with self.reading() as connection:
            completions = {
                request: self.read_completion(connection, model, request) for request in requests
            }
        return {request: completion for request, completion in completions.items() if completion}

    def missing(self, model: str, requests: Iterable[Request]) -> list[Request]:
        """The requests without a completion, without duplicates."""
        unique = dict.fromkeys(requests)
        stored = self.get(model, unique)
        return [request for request in unique if request not in stored]

    def put(self, model: str, completions: Mapping[Request, Completion]) -> None:
        rows = {
            cache_key(model, request): format_record(model, request, completion)
            for request, completion in completions.items()
        }
        if not rows:
            return
        with (
            self.report_errors("nothing was written"),
            closing(self.open()) as connection,
            transaction(connection),
        ):
            store_rows(connection, rows)

    def read_completion(
        self,
        connection: sqlite3.Connection | None,
        model: str,
        request: Request,
        quiet: bool = False,
    ) -> Completion | None:
        """A request's stored completion; None if there is none."""
        key = cache_key(model, request)
        row = (
            connection
            and connection.execute(
                "SELECT record FROM completions WHERE key = ?", (key,)
            ).fetchone()
        )
        if not row:
            return None
        completion = _parse_record(row[0], request_json(model, request))
        if completion and completion.error and self._retry_failed and key not in self._failed_now:
            return None
        if completion is None and not quiet:
            mend = "the completion will be requested again"
            logger.info(f"{self.path}: {key}: the record does not belong to its request; {mend}")
        return truncate_completion(completion) if completion else None

    def server_facts(self, model: str) -> dict[str, object]:
        """What `remember_server` has stored for a model; empty if nothing is."""
        with self.reading() as connection:
            tables = (
                connection
                and connection.execute(
                    "SELECT 1 FROM sqlite_master WHERE name = 'servers'"
                ).fetchone()
            )
            if not connection or not tables:
                return {}
            row = connection.execute(
                "SELECT facts FROM servers WHERE model = ?", (model,)
            ).fetchone()
        try:
            facts = json.loads(row[0]) if row else {}
        except ValueError:  # a damaged row is learnt again
            facts = {}
        return facts if isinstance(facts, dict) else {}

    def remember_server(self, model: str, facts: Mapping[str, object]) -> None:
        """Store what has been learnt of the server of a model, so that the next run need not learn
        it again.
        """
        with (
            self.report_errors("nothing was asked"),
            closing(self.open()) as connection,
            transaction(connection),
        ):
            connection.execute(_SERVERS)
            connection.execute(
                "INSERT OR REPLACE INTO servers VALUES (?, ?)", (model, json.dumps(facts))
            )

    def note_failure(self, model: str, request: Request) -> None:
        """Note that this process has asked a request again, and stored its failure."""
        self._failed_now.add(cache_key(model, request))

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open the file for reading; None if it does not exist or has no tables."""
        if not self.path.exists():
            yield None
            return
        # SQLite may write other files beside this one, even for reading
        mode = "rw" if os.access(self.folder, os.W_OK) else "ro&immutable=1"
        with (
            self.report_errors("nothing was asked", "read completions of"),
            closing(self._connect(mode)) as connection,
        ):
            yield connection if self._version(connection) else None

    def open(self) -> sqlite3.Connection:
        """Open the file for reading and writing; create it if needed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        connection = self._connect("rwc")
        try:
            # By name: closing another handle on the file would release SQLite's locks of this
            # process
            if is_new:
                # Prompts and answers may be private; SQLite's other files get the same mode
                self.path.chmod(0o600)
            # A rollback journal needs only locks, so it also works on a network file system; a file
            # in use keeps its mode
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA synchronous = EXTRA")  # commits survive a power failure
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
        return sqlite3.connect(
            name, timeout=BUSY, isolation_level=None, check_same_thread=False, uri=True
        )

    def _version(self, connection: sqlite3.Connection) -> int:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise IfqaError(
                f"{self.path} has version {version}; this ifqa reads version {VERSION}; "
                "install a new one"
            )
        return version

    @contextmanager
    def report_errors(self, state: str, action: str = "write completions into") -> Iterator[None]:
        """Raise an error of the file as IfqaError: `action` failed.

        `state` says what was requested or stored.
        """
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self.error_of(error, state, action) from error

    def error_of(
        self, error: sqlite3.Error | OSError, state: str, action: str = "write completions into"
    ) -> IfqaError:
        code = _error_code(error)
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            mend = "move it away, or restore a copy"
            return DamagedArtifact(
                f"{self.path} is damaged ({error}): {state}, the file is unchanged; {mend}"
            )
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        reason = os.strerror(errno.ENOSPC) if code == sqlite3.SQLITE_FULL else reason
        mend = "free some space or fix the cause, and run the same command again"
        return IfqaError(f"cannot {action} {self.folder} ({reason}): {state}; {mend}")


class CacheWriter:
    """Claims requests for this process, reserves disk space for their completions, and stores the
    completions.

    An unnamed file of random bytes (zeros could be compressed away) holds the space; the system
    frees it however the process ends. If the disk is full, the file shrinks so that a completion
    fits. A claim is valid while its owner holds the lock on a file `ID.asking`; the system releases
    the lock when the process dies. `at_once` is the maximum number of completions received but not
    yet stored. If the disk is too full or the folder is not writable, IfqaError is raised and
    nothing is requested.
    """

    def __init__(
        self, cache: CompletionCache, model: str, requests: Sequence[Request], at_once: int
    ) -> None:
        self._cache = cache
        self._model = model
        self._id = secrets.token_hex(8)
        self._unwritten: dict[str, str] = {}
        self._lock = threading.Lock()  # guards the connection
        self._reserve = sum(nlargest(at_once, (_max_bytes(model, request) for request in requests)))

    def __enter__(self) -> Self:
        state = f"nothing was asked, {self._reserve:,} bytes must be free"
        with ExitStack() as stack, self._cache.report_errors(state):
            self._connection = stack.enter_context(closing(self._cache.open()))
            lock = self._owner_lock(self._id)
            # No other process sees the file before it is locked
            with transaction(self._connection):
                lock.acquire()
            stack.callback(self._release_lock, lock)
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
        with suppress(sqlite3.Error), transaction(self._connection):  # remaining claims lapse
            self._execute("DELETE FROM claims WHERE asker = ?", self._id)

    def _owner_lock(self, owner: str) -> FileLock:
        return FileLock(
            self._cache.folder / f"{owner}{_LOCK_SUFFIX}", timeout=0, thread_local=False
        )

    @staticmethod
    def _release_lock(lock: FileLock) -> None:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)

    def claim(
        self, requests: Collection[Request], limit: int
    ) -> tuple[list[Request], dict[Request, Completion]]:
        """Claim up to `limit` unclaimed requests.

        Returns them, and the completions stored meanwhile.
        """
        with (
            self._lock,
            self._cache.report_errors("requests have stopped, received answers are stored"),
        ):
            claims: list[Request] = []
            stored: dict[Request, Completion] = {}
            with transaction(self._connection):
                self._delete_stale_claims()
                claimed = {key for (key,) in self._execute("SELECT key FROM claims")}
                for request in requests:
                    if len(claims) == limit:
                        break
                    if (key := cache_key(self._model, request)) in claimed:
                        continue
                    if completion := self._cache.read_completion(
                        self._connection, self._model, request, quiet=True
                    ):
                        stored[request] = completion
                    else:
                        self._execute("INSERT INTO claims VALUES (?, ?)", key, self._id)
                        claims.append(request)
            return claims, stored

    def release(self, request: Request) -> None:
        """Release the claim on a failed request.

        If the file is not writable, the claim lapses at the end.
        """
        with self._lock, suppress(sqlite3.Error), transaction(self._connection):
            self._execute(
                "DELETE FROM claims WHERE key = ? AND asker = ?",
                cache_key(self._model, request),
                self._id,
            )

    def store(self, request: Request, completion: Completion) -> IfqaError | None:
        """Store a completion.

        Returns why requests must stop, if the completion needed the reserved space.

        One transaction stores the completions of all waiting threads. IfqaError if even the
        reserved space does not suffice.
        """
        key = cache_key(self._model, request)
        full: IfqaError | None = None
        if completion.error:
            self._cache.note_failure(self._model, request)
        self._unwritten[key] = format_record(self._model, request, completion)
        with self._lock:
            while key in self._unwritten:
                rows = dict(self._unwritten)
                try:
                    with transaction(self._connection):
                        store_rows(self._connection, rows)
                except sqlite3.Error as error:
                    if _error_code(error) == sqlite3.SQLITE_BUSY:
                        logger.warning(
                            f"{self._cache.path}: another program is using it; an answer "
                            "waits to be stored"
                        )
                        continue
                    full = self._cache.error_of(
                        error, "requests have stopped, received answers are stored"
                    )
                    if _error_code(error) not in _FULL or not self._shrink_reserve(
                        _max_bytes(self._model, request)
                    ):
                        raise self._cache.error_of(
                            error, "requests have stopped, an answer is lost"
                        ) from error
                else:
                    for stored_key in rows:
                        del self._unwritten[stored_key]
        return full

    def _shrink_reserve(self, size: int) -> bool:
        """Free reserved space; False if none is left."""
        if not self._reserve:
            return False
        self._reserve = max(0, self._reserve - size)
        self._ballast.truncate(self._reserve)
        os.fsync(self._ballast.fileno())
        return True

    def _delete_stale_claims(self) -> None:
        """Delete the claims of processes that ended without releasing them."""
        owners = {owner for (owner,) in self._execute("SELECT DISTINCT asker FROM claims")}
        owners |= {
            path.name.removesuffix(_LOCK_SUFFIX)
            for path in self._cache.folder.glob(f"*{_LOCK_SUFFIX}")
        }
        for owner in owners - {self._id}:
            lock = self._owner_lock(owner)
            if owner.isalnum() and Path(lock.lock_file).exists():
                try:
                    lock.acquire()
                except Timeout:
                    continue
                self._release_lock(lock)
            self._execute("DELETE FROM claims WHERE asker = ?", owner)

    def _execute(self, statement: str, *values: str) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)


class RequestBatch:
    """The requests of one call of `LanguageModel.complete`, and their completions so far.

    `missing` are the requests to send, in order; `cached` counts completions from the cache or from
    an equal request.
    """

    def __init__(
        self,
        cache: CompletionCache,
        model: str,
        requests: Sequence[Request],
        advance: ProgressCallback,
    ) -> None:
        self._requests = requests
        self._repeats = Counter(requests)
        self._advance = advance
        self._completions: dict[Request, Completion] = {}
        self.cached = 0
        for request, completion in cache.get(model, self._repeats).items():
            self.settle(request, completion)
        self.missing = [request for request in self._repeats if request not in self._completions]

    def settle(self, request: Request, completion: Completion) -> None:
        self._completions[request] = completion
        if not completion.error or completion.permanent:
            self.cached += self._repeats[request] - (not completion.cached)
        self._advance(self._repeats[request])

    @property
    def answered(self) -> int:
        """The number of requests with a completion that has no error."""
        return sum(not completion.error for completion in self._completions.values())

    def withdraw(self) -> None:
        """Take back the reported progress, because the requests are sent anew in another form."""
        for request in self._completions:
            self._advance(-self._repeats[request])

    def completions(self) -> list[Completion]:
        return [self._completions[request] for request in self._requests]


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def store_rows(connection: sqlite3.Connection, rows: Mapping[str, str]) -> None:
    """Write records by key within a transaction, and delete their claims."""
    connection.executemany("INSERT OR REPLACE INTO completions VALUES (?, ?)", rows.items())
    connection.executemany("DELETE FROM claims WHERE key = ?", [(key,) for key in rows])


def _max_bytes(model: str, request: Request) -> int:
    """Upper bound on the bytes that storing a completion adds to the file and its journal."""
    size = len(format_record(model, request, Completion())) + _TOKEN_BYTES * request.max_tokens
    return (-(-size // 4096) + _PAGES) * _PAGE


def _error_code(error: Exception) -> int:
    """SQLite's primary code of an error; a full disk has the same code outside of SQLite."""
    if isinstance(error, OSError):
        return (
            sqlite3.SQLITE_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else 0
        )
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _parse_record(record: str | bytes, request: dict[str, object]) -> Completion | None:
    """The completion of a record; None if the record is damaged or belongs to another request."""
    try:
        values = CacheRecord.model_validate(json.loads(record))
    except (ValueError, RecursionError):
        return None
    matches = values.version == VERSION and values.request == request
    if not matches:
        return None
    return stored_completion(values.completion.model_dump())


def stored_completion(values: Mapping[str, Any]) -> Completion:
    """The completion of a record's values, in the cache or in a recording."""
    logprobs = tuple((end, logprob) for end, logprob in values.get("logprobs", ()))
    lists = {"logprobs": logprobs, "calls": _calls_from_json(values.get("calls", ()))}
    permanent = bool(values.get("error"))  # only failures for good are stored
    return Completion(**{**values, **lists}, cached=True, permanent=permanent)
