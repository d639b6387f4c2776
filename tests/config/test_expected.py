from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.config.expected import (
    NEAR,
    OFF,
    OK,
    OTHER_SET,
    PART,
    RETIRED,
    Expected,
    expected_sections,
    find_score,
    parse_expected,
    verdict,
)
from ifqa.errors import IfqaError
from ifqa.scoring.scheme import default_scheme

EM = {"value": 36.0, "low": 32.0, "high": 40.0}
BY = default_scheme()
NUMBERS = st.floats(0, 100)
SCORES: Any = {
    "measures": {"EM": EM},
    "subsets": {"numeric": {"questions": 3, "measures": {"EM": EM | {"value": 33.0}}}},
}


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [
        (Expected("EM", 36.2, 0.5), OK),
        (Expected("EM", 36.0, 0), OK),
        (Expected("EM", 39.0, 1.0), NEAR),
        (Expected("EM", 41.0, 1.0), OFF),
        (Expected("numeric.EM", 33.0), OK),
        (Expected("numeric.F1", 50.0, 99), OFF),
        (Expected("gold_read.EM", 50.0, 99), OFF),
        (Expected("F1", 90.0, 0, retired="text-davinci-003"), RETIRED),
        (Expected("EM", 36.0, 0, retired="text-davinci-003", other_set="1,301 questions"), RETIRED),
        (Expected("EM", 36.0, 0, other_set="3,993 questions"), OTHER_SET),
        (Expected("EM", 90.0, 0, other_set="3,993 questions"), OTHER_SET),
    ],
)
def test_the_verdict_is_ok_in_tolerance_near_in_the_interval_else_off(expected, wanted):
    assert verdict(SCORES, expected) == wanted


def test_a_score_at_the_edge_of_its_tolerance_is_ok():
    scores: Any = {"measures": {"EM": EM | {"value": 60.2410}}, "subsets": {}}
    assert verdict(scores, Expected("EM", 60.34, 0.1)) == OK
    assert verdict(scores, Expected("EM", 60.35, 0.1)) == OFF


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ({"questions": 8, "of": 83, "not_asked": 0}, PART),
        ({"questions": 83, "of": 83, "not_asked": 3}, PART),
        ({"questions": 83, "of": 83, "not_asked": 0}, OFF),
    ],
)
def test_a_part_of_the_split_has_no_verdict(counts, wanted):
    assert verdict(SCORES | counts, Expected("EM", 90.0)) == wanted


@given(
    st.lists(
        st.builds(
            Expected,
            st.sampled_from(["EM", "F1", "numeric.EM"]),
            NUMBERS,
            NUMBERS,
            *[st.text()] * 3,
        )
    )
)
def test_expected_values_survive_the_way_into_a_file_and_back(expected):
    in_order = sorted(expected, key=lambda score: score.measure)
    assert parse_expected(expected_sections(tuple(in_order)), "x.toml", BY) == tuple(in_order)


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"EM": {"value": float("nan")}}, "'value': wanted a number, found"),
        ({"EM": {}}, "'value' is missing; wanted a number"),
        ({"EM": 3}, "wanted a section, found 3"),
        ({"EM": {"value": 1, "tolerence": 1}}, "'tolerence'; did you mean 'tolerance'"),
        ({"EM": {"value": 1, "tolerance": -1}}, "'tolerance': wanted a number from 0, found -1"),
        ({"numerc.EM": {"value": 1}}, "subset 'numerc'; did you mean 'numeric'"),
        (["EM"], "wants a section for each measure"),
    ],
)
def test_an_invalid_expected_value_raises_an_error_that_names_it(tables, complaint):
    with pytest.raises(IfqaError, match=complaint):
        parse_expected(tables, "x.toml", BY)


def test_a_prefix_is_a_declared_subset_unless_the_benchmark_has_groups():
    grouped = replace(BY, groups="dataset")
    parts = {"macro.EM": {"value": 1}, "some set.EM": {"value": 2}, "numeric.EM": {"value": 3}}
    assert [score.measure for score in parse_expected(parts, "x.toml", grouped)] == list(parts)
    with pytest.raises(IfqaError, match="subset 'macro'"):
        parse_expected(parts, "x.toml", BY)


def test_measures_of_groups_and_of_the_macro_average_are_found():
    means = {
        name: {"measures": {"EM": EM | {"value": value}}}
        for name, value in (("a", 1.0), ("b.c", 2.0))
    }
    grouped: Any = {
        "measures": {},
        "subsets": {},
        "groups": means,
        "macro": {"measures": {"EM": EM | {"value": 1.5}}},
    }
    found = [find_score(grouped, f"{part}.EM") for part in ("a", "b.c", "macro")]
    assert [score and score["value"] for score in found] == [1.0, 2.0, 1.5]
    assert find_score(grouped, "c.EM") is None
