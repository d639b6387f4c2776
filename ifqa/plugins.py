"""Loads plugins by name: "bm25" for a plugin of ifqa, "my_module:Class" for one from outside, or a
name under which an installed package registers one.

Other plugins are not imported.
"""

import hashlib
import importlib
import inspect
import logging
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from traceback import extract_tb
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ifqa import protocols as roles
from ifqa.errors import ConfigError, IfqaError, MissingInput, PluginError, unknown_name
from ifqa.outside_plugins import Kind, add_role
from ifqa.settings import PluginSettings, as_section, join_paths, parse_settings, setting_fields

logger = logging.getLogger(__name__)

P = TypeVar("P", bound=roles.Plugin)

_FOLDERS = {
    "benchmark": "ifqa.benchmarks",
    "source": "ifqa.corpus",
    "retriever": "ifqa.retrieval",
    "reader": "ifqa.reading",
    "llm": "ifqa.llms",
    "measure": "ifqa.scoring.measures",
    "trainer": "ifqa.training",
}
#: Packages with plugins of several kinds: their `PLUGINS` maps a kind to such a table.
_COMPANIONS = ("ifqa.companions.causalqa", "ifqa.companions.wiqa")
_EXTRAS = {
    "faiss": "cpu",
    "milvus_lite": "milvus",
    "pymilvus": "milvus",
    "ray": "ray",
    "datasets": "train",
}


def plugin_names(kind: str) -> dict[str, str]:
    """Name -> "module:Class" of ifqa's own plugins; the kind is a `Kind` or "measure"."""
    names: dict[str, str] = dict(importlib.import_module(_FOLDERS[kind]).PLUGINS)
    for companion in _COMPANIONS:
        names |= importlib.import_module(companion).PLUGINS.get(kind, {})
    return names


def registered_names(kind: str) -> dict[str, str]:
    """Name -> "module:Class" of the plugins that installed packages register.

    They are the entry points of the group "ifqa.KIND", such as "ifqa.retriever". ifqa's own names
    go first.
    """
    return {entry.name: entry.value for entry in entry_points(group=f"ifqa.{kind}")}


def known_names(kind: str) -> dict[str, str]:
    """Name -> "module:Class" of ifqa's own plugins, in their order, and of registered ones."""
    ours = plugin_names(kind)
    return ours | {name: at for name, at in registered_names(kind).items() if name not in ours}


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
    return plugin if plugin.__module__.startswith("ifqa.") else add_role(kind, name, plugin)


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
            resources = {"root": self.root} if "root" in plugin.takes else {}
            self._benchmarks[name] = plugin(**resources)
        return self._benchmarks[name]


@dataclass(frozen=True, kw_only=True)
class ConfiguredPlugin(Generic[P]):
    """A plugin's class with its checked settings: everything that a section of a file names.

    It is made once, when the file is read, and handed down: to the manifest's inputs, to `check`,
    and to whoever opens the plugin.
    """

    kind: Kind
    name: str  # as in the file: "bm25", "my_module:Class"
    plugin: type[P]
    settings: PluginSettings  # as in the file, with defaults
    root: Path = field(repr=False)  # the folder of relative paths

    @classmethod
    def parse(
        cls,
        kind: Kind,
        name: str,
        plugin: type[P],
        section: Mapping[str, object],
        other_keys: Iterable[str],
        where: str,
        root: Path,
        **more: Any,
    ) -> Self:
        """Check the settings, which are all keys of a section but `other_keys`.

        ConfigError, which starts with `where`, if one is wrong. PluginError if the plugin has a
        setting with the name of one of the other keys, which could never be set. `more` are fields
        of a subclass.
        """
        others = list(other_keys)
        if clash := sorted(setting_fields(plugin.Settings).keys() & {*others}):
            raise PluginError(
                f"{kind} {name!r}: its setting {clash[0]!r} has the name of a key of its section; "
                "rename it",
                found=clash[0],
                mend="rename it",
            )
        given = {key: value for key, value in section.items() if key not in others}
        settings = parse_settings(
            plugin.Settings, given, f"setting of {kind} {name!r}", where, others
        )
        return cls(kind=kind, name=name, plugin=plugin, settings=settings, root=root, **more)

    def __str__(self) -> str:
        kind = "language model" if self.kind == "llm" else self.kind
        return f"{kind} {self.name!r}"

    @cached_property
    def local_settings(self) -> Any:
        """The settings with paths joined to the root: an instance of the plugin's `Settings`."""
        return join_paths(self.settings, self.root)

    def section(self) -> dict[str, object]:
        """The section of a file that is read back unchanged, with all defaults."""
        return {"name": self.name, **as_section(self.settings)}

    def takes(self, resource: roles.Resource) -> bool:
        """Whether the plugin is opened with a resource, such as a language model."""
        return resource in self.plugin.takes

    def taking(self, resource: roles.Resource) -> str:
        """The name of the plugin that is opened with a resource, it or a part; empty if none is."""
        return self.name if self.takes(resource) else ""

    def identity(self) -> dict[str, object]:
        """What determines its output: settings, code, and a hash of its files, if it has some.

        Its files are hashed by each call.
        """
        return self._identity_of(self.identity_section)

    def _identity_of(self, settings: Mapping[str, object]) -> dict[str, object]:
        hashed = self.plugin.fingerprint(self.local_settings, self.root)
        files = {"files": hashed} if hashed else {}
        return {
            "settings": settings,
            "code": code_fingerprint(self.plugin),
            **files,
        }

    @property
    def identity_section(self) -> dict[str, object]:
        """The section without what changes only the speed."""
        return identity_settings(self.plugin, self.section())

    def requirements(self) -> Iterable[roles.Requirement]:
        """The files, models and keys that it needs."""
        return self.plugin.requirements(self.local_settings, self.root)

    def open(self, **resources: object) -> P:
        """Construct the plugin with its settings, and with those resources that it takes."""
        taken = {name: resources[name] for name in self.plugin.takes if name in resources}
        if "root" in self.plugin.takes:
            taken["root"] = self.root
        return self.plugin(self.local_settings, **taken)


