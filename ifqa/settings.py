"""Checks settings (a plugin's keyword arguments, a file's sections) against strict pydantic models.

A plugin's settings are the keyword arguments of a function, typed by its annotations. Values are
checked, not converted, so a file is saved and hashed as written. Only a whole number for a float
setting becomes a float: so 1 and 1.0 have the same hash.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ifqa.errors import ConfigError, DamagedArtifact, unknown_name
from ifqa.protocols import INJECTED, Plugin

Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(pattern=r"\S")]  # not empty
Share = Annotated[float, Field(ge=0, le=1)]
PartShare = Annotated[float, Field(ge=0, lt=1)]  # never the whole
NotNegative = Annotated[float, Field(ge=0)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Precision = Literal["auto", "float32", "bfloat16"]
YesNo = Literal["auto", "yes", "no"]

_SELF = ("self", "cls")
_NAMES = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "object": "a section",
}
_BOUNDS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}

Section = Mapping[str, object]
Names = Iterable[str]
_Function = Callable[..., object]
_P = ParamSpec("_P")
_R = TypeVar("_R")
_Model = TypeVar("_Model", bound="StrictModel")
_Shape = TypeVar("_Shape", bound=Section)


class StrictModel(BaseModel):
    """A section of a TOML file.

    Unknown keys, values of another type, NaN and infinity are refused.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )


class StoredModel(StrictModel, extra="allow"):
    """A JSON object that ifqa wrote.

    Unknown keys, such as those of a later version, are ignored.
    """


def parse_stored(model: type[_Model], value: object, where: str, mend: str = "") -> _Model:
    """Parse a value that ifqa wrote.

    DamagedArtifact names a missing or wrong key, between `where` and `mend`.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"][issubclass(model, _ShapeModel) :])) or "all of it"
        ending = f"; {mend}" if mend else ""
        raise DamagedArtifact(
            f"{where}: not as ifqa writes it ({key}: {first['msg']}){ending}"
        ) from error


def check_shape(shape: type[_Shape], value: object, where: str, mend: str = "") -> _Shape:
    """Return a value that ifqa wrote if it matches a TypedDict; else raise like `parse_stored`."""
    parse_stored(_shape_model(shape), {"content": value}, where, mend)
    return value  # type: ignore[return-value]  # just checked


class _ShapeModel(StoredModel):
    """A `StoredModel` whose key `content` has a TypedDict's shape."""


@cache
def _shape_model(shape: type[Mapping[str, object]]) -> type[_ShapeModel]:
    return create_model("Shape", __base__=_ShapeModel, content=(shape, ...))


def parse_section(model: type[_Model], section: object, where: str) -> _Model:
    """Parse a section of a file.

    ConfigError says what is wrong; it starts with the section's name, `where`.
    """
    if not isinstance(section, Mapping):
        raise ConfigError(
            f"{where}: wanted a section, found {'nothing' if section is None else repr(section)}"
        )
    return _validate(model, section, "key", where)


def check_settings(
    what: str,
    function: _Function,
    settings: Section,
    injected: Names = (),
    where: str = "",
    other_keys: Names = (),
) -> None:
    """Raise ConfigError if a setting of a constructor or a `build` is missing, unknown, or of the
    wrong type or range.

    Arguments in `injected` are not settings. The message starts with `where` and calls a setting
    `what`, such as "setting of retriever 'bm25'"; for an unknown setting it also lists the
    section's `other_keys`.
    """
    _validate(settings_model(function, frozenset(injected)), settings, what, where, other_keys)


def coerce_floats(function: _Function, settings: Section) -> dict[str, object]:
    """Convert whole numbers to float for float settings, so that 1 and 1.0 have the same hash."""
    model = settings_model(function, require_all=False)
    converted = dict(settings)
    for name, value in settings.items():
        if type(value) in (int, list):
            # Another function's setting, or a default that contradicts its annotation
            with suppress(ValidationError):
                converted[name] = model.model_validate({name: value}).model_dump(by_alias=True)[
                    name
                ]
    return converted


def default_settings(function: _Function) -> dict[str, object]:
    """The defaults of a plugin's constructor or `build`, except those that are None."""
    parameters = inspect.signature(function).parameters.items()
    defaults = {name: setting.default for name, setting in parameters if name not in INJECTED}
    absent = (inspect.Parameter.empty, None)
    return coerce_floats(
        function, {name: default for name, default in defaults.items() if default not in absent}
    )


def plugin_settings(
    kind: str,
    name: str,
    plugin: type[Plugin],
    section: Section,
    other_keys: Collection[str],
    where: str,
) -> dict[str, object]:
    """Check a plugin's settings, which are all keys of a section but `other_keys`, and fill in the
    defaults.
    """
    settings = {key: value for key, value in section.items() if key not in other_keys}
    check_settings(
        f"setting of {kind} {name!r}", plugin.__init__, settings, INJECTED, where, other_keys
    )
    return default_settings(plugin.__init__) | coerce_floats(plugin.__init__, settings)


