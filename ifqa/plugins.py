"""Loads a plugin by its name: "bm25" for a plugin of ifqa, "my_module:Class" for a plugin from outside.

Each folder of plugins lists them in a table of strings, PLUGINS. So loading a plugin does not import the others.
"""

import ast
import hashlib
import importlib
import inspect
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import Any, Literal, overload

from ifqa.errors import IfqaError, unknown
from ifqa.progress import say
from ifqa.protocols import (
    GIVEN,
    AnyMeasure,
    Benchmark,
    Indexed,
    LanguageModel,
    Learned,
    Place,
    Plugin,
    Reader,
    Retriever,
    Trainer,
    silent,
)  # fmt: skip
from ifqa.records import SearchResult

Kind = Literal["benchmark", "retriever", "reader", "llm", "trainer"]

_TABLES = {
    "benchmark": "ifqa.benchmarks",
    "retriever": "ifqa.retrieval",
    "reader": "ifqa.reading",
    "llm": "ifqa.llms",
    "measure": "ifqa.scoring.measures",
    "trainer": "ifqa.training",
}
#: Kind -> its role, and the method that a class from outside must have.
_ROLES: dict[str, tuple[type[Plugin], str]] = {
    "benchmark": (Benchmark, "questions"),
    "retriever": (Retriever, "search"),
    "reader": (Reader, "answer"),
    "llm": (LanguageModel, "complete"),
    "trainer": (Trainer, "train"),
}

#: Kind -> the arguments of `protocols.GIVEN` that its constructor is handed. A retriever is handed `index` only if it has
#: `build`, and `parts` only if it has `default_parts`.
_HANDED = {
    "benchmark": {"root"},
    "retriever": {"index", "passages", "corpus", "parts", "llm", "root"},
    "reader": {"llm", "root"},
    "llm": {"root", "budget"},
    "trainer": set(),
}

_EXTRAS = {
    "faiss": "cpu", "ray": "ray", "peft": "train", "datasets": "train", "accelerate": "train", "nbclient": "notebooks",
    "matplotlib": "notebooks",
}  # fmt: skip


def names(kind: str) -> dict[str, str]:
    """Name -> "module:Class" of ifqa's own plugins of a kind: a `Kind`, or "measure"."""
    table: dict[str, str] = importlib.import_module(_TABLES[kind]).PLUGINS
    return table


@overload
def load(kind: Literal["benchmark"], name: str, root: Path = ...) -> type[Benchmark]: ...
@overload
def load(kind: Literal["retriever"], name: str, root: Path = ...) -> type[Retriever]: ...
@overload
def load(kind: Literal["reader"], name: str, root: Path = ...) -> type[Reader]: ...
@overload
def load(kind: Literal["llm"], name: str, root: Path = ...) -> type[LanguageModel]: ...
@overload
def load(kind: Literal["trainer"], name: str, root: Path = ...) -> type[Trainer]: ...
@overload
def load(kind: Literal["retriever", "reader"], name: str, root: Path = ...) -> type[Learned]: ...
@overload
def load(kind: Kind, name: str, root: Path = ...) -> type[Plugin]: ...
def load(kind: Kind, name: str, root: Path = Path()) -> type[Plugin]:
    """The class of a name, with every method and attribute of its role. A user's own modules lie in the folder `root`.

    Raises:
        IfqaError: the name is unknown, the extra that the plugin needs is not installed, it is no plugin of that kind, or its
            constructor needs an argument that it is not handed.
    """
    plugin = _find(kind, name, root)
    if not isinstance(plugin, type):
        raise IfqaError(f"{kind} {name!r}: wanted a class, found {type(plugin).__name__} {plugin!r:.80}")
    return _with_role(kind, name, plugin)


class Plugins:
    """The plugins that a command uses, each loaded once. A user's own modules lie in the folder `root`.

    A copy for another process has loaded nothing yet, since classes from outside cannot be sent.
    """

    def __init__(self, root: Path = Path()) -> None:
        self.root = root
        self._classes: dict[tuple[Kind, str], type[Plugin]] = {}
        self._benchmarks: dict[str, Benchmark] = {}

    def __reduce__(self) -> tuple[type["Plugins"], tuple[Path]]:
        return Plugins, (self.root,)

    def _load(self, kind: Kind, name: str) -> type[Any]:
        if (kind, name) not in self._classes:
            self._classes[kind, name] = load(kind, name, self.root)
        return self._classes[kind, name]

    def load(self, kind: Literal["retriever", "reader", "llm"], name: str) -> type[Learned]:
        """The class of a retriever, a reader or a language model; raises as `load`."""
        return self._load(kind, name)

    def retriever(self, name: str) -> type[Retriever]:
        """The class of a retriever; raises as `load`."""
        return self._load("retriever", name)

    def indexed(self, name: str) -> type[Indexed]:
        """The class of a retriever that builds an index; raises as `load_indexed`."""
        return _require_indexed(name, self.retriever(name))

    def reader(self, name: str) -> type[Reader]:
        """The class of a reader; raises as `load`."""
        return self._load("reader", name)

    def llm(self, name: str) -> type[LanguageModel]:
        """The class of a language model; raises as `load`."""
        return self._load("llm", name)

    def benchmark(self, name: str) -> Benchmark:
        """A benchmark whose files lie below the root; raises as `load`."""
        if name not in self._benchmarks:
            self._benchmarks[name] = _open_benchmark(self._load("benchmark", name), self.root)
        return self._benchmarks[name]

    def takes(self, kind: Kind, name: str, argument: str) -> bool:
        """Whether a plugin's constructor takes an argument of `protocols.GIVEN`, such as "llm" or "passages"."""
        assert argument in GIVEN
        return argument in inspect.signature(self._load(kind, name).__init__).parameters


