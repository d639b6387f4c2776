"""Downloads that go on: after a broken connection, after a change of the file, and without room."""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

import pytest

from ifqa.benchmarks import large
from ifqa.errors import IfqaError

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def server():
    """A server with one file; `state` has its content, its ETag, and after how many bytes the connection breaks."""
    state = SimpleNamespace(content=CONTENT, etag='"one"', cut=None, asked=[])

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            asked = self.headers.get("Range")
            state.asked.append(asked)
            first = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked else 0
            if first and self.headers["If-Range"] != state.etag:
                first = 0
            if first >= len(state.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(state.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if first else 200)
            if state.etag:
                self.send_header("ETag", state.etag)
            self.send_header("Content-Length", str(len(state.content) - first))
            self.end_headers()
            self.wfile.write(state.content[first:][: state.cut])
            self.close_connection = True

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        state.url = f"http://127.0.0.1:{http.server_port}/a.zip"
        yield state
        http.shutdown()


def test_a_download_that_broke_goes_on_where_it_was(server, tmp_path):
    path = tmp_path / "new/a.zip"
    server.cut = 3000
    for _ in range(2):
        with pytest.raises(IfqaError, match="run the same command again to go on, or put the file at"):
            large.download(server.url, path)
        assert not path.exists()
    server.cut = None
    large.download(server.url, path)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=3000-", "bytes=6000-"]
    assert {one.name for one in path.parent.iterdir()} <= {"a.zip", ".lock"}


@pytest.mark.parametrize("more", [0, 9])
def test_a_download_killed_before_its_rename_is_not_fetched_again(more, server, tmp_path):
    (tmp_path / ".a.zip.part").write_bytes(CONTENT + b"x" * more)
    (tmp_path / ".a.zip.tag").write_text('"one"')
    if more:  # longer than the server's file: not the same one
        with pytest.raises(IfqaError, match="run the same command again"):
            large.download(server.url, tmp_path / "a.zip")
    large.download(server.url, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT) + more}-"] + [None] * bool(more)


def test_a_file_that_changed_meanwhile_is_fetched_anew(server, tmp_path):
    server.cut = 3000
    with pytest.raises(IfqaError):
        large.download(server.url, tmp_path / "a.zip")
    server.cut, server.etag, server.content = None, '"two"', CONTENT[::-1]
    large.download(server.url, tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_a_file_that_the_server_does_not_name_is_fetched_anew(etag, server, tmp_path):
    server.cut, server.etag = 3000, etag
    with pytest.raises(IfqaError):
        large.download(server.url, tmp_path / "a.zip")
    server.cut = None
    large.download(server.url, tmp_path / "a.zip")
    assert server.asked == [None, None]
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


def test_a_disk_without_room_is_said_before_anything_is_fetched(server, tmp_path, monkeypatch):
    monkeypatch.setattr(large.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(IfqaError, match=r"needs 10,240 bytes more, and .* has 10 free; make room"):
        large.download(server.url, tmp_path / "a.zip")
    assert not (tmp_path / ".a.zip.part").exists()


def test_a_link_in_the_place_of_the_part_is_not_followed(server, tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".a.zip.part").symlink_to(tmp_path / "mine")
    large.download(server.url, tmp_path / "a.zip")
    assert (tmp_path / "mine").read_text() == "mine"
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


def test_a_server_that_is_not_there_gets_one_line(tmp_path):
    with pytest.raises(IfqaError, match=r"^cannot fetch http://127.0.0.1:9/a.zip \("):
        large.download("http://127.0.0.1:9/a.zip", tmp_path / "a.zip")