def check_arguments(
    what: str, injected: Names = INJECTED
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a constructor or a `build`, so that a call from Python is checked as
    `check_settings` checks a file.

    Python itself raises for a missing setting.
    """
    ignored = frozenset(injected)

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            arguments = (
                dict(zip(inspect.signature(function).parameters, args, strict=False)) | kwargs
            )
            settings = {
                name: value
                for name, value in arguments.items()
                if name not in ignored and name not in _SELF
            }
            _validate(settings_model(function, ignored, require_all=False), settings, what)
            return function(*args, **kwargs)

        return call

    return decorate


@cache
def settings_model(
    function: _Function, injected: frozenset[str] = frozenset(), require_all: bool = True
) -> type[StrictModel]:
    """A model with a field for each setting of a function.

    `require_all` requires settings without a default.
    """
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if (
            name in injected
            or name in _SELF
            or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ):
            continue
        default = ... if require_all and parameter.default is parameter.empty else None
        # with an alias, because a field called "copy" or "json" would hide a method of the model
        fields[f"setting_{len(fields)}"] = (
            _setting_type(function, parameter),
            Field(default, alias=name),
        )
    return create_model("Settings", __base__=StrictModel, **fields)


def _setting_type(function: _Function, parameter: inspect.Parameter) -> object:
    """The type of a setting: its annotation, or the type of its default if the annotation is
    missing or unresolvable.
    """
    annotation = parameter.annotation
    default = parameter.default
    if isinstance(annotation, str):  # `from __future__ import annotations`
        names = getattr(inspect.unwrap(function), "__globals__", {})
        try:
            holder = SimpleNamespace(__annotations__={"setting": annotation})
            annotation = get_type_hints(holder, names, {}, include_extras=True)["setting"]
        except (NameError, AttributeError, SyntaxError, TypeError):
            # a name imported only for type checkers
            annotation = parameter.empty
    if annotation is not parameter.empty:
        return _checkable_type(annotation)
    return (
        _checkable_type(type(default))
        if default is not parameter.empty and default is not None
        else Any
    )


def _checkable_type(kind: object) -> object:
    """The type that checks a value of a file against an annotation; Any if it cannot be checked."""
    origin = get_origin(kind) or kind
    inner = get_args(kind)
    if kind in (bool, int, float, str, NoneType) or origin is Literal:
        return kind
    if kind is Path:
        return str | Path
    if origin is Annotated:
        return kind if _checkable_type(inner[0]) == inner[0] else _checkable_type(inner[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(_checkable_type, inner))]  # noqa: UP007 - | cannot join a tuple
    if origin in (list, tuple, Sequence):
        element = _checkable_type(inner[0]) if len({*inner} - {...}) == 1 else Any
        return Sequence[element]  # type: ignore[valid-type]
    return dict[str, Any] if origin in (dict, Mapping) else Any


def _validate(
    model: type[_Model], values: Section, what: str, where: str = "", other_keys: Names = ()
) -> _Model:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        problems = error.errors(include_url=False)
    opening = f"{where}: " if where else ""
    names = [field.alias or name for name, field in model.model_fields.items()]
    # unknown keys first: a misspelt key is also missing
    if unknown := [
        problem["loc"][0]
        for problem in problems
        if problem["type"] in ("extra_forbidden", "invalid_key")
    ]:
        raise ConfigError(f"{opening}{unknown_name(what, str(unknown[0]), [*names, *other_keys])}")
    name = str(min(problems, key=lambda problem: problem["type"] != "missing")["loc"][0])
    schema = model.model_json_schema()["properties"][name]
    if name not in values:
        if misspelt := get_close_matches(
            name, [str(key) for key in values if key not in names], n=1
        ):
            raise ConfigError(f"{opening}{unknown_name(what, misspelt[0], names)}")
        raise ConfigError(f"{opening}{what} {name!r} is missing; wanted {_describe_schema(schema)}")
    value = values[name]
    choices = _list_choices(schema)
    if choices and isinstance(value, str):
        raise ConfigError(f"{opening}{what} {name!r}: {unknown_name('value', value, choices)}")
    raise ConfigError(
        f"{opening}{what} {name!r}: wanted {_describe_schema(schema)}, found {value!r:.200}"
    )


def _list_choices(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a JSON schema lists; empty if it allows others."""
    if "anyOf" in schema:
        choice_lists = [
            _list_choices(option) for option in schema["anyOf"] if option.get("type") != "null"
        ]
        return (
            [choice for choices in choice_lists for choice in choices] if all(choice_lists) else []
        )
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _describe_schema(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words: "a whole number from 1", "a list of texts"."""
    if "description" in schema:
        return str(schema["description"])
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(map(_describe_schema, options)))
    if choices := _list_choices(schema):
        return " or ".join(map(repr, choices))
    kind = schema.get("type", "object" if "$ref" in schema else "")
    if kind == "array":
        if choices := _list_choices(schema["items"]):
            return f"a list with {', '.join(map(repr, choices))}"
        return "a list of texts" if schema["items"].get("type") == "string" else "a list"
    bounds = [f"{words} {schema[key]:.10g}" for key, words in _BOUNDS.items() if key in schema]
    limits = ", ".join(bounds).replace(", at most", " to" if "minimum" in schema else ", at most")
    return " ".join(
        filter(None, [_NAMES.get(kind, kind), limits, "that is not empty" * ("pattern" in schema)])
    )


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