def open_benchmark(name: str, root: Path = Path()) -> Benchmark:
    """A benchmark whose files lie below `root`.

    Raises:
        IfqaError: as `load`.
    """
    return _open_benchmark(load("benchmark", name, root), root)


def _open_benchmark(plugin: type[Benchmark], root: Path) -> Benchmark:
    return plugin(**accepted_arguments(plugin.__init__, root=root))


def load_indexed(name: str) -> type[Indexed]:
    """The class of a retriever that builds an index.

    Raises:
        IfqaError: as `load`; or the retriever has no method `build`.
    """
    return _require_indexed(name, load("retriever", name))


def _require_indexed(name: str, plugin: type[Retriever]) -> type[Indexed]:
    if not issubclass(plugin, Indexed):
        raise IfqaError(f"retriever {name!r} has no index to build")
    return plugin


def accepted_arguments(function: Callable[..., object], **given: object) -> dict[str, object]:
    """The arguments whose names are parameters of the function."""
    return {name: value for name, value in given.items() if name in inspect.signature(function).parameters}


def takes(kind: Kind, name: str, argument: str) -> bool:
    """Whether a plugin's constructor takes an argument of `protocols.GIVEN`, such as "llm" or "passages"."""
    assert argument in GIVEN
    return argument in inspect.signature(load(kind, name).__init__).parameters


def settings_at(function: Callable[..., object], settings: Mapping[str, object], root: Path) -> dict[str, object]:
    """A plugin's settings. A setting of type `protocols.Place` gets `root` in front if that file or folder is there."""
    if root == Path():
        return dict(settings)
    parameters = inspect.signature(function).parameters
    places = {name for name, parameter in parameters.items() if parameter.annotation == Place}
    named = {name: value for name, value in settings.items() if name in places and isinstance(value, str) and value}
    return {**settings, **{name: str(root / path) for name, path in named.items() if (root / path).exists()}}


def code_of(plugin: type[Plugin]) -> str:
    """What identifies a plugin's code: the `version` of ifqa's own plugins, the SHA-256 of the files of others.

    The files are that of the class and those of its base classes, without files of ifqa, Python and installed packages.
    """
    if plugin.__module__.startswith("ifqa."):
        return f"version {plugin.version}"
    files = [file_of(plugin.__module__), *filter(None, (_own_file(base.__module__) for base in plugin.__mro__))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in dict.fromkeys(files))).hexdigest()


def _own_file(module: str) -> Path | None:
    """The file of a module that the user may edit; None for ifqa, for Python, and for installed packages."""
    if module.partition(".")[0] == "ifqa":
        return None
    try:
        path = file_of(module)
    except IfqaError:  # built into Python
        return None
    installed = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return None if any(path.is_relative_to(place) for place in installed) else path


def file_of(module: str) -> Path:
    """The file of an imported module; its hash shows whether the module was edited.

    Raises:
        IfqaError: the module has no file: it is built into Python, or typed into a notebook.
    """
    try:
        return Path(inspect.getfile(sys.modules[module]))
    except TypeError as error:
        raise IfqaError(f"module {module!r} is built into Python; name a module of your own") from error


def load_measure(name: str, root: Path = Path()) -> AnyMeasure:
    """The measure of a name, or of "my_module:MEASURE", whose module lies in the folder `root`.

    Raises:
        IfqaError: as `load`; or the object of that name is no measure.
    """
    found = _find("measure", name, root)
    if not isinstance(found, AnyMeasure):
        what = f"the class {found.__name__}" if isinstance(found, type) else f"an object of type {type(found).__name__}"
        raise IfqaError(
            f"measure {name!r}: wanted a Measure, RankingMeasure, SetMeasure or ColumnMeasure, found {what}"
        )
    return found


