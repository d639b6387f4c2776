"""An answer as server-sent events: how far the question is, the text while it is written, and the answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

from ifqa.records import Answer
from ifqa.serve.desk import Progress, Ticket
from ifqa.serve.forms import Written
from ifqa.serve.log import log
from ifqa.serve.problems import of_error, problem
from ifqa.serve.service import Service

PING = 10.0  # seconds between signs of life, so that nothing between closes the connection


def event(name: str, data: str) -> bytes:
    """An event; `data` is JSON, which has no line breaks."""
    return f"event: {name}\ndata: {data}\n\n".encode()


async def events(service: Service, tickets: list[Ticket[Answer]], progress: Progress) -> AsyncIterator[bytes]:
    """The events of one question. Only the newest state is sent, so a slow client keeps nothing in memory.

    Args:
        service: asked the question; it is withdrawn if the task is cancelled.
        tickets: the question's, one.
        progress: the question's.
    """
    answering = asyncio.ensure_future(service.answers(tickets))
    ahead: int | None = -1  # nothing was said
    shown = ""
    try:
        while not answering.done():
            changed = asyncio.ensure_future(progress.changed.wait())
            done, _ = await asyncio.wait([answering, changed], timeout=PING, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            progress.changed.clear()
            if not done:
                yield b": waiting\n\n"
            if ahead is not None and progress.ahead != ahead:
                ahead = progress.ahead
                yield event("reading", "{}") if ahead is None else event("waiting", json.dumps({"ahead": ahead}))
            if progress.text != shown:
                begun, shown = shown, progress.text
                at = next((n for n, pair in enumerate(zip(begun, shown, strict=False)) if pair[0] != pair[1]), None)
                at = min(len(begun), len(shown)) if at is None else at
                yield event(
                    "text", Written(at=at, text=shown[at:].encode("utf-8", "replace").decode()).model_dump_json()
                )
        error = answering.exception()
        if error is None:
            yield event("answer", answering.result()[0].model_dump_json())
            return
        found = of_error(error) if isinstance(error, Exception) else None
        if found is None:
            log.error("a bug", exc_info=error)
            found = problem(500, "a bug; the server's log has it under this request's id"), {}
        yield event("problem", found[0].model_dump_json())
    finally:
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([answering])
