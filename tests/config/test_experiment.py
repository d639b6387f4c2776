from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import Experiment, bases, load_experiment, parse_experiment, search_settings
from ifqa.config.overrides import as_tables, override, write_resolved
from ifqa.errors import IfqaError
from ifqa.pipeline.run import Run

SAMPLE = {
    "benchmark": "sample",
    "split": "dev",
    "corpus": "sample",
    "retriever": {"name": "bm25"},
    "reader": {"name": "extractive"},
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_defaults_are_filled_in():
    experiment = parse_experiment("x", SAMPLE, "x.toml")
    assert experiment.retriever["index"] == "bm25"
    assert experiment.retriever["k"] == 100
    assert search_settings(experiment.retriever)["k1"] == 0.9
    assert search_settings(experiment.retriever)["b"] == 0.4
    assert experiment.reader["passages"] == 5


def test_every_tracked_file_loads():
    from ifqa.storage.resources import list_resources

    assert {load_corpus(name).name for name in list_resources("indexes", ".toml")} >= {"sample"}
    assert {load_experiment(name).name for name in list_resources("experiments", ".toml")} >= {"sample"}


def test_a_flag_makes_a_variant_that_runs_again_by_its_name():
    variant = override(load_experiment("sample"), {"k": 5})
    assert variant.name == "sample+k=5"
    assert variant.retriever["k"] == 5
    write_resolved(variant)
    assert load_experiment("sample+k=5") == variant


def test_a_flag_that_changes_nothing_is_no_variant():
    sample = load_experiment("sample")
    assert override(sample, {"k": sample.retriever["k"]}) is sample
    assert override(sample, {"retriever.model": "ifqa", "reader": "extractive"}) is sample
    assert override(sample, {}) is sample


def test_another_plugin_does_not_get_the_old_ones_settings():
    changed = override(load_experiment("sample"), {"retriever": "gold"})
    assert changed.retriever == {"name": "gold", "k": 20}
    assert changed.name == "sample+retriever=gold"


def test_a_variant_of_a_variant_names_all_changes():
    second = override(override(load_experiment("sample"), {"k": 5}), {"limit": 3})
    assert second.name == "sample+k=5+limit=3"


def test_the_same_setting_given_twice_is_refused():
    with pytest.raises(IfqaError, match="given twice"):
        override(load_experiment("sample"), {"k": 3, "retriever.k": 3})


def test_a_plugin_from_outside_names_a_folder_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "my_plug_of_names.py").write_text(
        "class Mine:\n    'One.'\n    def answer(self, questions, passages): return []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    named = override(load_experiment("sample"), {"reader": "my_plug_of_names:Mine"}).name
    assert named == "sample+reader=my_plug_of_names.Mine"
    llm = parse_experiment("x", SAMPLE | {"reader": {"name": "llm"}, "llm": {"model": "m"}}, "x.toml")
    assert override(llm, {"llm.model": "a3:8b"}).name != override(llm, {"llm.model": "a3.8b"}).name


def test_an_indexed_plugin_from_outside_must_name_its_index(tmp_path, monkeypatch):
    source = (
        "class Titles:\n    @classmethod\n    def build(cls, passages, folder): ...\n"
        "    def __init__(self, index): ...\n    def search(self, questions, k): ...\n"
    )
    (tmp_path / "my_indexed_titles.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    table = {"name": "my_indexed_titles:Titles"}
    with pytest.raises(
        IfqaError, match=r"x.toml: \[retriever\]: set index = NAME, for the corpus's \[index.NAME\] that"
    ):
        parse_experiment("x", SAMPLE | {"retriever": table}, "x.toml")
    assert parse_experiment("x", SAMPLE | {"retriever": table | {"index": "titles"}}, "x.toml").indexes == ["titles"]


def test_values_that_no_folder_can_be_named_by_keep_their_difference():
    long = [override(load_experiment("sample"), {"reader.weights": "w" * 80 + end}).name for end in ("1", "2", "/2")]
    assert len(set(long)) == 3
    assert all(len(name) < 100 and "/" not in name for name in long)


def test_a_variant_expects_nothing():
    experiment = parse_experiment("x", SAMPLE | {"expected": {"EM": {"value": 1.0}}}, "x.toml")
    assert override(experiment, {"limit": 3}).expected == ()


def test_a_retired_models_scores_are_kept_only_for_another_model():
    published = {"EM": [{"value": 46.08, "retired": "code-davinci-002"}, {"value": 1.0}]}
    llm = {"reader": {"name": "llm"}, "llm": {"model": "m"}, "table": "Table 3, dev", "expected": published}
    experiment = parse_experiment("x", SAMPLE | llm, "x.toml")
    other = override(experiment, {"llm.model": "n"})
    assert [one.value for one in other.expected] == [46.08]
    assert override(experiment, {"limit": 3}).expected == override(other, {"reader.passages": 3}).expected == ()
    assert override(experiment, {"limit": 3}).table == "Table 3, dev"
    assert override(experiment, {"split": "train"}).table == ""


def test_an_experiment_may_ask_some_of_the_questions_only():
    some = SAMPLE | {"questions": ["sample/dev/7", "sample/dev/2"]}
    assert [one.id for one in Run(parse_experiment("x", some, "x.toml")).questions] == ["sample/dev/2", "sample/dev/7"]
    with pytest.raises(IfqaError, match="no question 'sample/dev/999'"):
        _ = Run(parse_experiment("x", SAMPLE | {"questions": ["sample/dev/999"]}, "x.toml")).questions


def test_an_experiment_may_name_measures_and_keeps_them_through_a_flag():
    experiment = parse_experiment("x", SAMPLE | {"measures": ["accuracy"]}, "x.toml")
    assert experiment.measures == override(experiment, {"limit": 3}).measures == ("accuracy",)
    assert as_tables(experiment)["measures"] == ["accuracy"]
    assert "measures" not in as_tables(parse_experiment("x", SAMPLE, "x.toml"))
    with pytest.raises(IfqaError, match="unknown measure 'accurasy'; did you mean 'accuracy'"):
        parse_experiment("x", SAMPLE | {"measures": ["accurasy"]}, "x.toml")
    with pytest.raises(IfqaError, match="the name of measure 'EM' is taken"):
        parse_experiment("x", SAMPLE | {"measures": ["EM"]}, "x.toml")


def test_a_file_in_the_experiments_folder_is_as_good_as_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_experiment("experiments/sample.toml") == load_experiment("sample")
    assert load_experiment("./experiments/sample.toml").name == "sample"
    with pytest.raises(IfqaError, match="that names no other folder"):
        load_experiment("elsewhere/sample.toml")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"retriever": {"name": "bm52"}}, "unknown retriever 'bm52'; did you mean 'bm25'"),
        ({"retriever": {"name": "bm25", "kay1": 1}}, "x.toml: unknown setting of retriever 'bm25' 'kay1'"),
        ({"retriever": {"name": "bm25", "k": 0}}, "'k': wanted a whole number from 1, found 0"),
        ({"retriever": {"name": "gold", "index": "bm25"}}, "searches no index"),
        ({"reader": {"name": "extractive", "passages": 0}}, "'passages': wanted a whole number from 1"),
        ({"corpus": ""}, "name the corpus"),
        ({"benchmark": "ifq"}, "unknown benchmark 'ifq'; did you mean 'ifqa'"),
        ({"splt": "dev"}, "x.toml: unknown key 'splt'; did you mean 'split'"),
        ({"retriever": "bm25"}, "'retriever': wanted a table, found 'bm25'"),
        ({"retriever": {"nmae": "bm25"}}, r"x.toml: \[retriever\]: unknown key 'nmae'; did you mean 'name'"),
        ({"retriever": {}}, "'name' is missing; wanted text"),
        ({"reader": 5}, "wanted a table, found 5"),
        ({"table": 3}, "'table': wanted text, found 3"),
        ({"questions": "sample/dev/1"}, "'questions': wanted a list of texts, found 'sample/dev/1'"),
        ({"reader": {"name": "predictions", "path": 5}}, "'path': wanted text, found 5"),
        ({"reader": {"name": "predictions"}}, "'path' is missing"),
        ({"seed": -1}, "'seed': wanted a whole number from 0"),
    ],
)
def test_a_wrong_experiment_is_refused_by_name(change, complaint):
    with pytest.raises(IfqaError, match=complaint):
        parse_experiment("x", SAMPLE | change, "x.toml")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["bm25", "fusion"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "k", "parts", "b"]), inner),
    max_leaves=4,
)
KEYS = [one.name for one in fields(Experiment)]


