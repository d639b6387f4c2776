"""Measures of numbers in the questions' rows: their value with its interval, and the difference of two systems with its p-value.

A resample is how often each question counts, so that all resamples are computed at once. Resamples, swaps and their number
are those of `ifqa.scoring.sets`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.protocols import ColumnMeasure
from ifqa.scoring.sets import RESAMPLES, SetDifference, places_of
from ifqa.scoring.statistics import Interval, mean_interval

if TYPE_CHECKING:
    import numpy as np

    from ifqa.protocols import Numbers

_AT_ONCE = 50_000  # numbers in a table of resamples; several such tables fit into a core's cache
Of = Callable[["Numbers", "Numbers"], "Numbers"]  # as `ColumnMeasure.of`; its result may have more dimensions


def column_interval(
    measure: ColumnMeasure, numbers: "Numbers", seed: int, units: Sequence[str] = ()
) -> Interval | None:
    """A measure's value with its 95% bootstrap interval; None if it is not defined.

    Args:
        measure: the measure.
        numbers: of the measure's columns, (questions, columns); NaN where a row lacks one.
        seed: of the draws.
        units: the unit of each question, which is drawn as a whole; empty: each question is a unit.
    """
    value = value_of(measure, numbers)
    if value is None:
        return None
    low, high = ends_of(drawn(_checked(measure), numbers, seed, units), value)
    return value, low, high


def column_macro(
    measure: ColumnMeasure, numbers: "Numbers", groups: Sequence[str], seed: int, units: Sequence[str] = ()
) -> tuple[Interval, int] | None:
    """The mean over groups of a measure's values, units drawn within each group; and in how many groups it is defined."""
    import numpy as np

    values, several = [], []
    for places in places_of(groups).values():
        value = value_of(measure, numbers[places])
        if value is not None:
            values.append(value)
            own = [units[place] for place in places] if units else ()
            found = drawn(_checked(measure), numbers[places], seed + len(values), own)
            several.append(np.where(np.isnan(found), value, found))
    if not values:
        return None
    if measure.unit == "group":
        return mean_interval(values, seed), len(values)
    mean = sum(values) / len(values)
    return (mean, *ends_of(np.mean(several, axis=0), mean)), len(values)


def column_difference(
    measure: ColumnMeasure, first: "Numbers", second: "Numbers", seed: int, units: Sequence[str] = ()
) -> SetDifference | None:
    """Two systems over the same questions: both on the same resamples, swapped unit by unit for p; None if not defined."""
    import numpy as np

    value, other = value_of(measure, first), value_of(measure, second)
    if value is None or other is None:
        return None
    of = _checked(measure)
    low, high = ends_of(drawn(of, second, seed, units) - drawn(of, first, seed, units), other - value)
    both, rng, unit = np.concatenate([first, second]), np.random.default_rng(seed), _places(len(first), units)
    at_least = 0
    for rounds in _batches(len(both)):
        swaps = rng.integers(2, size=(rounds, int(unit.max()) + 1))[:, unit].astype(float)  # (rounds, questions)
        one, another = (of(both, np.concatenate(some, axis=1)) for some in ((1 - swaps, swaps), (swaps, 1 - swaps)))
        apart = np.nan_to_num(np.abs(another - one))
        at_least += int((apart >= abs(other - value) - 1e-9).sum())
    return SetDifference(value, other, other - value, low, high, (at_least + 1) / (RESAMPLES + 1))


def value_of(measure: ColumnMeasure, numbers: "Numbers") -> float | None:
    """A measure's value, from 0 to 1; None if it is not defined.

    Raises:
        IfqaError: the value is something else.
    """
    import numpy as np

    if not len(numbers):
        return None
    value = float(_checked(measure)(numbers, np.ones((1, len(numbers))))[0])
    return None if np.isnan(value) else value


def _checked(measure: ColumnMeasure) -> Of:
    """The measure's function, whose result is checked.

    Raises:
        IfqaError: the result has another shape, or a value that is not from 0 to 1.
    """
    import numpy as np

    def of(numbers: "Numbers", times: "Numbers") -> "Numbers":
        found = np.asarray(measure.score(numbers, times), dtype=float)
        wanted = f"measure {measure.name!r}: wanted a number from 0 to 1, or NaN, for each of {len(times)} resamples"
        if found.shape != (len(times),):
            raise IfqaError(f"{wanted}; found the shape {found.shape}")
        if len(strange := found[(found < -1e-9) | (found > 1 + 1e-9)]):
            raise IfqaError(f"{wanted}; found {strange[0]!r:.80}")
        return found.clip(0, 1)

    return of


def drawn(of: Of, numbers: "Numbers", seed: int, units: Sequence[str] = ()) -> "Numbers":
    """A function's result on 1,000 resamples: each draws as many units as there are, with replacement; (1000, ...)."""
    import numpy as np

    unit, rng, found = _places(len(numbers), units), np.random.default_rng(seed), []
    several = int(unit.max()) + 1
    for rounds in _batches(len(numbers)):
        times = [np.bincount(rng.integers(several, size=several), minlength=several) for _ in range(rounds)]
        found.append(of(numbers, np.stack(times)[:, unit].astype(float)))
    return np.concatenate(found)


def ends_of(values: "Numbers", without: float) -> tuple[float, float]:
    """The 95% interval of resampled values, of which NaN are left out; `without` twice if no value is left."""
    import numpy as np

    there = values[~np.isnan(values)]
    low, high = np.quantile(there if len(there) else [without], (0.025, 0.975))
    return float(low), float(high)


def _places(questions: int, units: Sequence[str]) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """The number of each question's unit."""
    import numpy as np

    return np.unique(np.asarray(units), return_inverse=True)[1] if units else np.arange(questions)


def _batches(width: int) -> Iterator[int]:
    step = max(1, _AT_ONCE // max(width, 1))
    yield from (min(step, RESAMPLES - start) for start in range(0, RESAMPLES, step))
