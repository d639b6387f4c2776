"""Exact search equals brute force; FAISS indexes in parts, their recall, and refused settings."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from vector_folder import all_vectors, folder_of

from ifqa.retrieval.vectors.vector_index import (
    FaissIndex,
    FlatIndex,
    build_index,
    estimate_bytes,
    sample_vectors,
)

DIMENSION = 32


@pytest.fixture(autouse=True)
def one_thread():
    """Several threads make small searches many times slower on a busy machine."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(before)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """10,200 vectors around 60 centres, in six shards of unequal size."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((60, DIMENSION))
    points = centres[rng.integers(0, 60, 10_200)] + 0.3 * rng.standard_normal((10_200, DIMENSION))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return folder_of(
        tmp_path_factory.mktemp("vectors"), *np.split(points, [2000, 2100, 5000, 5001, 9000])
    )


@pytest.fixture(scope="module")
def queries(vectors):
    rows = np.random.default_rng(5).integers(0, len(vectors), 50)
    noise = np.random.default_rng(6).standard_normal((50, DIMENSION))
    return (all_vectors(vectors.folder)[rows] + 0.1 * noise).astype(np.float32)


def open_index(folder, shards, **settings):
    return FaissIndex(folder, (len(shards), DIMENSION), **settings)


def recall(rows, expected):
    return np.mean(
        [
            len(set(a) & set(b)) / len(b)
            for a, b in zip(rows.tolist(), expected.tolist(), strict=True)
        ]
    )


@pytest.mark.parametrize("part_size", [1, 5100, 10**6])
def test_flat_in_any_number_of_parts_equals_exact_search(vectors, queries, tmp_path, part_size):
    facts = build_index(vectors, tmp_path, "Flat", part_size=part_size)
    assert (
        facts["parts"]
        == len(list(tmp_path.glob("faiss-*.index")))
        == {1: 6, 5100: 3, 10**6: 1}[part_size]
    )
    assert facts["bytes"] == sum(path.stat().st_size for path in tmp_path.glob("faiss-*.index"))
    assert facts["trained_on"] == 0
    for k in (1, 10, 20_000) if part_size == 5100 else (10,):
        scores, rows = open_index(tmp_path, vectors).search(queries, k)
        expected_scores, expected_rows = FlatIndex(vectors).search(queries, k)
        assert (scores.dtype, rows.dtype) == (np.float32, np.int64)
        np.testing.assert_allclose(scores, expected_scores, rtol=1e-5, atol=1e-5)
        if k < 20_000:
            np.testing.assert_array_equal(rows, expected_rows)


FACTORIES = {
    "SQfp16": 1.0,
    "HNSW8": 0.9,
    "IVF32,PQ8x4": 0.05,
    "PCA16,SQ8": 0.2,
    "IVF32,PQ8x4fs,RFlat": 0.2,
    "HNSW8_SQ8": 0.9,
    "L2norm,Flat": 0.99,
    "IVF32_HNSW8,SQ8": 0.9,
}


@pytest.mark.parametrize(("factory", "floor"), FACTORIES.items())
def test_every_kind_of_index_reaches_its_recall(vectors, queries, tmp_path, factory, floor):
    facts: Any = build_index(vectors, tmp_path, factory, part_size=6000, train_sample=1300)
    scores, rows = open_index(tmp_path, vectors).search(queries, 10)
    assert facts["parts"] == 2
    assert recall(rows, FlatIndex(vectors).search(queries, 10)[1]) >= floor
    assert (np.diff(scores, axis=1) <= 0).all()
    assert (
        0.8 * facts["bytes"]
        < estimate_bytes(factory, len(vectors), DIMENSION)
        < 2 * facts["bytes"] + 1e5
    )


def test_the_training_sample_is_bounded_reported_and_seeded(vectors, tmp_path):
    assert build_index(vectors, tmp_path, "IVF64,Flat")["trained_on"] == 10_000
    assert build_index(vectors, tmp_path, "IVF64,Flat", train_sample=5000)["trained_on"] == 5000
    assert build_index(vectors, tmp_path, "IVF160,SQ8")["trained_on"] == 10_200
    assert build_index(vectors, tmp_path, "HNSW8")["trained_on"] == 0
    np.testing.assert_array_equal(sample_vectors(vectors, 100, 1), sample_vectors(vectors, 100, 1))
    assert (sample_vectors(vectors, 100, 1) != sample_vectors(vectors, 100, 2)).any()
    np.testing.assert_array_equal(
        sample_vectors(vectors, len(vectors), 1), all_vectors(vectors.folder)
    )


def test_an_index_larger_than_the_memory_gives_the_same_answers(vectors, queries, tmp_path):
    build_index(vectors, tmp_path, "IVF32,SQ8", part_size=3000)
    large = open_index(tmp_path, vectors)
    small = open_index(tmp_path, vectors, memory_gb=1e-6)
    assert (len(large._loaded), len(small._loaded)) == (4, 0)
    np.testing.assert_equal(large.search(queries, 20), small.search(queries, 20))
    # Same lists in fewer parts
    assert build_index(vectors, tmp_path, "IVF32,SQ8", part_size=6000)["parts"] == 2
    rows = open_index(tmp_path, vectors).search(queries, 20)[1]
    np.testing.assert_array_equal(rows, large.search(queries, 20)[1])