@settings(deadline=None)
@given(st.sampled_from([*KEYS, "splt"]), st.sampled_from(["", "name", "k", "passages", "weights", "k1"]), VALUES)
def test_any_value_of_a_file_is_taken_as_it_is_or_refused_in_one_line(key, inner, value):
    tables = SAMPLE | {
        key: {**SAMPLE.get(key, {}), inner: value} if inner and key in ("retriever", "reader") else value
    }
    experiment, refusal = None, ""
    try:
        experiment = parse_experiment("x", tables, "x.toml")
    except IfqaError as error:
        refusal = str(error)
    assert refusal.isprintable()  # hence one line
    if experiment:
        again = parse_experiment("x", as_tables(experiment), "x.toml")
        assert repr(again) == repr(experiment)
        if inner and key in ("retriever", "reader"):
            assert repr(vars(experiment)[key][inner]) == repr(value)


def test_an_unknown_change_is_refused():
    with pytest.raises(IfqaError, match="unknown setting 'kk'"):
        override(load_experiment("sample"), {"kk": 1})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[passages\n", "not TOML"),
        ("[passages]\n", r"wanted at least one \[\[passages.sources\]\]"),
        (
            "[[passages.sources]]\nformat='dump'\npath='x'\n[index.b]\nretriever='bm25'\nstemer='x'\n",
            "did you mean 'stemmer'",
        ),
        ("[passages]\nsources = ['a']\n", r"wanted at least one \[\[passages.sources\]\], found \['a'\]"),
        ("index = 3\n[[passages.sources]]\n", "wanted a table, found 3"),
        ("[[passages.sources]]\n[index.passages]\nretriever='bm25'\n", "the folder of the passages"),
        ("[[passages.sources]]\n[index.'../x']\nretriever='bm25'\n", "names no other folder"),
        ("[[passages.sources]]\nformat='dump'\npath='x'\n[index.g]\nretriever='gold'\n", "has no index to build"),
    ],
)
def test_a_wrong_corpus_is_refused_by_name(tmp_path, text, complaint):
    (tmp_path / "indexes").mkdir()
    (tmp_path / "indexes" / "mine.toml").write_text(text)
    with pytest.raises(IfqaError, match=complaint):
        load_corpus("mine")


def test_an_unknown_experiment_gets_the_nearest_known_one():
    with pytest.raises(IfqaError, match="unknown experiment 'sampel'; did you mean 'sample'"):
        load_experiment("sampel")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("x", []),
        ("x+k=5", ["x"]),
        ("x+k=5+retriever.k1=1.5", ["x+k=5", "x"]),
        ("x+reader=my_reader.Mine", ["x"]),
        ("x+reader.path=a_b~0123abcd", ["x"]),
        ("bm25+llm", []),
        ("bm25+llm+k=5", ["bm25+llm"]),
        ("c++", []),
    ],
)
def test_a_variant_is_an_experiment_and_settings(name, found):
    assert bases(name) == found


def test_an_experiment_with_a_file_of_its_own_is_no_variant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("experiments").mkdir()
    Path("experiments/x+k=5.toml").touch()
    assert bases("x+k=5") == []
    assert bases("x+k=5+limit=3") == ["x+k=5", "x"]


@pytest.mark.parametrize("name", [5, None, ["sample"], b"sample"])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(IfqaError, match="wanted a name, as 'sample'"):
        load_experiment(name)
