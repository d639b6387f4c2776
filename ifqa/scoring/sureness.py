"""What the figures of confidence show: the risk-coverage curve, and the bins of a reliability diagram."""

from typing import TYPE_CHECKING, cast

from ifqa.scoring.columns import drawn, ends_of
from ifqa.scoring.measures.confidence import bins, ordered
from ifqa.scoring.summary import Bin, Risk, Sureness

if TYPE_CHECKING:
    from ifqa.protocols import Numbers

COVERAGES = tuple(range(5, 101, 5))  # percent


def sureness(numbers: "Numbers", seed: int) -> Sureness:
    """The curve and the bins, with 95% bootstrap intervals over questions.

    Args:
        numbers: confidence and EM of each question, (questions, 2); at least one question has a confidence.
        seed: of the draws.
    """
    import numpy as np

    once = np.ones((1, len(numbers)))
    risks, shares = risks_of(numbers, once)[0], _bins(numbers, once)[0]
    curve: list[Risk] = []
    for coverage, value, several in zip(COVERAGES, risks, drawn(risks_of, numbers, seed).T, strict=True):
        low, high = ends_of(several, value)
        mean = {"value": _percent(value), "low": _percent(low), "high": _percent(high)}
        curve.append(cast(Risk, {"coverage": float(coverage), **mean}))
    diagram: list[Bin] = []
    for (size, sure, value), several in zip(shares, drawn(_bins, numbers, seed)[:, :, 2].T, strict=True):
        if size:  # with fewer questions than bins some are empty
            low, high = ends_of(several, value)
            mean = {"value": _percent(value), "low": _percent(low), "high": _percent(high)}
            diagram.append(cast(Bin, {"questions": int(size), "confidence": _percent(sure), **mean}))
    return {"risks": curve, "bins": diagram[::-1]}


def risks_of(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """The share of wrong answers among the surest questions, at each of COVERAGES; (resamples, coverages).

    A coverage is rounded up to a whole question. The shapes of the arguments are those of `ColumnMeasure.of`.
    """
    import numpy as np

    found = ordered(numbers, times)
    assert found is not None
    ks = [-(-found.count * coverage // 100) for coverage in COVERAGES]
    return np.stack([1 - found.first(k)[0] / k for k in ks], axis=1)


def _bins(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """The size, the mean confidence and the share of right answers of each bin, surest first; (resamples, bins, 3)."""
    import numpy as np

    found = ordered(numbers, times)
    assert found is not None
    sizes, hits, sure = bins(found)
    there = np.where(sizes > 0, sizes, np.nan)
    return np.stack([sizes, sure / there, hits / there], axis=2)


def _percent(share: float) -> float:
    return round(100 * min(max(float(share), 0.0), 1.0), 2)
