"""The figures of the page, as SVG: curves over an axis, with 95% intervals.

Text and axes take the colour of the surrounding text, so that they fit dark pages. Curves differ in
marker as well as colour. A screen reader reads the title and the numbers. There is no script or
style sheet, and the same numbers give the same bytes.
"""

import hashlib
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from ifqa.formatting import one_decimal

#: Contrast of 3:1 on white and on dark pages; Okabe and Ito's hues, distinct for the colour-blind.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5699a", "#a87400", "#757b82")
DASHES = ("", "7 3", "2 3")  # of the first six curves, the next six, and all others

_WIDTH, _HEIGHT = 640, 400
# margins of curves, in pixels
_LEFT = 40
_RIGHT = 226
_TOP = 46
_BOTTOM = 50
_LABEL_GAP, _LEAST_GAP = 17, 13  # pixels between two lines of labels
_LONGEST = 28  # characters of a line of a label
_AXIS = 'fill="none" stroke="currentColor"'

Point = tuple[float, float, float, float]  # x; a score in percent and the ends of its 95% interval


@dataclass(frozen=True)
class Curve:
    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Axis:
    label: str
    point: str  # what x is called in a point's tooltip
    about: str  # the figure's text alternative for screen readers
    ticks: tuple[float, ...] = ()  # empty for a tick at each point of a logarithmic axis
    diagonal: bool = False  # whether the figure has the line x = y


_PERCENTS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
_FIFTEENTH = "mean confidence of a fifteenth of the questions"
_RISK = "Wrong answers in percent among the surest questions at each coverage"
RECALL = Axis("K, passages", "K", "Recall in percent at K passages")
RISK = Axis("coverage, % of the questions, the surest first", "coverage", _RISK, _PERCENTS)
RELIABILITY = Axis(
    f"{_FIFTEENTH}, %",
    "confidence",
    f"Right answers in percent at each {_FIFTEENTH}",
    _PERCENTS,
    True,
)


