"""A strict reader of influence graphs, as JSON lines in two layouts.

The released one has a fixed template; this graph is made up:

    {"graph_id": "7", "para_id": "3", "prompt": "How do seeds spread?", "paragraph": "Trees make seeds. Wind carries them.",
     "X": "more seeds are made", "Y": "more seeds are carried off", "W": ["the seeds stay"], "U": ["the wind stops"],
     "Z": ["a good summer", "a wet spring"], "V": [], "para_outcome_accelerate": "MORE new trees?",
     "para_outcome_decelerate": "LESS new trees", "Y_affects_outcome": "more"}

Its edges: X -> Y, Z -> X (+); X -> W, U -> Y, V -> X (-). Y affects the accelerated outcome (A) by `Y_affects_outcome`, the
decelerated one (D) in the opposite way. W is the opposite of Y, so its two edges have the opposite signs (as in AllenAI's
`SituationGraph.from_struct_v1`; the paper shows the case "more"). Z and V lie outside the paragraph. A node is a text or a
list; " [OR] " within a text separates phrasings too, as in machine-made graphs. An empty list is a node that is absent.

The second layout is for graphs of another shape, with names of nodes that are free:

    {"graph_id": "8", "para_id": "3", "paragraph": "...", "nodes": {"rain": ["it rains more"], "more": ["MORE mud"], ...},
     "edges": [["rain", "more", "+"], ["rain", "less", "-"]], "outside": ["rain"], "outcome": ["more", "less"]}
"""

import re
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from ifqa.benchmarks.wiqa.graphs import Edge, Graph
from ifqa.errors import IfqaError, unknown
from ifqa.storage.files import field, read_jsonl, text_field, texts_field, unicode_text

MORE, LESS = "A", "D"  # the names of the two ends of the outcome, as AllenAI's code has them
OUTSIDE = ("Z", "V")
TEMPLATE = (("Z", "X", 1), ("V", "X", -1), ("X", "Y", 1), ("X", "W", -1), ("U", "Y", -1))
_OUTCOMES = {MORE: "para_outcome_accelerate", LESS: "para_outcome_decelerate"}
_NODES = ("Z", "V", "X", "U", "Y", "W")
_AFFECTS = {"more": 1, "a": 1, "less": -1, "d": -1} | dict.fromkeys(("no_effect", "no effect", "none", "-", "."), 0)
_TEXTS = ("graph_id", "para_id", "prompt", "paragraph")
_KEYS = {
    *_TEXTS,
    *_NODES,
    *_OUTCOMES.values(),
    "Y_affects_outcome",
    "Y_is_outcome",
    "para_outcome",
    "is_cyclic_process",
}
_FREE_KEYS = {*_TEXTS, "nodes", "edges", "outside", "outcome"}
_OR = re.compile(r"\s*\[OR\]\s*")
_SIGNS = {"+": 1, "-": -1}
_LARGEST = 100  # nodes of a graph; the checks take time and memory by the square


def read_graphs(path: Path) -> dict[str, Graph]:
    """Id -> graph, in the file's order; JSON lines in either layout.

    Raises:
        IfqaError: the file is missing, or a line is not as above; the message begins with file:line.
    """
    graphs: dict[str, Graph] = {}
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        graph = read_graph(record, where)
        if graph.id in graphs:
            raise IfqaError(f"{where}: graph_id {graph.id!r} is there twice; give each graph its own")
        graphs[graph.id] = graph
    if not graphs:
        raise IfqaError(f"{path}: no graph in it; wanted one a line, as JSON")
    return graphs


def read_graph(record: Mapping[str, Any], where: str) -> Graph:
    """A graph from a record in either layout.

    Raises:
        IfqaError: the record is not as above, or its edges are no influence graph; `where` opens the message.
    """
    free = "edges" in record or "nodes" in record
    known = _FREE_KEYS if free else _KEYS
    if strange := next((key for key in record if key not in known), None):
        raise IfqaError(f"{where}: {unknown('key', strange, known)}")
    graph = (_free if free else _released)(record, where)
    _check(graph, where)
    return graph


def _released(record: Mapping[str, Any], where: str) -> Graph:
    nodes = {name: _phrasings(record, name, where) for name in _NODES}
    for name, key in _OUTCOMES.items():
        if isinstance(record.get(key), list) and len(record[key]) > 1:
            raise IfqaError(f"{where}: {key!r} has two outcomes; wanted one text, its phrasings separated by [OR]")
        nodes[name] = tuple(text.rstrip("?").rstrip() for text in _phrasings(record, key, where))
        if not any(nodes[name]):
            raise IfqaError(f"{where}: {key!r} is empty; wanted the outcome as text")
    affects = _affects(record, where)
    edges = [*TEMPLATE]
    if affects:
        edges += [("Y", MORE, affects), ("Y", LESS, -affects), ("W", MORE, -affects), ("W", LESS, affects)]
    there = {name: own for name, own in nodes.items() if own}
    return Graph(
        *_texts(record, where),
        nodes=there,
        edges=tuple(Edge(*edge) for edge in edges if edge[0] in there and edge[1] in there),
        outside=tuple(name for name in OUTSIDE if name in there),
        outcome=(MORE, LESS),
    )


