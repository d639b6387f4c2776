"""Reranks the best passages of another retriever with a cross-encoder, or by the answers that the span reader finds in them."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from ifqa.models.hub import model_requirement
from ifqa.plugins import code_of
from ifqa.protocols import Place, Requirement
from ifqa.records import Hit, Question, SearchResult
from ifqa.retrieval import cross_encoder
from ifqa.retrieval.parts import Fetch, Part, SinglePart, passages_of, standard
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
        self._relevance: Callable[[Sequence[tuple[str, str]]], Sequence[float] | NDArray[np.float32]]
        if model == READER:
            from ifqa.reading.span.reader import Extractive

            reader = Extractive(device=device)
            self._relevance, self.family = reader.relevance, reader.family
            self.trained_on = (*reader.trained_on, *self.trained_on)
        else:
            encoder = cross_encoder.CrossEncoder(model, device)
            self._relevance = encoder.relevance
            if encoder.adapter:
                self.family = encoder.adapter.family
                self.trained_on = (*encoder.adapter.sources.values(), *self.trained_on)

    @classmethod
    def requirements(cls, *, model: str = cross_encoder.OWN, root: Path = Path(), **_: object) -> list[Requirement]:
        """A model that is not part of this package."""
        return [] if model in (cross_encoder.OWN, READER) else [model_requirement(model, root)]

    @classmethod
    def trained(cls, model: str = cross_encoder.OWN, **_: object) -> str:
        """The split family that the model was trained on, without loading the model; empty for a model from elsewhere."""
        if model == READER:
            from ifqa.reading.span.reader import Extractive

            return Extractive.trained()
        adapter = cross_encoder.adapter_of(model)
        return adapter.family if adapter else ""

    @classmethod
    def fingerprint(cls, model: str = cross_encoder.OWN, **_: object) -> str:
        """SHA-256 of the model's files; the span reader's code counts too."""
        if model != READER:
            return cross_encoder.identity(model)
        from ifqa.reading.span.reader import Extractive

        return hashlib.sha256(f"{code_of(Extractive)} {Extractive.fingerprint()}".encode()).hexdigest()

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first."""
        rankings = self._part.search(questions)
        pairs = [
            (question.text, passage.text)
            for question, ranking in zip(rewrite(questions, self._reads), rankings, strict=True)
            for passage in passages_of(ranking[: self._depth], self._fetch)
        ]
        scores = iter(map(float, self._relevance(pairs)))
        return [
            replace(
                ranking, hits=reordered(ranking, list(islice(scores, len(ranking[: self._depth]))), self._weight)[:k]
            )
            for ranking in rankings
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
    mixed = model_weight * standard(np.array(scores, np.float64))
    mixed += (1 - model_weight) * standard(np.array([hit.score for hit in first], np.float64))
    order = np.argsort(-mixed, kind="stable").tolist()
    hits = [Hit(first[place].passage_id, float(mixed[place])) for place in order]
    return hits + [Hit(hit.passage_id, hits[-1].score - (first[-1].score - hit.score)) for hit in rest]
