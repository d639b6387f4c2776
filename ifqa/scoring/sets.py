"""Measures over sets of answers: their value with its interval, and the difference of two systems with its p-value.

A measure over sets is computed anew for every resample, which is slow: so there are fewer resamples than for means. A unit that
is drawn again gets a new name, in its questions' ids and in their unit, so that a measure counts it again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real

from ifqa.errors import IfqaError
from ifqa.protocols import SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.scheme import units
from ifqa.scoring.statistics import Interval, mean_interval

RESAMPLES = 1_000  # of a set measure; also the rounds of its randomisation test

Pairs = list[tuple[Question, Prediction]]


@dataclass(frozen=True)
class SetDifference:
    """A measure of two systems: `more` is second less first, `low` to `high` its 95% interval, `p` two-sided; 0 to 1."""

    first: float
    second: float
    more: float
    low: float
    high: float
    p: float


def set_interval(
    measure: SetMeasure, questions: Sequence[Question], predictions: Sequence[Prediction], seed: int
) -> Interval | None:
    """A measure's value over the questions with its 95% bootstrap interval over units; None if it is not defined."""
    import numpy as np

    value = value_of(measure, questions, predictions)
    if value is None:
        return None
    if len(set(_units(measure, questions))) == 1:  # every resample is the same
        return value, value, value
    blocks = _Blocks(measure, questions, predictions)
    found = [value_of(measure, *resample) for resample in blocks.resamples(seed)]
    low, high = np.quantile([one for one in found if one is not None] or [value], (0.025, 0.975))
    return value, float(low), float(high)


def set_macro(
    measure: SetMeasure, questions: Sequence[Question], predictions: Sequence[Prediction], seed: int
) -> tuple[Interval, int] | None:
    """The mean over groups of a measure's values, units drawn within each group; and in how many groups it is defined."""
    import numpy as np

    values, drawn = [], []
    for places in places_of([one.group for one in questions]).values():
        own, answers = [questions[n] for n in places], [predictions[n] for n in places]
        value = value_of(measure, own, answers)
        if value is not None:
            values.append(value)
            resamples = _Blocks(measure, own, answers).resamples(seed + len(values))
            found = [value_of(measure, *one) for one in resamples] if measure.unit != "group" else []
            drawn.append([value if one is None else one for one in found])
    if not values:
        return None
    if measure.unit == "group":
        return mean_interval(values, seed), len(values)
    low, high = np.quantile(np.mean(drawn, axis=0), (0.025, 0.975))
    return (sum(values) / len(values), float(low), float(high)), len(values)


def set_difference(
    measure: SetMeasure,
    questions: Sequence[Question],
    first: Sequence[Prediction],
    second: Sequence[Prediction],
    seed: int,
) -> SetDifference | None:
    """Two systems over the same questions: both on the same resamples, swapped unit by unit for p; None if not defined."""
    import numpy as np

    value, other = value_of(measure, questions, first), value_of(measure, questions, second)
    if value is None or other is None:
        return None
    resamples = (_Blocks(measure, questions, answers).resamples(seed) for answers in (first, second))
    more = []
    for one, another in zip(*resamples, strict=True):
        a, b = value_of(measure, *one), value_of(measure, *another)
        more += [b - a] if a is not None and b is not None else []
    low, high = np.quantile(more or [other - value], (0.025, 0.975))
    p = _randomization(measure, questions, first, second, seed, abs(other - value))
    return SetDifference(value, other, other - value, float(low), float(high), p)


def _randomization(
    measure: SetMeasure,
    questions: Sequence[Question],
    first: Sequence[Prediction],
    second: Sequence[Prediction],
    seed: int,
    observed: float,
) -> float:
    """The p-value: the share of rounds, with answers swapped at random unit by unit, that differ at least as `observed`."""
    import numpy as np

    several = list(places_of(_units(measure, questions)).values())
    rng = np.random.default_rng(seed)
    at_least = 0
    for _ in range(RESAMPLES):
        a, b = list(first), list(second)
        for places, swap in zip(several, rng.integers(2, size=len(several)), strict=True):
            for place in places if swap else ():
                a[place], b[place] = b[place], a[place]
        one, other = value_of(measure, questions, a), value_of(measure, questions, b)
        apart = 0.0 if one is None or other is None else abs(other - one)
        at_least += apart >= observed - 1e-9
    return (at_least + 1) / (RESAMPLES + 1)


def value_of(measure: SetMeasure, questions: Sequence[Question], predictions: Sequence[Prediction]) -> float | None:
    """A measure's value, from 0 to 1; None if it is not defined.

    Raises:
        IfqaError: the value is something else.
    """
    value = measure.score(questions, predictions) if questions else None
    if value is not None and (not isinstance(value, Real) or not 0 <= value <= 1):
        raise IfqaError(f"measure {measure.name!r}: wanted a number from 0 to 1, found {value!r}")
    return None if value is None else float(value)


def places_of(names: Sequence[str]) -> dict[str, list[int]]:
    """The indexes of each name, by name."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    return dict(sorted(found.items()))


def _units(measure: SetMeasure, questions: Sequence[Question]) -> list[str]:
    return units(measure, questions) or [one.id for one in questions]


class _Blocks:
    """Questions and predictions by unit, to draw resamples from."""

    def __init__(self, measure: SetMeasure, questions: Sequence[Question], predictions: Sequence[Prediction]) -> None:
        self._unit = measure.unit
        together = list(zip(questions, predictions, strict=True))
        several: Mapping[str, list[int]] = places_of(_units(measure, questions))
        self._units: list[Pairs] = [[together[place] for place in places] for places in several.values()]
        self._copy = lru_cache(maxsize=None)(self._copied)

    def resamples(self, seed: int) -> Iterator[tuple[list[Question], list[Prediction]]]:
        """Resamples: each draws as many units as there are, with replacement."""
        import numpy as np

        rng, several = np.random.default_rng(seed), len(self._units)
        for _ in range(RESAMPLES):
            times = np.bincount(rng.integers(several, size=several), minlength=several).tolist()
            drawn = [pair for unit, count in enumerate(times) for n in range(count) for pair in self._copy(unit, n)]
            yield [question for question, _ in drawn], [prediction for _, prediction in drawn]

    def _copied(self, unit: int, number: int) -> Pairs:
        return [_renamed(*pair, self._unit, number) for pair in self._units[unit]] if number else self._units[unit]


def _renamed(question: Question, prediction: Prediction, unit: str, number: int) -> tuple[Question, Prediction]:
    """The same pair with another question id and another name of its unit."""
    mark = f"#{number + 1}"
    question = replace(question, id=question.id + mark)
    if unit == "group":
        question = replace(question, group=question.group + mark)
    elif unit != "question":
        labels = tuple((name, value + mark if name == unit else value) for name, value in question.labels)
        question = replace(question, labels=labels)
    return question, replace(prediction, question_id=question.id)
