"""Late interaction (ColBERT; Khattab and Zaharia, SIGIR 2020): a vector for each token, compared token by token.

A passage's score is MaxSim: the sum, over the question's tokens, of the highest inner product with a token of the passage. The
passages' vectors are stored, so a question costs only its encoding and a matrix product. ColBERT reranks the passages of another
retriever exactly; unlike PLAID (Santhanam et al., CIKM 2022) it cannot search among all tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import ConfigError, DamagedArtifact
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.retrieval.composition import DEFAULT_FIRST_STAGE, Part, SinglePart
from ifqa.retrieval.vectors.encoders import replace_surrogates
from ifqa.retrieval.vectors.token_encoders import BATCH, TokenIndexRetriever, open_token_model
from ifqa.retrieval.vectors.vector_store import Arrays, Shards, to_float16
from ifqa.settings import check_arguments

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder


class ColBERT(SinglePart, TokenIndexRetriever):
    """Reranks all passages of its part by MaxSim."""

    version = 1
    name, kind, arrays = "colbert", "late", ("tokens", "lengths")
    default_parts: ClassVar = DEFAULT_FIRST_STAGE

    @check_arguments("setting of retriever 'colbert'")
    def __init__(self, index: Path, *, parts: Sequence[Part], device: str = "auto") -> None:
        """Open an index and its model; questions are encoded on `device`, and MaxSim runs on the CPU.

        Raises IfqaError if there is not exactly one part, or if index or model is missing, damaged or changed.
        """
        super().__init__("colbert", parts)
        facts = self.read_facts(index)
        self._stored = TokenVectors(Shards(index))
        self._model = open_token_model(self.kind, facts.model, facts.precision, device)
        self.family = self._part.retriever.family

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question by MaxSim, best first; ties keep the part's order.

        Raises IfqaError if the index lacks a passage that the part ranks, or the part generates passages.
        """
        rankings, reordered = self._part.search(questions), []
        if any(ranking.generated is not None for ranking in rankings):
            raise ConfigError('colbert reranks indexed passages, but its part generates passages; use "rerank"')
        queries = query_vectors(self._model, [question.text for question in questions])
        for query, ranking in zip(queries, rankings, strict=True):
            scores = maxsim(query, *self._stored.look_up([hit.passage_id for hit in ranking]))
            order = np.argsort(-scores, kind="stable")[:k].tolist()
            hits = [Hit(ranking[position].passage_id, float(scores[position])) for position in order]
            reordered.append(replace(ranking, hits=hits))
        return reordered

    @classmethod
    def encode(cls, model: "MultiVectorEncoder", passages: Sequence[Passage], texts: list[str]) -> Arrays:
        """The vectors of the passages' tokens, and the number of tokens of each passage."""
        vectors = _encode_tokens(model.encode_document, texts, model)
        lengths = np.array([len(tokens) for tokens in vectors], np.int32)
        ids = np.repeat([passage.id for passage in passages], lengths)
        return to_float16(np.concatenate(vectors), ids), lengths


class TokenVectors:
    """The token vectors of an index.

    `tokens-00000.npy` is a float16 array [tokens of all passages, dimension]; `lengths-00000.npy` is int32 [passages].
    """

    def __init__(self, shards: Shards) -> None:
        """Map the vectors and read the lengths. Raises IfqaError if a file is missing or damaged."""
        self._shards, self._tokens, self._ends = shards, [], []
        for place, (first, last) in enumerate(shards.bounds()):
            tokens, lengths = shards.array("tokens", place), shards.array("lengths", place)
            ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
            if tokens.dtype != np.float16 or (len(lengths), ends[-1]) != (last - first, len(tokens)):
                fault = f"the tokens of shard {place} do not match its lengths and ids"
                raise DamagedArtifact(f"{shards.folder}: {fault}; build the index again")
            self._tokens.append(tokens)
            self._ends.append(ends)

    def look_up(self, ids: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The token vectors of passages, float32 [tokens of all, dimension], and the number of tokens of each, [passages]."""
        vectors = [np.empty((0, self._tokens[0].shape[1]), np.float16)]
        rows = self._shards.rows(ids)
        for place, row in zip(self._shards.positions(rows).tolist(), rows.tolist(), strict=True):
            offset = row - int(self._shards.starts[place])
            first, last = self._ends[place][offset : offset + 2]
            vectors.append(self._tokens[place][first:last])
        lengths = np.array([len(tokens) for tokens in vectors[1:]], np.int64)
        return np.concatenate(vectors).astype(np.float32), lengths


def maxsim(query: NDArray[np.float32], tokens: NDArray[np.float32], lengths: NDArray[np.int64]) -> NDArray[np.float32]:
    """MaxSim of a question with each passage, float32 [passages]; 0 for a passage without tokens.

    `query` is [tokens, dimension]; `tokens`, of all passages, is [tokens, dimension]; `lengths`, in tokens, is [passages].
    """
    scores, nonempty = np.zeros(len(lengths), np.float32), lengths > 0
    if nonempty.any():
        starts = (np.cumsum(lengths) - lengths)[nonempty]
        scores[nonempty] = np.maximum.reduceat(query @ tokens.T, starts, axis=1).sum(axis=0)
    return scores


def query_vectors(model: "MultiVectorEncoder", texts: Sequence[str]) -> list[NDArray[np.float32]]:
    """The token vectors of each question, float32 [tokens, dimension]."""
    return _encode_tokens(model.encode_query, [replace_surrogates(text) for text in texts], model)


def _encode_tokens(
    encode: "Callable[..., list[NDArray[np.float32]]]", texts: list[str], model: "MultiVectorEncoder"
) -> list[NDArray[np.float32]]:
    vectors = encode(texts, batch_size=BATCH[model.device.type], convert_to_numpy=True, show_progress_bar=False)
    return [tokens.astype(np.float32) for tokens in vectors]
