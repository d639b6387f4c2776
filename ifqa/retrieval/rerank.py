"""Reranks the best passages of another retriever with a cross-encoder, or by the answers that the span reader finds in them."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ifqa.models.hub import model_requirement
from ifqa.plugins import code_of, load
from ifqa.protocols import Place, Requirement
from ifqa.records import Hit, Question, SearchResult
from ifqa.retrieval import cross_encoder
from ifqa.retrieval.parts import Fetch, Part, SinglePart, passages_of
from ifqa.retrieval.queries import rewrite
from ifqa.settings import Natural, checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

READER = "extractive"  # as a model: the reader of that name
WEIGHT = 0.5  # of the model; better than the model alone on a held-out quarter of full-train (README)


class Rerank(SinglePart):
    """Reorders the first passages of its one part with a cross-encoder, or with the span reader."""

    version = 1
    not_identity = ("device",)
    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "fusion"}]

    @checked("setting of retriever 'rerank'")
    def __init__(
        self,
        *,
        parts: Sequence[Part],
        passages: Fetch,
        model: Place = cross_encoder.OWN,
        reads: str = "question",
        depth: Natural = 0,
        model_weight: Annotated[float, Field(gt=0, le=1)] = WEIGHT,
        device: str = "auto",
    ) -> None:
        """Keep the part, and load the model.

        Args:
            parts: a single retriever, whose best passages are reordered.
            passages: returns the passages of a list of ids.
            model: "ifqa", a folder of `ifqa train rerank`, a cross-encoder on the hub, or "extractive": the span reader that
                ships with ifqa, which scores a passage by how much of an answer it holds (`Extractive.relevance`).
            reads: the part of the question that the model reads, by its name in `ifqa.retrieval.queries.QUERIES`.
            depth: so many of the part's passages are reordered, and the others follow as they were; 0 for all of them.
            model_weight: weight of the model's scores, above 0 to 1; the part's own scores get the rest. See `reordered`.
            device: "cpu", "cuda", or "auto".

        Raises:
            IfqaError: there is not exactly one part, a setting is out of range, or the model is missing or does not load.
        """
        super().__init__("rerank", parts)
        self._fetch, self._reads, self._weight = passages, reads, model_weight
        self._depth = depth or self._part.k
        rewrite([], reads)
        opens: Any = load("reader", READER) if model == READER else partial(cross_encoder.CrossEncoder, model)
        self._model = opens(device=device)
        self.family = self._model.manifest.get("family", "")
        self.trained_on = (*self._model.manifest.get("sources", {}).values(), *self.trained_on)

    @classmethod
    def requirements(cls, *, model: str = cross_encoder.OWN, root: Path = Path(), **_: object) -> list[Requirement]:
        """A model that is not part of this package."""
        return [] if model in (cross_encoder.OWN, READER) else [model_requirement(model, root)]

    @classmethod
    def trained(cls, model: str = cross_encoder.OWN, **_: object) -> str:
        """The split family that the model was trained on, without loading the model; empty for a model from elsewhere."""
        return load("reader", READER).trained() if model == READER else cross_encoder.family_of(model)

    @classmethod
    def fingerprint(cls, model: str = cross_encoder.OWN, **_: object) -> str:
        """SHA-256 of the model's files; the span reader's code counts too."""
        if model != READER:
            return cross_encoder.identity(model)
        reader = load("reader", READER)
        return hashlib.sha256(f"{code_of(reader)} {reader.fingerprint()}".encode()).hexdigest()

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first.

        Raises:
            IfqaError: a passage of the part's ranking is missing.
        """
        rankings, given = self._part.search(questions), rewrite(questions, self._reads)
        pairs = [
            (question.text, passage.text)
            for question, ranking in zip(given, rankings, strict=True)
            for passage in passages_of(ranking[: self._depth], self._fetch)
        ]
        scores = iter(map(float, self._model.relevance(pairs)))
        read = [list(islice(scores, min(self._depth, len(ranking)))) for ranking in rankings]
        return [
            replace(ranking, hits=reordered(ranking, scored, self._weight)[:k])
            for ranking, scored in zip(rankings, read, strict=True)
        ]


def reordered(ranking: Sequence[Hit], scores: Sequence[float], model_weight: float = WEIGHT) -> list[Hit]:
    """A ranking with its first passages reordered, by the weighted mean of its own scores and the model's.

    Both are standardised first, to mean 0 and deviation 1 over these passages. The others follow, below them by what they
    were below the last of these.

    Args:
        ranking: best first.
        scores: the model's, one for each of the first passages.
        model_weight: weight of the model's scores; the ranking's own scores get the rest.
    """
    import numpy as np

    first, rest = ranking[: len(scores)], ranking[len(scores) :]
    mixed = model_weight * _standard(np.array(scores, np.float64))
    mixed += (1 - model_weight) * _standard(np.array([hit.score for hit in first], np.float64))
    order = np.argsort(-mixed, kind="stable").tolist()
    hits = [Hit(first[place].passage_id, float(mixed[place])) for place in order]
    return hits + [Hit(hit.passage_id, hits[-1].score - (first[-1].score - hit.score)) for hit in rest]


def _standard(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    spread = values.std() if len(values) else 0.0
    return (values - values.mean()) / spread if spread else values * 0.0
