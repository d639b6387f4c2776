"""Sends all requests of a call as files to a server's batch API; OpenAI answers these within a day, at half the price.

A batch has a file `batches/KEY.json` beside the cache, from before its upload until its completions are stored. A run after a
kill continues with these files, and looks for a batch whose identifier was lost at the server, by the key in its metadata. So no
batch is paid twice. The API is that of developers.openai.com/api/docs/guides/batch.
"""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import openai
from filelock import FileLock, Timeout
from openai.types import Batch

from ifqa.errors import ServiceError
from ifqa.llms.budget import Reservation
from ifqa.llms.cache import CacheWriter, CompletionCache, RequestBatch, request_from_json, request_json
from ifqa.llms.credentials import NO_KEY, redact
from ifqa.llms.http_client import (
    Failure,
    classify_error,
    open_client,
    parse_error_body,
    parse_response,
    remove_secrets,
    tokens_used,
)
from ifqa.llms.request_scheduler import BACKOFF, LONGEST_BACKOFF, ServedModel, run
from ifqa.llms.token_counts import bound_prompt_tokens, token_counter
from ifqa.records import Completion, Request
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.files import read_json, write_json

logger = logging.getLogger(__name__)

FOLDER = "batches"
MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000  # of a batch, at OpenAI
_LONGEST_RESULTS = 2_000_000_000  # bytes of a file of answers
FIRST_POLL, LONGEST_POLL = 1.0, 60.0  # seconds
_ENDED = ("completed", "failed", "expired", "cancelled")
_TOO_MANY_TOKENS = "token_limit_exceeded"  # more than the organization may have in its queue
_CLOCKS = 86_400  # seconds by which the server's clock may be behind
_KEY = "ifqa"  # in a batch's metadata

_T = TypeVar("_T")
Reply = Completion | Failure


class StoredBatch(StoredModel):
    """A batch that may be at the server; without `id` until the server has confirmed it."""

    key: str
    server: str
    model: str  # the name that its completions are stored under
    written: float  # seconds since 1970
    requests: list[dict[str, object]]  # as in the cache
    id: str = ""


def complete_batch(
    model: ServedModel, key: str, batch: RequestBatch, writer: CacheWriter, cache: CompletionCache
) -> None:
    """Complete the missing requests of `batch`; one process at a time sends batches from a cache.

    Raises ServiceError if the server refuses, has no batch API, or does not answer. The batches that it has accepted go on.
    """
    folder = cache.folder / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)  # prompts may be private
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.info(f"{model.name}: another run waits for a batch from {cache.folder}; waiting for its end")
        lock.acquire()
    try:
        run(BatchSender(model, key, batch, writer, cache).ask())
    finally:
        lock.release()


