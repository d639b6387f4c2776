"""From a name in a settings file to an object: `"bm25"`, or `"my_module:Class"` for a plug from outside.

A folder of plugs lists its own in a table of strings, so that naming one imports that one alone.
"""

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError

_TABLES = {
    "benchmark": "ifqa.benchmarks",
    "retriever": "ifqa.retrievers",
    "reader": "ifqa.readers",
    "llm": "ifqa.llms",
}

_EXTRAS = {
    "faiss": "cpu", "ray": "ray", "peft": "train", "datasets": "train", "accelerate": "train", "nbclient": "notebooks",
    "matplotlib": "notebooks",
}  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """What building an index will take: seconds, bytes of disk, bytes of memory; `about` is said besides."""

    seconds: float
    disk: float
    memory: float
    about: str = ""


def names(kind: str) -> dict[str, str]:
    """Name -> "module:Class" of the plugs of a kind ("benchmark", "retriever", "reader") that ship with ifqa."""
    table: dict[str, str] = importlib.import_module(_TABLES[kind]).PLUGS
    return table


def unknown(what: str, name: str, known: Iterable[str]) -> IfqaError:
    """An error for a name nobody knows, with the nearest known one and the list of all."""
    known = sorted(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return IfqaError(f"unknown {what} {name!r}; {hint}known: {', '.join(known) or 'none'}")


def load(kind: str, name: str) -> type[Any]:
    """The class behind a name.

    Raises:
        IfqaError: nothing has that name, or the extra it needs is not installed.
    """
    target = name if ":" in name else names(kind).get(name)
    if target is None:
        raise unknown(kind, name, names(kind))
    module_name, _, class_name = target.partition(":")
    if not re.fullmatch(r"[\w.]*\w:\w+", target) or target.startswith("."):
        raise IfqaError(f"{kind} {name!r}: wanted a name, or my_module:Class")
    if ":" in name and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # a tinkerer's my_module.py lies where they work
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if f"{module_name}.".startswith(f"{error.name}."):
            raise IfqaError(f"{kind} {name!r}: no module named {error.name!r} here or installed") from error
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise IfqaError(f"{kind} {name!r} needs {error.name}; install it with: pip install 'ifqa[{extra}]'") from error
    except SyntaxError as error:
        raise IfqaError(f"{kind} {name!r}: {error.filename}:{error.lineno}: {error.msg}") from error
    if not hasattr(module, class_name):
        raise IfqaError(f"{kind} {name!r}: module {module_name!r} has no {class_name!r}")
    plug: type[Any] = getattr(module, class_name)
    return plug


def takes(kind: str, name: str, argument: str) -> bool:
    """Whether a plug's constructor wants something that is handed in, as a language model or the passages."""
    return argument in inspect.signature(load(kind, name).__init__).parameters


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
        if annotation in (str, str | None) and not isinstance(value, str):
            raise IfqaError(f"{what} {name!r}: wanted text, found {value!r}")
        if isinstance(default, bool | int | float | str) and not _fits(value, default):
            raise IfqaError(f"{what} {name!r}: wanted {type(default).__name__}, found {value!r}")


def settings_of(function: Any) -> dict[str, Any]:
    """Every setting of a plug with its default: its constructor's or `build`'s keyword arguments that have one."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty and one.default is not None}


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))
