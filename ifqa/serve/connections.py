"""Connections: who sends no whole head in time, or reads no answer, is cut off. uvicorn itself refuses those beyond a number."""

import asyncio

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ifqa.serve import limits as sizes
from ifqa.serve.limits import Limits


class Connection(H11Protocol):
    """One connection, closed by `abort`: what is still to be written, its client does not read.

    uvicorn closes those alone that are silent after an answer.
    """

    _deadline: asyncio.TimerHandle | None = None  # of a head that has begun, or of the first one
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(sizes.SLOW, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take bytes; further ones of a head do not prolong its time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:  # the head is whole
            self._cancel()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(sizes.SLOW, self.transport.abort)

    def on_response_complete(self) -> None:
        """Go on to the next request, which may be there already."""
        self._cancel()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; after the beginning of an answer only the end of the connection can say so."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the times."""
        self._cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered: give it a time."""
        super().pause_writing()
        self._unread = self.loop.call_later(sizes.UNREAD, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()

    def _cancel(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None


def configuration(app: ASGIApp, limits: Limits, port: int = 0) -> uvicorn.Config:
    """Uvicorn's settings for a server of these limits."""
    return uvicorn.Config(
        app, port=port, http=Connection, ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        h11_max_incomplete_event_size=sizes.HEADERS, timeout_keep_alive=sizes.KEEP_ALIVE,
        limit_concurrency=sizes.CONNECTIONS, timeout_graceful_shutdown=int(limits.seconds) + 2, proxy_headers=False,
    )  # fmt: skip
