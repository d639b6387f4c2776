"""Loads plugins by name: "bm25" for a plugin of ifqa, "my_module:Class" for one from outside.

Other plugins are not imported.
"""

import hashlib
import importlib
import inspect
import logging
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import Any, Literal

from ifqa import protocols as roles
from ifqa.errors import ConfigError, IfqaError, MissingInput, PluginError, unknown_name
from ifqa.records import SearchResult

logger = logging.getLogger(__name__)

Kind = Literal["benchmark", "retriever", "reader", "llm", "trainer"]

_FOLDERS = {
    "benchmark": "ifqa.benchmarks",
    "retriever": "ifqa.retrieval",
    "reader": "ifqa.reading",
    "llm": "ifqa.llms",
    "measure": "ifqa.scoring.measures",
    "trainer": "ifqa.training",
}
#: Kind -> role, required method, and the arguments of `protocols.INJECTED` that the constructor may
#: take. A retriever gets `index` only if it has `build`, and `parts` only if it has
#: `default_parts`.
_ROLES: dict[str, tuple[type[roles.Plugin], str, set[str]]] = {
    "benchmark": (roles.Benchmark, "questions", {"root"}),
    "retriever": (
        roles.Retriever,
        "search",
        {"index", "passages", "corpus", "parts", "llm", "root"},
    ),
    "reader": (roles.Reader, "answer", {"llm", "root"}),
    "llm": (roles.LanguageModel, "complete", {"root", "budget"}),
    "trainer": (roles.Trainer, "train", set()),
}
_EXTRAS = {
    "faiss": "cpu",
    "milvus_lite": "milvus",
    "pymilvus": "milvus",
    "ray": "ray",
    "datasets": "train",
}


def plugin_names(kind: str) -> dict[str, str]:
    """Name -> "module:Class" of ifqa's own plugins; the kind is a `Kind` or "measure"."""
    names: dict[str, str] = importlib.import_module(_FOLDERS[kind]).PLUGINS
    return names


def load_plugin(kind: Kind, name: str, root: Path = Path()) -> type[Any]:
    """Load a plugin's class, with all methods and attributes of its role.

    User modules are in the folder `root`.

    Raises ConfigError for an unknown name, MissingInput if its module or extra is missing,
    PluginError for an unfit class.
    """
    plugin = _import_plugin(kind, name, root)
    if not isinstance(plugin, type):
        raise PluginError(
            f"{kind} {name!r}: wanted a class, found {type(plugin).__name__} {plugin!r:.80}"
        )
    return _add_role(kind, name, plugin)


def load_measure(name: str, root: Path = Path()) -> roles.AnyMeasure:
    """Load a measure, or "my_module:MEASURE" from the folder `root`; raises like `load_plugin`."""
    measure = _import_plugin("measure", name, root)
    if not isinstance(measure, roles.AnyMeasure):
        wanted = "a Measure, RankingMeasure, SetMeasure or ColumnMeasure"
        raise PluginError(f"measure {name!r}: wanted {wanted}, found {measure!r:.80}")
    return measure


def open_benchmark(name: str, root: Path = Path()) -> roles.Benchmark:
    """A benchmark with its files below `root`; raises like `load_plugin`."""
    return Plugins(root).benchmark(name)


class Plugins:
    """The plugins of a command, each loaded once.

    User modules are in `root`. All methods raise like `load_plugin`.
    """

    def __init__(self, root: Path = Path()) -> None:
        self.root = root
        self._classes: dict[tuple[Kind, str], type[Any]] = {}
        self._benchmarks: dict[str, roles.Benchmark] = {}

    def load(self, kind: Kind, name: str) -> type[Any]:
        """Like `load_plugin`, but loads a plugin only once."""
        if (kind, name) not in self._classes:
            self._classes[kind, name] = load_plugin(kind, name, self.root)
        return self._classes[kind, name]

    def retriever(self, name: str) -> type[roles.Retriever]:
        return self.load("retriever", name)

    def indexed_retriever(self, name: str) -> type[roles.IndexedRetriever]:
        """The class of a retriever; ConfigError if it has no `build`."""
        plugin = self.retriever(name)
        if not issubclass(plugin, roles.IndexedRetriever):
            raise ConfigError(f"retriever {name!r} has no index to build")
        return plugin

    def reader(self, name: str) -> type[roles.Reader]:
        return self.load("reader", name)

    def llm(self, name: str) -> type[roles.LanguageModel]:
        return self.load("llm", name)

    def benchmark(self, name: str) -> roles.Benchmark:
        """A benchmark with its files below the root."""
        if name not in self._benchmarks:
            plugin = self.load("benchmark", name)
            self._benchmarks[name] = plugin(**accepted_arguments(plugin.__init__, root=self.root))
        return self._benchmarks[name]

    def takes(self, kind: Kind, name: str, argument: str) -> bool:
        """Whether a plugin's constructor takes an argument of `protocols.INJECTED`, such as "llm"
        or "passages".
        """
        return argument in inspect.signature(self.load(kind, name).__init__).parameters