def _find(kind: str, name: str, root: Path) -> object:
    """The object of a name; its module is imported."""
    if not isinstance(name, str):
        raise IfqaError(
            f"{kind} {name!r:.80}: wanted a name, or my_module:{'MEASURE' if kind == 'measure' else 'Class'}"
        )
    target = name if ":" in name else names(kind).get(name)
    if target is None:
        raise IfqaError(f"{unknown(kind, name, names(kind))}{_in_a_file_here(kind, name, root)}")
    module_name, _, attribute = target.partition(":")
    if not re.fullmatch(r"[\w.]*\w:\w+", target) or target.startswith("."):
        raise IfqaError(f"{kind} {name!r}: wanted a name, or my_module:{'MEASURE' if kind == 'measure' else 'Class'}")
    if ":" in name and (place := str(root.absolute())) not in sys.path:
        sys.path.append(place)  # where a user's my_module.py lies
    new = module_name not in sys.modules
    written = sys.dont_write_bytecode
    try:
        sys.dont_write_bytecode = (
            written or ":" in name
        )  # compiled, an edit of the same size and second would be missed
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
    finally:
        sys.dont_write_bytecode = written
    if new and module_name.partition(".")[0] != "ifqa":
        say(f"{kind} {name}: imported {inspect.getsourcefile(module) or module_name}")
    if attribute not in vars(module):
        raise IfqaError(f"{kind} {name!r}: module {module_name!r} has no {attribute!r}")
    return vars(module)[attribute]


def _in_a_file_here(kind: str, name: str, root: Path) -> str:
    """The hint for a module's name without a class: what its file below `root` defines. It is not imported."""
    module = name.removesuffix(".py")
    path = root / f"{module}.py"
    if not re.fullmatch(r"\w+", module) or not path.is_file():
        return ""
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
        body = []
    if kind == "measure":
        targets = [one for node in body if isinstance(node, ast.Assign) for one in node.targets]
        defined = [one.id for one in targets if isinstance(one, ast.Name)]
    else:
        defined = [node.name for node in body if isinstance(node, ast.ClassDef)]
    wanted = f"module:{'MEASURE' if kind == 'measure' else 'Class'}"
    such_as = f", as {' or '.join(f'{module}:{one}' for one in defined[:5])}" if defined else ""
    return f"; {path} lies here: give {wanted}{such_as}"


@cache
def _with_role(kind: Kind, name: str, plugin: type) -> type[Plugin]:
    """The class itself if it has its whole role; else a class of the same name that inherits from it and from the role."""
    role, method = _ROLES[kind]
    if not callable(getattr(plugin, method, None)):
        raise IfqaError(f"{kind} {name!r}: wanted a class with the method {method!r}, found none of that name in it")
    if kind == "retriever" and hasattr(plugin, "build"):
        role = Indexed
    _refuse_arguments(kind, name, plugin)
    own: dict[str, object] = {
        "__module__": plugin.__module__,
        "__doc__": plugin.__doc__,
        "__qualname__": plugin.__qualname__,
    }
    if kind in ("reader", "llm") and "advance" not in inspect.signature(getattr(plugin, method)).parameters:
        own[method] = _advancing(getattr(plugin, method))
    elif kind == "retriever" and not plugin.__module__.startswith("ifqa."):
        own[method] = _searching(getattr(plugin, method))
    elif issubclass(plugin, role):
        return plugin
    return type(plugin.__name__, (plugin,) if issubclass(plugin, role) else (plugin, role), own)


def _refuse_arguments(kind: Kind, name: str, plugin: type) -> None:
    """Refuse a constructor that needs an argument of `GIVEN` which its kind is not handed.

    A benchmark has no settings, so its constructor may need nothing else.
    """
    handed_over = _HANDED[kind] - ({"index"} if not hasattr(plugin, "build") else set())
    if not getattr(plugin, "default_parts", ()):
        handed_over -= {"parts"}
    for one in list(inspect.signature(plugin.__init__).parameters.values())[1:]:  # type: ignore[misc]
        required = one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        if required and one.name not in handed_over and (one.name in GIVEN or kind == "benchmark"):
            raise IfqaError(
                f"{kind} {name!r}: its constructor needs {one.name!r}, which a {kind} is not given; "
                f"it may have {', '.join(sorted(handed_over))}; take {one.name!r} out, or give it a default"
            )


def _searching(search: Callable[..., Any]) -> Callable[..., Any]:
    """The method `search`; a plain list of hits that it returns for a question becomes a `SearchResult`."""

    @wraps(search)
    def searching(self: object, questions: Any, k: int) -> Any:
        results = search(self, questions, k)
        if not isinstance(results, list):
            return results  # refused by whoever asked
        return [SearchResult(hits) if isinstance(hits, list | tuple) else hits for hits in results]

    return searching


def _advancing(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with a parameter `advance`; it is called once at the end, with the number of questions or requests."""

    @wraps(method)
    def advancing(
        self: object, asked: list[Any], *more: Any, advance: Callable[[float], None] = silent, **named: Any
    ) -> Any:
        results = method(self, asked, *more, **named)
        advance(len(asked))
        return results

    return advancing