def identity_settings(
    plugin: type[roles.Plugin], settings: Mapping[str, object]
) -> dict[str, object]:
    """Settings without those in the plugin's `runtime_only`, which change its speed and not its
    output.
    """
    return {
        key: setting for key, setting in sorted(settings.items()) if key not in plugin.runtime_only
    }


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


def _find_plugin(kind: str, name: str) -> str:
    """The "module:Class" of a plugin; ConfigError for an unknown name."""
    wanted = f"my_module:{'MEASURE' if kind == 'measure' else 'Class'}"
    if not isinstance(name, str) or (":" in name and not re.fullmatch(r"\w[\w.]*:\w+", name)):
        raise ConfigError(f"{kind} {name!r:.80}: wanted a name, or {wanted}")
    if ":" in name:
        return name
    if target := plugin_names(kind).get(name):  # without a search among the packages
        return target
    known = known_names(kind)
    if name not in known:
        error = unknown_name(kind, name, known)
        raise ConfigError(f"{error}; or {wanted}, from a file here", **error.parts())
    return known[name]


def _import_plugin(kind: str, name: str, root: Path) -> object:
    module_name, _, attribute = _find_plugin(kind, name).partition(":")
    is_ours = module_name.partition(".")[0] == "ifqa"
    if ":" in name and (folder := str(root.absolute())) not in sys.path:
        sys.path.append(folder)
    is_new = module_name not in sys.modules
    bytecode_setting = sys.dont_write_bytecode
    try:
        # bytecode would hide an edit of the same size in the same second
        sys.dont_write_bytecode = bytecode_setting or ":" in name
        with nullcontext() if is_ours else _ForeignCode(f"{kind} {name!r}"):
            module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if f"{module_name}.".startswith(f"{error.name}."):
            raise MissingInput(
                f"{kind} {name!r}: no module named {error.name!r} here or installed"
            ) from error
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None and is_ours:
            raise
        if extra is None:
            raise MissingInput(
                f"{kind} {name!r} imports {error.name}, which is not installed; install it",
                wanted=str(error.name),
                mend="install it",
            ) from error
        install = f"pip install 'ifqa[{extra}]'"
        raise MissingInput(
            f"{kind} {name!r} needs {error.name}; install it with: {install}",
            wanted=str(error.name),
            mend=install,
        ) from error
    except SyntaxError as error:
        raise PluginError(
            f"{kind} {name!r}: {error.filename}:{error.lineno}: {error.msg}"
        ) from error
    finally:
        sys.dont_write_bytecode = bytecode_setting
    if is_new and not is_ours:
        logger.info(f"{kind} {name}: imported {inspect.getsourcefile(module) or module_name}")
    if attribute not in vars(module):
        raise PluginError(f"{kind} {name!r}: module {module_name!r} has no {attribute!r}")
    return vars(module)[attribute]