def accepted_arguments(function: Callable[..., object], **arguments: object) -> dict[str, object]:
    """The arguments whose names are parameters of the function."""
    return {
        name: value
        for name, value in arguments.items()
        if name in inspect.signature(function).parameters
    }


def resolve_paths(
    function: Callable[..., object], settings: Mapping[str, object], root: Path
) -> dict[str, object]:
    """A plugin's settings, with each `PathSetting` joined to `root` if that file or folder exists.

    A default is not joined: it names what ships with ifqa, also where `root` has a folder of that
    name.
    """
    if root == Path():
        return dict(settings)
    parameters = inspect.signature(function).parameters
    resolved = dict(settings)
    for name, path in settings.items():
        is_path = name in parameters and parameters[name].annotation == roles.PathSetting
        is_default = is_path and path == parameters[name].default
        if is_path and not is_default and isinstance(path, str) and path and (root / path).exists():
            resolved[name] = str(root / path)
    return resolved


def code_fingerprint(plugin: type[roles.Plugin]) -> str:
    """The identity of a plugin's code: the `version` of ifqa's own plugins.

    For others the SHA-256 of their files.

    These are the files of the class and its base classes, except those of ifqa, Python and
    installed packages.
    """
    if plugin.__module__.startswith("ifqa."):
        return f"version {plugin.version}"
    installed = [
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    ]
    files = [source_file(plugin.__module__)]
    for module in {base.__module__: None for base in plugin.__mro__}:
        path = getattr(sys.modules[module], "__file__", None)  # None: built into Python
        if (
            path
            and module.partition(".")[0] != "ifqa"
            and not any(map(Path(path).is_relative_to, installed))
        ):
            files.append(Path(path))
    return hashlib.sha256(b"".join(path.read_bytes() for path in dict.fromkeys(files))).hexdigest()


def source_file(module: str) -> Path:
    """The file of an imported module.

    PluginError if it is built into Python or typed into a notebook.
    """
    try:
        return Path(inspect.getfile(sys.modules[module]))
    except TypeError as error:
        raise PluginError(
            f"module {module!r} is built into Python; name a module of your own"
        ) from error


