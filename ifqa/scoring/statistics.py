"""How sure a mean over questions is, and whether two systems differ on the same questions.

Both methods resample. Scores take few distinct values (0 and 1, some fractions), so a round draws how often each
distinct value comes up and not value by value: the same distribution, and a hundred times less to draw.
"""

import math
from collections.abc import Iterator, Sequence

from ifqa.errors import IfqaError

_DRAWS_AT_ONCE = 2_000_000  # 8 bytes each


def mean_interval(values: Sequence[float], seed: int = 0, resamples: int = 10_000) -> tuple[float, float, float]:
    """Mean over questions with the ends of its 95% percentile bootstrap interval (Efron 1979), in the unit of `values`.

    The same values, in any order, and seed give the same interval.

    Raises:
        IfqaError: `values` is empty.
    """
    import numpy as np

    _require_values(values)
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)  # (distinct,) both
    rng = np.random.default_rng(seed)
    means = np.concatenate(
        [
            rng.multinomial(len(values), counts / len(values), size=rounds) @ distinct / len(values)  # (rounds,)
            for rounds in _batches(resamples, len(distinct))
        ]
    )
    low, high = np.quantile(means, (0.025, 0.975))
    return math.fsum(values) / len(values), float(low), float(high)


def paired_randomization(a: Sequence[float], b: Sequence[float], seed: int = 0, rounds: int = 10_000) -> float:
    """Two-sided p-value of the mean difference of two systems on the same questions, by random sign flips.

    Each round swaps the two systems on every question with probability 1/2; p is the share of rounds whose difference
    is at least as large as the observed one, which counts as a round, so p is never 0 (Smucker et al., CIKM 2007).

    Raises:
        IfqaError: `a` and `b` differ in length, or are empty.
    """
    import numpy as np

    _require_pairs(a, b)
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)  # (questions,)
    sizes, counts = np.unique(np.abs(differences), return_counts=True)  # (distinct,) both
    # Rounding must not part sums that are equal in exact arithmetic.
    threshold = abs(float(differences.sum())) - 1e-9 * float(sizes @ counts)
    rng = np.random.default_rng(seed)
    at_least = 0
    for batch in _batches(rounds, len(sizes)):
        kept = rng.binomial(counts, 0.5, size=(batch, len(sizes)))  # of each size, how many keep their sign
        at_least += int(np.count_nonzero(np.abs((2 * kept - counts) @ sizes) >= threshold))
    return (at_least + 1) / (rounds + 1)


def won_lost_tied(a: Sequence[float], b: Sequence[float]) -> tuple[int, int, int]:
    """On how many questions the first system scores higher, lower and the same.

    Raises:
        IfqaError: `a` and `b` differ in length, or are empty.
    """
    _require_pairs(a, b)
    won = sum(x > y for x, y in zip(a, b, strict=True))
    lost = sum(x < y for x, y in zip(a, b, strict=True))
    return won, lost, len(a) - won - lost


def _batches(rounds: int, width: int) -> Iterator[int]:
    """Split `rounds` so that one batch of `width` draws each stays within memory."""
    step = max(1, _DRAWS_AT_ONCE // width)
    yield from (min(step, rounds - start) for start in range(0, rounds, step))


def _require_values(values: Sequence[float]) -> None:
    if len(values) == 0:
        raise IfqaError("found no scores, wanted one for each question; score at least one question")


def _require_pairs(a: Sequence[float], b: Sequence[float]) -> None:
    if len(a) != len(b):
        raise IfqaError(f"found {len(a)} and {len(b)} scores, wanted the same questions; score both on one split")
    _require_values(a)
