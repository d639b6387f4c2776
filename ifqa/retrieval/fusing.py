"""Several rankings as one, by rank (reciprocal rank fusion) or by score."""

from collections.abc import Sequence

from ifqa.errors import IfqaError
from ifqa.records import Hit, Passage, SearchResult


def by_rank(rankings: Sequence[Sequence[Hit]], weights: Sequence[float], rrf_k: int = 60) -> dict[str, float]:
    """Passage id -> reciprocal rank fusion of several rankings."""
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, hit in enumerate(ranking, start=1):
            fused[hit.passage_id] = fused.get(hit.passage_id, 0.0) + weight / (rrf_k + rank)
    return fused


def by_score(
    rankings: Sequence[Sequence[Hit]], weights: Sequence[float], depths: Sequence[int] = ()
) -> dict[str, float]:
    """Passage id -> weighted sum of scores, each ranking's as a share of its best score.

    A share of the best score keeps how far the first passage stands above the rest; ranks and min-max normalisation lose
    that. A passage that a ranking lacks gets the score of the ranking's last passage. It gets 0 where the ranking is
    shorter than the depth it was asked for (`depths`), because such a ranking holds every passage that scored at all.

    Raises:
        IfqaError: a ranking's best score is not above 0, so there are no shares of it.
    """
    fused: dict[str, float] = dict.fromkeys((hit.passage_id for ranking in rankings for hit in ranking), 0.0)
    for ranking, weight, depth in zip(rankings, weights, depths or [0] * len(rankings), strict=True):
        if not ranking or not weight:
            continue
        top = ranking[0].score
        if top <= 0:
            raise IfqaError(
                f'weighted fusion wants rankings whose best score is above 0, found {top:g}; take method = "rrf"'
            )
        shares = {hit.passage_id: hit.score / top for hit in ranking}
        last = ranking[-1].score / top if len(ranking) >= depth else min(0.0, ranking[-1].score / top)
        for passage_id in fused:
            fused[passage_id] += weight * shares.get(passage_id, last)
    return fused


def best(fused: dict[str, float], k: int) -> list[Hit]:
    """The k passages with the highest scores; equal scores keep the order of `fused`."""
    ranked = sorted(fused.items(), key=lambda pair: -pair[1])
    return [Hit(passage_id, score) for passage_id, score in ranked[:k]]


def generated_by(results: Sequence[SearchResult], conflict: str) -> list[Passage] | None:
    """All passages that several searches for a question generated, each once; None where none generates passages.

    Raises:
        IfqaError: two of them have one id; `conflict` is the message, with {} for the id.
    """
    if all(result.generated is None for result in results):
        return None
    passages: dict[str, Passage] = {}
    for passage in (passage for result in results for passage in result.generated or ()):
        if passages.setdefault(passage.id, passage) != passage:
            raise IfqaError(conflict.format(repr(passage.id)))
    return list(passages.values())
