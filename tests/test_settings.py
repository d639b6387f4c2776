"""Settings that fit their annotations, and the one line that refuses others."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError
from refusals import refused

from ifqa.config.experiment import parse_experiment
from ifqa.errors import IfqaError, unknown_name
from ifqa.outside_plugins import settings_of
from ifqa.plugins import load_plugin
from ifqa.settings import (
    Natural,
    Positive,
    Share,
    StrictModel,
    Text,
    as_section,
    parse_section,
    parse_settings,
)


def outside(
    path: Path,
    order: Literal["best first", "best last"] = "best first",
    samples: Positive = 1,
    share: Share = 0.5,
    above: Annotated[float, Field(gt=0, lt=1)] | None = None,
    names: tuple[str, ...] = (),
    either: float | Literal["auto"] = "auto",
    device: "NoSuchName" = "cpu",  # type: ignore[name-defined]  # noqa: F821
    bare=3,
    anything: Any = None,
    copy: bool = False,
    model_json: "str | None" = None,
    late: "Literal['a']" = "a",
):
    """A constructor from outside, with every kind of annotation."""


OUTSIDE = settings_of(outside)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "setting 'path' is missing; wanted text"),
        ({"pth": "x"}, "unknown setting 'pth'; did you mean 'path'"),
        ({"path": 3}, "'path': wanted text, found 3"),
        ({"order": "best frist"}, "'order': unknown value 'best frist'; did you mean 'best first'"),
        ({"order": 1}, "'order': wanted 'best first' or 'best last', found 1"),
        ({"self": 1}, "unknown setting 'self'"),
        ({"samples": 0}, "'samples': wanted a whole number from 1, found 0"),
        ({"share": 1.5}, "'share': wanted a number from 0 to 1, found 1.5"),
        ({"above": 1}, "'above': wanted a number above 0, below 1, found 1"),
        ({"above": float("inf")}, "'above': wanted a number above 0, below 1, found inf"),
        ({"names": "x"}, "'names': wanted a list of texts, found 'x'"),
        ({"either": True}, "'either': wanted a number or 'auto', found True"),
        ({"device": 3}, "'device': wanted text, found 3"),
        ({"bare": "3"}, "'bare': wanted a whole number, found '3'"),
        ({"copy": 1}, "'copy': wanted true or false, found 1"),
        ({"late": "b"}, "'late': unknown value 'b'; known: a"),
        ({"model_json": 1}, "'model_json': wanted text, found 1"),
        ({"setting_0": 1}, "unknown setting 'setting_0'"),
    ],
)
def test_an_annotation_says_what_a_setting_may_be(settings, complaint):
    given = settings if complaint.startswith("setting") else {"path": "x"} | settings
    with refused(complaint):
        parse_settings(OUTSIDE, given, "setting")


def test_other_keys_of_the_section_are_among_the_known_names():
    model = settings_of(lambda b=1: b)
    with pytest.raises(
        IfqaError, match=r"^x.toml: unknown setting 'kk'; did you mean 'k'\? known: b, k$"
    ):
        parse_settings(model, {"kk": 1}, "setting", "x.toml", other_keys=["k"])


def test_values_that_fit_their_annotations_pass():
    fitting = {
        "share": 1,
        "above": 0.5,
        "names": ["a"],
        "either": 2,
        "anything": [{}],
        "device": "cuda",
        "copy": True,
    }
    parse_settings(OUTSIDE, {"path": Path("x"), **fitting}, "setting")
    for name in set(fitting) - {"anything"}:  # the same, with one value that does not fit
        with pytest.raises(IfqaError, match=f"'{name}'"):
            parse_settings(OUTSIDE, {"path": Path("x"), **fitting, name: [None]}, "setting")


def weighing(
    path: str,
    share: float = 1,
    both: float | int = 2,
    ways: list[float] = (),  # type: ignore[assignment]
    low: Positive = 0,
    n: int = 3,
):
    """A constructor with whole numbers as defaults of float settings."""


def test_a_whole_number_for_a_float_setting_becomes_a_float():
    model = settings_of(weighing)
    settings = {"path": "x", "share": 1, "ways": [1, 0.5], "n": 4}
    read = parse_settings(model, settings, "setting")
    assert json.dumps(as_section(read, only_given=True)) == (
        '{"path": "x", "share": 1.0, "ways": [1.0, 0.5], "n": 4}'
    )
    assert parse_settings(model, settings | {"share": 1.0}, "setting") == read


def test_a_whole_number_as_default_of_a_float_setting_becomes_a_float():
    defaults = as_section(parse_settings(settings_of(weighing), {"path": "x"}, "setting"))
    assert json.dumps(defaults) == (
        '{"path": "x", "share": 1.0, "both": 2, "ways": [], "low": 0, "n": 3}'
    )


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KINDS = [bool, int, float, str, Natural, Share, Literal["a"], list[str], int | None, Any]


@given(st.sampled_from(KINDS), PLAIN | st.lists(PLAIN), st.text(min_size=1))
def test_any_value_passes_or_is_refused_in_one_line(kind, value, name):
    def function(a): ...

    function.__annotations__["a"] = kind
    refusal = complaint(function, {"a": value})
    if refusal:
        assert refusal.startswith("x.toml: setting 'a': ")
        assert refusal.isprintable()
    else:
        assert kind is not bool or value in (True, False)
        assert kind not in (int, Natural) or (type(value) is int and (kind is int or value >= 0))
        assert kind not in (float, Share) or (
            type(value) in (int, float) and abs(value) < float("inf")
        )
    if name != "a":
        assert complaint(function, {"a": value, name: 1}).startswith("x.toml: unknown setting ")


def complaint(function, settings):
    """The error for settings; empty if they pass."""
    try:
        parse_settings(settings_of(function), settings, "setting", "x.toml")
    except IfqaError as error:
        return str(error)
    return ""


class Point(StrictModel):
    """A section of a file."""

    name: Text
    at: list[int] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        (3, "x.toml: wanted a section, found 3"),
        (None, "x.toml: wanted a section, found nothing"),
        ({"name": " "}, "x.toml: key 'name': wanted text that is not empty, found ' '"),
        ({"name": "a", "ta": []}, "x.toml: unknown key 'ta'; did you mean 'at'? known: at, name"),
        ({"name": "a", 3: 4}, "x.toml: unknown key '3'; known: at, name"),
        ({"name": "a", "at": [1.5]}, "x.toml: key 'at': wanted a list, found [1.5]"),
    ],
)
def test_a_wrong_section_is_refused_in_one_line(section, complaint):
    with pytest.raises(IfqaError) as caught:
        parse_section(Point, section, "x.toml")
    assert str(caught.value) == complaint
    assert parse_section(Point, {"name": "a"}, "x.toml") == Point(name="a", at=[])


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        ("retriever", "bm25", {"k1": -1.0}),
        ("reader", "extractive", {"precision": "float16"}),
        ("reader", "llm", {"sample": 2}),
        ("llm", "openai", {"model": "m", "timeout": 0}),
    ],
)
def test_python_refuses_what_a_file_refuses(kind, name, wrong):
    tables = {
        "benchmark": "sample",
        "split": "dev",
        "corpus": "sample",
        "reader": {"name": "extractive"},
    }
    with pytest.raises(IfqaError, match=f"^x.toml: .*setting of {kind} '{name}'"):
        parse_experiment("x", tables | {kind: {"name": name, **wrong}}, "x.toml")
    with pytest.raises(ValidationError):
        load_plugin(kind, name).Settings(**wrong)


def test_annotations_that_are_kept_as_text_are_checked():
    # in a module of its own, because this import changes all annotations of a file
    plugin: dict[str, Any] = {"__name__": "a_plugin_from_outside"}
    code = (
        "from __future__ import annotations\ndef build(k1: float = 0.9, tensor: "
        "torch.Tensor | None = None): ..."
    )
    exec(code, plugin)
    model = settings_of(plugin["build"])
    parse_settings(model, {"k1": 1, "tensor": 3}, "setting")
    with refused("'k1': wanted a number, found 'high'"):
        parse_settings(model, {"k1": "high"}, "setting")


def test_all_of_few_known_names_and_the_nearest_five_of_many_are_listed():
    names = [f"table3-{number}" for number in range(40)] + ["sample", "samples"]
    message = str(unknown_name("experiment", "sampel", names))
    assert message.startswith(
        "unknown experiment 'sampel'; did you mean 'sample'? nearest of 42: sample, samples, "
    )
    assert message.count(",") == 4
    few = unknown_name("reader", "fud", ["llm", "fid"])
    assert str(few) == "unknown reader 'fud'; did you mean 'fid'? known: fid, llm"
    assert str(unknown_name("prompt", "x", [])) == "unknown prompt 'x'; known: none"
