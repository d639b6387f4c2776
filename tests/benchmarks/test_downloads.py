"""Fetching a benchmark: files that are not the published ones, and replies that break."""

import hashlib
import socket
from threading import Thread
from types import SimpleNamespace

import pytest

from ifqa.benchmarks import downloads
from ifqa.errors import IfqaError


def published(folder, *files):
    """A benchmark whose files are published with the checksum of an empty list."""
    downloads_ = {file.name: (file.as_uri(), hashlib.sha256(b"[]").hexdigest()) for file in files}
    return SimpleNamespace(name="b", folder=folder, downloads=downloads_)


def test_a_file_that_is_not_the_published_one_is_replaced_when_that_came_from_its_address_or_a_folder(tmp_path):
    there = tmp_path / "from/dev.json"
    there.parent.mkdir()
    for number, place in enumerate((None, there.parent)):
        benchmark = published(tmp_path / str(number), there)
        there.write_bytes(b"[1]")
        benchmark.folder.mkdir()
        (benchmark.folder / "dev.json").write_bytes(b"mine")
        with pytest.raises(IfqaError, match=r"the downloaded file has SHA256 .*, published is 4f53cda18c2b…"):
            list(downloads.fetch_files(benchmark, place))
        assert {path.name: path.read_bytes() for path in benchmark.folder.iterdir()} == {"dev.json": b"mine"}
        there.write_bytes(b"[]")
        assert [line.partition(": ")[2] for line in downloads.fetch_files(benchmark, place)] == [
            "verified (4f53cda18c2b…)"
        ]
        assert {path.name: path.read_bytes() for path in benchmark.folder.iterdir()} == {"dev.json": b"[]"}
    _, absent = downloads.fetch_files(published(tmp_path / "b", there, tmp_path / "test.json"), there.parent)
    assert absent.endswith(f"test.json: not in {there.parent}, left out")


@pytest.mark.parametrize(
    "reply",
    [
        b"200 OK\r\nContent-Length: 100\r\n\r\ncut", b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", None,
        b"302 Found\r\nLocation: http://[::1\r\n\r\n", b"no number\r\n\r\n",
    ],
)  # fmt: skip
def test_a_broken_reply_is_an_error_and_nothing_is_kept(tmp_path, reply):
    def answer(server):
        with server.accept()[0] as connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 " + reply if reply else b"")

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer, args=(server,), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/dev.json"
        benchmark = SimpleNamespace(name="b", folder=tmp_path / "b", downloads={"dev.json": (url, None)})
        with pytest.raises(IfqaError, match=r"^cannot fetch http://.*; download it elsewhere and put it at"):
            list(downloads.fetch_files(benchmark))
    assert not (benchmark.folder / "dev.json").exists()


def test_a_file_without_a_published_checksum_is_recorded_and_may_not_change(tmp_path):
    there = tmp_path / "there.json"
    there.write_bytes(b"[]")
    files = {name: (there.as_uri(), None) for name in ("dev.json", "test.json")}
    benchmark = SimpleNamespace(name="b", folder=tmp_path / "b", downloads=files)
    list(downloads.fetch_files(benchmark))
    checksum = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"  # printf '[]' | sha256sum
    assert (benchmark.folder / "SHA256SUMS").read_text() == f"{checksum}  dev.json\n{checksum}  test.json\n"
    assert [line.endswith("there already") for line in downloads.fetch_files(benchmark)] == [True, True]
    (benchmark.folder / "test.json").write_bytes(b"[1]")
    with pytest.raises(IfqaError, match=r"test.json: SHA-256 is .*SHA256SUMS has 4f53cda18c2b"):
        list(downloads.fetch_files(benchmark))
    (benchmark.folder / "test.json").unlink()
    list(downloads.fetch_files(benchmark))
    assert (benchmark.folder / "test.json").read_bytes() == b"[]"
