"""A small SVG figure for HTML pages: scores as points with their 95% intervals, a row for each system."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ifqa.report.curves import COLOURS

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 214, 52, 66, 46
_GAP, _APART, _LABEL_LONGEST = 12, 11, 29  # pixels between two rows, between two scores of one, characters of a label
_TICKS = 5  # about so many


@dataclass(frozen=True)
class Scored:
    """One system's row: measure -> (value, low, high) in percent; low and high end the 95% interval."""

    label: str
    scores: Mapping[str, tuple[float, float, float]]


def intervals_svg(title: str, rows: Sequence[Scored], measures: Sequence[str]) -> str:
    """An SVG with a row for each system, and in it a point with an interval for each of up to three measures.

    Measures differ in colour and marker, so that the figure reads without colour. The first measure's value stands beside
    its row. Text and axes take the colour of the surrounding text. The SVG has no script and no style sheet.

    Raises:
        ValueError: there is no row, or not one to three measures.
    """
    if not rows or not 1 <= len(measures) <= 3:
        raise ValueError(f"figure {title!r}: wanted at least one row and one to three measures; found {measures}")
    low, high, step = _limits(rows)
    height = _GAP + _APART * max(len(measures), 2)
    bottom = _TOP + height * len(rows)

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    name = "figure-" + hashlib.sha256(repr((title, rows)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + _BOTTOM}" width="{_WIDTH}" '
        f'height="{bottom + _BOTTOM}" role="img" aria-labelledby="{name}-title {name}-desc" '
        'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="12" color="currentColor">',
        f'<title id="{name}-title">{escape(title)}</title>',
        f'<desc id="{name}-desc">{escape(_description(rows, measures))}</desc>',
        f'<text x="0" y="20" font-size="14" font-weight="600" fill="currentColor">{escape(title)}</text>',
    ]
    for number, measure in enumerate(measures):
        at = _LEFT + 6 + number * 96
        parts.append(_marker(number, at, 44))
        parts.append(f'<text x="{at + 11}" y="48" fill="currentColor">{escape(measure)}</text>')
    for tick in range(low, high + 1, step):
        parts.append(f'<path d="M{x(tick):.1f} {_TOP}V{bottom}" stroke="currentColor" stroke-opacity=".15"/>')
        parts.append(
            f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle" fill="currentColor">{tick}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 37}" text-anchor="middle" fill="currentColor">%</text>')
    for number, row in enumerate(rows):
        parts.append(_row(row, measures, _TOP + height * (number + 0.5), x))
    return "\n".join([*parts, "</svg>"])


def _limits(rows: Sequence[Scored]) -> tuple[int, int, int]:
    """The ends of the axis, which include all intervals, within 0 to 100 and at least 20 apart; and the step of its ticks."""
    ends = [end for row in rows for one in row.scores.values() for end in one] or [0.0, 100.0]
    step = next(step for step in (5, 10, 20) if max(ends) - min(ends) <= _TICKS * step or step == 20)
    low = max(0, int(min(ends) // step) * step)
    high = min(100, -int(-max(ends) // step) * step)
    if high - low < 20:
        low, high = max(0, high - 20), max(high, min(100, max(0, high - 20) + 20))
    return low, high, step


def _row(row: Scored, measures: Sequence[str], y: float, x: Callable[[float], float]) -> str:
    shown = row.label if len(row.label) <= _LABEL_LONGEST else row.label[: _LABEL_LONGEST - 1] + "…"
    parts = [
        f'<g><title>{escape(row.label)}</title><text x="{_LEFT - 14}" y="{y + 4:.1f}" text-anchor="end" '
        f'fill="currentColor">{escape(shown)}</text></g>'
    ]
    there = [(number, measure) for number, measure in enumerate(measures) if measure in row.scores]
    for place, (number, measure) in enumerate(there):
        value, low, high = row.scores[measure]
        at = y + (place - (len(there) - 1) / 2) * _APART
        title = escape(f"{row.label}, {measure}: {value:.1f} ({low:.1f} to {high:.1f})")
        whisker = f'<path d="M{x(low):.1f} {at:.1f}H{x(high):.1f}" stroke="{COLOURS[number]}" stroke-width="1.75"/>'
        parts.append(f"<g><title>{title}</title>{whisker}{_marker(number, x(value), at)}</g>")
    if measures[0] in row.scores:
        value = row.scores[measures[0]][0]
        parts.append(
            f'<text x="{_WIDTH}" y="{y + 4:.1f}" text-anchor="end" font-weight="600" fill="currentColor">{value:.1f}</text>'
        )
    return "".join(parts)


def _marker(number: int, x: float, y: float) -> str:
    """A circle, a square or a triangle."""
    shapes = (
        f"M{x - 4.5:.1f} {y:.1f}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z",
        f"M{x:.1f} {y - 5:.1f}l5 9h-10z",
    )
    return f'<path d="{shapes[number]}" fill="{COLOURS[number]}"/>'


def _description(rows: Sequence[Scored], measures: Sequence[str]) -> str:
    """Text alternative for screen readers: the numbers."""
    texts = []
    for row in rows:
        scores = [
            f"{measure} {row.scores[measure][0]:.1f} ({row.scores[measure][1]:.1f} to {row.scores[measure][2]:.1f})"
            for measure in measures
            if measure in row.scores
        ]
        texts.append(f"{row.label}: {', '.join(scores) or 'no score'}")
    return f"Scores in percent with 95% intervals. {'. '.join(texts)}."