def curves_svg(title: str, curves: Sequence[Curve], axis: Axis) -> str:
    """An SVG of labelled curves with whiskers for their 95% intervals.

    From the 19th curve on, styles repeat.

    Raises:
        ValueError: there is no curve, or a curve has no points.
    """
    if not curves or not all(curve.points for curve in curves):
        raise ValueError(f"figure {title!r}: wanted at least one curve, and points in each")
    points = [point for curve in curves for point in curve.points]
    ticks = axis.ticks or tuple(sorted({point[0] for point in points}))
    levels = (
        range(0, 101, 20)
        if axis.diagonal
        else _percents(end for point in points for end in point[2:])
    )
    low = levels[0]
    high = levels[-1]
    left = _LEFT
    right = _WIDTH - _RIGHT
    bottom = _HEIGHT - _BOTTOM
    # Pixels between two curves' points, so that no whisker hides another
    spacing = min(3.5, 30 / len(curves))

    def x(at: float) -> float:
        first, last, at = (
            tick if axis.ticks else math.log2(tick) for tick in (ticks[0], ticks[-1], at)
        )
        return (
            left
            + 18
            + ((at - first) / (last - first) if last > first else 0.5) * (right - left - 36)
        )

    def y(score: float) -> float:
        return bottom - (score - low) / (high - low) * (bottom - _TOP)

    parts = [_text(left, 38, "%", more=' font-size="11" fill-opacity=".7"')]
    for tick in levels:
        faint = 1 if tick == low else 0.15
        parts.append(f'<path d="M{left} {y(tick):.1f}H{right}" {_AXIS} stroke-opacity="{faint}"/>')
        parts.append(_text(left - 8, y(tick) + 4, f"{tick:g}", "end"))
    if axis.diagonal:
        ends = "L".join(f"{x(tick):.1f} {y(tick):.1f}" for tick in (ticks[0], ticks[-1]))
        parts.append(f'<path d="M{ends}" {_AXIS} stroke-opacity=".4" stroke-dasharray="4 4"/>')
    for at in ticks:
        parts.append(
            f'<path d="M{x(at):.1f} {bottom}v5" '
            f"{_AXIS}/>{_text(x(at), bottom + 19, f'{at:g}', 'middle')}"
        )
    parts.append(_text((left + right) / 2, bottom + 38, axis.label, "middle"))
    labels = [textwrap.wrap(curve.label, _LONGEST) or [""] for curve in curves]
    gap = max(_LEAST_GAP, min(_LABEL_GAP, (bottom - _TOP) / sum(map(len, labels))))
    # By last points
    ranks = sorted(range(len(curves)), key=lambda number: -curves[number].points[-1][1])
    rows = dict(
        zip(ranks, accumulate((len(labels[number]) for number in ranks), initial=0), strict=False)
    )
    for number, curve in enumerate(curves):
        shift = (number - (len(curves) - 1) / 2) * spacing
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[min(number // len(COLOURS), len(DASHES) - 1)]
        look = f' stroke-dasharray="{dash}"' if dash else ""
        line = " ".join(f"{x(at) + shift:.1f},{y(score):.1f}" for at, score, _, _ in curve.points)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.75"{look}/>'
        )
        for at, score, least, most in curve.points:
            spread = f"{one_decimal(least)} to {one_decimal(most)}"
            description = f"{curve.label}, {axis.point} = {at:g}: {one_decimal(score)} ({spread})"
            whisker = f"M{x(at) + shift:.1f} {y(most):.1f}V{y(least):.1f}"
            parts.append(
                f'<path d="{whisker}" stroke="{colour}" stroke-opacity=".55" fill="none"/>'
            )
            marker = _marker(number, x(at) + shift, y(score))
            parts.append(f"<g><title>{escape(description)}</title>{marker}</g>")
        height = _TOP + 8 + rows[number] * gap
        sample = (
            f'<path d="M{right + 12} {height:.1f}h20" stroke="{colour}" stroke-width="1.75"{look}/>'
        )
        lines = enumerate(labels[number])
        text = "".join(
            _text(right + 38, height + 4 + n * gap, line, more=' font-size="11.5"')
            for n, line in lines
        )
        marker = _marker(number, right + 22, height)
        parts.append(f"<g><title>{escape(curve.label)}</title>{sample}{marker}{text}</g>")
    numbers = []
    for curve in curves:
        numbers.append(
            f"{curve.label}: "
            + ", ".join(f"{one_decimal(score)} at {at:g}" for at, score, _, _ in curve.points)
        )
    whole = max(_HEIGHT, math.ceil(_TOP + 8 + sum(map(len, labels)) * gap))
    return _document(title, f"{axis.about}. {'. '.join(numbers)}.", curves, parts, whole)


def _document(
    title: str, about: str, curves: Sequence[Curve], parts: Iterable[str], height: int
) -> str:
    """The SVG element with its title, its description for screen readers, and its heading."""
    name = (
        "figure-"
        + hashlib.sha256(repr((title, curves)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" '
        f'role="img" aria-labelledby="{name}-title {name}-desc" font-family="system-ui, '
        'Helvetica, Arial, sans-serif" '
        'font-size="12" color="currentColor">'
    )
    texts = (
        f'<title id="{name}-title">{escape(title)}</title>\n<desc '
        f'id="{name}-desc">{escape(about)}</desc>'
    )
    heading = _text(_LEFT, 20, title, more=' font-size="14" font-weight="600"')
    return "\n".join([head, texts, heading, *parts, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str = "", more: str = "") -> str:
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}"{anchored}{more} fill="currentColor">{escape(text)}</text>'
    )


def _percents(ends: Iterable[float]) -> range:
    """The ticks of an axis in percent, whose ends are at least 20 apart and around all
    intervals.
    """
    ends = list(ends)
    least = max(0.0, min(ends))
    most = min(100.0, max(ends))
    for step in (5, 10, 20):
        low = math.floor(least / step) * step
        high = math.ceil(most / step) * step
        low = min(low, max(0, high - 20))
        high = max(high, low + 20)
        if high - low <= 6 * step:
            break
    return range(low, high + 1, step)


def _marker(number: int, x: float, y: float) -> str:
    """One of six shapes; filled for the first six curves, hollow from then on."""
    colour = COLOURS[number % len(COLOURS)]
    fill = f'fill="{colour}"' if number < len(COLOURS) else 'class="hollow" fill="none"'
    shapes = (
        f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",  # circle
        f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z",  # square
        f"M{x:.1f} {y - 4.8:.1f}l4.6 8h-9.2z",  # triangle
        f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",  # diamond
        f"M{x:.1f} {y + 4.8:.1f}l4.6 -8h-9.2z",  # triangle on its tip
        f"M{x - 4.6:.1f} {y - 1.6:.1f}h3v-3h3.2v3h3v3.2h-3v3h-3.2v-3h-3z",  # cross
    )
    return f'<path d="{shapes[number % len(shapes)]}" {fill} stroke="{colour}" stroke-width="1.4"/>'
