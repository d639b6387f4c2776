"""Downloads from a server that breaks off, stalls, changes the file or lies about ranges, and
without room on the disk.
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from file_server import serving
from refusals import refused

from ifqa.storage import download
from ifqa.storage.download import RemoteFile

CONTENT = bytes(range(256)) * 40
SHA1 = hashlib.sha1(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    with serving() as state:
        state.files["/a.zip"] = CONTENT
        yield state


def fetch(server, folder, **published):
    """The downloaded bytes of a.zip."""
    download.download_all(
        [RemoteFile(f"{server.url}/a.zip", folder / "a.zip", **published)], folder
    )
    return (folder / "a.zip").read_bytes()


def names(folder):
    return {path.name for path in folder.iterdir()} - {".lock"}


def ranges(server):
    """The ranges of the requests so far."""
    return [requested for _, requested in server.asked]


def begin(folder, content=CONTENT[:3000], tag=None):
    """Write the files of a killed download."""
    (folder / ".a.zip.part").write_bytes(content)
    (folder / ".a.zip.tag").write_text(tag or f'"{hashlib.md5(CONTENT).hexdigest()}"')


def test_a_download_resumes_after_a_broken_connection(server, tmp_path):
    server.cut = 3000
    download.download_all(
        [RemoteFile(f"{server.url}/a.zip", tmp_path / "new/a.zip")], tmp_path / "new"
    )
    assert (tmp_path / "new/a.zip").read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=3000-", "bytes=6000-", "bytes=9000-"]
    assert names(tmp_path / "new") == {"a.zip"}


def test_a_connection_that_brings_nothing_ends_the_download(server, tmp_path):
    begin(tmp_path)
    server.cut = 0
    with refused(r"a.zip \(.*7240 more expected\)\); run the same command"):
        fetch(server, tmp_path)
    assert names(tmp_path) == {".a.zip.part", ".a.zip.tag"}
    server.cut = None
    fetch(server, tmp_path)
    assert ranges(server) == ["bytes=3000-"] * 2
    assert names(tmp_path) == {"a.zip"}


def test_a_slow_server_is_waited_for_but_not_a_stalled_server(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_TIMEOUT", 0.5)
    server.slowly = 0.06  # 0.6 seconds in all
    fetch(server, tmp_path, size=len(CONTENT), algorithm="sha1", checksum=SHA1)
    assert len(server.asked) == 1
    (tmp_path / "a.zip").unlink()
    server.slowly = 3.0
    with refused(r"a.zip \(.*timed out\); run the same command"):
        fetch(server, tmp_path)


@pytest.mark.parametrize("more", [0, 9])
def test_a_download_killed_before_its_rename_is_not_fetched_again(more, server, tmp_path):
    begin(tmp_path, CONTENT + b"x" * more)
    if more:  # longer than the server's file, so another file
        with refused(r"run the same command again"):
            fetch(server, tmp_path)
    assert fetch(server, tmp_path) == CONTENT
    assert ranges(server) == [f"bytes={len(CONTENT) + more}-"] + [None] * bool(more)


@pytest.mark.parametrize(("tag", "kind"), [('"old"', "kept"), (None, "ignored")])
def test_a_file_sent_from_the_start_replaces_the_partial_download(
    tag, kind, server, tmp_path, capsys
):
    begin(tmp_path, tag=tag)
    server.ranges = kind
    assert fetch(server, tmp_path, algorithm="sha1", checksum=SHA1) == CONTENT
    assert (
        "the server sends the file from the start; it has changed, or cannot be resumed"
        in capsys.readouterr().err
    )


@pytest.fixture
def changing(server, monkeypatch):
    """A server whose file changes while it is downloaded."""

    def change(_):
        server.files["/a.zip"] = CONTENT[::-1]
        server.cut = None

    monkeypatch.setattr(download.time, "sleep", change)
    server.cut = 3000
    return server


def test_a_file_that_changes_during_the_download_is_never_mixed(changing, tmp_path):
    assert fetch(changing, tmp_path) == CONTENT[::-1]


def test_a_link_at_the_part_of_a_file_is_not_followed(changing, tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".a.zip.part").symlink_to(tmp_path / "mine")
    assert fetch(changing, tmp_path) == CONTENT[::-1]
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("content_range", ["bytes 0-10239/10240", "bytes 3000-10239/99", "all"])
def test_a_wrong_range_is_refused_before_anything_is_mixed(content_range, server, tmp_path):
    begin(tmp_path)
    server.ranges = content_range
    with refused(r"requested bytes from 3,000 on, but the server sent .*; run the same command"):
        fetch(server, tmp_path)
    assert (tmp_path / ".a.zip.part").read_bytes() == CONTENT[:3000]
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_a_file_without_a_strong_etag_is_fetched_again(etag, server, tmp_path):
    server.cut = 3000
    server.etags["/a.zip"] = etag
    with refused("again"):
        fetch(server, tmp_path)
    server.cut = None
    assert fetch(server, tmp_path) == CONTENT
    assert ranges(server) == [None, None]


def test_a_file_with_a_wrong_checksum_is_removed(server, tmp_path):
    with refused(r"SHA1 [0-9a-f]{12}…, not 0{12}… as published; it was removed, run the same"):
        fetch(server, tmp_path, algorithm="sha1", checksum="0" * 40)
    assert names(tmp_path) == set()
    fetch(server, tmp_path, algorithm="sha1", checksum=SHA1)
    assert ranges(server) == [None, None]


def test_finished_files_stay_when_another_is_missing(server, tmp_path):
    fetch(server, tmp_path, algorithm="sha1", checksum=SHA1)
    files = [
        RemoteFile(f"{server.url}/{name}", tmp_path / name) for name in ("a.zip", "absent", "last")
    ]
    with refused(r"absent .HTTP Error 404: Not Found"):
        download.download_all(files, tmp_path)
    assert names(tmp_path) == {"a.zip"}


def test_a_size_other_than_the_published_size_is_refused_at_once(server, tmp_path):
    with refused(r"the server's file has 10,240 bytes, the published one 99"):
        fetch(server, tmp_path, size=99)
    assert names(tmp_path) == set()
    (tmp_path / "a.zip").write_bytes(b"mine")
    with refused(r"a.zip has 4 bytes, the published file 10,240; remove it to fetch it again"):
        fetch(server, tmp_path, size=10_240)
    assert (tmp_path / "a.zip").read_bytes() == b"mine"


def test_the_contact_is_sent(server, tmp_path, monkeypatch):
    monkeypatch.setenv("IFQA_CONTACT", "me@example.org")
    fetch(server, tmp_path)
    [agent] = server.agents
    assert re.match(r"ifqa/.*\(me@example\.org\)", agent)


def test_a_refusal_of_the_server_is_one_line(server, tmp_path, monkeypatch):
    monkeypatch.setenv("IFQA_CONTACT", "me@example.org")
    server.statuses["/a.zip"] = 403
    with refused(r"HTTP Error 403: .*; .* set IFQA_CONTACT"):
        fetch(server, tmp_path)
    assert names(tmp_path) == set()
    assert len(server.agents) == 1


def test_a_server_that_is_down_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    with refused(r"^cannot fetch http://127.0.0.1:9/a.zip \("):
        download.download_all(
            [RemoteFile("http://127.0.0.1:9/a.zip", tmp_path / "a.zip")], tmp_path
        )


def test_a_redirect_is_followed_with_the_range_but_not_in_a_circle(server, tmp_path):
    begin(tmp_path)
    server.files["/b.zip"] = server.files.pop("/a.zip")
    server.moved["/a.zip"] = "/b.zip"
    assert fetch(server, tmp_path) == CONTENT
    assert server.asked == [("/a.zip", "bytes=3000-"), ("/b.zip", "bytes=3000-")]
    (tmp_path / "a.zip").unlink()
    server.moved["/a.zip"] = "/a.zip"
    with refused(r"a.zip \(HTTP Error 302: "):
        fetch(server, tmp_path)


def test_a_disk_without_room_is_reported_before_the_download(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with refused(r"needs 10,240 bytes more, but .* has 10 free; make room"):
        fetch(server, tmp_path)
    assert len(server.asked) == 1
    begin(tmp_path)
    both = [
        RemoteFile(f"{server.url}/{name}", tmp_path / name, 10_240) for name in ("a.zip", "b.zip")
    ]
    with refused(r"the download of 2 files needs 17,480 bytes more"):
        download.download_all(both, tmp_path)
    assert len(server.asked) == 1


@pytest.fixture
def disk_fills_up(monkeypatch):
    def fill_disk(handle, content):
        handle.write(content[:1000])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "write_bytes", fill_disk)


@pytest.mark.usefixtures("disk_fills_up")
def test_a_disk_that_fills_up_is_reported(server, tmp_path):
    with refused(r"no room on the disk to write .*a.zip"):
        fetch(server, tmp_path)
    assert len(server.asked) == 1


@pytest.mark.usefixtures("disk_fills_up")
def test_the_part_is_kept_when_the_disk_fills_up(server, tmp_path):
    with refused("no room on the disk"):
        fetch(server, tmp_path)
    assert (tmp_path / ".a.zip.part").read_bytes() == CONTENT[:1000]


def test_a_killed_download_resumes(server, tmp_path):
    server.files["/a.zip"] = bytes(300_000)
    server.slowly = 0.001
    code = (
        "from pathlib import Path; from ifqa.storage.download import RemoteFile, download_all; "
        f"download_all([RemoteFile('{server.url}/a.zip', Path('a.zip'))], Path())"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    part = tmp_path / ".a.zip.part"
    while not (part.exists() and part.stat().st_size > 100_000):
        assert child.poll() is None
        time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    child.wait()
    size = part.stat().st_size
    server.slowly = 0
    assert not (tmp_path / "a.zip").exists()
    assert fetch(server, tmp_path) == bytes(300_000)
    assert server.asked[1:] == [("/a.zip", f"bytes={size}-")]
