"""The JSON Schemas of experiment and corpus files, for completion in editors.

They are made from the classes that check the files: the sections of `ifqa.config`, and the
`Settings` of every plugin of ifqa. A plugin from outside, "my_module:Class", may have any settings.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from ifqa.config.corpus import CorpusFile, PassagesSection
from ifqa.config.experiment import (
    JUDGE_PROMPT,
    ExperimentFile,
    ReaderSection,
    RetrieverSection,
)
from ifqa.plugins import load_plugin, plugin_names

Schema = dict[str, Any]
_JUDGE_PROMPT: Schema = {
    "type": "string",
    "default": JUDGE_PROMPT,
    "description": "The prompt: NAME for prompts/judges/NAME.toml.",
}
_DRAFT = "http://json-schema.org/draft-07/schema#"  # what editors of TOML know


def experiment_schema() -> Schema:
    """The schema of experiments/NAME.toml."""
    schema = _object(ExperimentFile)
    part = _plugins("retriever", "name", _keys(RetrieverSection))
    part_of_parts = {"$ref": "#/definitions/retriever"}
    for choice in part["anyOf"]:
        choice["properties"]["parts"] = {"type": "array", "items": part_of_parts}
    sections = {
        "retriever": part_of_parts,
        "reader": _plugins("reader", "name", _keys(ReaderSection)),
        "llm": _plugins("llm", "name", {}),
        "judge": _plugins("llm", "name", {"prompt": _JUDGE_PROMPT}),
        "expected": {"type": "object", "description": "Expected scores, by measure."},
    }
    schema["properties"] |= sections
    schema["definitions"] = {"retriever": part}
    return _titled(schema, "An experiment of ifqa: experiments/NAME.toml")


def corpus_schema() -> Schema:
    """The schema of indexes/NAME.toml."""
    schema = _object(CorpusFile)
    passages = _object(PassagesSection)
    passages["properties"]["sources"] = {
        "type": "array",
        "minItems": 1,
        "items": _plugins("source", "format", {}),
    }
    indexes = _plugins("retriever", "retriever", {}, "BuildSettings")
    schema["properties"]["passages"] = passages
    schema["properties"]["index"] = {"type": "object", "additionalProperties": indexes}
    return _titled(schema, "A corpus of ifqa: indexes/NAME.toml")


def _titled(schema: Schema, title: str) -> Schema:
    return {"$schema": _DRAFT, "title": title, **schema}


def _plugins(
    kind: str, key: str, common: Mapping[str, Schema], settings: str = "Settings"
) -> Schema:
    """A section that names a plugin under `key`: one choice for each of ifqa's, and one for those
    from outside.
    """
    choices = []
    for name in plugin_names(kind):
        plugin = load_plugin(kind, name)
        model = getattr(plugin, settings, None)
        if model is None:  # a retriever without an index to build
            continue
        choice = _object(model)
        summary = " ".join((plugin.__doc__ or "").partition("\n\n")[0].split())
        named = {key: {"const": name, "description": summary}}
        choice["properties"] = named | dict(common) | choice["properties"]
        choice["required"] = [key, *choice.get("required", [])]
        choice["title"] = name
        choices.append(choice)
    outside = {
        "title": "a plugin from outside",
        "type": "object",
        "properties": {key: {"type": "string", "pattern": "^[\\w.]+:\\w+$"}, **common},
        "required": [key],
    }
    if kind == "llm":  # the name of a language model's plugin may be left out
        for choice in choices:
            choice["required"].remove(key)
    return {"anyOf": [*choices, outside]}


def _keys(section: type[BaseModel]) -> dict[str, Schema]:
    """The keys that a section has besides the settings of its plugin."""
    properties = _object(section)["properties"]
    return {key: schema for key, schema in properties.items() if key not in ("name", "parts")}


def _object(model: type[BaseModel]) -> Schema:
    """The schema of a section: its properties, and those that it must have."""
    schema = _plain(model.model_json_schema())
    kept = {
        "type": "object",
        "properties": schema.get("properties", {}),
        "additionalProperties": False,
    }
    return kept | ({"required": schema["required"]} if "required" in schema else {})


def _plain(schema: Any) -> Any:
    """A schema without titles, without the wording of messages, and with one-line descriptions."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        key: _plain(part)
        for key, part in schema.items()
        if key != "wanted" and not (key == "title" and isinstance(part, str))
    }
    if isinstance(plain.get("description"), str):
        plain["description"] = " ".join(plain["description"].split())
    return plain
