"""Small SVG figures for HTML pages and for print: recall at K, risk at a coverage, and EM at a confidence."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ifqa.scoring.summary import Mean, Sureness

#: Contrast of 3:1 on white and on dark pages; Okabe and Ito's hues, distinct for the colour-blind.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5699a", "#a87400", "#757b82")
DASHES = ("", "7 3", "2 3")  # the first six curves, the next six, and all after them

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 226, 46, 50
_LABEL_GAP, _LABEL_LONGEST = 17, 28  # pixels between two labels, characters of one
_AXIS = 'fill="none" stroke="currentColor"'


@dataclass(frozen=True)
class Curve:
    """One system's curve. `points` are (x, value, low, high), the last three in percent; low and high end the 95% interval."""

    label: str
    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True)
class _Axis:
    """The horizontal axis, the whole of it; and what the figure shows, for who cannot see it.

    `ticks` are empty for a tick at each point of a logarithmic axis. `diagonal`: the figure has the line x = y.
    """

    label: str
    point: str
    shows: str
    ticks: tuple[float, ...] = ()
    diagonal: bool = False


_K = _Axis("K, passages", "K", "Recall in percent at K passages")
_PERCENTS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
_COVERAGE = _Axis(
    "coverage, % of the questions, the surest first",
    "coverage",
    "Wrong answers in percent among the surest questions at each coverage",
    _PERCENTS,
)
_CONFIDENCE = _Axis(
    "mean confidence of a fifteenth of the questions, %",
    "confidence",
    "Right answers in percent at each mean confidence of a fifteenth of the questions",
    _PERCENTS,
    diagonal=True,
)


@dataclass(frozen=True)
class _Scale:
    """The position of a place on the horizontal axis and of a percentage, in pixels."""

    ticks: tuple[float, ...]
    low: float
    high: float
    step: int
    axis: _Axis

    def x(self, at: float) -> float:
        first, last, place = (one if self.axis.ticks else math.log2(one) for one in (self.ticks[0], self.ticks[-1], at))
        share = (place - first) / (last - first) if last > first else 0.5
        return _LEFT + 18 + share * (_WIDTH - _LEFT - _RIGHT - 36)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (value - self.low) / (self.high - self.low) * (_HEIGHT - _TOP - _BOTTOM)


def recall_curve(label: str, measures: Mapping[str, Mean], name: str) -> Curve | None:
    """The curve of the measures NAME@K in the "measures" of a scores.json; None if there are none."""
    ks = sorted(int(key.partition("@")[2]) for key in measures if key.partition("@")[0] == name and "@" in key)
    points = [(k, measures[f"{name}@{k}"]) for k in ks]
    return Curve(label, tuple((k, one["value"], one["low"], one["high"]) for k, one in points)) if points else None


def risk_curve(label: str, sureness: Sureness) -> Curve:
    """The share of wrong answers among the surest questions, at each coverage; the "sureness" of a scores.json."""
    points = [(one["coverage"], one["value"], one["low"], one["high"]) for one in sureness["risks"]]
    return Curve(label, tuple(points))


def reliability_curve(label: str, sureness: Sureness) -> Curve:
    """EM at the mean confidence of each bin; the "sureness" of a scores.json."""
    return Curve(label, tuple((one["confidence"], one["value"], one["low"], one["high"]) for one in sureness["bins"]))


def recall_svg(title: str, curves: Sequence[Curve]) -> str:
    """An SVG of curves of recall over a logarithmic axis of K, as `_svg` draws them."""
    return _svg(title, curves, _K)


def risk_svg(title: str, curves: Sequence[Curve]) -> str:
    """An SVG of risk-coverage curves, as `_svg` draws them."""
    return _svg(title, curves, _COVERAGE)


def reliability_svg(title: str, curves: Sequence[Curve]) -> str:
    """A reliability diagram, as `_svg` draws it: the nearer a curve is to the diagonal, the better calibrated."""
    return _svg(title, curves, _CONFIDENCE)


