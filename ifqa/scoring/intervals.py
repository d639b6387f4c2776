"""Which of two intervals of a score is reported: the bootstrap's, or Wilson's.

The bootstrap has no spread where all units score the same, so a score of 0 or 1 gets Wilson's
interval in place of one of zero width. With few units neither says anything, and there is none.
"""

import math
from collections.abc import Collection, Iterable, Mapping

from ifqa.protocols import AnyMeasure, Measure, RankingMeasure
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.statistics import Interval, to_percent, wilson_interval
from ifqa.scoring.stored_scores import (
    MacroScores,
    ScoreInterval,
    ScoreIntervals,
    ScoresJson,
    SubsetScores,
)

#: Below this, an interval says little: if a reader is right 70% of the time, all of 10 questions
#: score the same in 3% of samples; all of 5 questions in 17%, all of 3 in 37%.
MIN_UNITS = 10
#: Below this, a group has too little spread to draw units within it: a resample of n units has
#: (n - 1) / n of their mean's variance, which is none for a single unit. From 5 units on, an
#: interval is at most 11% too narrow.
MIN_GROUP = 5
_ZERO_WIDTH = 1e-9  # of a share; equal scores have means that differ by rounding


def report_interval(interval: Interval, units: int, is_share: bool) -> Interval:
    """The interval to report for a score from 0 to 1; its ends are NaN if there is none.

    Args:
        interval: the score and its bootstrap interval.
        units: the number of units that were resampled.
        is_share: whether the score is the mean of the units' scores, each from 0 to 1.
    """
    score, low, high = interval
    if units < MIN_UNITS:
        return score, math.nan, math.nan
    if not high - low <= _ZERO_WIDTH:  # also if there is none
        return interval
    wilson = wilson_interval(round(score * units), units)
    if is_share and wilson and min(score, 1 - score) <= _ZERO_WIDTH:
        return score, *wilson[1:]
    return score, math.nan, math.nan


def are_large_groups(sizes: Iterable[int]) -> bool:
    """Whether each group has enough units to draw them within it."""
    return min(sizes, default=0) >= MIN_GROUP


def mend_intervals(scores: ScoresJson, scheme: ScoringScheme) -> ScoresJson:
    """Scores from a file with the intervals that are reported today; earlier versions stored those
    of the bootstrap alone.

    A file does not say how many units a measure has that resamples larger units than questions:
    there, an interval of zero width is left out. Nor does it say how many questions of a subset are
    in the smaller of the two classes that a measure compares: at most as many as of all questions.
    """
    count = scores["questions"]
    small = _of_small_classes(scores, scheme)
    mended: ScoresJson = {**scores, "measures": _mend(scores["measures"], count, scheme, small)}
    mended["subsets"] = _mend_parts(scores["subsets"], scheme, small)
    if "groups" in scores:
        mended["groups"] = _mend_parts(scores["groups"], scheme, small)
    if "macro" in scores:
        macro: MacroScores = {"measures": _mend(scores["macro"]["measures"], count, None, small)}
        mended["macro"] = macro
    return mended


def _of_small_classes(scores: ScoresJson, scheme: ScoringScheme) -> set[str]:
    """The measures of two classes of which one, by the subset with its name, has few questions."""
    small = set[str]()
    for measure in scheme.columns:
        if measure.classes in scores["subsets"]:
            members = scores["subsets"][measure.classes]["questions"]
            if min(members, scores["questions"] - members) < MIN_UNITS:
                small.add(measure.name)
    return small


def _mend_parts(
    parts: Mapping[str, SubsetScores], scheme: ScoringScheme, small: Collection[str]
) -> dict[str, SubsetScores]:
    return {
        name: {
            "questions": part["questions"],
            "measures": _mend(part["measures"], part["questions"], scheme, small),
        }
        for name, part in parts.items()
    }


def _mend(
    means: ScoreIntervals, questions: int, scheme: ScoringScheme | None, small: Collection[str]
) -> ScoreIntervals:
    """The scores over some questions, those in `small` without intervals; without a scheme, none is
    a plain share of them.
    """
    mended: ScoreIntervals = {}
    for key, mean in means.items():
        is_share = scheme is not None and key in scheme.keys([key])
        if scheme and is_share:
            is_share = _is_share_of_questions(scheme.measure(key))
        count = 0 if key in small else mean.get("questions", questions)
        mended[key] = _mend_interval(mean, count, is_share)
    return mended


def _is_share_of_questions(measure: AnyMeasure) -> bool:
    return measure.unit == "question" and isinstance(measure, Measure | RankingMeasure)


def _mend_interval(mean: ScoreInterval, questions: int, is_share: bool) -> ScoreInterval:
    if "low" not in mean or "high" not in mean:
        return mean
    stored = (mean["value"] / 100, mean["low"] / 100, mean["high"] / 100)
    reported = report_interval(stored, questions, is_share)
    if reported == stored:
        return mean
    mended: ScoreInterval = {**mean}
    del mended["low"]
    del mended["high"]
    if not math.isnan(reported[1]):
        mended |= {"low": to_percent(reported[1]), "high": to_percent(reported[2])}
    return mended
