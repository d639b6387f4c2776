"""Drawings: well-formed, everything in its place, and texts from outside stay text.

    python tests/benchmarks/wiqa/test_drawing.py

writes the drawing of the docs again.
"""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.benchmarks.wiqa.drawing import draw, figure
from ifqa.benchmarks.wiqa.graphs import read_graph, read_graphs
from ifqa.records import Question
from ifqa.storage.resources import BUNDLED, PACKAGE

GRAPHS = read_graphs(BUNDLED / "wiqa" / "graphs.jsonl")
DOCS = PACKAGE.parent / "docs" / "wiqa-graph.svg"
SVG = "{http://www.w3.org/2000/svg}"


def parsed(drawing):
    return ElementTree.fromstring(drawing)


def words(tree):
    return " ".join(one.text or "" for one in tree.iter(f"{SVG}text"))


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_drawing_shows_each_phrasing_and_each_sign(graph):
    tree = parsed(draw(graph))
    told = words(tree)
    assert all(text in told for own in graph.nodes.values() for text in own)
    assert graph.prompt in told
    assert [one.text for one in tree.iter(f"{SVG}text")].count("−") == 1 + sum(one.sign < 0 for one in graph.edges)


def test_nothing_leaves_the_drawing_and_no_boxes_overlap():
    tree = parsed(draw(GRAPHS["bread-1"]))
    width, height = float(tree.get("width")), float(tree.get("height"))
    boxes = [
        tuple(float(one.get(key)) for key in ("x", "y", "width", "height"))
        for one in tree.iter(f"{SVG}rect")
        if one.get("x")
    ]
    nodes = [box for box in boxes if box[2] > 100]
    assert len(nodes) == 8
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    for n, (x, y, w, h) in enumerate(nodes):
        assert all(x + w <= a or a + c <= x or y + h <= b or b + d <= y for a, b, c, d in nodes[n + 1 :])


def test_the_path_stands_out():
    def shown(tree):
        return [one for one in tree.iter(f"{SVG}g") if one.find(f"{SVG}circle") is not None and not one.get("opacity")]

    def thick(tree):
        return sum(one.get("stroke-width") == "2.6" for one in tree.iter(f"{SVG}rect"))

    graph = GRAPHS["bread-1"]
    plain, path, end = (parsed(draw(graph, *ends)) for ends in ((), ("V", "D"), ("", "Y")))
    assert (len(shown(plain)), thick(plain)) == (9, 0)
    assert (len(shown(path)), thick(path)) == (3, 4)
    assert (len(shown(end)), thick(end)) == (0, 1)


def test_a_question_gets_the_figure_of_its_graph():
    labels = (("graph", "dew-1"), ("source", "V"), ("target", "A"))
    assert figure(Question("q", "?", labels=labels), GRAPHS) == draw(GRAPHS["dew-1"], "V", "A")
    assert figure(Question("q", "?"), GRAPHS) == ""


@given(st.text(min_size=1, max_size=300).filter(str.strip), st.text(max_size=40))
def test_any_text_is_drawn_as_text(text, prompt):
    text = text.encode("utf-8", "replace").decode() + "<script>&]]>"
    record = {
        "graph_id": "g", "para_id": "p", "prompt": prompt.encode("utf-8", "replace").decode(), "paragraph": "",
        "nodes": {text: [text, "b", "c", "d", "e"], "more": ["MORE"], "less": ["LESS"]},
        "edges": [[text, "more", "+"], [text, "less", "-"]], "outcome": ["more", "less"],
    }  # fmt: skip
    tree = parsed(draw(read_graph(record, "x"), text, "less"))
    assert {one.tag.removeprefix(SVG) for one in tree.iter()} == {"svg", "title", "rect", "g", "path", "circle", "text"}
    assert not {
        name for one in tree.iter() for name in one.attrib if name.startswith("on") or "href" in name or name == "id"
    }
    assert "and 1 more" in words(tree)


def test_the_docs_show_the_drawing_of_today():
    assert DOCS.read_text(encoding="utf-8") == draw(GRAPHS["bread-1"], "Z", "A")


if __name__ == "__main__":
    DOCS.write_text(draw(GRAPHS["bread-1"], "Z", "A"), encoding="utf-8")