def _svg(title: str, curves: Sequence[Curve], axis: _Axis) -> str:
    """An SVG of the curves, with whiskers for their 95% intervals and labels beside them.

    Curves differ in colour, marker and dash, so that the figure reads without colour; from the 19th curve on, looks repeat.
    Text and axes take the colour of the surrounding text. The SVG has no script and no style sheet.

    Raises:
        ValueError: there is no curve, or one without a point.
    """
    if not curves or not all(curve.points for curve in curves):
        raise ValueError(f"figure {title!r}: wanted at least one curve, and points in each")
    ticks = axis.ticks or tuple(sorted({point[0] for curve in curves for point in curve.points}))
    low, high, step = (0.0, 100.0, 20) if axis.diagonal else _limits(curves)
    scale = _Scale(ticks, low, high, step, axis)
    apart = min(3.5, 30 / len(curves))  # pixels between the points of two curves, so that no whisker hides another
    shifts = [(number - (len(curves) - 1) / 2) * apart for number in range(len(curves))]
    drawn = [_curve(n, curve, scale, shift) for n, (curve, shift) in enumerate(zip(curves, shifts, strict=True))]
    name = "figure-" + hashlib.sha256(repr((title, curves)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'role="img" aria-labelledby="{name}-title {name}-desc" font-family="system-ui, Helvetica, Arial, sans-serif" '
        'font-size="12" color="currentColor">'
    )
    titles = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(_description(curves, axis))}</desc>'
    heading = f'<text x="{_LEFT}" y="20" font-size="14" font-weight="600" fill="currentColor">{escape(title)}</text>'
    return "\n".join([head, titles, heading, *_axes(scale), *drawn, *_labels(curves, scale, shifts), "</svg>"])


def _limits(curves: Sequence[Curve]) -> tuple[float, float, int]:
    """The ends of the axis, which include all intervals, within 0 to 100 and at least 20 apart; and the step of the ticks."""
    points = [point for curve in curves for point in curve.points]
    least, most = max(0.0, min(point[2] for point in points)), min(100.0, max(point[3] for point in points))
    for step in (5, 10, 20):
        low, high = math.floor(least / step) * step, math.ceil(most / step) * step
        low = min(low, max(0, high - 20))
        high = max(high, low + 20)
        if high - low <= 6 * step:
            break
    return low, high, step


def _description(curves: Sequence[Curve], axis: _Axis) -> str:
    """Text alternative for screen readers: the numbers."""
    texts = [
        f"{curve.label}: " + ", ".join(f"{value:.1f} at {at:g}" for at, value, _, _ in curve.points) for curve in curves
    ]
    return f"{axis.shows}. {'. '.join(texts)}."


def _axes(scale: _Scale) -> list[str]:
    left, right, bottom = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    lines = [f'<text x="{left}" y="38" font-size="11" fill="currentColor" fill-opacity=".7">%</text>']
    for tick in range(int(scale.low), int(scale.high) + 1, scale.step):
        y = scale.y(tick)
        lines.append(f'<path d="M{left} {y:.1f}H{right}" {_AXIS} stroke-opacity="{1 if tick == scale.low else 0.15}"/>')
        lines.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="currentColor">{tick}</text>')
    if scale.axis.diagonal:
        ends = [f"{scale.x(one):.1f} {scale.y(one):.1f}" for one in (scale.ticks[0], scale.ticks[-1])]
        lines.append(f'<path d="M{ends[0]}L{ends[1]}" {_AXIS} stroke-opacity=".4" stroke-dasharray="4 4"/>')
    for at in scale.ticks:
        x = scale.x(at)
        lines.append(f'<path d="M{x:.1f} {bottom}v5" {_AXIS}/>')
        lines.append(f'<text x="{x:.1f}" y="{bottom + 19}" text-anchor="middle" fill="currentColor">{at:g}</text>')
    middle, label = (left + right) / 2, escape(scale.axis.label)
    lines.append(f'<text x="{middle}" y="{bottom + 38}" text-anchor="middle" fill="currentColor">{label}</text>')
    return lines


