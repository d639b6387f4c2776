"""Downloads from an object store, by fsspec's store in memory and its local files."""

import subprocess
import sys

import fsspec
import pytest
from refusals import refused

from ifqa.errors import ServiceError
from ifqa.storage import object_store
from ifqa.storage.download import download_objects

CONTENT = bytes(range(256)) * 20_000  # five reads


@pytest.fixture
def store(here):
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pipe(
        {
            "/bucket/wiki/b.xml": CONTENT,
            "/bucket/wiki/old/a.xml": b"old",
            "/bucket/wiki/index.txt": b"no dump",
        }
    )
    return store


def copied(path, folder):
    files = download_objects(f"memory://bucket/{path}", folder)
    return {file.path.relative_to(folder).as_posix(): file.path.read_bytes() for file in files}


def begin(folder, store, content):
    """Write the files of a killed download of b.xml."""
    folder.mkdir(exist_ok=True)
    (folder / ".b.xml.part").write_bytes(content)
    (folder / ".b.xml.tag").write_text(
        object_store.ObjectResponse("memory://bucket/wiki/b.xml", {}).headers["ETag"]
    )


BOTH = {"b.xml": CONTENT, "index.txt": b"no dump"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("wiki", BOTH | {"old/a.xml": b"old"}),
        ("wiki/*", BOTH),
        ("wiki/b*", {"b.xml": CONTENT}),
        ("wiki/index.txt", {"index.txt": b"no dump"}),
    ],
    ids=["folder", "pattern", "pattern of one file", "file"],
)
def test_what_an_address_names_is_copied(store, here, path, content):
    assert copied(path, here / "a") == content


def test_a_pattern_of_no_file_is_refused(store, here):
    with refused("cannot fetch memory://bucket/wiki/.*zip .no such file"):
        copied("wiki/*.zip", here / "e")


def test_an_interrupted_copy_goes_on(store, here):
    begin(here / "a", store, b"!" * 3000)
    assert copied("wiki/b.xml", here / "a")["b.xml"] == b"!" * 3000 + CONTENT[3000:]


def test_a_copy_of_a_changed_file_starts_again(store, here):
    begin(here / "b", store, b"!" * 3000)
    store.pipe("/bucket/wiki/b.xml", CONTENT[::-1])
    assert copied("wiki/b.xml", here / "b")["b.xml"] == CONTENT[::-1]


def test_a_copy_killed_at_any_write_goes_on_to_the_same_bytes(here):
    (here / "store").mkdir()
    (here / "store/a.xml").write_bytes(CONTENT)
    program = f"""
import os, sys
from pathlib import Path
from ifqa.storage import download
left = 2
def write(handle, content):
    global left
    left -= 1
    if left < 0:
        handle.write(content[:1000])
        handle.flush()
        os._exit(9)
    handle.write(content)
download.write_bytes = write
download.download_objects("local://{here}/store", Path("copies"))
"""
    codes = [subprocess.run([sys.executable, "-c", program]).returncode for _ in range(3)]
    assert codes == [9, 9, 0]
    assert (here / "copies/a.xml").read_bytes() == CONTENT


def test_a_file_cut_off_by_the_store_is_refused(store, here, monkeypatch):
    monkeypatch.setattr(object_store.ObjectResponse, "read1", lambda self, size: b"")
    with refused("cannot fetch memory://.*/b.xml .*run the same command again to resume"):
        copied("wiki/b.xml", here / "a")
    assert not (here / "a/b.xml").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "moon://bucket/a",
            "Protocol not known: moon; wanted an address such as s3://bucket/folder",
        ),
        ("s3://key:secret@bucket/a", "bucket/a: a key or a chain of stores in an address; wanted"),
        ("zip://a.xml::file://a.zip", "a chain of stores"),
        ("memory://bucket/up", "rename it in the store"),
    ],
)
def test_an_address_that_cannot_be_read_has_a_reason(store, here, url, message):
    store.store["/bucket/up/../a"] = store.store["/bucket/wiki/b.xml"]
    with refused(message) as error:
        download_objects(url, here / "a")
    assert "secret" not in str(error.value)


def test_a_store_that_is_down_has_one_line(store, here, monkeypatch):
    def down(self, *_, **__):
        raise ConnectionError("refused")

    for method in ("open", "ls"):
        monkeypatch.setattr(type(store), method, down)
        with refused("cannot fetch memory:///?bucket/wiki.* .refused") as error:
            copied("wiki", here / "a")
        assert isinstance(error.value, ServiceError)