def _texts(record: Mapping[str, Any], where: str) -> tuple[str, str, str, str]:
    graph_id, para_id = (text_field(record, key, where) for key in ("graph_id", "para_id"))
    prompt, paragraph = (
        unicode_text(field({key: ""} | dict(record), key, str, where), key, where) for key in ("prompt", "paragraph")
    )
    return graph_id, para_id, prompt, paragraph


def _phrasings(record: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """The phrasings of a node: a text or a list of texts, each of which may be several with [OR] between them."""
    value = record.get(key)
    texts = texts_field(record if not isinstance(value, str) else {key: [value] if value else []}, key, where)
    split = (phrasing.strip() for text in texts for phrasing in _OR.split(text))
    return tuple(dict.fromkeys(phrasing for phrasing in split if phrasing))


def _affects(record: Mapping[str, Any], where: str) -> int:
    value = field(record, "Y_affects_outcome", str, where)
    if value.lower() not in _AFFECTS:
        raise IfqaError(f"{where}: 'Y_affects_outcome' is {value!r}; wanted more, less or no_effect")
    return _AFFECTS[value.lower()]


def _free(record: Mapping[str, Any], where: str) -> Graph:
    table = field(record, "nodes", dict, where)
    nodes = {name: _phrasings(table, name, f"{where}: 'nodes'") for name in table}
    if len(nodes) > _LARGEST:
        raise IfqaError(f"{where}: 'nodes' has {len(nodes):,} nodes; wanted {_LARGEST} at most")
    if empty := next((name for name, own in nodes.items() if not own or not name.strip()), None):
        raise IfqaError(f"{where}: node {empty!r} has no text; wanted one phrasing at least, or no such node")
    edges = tuple(_edge(edge, nodes, where) for edge in field(record, "edges", list, where))
    outside, outcome = (texts_field({key: []} | dict(record), key, where) for key in ("outside", "outcome"))
    for name in (*outside, *outcome):
        if name not in nodes:
            raise IfqaError(f"{where}: {unknown('node', name, nodes)}")
    if len(set(outcome)) != 2:
        raise IfqaError(f"{where}: 'outcome' has {len(set(outcome))} nodes; wanted two: more of it, and less of it")
    return Graph(*_texts(record, where), nodes=nodes, edges=edges, outside=outside, outcome=outcome)


def _edge(edge: object, nodes: Mapping[str, object], where: str) -> Edge:
    if not (isinstance(edge, list) and len(edge) == 3 and all(isinstance(one, str) for one in edge)):
        raise IfqaError(f'{where}: an edge is {edge!r}; wanted ["source", "target", "+"] or "-"')
    source, target, sign = edge
    for name in (source, target):
        if name not in nodes:
            raise IfqaError(f"{where}: the edge {source} -> {target} leads to nowhere: {unknown('node', name, nodes)}")
    if sign not in _SIGNS:
        raise IfqaError(f"{where}: the edge {source} -> {target} has the sign {sign!r}; wanted + or -")
    return Edge(source, target, _SIGNS[sign])


def _check(graph: Graph, where: str) -> None:
    """Raise IfqaError for a cycle, and for two paths that contradict each other."""
    before: dict[str, list[Edge]] = {name: [] for name in graph.nodes}
    for edge in graph.edges:
        before[edge.target].append(edge)
    order = TopologicalSorter({name: [edge.source for edge in own] for name, own in before.items()})
    try:
        names: Sequence[str] = [*order.static_order()]
    except CycleError as error:
        raise IfqaError(f"{where}: the edges have a cycle, {' -> '.join(reversed(error.args[1]))}; cut it") from error
    for edge in graph.edges:
        if edge.source in graph.outcome:
            raise IfqaError(
                f"{where}: the edge {edge.source} -> {edge.target} starts at the outcome; wanted it at an end"
            )
    signs: dict[str, dict[str, set[int]]] = {}  # node -> node before it -> the signs of the paths between them
    for name in names:
        signs[name] = {name: {1}}
        for edge in before[name]:
            for start, own in signs[edge.source].items():
                signs[name].setdefault(start, set()).update(edge.sign * sign for sign in own)
        if torn := next((start for start, own in signs[name].items() if len(own) > 1), None):
            raise IfqaError(f"{where}: two paths from {torn} to {name} have opposite signs; wanted one answer")
