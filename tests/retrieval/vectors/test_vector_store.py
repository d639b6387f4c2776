"""Folders of vectors: vectors come back as stored, unfinished shards are made again, damage is refused in one line."""

import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_folder import all_vectors, folder_of

from ifqa.errors import IfqaError
from ifqa.retrieval.vectors import vector_store as module
from ifqa.retrieval.vectors.faiss_index import draw, parts_of
from ifqa.retrieval.vectors.vector_store import Filling, Shards, array_path


def rows_of(count, first=0):
    """Vectors [first, 1], [first + 1, 1], ...; half precision holds whole numbers up to 2048."""
    return np.stack([np.arange(first, first + count), np.ones(count)], 1).astype(np.float32)


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


@settings(max_examples=20)
@given(sizes=some_sizes, most=st.integers(1, 20))
def test_parts_are_whole_shards_in_order(tmp_path_factory, sizes, most):
    vectors = folder_of(tmp_path_factory.mktemp("v"), *shards(*sizes))
    parts = parts_of(vectors, most)
    assert [parts[0][0], *(last for _, last in parts)] == [first for first, _ in parts] + [sum(sizes)]
    bounds = {bound for rows in vectors.bounds() for bound in rows}
    for first, last in parts:
        assert {first, last} <= bounds
        assert last - first <= most or (first, last) in vectors.bounds()
        assert sum(len(shard) for _, shard in vectors.vectors(first, last)) == last - first


@settings(max_examples=20)
@given(sizes=some_sizes, seed=st.integers(0, 99), data=st.data())
def test_a_sample_repeats_no_vector_and_follows_its_seed(tmp_path_factory, sizes, seed, data):
    vectors = folder_of(tmp_path_factory.mktemp("v"), *shards(*sizes))
    size = data.draw(st.integers(0, sum(sizes)))
    drawn = draw(vectors, size, seed)
    assert drawn.shape == (size, 2)
    assert len(set(drawn[:, 0])) == size
    np.testing.assert_array_equal(drawn, draw(vectors, size, seed))


def test_ids_may_be_any_text(tmp_path):
    ids = ["a", "東京-0", "wiki/Łódź#3", "\ud800", "😀" * 40]
    filling = Filling(tmp_path)
    filling.add(3, "key", ids, rows_of(5))
    assert filling.finish({3: "key"}) == 5
    assert Shards(tmp_path).ids([4, 0, 1, 2, 3]) == [ids[4], *ids[:4]]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 70_000.0])  # 70,000 is too large for half precision
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_a_vector_not_finite_in_half_precision_is_refused_by_id(tmp_path, wrong):
    vectors = rows_of(3)
    vectors[1, 0] = wrong
    with pytest.raises(IfqaError, match=r"the vector of passage b holds NaN or infinity \(one of 1\)") as caught:
        Filling(tmp_path).add(7, "key", ["a", "b", "c"], vectors)
    assert "\n" not in str(caught.value)
    assert Filling(tmp_path).has(7, "key") is None


def test_only_a_whole_shard_of_the_same_key_is_reused(tmp_path):
    filling = Filling(tmp_path)
    for number in range(4):
        filling.add(number, f"key{number}", ["a", "b"], rows_of(2))
    array_path(tmp_path, "vectors", 1).unlink()
    array_path(tmp_path, "ids", 2).write_bytes(b"cut")
    with open(tmp_path / module.LOG, "ab") as handle:
        handle.write(b'{"shard": 5, "key": "half a li')
    again = Filling(tmp_path)
    assert [again.has(number, f"key{number}") for number in range(6)] == [2, None, None, 2, None, None]
    assert again.has(0, "another key") is None


@pytest.mark.parametrize("foreign", ['{"foo": 1}', '{"shard": 0, "key": "x"}', '{"shard": [0], "key": "key0"}', "[]"])
def test_a_foreign_line_in_the_log_counts_as_absent(tmp_path, foreign):
    filling = Filling(tmp_path)
    filling.add(0, "key0", ["a", "b"], rows_of(2))
    log = tmp_path / module.LOG
    log.write_text(foreign + "\n" + log.read_text() if foreign != "[]" else foreign + "\n")
    again = Filling(tmp_path)
    assert again.has(0, "key0") == (None if foreign == "[]" else 2)
    again.add(1, "key1", ["c", "d"], rows_of(2, 2))
    again.add(0, "key0", ["a", "b"], rows_of(2))
    assert again.finish({0: "key0", 1: "key1"}) == 4
    assert Shards(tmp_path).ids(range(4)) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("kind", ["vectors", "ids"])
