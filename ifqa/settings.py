"""Checks settings: the keyword arguments of a plugin, and the tables of a file, against strict pydantic models.

The settings of a plugin or a source are a function's keyword arguments; its annotations say which values they take. Values
are checked and not converted, so a file is saved, and hashed, as it was written. The one exception is a whole number for a
float setting: 1 and 1.0 are the same value and have the same hash.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ifqa.errors import IfqaError, unknown_name
from ifqa.protocols import INJECTED

Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(pattern=r"\S")]  # not empty
Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Precision = Literal["auto", "float32", "bfloat16"]
YesNo = Literal["auto", "yes", "no"]

_SELF = ("self", "cls")
_NAMES = {
    "boolean": "true or false", "integer": "a whole number", "number": "a number", "string": "text", "object": "a table",
}  # fmt: skip
_BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Model = TypeVar("_Model", bound="StrictModel")
_Shape = TypeVar("_Shape", bound=Mapping[str, object])


class StrictModel(BaseModel):
    """A table of a TOML file. Unknown keys, values of another type, NaN and infinity are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


class StoredModel(StrictModel, extra="allow"):
    """A JSON object that this program wrote; unknown keys, as of a later version, are ignored."""


def parse_stored(model: type[_Model], value: object, where: str, mend: str = "") -> _Model:
    """A value that this program wrote as its model; `where` begins the error, and `mend` ends it.

    Raises:
        IfqaError: a key is missing, or has the wrong type or range; the message names its place.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"][issubclass(model, _ShapeModel) :])) or "all of it"
        ending = f"; {mend}" if mend else ""
        raise IfqaError(f"{where}: not as ifqa writes it ({place}: {first['msg']}){ending}") from error


def check_shape(shape: type[_Shape], value: object, where: str, mend: str = "") -> _Shape:
    """A value that this program wrote, as it is, if it has the shape of a TypedDict; else raises as `parse_stored`."""
    parse_stored(_shape_model(shape), {"value": value}, where, mend)
    return value  # type: ignore[return-value]  # it has just been found to be one


class _ShapeModel(StoredModel):
    """A model of a shape, the key `value`, which it checks as strictly as a `StoredModel` its own keys."""


@cache
def _shape_model(shape: type[Mapping[str, object]]) -> type[_ShapeModel]:
    return create_model("Holder", __base__=_ShapeModel, value=(shape, ...))


def parse_section(model: type[_Model], table: object, where: str) -> _Model:
    """A table of a file as its model; `where` names the table at the start of an error.

    Raises:
        IfqaError: it is no table; or a key is unknown or missing, or its value has the wrong type or size.
    """
    if not isinstance(table, Mapping):
        raise IfqaError(f"{where}: wanted a table, found {'nothing' if table is None else repr(table)}")
    return _validate(model, table, "key", where)


def check_settings(
    what: str,
    function: Callable[..., object],
    settings: Mapping[str, object],
    given: Iterable[str] = (),
    where: str = "",
    beside: Iterable[str] = (),
) -> None:
    """Refuse settings that a constructor or a `build` does not take, before any work is done.

    The arguments `given` are filled in by the caller, and are no settings. `what` is what a message calls a setting, such as
    "setting of retriever 'bm25'"; `where` begins it, and of an unknown setting it lists the table's keys `beside` them, too.

    Raises:
        IfqaError: a setting is missing, unknown, or of the wrong type or size.
    """
    _validate(settings_model(function, frozenset(given)), settings, what, where, beside)


def coerce_floats(function: Callable[..., object], settings: Mapping[str, object]) -> dict[str, object]:
    """The settings, with whole numbers converted to float for float settings, so that 1 and 1.0 have the same hash."""
    model = settings_model(function, whole=False)
    converted = dict(settings)
    for name, value in settings.items():
        if type(value) in (int, list):
            with suppress(ValidationError):  # another key of the table, or a default that does not fit its annotation
                converted[name] = model.model_validate({name: value}).model_dump(by_alias=True)[name]
    return converted


def default_settings(function: Callable[..., object]) -> dict[str, object]:
    """The settings that have a default other than None, with it; `function` is a plugin's constructor or `build`."""
    parameters = inspect.signature(function).parameters.items()
    defaults = {name: setting.default for name, setting in parameters if name not in INJECTED}
    return coerce_floats(
        function, {name: value for name, value in defaults.items() if value not in (inspect.Parameter.empty, None)}
    )


