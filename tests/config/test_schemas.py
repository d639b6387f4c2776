"""The JSON Schemas of the files agree with the code that checks them."""

import json
import tomllib

import jsonschema
import pytest

from ifqa.storage.resources import BUNDLED, list_resources

FILES = [
    (schema, name, path)
    for schema, folder in (("experiment", "experiments"), ("corpus", "indexes"))
    for name, path in list_resources(folder, ".toml").items()
]


def validator(schema):
    return jsonschema.Draft7Validator(json.loads((BUNDLED / f"schemas/{schema}.json").read_text()))


@pytest.mark.parametrize(("schema", "name", "path"), FILES, ids=[name for _, name, _ in FILES])
def test_every_tracked_file_fits_its_schema(schema, name, path):
    validator(schema).validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("schema", "sections"),
    [
        ("experiment", {"benchmark": "sample"}),
        ("experiment", {"retriever": {"name": "bm25", "k2": 1.0}}),
        ("experiment", {"retriever": {"name": "bm25", "k1": -1.0}}),
        ("experiment", {"reader": {"name": "extractive", "passages": 0}}),
        ("experiment", {"reader": {"name": "predictions"}}),
        ("experiment", {"retriever": {"name": "fusion", "parts": [{"name": "bm52"}]}}),
        ("corpus", {"passages": {"sources": []}}),
        ("corpus", {"passages": {"sources": [{"format": "dump", "path": "x", "word": 9}]}}),
        ("corpus", {"index": {"bm25": {"retriever": "gold"}}}),
    ],
)
def test_what_a_file_may_not_say_does_not_fit(schema, sections):
    whole = {
        "experiment": {"benchmark": "sample", "split": "dev", "reader": {"name": "extractive"}},
        "corpus": {"passages": {"sources": [{"format": "dump", "path": "x"}]}},
    }
    changed = whole[schema] | sections
    if sections == {"benchmark": "sample"}:
        del changed["split"]
    assert validator(schema).is_valid(whole[schema])
    assert not validator(schema).is_valid(changed)


def test_a_plugin_from_outside_may_have_any_settings():
    sections = {"benchmark": "mine:Quiz", "split": "x", "reader": {"name": "mine:Reader", "any": 1}}
    assert validator("experiment").is_valid(sections)


def test_a_setting_is_described():
    schema = json.loads((BUNDLED / "schemas/experiment.json").read_text())
    extractive = next(
        choice
        for choice in schema["properties"]["reader"]["anyOf"]
        if choice["title"] == "extractive"
    )
    assert extractive["properties"]["threshold"]["description"].startswith("The reader abstains")
