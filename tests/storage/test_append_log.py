"""Files that grow by chunks: what the next attempt finds of them after a kill at any byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.storage.append_log import AppendLog
from ifqa.storage.artifacts import LOG

NAMES = ("a", "b")
PARTS = st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=6))


def begun(folder, keep=lambda facts: True):
    return AppendLog(folder, NAMES, keep)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOG}


def whole(chunks):
    """What the files of these chunks hold."""
    names = {name for parts in chunks for name in parts}
    return {name: b"".join(parts.get(name, b"") for parts in chunks) for name in names}


@given(st.lists(PARTS, max_size=5), st.sampled_from([*NAMES, LOG]), st.integers(0, 400))
def test_whole_chunks_are_kept_after_a_cut_at_any_byte(tmp_path_factory, chunks, cut, at):
    folder = tmp_path_factory.mktemp("chunks")
    log = begun(folder)
    for number, parts in enumerate(chunks):
        log.add(parts, {"number": number})
    if (folder / cut).exists():
        (folder / cut).write_bytes((folder / cut).read_bytes()[:at])
    again = begun(folder)
    kept = len(again.kept)
    assert again.kept == [{"number": number} for number in range(kept)]
    assert content(folder) == whole(chunks[:kept])
    if kept < len(chunks):  # the first that is missing was damaged
        assert cut == LOG or len(whole(chunks[: kept + 1])[cut]) > at
    for number, parts in enumerate(chunks[kept:], start=kept):
        again.add(parts, {"number": number})
    again.finish("a")
    assert content(folder) == {"a": b""} | whole(chunks)


@pytest.mark.parametrize("fault", ["other bytes", "not to be kept"])
def test_a_bad_chunk_and_all_after_it_are_cut_off(tmp_path, fault):
    log = begun(tmp_path)
    for number in range(3):
        log.add({"a": b"x", "b": b"y" * number}, {"number": number})
    if fault == "other bytes":
        (tmp_path / "b").write_bytes(b"zyy")
    keep = (lambda facts: facts["number"] != 1) if fault == "not to be kept" else (lambda facts: True)
    assert begun(tmp_path, keep).kept == [{"number": 0}]
    assert content(tmp_path) == {"a": b"x", "b": b""}


@pytest.mark.parametrize("parts", [None, {"a": 3}, {"a": [1]}, {"a": [-1, ""]}, {"a": ["1", ""]}, {"c": [0, ""]}])
def test_a_log_that_is_not_ours_keeps_nothing(tmp_path, parts):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / LOG).write_text(json.dumps({"parts": parts}) + "\n")
    assert begun(tmp_path).kept == []
    assert content(tmp_path) == {}
