"""How well a reader knows when it is right: risk against coverage, calibration, and telling answerable questions apart.

All are functions of each question's confidence and of whether its answer is right. Questions are ordered by confidence, the
surest first. Where several have the same confidence, their order is unknown: a value is then the mean over all their orders,
except for the calibration error, for which each of them counts with the mean of all. A question without a confidence, such as
a failed one, has confidence 0. Where no question has a confidence, nothing is defined.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from ifqa.protocols import ColumnMeasure
from ifqa.scoring.score_files import CalibrationCurves
from ifqa.scoring.statistics import Numbers, interval_ends, resample

BINS = 15
COVERAGES = tuple(range(5, 101, 5))  # percent
RIGHT = ("confidence", "EM")


class _Ordered:
    """Resamples of questions, grouped by confidence, the surest first.

    Attributes:
        sure: the confidence of each group, falling, (groups,).
        sizes: how many questions of a group are in a resample, (resamples, groups).
        hits: how many of these are positive, (resamples, groups).
        before: how many questions are surer than a group, (resamples, groups).
        share: the share of a group that is positive, 0 for a group without questions, (resamples, groups).
        count: the questions in each resample, (resamples,).
    """

    def __init__(self, sure: Numbers, sizes: Numbers, hits: Numbers) -> None:
        self.sure, self.sizes, self.hits = sure, sizes, hits
        self._ends = sizes.cumsum(axis=1)
        self.before, self.count = self._ends - sizes, self._ends[:, -1]
        self.share = np.divide(hits, sizes, out=np.zeros_like(hits), where=sizes > 0)
        self._hits_until, self._sure_until = hits.cumsum(axis=1), (sizes * sure).cumsum(axis=1)

    def first(self, k: Numbers) -> tuple[Numbers, Numbers]:
        """The positives among the first `k` questions of each resample, and their summed confidence; (resamples,) all."""
        whole = (self._ends <= k[:, None]).sum(axis=1)  # groups that are among the first k with all of their questions
        row, last = np.arange(len(k)), np.minimum(whole, len(self.sure) - 1)
        more = k - self.before[row, last]
        hits = self._hits_until[row, last] - self.hits[row, last] + more * self.share[row, last]
        return hits, self._sure_until[row, last] - (self.sizes[row, last] - more) * self.sure[last]

    def bins(self) -> tuple[Numbers, Numbers, Numbers]:
        """Fifteen bins of equally many questions, surest first: sizes, positives, summed confidences; (resamples, 15) all."""
        ends = [self.count * number // BINS for number in range(BINS + 1)]
        hits, sure = (np.stack(sums, axis=1) for sums in zip(*map(self.first, ends), strict=True))
        return np.diff(np.stack(ends, axis=1)), np.diff(hits), np.diff(sure)


def _score(measure: Callable[[_Ordered], Numbers], numbers: Numbers, times: Numbers) -> Numbers:
    """A measure of questions with numbers (confidence, 1 if positive); NaN if no question has a confidence.

    A question that is neither positive nor negative (NaN) is left out. Shapes are those of `ColumnMeasure.score`; a measure
    gives a value a resample, or several.
    """
    sure, positive = numbers.T
    there = ~np.isnan(positive)
    if np.isnan(sure).all() or not there.any():
        return np.full(len(times), np.nan)
    surest, group = np.unique(-np.nan_to_num(sure[there]), return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(surest)))
    weights = times[:, there][:, order]  # (resamples, questions)
    hits = weights * positive[there][order]
    return measure(_Ordered(-surest, *(np.add.reduceat(column, starts, axis=1) for column in (weights, hits))))


def _divided(values: Numbers, by: Numbers) -> Numbers:
    ratios: Numbers = np.divide(values, by, out=np.full(len(values), np.nan), where=by > 0)
    return ratios


def aurc(groups: _Ordered) -> Numbers:
    """The area under the risk-coverage curve (Geifman, Uziel and El-Yaniv, ICLR 2019): the mean over k of the k surest's risk.

    The risk of k questions is the share of wrong answers among them; k runs from 1 to the number of questions.
    """
    wrong, before, count = groups.sizes - groups.hits, groups.before, groups.count
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(count.max(initial=0)) + 1))])
    # Of a group after s questions with w wrong answers, the j-th adds (w + j * share) / (s + j) in the mean over orders.
    inverse = harmonic[(before + groups.sizes).astype(int)] - harmonic[before.astype(int)]
    share = np.where(groups.sizes > 0, 1 - groups.share, 0.0)
    areas = (wrong.cumsum(axis=1) - wrong) * inverse + share * (groups.sizes - before * inverse)
    return _divided(areas.sum(axis=1), count)


def at_coverage(groups: _Ordered, percent: int) -> Numbers:
    """The share of right answers among the surest `percent` of the questions, rounded up to a whole question."""
    k = -(-groups.count * percent // 100)
    return _divided(groups.first(k)[0], k)


def calibration_error(groups: _Ordered) -> Numbers:
    """How far confidence and EM lie apart, over 15 bins of equally many questions (Nguyen and O'Connor, EMNLP 2015).

    The mean over bins of |mean confidence - share of right answers|, weighted by the bins' sizes. With few questions it is
    too high by chance, in the resamples of a bootstrap even more.
    """
    _, hits, sure = groups.bins()
    return _divided(np.abs(sure - hits).sum(axis=1), groups.count)


def brier(numbers: Numbers, times: Numbers) -> Numbers:
    """The mean squared difference of confidence and EM (Brier 1950)."""
    if np.isnan(numbers[:, 0]).all():
        return np.full(len(times), np.nan)
    squares = (np.nan_to_num(numbers[:, 0]) - numbers[:, 1]) ** 2
    return _divided(times @ squares, times.sum(axis=1))


def auroc(groups: _Ordered) -> Numbers:
    """How often a positive question has more confidence than a negative one; equal confidences count half.

    Not defined without a positive or without a negative question.
    """
    others = groups.sizes - groups.hits
    total, below = others.sum(axis=1), others[:, ::-1].cumsum(axis=1)[:, ::-1] - others
    return _divided((groups.hits * (below + others / 2)).sum(axis=1), groups.hits.sum(axis=1) * total)


_AURC = "the area under the risk-coverage curve: wrong answers among the surest"
_ECE = "the calibration error of the confidence, 15 bins"
_AUROC = "how well confidence tells the questions with a gold passage among those read from the others"
AURC = ColumnMeasure("AURC", partial(_score, aurc), RIGHT, best="low", about=_AURC)
EM_50, EM_80 = (
    ColumnMeasure(f"EM-{share}", partial(_score, partial(at_coverage, percent=share)), RIGHT, about=f"EM of the {whom}")
    for share, whom in ((50, "half with most confidence"), (80, "80% with most confidence"))
)
ECE = ColumnMeasure("ECE", partial(_score, calibration_error), RIGHT, best="low", about=_ECE)
BRIER = ColumnMeasure("Brier", brier, RIGHT, best="low", about="the mean squared error of the confidence")
AUROC = ColumnMeasure("AUROC", partial(_score, auroc), ("confidence", "gold_read"), about=_AUROC)
CONFIDENCE = (AURC, EM_50, EM_80, ECE, BRIER, AUROC)


def calibration_curves(numbers: Numbers, seed: int) -> CalibrationCurves:
    """What the figures show, the risk-coverage curve and the bins of a reliability diagram, with 95% bootstrap intervals.

    Args:
        numbers: confidence and EM of each question, (questions, 2); at least one question has a confidence.
        seed: of the draws.
    """
    once, codes = np.ones((1, len(numbers))), np.arange(len(numbers))
    curves: CalibrationCurves = {"risks": [], "bins": []}
    risks, bins = partial(_score, _risks, numbers), partial(_score, _bins, numbers)
    for coverage, value, values in zip(COVERAGES, risks(once)[0], resample(risks, codes, seed).T, strict=True):
        mean, low, high = map(_percent, (value, *interval_ends(values, value)))
        curves["risks"].append({"coverage": float(coverage), "value": mean, "low": low, "high": high})
    resampled = resample(bins, codes, seed)[:, :, 2]
    for (size, confidence, value), values in zip(bins(once)[0][::-1], resampled.T[::-1], strict=True):
        if size:  # with fewer questions than bins some are empty
            sure, mean, low, high = map(_percent, (confidence, value, *interval_ends(values, value)))
            curves["bins"].append({"questions": int(size), "confidence": sure, "value": mean, "low": low, "high": high})
    return curves


def _risks(groups: _Ordered) -> Numbers:
    """The share of wrong answers among the surest questions, at each of COVERAGES; (resamples, coverages).

    A coverage is rounded up to a whole question.
    """
    return np.stack([1 - at_coverage(groups, percent) for percent in COVERAGES], axis=1)


def _bins(groups: _Ordered) -> Numbers:
    """The size, the mean confidence and the share of right answers of each bin, surest first; (resamples, bins, 3)."""
    sizes, hits, sure = groups.bins()
    there = np.where(sizes > 0, sizes, np.nan)
    return np.stack([sizes, sure / there, hits / there], axis=2)


def _percent(share: float) -> float:
    return round(100 * min(max(float(share), 0.0), 1.0), 2)