def test_a_shard_altered_at_equal_size_is_not_reused(tmp_path, kind):
    Filling(tmp_path).add(0, "key", ["a", "b"], rows_of(2))
    data = array_path(tmp_path, kind, 0).read_bytes()
    array_path(tmp_path, kind, 0).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert Filling(tmp_path).has(0, "key") is None


def test_finishing_removes_other_shards(tmp_path):
    filling = Filling(tmp_path)
    for number in (2, 0, 1):
        filling.add(number, "key", [f"{number}a", f"{number}b"], rows_of(2, number))
    assert filling.finish({0: "key", 2: "key"}) == 4
    assert sorted(path.name for path in tmp_path.glob("*.npy")) == [
        f"{kind}-0000{n}.npy" for kind in ("ids", "vectors") for n in (0, 2)
    ]
    assert Shards(tmp_path).ids(range(4)) == ["0a", "0b", "2a", "2b"]


def test_a_kill_before_the_log_line_leaves_no_shard_under_its_old_key(tmp_path, monkeypatch):
    Filling(tmp_path).add(0, "old", ["a", "b"], rows_of(2))

    def killed(handle, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "write", killed)
        Filling(tmp_path).add(0, "new", ["c", "d"], rows_of(2, 5))
    if Filling(tmp_path).has(0, "old"):
        np.testing.assert_array_equal(np.load(array_path(tmp_path, "vectors", 0)), rows_of(2))


def damage(folder, kind):
    path, good = array_path(folder, "vectors", 1), np.load(array_path(folder, "vectors", 1))
    if kind == "missing":
        path.unlink()
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:-3])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "pickled":
        np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    else:
        changed = {"wider": np.hstack([good, good]), "shorter": good[:1], "double": good.astype(float), "flat": good[0]}
        np.save(path, changed[kind])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "vectors-00001.npy"),
        ("truncated", "is damaged"),
        ("empty", "is damaged"),
        ("pickled", "is damaged"),
        ("wider", r"wanted float16 \(2, 2\), found float16 \(2, 4\)"),
        ("shorter", r"wanted float16 \(2, 2\), found float16 \(1, 2\)"),
        ("double", "found float64"),
        ("flat", r"found float16 \(2,\)"),
    ],
)
def test_damaged_vectors_are_refused_in_one_line(tmp_path, kind, message):
    folder_of(tmp_path, *shards(2, 2))
    damage(tmp_path, kind)
    with pytest.raises(IfqaError, match=message) as caught:
        Shards(tmp_path).dimension()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("line", ["{}", '{"shard": "0", "key": "k", "passages": 1, "sha256": []}'])
def test_a_list_of_shards_of_another_shape_is_refused_in_one_line(tmp_path, line):
    (tmp_path / "vectors.jsonl").write_text(line + "\n")
    with pytest.raises(IfqaError, match=r"vectors\.jsonl:1: not as ifqa writes it \(.*\); build the index again"):
        Shards(tmp_path)


def test_missing_vectors_and_damaged_ids_are_refused(tmp_path):
    with pytest.raises(IfqaError, match="list of vector shards not found"):
        Shards(tmp_path)
    (tmp_path / module.LOG).write_text("")
    with pytest.raises(IfqaError, match="holds no vectors; build the index again"):
        Shards(tmp_path)
    folder_of(tmp_path, *shards(2))
    ids = Shards(tmp_path)
    array_path(tmp_path, "ids", 0).write_bytes(b"cut")
    with pytest.raises(IfqaError, match=r"ids-00000\.npy is damaged"):
        ids.ids([0])


@pytest.mark.skipif(sys.platform == "win32", reason="limits open files as POSIX does")
def test_ids_of_many_shards_are_read_with_few_files_open(tmp_path):
    """macOS allows a process 256 open files unless told otherwise."""
    import resource

    folder_of(tmp_path, *shards(*[1] * 150))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 80, limits[1]))
    try:
        assert Shards(tmp_path).ids(range(150)) == [f"{shard}-0" for shard in range(150)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
