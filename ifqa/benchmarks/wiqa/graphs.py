"""Influence graphs (Tandon et al., EMNLP 2019): nodes with their phrasings, signed edges, the chains between nodes, and a reader.

Graphs are JSON lines in two layouts. The nodes X, Y, W and U lie within the paragraph.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from ifqa.errors import IfqaError, unknown
from ifqa.storage.files import field, known_keys, read_jsonl, text_field, texts_field, unicode_text

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


class Edge(NamedTuple):
    """An influence: `sign` 1 if more of the source means more of the target, -1 if it means less."""

    source: str
    target: str
    sign: int


class Chain(NamedTuple):
    """A path through a graph: its nodes, and the product of its edges' signs."""

    nodes: tuple[str, ...]
    sign: int

    @property
    def hops(self) -> int:
        """Number of edges; `path_len` of the release counts the nodes instead."""
        return len(self.nodes) - 1


@dataclass(frozen=True)
class Graph:
    """An influence graph of one paragraph.

    Attributes:
        id, paragraph_id: as released.
        prompt: the question that the process answers ("How do forests form?").
        paragraph: the text of the process; its sentences end in ". ".
        nodes: name -> phrasings, one at least.
        edges: the influences; they have no cycle, and all paths between two nodes have the same sign.
        outside: the nodes that the paragraph does not tell of.
        outcome: the nodes of the outcome: more of it, less of it.
    """

    id: str
    paragraph_id: str
    prompt: str
    paragraph: str
    nodes: Mapping[str, tuple[str, ...]]
    edges: tuple[Edge, ...]
    outside: tuple[str, ...]
    outcome: tuple[str, ...]

    @property
    def steps(self) -> list[str]:
        """The sentences of the paragraph, cut as in the release's `para_steps`: at ". ", so a last one may be empty."""
        return self.paragraph.split(". ") if self.paragraph.strip() else []

    @property
    def usable(self) -> bool:
        """Whether something leads to the outcome. Workers marked other graphs as without effect."""
        return any(edge.target in self.outcome for edge in self.edges)

    @cached_property
    def changes(self) -> list[str]:
        """Every phrasing of every node that is no outcome."""
        return [text for name, texts in self.nodes.items() if name not in self.outcome for text in texts]

    @cached_property
    def chains(self) -> dict[tuple[str, str], Chain]:
        """(source, target) -> a shortest path between them, for all nodes that a path connects."""
        after: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        for edge in self.edges:
            after[edge.source].append(edge)
        chains: dict[tuple[str, str], Chain] = {}
        for start in self.nodes:
            layer = {start: Chain((start,), 1)}
            while layer:
                farther: dict[str, Chain] = {}
                for chain in layer.values():
                    for edge in after[chain.nodes[-1]]:
                        if (start, edge.target) not in chains:
                            longer = Chain((*chain.nodes, edge.target), chain.sign * edge.sign)
                            chains[start, edge.target] = farther[edge.target] = longer
                layer = farther
        return chains

    def named(self, text: str) -> list[str]:
        """The nodes with this phrasing, compared by their letters alone, as in AllenAI's `lookup_node_from_grounding`."""
        return [name for name, known in self._letters.items() if letters(text) in known]

    def says(self, text: str) -> bool:
        """Whether a node has this phrasing, compared in the same way."""
        return letters(text) in self._all_letters

    @cached_property
    def _letters(self) -> dict[str, set[str]]:
        return {name: set(map(letters, texts)) for name, texts in self.nodes.items()}

    @cached_property
    def _all_letters(self) -> set[str]:
        return set().union(*self._letters.values())


@lru_cache(maxsize=1 << 17)  # no-effect questions compare every phrasing with every graph
def letters(text: str) -> str:
    """The letters of a text, in lower case: two phrasings with the same letters are the same."""
    return re.sub(r"[\W\d_]+", "", text.lower())


def locate(graph: Graph, change: str, effect: str, path_len: int) -> tuple[str, str]:
    """The nodes of a released question's change and effect; ("", "") if none fit, or if several do.

    Args:
        graph: the question's graph.
        change, effect: the two parts of its stem.
        path_len: as released: nodes of the path. 0 if the change comes from another paragraph: its node is then empty.
    """
    if not path_len:
        targets = graph.named(effect)
        return ("", targets[0]) if len(targets) == 1 else ("", "")
    pairs = [(source, target) for source in graph.named(change) for target in graph.named(effect)]
    fitting = [pair for pair in pairs if pair in graph.chains and len(graph.chains[pair].nodes) == path_len]
    return fitting[0] if len(fitting) == 1 else ("", "")


class _WithId(Protocol):
    @property
    def id(self) -> str: ...


_Row = TypeVar("_Row", bound=_WithId)


def read_each(path: Path, what: str, key: str, read: Callable[[Mapping[str, Any], str], _Row]) -> dict[str, _Row]:
    """Id -> what a file of JSON lines has, in the file's order.

    Args:
        path: the file.
        what: a line holds, for messages.
        key: of the id, for messages.
        read: makes it of a record and its place, "file:line".

    Raises:
        IfqaError: the file is missing or empty, two lines have one id, or `read` refuses a line.
    """
    rows: dict[str, _Row] = {}
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        row = read(record, where)
        if row.id in rows:
            raise IfqaError(f"{where}: {key} {row.id!r} is there twice; give each {what} its own")
        rows[row.id] = row
    if not rows:
        raise IfqaError(f"{path}: no {what} in it; wanted one a line, as JSON")
    return rows


def read_graphs(path: Path) -> dict[str, Graph]:
    """Id -> graph, in the file's order; JSON lines in either layout.

    Raises:
        IfqaError: the file is missing, or a line is not as above; the message begins with file:line.
    """
    return read_each(path, "graph", "graph_id", read_graph)


def read_graph(record: Mapping[str, Any], where: str) -> Graph:
    """A graph from a record in either layout.

    Raises:
        IfqaError: the record is not as above, or its edges are no influence graph; `where` opens the message.
    """
    free = "edges" in record or "nodes" in record
    known_keys(record, _FREE_KEYS if free else _KEYS, where)
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
    there = {name: texts for name, texts in nodes.items() if texts}
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
    if empty := next((name for name, texts in nodes.items() if not texts or not name.strip()), None):
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
    order = TopologicalSorter({name: [edge.source for edge in edges] for name, edges in before.items()})
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
            for start, ways in signs[edge.source].items():
                signs[name].setdefault(start, set()).update(edge.sign * sign for sign in ways)
        if torn := next((start for start, ways in signs[name].items() if len(ways) > 1), None):
            raise IfqaError(f"{where}: two paths from {torn} to {name} have opposite signs; wanted one answer")
