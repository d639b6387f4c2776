"""A file server for tests that breaks downloads: it cuts, throttles, ignores ranges, redirects."""

import hashlib
import re
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Files:
    """What the server has, and how it behaves; all of it may be changed while it runs.

    `asked` has a pair (path, Range) for each request.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    # Of a path; else a strong one made from its content
    etags: dict[str, str] = field(default_factory=dict)
    cut: int | None = None  # bytes of a body after which the connection breaks
    ranges: str = "kept"  # or "ignored"; or a Content-Range to send, whatever was requested
    slowly: float = 0.0  # seconds before each KB of a body
    # Path -> the status to answer with, without a body
    statuses: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)  # path -> where it redirects to
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    url: str = ""


def first_byte(asked):
    """The place where a requested range begins; it has no end."""
    match = re.fullmatch(r"bytes=(\d+)-", asked)
    assert match is not None, asked
    return int(match[1])


@contextmanager
def serving():
    """A running server."""
    state = Files()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.close_connection = True
            with suppress(BrokenPipeError, ConnectionResetError):  # the client has left
                self.answer()

        def answer(self):
            asked = self.headers.get("Range")
            state.asked.append((self.path, asked))
            state.agents.add(self.headers["User-Agent"])
            if self.path in state.moved:
                self.head(302, Location=state.moved[self.path])
                return
            if self.path in state.statuses or self.path not in state.files:
                self.head(state.statuses.get(self.path, 404))
                return
            content = state.files[self.path]
            etag = state.etags.get(self.path, f'"{hashlib.md5(content).hexdigest()}"')
            first = first_byte(asked) if asked else 0
            if state.ranges == "ignored" or (first and self.headers["If-Range"] != etag):
                first = 0
            if first >= len(content):
                self.head(416, **{"Content-Range": f"bytes */{len(content)}"})
                return
            content_range = f"bytes {first}-{len(content) - 1}/{len(content)}"
            more = {"ETag": etag} if etag else {}
            if first:
                more["Content-Range"] = content_range if state.ranges == "kept" else state.ranges
            self.head(206 if first else 200, length=len(content) - first, **more)
            body = content[first:][: state.cut]
            for start in range(0, len(body), 1024):
                time.sleep(state.slowly)
                self.wfile.write(body[start : start + 1024])
                self.wfile.flush()

        def head(self, status, length=0, **headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as http:
        Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        state.url = f"http://127.0.0.1:{http.server_port}"
        yield state
        http.shutdown()
