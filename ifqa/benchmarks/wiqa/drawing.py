"""An influence graph as SVG: the change at the top, the outcome at the bottom, each influence with its sign.

The drawing has its own light ground, so it can be read on a light and on a dark page. It has no style sheet, script, link or id,
so several fit into one page. Texts are escaped.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from ifqa.benchmarks.wiqa.graphs import Edge, Graph
from ifqa.progress import printable_line
from ifqa.records import Question

WIDTH, GAP, RISE = 250, 36, 62  # pixels: of a node, between two, and between two levels
_MARGIN, _LINE, _SIZE = 24, 17, 13  # pixels: around the drawing, of a line, of its letters
_LINES, _PHRASINGS = 5, 4  # shown of a phrasing, and of a node
_INK, _MUTED = "#1c2024", "#5d656e"
_MORE, _LESS = "#1a6e43", "#b02a1f"
_FILLS = {"inside": "#e8f0fa", "outside": "#fdf3dc", "outcome": "#eceef0"}
_FAINT = ' opacity="0.3"'
_FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


class _Box(NamedTuple):
    x: int
    y: int
    height: int
    lines: list[str]

    @property
    def middle(self) -> int:
        return self.x + WIDTH // 2


def figure(question: Question, graphs: Mapping[str, Graph]) -> str:
    """The graph of a question, with the question's path; empty if there is none of the name in the label "graph".

    The labels "source" and "target" name the ends of the path. A question without source has no effect: its target is marked.
    """
    graph = graphs.get(question.label("graph"))
    return draw(graph, question.label("source"), question.label("target")) if graph else ""


def draw(graph: Graph, source: str = "", target: str = "") -> str:
    """SVG of a graph; with a source and a target, the path between them stands out.

    Args:
        graph: the graph.
        source, target: names of nodes; empty, or unknown, for none.
    """
    chain = graph.chains.get((source, target))
    path = chain.nodes if chain else (target,) if target in graph.nodes else ()
    levels = _levels(graph)
    width = max(max(map(len, levels)) * (WIDTH + GAP) - GAP, 2 * WIDTH + GAP) + 2 * _MARGIN
    head = _wrapped(graph.prompt or f"Graph {graph.id}", width - 2 * _MARGIN, 17, 2)
    boxes, bottom = _boxes(graph, levels, width, _MARGIN + 24 * len(head) + 10)
    height = bottom + 60
    steps = {*pairwise(path)}
    edges = sorted(graph.edges, key=lambda edge: (edge.source, edge.target) in steps)  # the path lies on top
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'font-family="{_FONT}" font-size="{_SIZE}" text-anchor="middle" fill="{_INK}">',
        f"<title>{escape(' '.join(head))}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        *(_text(width // 2, 36 + 24 * n, line, 'font-size="17" font-weight="600"') for n, line in enumerate(head)),
        *(_edge(edge, graph, boxes, not path or (edge.source, edge.target) in steps) for edge in edges),
        *(_node(name, graph, box, path) for name, box in boxes.items()),
        _legend(height - 22),
        "</svg>",
    ]
    return "\n".join(parts)


def _clean(text: str) -> str:
    return printable_line(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def _levels(graph: Graph) -> list[list[str]]:
    """The nodes by their longest way to an end, the farthest first; in a level so that few edges cross."""
    after: dict[str, list[str]] = {name: [] for name in graph.nodes}
    before: dict[str, list[str]] = {name: [] for name in graph.nodes}
    for edge in graph.edges:
        after[edge.source].append(edge.target)
        before[edge.target].append(edge.source)
    depth: dict[str, int] = {}
    waiting = list(graph.nodes)
    while waiting:  # the graph has no cycle
        ready = [name for name in waiting if all(other in depth for other in after[name])]
        depth |= {name: max((depth[other] + 1 for other in after[name]), default=0) for name in ready}
        waiting = [name for name in waiting if name not in depth]
    levels = [[name for name in graph.nodes if depth[name] == n] for n in range(max(depth.values()), -1, -1)]
    place: dict[str, float] = {}
    for level in levels:
        wanted = {name: fmean(place[other] for other in before[name]) if before[name] else 1.0 for name in level}
        level.sort(key=lambda name: wanted[name])
        place |= {name: (n + 0.5) / len(level) for n, name in enumerate(level)}
    return levels


def _boxes(graph: Graph, levels: Sequence[Sequence[str]], width: int, top: int) -> tuple[dict[str, _Box], int]:
    boxes: dict[str, _Box] = {}
    for level in levels:
        left = (width - len(level) * (WIDTH + GAP) + GAP) // 2
        texts = {name: _lines(graph.nodes[name]) for name in level}
        height = max(map(len, texts.values())) * _LINE + 28
        boxes |= {name: _Box(left + n * (WIDTH + GAP), top, height, texts[name]) for n, name in enumerate(level)}
        top += height + RISE
    return boxes, top - RISE


def _lines(phrasings: Sequence[str]) -> list[str]:
    """The phrasings in lines, "or" before each but the first; long ones are cut."""
    lines: list[str] = []
    for n, phrasing in enumerate(phrasings[:_PHRASINGS]):
        lines += _wrapped(phrasing if n == 0 else f"or {phrasing}", WIDTH - 24, _SIZE, _LINES)
    left = len(phrasings) - _PHRASINGS
    return [*lines, f"and {left} more"] if left > 0 else lines


def _wrapped(text: str, width: int, size: int, most: int) -> list[str]:
    """The text in lines of at most `width` pixels, by the rough widths of its letters; "…" ends one that is cut."""
    room = width / size
    lines, used = [""], 0.0
    for char in _clean(text)[: int(room * 4 * most)]:  # four of the narrowest letters take the room of one
        wide = _width(char)
        if used + wide > room:
            kept, blank, rest = lines[-1].rpartition(" ")
            lines[-1:] = [kept, rest] if blank else [lines[-1], ""]
            used = sum(map(_width, lines[-1]))
        lines[-1] += char
        used += wide
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1] + " …"]
    return lines


def _width(char: str) -> float:
    """The rough width of a character, in its size."""
    if unicodedata.east_asian_width(char) in "WF":
        return 1.05
    return 0.32 if char in "iljtfrI.,:;'!|()[] " else 1.0 if char in "mwMW@%" else 0.74 if char.isupper() else 0.6


def _kind(name: str, graph: Graph) -> str:
    return "outcome" if name in graph.outcome else "outside" if name in graph.outside else "inside"


def _node(name: str, graph: Graph, box: _Box, path: Sequence[str]) -> str:
    kind, on_path = _kind(name, graph), name in path
    stroke = f'stroke="{_INK}" stroke-width="2.6"' if on_path else 'stroke="#8a939c"'
    dashes = ' stroke-dasharray="6 4"' if kind == "outside" else ""
    first = box.y + (box.height - (len(box.lines) - 1) * _LINE) // 2 + 9
    tag = f'font-size="10.5" text-anchor="start" fill="{_MUTED}"'
    return "\n".join(
        [
            "<g>" if on_path or not path else '<g opacity="0.55">',
            f'<rect x="{box.x}" y="{box.y}" width="{WIDTH}" height="{box.height}" rx="6" fill="{_FILLS[kind]}" '
            f"{stroke}{dashes}/>",
            _text(box.x + 8, box.y + 14, _clean(name)[:30], tag),
            *(_text(box.middle, first + n * _LINE, line) for n, line in enumerate(box.lines)),
            "</g>",
        ]
    )


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}"{more and " " + more}>{escape(text, quote=False)}</text>'


def _edge(edge: Edge, graph: Graph, boxes: Mapping[str, _Box], shown: bool) -> str:
    """A curve from the foot of the source to the head of the target, with an arrow and a sign near the arrow."""
    source, target = boxes[edge.source], boxes[edge.target]
    leaving = sorted(
        (other for other in graph.edges if other.source == edge.source), key=lambda other: boxes[other.target].x
    )
    coming = sorted(
        (other for other in graph.edges if other.target == edge.target), key=lambda other: boxes[other.source].x
    )
    x0, y0 = source.middle + _spread(leaving.index(edge), len(leaving)), source.y + source.height
    x1, y1 = target.middle + _spread(coming.index(edge), len(coming)), target.y
    half = (y0 + y1) // 2
    colour, sign, dashes = (_MORE, "+", "") if edge.sign > 0 else (_LESS, "−", ' stroke-dasharray="7 4"')
    x, y = _on_curve(x0, x0, x1, x1), _on_curve(y0, half, half, y1)
    return (
        f'<g stroke="{colour}" fill="{colour}"{"" if shown else _FAINT}>'
        f'<path d="M{x0:.0f} {y0}C{x0:.0f} {half} {x1:.0f} {half} {x1:.0f} {y1 - 7}" fill="none" stroke-width="2"{dashes}/>'
        f'<path d="M{x1 - 5:.0f} {y1 - 9}h10l-5 9z" stroke="none"/>'
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="9" fill="#ffffff" stroke-width="1.5"/>'
        + _text(x, y + 5, sign, 'font-size="15" font-weight="700" stroke="none"')
        + "</g>"
    )


def _on_curve(a: float, b: float, c: float, d: float, t: float = 0.72) -> float:
    """A coordinate of a cubic curve, where its sign stands: nearer to its end, because curves cross in the middle."""
    rest = 1 - t
    return rest**3 * a + 3 * rest**2 * t * b + 3 * rest * t**2 * c + t**3 * d


def _spread(place: int, count: int) -> float:
    """The distance from the middle of a node at which an edge meets it, so that edges lie apart."""
    return (place - (count - 1) / 2) * min(70, (WIDTH - 40) / max(count - 1, 1))


def _legend(y: int) -> str:
    parts, x = [], float(_MARGIN)
    for kind, text in (("inside", "in the paragraph"), ("outside", "outside of it"), ("outcome", "the outcome")):
        dashes = ' stroke-dasharray="4 3"' if kind == "outside" else ""
        box = f'<rect x="{x:.0f}" y="{y - 10}" width="16" height="12" rx="2" fill="{_FILLS[kind]}" stroke="#8a939c"{dashes}/>'
        parts += [box, _text(x + 22, y, text)]
        x += 42 + 6.2 * len(text)
    for sign, colour, text in (("+", _MORE, "more of it"), ("−", _LESS, "less of it")):
        parts += [_text(x, y, sign, f'font-weight="700" fill="{colour}"'), _text(x + 14, y, text)]
        x += 24 + 6.2 * len(text)
    return f'<g font-size="11.5" text-anchor="start" fill="{_MUTED}">{"".join(parts)}</g>'
