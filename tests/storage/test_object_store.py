"""Sources in an object store, by fsspec's store in memory and its local files."""

import re
import subprocess
import sys

import fsspec
import pytest
from refusals import refused

from ifqa.corpus.sources import open_source
from ifqa.storage import object_store
from ifqa.storage.object_store import copy_objects

CONTENT = bytes(range(256)) * 20_000  # five reads
ANY = re.compile(".*")


@pytest.fixture
def store(here):
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pipe({"/bucket/wiki/b10.xml": CONTENT, "/bucket/wiki/b2.xml": b"two", "/bucket/wiki/index.txt": b"no dump"})
    return store


def test_a_folder_a_pattern_and_a_file_are_copied(store):
    def copied(path, names=r".*\.xml"):
        files = copy_objects(f"memory://bucket/{path}", re.compile(names))
        return {file.name: file.read_bytes() for file in files}

    both = {"b10.xml": CONTENT, "b2.xml": b"two"}
    assert copied("wiki") == both
    assert copied("*/b*", "the names hold for folders") == both
    assert copied("wiki/index.txt") == {"index.txt": b"no dump"}
    assert copied("elsewhere") == {}


def test_a_file_is_copied_again_only_if_it_has_changed(store):
    url = "memory://bucket/wiki/b2.xml"
    [file] = copy_objects(url, ANY)
    file.write_bytes(b"marked")
    copy_objects(url, ANY)
    assert file.read_bytes() == b"marked"
    store.pipe("/bucket/wiki/b2.xml", b"three")
    copy_objects(url, ANY)
    assert file.read_bytes() == b"three"


def test_an_interrupted_copy_goes_on_and_a_changed_file_starts_again(store):
    url = "memory://bucket/wiki/b10.xml"
    [file] = copy_objects(url, ANY)
    part = file.with_name(".b10.xml.part")
    part.write_bytes(b"!" * 3000)  # as of this version, so its bytes are kept
    copy_objects(url, ANY)
    assert file.read_bytes() == b"!" * 3000 + CONTENT[3000:]
    part.write_bytes(b"!" * 3000)
    store.pipe("/bucket/wiki/b10.xml", CONTENT[::-1])
    copy_objects(url, ANY)
    assert file.read_bytes() == CONTENT[::-1]
    assert not part.exists()


def test_a_copy_killed_at_any_write_goes_on_to_the_same_bytes(here):
    (here / "store").mkdir()
    (here / "store/a.xml").write_bytes(CONTENT)
    url = f"local://{here}/store/a.xml"
    program = f"""
import os, re, sys
from ifqa.storage import object_store
left = int(sys.argv[1])
def write(handle, content):
    global left
    left -= 1
    if left < 0:
        handle.write(content[:1000])
        handle.flush()
        os._exit(9)
    handle.write(content)
object_store.write_bytes = write
object_store.copy_objects({url!r}, re.compile(".*"))
"""
    codes = [subprocess.run([sys.executable, "-c", program, "2"]).returncode for _ in range(3)]
    assert codes == [9, 9, 0]
    [file] = copy_objects(url, ANY)
    assert file.read_bytes() == CONTENT


def test_a_file_cut_off_by_the_store_is_refused_and_nothing_is_replaced(store, monkeypatch):
    [file] = copy_objects("memory://bucket/wiki/b2.xml", ANY)
    store.pipe("/bucket/wiki/b2.xml", b"three")
    monkeypatch.setattr(type(store), "size", lambda self, path: 9)
    with refused("has 9 bytes in the store, 5 were read"):
        copy_objects("memory://bucket/wiki/b2.xml", ANY)
    assert file.read_bytes() == b"two"


@pytest.mark.parametrize(
    ("url", "message"),
    [("moon://bucket/a", "Protocol not known: moon"), ("memory://bucket/../a", "cannot be used here")],
)
def test_an_address_that_cannot_be_read_has_a_reason(store, url, message):
    store.pipe("/bucket/../a", b"out")
    with refused(message):
        copy_objects(url, ANY)


def test_a_store_that_is_down_has_one_line(store, monkeypatch):
    def down(self, path, **_):
        raise ConnectionError("refused")

    monkeypatch.setattr(type(store), "find", down)
    with refused("cannot read memory://bucket/wiki \\(refused\\); run the same command again"):
        copy_objects("memory://bucket/wiki", ANY)


def test_a_source_in_a_store_has_the_fingerprint_of_a_local_one(store, here):
    (here / "local").mkdir()
    for name in ("b10.xml", "b2.xml"):
        (here / "local" / name).write_bytes(store.cat(f"/bucket/wiki/{name}"))
    local, remote = (open_source({"format": "dump", "path": path}, here) for path in ("local", "memory://bucket/wiki"))
    assert [file.name for file in remote.files()] == ["b2.xml", "b10.xml"]
    assert remote.fingerprint({}) == local.fingerprint({})
    assert remote.files()[0].is_relative_to(object_store.OBJECTS)
