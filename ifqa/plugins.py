"""From a name in a settings file to an object: `"bm25"`, or `"my_module:Class"` for a plug from outside.

A folder of plugs lists its own in a table of strings, so that naming one imports that one alone.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError, unknown
from ifqa.protocols import AnyMeasure, Measure, RankingMeasure, SetMeasure

_TABLES = {
    "benchmark": "ifqa.benchmarks",
    "retriever": "ifqa.retrieval",
    "reader": "ifqa.reading",
    "llm": "ifqa.llms",
    "measure": "ifqa.scoring.measures",
}

_EXTRAS = {
    "faiss": "cpu", "ray": "ray", "peft": "train", "datasets": "train", "accelerate": "train", "nbclient": "notebooks",
    "matplotlib": "notebooks",
}  # fmt: skip


def names(kind: str) -> dict[str, str]:
    """Name -> "module:Class" of the plugs of a kind ("benchmark", "retriever", "reader", "measure") that ship with ifqa."""
    table: dict[str, str] = importlib.import_module(_TABLES[kind]).PLUGS
    return table


def load(kind: str, name: str) -> type[Any]:
    """The class behind a name.

    Raises:
        IfqaError: nothing has that name, or the extra it needs is not installed.
    """
    plug: type[Any] = _named(kind, name)
    return plug


def load_measure(name: str) -> AnyMeasure:
    """The measure behind a name, or behind "my_module:MEASURE".

    Raises:
        IfqaError: as `load`, or what has that name is no measure.
    """
    found = _named("measure", name)
    if not isinstance(found, Measure | RankingMeasure | SetMeasure):
        what = f"the class {found.__name__}" if isinstance(found, type) else f"an object of type {type(found).__name__}"
        raise IfqaError(f"measure {name!r}: wanted a Measure, RankingMeasure or SetMeasure, found {what}")
    return found


def _named(kind: str, name: str) -> Any:
    """What "module:Class" names, or a name that stands for such."""
    target = name if ":" in name else names(kind).get(name)
    if target is None:
        raise unknown(kind, name, names(kind))
    module_name, _, class_name = target.partition(":")
    if not re.fullmatch(r"[\w.]*\w:\w+", target) or target.startswith("."):
        raise IfqaError(f"{kind} {name!r}: wanted a name, or my_module:{'MEASURE' if kind == 'measure' else 'Class'}")
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
    return getattr(module, class_name)


def takes(kind: str, name: str, argument: str) -> bool:
    """Whether a plug's constructor wants something that is handed in, as a language model or the passages."""
    return argument in inspect.signature(load(kind, name).__init__).parameters