class _ForeignCode(AbstractContextManager[None]):
    """Turns what the import of a user's module raises, whatever it is, into one line with its
    place.

    Errors that `_import_plugin` explains itself pass, as do errors of ifqa and an interrupt.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(
            error, IfqaError | ModuleNotFoundError | SyntaxError | KeyboardInterrupt
        ):
            return
        frame = extract_tb(traceback)[-1]
        reason = " ".join(str(error).split())[:200]
        raise PluginError(
            f"{self._what}: its import failed at {frame.filename}:{frame.lineno} "
            f"({type(error).__name__}: {reason})"
        ) from error


def _import_plugin(kind: str, name: str, root: Path) -> object:
    wanted = f"my_module:{'MEASURE' if kind == 'measure' else 'Class'}"
    if not isinstance(name, str) or (":" in name and not re.fullmatch(r"\w[\w.]*:\w+", name)):
        raise ConfigError(f"{kind} {name!r:.80}: wanted a name, or {wanted}")
    target = name if ":" in name else plugin_names(kind).get(name)
    if target is None:
        raise ConfigError(
            f"{unknown_name(kind, name, plugin_names(kind))}; or {wanted}, from a file here"
        )
    module_name, _, attribute = target.partition(":")
    if ":" in name and (folder := str(root.absolute())) not in sys.path:
        sys.path.append(folder)
    is_new = module_name not in sys.modules
    bytecode_setting = sys.dont_write_bytecode
    try:
        # bytecode would hide an edit of the same size in the same second
        sys.dont_write_bytecode = bytecode_setting or ":" in name
        with _ForeignCode(f"{kind} {name!r}") if ":" in name else nullcontext():
            module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if f"{module_name}.".startswith(f"{error.name}."):
            raise MissingInput(
                f"{kind} {name!r}: no module named {error.name!r} here or installed"
            ) from error
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        install = f"pip install 'ifqa[{extra}]'"
        raise MissingInput(
            f"{kind} {name!r} needs {error.name}; install it with: {install}"
        ) from error
    except SyntaxError as error:
        raise PluginError(
            f"{kind} {name!r}: {error.filename}:{error.lineno}: {error.msg}"
        ) from error
    finally:
        sys.dont_write_bytecode = bytecode_setting
    if is_new and module_name.partition(".")[0] != "ifqa":
        logger.info(f"{kind} {name}: imported {inspect.getsourcefile(module) or module_name}")
    if attribute not in vars(module):
        raise PluginError(f"{kind} {name!r}: module {module_name!r} has no {attribute!r}")
    return vars(module)[attribute]


@cache
def _add_role(kind: Kind, name: str, plugin: type[Any]) -> type[Any]:
    """The class itself if it has its whole role.

    Else a subclass of the class and the role, with the class's name.
    """
    role, method, injected = _ROLES[kind]
    if not callable(getattr(plugin, method, None)):
        raise PluginError(f"{kind} {name!r}: wanted a class with a method {method!r}, found none")
    chunk = getattr(plugin, "chunk", 1)
    if type(chunk) is not int or chunk < 1:
        raise PluginError(
            f"{kind} {name!r}: chunk: wanted the questions of a call, from 1; found {chunk!r:.80}"
        )
    if kind == "retriever" and hasattr(plugin, "build"):
        role = roles.IndexedRetriever
    lacking = (
        "index" if role is not roles.IndexedRetriever else "",
        "" if getattr(plugin, "default_parts", ()) else "parts",
    )
    for argument in list(inspect.signature(plugin.__init__).parameters.values())[1:]:
        required = argument.default is argument.empty and "VAR_" not in argument.kind.name
        # A benchmark has no settings
        settable = argument.name not in roles.INJECTED and kind != "benchmark"
        if (
            required
            and not settable
            and (argument.name not in injected or argument.name in lacking)
        ):
            problem = f"its constructor needs {argument.name!r}, which a {kind} does not get"
            allowed = ", ".join(sorted(injected.difference(lacking)))
            raise PluginError(
                f"{kind} {name!r}: {problem}; it may take {allowed}; remove it or give it a default"
            )
    members = {name: getattr(plugin, name) for name in ("__module__", "__doc__", "__qualname__")}
    if (
        kind in ("reader", "llm")
        and "advance" not in inspect.signature(getattr(plugin, method)).parameters
    ):
        members[method] = _report_progress(getattr(plugin, method))
    elif kind == "retriever" and not plugin.__module__.startswith("ifqa."):
        members[method] = _wrap_hits(plugin.search)
    elif issubclass(plugin, role):
        return plugin
    return type(plugin.__name__, (plugin,) if issubclass(plugin, role) else (plugin, role), members)


def _wrap_hits(search: Callable[..., object]) -> Callable[..., object]:
    """Wrap `search`, so that a plain list of hits becomes a `SearchResult`."""

    @wraps(search)
    def call(self: object, questions: object, k: int) -> object:
        results = search(self, questions, k)
        if not isinstance(results, list):
            return results  # refused by the caller
        return [SearchResult(hits) if isinstance(hits, list | tuple) else hits for hits in results]

    return call


def _report_progress(method: Callable[..., object]) -> Callable[..., object]:
    """Add a parameter `advance` to a method, called once at the end with the number of questions or
    requests.
    """

    @wraps(method)
    def call(
        self: Any,
        batch: Any,
        *args: Any,
        advance: roles.ProgressCallback = roles.no_progress,
        **kwargs: Any,
    ) -> object:
        results = method(self, batch, *args, **kwargs)
        advance(len(batch))
        return results

    return call
