"""Measures of a reader's confidence: risk-coverage curves, calibration, and AUROC of answerable
questions.

Each depends on every question's confidence and on whether its answer is right. Questions are
ordered by falling confidence. If confidences are tied, the score is the mean over all orders of the
ties; in the calibration error, each tied question counts with the ties' mean. A question without a
confidence, such as a failed one, has confidence 0. If no question has one, the measures are
undefined.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ifqa.protocols import ColumnMeasure
from ifqa.scoring.statistics import Numbers, interval_ends, resample, to_percent
from ifqa.scoring.stored_scores import CalibrationCurves

BINS = 15
COVERAGES = tuple(range(5, 101, 5))  # percent
CONFIDENCE_COLUMNS = ("confidence", "EM")
_ROUNDING = 1e-9  # of a product of floats, and far less than the share of one answer


class _ConfidenceGroups:
    """Resamples of questions, grouped by confidence, highest first: the numbers of questions and of
    positive ones in each group.

    Shapes: `confidence` is (groups,), `count` (resamples,), all others (resamples, groups).
    """

    def __init__(self, confidence: Numbers, sizes: Numbers, hits: Numbers) -> None:
        self.confidence = confidence
        self.sizes = sizes
        self.hits = hits
        self._ends = sizes.cumsum(axis=1)
        self.before = self._ends - sizes  # questions in groups of higher confidence
        self.count = self._ends[:, -1]  # questions in each resample
        self.share = np.divide(hits, sizes, out=np.zeros_like(hits), where=sizes > 0)
        self._hits_until = hits.cumsum(axis=1)
        self._confidence_until = (sizes * confidence).cumsum(axis=1)

    def first(self, k: Numbers) -> tuple[Numbers, Numbers]:
        """The positives among the first `k` questions of each resample, and the sum of their
        confidences; both (resamples,).
        """
        # The number of groups within the first k questions
        whole = (self._ends <= k[:, None]).sum(axis=1)
        row = np.arange(len(k))
        last = np.minimum(whole, len(self.confidence) - 1)
        partial_size = k - self.before[row, last]
        hits = (
            self._hits_until[row, last]
            - self.hits[row, last]
            + partial_size * self.share[row, last]
        )
        excess = self.sizes[row, last] - partial_size
        return hits, self._confidence_until[row, last] - excess * self.confidence[last]

    def bins(self) -> tuple[Numbers, Numbers, Numbers]:
        """Fifteen bins of equal size, highest confidence first: sizes, positives, sums of
        confidences; each (resamples, 15).
        """
        ends = [self.count * number // BINS for number in range(BINS + 1)]
        hits, confidences = (
            np.stack(sums, axis=1) for sums in zip(*map(self.first, ends), strict=True)
        )
        return np.diff(np.stack(ends, axis=1)), np.diff(hits), np.diff(confidences)


def _score_resamples(
    measure: Callable[[_ConfidenceGroups], Numbers], numbers: Numbers, times: Numbers
) -> Numbers:
    """The scores of columns (confidence, 1 if positive), with the shapes of `ColumnMeasure.score`.

    Questions whose label is NaN are left out; NaN if no question has a confidence.
    """
    confidence, positive = numbers.T
    labelled = ~np.isnan(positive)
    if np.isnan(confidence).all() or not labelled.any():
        return np.full(len(times), np.nan)
    negated, group = np.unique(-np.nan_to_num(confidence[labelled]), return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(negated)))
    weights = times[:, labelled][:, order]  # (resamples, questions)
    hits = weights * positive[labelled][order]
    sizes, hits = (np.add.reduceat(column, starts, axis=1) for column in (weights, hits))
    return measure(_ConfidenceGroups(-negated, sizes, hits))


def _divide(values: Numbers, by: Numbers) -> Numbers:
    ratios: Numbers = np.divide(values, by, out=np.full(len(values), np.nan), where=by > 0)
    return ratios


def aurc(groups: _ConfidenceGroups) -> Numbers:
    """The area under the risk-coverage curve (Geifman, Uziel and El-Yaniv, ICLR 2019).

    The share of wrong answers among the k most confident questions, averaged over k from 1 to the
    number of questions.
    """
    wrong = groups.sizes - groups.hits
    before = groups.before
    count = groups.count
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(count.max(initial=0)) + 1))])
    # After s questions with w wrong answers, a group's j-th question adds (w + j * share) / (s +
    # j), as the mean over orders.
    inverse = harmonic[(before + groups.sizes).astype(int)] - harmonic[before.astype(int)]
    share = np.where(groups.sizes > 0, 1 - groups.share, 0.0)
    areas = (wrong.cumsum(axis=1) - wrong) * inverse + share * (groups.sizes - before * inverse)
    return _divide(areas.sum(axis=1), count)


def at_coverage(groups: _ConfidenceGroups, percent: int) -> Numbers:
    """The share of right answers among the most confident `percent` of the questions, rounded up to
    a whole question.
    """
    k = -(-groups.count * percent // 100)
    return _divide(groups.first(k)[0], k)


def calibration_error(groups: _ConfidenceGroups) -> Numbers:
    """The mean of |mean confidence - EM| over 15 bins of equal size (Nguyen and O'Connor, EMNLP
    2015), weighted by size.

    It is biased upwards for few questions, and more so in bootstrap resamples: their interval need
    not hold the value.
    """
    _, hits, confidences = groups.bins()
    return _divide(np.abs(confidences - hits).sum(axis=1), groups.count)


def brier(numbers: Numbers, times: Numbers) -> Numbers:
    """The mean squared difference between confidence and EM (Brier 1950)."""
    if np.isnan(numbers[:, 0]).all():
        return np.full(len(times), np.nan)
    squares = (np.nan_to_num(numbers[:, 0]) - numbers[:, 1]) ** 2
    return _divide(times @ squares, times.sum(axis=1))


def auroc(groups: _ConfidenceGroups) -> Numbers:
    """How often a positive question has more confidence than a negative one.

    Equal confidences count half.

    Undefined unless there are both positive and negative questions.
    """
    others = groups.sizes - groups.hits
    total = others.sum(axis=1)
    below = others[:, ::-1].cumsum(axis=1)[:, ::-1] - others
    return _divide(
        (groups.hits * (below + others / 2)).sum(axis=1), groups.hits.sum(axis=1) * total
    )


_AURC = "the area under the risk-coverage curve: wrong answers among the surest"
_ECE = "the calibration error of the confidence, 15 bins"
_AUROC = (
    "how well confidence tells the questions with a gold passage among those read from the others"
)
AURC = ColumnMeasure(
    "AURC", partial(_score_resamples, aurc), CONFIDENCE_COLUMNS, best="low", about=_AURC
)
_AT_50, _AT_80 = (
    partial(_score_resamples, partial(at_coverage, percent=percent)) for percent in (50, 80)
)
EM_50 = ColumnMeasure(
    "EM-50", _AT_50, CONFIDENCE_COLUMNS, about="EM of the half with most confidence"
)
EM_80 = ColumnMeasure(
    "EM-80", _AT_80, CONFIDENCE_COLUMNS, about="EM of the 80% with most confidence"
)
_CALIBRATION_ERROR = partial(_score_resamples, calibration_error)
ECE = ColumnMeasure(
    "ECE", _CALIBRATION_ERROR, CONFIDENCE_COLUMNS, best="low", about=_ECE, has_interval=False
)
BRIER = ColumnMeasure(
    "Brier", brier, CONFIDENCE_COLUMNS, best="low", about="the mean squared error of the confidence"
)
AUROC = ColumnMeasure(
    "AUROC",
    partial(_score_resamples, auroc),
    ("confidence", "gold_read"),
    about=_AUROC,
    classes="gold_read",
)
CONFIDENCE = (AURC, EM_50, EM_80, ECE, BRIER, AUROC)


def calibration_curves(numbers: Numbers, seed: int) -> CalibrationCurves:
    """The risk-coverage curve and the bins of a reliability diagram, with 95% bootstrap intervals.

    `numbers` has the confidence and EM of each question, (questions, 2); at least one question has
    a confidence.
    """
    once = np.ones((1, len(numbers)))
    codes = np.arange(len(numbers))
    curves: CalibrationCurves = {"risks": [], "bins": []}
    risks = partial(_score_resamples, _risks, numbers)
    bins = partial(_score_resamples, _bins, numbers)
    for coverage, risk, resampled in zip(
        COVERAGES, risks(once)[0], resample(risks, codes, seed).T, strict=True
    ):
        mean, low, high = map(_percent, (risk, *interval_ends(resampled, risk)))
        curves["risks"].append(
            {"coverage": float(coverage), "value": mean, "low": low, "high": high}
        )
    shares = resample(bins, codes, seed)[:, :, 2]
    for (size, confidence, share), resampled in zip(
        bins(once)[0][::-1], shares.T[::-1], strict=True
    ):
        if size:  # some bins are empty if there are fewer questions than bins
            sure, mean, low, high = map(
                _percent, (confidence, share, *interval_ends(resampled, share))
            )
            curves["bins"].append(
                {
                    "questions": int(size),
                    "confidence": sure,
                    "value": mean,
                    "low": low,
                    "high": high,
                }
            )
    return curves


def _risks(groups: _ConfidenceGroups) -> Numbers:
    """The share of wrong answers among the most confident questions, at each of COVERAGES.

    (resamples, coverages).
    """
    return np.stack([1 - at_coverage(groups, percent) for percent in COVERAGES], axis=1)


def _bins(groups: _ConfidenceGroups) -> Numbers:
    """The size, mean confidence and share of right answers of each bin, most confident first.

    (resamples, bins, 3).
    """
    sizes, hits, confidences = groups.bins()
    divisors = np.where(sizes > 0, sizes, np.nan)
    return np.stack([sizes, confidences / divisors, hits / divisors], axis=2)


def _percent(share: float) -> float:
    return to_percent(min(max(float(share), 0.0), 1.0))


def fit_threshold(
    confidences: Sequence[float], right: Sequence[bool], error: float
) -> float | None:
    """The lowest confidence from which on at most `error` of the answers are wrong.

    None if there is none.
    """
    ranked = sorted(zip(confidences, right, strict=True), reverse=True)
    wrong, fitted = 0, None
    for count, (confidence, is_right) in enumerate(ranked, start=1):
        wrong += not is_right
        last_of_ties = count == len(ranked) or ranked[count][0] < confidence
        # 0.29 * 100 is less than 29 in binary fractions
        if last_of_ties and wrong <= error * count * (1 + _ROUNDING):
            fitted = confidence
    return fitted
