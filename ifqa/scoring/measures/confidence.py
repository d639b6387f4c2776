"""How well a reader knows when it is right: risk against coverage, calibration, and telling answerable questions apart.

All are functions of each question's confidence and of whether its answer is right. Questions are ordered by confidence, the
surest first. Where several have the same confidence, their order is unknown: a value is then the mean over all their orders,
except for the calibration error, for which each of them counts with the mean of all. A question without a confidence, such as
a failed one, has confidence 0. Where no question has a confidence, nothing is defined.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ifqa.protocols import ColumnMeasure

if TYPE_CHECKING:
    from ifqa.protocols import Numbers

BINS = 15
RIGHT = ("confidence", "EM")


@dataclass(frozen=True)
class Ordered:
    """Resamples of questions, grouped by confidence, the surest first.

    Attributes:
        sure: the confidence of each group, falling, (groups,).
        sizes: how many questions of a group are in a resample, (resamples, groups).
        hits: how many of these are positive, (resamples, groups).
    """

    sure: "Numbers"
    sizes: "Numbers"
    hits: "Numbers"

    @cached_property
    def count(self) -> "Numbers":
        """The questions in each resample, (resamples,)."""
        return self._ends[:, -1]

    @cached_property
    def before(self) -> "Numbers":
        """How many questions are surer than a group, (resamples, groups)."""
        return self._ends - self.sizes

    @cached_property
    def share(self) -> "Numbers":
        """The share of a group that is positive, 0 for a group without questions, (resamples, groups)."""
        import numpy as np

        return np.divide(self.hits, self.sizes, out=np.zeros_like(self.hits), where=self.sizes > 0)

    def first(self, k: "Numbers") -> tuple["Numbers", "Numbers"]:
        """The positives among the first `k` questions of each resample, and their summed confidence; (resamples,) all."""
        import numpy as np

        whole = (self._ends <= k[:, None]).sum(axis=1)  # groups that are among the first k with all of their questions
        row, last = np.arange(len(k)), np.minimum(whole, len(self.sure) - 1)
        more = k - self.before[row, last]
        hits = self._hits_until[row, last] - self.hits[row, last] + more * self.share[row, last]
        return hits, self._sure_until[row, last] - (self.sizes[row, last] - more) * self.sure[last]

    @cached_property
    def _ends(self) -> "Numbers":
        return self.sizes.cumsum(axis=1)

    @cached_property
    def _hits_until(self) -> "Numbers":
        return self.hits.cumsum(axis=1)

    @cached_property
    def _sure_until(self) -> "Numbers":
        sums: Numbers = (self.sizes * self.sure).cumsum(axis=1)
        return sums


def ordered(numbers: "Numbers", times: "Numbers") -> Ordered | None:
    """The resamples of questions with numbers (confidence, 1 if positive); None if no question has a confidence.

    A question that is neither positive nor negative (NaN) is left out. Shapes are those of `ColumnMeasure.of`.
    """
    import numpy as np

    sure, positive = numbers.T
    there = ~np.isnan(positive)
    if np.isnan(sure).all() or not there.any():
        return None
    surest, group = np.unique(-np.nan_to_num(sure[there]), return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(surest)))
    weights = times[:, there][:, order]  # (resamples, questions)
    hits = weights * positive[there][order]
    return Ordered(-surest, *(np.add.reduceat(column, starts, axis=1) for column in (weights, hits)))


def _undefined(times: "Numbers") -> "Numbers":
    import numpy as np

    return np.full(len(times), np.nan)


def _divided(values: "Numbers", by: "Numbers") -> "Numbers":
    import numpy as np

    ratios: Numbers = np.divide(values, by, out=np.full(len(values), np.nan), where=by > 0)
    return ratios


def aurc(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """The area under the risk-coverage curve (Geifman, Uziel and El-Yaniv, ICLR 2019): the mean over k of the k surest's risk.

    The risk of k questions is the share of wrong answers among them; k runs from 1 to the number of questions.
    """
    import numpy as np

    if (groups := ordered(numbers, times)) is None:
        return _undefined(times)
    wrong = groups.sizes - groups.hits
    before, count = groups.before, groups.count
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(count.max(initial=0)) + 1))])
    # Of a group after s questions with w wrong answers, the j-th adds (w + j * share) / (s + j) in the mean over orders.
    inverse = harmonic[(before + groups.sizes).astype(int)] - harmonic[before.astype(int)]
    share = np.where(groups.sizes > 0, 1 - groups.share, 0.0)
    areas = (wrong.cumsum(axis=1) - wrong) * inverse + share * (groups.sizes - before * inverse)
    return np.minimum(_divided(areas.sum(axis=1), count), 1.0)


def at_coverage(numbers: "Numbers", times: "Numbers", percent: int) -> "Numbers":
    """The share of right answers among the surest `percent` of the questions, rounded up to a whole question."""
    import numpy as np

    if (groups := ordered(numbers, times)) is None:
        return _undefined(times)
    k = -(-groups.count * percent // 100)
    return np.minimum(_divided(groups.first(k)[0], k), 1.0)


def bins(groups: Ordered) -> tuple["Numbers", "Numbers", "Numbers"]:
    """Fifteen bins of equally many questions, surest first: sizes, right answers, summed confidences; (resamples, 15) all."""
    import numpy as np

    ends = [groups.count * number // BINS for number in range(BINS + 1)]
    hits, sure = (np.stack(sums, axis=1) for sums in zip(*map(groups.first, ends), strict=True))
    return np.diff(np.stack(ends, axis=1)), np.diff(hits), np.diff(sure)


def calibration_error(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """How far confidence and EM lie apart, over 15 bins of equally many questions (Nguyen and O'Connor, EMNLP 2015).

    The mean over bins of |mean confidence - share of right answers|, weighted by the bins' sizes. With few questions it is
    too high by chance, in the resamples of a bootstrap even more.
    """
    import numpy as np

    if (groups := ordered(numbers, times)) is None:
        return _undefined(times)
    _, hits, sure = bins(groups)
    return np.minimum(_divided(np.abs(sure - hits).sum(axis=1), groups.count), 1.0)


def brier(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """The mean squared difference of confidence and EM (Brier 1950)."""
    import numpy as np

    if np.isnan(numbers[:, 0]).all():
        return _undefined(times)
    squares = (np.nan_to_num(numbers[:, 0]) - numbers[:, 1]) ** 2
    return _divided(times @ squares, times.sum(axis=1))


def auroc(numbers: "Numbers", times: "Numbers") -> "Numbers":
    """How often a positive question has more confidence than a negative one; equal confidences count half.

    Not defined without a positive or without a negative question.
    """
    if (groups := ordered(numbers, times)) is None:
        return _undefined(times)
    others = groups.sizes - groups.hits
    total, below = others.sum(axis=1), others[:, ::-1].cumsum(axis=1)[:, ::-1] - others
    return _divided((groups.hits * (below + others / 2)).sum(axis=1), groups.hits.sum(axis=1) * total)


AURC = ColumnMeasure(
    "AURC", aurc, RIGHT, best="low", about="the area under the risk-coverage curve: wrong answers among the surest"
)
EM_50 = ColumnMeasure("EM-50", partial(at_coverage, percent=50), RIGHT, about="EM of the half with most confidence")
EM_80 = ColumnMeasure("EM-80", partial(at_coverage, percent=80), RIGHT, about="EM of the 80% with most confidence")
ECE = ColumnMeasure(
    "ECE", calibration_error, RIGHT, best="low", about="the calibration error of the confidence, 15 bins"
)
BRIER = ColumnMeasure("Brier", brier, RIGHT, best="low", about="the mean squared error of the confidence")
AUROC = ColumnMeasure(
    "AUROC",
    auroc,
    ("confidence", "gold_read"),
    about="how well confidence tells the questions with a gold passage among those read from the others",
)
CONFIDENCE = (AURC, EM_50, EM_80, ECE, BRIER, AUROC)
