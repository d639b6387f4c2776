from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import (
    Experiment,
    base_experiments,
    load_experiment,
    parse_experiment,
)
from ifqa.config.overrides import as_sections, override
from ifqa.errors import IfqaError
from ifqa.pipeline.run import Run
from ifqa.storage.resources import list_resources

pytestmark = pytest.mark.usefixtures("here")

SAMPLE: dict[str, Any] = {
    "benchmark": "sample",
    "split": "dev",
    "corpus": "sample",
    "retriever": {"name": "bm25"},
    "reader": {"name": "extractive"},
}


def test_defaults_are_filled_in():
    experiment = parse_experiment("x", SAMPLE, "x.toml")
    assert experiment.retriever is not None
    section = experiment.retriever.section()
    assert section.items() >= {"index": "bm25", "k": 100, "k1": 0.9, "b": 0.4}.items()
    assert experiment.reader is not None
    assert experiment.reader.passages == 5
    assert all(load_corpus(name).name == name for name in list_resources("indexes", ".toml"))


def test_an_indexed_plugin_from_outside_must_name_its_index(importable):
    source = (
        "class Titles:\n    @classmethod\n    def build(cls, passages, folder): ...\n"
        "    def __init__(self, index): ...\n    def search(self, questions, k): ...\n"
    )
    (importable / "my_indexed_titles.py").write_text(source)
    table = {"name": "my_indexed_titles:Titles"}
    with pytest.raises(
        IfqaError, match=r"x.toml: \[retriever\]: set index = NAME, for the corpus's \[index.NAME\]"
    ):
        parse_experiment("x", SAMPLE | {"retriever": table}, "x.toml")
    assert parse_experiment(
        "x", SAMPLE | {"retriever": table | {"index": "titles"}}, "x.toml"
    ).indexes == ["titles"]


def test_a_retired_models_scores_are_kept_only_for_another_model():
    published = {"EM": [{"value": 46.08, "retired": "code-davinci-002"}, {"value": 1.0}]}
    llm = {
        "reader": {"name": "llm"},
        "llm": {"model": "m"},
        "table": "Table 3, dev",
        "expected": published,
    }
    experiment = parse_experiment("x", SAMPLE | llm, "x.toml")
    other = override(experiment, {"llm.model": "n"})
    assert [score.value for score in other.expected] == [46.08]
    assert (
        override(experiment, {"limit": 3}).expected
        == override(other, {"reader.passages": 3}).expected
        == ()
    )
    assert override(experiment, {"limit": 3}).table == "Table 3, dev"
    assert override(experiment, {"split": "train"}).table == ""


def test_an_experiment_may_ask_some_of_the_questions_only():
    some = SAMPLE | {"questions": ["sample/dev/7", "sample/dev/2"]}
    questions = Run(parse_experiment("x", some, "x.toml")).questions
    assert [question.id for question in questions] == ["sample/dev/2", "sample/dev/7"]
    with pytest.raises(IfqaError, match="no question 'sample/dev/999'"):
        _ = Run(
            parse_experiment("x", SAMPLE | {"questions": ["sample/dev/999"]}, "x.toml")
        ).questions


def test_an_experiment_may_name_measures_and_keeps_them_through_a_flag():
    experiment = parse_experiment("x", SAMPLE | {"measures": ["accuracy"]}, "x.toml")
    assert experiment.measures == override(experiment, {"limit": 3}).measures == ("accuracy",)
    assert as_sections(experiment)["measures"] == ["accuracy"]
    assert "measures" not in as_sections(parse_experiment("x", SAMPLE, "x.toml"))
    with pytest.raises(IfqaError, match="unknown measure 'accurasy'; did you mean 'accuracy'"):
        parse_experiment("x", SAMPLE | {"measures": ["accurasy"]}, "x.toml")
    with pytest.raises(IfqaError, match="the name of measure 'EM' is taken"):
        parse_experiment("x", SAMPLE | {"measures": ["EM"]}, "x.toml")


