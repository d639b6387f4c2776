"""The measure of a model's verdicts: its name, its place, and what it never decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.config.expected import find_score, parse_expected
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.judged import judged_measure, with_verdicts
from ifqa.scoring.scheme import load_scheme, split_key

COLUMN = "judged by gpt-4.1-mini"
SCHEME = load_scheme("ifqa", judge="gpt-4.1-mini")


def test_the_verdicts_come_after_the_measures_that_tables_show():
    assert SCHEME.table_keys({COLUMN, "F1", "EM"}) == ["EM", "F1", COLUMN]


@pytest.mark.parametrize(
    ("known", "headline"), [({COLUMN, "contains"}, "contains"), ({COLUMN}, "")]
)
def test_the_verdicts_are_never_the_headline(known, headline):
    assert SCHEME.headline(known) == headline


def test_verdicts_have_no_expected_value():
    with refused("verdicts decide nothing"):
        parse_expected({f"numeric.{COLUMN}": {"value": 3.0}}, "x.toml", SCHEME)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("EM", ("", "EM")),
        ("numeric.EM", ("numeric", "EM")),
        ("eli5.v2.EM", ("eli5.v2", "EM")),
        (COLUMN, ("", COLUMN)),
        (f"numeric.{COLUMN}", ("numeric", COLUMN)),
    ],
)
def test_a_name_with_dots_is_told_from_a_part(key, parts):
    assert split_key(key) == parts


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))
def test_any_models_score_is_found(model):
    key = judged_measure(model).name
    mean = {"value": 40.0}
    scores: dict[str, object] = {
        "measures": {key: mean},
        "subsets": {"numeric": {"questions": 3, "measures": {key: mean}}},
    }
    assert find_score(scores, f"numeric.{key}") == find_score(scores, key) == mean  # type: ignore[arg-type]


def test_an_answer_without_a_verdict_has_no_score():
    [measure] = with_verdicts([judged_measure("m")], {"1": "same"})
    scores = [
        measure.score(Question(name, "If so?", ("a",)), Prediction(name, "b")) for name in "12"
    ]
    assert scores == [1.0, None]


def test_no_other_measure_may_have_such_a_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "judging_too.py").write_text(
        "from ifqa.protocols import Measure\nMINE = Measure('judged by me', float)\n"
    )
    with refused("taken"):
        load_scheme("ifqa", ["judging_too:MINE"], tmp_path)
