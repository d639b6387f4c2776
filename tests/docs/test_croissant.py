"""The Croissant metadata of the bundled sample agree with its files."""

import pytest

from ifqa.storage.files import read_json, sha256
from ifqa.storage.resources import BUNDLED

SAMPLE = BUNDLED / "sample"
METADATA = read_json(SAMPLE / "croissant.json")
RECORD_SETS = {record_set["name"]: record_set for record_set in METADATA["recordSet"]}
REQUIRED = {  # by the specification of Croissant 1.0
    "sc:Dataset": "@context @type conformsTo name description license url creator datePublished",
    "cr:FileObject": "@type @id name contentUrl encodingFormat sha256",
    "cr:RecordSet": "@type @id name field",
    "cr:Field": "@type @id name dataType source",
}
KINDS = {"sc:Text": str, "sc:Integer": int}


def nodes(value):
    """The typed objects of the metadata, at any depth."""
    if isinstance(value, dict):
        if value.get("@type") in REQUIRED:
            yield value
        for key, part in value.items():
            yield from nodes(part) if key != "@context" else ()
    elif isinstance(value, list):
        for part in value:
            yield from nodes(part)


@pytest.mark.parametrize("kind", REQUIRED)
def test_the_required_properties_are_there(kind):
    objects = [node for node in nodes(METADATA) if node["@type"] == kind]
    assert objects
    assert [node for node in objects if REQUIRED[kind].split() - node.keys()] == []


def test_the_version_of_the_format_is_named():
    assert METADATA["conformsTo"] == "http://mlcommons.org/croissant/1.0"


def test_all_files_are_listed_with_their_checksums():
    listed = {file["contentUrl"]: file["sha256"] for file in METADATA["distribution"]}
    files = [path for path in SAMPLE.iterdir() if path.name != "croissant.json"]
    assert listed == {path.name: sha256(path) for path in files}


@pytest.mark.parametrize("name", RECORD_SETS)
def test_the_fields_are_those_of_each_record(name):
    fields = RECORD_SETS[name]["field"]
    for record in read_json(SAMPLE / f"{name}.json"):
        assert list(record) == [field["name"] for field in fields]
        for field in fields:
            value = record[field["name"]]
            values = value if field.get("repeated") else [value]
            assert isinstance(value, list) == bool(field.get("repeated"))
            assert all(isinstance(part, KINDS[field["dataType"]]) for part in values)


def test_each_field_is_read_from_a_listed_file():
    files = {file["@id"] for file in METADATA["distribution"]}
    for name, record_set in RECORD_SETS.items():
        for field in record_set["field"]:
            assert field["source"]["fileObject"]["@id"] in files
            assert field["source"]["extract"]["jsonPath"] == f"$[*].{field['name']}"
            assert field["@id"] == f"{name}/{field['name']}"
