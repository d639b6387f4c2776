"""What a table of a settings file must hold; `where` opens each error."""

import re
from collections.abc import Mapping
from typing import Any

from ifqa.errors import IfqaError, unknown


def as_table(value: Any, where: str) -> dict[str, Any]:
    """A value that must be a table."""
    if not isinstance(value, dict):
        raise IfqaError(f"{where}: wanted a table, found {'nothing' if value is None else repr(value)}")
    return value


def plain_name(name: str, what: str) -> str:
    """A name that may be a folder: it leads nowhere else."""
    if not re.fullmatch(r"\w[\w.+=~-]{0,199}", name):
        raise IfqaError(f"{what} {name!r}: wanted a name of letters, digits and . _ - that names no other folder")
    return name


def check_keys(table: Mapping[str, Any], known: set[str], what: str) -> None:
    """Refuse keys that nobody knows."""
    for key in table:
        if key not in known:
            raise unknown(what, key, known)


def text(table: Mapping[str, Any], key: str, where: str) -> str:
    """A key that must be there, as text."""
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise IfqaError(f'{where}: wanted {key} = "...", found {"nothing" if value is None else repr(value)}')
    return value


def whole_number(table: Mapping[str, Any], key: str, default: int, least: int, where: str) -> int:
    """A key as a whole number of at least `least`, or its default."""
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise IfqaError(f"{where}: {key} must be a whole number from {least}, found {value!r}")
    return value
