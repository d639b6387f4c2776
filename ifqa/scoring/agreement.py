"""Agreement of annotators: Krippendorff's alpha for classes without an order."""

from collections import Counter
from collections.abc import Hashable, Sequence


def alpha(units: Sequence[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha, 1 - observed / expected disagreement; 1 is full agreement, 0 that of chance.

    As in Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), sections C and D: any number of annotators, of whom
    each may leave units out.

    Args:
        units: the classes that each unit was given, in any order; a unit with fewer than two says nothing and is left out.

    Returns:
        None where it is not defined: no unit has two classes, or all classes are the same.
    """
    paired = [Counter(classes) for classes in units if len(classes) > 1]
    total: Counter[Hashable] = sum(paired, Counter())
    size = total.total()
    expected = size * size - sum(count * count for count in total.values())
    if not expected:
        return None
    observed = sum(
        (given.total() ** 2 - sum(count * count for count in given.values())) / (given.total() - 1) for given in paired
    )
    return 1 - (size - 1) * observed / expected
