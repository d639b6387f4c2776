"""Building blocks of retrievers: parts, fusion of rankings, passage look-up, requests to a language model."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ifqa.errors import ConfigError
from ifqa.llms.budget import UsageMeter
from ifqa.prompting.prompts import prompt_path
from ifqa.protocols import Retriever
from ifqa.records import Completion, Hit, Passage, Question, Request, SearchResult, StageUsage
from ifqa.retrieval.queries import rewrite_questions
from ifqa.storage.files import sha256

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_FIRST_STAGE: list[dict[str, object]] = [{"name": "bm25", "query": "names", "k": 100}]  # for rerankers
_UsageCount = Literal["retry", "not_asked", "too_long", "unparsed", "left_out", "cut"]  # keys of StageUsage
_USAGE_COUNTS: tuple[_UsageCount, ...] = get_args(_UsageCount)
FetchPassages = Callable[[Sequence[str]], list[Passage]]  # ids -> passages of the corpus, in the same order


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
        """Raises ConfigError, which mentions the retriever's `name`, if there is not exactly one part."""
        if len(parts) != 1:
            fault = f"{name} needs exactly one [[retriever.parts]], found {len(parts)}"
            raise ConfigError(f'{fault}; combine several with "fusion" first')
        self._name, self._part = name, parts[0]
        self.trained_on = tuple(self._part.retriever.trained_on)

    def usage(self) -> StageUsage:
        """The part's usage of the language model; empty if it uses none."""
        return self._part.retriever.usage()


def merge_usage(usages: Iterable[StageUsage]) -> StageUsage:
    """The usage of a shared language model: the maximum of each count, and the last usage's cost."""
    merged: StageUsage = {}
    for usage in usages:
        previous, merged = merged, {**merged, **usage}
        for count in _USAGE_COUNTS:
            if count in usage:
                merged[count] = max(previous.get(count, 0), usage[count])
    return merged


def prompt_hash(prompt: str, root: Path) -> str:
    """A fingerprint of a prompt's file."""
    return hashlib.sha256(sha256(prompt_path(prompt, root)).encode()).hexdigest()


def complete_requests(meter: UsageMeter, requests: Sequence[Sequence[Request]]) -> list[list[Completion]]:
    """The completions of each question's requests, sent as one batch; failed and unsent questions are counted."""
    stream = iter(meter.complete([*chain.from_iterable(requests)]))
    completions = [list(islice(stream, len(question_requests))) for question_requests in requests]
    for question_completions in completions:
        errors = [completion.error for completion in question_completions if completion.error]
        meter.counts["retry"] += bool(errors)
        meter.counts["not_asked"] += any(error.startswith("not asked") for error in errors)
        meter.counts["too_long"] += not question_completions
    return completions


def rank_in_order(passages: Sequence[Passage], k: int) -> SearchResult:
    """A ranking of the first `k` generated passages, scored 1, 1/2, 1/3, …; `generated` has all passages."""
    return SearchResult([Hit(passage.id, 1 / rank) for rank, passage in enumerate(passages[:k], start=1)], passages)


def look_up_passages(ranking: SearchResult, fetch: FetchPassages) -> list[Passage]:
    """The passage of each hit, generated or from the corpus."""
    generated = {passage.id: passage for passage in ranking.generated or ()}
    stored = iter(fetch([hit.passage_id for hit in ranking if hit.passage_id not in generated]))
    return [generated.get(hit.passage_id) or next(stored) for hit in ranking]


def join_generated(rankings: Sequence[SearchResult], conflict: str) -> list[Passage] | None:
    """The distinct passages that a question's rankings generated; None if no ranking has generated passages.

    Raises ConfigError if two different passages have the same id; `conflict` is the message, with {} for the id.
    """
    if all(ranking.generated is None for ranking in rankings):
        return None
    passages: dict[str, Passage] = {}
    for passage in (passage for ranking in rankings for passage in ranking.generated or ()):
        if passages.setdefault(passage.id, passage) != passage:
            raise ConfigError(conflict.format(repr(passage.id)))
    return list(passages.values())


def fuse_by_rank(rankings: Sequence[Sequence[Hit]], weights: Sequence[float], rrf_k: int = 60) -> dict[str, float]:
    """Passage id -> reciprocal rank fusion of several rankings (Cormack et al., SIGIR 2009)."""
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, hit in enumerate(ranking, start=1):
            fused[hit.passage_id] = fused.get(hit.passage_id, 0.0) + weight / (rrf_k + rank)
    return fused


def fuse_by_score(
    rankings: Sequence[Sequence[Hit]], weights: Sequence[float], depths: Sequence[int] = ()
) -> dict[str, float]:
    """Passage id -> weighted sum of scores, each divided by the best score of its ranking.

    Unlike ranks and min-max normalisation, this keeps the lead of the first passage. A passage that a ranking lacks gets the
    score of the ranking's last passage, or 0 if the ranking is shorter than its depth, because then it holds every passage with
    a score. Raises ConfigError if the best score of a ranking is not above 0.
    """
    fused: dict[str, float] = dict.fromkeys((hit.passage_id for ranking in rankings for hit in ranking), 0.0)
    for ranking, weight, depth in zip(rankings, weights, depths or [0] * len(rankings), strict=True):
        if not ranking or not weight:
            continue
        top = ranking[0].score
        if top <= 0:
            fault = f"weighted fusion needs rankings whose best score is above 0, found {top:g}"
            raise ConfigError(f'{fault}; set method = "rrf"')
        shares = {hit.passage_id: hit.score / top for hit in ranking}
        last = ranking[-1].score / top if len(ranking) >= depth else min(0.0, ranking[-1].score / top)
        for passage_id in fused:
            fused[passage_id] += weight * shares.get(passage_id, last)
    return fused


def top_hits(fused: dict[str, float], k: int) -> list[Hit]:
    """The k passages with the highest scores; ties keep the order of `fused`."""
    return [Hit(*pair) for pair in sorted(fused.items(), key=lambda pair: -pair[1])[:k]]


def standardise(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The values scaled to mean 0 and standard deviation 1; zeros if they are all equal."""
    deviation = values.std() if len(values) else 0.0
    return (values - values.mean()) / deviation if deviation > 1e-9 else values * 0.0
