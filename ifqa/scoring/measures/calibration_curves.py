"""What the figures of confidence show: the risk-coverage curve, and the bins of a reliability diagram."""

from typing import TYPE_CHECKING

from ifqa.scoring.measures.confidence import bins, ordered
from ifqa.scoring.per_question import Sureness
from ifqa.scoring.resampling import resample
from ifqa.scoring.statistics import interval_ends

if TYPE_CHECKING:
    from ifqa.protocols import Numbers

COVERAGES = tuple(range(5, 101, 5))  # percent


def calibration_curves(numbers: "Numbers", seed: int) -> Sureness:
    """The curve and the bins, with 95% bootstrap intervals over questions.

    Args:
        numbers: confidence and EM of each question, (questions, 2); at least one question has a confidence.
        seed: of the draws.
    """
    import numpy as np

    once, codes = np.ones((1, len(numbers))), np.arange(len(numbers))
    curves: Sureness = {"risks": [], "bins": []}
    resampled = resample(lambda times: _risks(numbers, times.astype(float)), codes, seed)
    for coverage, value, values in zip(COVERAGES, _risks(numbers, once)[0], resampled.T, strict=True):
        mean, low, high = map(_percent, (value, *interval_ends(values, value)))
        curves["risks"].append({"coverage": float(coverage), "value": mean, "low": low, "high": high})
    resampled = resample(lambda times: _bins(numbers, times.astype(float)), codes, seed)[:, :, 2]
    for (size, confidence, value), values in zip(_bins(numbers, once)[0], resampled.T, strict=True):
        if size:  # with fewer questions than bins some are empty
            sure, mean, low, high = map(_percent, (confidence, value, *interval_ends(values, value)))
            curves["bins"].insert(
                0, {"questions": int(size), "confidence": sure, "value": mean, "low": low, "high": high}
            )
    return curves


def _risks(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """The share of wrong answers among the surest questions, at each of COVERAGES; (resamples, coverages).

    A coverage is rounded up to a whole question. The shapes of the arguments are those of `ColumnMeasure.score`.
    """
    import numpy as np

    groups = ordered(numbers, times)
    assert groups is not None
    ks = [-(-groups.count * coverage // 100) for coverage in COVERAGES]
    return np.stack([1 - groups.first(k)[0] / k for k in ks], axis=1)


def _bins(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """The size, the mean confidence and the share of right answers of each bin, surest first; (resamples, bins, 3)."""
    import numpy as np

    groups = ordered(numbers, times)
    assert groups is not None
    sizes, hits, sure = bins(groups)
    there = np.where(sizes > 0, sizes, np.nan)
    return np.stack([sizes, sure / there, hits / there], axis=2)


def _percent(share: float) -> float:
    return round(100 * min(max(float(share), 0.0), 1.0), 2)
