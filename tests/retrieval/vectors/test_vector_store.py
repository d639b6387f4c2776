"""Folders of vectors: vectors come back as stored, unfinished shards are made again, damage is refused in one line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from vector_folder import all_vectors, folder_of

from ifqa.retrieval.vectors import vector_store as module
from ifqa.retrieval.vectors.vector_store import Filling, Shards, array_path, half


def rows_of(count, first=0):
    """Vectors [first, 1], [first + 1, 1], ...; half precision holds whole numbers up to 2048."""
    return np.stack([np.arange(first, first + count), np.ones(count)], 1).astype(np.float16)


def shards(*sizes):
    return [rows_of(size, first) for size, first in zip(sizes, np.cumsum([0, *sizes]).tolist(), strict=False)]


some_sizes = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(max_examples=20)
@given(sizes=some_sizes, data=st.data())
def test_row_numbers_run_through_all_shards(tmp_path_factory, sizes, data):
    folder = tmp_path_factory.mktemp("v")
    vectors = folder_of(folder, *shards(*sizes))
    assert len(vectors) == sum(sizes)
    assert vectors.dimension() == 2
    rows = data.draw(st.lists(st.integers(0, sum(sizes) - 1), max_size=12))
    np.testing.assert_array_equal(all_vectors(folder)[:, 0], range(sum(sizes)))
    names = [f"{shard}-{row}" for shard, size in enumerate(sizes) for row in range(size)]
    assert vectors.ids(rows) == [names[row] for row in rows]
    assert vectors.rows(vectors.ids(rows)).tolist() == rows
    found = [(first, shard[0, 0], len(shard)) for first, shard in vectors.vectors()]
    assert found == [(first, first, last - first) for first, last in vectors.bounds()]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 70_000.0])  # 70,000 is too large for half precision
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_a_vector_not_finite_in_half_precision_is_refused_by_id(wrong):
    vectors = rows_of(3).astype(np.float32)
    vectors[1, 0] = wrong
    with refused(r"the vector of passage b holds NaN or infinity \(one of 1\)"):
        half(vectors, ["a", "b", "c"])


def test_only_a_whole_shard_of_the_same_key_is_reused(tmp_path):
    filling, ids = Filling(tmp_path), ["東京-0", "wiki/Łódź#3 \ud800😀"]
    for number in range(5):
        filling.add(number, f"key{number}", ids, rows_of(2))
    array_path(tmp_path, "vectors", 1).unlink()
    array_path(tmp_path, "ids", 2).write_bytes(b"cut")
    content = array_path(tmp_path, "vectors", 4).read_bytes()
    array_path(tmp_path, "vectors", 4).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with open(tmp_path / module.LOG, "ab") as handle:
        handle.write(b'{"foo": 1}\n{"shard": [0], "key": "key0"}\n{"shard": 5, "key": "half a li')
    again = Filling(tmp_path)
    assert [again.has(number, f"key{number}") for number in range(6)] == [2, None, None, 2, None, None]
    assert again.has(0, "another key") is None
    again.add(1, "key1", ids[::-1], rows_of(2, 2))
    assert again.finish({0: "key0", 1: "key1"}) == 4
    assert Shards(tmp_path).ids(range(4)) == [*ids, *ids[::-1]]
    (tmp_path / module.LOG).write_text("[]\n")
    assert Filling(tmp_path).has(0, "key0") is None


def test_a_kill_before_the_log_line_leaves_no_shard_under_its_old_key(tmp_path, monkeypatch):
    Filling(tmp_path).add(0, "old", ["a", "b"], rows_of(2))
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(module, "write", lambda *_: 1 / 0)
        Filling(tmp_path).add(0, "new", ["c", "d"], rows_of(2, 5))
    if Filling(tmp_path).has(0, "old"):
        np.testing.assert_array_equal(np.load(array_path(tmp_path, "vectors", 0)), rows_of(2))


GOOD = rows_of(2, 2)
DAMAGED = [
    (np.hstack([GOOD, GOOD]), r"wanted float16 \(2, 2\), found float16 \(2, 4\)"), (GOOD[0], r"found float16 \(2,\)"),
    (GOOD[:1], r"found float16 \(1, 2\)"), (GOOD.astype(float), "found float64"), (np.array([{"a": 1}]), "is damaged"),
]  # fmt: skip


def test_missing_and_damaged_vectors_are_refused(tmp_path):
    folder_of(tmp_path, *shards(2, 2))
    path = array_path(tmp_path, "vectors", 1)
    for content, message in ((path.read_bytes()[:-3], "is damaged"), (b"", "is damaged"), *DAMAGED):
        path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
        with refused(message):
            Shards(tmp_path).dimension()
    path.unlink()
    with refused("vectors-00001.npy"):
        Shards(tmp_path).dimension()
    for line in ("{}", '{"shard": "0", "key": "k", "passages": 1, "sha256": []}'):
        (tmp_path / module.LOG).write_text(line + "\n")
        with refused(r"vectors\.jsonl:1: not as ifqa writes it \(.*\); build the index again"):
            Shards(tmp_path)
    (tmp_path / module.LOG).unlink()
    with refused("list of vector shards not found"):
        Shards(tmp_path)
    (tmp_path / module.LOG).write_text("")
    with refused("holds no vectors; build the index again"):
        Shards(tmp_path)
    folder_of(tmp_path, *shards(2))
    ids = Shards(tmp_path)
    array_path(tmp_path, "ids", 0).write_bytes(b"cut")
    with refused(r"ids-00000\.npy is damaged"):
        ids.ids([0])