def test_an_experiment_can_be_named_by_its_path():
    assert load_experiment("experiments/sample.toml") == load_experiment("sample")
    assert load_experiment("./experiments/sample.toml").name == "sample"
    with pytest.raises(IfqaError, match="that begins with a letter or digit"):
        load_experiment("elsewhere/sample.toml")
    with pytest.raises(IfqaError, match="unknown experiment 'sampel'; did you mean 'sample'"):
        load_experiment("sampel")
    with pytest.raises(IfqaError, match="wanted a name, such as 'sample'"):
        load_experiment(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"retriever": {"name": "bm25", "kay1": 1}},
            "x.toml: unknown setting of retriever 'bm25' 'kay1'",
        ),
        ({"retriever": {"name": "bm25", "k": 0}}, "'k': wanted a whole number from 1, found 0"),
        ({"retriever": {"name": "gold", "index": "bm25"}}, "'gold' takes no 'index' here"),
        (
            {"reader": {"name": "extractive", "passages": 0}},
            "'passages': wanted a whole number from 1",
        ),
        ({"benchmark": "ifq"}, "unknown benchmark 'ifq'; did you mean 'ifqa'"),
        ({"splt": "dev"}, "x.toml: unknown key 'splt'; did you mean 'split'"),
        ({"retriever": "bm25"}, "'retriever': wanted a section, found 'bm25'"),
        (
            {"retriever": {"nmae": "bm25"}},
            r"x.toml: \[retriever\]: unknown key 'nmae'; did you mean 'name'",
        ),
        (
            {"questions": "sample/dev/1"},
            "'questions': wanted a list of texts, found 'sample/dev/1'",
        ),
        ({"reader": {"name": "predictions"}}, "'path' is missing"),
        ({"seed": -1}, "'seed': wanted a whole number from 0"),
    ],
)
def test_a_wrong_experiment_is_refused_by_name(change, complaint):
    with pytest.raises(IfqaError, match=complaint):
        parse_experiment("x", SAMPLE | change, "x.toml")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["bm25", "fusion"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "k", "parts", "b"]), inner)
    ),
    max_leaves=4,
)
KEYS = [field.name for field in fields(Experiment)]


@settings(deadline=None)
@given(
    st.sampled_from([*KEYS, "splt"]),
    st.sampled_from(["", "name", "k", "passages", "weights", "k1"]),
    VALUES,
)
def test_any_value_of_a_file_is_taken_as_it_is_or_refused_in_one_line(key, inner, value):
    within = inner and key in ("retriever", "reader")
    tables = SAMPLE | {key: {**SAMPLE[key], inner: value} if within else value}
    experiment, refusal = None, ""
    try:
        experiment = parse_experiment("x", tables, "x.toml")
    except IfqaError as error:
        refusal = str(error)
    assert refusal.isprintable()  # hence one line
    if experiment:
        again = parse_experiment("x", as_sections(experiment), "x.toml")
        assert repr(again) == repr(experiment)
        if within:
            assert repr(vars(experiment)[key][inner]) == repr(value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[passages\n", "not TOML"),
        ("[passages]\n", r"wanted at least one \[\[passages.sources\]\]"),
        (
            "[[passages.sources]]\nformat='dump'\npath='x'\n[index.b]\nretriever='bm25'\nstemer='x'\n",
            "mean 'stemmer'",
        ),
        (
            "[passages]\nsources = ['a']\n",
            r"wanted at least one \[\[passages.sources\]\], found \['a'\]",
        ),
        ("index = 3\n[[passages.sources]]\n", "wanted a section, found 3"),
        (
            "[[passages.sources]]\n[index.passages]\nretriever='bm25'\n",
            "the folder of the passages",
        ),
        (
            "[[passages.sources]]\n[index.'../x']\nretriever='bm25'\n",
            "begins with a letter or digit",
        ),
        (
            "[[passages.sources]]\nformat='dump'\npath='x'\n[index.g]\nretriever='gold'\n",
            "has no index to build",
        ),
    ],
)
def test_a_wrong_corpus_is_refused_by_name(tmp_path, text, complaint):
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "mine.toml").write_text(text)
    with pytest.raises(IfqaError, match=complaint):
        load_corpus("mine")


@pytest.mark.parametrize(
    ("name", "bases"),
    [
        ("x", []),
        ("x+k=5", ["x"]),
        ("x+k=5+retriever.k1=1.5", ["x+k=5", "x"]),
        ("x+reader=my_reader.Mine", ["x"]),
        ("x+reader.path=a_b~0123abcd", ["x"]),
        ("bm25+llm+k=5", ["bm25+llm"]),
        ("c++", []),
        ("y+k=5", []),
        ("y+k=5+limit=3", ["y+k=5", "y"]),
    ],
)
def test_a_variant_is_an_experiment_and_settings_without_a_file_of_its_own(name, bases):
    Path("experiments").mkdir()
    Path("experiments/y+k=5.toml").touch()
    assert base_experiments(name) == bases


@pytest.mark.parametrize("name", [[], {}, 7, ""])
def test_a_language_model_whose_name_is_no_text_is_refused_in_one_line(name):
    reader = {"name": "llm", "prompt": "closed-book"}
    sections = {
        "benchmark": "sample",
        "split": "dev",
        "reader": reader,
        "llm": {"name": name, "model": "m"},
    }
    with pytest.raises(IfqaError, match=r"mine: \[llm\] name: wanted a language model's plugin"):
        parse_experiment("mine", sections, "mine")