class BatchSender:
    """Sends the missing requests of a call in batches, one after the other, and first fetches those of an earlier run."""

    def __init__(
        self, model: ServedModel, key: str, batch: RequestBatch, writer: CacheWriter, cache: CompletionCache
    ) -> None:
        self._model, self._key, self._account = model, key, model.account
        self._secret = "" if key == NO_KEY else key
        self._batch, self._writer, self._cache = batch, writer, cache
        self._count = token_counter(model.model)
        self._waiting = dict.fromkeys(batch.missing)

    async def ask(self) -> None:
        async with open_client(self._model.url, self._key, self._model.timeout, _LONGEST_RESULTS) as self._client:
            for path in sorted((self._cache.folder / FOLDER).glob("*.json")):
                mend = "its completions cannot be fetched; move it away to send its requests again"
                stored = parse_stored(StoredBatch, read_json(path), str(path), mend)
                if (stored.server, stored.model) == (self._model.server, self._model.name):
                    logger.info(f"{self._model.name}: an earlier run has sent {len(stored.requests):,} requests")
                    reservations: dict[Request, Reservation] = {}
                    for request in map(request_from_json, stored.requests):
                        if reservation := self._reserve(request, sent=True):
                            reservations[request] = reservation
                    await self._finish(path, stored, reservations)
            while self._waiting:
                claimed, answered = self._writer.claim(self._waiting, MOST_REQUESTS)
                for request, completion in answered.items():
                    self._settle(request, completion)
                for requests in self._split(claimed):
                    await self._send(requests)
                if not claimed and not answered:  # another run is sending them, each by itself
                    await asyncio.sleep(FIRST_POLL)

    def _split(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        """The requests in parts that fit into a batch's file."""
        part: list[Request] = []
        size = 0
        for request in requests:
            length = len(self._line(0, request)) + len(str(MOST_REQUESTS))
            if part and size + length > MOST_BYTES:
                yield part
                part, size = [], 0
            part.append(request)
            size += length
        if part:
            yield part

    async def _send(self, requests: Sequence[Request]) -> None:
        """Send requests as a batch and wait for its end; those beyond a cap are not sent."""
        reservations: dict[Request, Reservation] = {}
        for request in requests:
            if reservation := self._reserve(request):
                reservations[request] = reservation
            else:
                self._settle(request, Completion(error=self._account.refusal))
        if reservations:
            stored = StoredBatch(
                key=secrets.token_hex(16), server=self._model.server, model=self._model.name, written=time.time(),
                requests=[request_json(self._model.name, request) for request in reservations],
            )  # fmt: skip
            path = self._cache.folder / FOLDER / f"{stored.key}.json"
            write_json(path, stored.model_dump())
            await self._finish(path, stored, reservations, is_new=True)

    async def _finish(
        self, path: Path, stored: StoredBatch, reservations: Mapping[Request, Reservation], is_new: bool = False
    ) -> None:
        """Create a batch unless the server has it, wait for its end, and store its completions."""
        requests = list(reservations)
        replies: dict[Request, Reply] = {}
        try:
            if not stored.id:
                created = None if is_new else await self._find(stored)
                stored.id = created or await self._create(path, stored, requests)
                write_json(path, stored.model_dump())
            self._account.calls += len(requests)
            ended = await self._wait(stored.id, path)
            for file_id in (ended.output_file_id, ended.error_file_id):
                replies |= await self._replies(file_id, requests) if file_id else {}
            completions = {request: reply for request, reply in replies.items() if isinstance(reply, Completion)}
            self._cache.put(self._model.name, completions)
            path.unlink()
        except asyncio.CancelledError:
            logger.info(f"{self._model.name}: the batch goes on at the server; the same command fetches its answers")
            raise
        finally:
            for request, reservation in reservations.items():
                used, cached = tokens_used(replies[request]) if request in replies else ((0, 0), 0)
                self._account.settle(reservation, used, cached)
        if ended.status != "failed":
            for request in requests:
                reply = replies.get(request) or Failure("fail", f"the batch {ended.status} without an answer")
                self._settle(request, Completion(error=reply.message) if isinstance(reply, Failure) else reply)
        elif is_new:  # the requests of an earlier run are sent again if this run needs them
            await self._send_halves(requests, ended)

    async def _send_halves(self, requests: Sequence[Request], failed: Batch) -> None:
        """Send a failed batch in two parts if it was too large; ServiceError if that is not why."""
        errors = (failed.errors.data if failed.errors else None) or []
        if len(requests) == 1 or _TOO_MANY_TOKENS not in [error.code for error in errors]:
            why = "; ".join(str(error.message) for error in errors[:3])
            raise self._refusal(f"the server refused the batch: {why or 'it does not say why'}")
        logger.info(f"{self._model.name}: too many tokens for the server's queue; sending batches of half the size")
        half = len(requests) // 2
        await self._send(requests[:half])
        await self._send(requests[half:])

    async def _create(self, path: Path, stored: StoredBatch, requests: Sequence[Request]) -> str:
        """Upload the requests and create their batch; returns its identifier."""
        content = b"".join(self._line(n, request) for n, request in enumerate(requests))
        upload = partial(self._client.files.create, file=("ifqa.jsonl", content), purpose="batch")
        create = partial(
            self._client.batches.create, endpoint=_endpoint(requests[0]), completion_window="24h",
            metadata={_KEY: stored.key},
        )  # fmt: skip

        async def create_or_find() -> str:
            """The new batch; or the one that an earlier try has created, although its answer was lost."""
            return await self._find(stored) or (await create(input_file_id=uploaded.id)).id

        try:
            uploaded = await self._call(upload, "upload a batch")
        except ServiceError:
            path.unlink()  # the server has nothing to fetch
            raise
        return await self._call(create_or_find, "create a batch", if_refused=path.unlink)

    async def _find(self, stored: StoredBatch) -> str:
        """The identifier of a batch that the server has although its answer was lost; else empty."""

        async def search() -> str:
            async for batch in self._client.batches.list(limit=100):  # the newest first
                if (batch.metadata or {}).get(_KEY) == stored.key:
                    return batch.id
                if batch.created_at < stored.written - _CLOCKS:
                    break
            return ""

        return await self._call(search, "list batches")

    async def _wait(self, batch_id: str, path: Path) -> Batch:
        pause, status = FIRST_POLL, ""
        while True:
            action = f"fetch the batch of {path}"
            batch = await self._call(partial(self._client.batches.retrieve, batch_id), action)
            if batch.status != status:
                status = batch.status
                logger.info(f"{self._model.name}: batch {redact(f'{batch_id}: {status}', self._secret)}")
            if status in _ENDED:
                return batch
            await asyncio.sleep(pause)
            pause = min(LONGEST_POLL, pause * 1.5)

    async def _replies(self, file_id: str, requests: Sequence[Request]) -> dict[Request, Reply]:
        """The replies in a file of a batch, which is in any order; a damaged line counts as missing."""
        content = (await self._call(partial(self._client.files.content, file_id), "fetch the answers")).content
        replies: dict[Request, Reply] = {}
        for line in content.splitlines():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            place = str(record.get("custom_id")) if isinstance(record, dict) else ""
            if place.isdecimal() and int(place) < len(requests):
                request = requests[int(place)]
                replies[request] = remove_secrets(_parse_reply(record, request), self._secret)
        return replies

    async def _call(
        self, operation: Callable[[], Awaitable[_T]], action: str, if_refused: Callable[[], None] | None = None
    ) -> _T:
        """Call the server, again after temporary failures; ServiceError if it cannot do the action, or refuses it."""
        for tries in range(1, self._model.retries + 2):
            try:
                return await operation()
            except openai.APIError as error:
                failure = classify_error(error, self._secret, self._model.timeout)
            if failure.action != "retry":
                if if_refused:
                    if_refused()
                break
            if tries <= self._model.retries:  # no wait after the last try
                wait = BACKOFF * 2.0**tries if failure.wait is None else failure.wait
                await asyncio.sleep(min(LONGEST_BACKOFF, wait))
        raise self._refusal(f"cannot {action} (batch = true): {failure.message} (after {tries} tries)")

    def _reserve(self, request: Request, sent: bool = False) -> Reservation | None:
        return self._account.reserve(bound_prompt_tokens(request, self._count), request.max_tokens, sent)

    def _settle(self, request: Request, completion: Completion) -> None:
        if completion.error:
            self._writer.release(request)
        if request in self._waiting:  # an earlier run may have sent others
            del self._waiting[request]
            self._batch.settle(request, completion)

    def _line(self, number: int, request: Request) -> bytes:
        record = {"custom_id": str(number), "method": "POST", "url": _endpoint(request)}
        return json.dumps(record | {"body": self._model.arguments(request)}).encode() + b"\n"

    def _refusal(self, message: str) -> ServiceError:
        return ServiceError(f"{self._model.name}: {redact(message, self._secret)}")


def _endpoint(request: Request) -> Literal["/v1/chat/completions", "/v1/completions"]:
    return "/v1/chat/completions" if request.messages else "/v1/completions"


def _parse_reply(record: Mapping[str, object], request: Request) -> Reply:
    """The reply in a line of a batch's output or errors."""
    response = record.get("response")
    if isinstance(response, dict) and response.get("status_code") == 200:
        return parse_response(json.dumps(response.get("body")).encode(), bool(request.messages), request.stop)
    error = record.get("error") or (response.get("body") if isinstance(response, dict) else None)
    body = error["error"] if isinstance(error, dict) and isinstance(error.get("error"), dict) else error
    return Failure("fail", redact(parse_error_body(body)[1], ""))
