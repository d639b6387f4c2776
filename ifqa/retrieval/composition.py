"""Building blocks of retrievers: parts, generated passages, passage look-up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ifqa.errors import ConfigError
from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, Question, SearchResult, StageUsage
from ifqa.retrieval.queries import rewrite_questions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# For rerankers
DEFAULT_FIRST_STAGE: list[dict[str, object]] = [{"name": "bm25", "query": "names", "k": 100}]
# Ids -> passages of the corpus, in the same order
FetchPassages = Callable[[Sequence[str]], list[Passage]]


@dataclass(frozen=True)
class Part:
    """A retriever in another retriever, with its depth, weight and query."""

    retriever: Retriever
    k: int
    weight: float = 1.0
    query: str = "question"

    def search(self, questions: Sequence[Question]) -> list[SearchResult]:
        """The retriever's rankings of the questions."""
        return self.retriever.search(rewrite_questions(questions, self.query), self.k)


class SinglePart(Retriever):
    """A retriever over one part, whose training questions and usage it inherits."""

    def __init__(self, name: str, parts: Sequence[Part]) -> None:
        """Raises ConfigError, which mentions the retriever's `name`, if there is not exactly one
        part.
        """
        if len(parts) != 1:
            fault = f"{name} needs exactly one [[retriever.parts]], found {len(parts)}"
            raise ConfigError(f'{fault}; combine several with "fusion" first')
        self._part = parts[0]
        self.trained_on = tuple(self._part.retriever.trained_on)

    def usage(self) -> StageUsage:
        """The part's usage of the language model; empty if it uses none."""
        return self._part.retriever.usage()


def rank_in_order(passages: Sequence[Passage], k: int) -> SearchResult:
    """A ranking of the first `k` generated passages, scored 1, 1/2, 1/3, ….

    `generated` has all passages.
    """
    return SearchResult(
        [Hit(passage.id, 1 / rank) for rank, passage in enumerate(passages[:k], start=1)], passages
    )


def look_up_passages(ranking: SearchResult, fetch: FetchPassages) -> list[Passage]:
    """The passage of each hit, generated or from the corpus."""
    generated = {passage.id: passage for passage in ranking.generated or ()}
    stored = iter(fetch([hit.passage_id for hit in ranking if hit.passage_id not in generated]))
    return [generated.get(hit.passage_id) or next(stored) for hit in ranking]


def standardise(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The values scaled to mean 0 and standard deviation 1; zeros if they are all equal."""
    deviation = values.std() if len(values) else 0.0
    return (values - values.mean()) / deviation if deviation > 1e-9 else values * 0.0
