"""Files that grow by chunks: what a run keeps after a kill at any byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.storage.append_log import AppendLog
from ifqa.storage.artifacts import LOG

NAMES = ("a", "b")
PARTS = st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=6))


def open_log(folder, keep=lambda facts: True):
    return AppendLog(folder, NAMES, keep)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOG}


def joined(chunks):
    """The expected content of the files after these chunks."""
    names = {name for parts in chunks for name in parts}
    return {name: b"".join(parts.get(name, b"") for parts in chunks) for name in names}


@given(st.lists(PARTS, max_size=5), st.sampled_from([*NAMES, LOG]), st.integers(0, 400))
def test_complete_chunks_are_kept_after_a_cut_at_any_byte(tmp_path_factory, chunks, cut_file, size):
    folder = tmp_path_factory.mktemp("chunks")
    log = open_log(folder)
    for number, parts in enumerate(chunks):
        log.add(parts, {"number": number})
    if (folder / cut_file).exists():
        (folder / cut_file).write_bytes((folder / cut_file).read_bytes()[:size])
    log = open_log(folder)
    count = len(log.kept)
    assert log.kept == [{"number": number} for number in range(count)]
    assert content(folder) == joined(chunks[:count])
    if count < len(chunks):  # the first missing chunk was damaged
        assert cut_file == LOG or len(joined(chunks[: count + 1])[cut_file]) > size
    for number, parts in enumerate(chunks[count:], start=count):
        log.add(parts, {"number": number})
    log.finish("a")
    assert content(folder) == {"a": b""} | joined(chunks)


@pytest.mark.parametrize("fault", ["damaged", "rejected"])
def test_a_bad_chunk_is_removed_with_all_later_chunks(tmp_path, fault):
    log = open_log(tmp_path)
    for number in range(3):
        log.add({"a": b"x", "b": b"y" * number}, {"number": number})
    if fault == "damaged":
        (tmp_path / "b").write_bytes(b"zyy")
    assert open_log(tmp_path, lambda facts: fault == "damaged" or facts["number"] != 1).kept == [
        {"number": 0}
    ]
    assert content(tmp_path) == {"a": b"x", "b": b""}


@pytest.mark.parametrize(
    "parts", [None, {"a": 3}, {"a": [1]}, {"a": [-1, ""]}, {"a": ["1", ""]}, {"c": [0, ""]}]
)
def test_a_malformed_log_keeps_nothing(tmp_path, parts):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / LOG).write_text(json.dumps({"parts": parts}) + "\n")
    assert open_log(tmp_path).kept == []
    assert content(tmp_path) == {}
