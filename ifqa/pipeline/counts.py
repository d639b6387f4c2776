"""Adds what several processes and attempts have used: tables of counts, as a plugin's `usage` gives them."""

from collections.abc import Mapping
from typing import Any


def added(one: Any, other: Any) -> Any:
    """Counts, added number by number in tables and lists; None if one is None (an unknown price); of texts the second."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {**one, **other, **{key: added(one[key], other[key]) for key in one if key in other}}
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [added(*pair) for pair in zip(one, other, strict=True)]
    if _is_number(one) and _is_number(other):
        return one + other
    return None if one is None else other


def negated(one: Any) -> Any:
    """Counts with the opposite sign; anything else as it is."""
    if isinstance(one, Mapping):
        return {key: negated(value) for key, value in one.items()}
    if isinstance(one, list | tuple):
        return [negated(value) for value in one]
    return -one if _is_number(one) else one


def _is_number(one: Any) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)
