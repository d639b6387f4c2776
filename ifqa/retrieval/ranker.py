"""Reorders the best passages of another retriever by a weighted sum of what they share with the question.

There is a learned weight for each of `ifqa.retrieval.matching.FEATURES`; the model's file can be read. It takes milliseconds a
question, and no index of its own. `experiments/benchmarks/ranker.py` trains it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from ifqa.errors import IfqaError
from ifqa.models.hub import encoder_folder
from ifqa.protocols import Place, Retriever
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.retrieval.matching import FEATURES, asked, features, weigher
from ifqa.retrieval.queries import Part, only_part, passages_of, usage_of
from ifqa.settings import Stored, check_stored, checked
from ifqa.spending import Usage
from ifqa.storage.files import cached_sha256, read_json, require
from ifqa.storage.resources import BUNDLED

OWN = "ifqa"  # the weights that ship with the package
_WEIGHTS = BUNDLED / "weights" / "ranker.json"
_DECIMALS = 6  # of a score: further ones differ with the number of threads


class Model(Stored):
    """What is stored of a trained ranker."""

    family: str  # the split family of its training questions, such as "ifqa/full"
    sources: dict[str, str]  # file of training questions -> SHA-256
    weights: dict[str, float]  # by the names of FEATURES


def read_model(model: str) -> Model:
    """The ranker of a file; "ifqa" for the one that ships with the package.

    Raises:
        IfqaError: the file is missing, or has weights of other features.
    """
    path = require(_WEIGHTS if model == OWN else Path(model), "ranker")
    mend = "train it again: python experiments/benchmarks/ranker.py"
    found = check_stored(Model, read_json(path), str(path), mend)
    if set(found.weights) != set(FEATURES):
        different = ", ".join(sorted(set(found.weights) ^ set(FEATURES)))
        raise IfqaError(f"{path}: its features differ from this version's in {different}; {mend}")
    return found


class Ranker(Retriever):
    """Reorders the passages of its one part, as many as that part returns."""

    version = 2
    default_parts: ClassVar[list[dict[str, Any]]] = [{"name": "bm25", "query": "names", "k": 100}]

    @checked("setting of retriever 'ranker'")
    def __init__(
        self, *, parts: Sequence[Part], passages: Callable[[Sequence[str]], list[Passage]], model: Place = OWN
    ) -> None:
        """Keep the part, and read the weights.

        Args:
            parts: a single retriever, whose best passages, as many as its `k`, are reordered.
            passages: returns the passages of a list of ids.
            model: "ifqa", or a file that `experiments/benchmarks/ranker.py` wrote.

        Raises:
            IfqaError: there is not exactly one part, or the model is missing or of other features.
        """
        self._part, self._fetch = only_part("ranker", parts), passages
        found = read_model(model)
        self._weights = [found.weights[name] for name in FEATURES]
        self._weigh = weigher(encoder_folder())
        self.family = found.family
        self.trained_on = (*found.sources.values(), *self._part.retriever.trained_on)

    @classmethod
    def trained(cls, model: str = OWN, **_: object) -> str:
        """The split family that the weights were trained on."""
        return read_model(model).family

    @classmethod
    def fingerprint(cls, model: str = OWN, **_: object) -> str:
        """SHA-256 of the model's file."""
        return cached_sha256(require(_WEIGHTS if model == OWN else Path(model), "ranker"))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first.

        Raises:
            IfqaError: `k` is below 1, or a passage of the part's ranking is missing.
        """
        if k < 1:
            raise IfqaError(f"k, the number of passages to retrieve, must be at least 1; found {k}")
        rankings = self._part.search(questions)
        return [
            replace(ranking, hits=self._ranked(question, ranking)[:k])
            for question, ranking in zip(questions, rankings, strict=True)
        ]

    def usage(self) -> Usage:
        """What its part reports about the language model; empty where the part asks none."""
        return usage_of([self._part])

    def _ranked(self, question: Question, ranking: SearchResult) -> list[Hit]:
        texts = [passage.text for passage in passages_of(ranking, self._fetch)]
        rows = features(asked(question.text, self._weigh), [hit.score for hit in ranking], texts)
        scores = (rows @ self._weights).round(_DECIMALS).tolist()
        order = sorted(range(len(ranking)), key=lambda place: -scores[place])
        return [Hit(ranking[place].passage_id, scores[place]) for place in order]