def check_arguments(what: str, given: Iterable[str] = INJECTED) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator for a constructor or a `build`: a call from Python is checked as `check_settings` checks a file.

    For a missing setting Python raises.
    """
    left = frozenset(given)

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **named: _P.kwargs) -> _R:
            settings = dict(zip(inspect.signature(function).parameters, args, strict=False)) | named
            own = {name: value for name, value in settings.items() if name not in left and name not in _SELF}
            _validate(settings_model(function, left, whole=False), own, what)
            return function(*args, **named)

        return call

    return decorate


@cache
def settings_model(
    function: Callable[..., object], given: frozenset[str] = frozenset(), whole: bool = True
) -> type[StrictModel]:
    """A model with a field for each setting of a function. With `whole`, settings without a default are required."""
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in given or name in _SELF or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = ... if whole and parameter.default is parameter.empty else None
        # with an alias, because a field called "copy" or "json" would hide a method of the model
        fields[f"setting_{len(fields)}"] = (_setting_type(function, parameter), Field(default, alias=name))
    return create_model("Settings", __base__=StrictModel, **fields)


def _setting_type(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    """The type of a setting: its annotation; if that is missing or cannot be resolved, the type of its default."""
    annotation, default = parameter.annotation, parameter.default
    if isinstance(annotation, str):  # `from __future__ import annotations`
        names = getattr(inspect.getmodule(function), "__dict__", {})
        try:
            annotation = get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names, {}, True)["it"]
        except (NameError, AttributeError, SyntaxError, TypeError):  # a name that is imported only for type checkers
            annotation = parameter.empty
    if annotation is not parameter.empty:
        return _checkable_type(annotation)
    return _checkable_type(type(default)) if default is not parameter.empty and default is not None else Any


def _checkable_type(kind: object) -> object:
    """The part of an annotation that a value of a file can be checked against; Any for the rest."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if kind in (bool, int, float, str, NoneType) or origin is Literal:
        return kind
    if kind is Path:
        return str | Path
    if origin is Annotated:
        return kind if _checkable_type(inner[0]) == inner[0] else _checkable_type(inner[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(_checkable_type, inner))]  # noqa: UP007 - a union of any number of types
    if origin in (list, tuple, Sequence):
        one = _checkable_type(inner[0]) if len({*inner} - {...}) == 1 else Any
        return Sequence[one]  # type: ignore[valid-type]
    return dict[str, Any] if origin in (dict, Mapping) else Any


def _validate(
    model: type[_Model], values: Mapping[str, object], what: str, where: str = "", beside: Iterable[str] = ()
) -> _Model:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        wrong = error.errors(include_url=False)
    opening = f"{where}: " if where else ""
    names = [field.alias or name for name, field in model.model_fields.items()]
    # first the unknown keys: a misspelt one is missing, too
    if strange := [one["loc"][0] for one in wrong if one["type"] in ("extra_forbidden", "invalid_key")]:
        raise IfqaError(f"{opening}{unknown_name(what, str(strange[0]), [*names, *beside])}")
    name = str(min(wrong, key=lambda one: one["type"] != "missing")["loc"][0])
    schema = model.model_json_schema()["properties"][name]
    if name not in values:
        if misspelt := get_close_matches(name, [str(one) for one in values if one not in names], n=1):
            raise IfqaError(f"{opening}{unknown_name(what, misspelt[0], names)}")
        raise IfqaError(f"{opening}{what} {name!r} is missing; wanted {_describe_schema(schema)}")
    value, choices = values[name], _list_choices(schema)
    if choices and isinstance(value, str):
        raise IfqaError(f"{opening}{what} {name!r}: {unknown_name('value', value, choices)}")
    raise IfqaError(f"{opening}{what} {name!r}: wanted {_describe_schema(schema)}, found {value!r:.200}")


def _list_choices(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a JSON schema lists; empty if other values fit too."""
    if "anyOf" in schema:
        several = [_list_choices(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return [choice for one in several for choice in one] if all(several) else []
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _describe_schema(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words: "a whole number from 1", "a list of texts"."""
    if "description" in schema:
        return str(schema["description"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_describe_schema(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if choices := _list_choices(schema):
        return " or ".join(map(repr, choices))
    kind = schema.get("type", "")
    if kind == "array":
        return "a list of texts" if schema["items"].get("type") == "string" else "a list"
    bounds = [f"{words} {schema[key]:.10g}" for key, words in _BOUNDS.items() if key in schema]
    said = ", ".join(bounds).replace(", at most", " to" if "minimum" in schema else ", at most")
    return " ".join(filter(None, [_NAMES.get(kind, kind), said, "that is not empty" * ("pattern" in schema)]))


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
