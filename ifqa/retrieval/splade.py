"""Learned sparse retrieval (SPLADE; Formal et al., SIGIR 2021): a model weighs the words of its vocabulary for each text.

A passage's score is the inner product of its weights and the question's. The inverted index lists, for each word of the
vocabulary, the passages with that word and their weights. Search is exact. The model is a sentence-transformers `SparseEncoder`,
which may encode questions by table look-up alone.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import DamagedArtifact
from ifqa.records import Passage, Question, SearchResult
from ifqa.retrieval.vectors.encoders import replace_surrogates
from ifqa.retrieval.vectors.token_encoders import BATCH, TokenIndexRetriever, open_token_model
from ifqa.retrieval.vectors.vector_index import keep_best
from ifqa.retrieval.vectors.vector_store import Arrays, Shards, to_float16
from ifqa.settings import check_arguments

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder
    from torch import Tensor


class Splade(TokenIndexRetriever):
    """Searches inverted lists of learned weights."""

    version = 1
    name, kind, arrays, fixed_arrays = "splade", "sparse", ("starts", "rows", "weights"), 1

    @check_arguments("setting of retriever 'splade'")
    def __init__(self, index: Path, *, device: str = "auto") -> None:
        """Open an index and its model; raises as `read_facts` does. `device` encodes the questions; the CPU searches."""
        facts = self.read_facts(index)
        self._model = open_token_model(self.kind, facts.model, facts.precision, device)
        self._shards = Shards(index)
        self._lists = [InvertedLists(self._shards, place) for place in range(len(self._shards.numbers))]

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` passages of each question with the highest inner product above 0, best first."""
        queries = query_weights(self._model, [question.text for question in questions])
        size = min(k, len(self._shards))
        scores = np.zeros((len(queries), size), np.float32)  # zeros, because a passage needs a score above 0
        rows = np.full((len(queries), size), -1, np.int64)
        for first, lists in zip(self._shards.starts.tolist(), self._lists, strict=False):
            for number, (words, weights) in enumerate(queries):
                query = slice(number, number + 1)
                keep_best(scores[query], rows[query], lists.scores(words, weights)[None], first)
        return self._shards.to_rankings(scores, rows)

    @classmethod
    def encode(cls, model: "SparseEncoder", passages: Sequence[Passage], texts: list[str]) -> Arrays:
        """The inverted lists of passages: starts, rows and weights."""
        rows, words, weights = _encode_sparse(model.encode_document, texts, model)
        order = np.argsort(words, kind="stable")  # rows stay ascending within a word
        counts = np.bincount(words, minlength=model.get_embedding_dimension() or 0)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
        ids = np.array([passage.id for passage in passages])
        return starts, rows[order].astype(np.uint16), to_float16(weights, ids[rows])[order]


class InvertedLists:
    """The inverted lists of a shard: `rows[starts[word] : starts[word + 1]]` are the passages with a word, ascending.

    `starts` is uint32 [vocabulary + 1]; `rows` and `weights` are uint16 and float16 [weights of all passages].
    """

    def __init__(self, shards: Shards, place: int) -> None:
        """Map the files. Raises IfqaError if a file is missing or damaged."""
        self._starts, self._rows, self._weights = (shards.array(kind, place) for kind in Splade.arrays)
        first, last = shards.bounds()[place]
        self._count = last - first
        kinds = [array.dtype.name for array in (self._starts, self._rows, self._weights)]
        if kinds != ["uint32", "uint16", "float16"] or not self._starts[-1] == len(self._rows) == len(self._weights):
            raise DamagedArtifact(f"{shards.folder}: the lists of shard {place} do not match; build the index again")

    def scores(self, words: NDArray[np.int64], weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The inner product of each passage with a question's `words`, ascending numbers, and their weights."""
        first, last = self._starts[words].astype(np.int64), self._starts[words + 1].astype(np.int64)
        lengths = last - first
        positions = np.arange(lengths.sum()) + np.repeat(last - np.cumsum(lengths), lengths)
        products = np.repeat(weights, lengths) * self._weights[positions].astype(np.float32)
        return np.bincount(self._rows[positions], products, minlength=self._count).astype(np.float32)


def query_weights(model: "SparseEncoder", texts: Sequence[str]) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """The words of each question (numbers in the vocabulary, ascending), and their weights."""
    if not texts:
        return []
    numbers, words, weights = _encode_sparse(model.encode_query, [replace_surrogates(text) for text in texts], model)
    cuts = np.cumsum(np.bincount(numbers, minlength=len(texts)))[:-1]
    return list(zip(np.split(words, cuts), np.split(weights, cuts), strict=True))


def _encode_sparse(
    encode: "Callable[..., Tensor]", texts: list[str], model: "SparseEncoder"
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Text numbers, words and values of all nonzero weights, sorted by text, then by word."""
    weights = encode(texts, batch_size=BATCH[model.device.type], save_to_cpu=True, show_progress_bar=False).coalesce()
    rows, words = weights.indices().numpy()
    return rows, words, weights.values().float().numpy()
