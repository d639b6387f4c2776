"""The settings of a plugin or a source are a function's keyword arguments: checked, and with their defaults."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from ifqa.errors import IfqaError, unknown
from ifqa.protocols import GIVEN, Place


def check_settings(what: str, function: Any, settings: Mapping[str, Any], given: Iterable[str] = ()) -> None:
    """Refuse settings that `function` does not take, by name, before any work is done.

    Args:
        what: how the message calls the place they come from, as in "setting of retriever 'bm25'".
        function: the constructor or `build` whose keyword arguments are the settings.
        settings: the settings by name.
        given: names of arguments that the caller fills in and nobody may set.

    Raises:
        IfqaError: a setting is missing, unknown or of the wrong basic type.
    """
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in {*given, "self"} and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in settings:
            raise IfqaError(f"{what} {name!r} is missing")
    for name, value in settings.items():
        if name not in parameters:
            raise unknown(what, name, parameters)
        default, annotation = parameters[name].default, parameters[name].annotation
        if annotation in (str, str | None, Place) and not isinstance(value, str):
            raise IfqaError(f"{what} {name!r}: wanted text, found {value!r}")
        if isinstance(default, bool | int | float | str) and not _fits(value, default):
            raise IfqaError(f"{what} {name!r}: wanted {type(default).__name__}, found {value!r}")


def settings_of(function: Any) -> dict[str, Any]:
    """Every setting of a plug with its default: its constructor's or `build`'s keyword arguments that have one."""
    parameters = inspect.signature(function).parameters.values()
    return {
        one.name: one.default
        for one in parameters
        if one.default is not one.empty and one.default is not None and one.name not in GIVEN
    }


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))
