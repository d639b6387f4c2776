"""Influence graphs (Tandon et al., EMNLP 2019): nodes with phrasings, signed edges, chains of
edges, and a parser.

Graphs are JSON lines in the released layout, which has a fixed template. An invented example:

    {"graph_id": "7", "para_id": "3", "prompt": "How do seeds spread?", "paragraph": "Trees make
     seeds. Wind carries them.", "X": "more seeds are made", "Y": "more seeds are carried off", "W":
     ["the seeds stay"], "U": ["the wind stops"], "Z": ["a good summer", "a wet spring"], "V": [],
     "para_outcome_accelerate": "MORE new trees?", "para_outcome_decelerate": "LESS new trees",
     "Y_affects_outcome": "more"}

The template's edges are X -> Y, Z -> X (+); X -> W, U -> Y, V -> X (-). `Y_affects_outcome` is the
effect of Y on the accelerated outcome (A); Y's effect on the decelerated outcome (D) is the
opposite. W is the opposite of Y, so its effects have the opposite signs (as in AllenAI's
`SituationGraph.from_struct_v1`; the paper shows only the case "more"). X, Y, W and U are in the
paragraph, Z and V outside. A node's phrasings are a list, or a text in which " [OR] " separates
them. An empty list is an absent node.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from pydantic import Field

from ifqa.errors import FormatError
from ifqa.settings import StrictModel, Text, parse_section
from ifqa.storage.files import read_jsonl

MORE, LESS = OUTCOME = ("A", "D")  # accelerated and decelerated outcome, as in AllenAI's code
OUTSIDE = ("Z", "V")
_TEMPLATE = (("Z", "X", 1), ("V", "X", -1), ("X", "Y", 1), ("X", "W", -1), ("U", "Y", -1))
_AFFECTS = {"more": 1, "a": 1, "less": -1, "d": -1} | dict.fromkeys(
    ("no_effect", "no effect", "none", "-", "."), 0
)
# May be empty; even a limit of 0 makes pydantic refuse lone surrogates
Words = Annotated[str, Field(min_length=0)]
_OR = re.compile(r"\s*\[OR\]\s*")
_Row = TypeVar("_Row")


class GraphRecord(StrictModel):
    """A line of a file of graphs."""

    graph_id: Text
    para_id: Text
    prompt: Words = ""
    paragraph: Words = ""
    Z: Words | list[Words]
    V: Words | list[Words]
    X: Words | list[Words]
    U: Words | list[Words]
    Y: Words | list[Words]
    W: Words | list[Words]
    para_outcome_accelerate: Words | list[Words]
    para_outcome_decelerate: Words | list[Words]
    Y_affects_outcome: str
    Y_is_outcome: object = None
    para_outcome: object = None
    is_cyclic_process: object = None


class Edge(NamedTuple):
    """An influence.

    `sign` is 1 if more of the source means more of the target, -1 if it means less.
    """

    source: str
    target: str
    sign: int


class Chain(NamedTuple):
    """A path through a graph, and the product of its edges' signs."""

    nodes: tuple[str, ...]
    sign: int

    @property
    def hops(self) -> int:
        """Number of edges; `path_len` of the release is the number of nodes."""
        return len(self.nodes) - 1

    @property
    def answer(self) -> str:
        """How more of the first node affects the last: "more" or "less"."""
        return "more" if self.sign > 0 else "less"


@dataclass(frozen=True)
class Graph:
    """An influence graph of a paragraph."""

    id: str
    paragraph_id: str
    paragraph: str  # the text of the process; its sentences end in ". "
    nodes: Mapping[str, tuple[str, ...]]  # name -> phrasings, at least one
    edges: tuple[Edge, ...]

    @property
    def steps(self) -> list[str]:
        """The paragraph split at ".

        ", as in the release's `para_steps`; the last sentence may be empty.
        """
        return self.paragraph.split(". ") if self.paragraph.strip() else []

    @property
    def usable(self) -> bool:
        """Whether an edge leads to an outcome.

        Annotators marked the other graphs as having no effect.
        """
        return any(edge.target in OUTCOME for edge in self.edges)

    @cached_property
    def changes(self) -> list[str]:
        """Every phrasing of every node except the outcomes."""
        return [text for name, texts in self.nodes.items() if name not in OUTCOME for text in texts]

    @cached_property
    def chains(self) -> dict[tuple[str, str], Chain]:
        """(source, target) -> a shortest path, for all pairs of connected nodes."""
        chains: dict[tuple[str, str], Chain] = {}
        for start in self.nodes:
            layer = [Chain((start,), 1)]
            while layer:
                farther = []
                for chain in layer:
                    for edge in self.edges:
                        if edge.source == chain.nodes[-1] and (start, edge.target) not in chains:
                            chains[start, edge.target] = Chain(
                                (*chain.nodes, edge.target), chain.sign * edge.sign
                            )
                            farther.append(chains[start, edge.target])
                layer = farther
        return chains

    def named(self, text: str) -> list[str]:
        """The nodes with this phrasing, compared by letters only, as in AllenAI's
        `lookup_node_from_grounding`.
        """
        spelling = letters(text)
        return [name for name, spellings in self._letters.items() if spelling in spellings]

    @cached_property
    def _letters(self) -> dict[str, set[str]]:
        return {name: set(map(letters, texts)) for name, texts in self.nodes.items()}


