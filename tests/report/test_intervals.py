"""Scores as points with intervals, as SVG."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.report.intervals import Scored, intervals_svg

SVG = "{http://www.w3.org/2000/svg}"
SHARES = st.floats(0, 100)
ROWS = st.lists(st.lists(SHARES, min_size=3, max_size=3).map(sorted), min_size=1, max_size=5)


def texts(figure):
    return [one.text for one in figure.iter(f"{SVG}text")]


@given(ROWS)
def test_every_interval_lies_within_the_figure_and_the_ticks_around_it(values):
    rows = [Scored(f"row {n}", {"EM": (middle, low, high)}) for n, (low, middle, high) in enumerate(values)]
    figure = ElementTree.fromstring(intervals_svg("Scores", rows, ["EM"]))
    ticks = [int(one) for one in texts(figure) if one.isdigit()]
    assert ticks[0] <= min(low for low, _, _ in values)
    assert ticks[-1] >= max(high for _, _, high in values)
    assert 0 <= ticks[0] < ticks[-1] <= 100
    whiskers = [one.get("d") for one in figure.iter(f"{SVG}path") if one.get("stroke-width")]
    assert len(whiskers) == len(values)
    for path in whiskers:
        left, right = (float(one.split(" ")[0]) for one in path[1:].split("H"))
        assert 200 <= left <= right <= 640


def test_each_measure_has_a_legend_and_the_first_its_value():
    rows = [Scored("mine <b>", {"EM": (41.6, 38.0, 45.1), "F1": (50.0, 46.0, 54.0)}), Scored("other", {})]
    svg = intervals_svg("EM and F1", rows, ["EM", "F1"])
    figure = ElementTree.fromstring(svg)
    assert [one for one in texts(figure) if one in ("EM", "F1", "mine <b>", "other", "41.6")] == [
        "EM", "F1", "mine <b>", "41.6", "other",
    ]  # fmt: skip
    description = figure.find(f"{SVG}desc").text
    assert "mine <b>: EM 41.6 (38.0 to 45.1), F1 50.0 (46.0 to 54.0). other: no score." in description
    assert "<b>" not in svg


def test_a_figure_without_rows_or_measures_is_refused():
    with pytest.raises(ValueError, match="at least one row"):
        intervals_svg("Scores", [], ["EM"])
    with pytest.raises(ValueError, match="one to three measures"):
        intervals_svg("Scores", [Scored("a", {})], [])
