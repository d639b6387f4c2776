"""Settings: what a function or a table of a file takes, as a strict model; what does not fit is refused in one line.

The settings of a plugin or a source are a function's keyword arguments, and its annotations say what they may be. Values
are checked, and of all only a whole number for a setting that is none is converted: what is saved is what was written, and
hashes as it did, while 1 and 1.0 are one share.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ifqa.errors import IfqaError, unknown
from ifqa.protocols import GIVEN

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
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "object": "a table",
}
_BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Table = TypeVar("_Table", bound="Table")


class Table(BaseModel):
    """A table of a settings file. Unknown keys, values of another type, NaN and infinity are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


def check_table(model: type[_Table], table: object, where: str) -> _Table:
    """A table of a file as its model; `where` opens the error.

    Raises:
        IfqaError: it is no table, or a key is unknown, missing or of the wrong type or size.
    """
    if not isinstance(table, Mapping):
        raise IfqaError(f"{where}: wanted a table, found {'nothing' if table is None else repr(table)}")
    return _fit(model, table, "key", where)


def check_settings(
    what: str,
    function: Callable[..., object],
    settings: Mapping[str, object],
    given: Iterable[str] = (),
    where: str = "",
    beside: Iterable[str] = (),
) -> None:
    """Refuse settings that `function` does not take, by name, before any work is done.

    Args:
        what: how the message calls one, as in "setting of retriever 'bm25'".
        function: the constructor or `build` whose keyword arguments are the settings.
        settings: the settings by name.
        given: names of arguments that the caller fills in and nobody may set.
        where: the file, which opens the message.
        beside: names that stand in the same table and are no settings; offered where one is unknown.

    Raises:
        IfqaError: a setting is missing, unknown, or of the wrong type or size.
    """
    _fit(settings_model(function, frozenset(given)), settings, what, where, beside)


def with_fractions(function: Callable[..., object], settings: Mapping[str, object]) -> dict[str, object]:
    """The settings, each whole number that stands for a float as that: 1 and 1.0 are one value, and hash as one."""
    model = settings_model(function, whole=False)
    return {name: _as_read(model, name, value) for name, value in settings.items()}


def _as_read(model: type[Table], name: str, value: object) -> object:
    if type(value) not in (int, list):
        return value
    try:
        return model.model_validate({name: value}).model_dump(by_alias=True)[name]
    except ValidationError:  # a name beside the settings, or a default that its own annotation refuses
        return value


def settings_of(function: Callable[..., object]) -> dict[str, object]:
    """Every setting of a plugin with its default: its constructor's or `build`'s keyword arguments that have one."""
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name not in GIVEN]
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty and one.default is not None}
    return with_fractions(function, defaults)


def checked(what: str, given: Iterable[str] = GIVEN) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator for a constructor or a `build`: called from Python, it refuses what it would refuse from a file.

    Args:
        what: how the message calls a setting, as in "setting of retriever 'bm25'".
        given: names of arguments that are no settings.

    Raises:
        IfqaError: at a call: a setting is unknown, or of the wrong type or size. A missing one is left to Python.
    """
    left = frozenset(given)

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def call(*args: _P.args, **named: _P.kwargs) -> _R:
            settings = dict(zip(inspect.signature(function).parameters, args, strict=False)) | named
            own = {name: value for name, value in settings.items() if name not in left and name not in _SELF}
            _fit(settings_model(function, left, whole=False), own, what)
            return function(*args, **named)

        return call

    return decorate


@cache
def settings_model(
    function: Callable[..., object], given: frozenset[str] = frozenset(), whole: bool = True
) -> type[Table]:
    """The settings of a function as a model, a field for each; `whole`: those without a default must be there."""
    fields: dict[str, Any] = {}
    for name, one in inspect.signature(function).parameters.items():
        if name in given or name in _SELF or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        default = ... if whole and one.default is one.empty else None
        # by an alias, for a field called "copy" or "json" would hide what a model has
        fields[f"setting_{len(fields)}"] = (_kind(function, one), Field(default, alias=name))
    return create_model("Settings", __base__=Table, **fields)


def _kind(function: Callable[..., object], parameter: inspect.Parameter) -> object:
    """What a setting may be, by its annotation; where that is missing or means nothing here, by its default."""
    annotation, default = parameter.annotation, parameter.default
    if isinstance(annotation, str):  # `from __future__ import annotations`
        module = inspect.getmodule(function)
        names = vars(module) if module else {}
        try:
            annotation = get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names, {}, True)["it"]
        except (NameError, AttributeError, SyntaxError, TypeError):  # a name imported for the type checker alone
            annotation = parameter.empty
    if annotation is not parameter.empty:
        return _checkable(annotation)
    return _checkable(type(default)) if default is not parameter.empty and default is not None else Any


def _checkable(kind: object) -> object:
    """An annotation as far as a value out of a file can be held against it; Any for the rest."""
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if kind in (bool, int, float, str, NoneType) or origin is Literal:
        return kind
    if kind is Path:
        return str | Path
    if origin is Annotated:
        return kind if _checkable(inner[0]) == inner[0] else _checkable(inner[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(_checkable, inner))]  # noqa: UP007 - of as many as there are
    if origin in (list, tuple, Sequence):
        one = _checkable(inner[0]) if len({*inner} - {...}) == 1 else Any
        return Sequence[one]  # type: ignore[valid-type]
    return dict[str, Any] if origin in (dict, Mapping) else Any


def _fit(
    model: type[_Table], values: Mapping[str, object], what: str, where: str = "", beside: Iterable[str] = ()
) -> _Table:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        wrong = error.errors(include_url=False)
    opening = f"{where}: " if where else ""
    names = [field.alias or name for name, field in model.model_fields.items()]
    if strange := [one["loc"][0] for one in wrong if one["type"] in ("extra_forbidden", "invalid_key")]:
        raise IfqaError(f"{opening}{unknown(what, str(strange[0]), [*names, *beside])}")  # misspelt, it is missing too
    name = str(min(wrong, key=lambda one: one["type"] != "missing")["loc"][0])
    schema = model.model_json_schema()["properties"][name]
    if name not in values:
        if misspelt := get_close_matches(name, [str(one) for one in values if one not in names], n=1):
            raise IfqaError(f"{opening}{unknown(what, misspelt[0], names)}")
        raise IfqaError(f"{opening}{what} {name!r} is missing; wanted {_wanted(schema)}")
    value, choices = values[name], _choices(schema)
    if choices and isinstance(value, str):
        raise IfqaError(f"{opening}{what} {name!r}: {unknown('value', value, choices)}")
    raise IfqaError(f"{opening}{what} {name!r}: wanted {_wanted(schema)}, found {value!r:.200}")


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a JSON schema lists; none where others fit too."""
    if "anyOf" in schema:
        several = [_choices(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return [choice for one in several for choice in one] if all(several) else []
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _wanted(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words: "a whole number from 1", "a list of texts"."""
    if "description" in schema:
        return str(schema["description"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_wanted(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if choices := _choices(schema):
        return " or ".join(map(repr, choices))
    kind = schema.get("type", "")
    if kind == "array":
        return "a list of texts" if schema["items"].get("type") == "string" else "a list"
    bounds = [f"{words} {schema[key]:.10g}" for key, words in _BOUNDS.items() if key in schema]
    said = ", ".join(bounds).replace(", at most", " to" if "minimum" in schema else ", at most")
    return " ".join(filter(None, [_NAMES.get(kind, kind), said, "that is not empty" * ("pattern" in schema)]))