def letters(text: str) -> str:
    """The letters of a text in lower case; phrasings with equal letters count as equal."""
    return re.sub(r"[\W\d_]+", "", text.lower())


def locate_nodes(graph: Graph, change: str, effect: str, path_len: int) -> tuple[str, str]:
    """The nodes of a question's change and effect, the ends of a path of `path_len` nodes.

    ("", "") unless they are unique.

    With `path_len` 0 (a distractor, which has no path), the change's node is empty.
    """
    if not path_len:
        targets = graph.named(effect)
        return ("", targets[0]) if len(targets) == 1 else ("", "")
    pairs = [(source, target) for source in graph.named(change) for target in graph.named(effect)]
    fitting = [
        pair for pair in pairs if pair in graph.chains and len(graph.chains[pair].nodes) == path_len
    ]
    return fitting[0] if len(fitting) == 1 else ("", "")


def read_records(
    path: Path,
    noun: str,
    parse: Callable[[Mapping[str, object], str], _Row],
    id_of: Callable[[_Row], str],
) -> dict[str, _Row]:
    """Id -> parsed line of a file of JSON lines, in its order.

    `parse` takes a record and its location, "file:line".
    """
    rows: dict[str, _Row] = {}
    for number, record in read_jsonl(path):
        row = parse(record, f"{path}:{number}")
        if (name := id_of(row)) in rows:
            raise FormatError(
                f"{path}:{number}: another {noun} has the id {name!r}; wanted unique ids"
            )
        rows[name] = row
    if not rows:
        raise FormatError(f"{path}: no {noun} in it; wanted one per line, as JSON")
    return rows


def read_graphs(path: Path) -> dict[str, Graph]:
    """Id -> graph, in the file's order."""
    return read_records(path, "graph", parse_graph, lambda graph: graph.id)


def parse_graph(record: Mapping[str, object], where: str) -> Graph:
    """A graph from a record; error messages start with `where`."""
    line = parse_section(GraphRecord, record, where)
    fields: dict[str, str | list[str]] = line.model_dump()
    nodes = {name: _parse_phrasings(fields[name]) for name in "ZVXUYW"}
    for name, key in ((MORE, "para_outcome_accelerate"), (LESS, "para_outcome_decelerate")):
        outcome = fields[key]
        nodes[name] = tuple(text.rstrip("?").rstrip() for text in _parse_phrasings(outcome))
        if not any(nodes[name]) or (isinstance(outcome, list) and len(outcome) > 1):
            raise FormatError(
                f"{where}: {key!r} is {outcome!r:.80}; wanted one text, its phrasings "
                "separated by [OR]"
            )
    sign = _AFFECTS.get(line.Y_affects_outcome.lower())
    if sign is None:
        raise FormatError(
            f"{where}: 'Y_affects_outcome' is {line.Y_affects_outcome!r}; "
            "wanted more, less or no_effect"
        )
    template = [*_TEMPLATE]
    if sign:
        template += [("Y", MORE, sign), ("Y", LESS, -sign), ("W", MORE, -sign), ("W", LESS, sign)]
    edges = tuple(Edge(*edge) for edge in template if nodes[edge[0]] and nodes[edge[1]])
    nodes = {name: texts for name, texts in nodes.items() if texts}
    return Graph(line.graph_id, line.para_id, line.paragraph, nodes, edges)


def _parse_phrasings(phrasings: str | list[str]) -> tuple[str, ...]:
    texts = [phrasings] if isinstance(phrasings, str) else phrasings
    stripped = (phrasing.strip() for text in texts for phrasing in _OR.split(text))
    return tuple(dict.fromkeys(filter(None, stripped)))