def _look(number: int) -> tuple[str, str]:
    """A curve's colour and, as attributes of its line, its dash."""
    dash = DASHES[min(number // len(COLOURS), len(DASHES) - 1)]
    return COLOURS[number % len(COLOURS)], f' stroke-dasharray="{dash}"' if dash else ""


def _curve(number: int, curve: Curve, scale: _Scale, shift: float) -> str:
    colour, dash = _look(number)
    places = [(scale.x(k) + shift, scale.y(value)) for k, value, _, _ in curve.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.75"{dash}/>']
    for (x, y), (k, value, low, high) in zip(places, curve.points, strict=True):
        whisker = f"M{x:.1f} {scale.y(high):.1f}V{scale.y(low):.1f}"
        title = escape(f"{curve.label}, {scale.axis.point} = {k:g}: {value:.1f} ({low:.1f} to {high:.1f})")
        parts.append(f'<path d="{whisker}" stroke="{colour}" stroke-opacity=".55" fill="none"/>')
        parts.append(f"<g><title>{title}</title>{_marker(number, x, y)}</g>")
    return f"<g>{''.join(parts)}</g>"


def _marker(number: int, x: float, y: float) -> str:
    """One of six shapes; filled for the first six curves, hollow from then on."""
    colour, _ = _look(number)
    fill = f'fill="{colour}"' if number < len(COLOURS) else 'class="hollow" fill="none"'
    r = 4
    shapes = (
        f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",  # circle
        f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z",  # square
        f"M{x:.1f} {y - 4.8:.1f}l4.6 8h-9.2z",  # triangle
        f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z",  # diamond
        f"M{x:.1f} {y + 4.8:.1f}l4.6 -8h-9.2z",  # triangle on its tip
        f"M{x - 4.6:.1f} {y - 1.6:.1f}h3v-3h3.2v3h3v3.2h-3v3h-3.2v-3h-3z",  # cross
    )
    return f'<path d="{shapes[number % len(shapes)]}" {fill} stroke="{colour}" stroke-width="1.4"/>'


def _labels(curves: Sequence[Curve], scale: _Scale, shifts: Sequence[float]) -> list[str]:
    """Labels at the right, in the order of the curves' ends, without overlap, each joined to its curve by a line."""
    ends = [scale.y(curve.points[-1][1]) for curve in curves]
    order = sorted(range(len(curves)), key=lambda number: ends[number])
    heights = spread([ends[number] for number in order], _LABEL_GAP, _TOP, _HEIGHT - _BOTTOM + 34)
    lines, left = [], _WIDTH - _RIGHT
    for number, height in zip(order, heights, strict=True):
        (colour, dash), label = _look(number), curves[number].label
        shown = label if len(label) <= _LABEL_LONGEST else label[: _LABEL_LONGEST - 1] + "…"
        x = scale.x(curves[number].points[-1][0]) + shifts[number] + 5
        joined = f"M{x:.1f} {ends[number]:.1f}L{max(x, left):.1f} {ends[number]:.1f}L{left + 12} {height:.1f}"
        lines.append(f'<path d="{joined}" fill="none" stroke="{colour}" stroke-width=".8" stroke-opacity=".5"/>')
        sample = f'<path d="M{left + 12} {height:.1f}h20" stroke="{colour}" stroke-width="1.75"{dash}/>'
        text = f'<text x="{left + 38}" y="{height + 4:.1f}" font-size="11.5" fill="currentColor">{escape(shown)}</text>'
        lines.append(f"<g><title>{escape(label)}</title>{sample}{_marker(number, left + 22, height)}{text}</g>")
    return lines


def spread(wanted: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Rising places between `top` and `bottom`, at least `gap` apart, as near to the wanted places (rising) as possible.

    If there is no room for that, they are closer, at equal distances.
    """
    gap = min(gap, (bottom - top) / max(len(wanted) - 1, 1))
    groups: list[tuple[float, int]] = []  # the first place of a group of labels that touch, and their number
    for place in wanted:
        groups.append((min(max(place, top), bottom), 1))
        while len(groups) > 1 and groups[-2][0] + gap * groups[-2][1] > groups[-1][0]:
            (start, many), (start_after, more) = groups[-2:]
            middle = (start * many + (start_after - gap * many) * more) / (many + more)
            groups[-2:] = [(min(max(middle, top), bottom - gap * (many + more - 1)), many + more)]
    return [start + gap * n for start, many in groups for n in range(many)]
