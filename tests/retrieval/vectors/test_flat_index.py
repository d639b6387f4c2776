"""Exact search equals brute force."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from vector_folder import folder_of

from ifqa.retrieval.vectors.nearest import FlatIndex


def brute_force(shards, queries, k):
    """Every inner product in float64, sorted."""
    all_vectors = np.concatenate(shards).astype(np.float64)
    scores = queries.astype(np.float64) @ all_vectors.T
    rows = np.array([sorted(range(len(all_vectors)), key=lambda row, s=s: (-s[row], row))[:k] for s in scores], int)
    rows = rows.reshape(len(queries), min(k, len(all_vectors)))
    return np.take_along_axis(scores, rows, 1), rows


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    dimension=st.integers(1, 5),
    questions=st.integers(0, 6),
    k=st.integers(1, 50),
    block=st.integers(8, 200),
)
def test_every_search_equals_brute_force_with_ties_in_row_order(
    tmp_path_factory, seed, sizes, dimension, questions, k, block
):
    rng = np.random.default_rng(seed)  # few whole numbers, so that many vectors are equal and every score is exact
    shards = [rng.integers(-1, 2, (size, dimension)).astype(np.float32) for size in sizes]
    queries = rng.integers(-2, 3, (questions, dimension)).astype(np.float32)
    expected_scores, expected_rows = brute_force(shards, queries, k)
    vectors = folder_of(tmp_path_factory.mktemp("v"), *shards)
    scores, rows = FlatIndex(vectors, block).search(queries, k)
    assert scores.dtype == np.float32
    assert rows.dtype == np.int64
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(scores, expected_scores)
