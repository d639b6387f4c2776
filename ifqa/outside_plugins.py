"""Gives a class from outside the methods and defaults of its role. No other module reads a
constructor's signature.

Such a class needs one method. Its settings are the arguments of its constructor, typed by their
annotations or defaults; arguments with the name of a `Resource` are no settings, and ifqa passes
them. Its classmethods, such as `fingerprint`, take the settings that they name. A class that
inherits its role may also declare `Settings` and `takes`, and be constructed as ifqa's own are.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cache, wraps
from types import SimpleNamespace
from typing import Any, Literal, get_args, get_type_hints

from pydantic import Field, ValidationError, create_model

from ifqa import protocols as roles
from ifqa.errors import PluginError
from ifqa.records import SearchResult
from ifqa.settings import PluginSettings, as_section, checkable_type

Kind = Literal["benchmark", "source", "retriever", "reader", "llm", "trainer"]

_RESOURCES = frozenset(get_args(roles.Resource))
#: Kind -> role, required method, and the resources that the constructor may take. A retriever gets
#: `index` only if it has `build`, and `parts` only if it has `default_parts`.
_ROLES: dict[str, tuple[type[roles.Plugin], str, Collection[str]]] = {
    "benchmark": (roles.Benchmark, "questions", {"root"}),
    "source": (roles.PassageSource, "passages", {"root", "questions"}),
    "retriever": (
        roles.Retriever,
        "search",
        {"index", "passages", "corpus", "parts", "llm", "root"},
    ),
    "reader": (roles.Reader, "answer", {"llm", "root", "search"}),
    "llm": (roles.LanguageModel, "complete", {"root", "budget"}),
    # Its arguments are all settings, also those with the name of a resource
    "trainer": (roles.Trainer, "train", set()),
}
#: Classmethods that take settings -> the number of arguments before these.
_CLASSMETHODS = {
    "fingerprint": 0,
    "requirements": 0,
    "training_family": 0,
    "served_by": 0,
    "conversion": 0,
    "refuse_settings": 0,
    "require_access": 0,
    "build": 2,
    "build_fingerprint": 0,
    "build_requirements": 1,
    "forecast": 1,
    "splits_of": 0,
}
_NOT_SETTABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@cache
def add_role(kind: Kind, name: str, plugin: type[Any]) -> type[Any]:
    """A subclass of a class from outside and its role, with the class's own name.

    PluginError if the class lacks its method, or its constructor needs what its role does not get.
    """
    role, method, _ = _ROLES[kind]
    if not callable(getattr(plugin, method, None)):
        raise PluginError(f"{kind} {name!r}: wanted a class with a method {method!r}, found none")
    chunk = getattr(plugin, "chunk", 1)
    if type(chunk) is not int or chunk < 1:
        raise PluginError(
            f"{kind} {name!r}: chunk: wanted the questions of a call, from 1; found {chunk!r:.80}"
        )
    if kind == "retriever" and hasattr(plugin, "build"):
        role = roles.IndexedRetriever
    members = {
        attribute: getattr(plugin, attribute)
        for attribute in ("__module__", "__doc__", "__qualname__")
    }
    if kind != "benchmark" and _takes_declared_settings(plugin):
        _refuse_unknown_resources(kind, name, plugin)
    else:
        _refuse_unknown_needs(kind, name, plugin, role)
        members |= _settings_of_signatures(kind, plugin)
    if kind in ("reader", "llm") and not _has_parameter(getattr(plugin, method), "advance"):
        members[method] = _report_progress(getattr(plugin, method))
    if kind == "retriever":
        members[method] = _wrap_hits(plugin.search)
    bases = (plugin,) if issubclass(plugin, role) else (plugin, role)
    return type(plugin.__name__, bases, members)


def _takes_declared_settings(plugin: type[Any]) -> bool:
    """Whether a class inherits a role, and its constructor takes the declared `Settings`."""
    parameters = list(inspect.signature(plugin.__init__).parameters)
    return issubclass(plugin, roles.Plugin) and parameters[1:2] == ["settings"]


def _refuse_unknown_resources(kind: Kind, name: str, plugin: type[Any]) -> None:
    """Refuse a class that takes a resource which its role does not get."""
    allowed = _ROLES[kind][2]
    if unknown := sorted(set(plugin.takes) - set(allowed)):
        raise PluginError(
            f"{kind} {name!r}: it takes {unknown[0]!r}, which a {kind} does not get; it may take "
            f"{', '.join(sorted(allowed)) or 'nothing'}"
        )


def _has_parameter(function: Callable[..., object], name: str) -> bool:
    return name in inspect.signature(function).parameters


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The named parameters of a function, without `self`."""
    return {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls") and parameter.kind not in _NOT_SETTABLE
    }


