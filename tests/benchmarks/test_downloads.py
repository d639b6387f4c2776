"""Fetching a benchmark: files that differ from the published ones, and broken replies."""

import socket
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from ifqa.benchmarks import downloads
from ifqa.errors import IfqaError

# Printf '[]' | sha256sum
CHECKSUM = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"


def published(folder, *files, checksum=CHECKSUM):
    """A benchmark whose files are published with a checksum."""
    return SimpleNamespace(
        name="b", folder=folder, downloads={file.name: (file.as_uri(), checksum) for file in files}
    )


def test_a_file_that_differs_from_the_published_one_is_replaced_once_that_is_fetched(tmp_path):
    remote = tmp_path / "from/dev.json"
    remote.parent.mkdir()
    for number, source in enumerate((None, remote.parent)):
        benchmark = published(tmp_path / str(number), remote)
        remote.write_bytes(b"[1]")
        benchmark.folder.mkdir()
        path = benchmark.folder / "dev.json"
        path.write_bytes(b"mine")
        with pytest.raises(
            IfqaError, match=r"the downloaded file has SHA256 .*, not 4f53cda18c2b… as published"
        ):
            list(downloads.fetch_files(benchmark, source))
        assert ([*benchmark.folder.iterdir()], path.read_bytes()) == ([path], b"mine")
        remote.write_bytes(b"[]")
        assert list(downloads.fetch_files(benchmark, source)) == [
            f"{path}: verified (4f53cda18c2b…)"
        ]
        assert ([*benchmark.folder.iterdir()], path.read_bytes()) == ([path], b"[]")
    _, absent = downloads.fetch_files(
        published(tmp_path / "b", remote, tmp_path / "test.json"), remote.parent
    )
    assert absent.endswith(f"test.json: left out, because it is not in {remote.parent}")


@pytest.mark.parametrize(
    "reply",
    [
        b"200 OK\r\nContent-Length: 100\r\n\r\ncut",
        b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        None,
        b"302 Found\r\nLocation: http://[::1\r\n\r\n",
        b"no number\r\n\r\n",
    ],
)
def test_a_broken_reply_leaves_no_file(tmp_path, reply):
    def answer(server):
        with server.accept()[0] as connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 " + reply if reply else b"")

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer, args=(server,), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/dev.json"
        benchmark: Any = SimpleNamespace(
            name="b", folder=tmp_path / "b", downloads={"dev.json": (url, None)}
        )
        with pytest.raises(
            IfqaError, match=r"^cannot fetch http://.*; download it elsewhere and put it at"
        ):
            list(downloads.fetch_files(benchmark))
    assert not (benchmark.folder / "dev.json").exists()


def test_a_file_without_a_published_checksum_is_recorded_and_may_not_change(tmp_path):
    files = [tmp_path / "dev.json", tmp_path / "test.json"]
    for file in files:
        file.write_bytes(b"[]")
    benchmark = published(tmp_path / "b", *files, checksum=None)
    list(downloads.fetch_files(benchmark))
    assert (
        benchmark.folder / "SHA256SUMS"
    ).read_text() == f"{CHECKSUM}  dev.json\n{CHECKSUM}  test.json\n"
    assert [line.endswith("there already") for line in downloads.fetch_files(benchmark)] == [
        True,
        True,
    ]
    (benchmark.folder / "test.json").write_bytes(b"[1]")
    with pytest.raises(IfqaError, match=r"test.json: SHA-256 is .*SHA256SUMS has 4f53cda18c2b"):
        list(downloads.fetch_files(benchmark))
    (benchmark.folder / "test.json").unlink()
    list(downloads.fetch_files(benchmark))
    assert (benchmark.folder / "test.json").read_bytes() == b"[]"
