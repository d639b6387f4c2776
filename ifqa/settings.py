"""Settings and sections of files, checked by strict pydantic models.

Values are checked, not converted, so that a file is saved and hashed as written. Only a whole
number for a float setting becomes a float: so 1 and 1.0 have the same hash.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from dataclasses import Field as RecordField
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from ifqa.errors import ConfigError, DamagedArtifact, unknown_name

Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(pattern=r"\S")]  # not empty
Share = Annotated[float, Field(ge=0, le=1)]
PartShare = Annotated[float, Field(ge=0, lt=1)]  # never the whole
NotNegative = Annotated[float, Field(ge=0)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Precision = Literal["auto", "float32", "bfloat16"]
YesNo = Literal["auto", "yes", "no"]
_IS_PATH = "a file or folder"
#: A setting that may be a path; a relative path starts at the experiment's root.
PathSetting = Annotated[str, _IS_PATH]

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
_Model = TypeVar("_Model", bound="StrictModel")
_Shape = TypeVar("_Shape", bound=Section)


class StrictModel(BaseModel):
    """A section of a TOML file.

    Unknown keys, values of another type, NaN and infinity are refused.
    """

    model_config = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )


class PluginSettings(StrictModel):
    """The settings of a plugin: a field for each, with a type, limits, a default and a docstring.

    A setting without a default must be given. Lists are `Sequence[...]`: values of a file are not
    converted, and TOML has no tuples.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


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
            f"{where}: not as ifqa writes it ({key}: {first['msg']}){ending}", mend=mend
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


def parse_settings(
    model: type[_Model], settings: Section, what: str, where: str = "", other_keys: Names = ()
) -> _Model:
    """Check a plugin's settings, and fill in the defaults.

    ConfigError if one is missing, unknown, or of the wrong type or range. The message starts with
    `where` and calls a setting `what`, such as "setting of retriever 'bm25'"; for an unknown
    setting it also lists the section's `other_keys`.
    """
    return _validate(model, settings, what, where, other_keys)


def setting_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a plugin's settings by the settings' names."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def as_section(settings: BaseModel, only_given: bool = False) -> dict[str, object]:
    """Settings as in a file, with their defaults; `only_given` leaves the defaults out.

    A setting that is None is left out, because TOML has no such value.
    """
    values = settings.model_dump(by_alias=True, exclude_unset=only_given)
    return {name: value for name, value in values.items() if value is not None}


def change_settings(settings: _Model, **changes: object) -> _Model:
    """Settings with other values; the changes must be valid."""
    names = {field.alias or name: name for name, field in type(settings).model_fields.items()}
    return settings.model_copy(update={names[key]: value for key, value in changes.items()})


def join_paths(settings: _Model, root: Path) -> _Model:
    """Settings whose `PathSetting`s are joined to `root`, if that file or folder exists.

    A default is not joined: it names what ships with ifqa, also where `root` has a folder of that
    name.
    """
    if root == Path():
        return settings
    joined: dict[str, object] = {}
    for name, field in type(settings).model_fields.items():
        path = getattr(settings, name)
        is_path = _IS_PATH in field.metadata and isinstance(path, str) and path
        if is_path and path != field.default and (root / path).exists():
            joined[name] = str((root / path).absolute())  # so that nobody joins it again
    return settings.model_copy(update=joined)


def check_record(
    record: type[Any], values: Section, what: str, where: str, ignored: Names = ()
) -> None:
    """Raise ConfigError if a value for a dataclass is missing, unknown or of the wrong type.

    The fields in `ignored` are not expected. The message starts with `where` and calls a field
    `what`.
    """
    # mypy does not know a class as hashable
    model = _record_model(record, frozenset(ignored))  # type: ignore[arg-type]
    _validate(model, values, what, where)


@cache
def _record_model(record: Hashable, ignored: frozenset[str]) -> type[StrictModel]:
    hints = get_type_hints(record, include_extras=True)
    names = [field for field in fields(record) if field.name not in ignored]  # type: ignore[arg-type]
    types: dict[str, Any] = {}
    for number, field in enumerate(names):
        kind = checkable_type(hints[field.name])
        # with an alias, because a field called "copy" or "json" would hide a method of the model
        types[f"value_{number}"] = (
            kind,
            Field(... if _is_required(field) else None, alias=field.name),
        )
    return create_model("Values", __base__=StrictModel, **types)


def _is_required(field: "RecordField[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def checkable_type(kind: object) -> object:
    """The type that checks a value of a file against an annotation; Any if it cannot be checked."""
    origin = get_origin(kind) or kind
    inner = get_args(kind)
    if kind in (bool, int, float, str, NoneType) or origin is Literal:
        return kind
    if kind is Path:
        return str | Path
    if origin is Annotated:
        return kind if checkable_type(inner[0]) == inner[0] else checkable_type(inner[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(checkable_type, inner))]  # noqa: UP007 - | cannot join a tuple
    if origin in (list, tuple, Sequence):
        element = checkable_type(inner[0]) if len({*inner} - {...}) == 1 else Any
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
    names = list(setting_fields(model))
    # of a validator of the whole class, which names no setting
    if of_all := [problem for problem in problems if not problem["loc"]]:
        raise ConfigError(f"{opening}{what}: {of_all[0]['msg'].removeprefix('Value error, ')}")
    # unknown keys first: a misspelt key is also missing
    if unknown := [
        problem["loc"][0]
        for problem in problems
        if problem["type"] in ("extra_forbidden", "invalid_key")
    ]:
        raise _after(opening, unknown_name(what, str(unknown[0]), [*names, *other_keys]))
    name = str(min(problems, key=lambda problem: problem["type"] != "missing")["loc"][0])
    schema = model.model_json_schema()["properties"][name]
    if name not in values:
        if misspelt := get_close_matches(
            name, [str(key) for key in values if key not in names], n=1
        ):
            raise _after(opening, unknown_name(what, misspelt[0], names))
        expected = _describe_schema(schema)
        raise ConfigError(
            f"{opening}{what} {name!r} is missing; wanted {expected}", wanted=expected
        )
    value = values[name]
    choices = _list_choices(schema)
    if choices and isinstance(value, str):
        raise _after(f"{opening}{what} {name!r}: ", unknown_name("value", value, choices))
    expected = _describe_schema(schema)
    found = f"{value!r:.200}"
    raise ConfigError(
        f"{opening}{what} {name!r}: wanted {expected}, found {found}", found=found, wanted=expected
    )


def _after(opening: str, error: ConfigError) -> ConfigError:
    """An error whose message starts with `opening`."""
    return ConfigError(f"{opening}{error}", **error.parts())


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
    if "wanted" in schema:
        return str(schema["wanted"])
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(map(_describe_schema, options)))
    if choices := _list_choices(schema):
        return " or ".join(map(repr, choices))
    kind = schema.get("type", "object" if "$ref" in schema else "")
    if kind == "array":
        items = schema.get("items", {})
        if choices := _list_choices(items):
            return f"a list with {', '.join(map(repr, choices))}"
        return "a list of texts" if items.get("type") == "string" else "a list"
    bounds = [f"{words} {schema[key]:.10g}" for key, words in _BOUNDS.items() if key in schema]
    limits = ", ".join(bounds).replace(", at most", " to" if "minimum" in schema else ", at most")
    return " ".join(
        filter(None, [_NAMES.get(kind, kind), limits, "that is not empty" * ("pattern" in schema)])
    )


def wanted(words: str) -> dict[str, Any]:
    """What a message wants for a setting, as the argument `json_schema_extra` of its `Field`."""
    return {"wanted": words}


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