@pytest.mark.parametrize(
    ("factory", "name"), [("PCA24,IVF128,SQ8", "nprobe"), ("HNSW4", "ef_search")]
)
def test_more_lists_or_candidates_raise_recall(vectors, queries, tmp_path, factory, name):
    expected = FlatIndex(vectors).search(queries, 10)[1]
    build_index(vectors, tmp_path, factory)
    few, many = (
        open_index(tmp_path, vectors, **{name: setting}).search(queries, 10)[1]
        for setting in (1, 500)
    )
    assert recall(few, expected) < recall(many, expected)


def test_missing_hits_have_row_minus_1(vectors, queries, tmp_path):
    build_index(vectors, tmp_path, "IVF128,Flat", part_size=3000)
    scores, rows = open_index(tmp_path, vectors, nprobe=1).search(queries, 2000)
    assert (rows[:, -1] == -1).all()
    assert (np.isneginf(scores) == (rows == -1)).all()
    assert all(np.unique(row[row >= 0]).size == (row >= 0).sum() for row in rows)


@pytest.mark.parametrize(
    ("factory", "settings", "message"),
    [
        (
            "bogus",
            {},
            (
                '= "bogus": faiss cannot build it .*could not parse index string bogus.*; '
                "use a factory such"
            ),
        ),
        ("LSH", {}, "for inner product .*METRIC_L2"),
        ("IDMap,Flat", {}, "add_with_ids"),
        ("HNSW1", {}, "too small; wanted at least HNSW2"),
        ("PQ8", {"train_sample": 200}, "at least as large as number of clusters"),
        ("Flat", {"nprobe": 4}, "nprobe = 4: .*has no such setting; set it to 0"),
        ("IVF32,SQ8", {"ef_search": 4}, "ef_search = 4"),
        ("Flat", {"device": "cuda"}, "faiss finds no GPU.*pip install 'ifqa.gpu.'"),
    ],
)
def test_wrong_factories_and_settings_are_refused(
    vectors, tmp_path, monkeypatch, factory, settings, message
):
    import faiss

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    sample = {name: settings.pop(name) for name in ["train_sample"] if name in settings}
    with refused(message):
        build_index(vectors, tmp_path, factory, **sample)
        open_index(tmp_path, vectors, **settings)
    monkeypatch.setitem(sys.modules, "faiss", None)
    for call in (
        lambda: build_index(vectors, tmp_path, "Flat"),
        lambda: open_index(tmp_path, vectors),
    ):
        with refused(r"needs faiss: pip install 'ifqa\[cpu\]' .*factory = \"\""):
            call()


def test_a_damaged_index_is_refused_in_one_line(vectors, queries, tmp_path):
    build_index(vectors, tmp_path, "Flat", part_size=6000)
    path = tmp_path / "faiss-00001.index"
    log = tmp_path / "faiss.json"
    whole = path.read_bytes()
    text = log.read_text()
    for broken in (whole[:-1], b"\0" * len(whole), b""):
        path.write_bytes(broken)
        with refused(r"faiss-00001.index is damaged .*; build the index again"):
            open_index(tmp_path, vectors)
    path.write_bytes(whole)
    log.write_text(
        text.replace('"passages": 5001', '"passages": 5000').replace(
            '"passages": 5199', '"passages": 5200'
        )
    )
    with refused(r"vectors of shape .*, wanted"):
        open_index(tmp_path, vectors)
    with refused("not an index of 3 vectors"):
        FaissIndex(tmp_path, (3, DIMENSION))
    for shape in (
        "[]",
        "3",
        "{}",
        text.replace('"parts"', '"part"'),
        text.replace("faiss-00001", "../faiss-00001"),
    ):
        log.write_text(shape)
        with refused(r"faiss\.json: not as ifqa writes it \(.*\); build the index again"):
            open_index(tmp_path, vectors)
    log.unlink()
    with refused("FAISS index not found"):
        open_index(tmp_path, vectors)


def brute_force(shards, queries, k):
    """Every inner product in float64, sorted."""
    all_vectors = np.concatenate(shards).astype(np.float64)
    scores = queries.astype(np.float64) @ all_vectors.T

    def best_rows(of_query):
        return sorted(range(len(all_vectors)), key=lambda row: (-of_query[row], row))[:k]

    rows = np.array([best_rows(of_query) for of_query in scores], np.int64)
    rows = rows.reshape(len(queries), min(k, len(all_vectors)))
    return np.take_along_axis(scores, rows, 1), rows


@given(
    seed=st.integers(0, 2**32 - 1),
    questions=st.integers(0, 6),
    k=st.integers(1, 50),
    block=st.integers(8, 200),
)
def test_every_search_equals_brute_force_with_ties_in_row_order(
    tmp_path_factory, seed, questions, k, block
):
    rng = np.random.default_rng(seed)
    dimension = rng.integers(1, 6)
    sizes = rng.integers(1, 13, rng.integers(1, 5))
    # few whole numbers, so that many vectors are equal and every score is exact
    shards = [rng.integers(-1, 2, (size, dimension)).astype(np.float32) for size in sizes]
    queries = rng.integers(-2, 3, (questions, dimension)).astype(np.float32)
    expected_scores, expected_rows = brute_force(shards, queries, k)
    vectors = folder_of(tmp_path_factory.mktemp("v"), *shards)
    scores, rows = FlatIndex(vectors, block).search(queries, k)
    assert (scores.dtype, rows.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(scores, expected_scores)