def _refuse_unknown_needs(
    kind: Kind, name: str, plugin: type[Any], role: type[roles.Plugin]
) -> None:
    """Refuse a constructor that requires a resource which its role does not get."""
    allowed = set(_ROLES[kind][2])
    if not allowed:
        return
    if role is not roles.IndexedRetriever:
        allowed.discard("index")
    if not getattr(plugin, "default_parts", ()):
        allowed.discard("parts")
    for argument in _parameters(plugin.__init__).values():
        # A benchmark has no settings
        is_setting = argument.name not in _RESOURCES and kind != "benchmark"
        is_required = argument.default is argument.empty
        if is_required and not is_setting and argument.name not in allowed:
            raise PluginError(
                f"{kind} {name!r}: its constructor needs {argument.name!r}, which a {kind} does "
                f"not get; it may take {', '.join(sorted(allowed))}; remove it or give it a default"
            )


def _settings_of_signatures(kind: Kind, plugin: type[Any]) -> dict[str, object]:
    """The members that give a class with settings in its signatures the form of ifqa's own."""
    parameters = _parameters(plugin.__init__)
    allowed = _ROLES[kind][2]
    members: dict[str, object] = {
        "takes": tuple(name for name in parameters if name in allowed),
    }
    if kind == "benchmark":
        return members
    members["Settings"] = settings_of(plugin.__init__, _RESOURCES if allowed else ())
    members["__init__"] = _construct(plugin)
    if hasattr(plugin, "build"):
        members["BuildSettings"] = settings_of(plugin.build, {"passages", "folder"})
    for name, leading in _CLASSMETHODS.items():
        if _is_defined_outside(plugin, name):
            members[name] = _classmethod(getattr(plugin, name), leading)
    return members


def _is_defined_outside(plugin: type[Any], name: str) -> bool:
    """Whether a member comes from the class or a base of it, and not from a role of ifqa."""
    owner = next((base for base in plugin.__mro__ if name in vars(base)), None)
    return owner is not None and not owner.__module__.startswith("ifqa.")


def _construct(plugin: type[Any]) -> Callable[..., None]:
    def construct(self: object, settings: PluginSettings, **resources: object) -> None:
        plugin.__init__(self, **as_section(settings), **resources)

    return construct


def _classmethod(method: Callable[..., object], leading: int) -> object:
    """A classmethod of a role, from one that takes the settings as keyword arguments.

    `leading` arguments come before them. The method gets the settings that it names, or all with
    `**settings`, and `root` if it names that.
    """
    named = inspect.signature(method).parameters.values()
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in named)

    def call(cls: type[object], *arguments: Any) -> object:
        settings = as_section(arguments[leading])
        given = {
            name: value
            for name, value in settings.items()
            if takes_all or _has_parameter(method, name)
        }
        if len(arguments) > leading + 1 and _has_parameter(method, "root"):
            given["root"] = arguments[leading + 1]
        return method(*arguments[:leading], **given)

    return classmethod(call)


def settings_of(
    function: Callable[..., object], resources: Collection[str] = ()
) -> type[PluginSettings]:
    """The settings of a constructor or a `build`: its arguments, except `resources`."""
    fields: dict[str, Any] = {}
    for name, parameter in _parameters(function).items():
        if name not in resources:
            kind = _setting_type(function, parameter)
            default = ... if parameter.default is parameter.empty else _as_typed(kind, parameter)
            # with an alias, because a field called "copy" or "json" would hide a method
            fields[f"setting_{len(fields)}"] = kind, Field(default, alias=name)
    return create_model("Settings", __base__=PluginSettings, **fields)


def _setting_type(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    """The type of a setting: its annotation, or the type of its default if the annotation is
    missing or unresolvable.
    """
    annotation = parameter.annotation
    default = parameter.default
    if isinstance(annotation, str):  # `from __future__ import annotations`
        names: Mapping[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
        try:
            holder = SimpleNamespace(__annotations__={"setting": annotation})
            annotation = get_type_hints(holder, dict(names), {}, include_extras=True)["setting"]
        except (NameError, AttributeError, SyntaxError, TypeError):
            # a name imported only for type checkers
            annotation = parameter.empty
    if annotation is not parameter.empty:
        return checkable_type(annotation)
    if default is parameter.empty or default is None:
        return Any
    return checkable_type(type(default))


def _as_typed(kind: object, parameter: inspect.Parameter) -> object:
    """The default of a setting; 1 becomes 1.0 for a float, so that both have the same hash."""
    default = parameter.default
    if type(default) not in (int, list):
        return default
    # A default may contradict its annotation
    with suppress(ValidationError):
        fields: dict[str, Any] = {"value": (kind, ...)}
        model = create_model("Default", __base__=PluginSettings, **fields)
        return model.model_validate({"value": default}).model_dump()["value"]
    return default


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
