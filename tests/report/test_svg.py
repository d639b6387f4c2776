"""Figures as SVG: curves with their points, labels, and limits of the axis."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from ifqa.report.svg import RECALL, RELIABILITY, RISK, Curve, curves_svg

SVG = "{http://www.w3.org/2000/svg}"
KS = (1, 5, 10, 20, 50, 100)


def curve(label, start):
    return Curve(
        label,
        tuple((k, start + 3 * n, start + 3 * n - 2, start + 3 * n + 2) for n, k in enumerate(KS)),
    )


def figure_of(*curves, title="Recall"):
    return ElementTree.fromstring(curves_svg(title, curves, RECALL))


def lines(figure):
    return [
        [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        for line in figure.iter(f"{SVG}polyline")
    ]


def texts(figure):
    return [element.text for element in figure.iter(f"{SVG}text")]


def test_points_are_placed_by_their_numbers():
    figure = figure_of(curve("one", 50), curve("two", 60))
    first, second = lines(figure)
    assert len(first) == len(second) == len(KS)
    assert all(a < b for (a, _), (b, _) in pairwise(first))
    assert all(above < below for (_, below), (_, above) in zip(first, second, strict=True))
    steps = [b - a for (a, _), (b, _) in pairwise(first)]
    assert steps[1] == pytest.approx(steps[2], abs=0.2)  # 5 to 10 and 10 to 20 are each a doubling
    assert steps[1] == pytest.approx(steps[4], abs=0.2)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(2, 3, range(0, 21, 5)), (5, 97, range(0, 101, 20)), (41, 95, range(40, 101, 10))],
)
def test_the_axis_fits_the_scores(low, high, ticks):
    figure = figure_of(Curve("x", ((1, low, low, low), (5, high, high, high))))
    shown = [text for text in figure.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert sorted(int(text.text) for text in shown) == [*ticks]


def figure_of_twelve():
    return figure_of(*(curve(f"system {n}", 40 + n) for n in range(12)))


def test_twelve_curves_differ_in_style():
    lines = figure_of_twelve().iter(f"{SVG}polyline")
    styles = {(line.get("stroke"), line.get("stroke-dasharray")) for line in lines}
    assert len(styles) == 12


def test_twelve_curves_have_their_labels():
    assert {f"system {n}" for n in range(12)} <= set(texts(figure_of_twelve()))


HOSTILE = '</title><script>alert(1)</script> & "]]>" <!-- a name that has no end at all'


def hostile_figure():
    return figure_of(curve(HOSTILE, 50), title=HOSTILE)


def test_labels_are_escaped():
    figure = hostile_figure()
    contents = ["".join(element.itertext()) for element in figure.iter()]
    assert contents.count(HOSTILE) >= 3  # the title, the heading, the label's own title
    assert not list(figure.iter(f"{SVG}script"))
    assert {name for element in figure.iter() for name in element.attrib}.isdisjoint(
        {"style", "onload", "href"}
    )


def test_a_long_label_is_whole_over_several_lines():
    shown = "".join(texts(hostile_figure()))
    assert HOSTILE.replace(" ", "") in shown.replace(" ", "")


def test_a_figure_grows_with_its_labels():
    few, many = (
        figure_of(*(curve(f"{'long-' * 20}{n}", 40) for n in range(count))) for count in (3, 20)
    )
    assert [few.get("height"), many.get("viewBox").split()[3]] == ["400", many.get("height")]
    heights = [float(text.get("y")) for text in many.iter(f"{SVG}text")]
    assert 400 < max(heights) <= float(many.get("height"))


def test_the_description_for_screen_readers_has_the_numbers():
    figure = figure_of(curve("BM25", 50))
    assert figure.get("role") == "img"
    contents = {element.get("id"): element.text for element in figure if element.get("id")}
    assert sorted(figure.get("aria-labelledby").split()) == sorted(contents)
    assert any("BM25: 50.0 at 1, 53.0 at 5" in text for text in contents.values())
    assert figure_of(curve("DPR", 50)).get("aria-labelledby") != figure.get("aria-labelledby")


def test_risk_is_drawn_on_even_axes():
    risks = tuple((float(n), n / 2, n / 4, n / 1.5) for n in range(5, 101, 5))
    figure = ElementTree.fromstring(curves_svg("Risk", [Curve("span", risks)], RISK))
    (line,) = lines(figure)
    for axis in (0, 1):
        steps = [b[axis] - a[axis] for a, b in pairwise(line)]
        assert steps == pytest.approx(steps[:1] * 19, abs=0.2)
    ticks = [text.text for text in figure.iter(f"{SVG}text") if text.get("text-anchor") == "middle"]
    assert ticks == [
        "0",
        "20",
        "40",
        "60",
        "80",
        "100",
        "coverage, % of the questions, the surest first",
    ]


def test_a_well_calibrated_curve_lies_on_the_diagonal():
    bins = tuple((n, n, n - 5, n + 5) for n in (10.0, 50.0, 90.0))
    figure = ElementTree.fromstring(curves_svg("EM", [Curve("span", bins)], RELIABILITY))
    (path,) = [
        element.get("d")
        for element in figure.iter(f"{SVG}path")
        if element.get("stroke-dasharray") == "4 4"
    ]
    assert path is not None
    (x, y), (to_x, to_y) = (map(float, end.split()) for end in path[1:].split("L"))
    for at, height in lines(figure)[0]:
        assert height == pytest.approx(y + (at - x) / (to_x - x) * (to_y - y), abs=0.2)
    assert "span: 10.0 at 10, 50.0 at 50, 90.0 at 90" in "".join(figure.itertext())


def test_a_figure_without_points_is_refused():
    for curves in ([], [Curve("empty", ())]):
        with pytest.raises(ValueError, match="at least one curve"):
            curves_svg("Recall", curves, RECALL)
