"""Connections: who sends no whole request in time, or reads no answer, is cut off; of too many, who kept us waiting longest.

uvicorn itself closes those alone that are silent after an answer.
"""

import asyncio
import sys
from collections.abc import Collection
from typing import ClassVar

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ifqa.serve import limits as sizes
from ifqa.serve.limits import Limits


class Connection(H11Protocol):
    """One connection, closed by `abort`: what is still to be written, its client does not read."""

    limits: ClassVar[Limits]
    _since = 0.0  # when its request began to come; before it when the connection was made, after it when the answer was
    _head_by: float | None = None  # when a head that has begun must be whole
    _unread: asyncio.TimerHandle | None = None

    @property
    def silent(self) -> bool:
        """Whether no request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def keeps_waiting(self) -> bool:
        """Whether its client has to go on: with the next request, the rest of one, or the reading of an answer."""
        return self.silent or self.cycle.more_body or self.flow.write_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first byte, and make room."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._close_at(self._since + sizes.FIRST_BYTE)
        others = [other for other in self.connections if isinstance(other, Connection) and other is not self]
        if most := self.limits.per_address:
            self._keep([other for other in others if address(other.client) == address(self.client)], most)
        self._keep(others, sizes.CONNECTIONS)

    def data_received(self, data: bytes) -> None:
        """Take bytes; further ones of a head do not prolong its time."""
        begins = self.silent and self._head_by is None
        super().data_received(data)
        now = self.loop.time()
        if begins:
            self._since = now
        if not self.silent:
            self._head_by = None
        elif not self.transport.is_closing():
            self._head_by = self._head_by or now + sizes.HEAD
            self._close_at(self._head_by)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; after the beginning of an answer only the end of the connection can say so."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered: give it a time."""
        super().pause_writing()
        self._unread = self.loop.call_later(sizes.UNREAD, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()

    def timeout_keep_alive_handler(self) -> None:
        """Close it, whether it has sent nothing yet, a part of a head, or nothing since an answer."""
        self.transport.abort()

    def _close_at(self, moment: float) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_at(moment, self.timeout_keep_alive_handler)

    def _keep(self, others: "Collection[Connection]", most: int) -> None:
        """Of as many as there may be, close the one that keeps us waiting longest; if none does, the middleware answers 503."""
        if len(others) >= most and (waited_for := [other for other in others if other.keeps_waiting]):
            longest = min(waited_for, key=lambda other: other._since)
            self.connections.discard(longest)
            longest.transport.abort()


def address(client: tuple[str, int] | None) -> str:
    """The address that a connection comes from."""
    return client[0] if client else ""


def allow_files() -> None:
    """Raise this process's limit on open files, where the system lets it, so that all connections can be open."""
    if sys.platform == "win32":  # it has none
        return
    import resource

    wanted = 2 * sizes.CONNECTIONS  # the system's own files are among them
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard >= 0 else wanted, hard))


def configuration(app: ASGIApp, limits: Limits, port: int = 0) -> uvicorn.Config:
    """Uvicorn's settings for a server of that many seconds and connections."""

    class Limited(Connection):
        pass

    Limited.limits = limits
    return uvicorn.Config(
        app, port=port, http=Limited, ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        backlog=sizes.BACKLOG, h11_max_incomplete_event_size=sizes.HEADERS, timeout_keep_alive=sizes.KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.seconds) + 2, proxy_headers=False,
    )  # fmt: skip
