"""Influence graphs (Tandon et al., EMNLP 2019): nodes with their phrasings, signed edges, and the chains between nodes.

The template of WIQA has the nodes X, Y, W and U within the paragraph, Z and V outside of it, and two ends of one outcome: more
of it (A) and less of it (D). `layouts.py` reads graphs; they may have other shapes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple


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
        return [text for name, own in self.nodes.items() if name not in self.outcome for text in own]

    @cached_property
    def chains(self) -> dict[tuple[str, str], Chain]:
        """(source, target) -> a shortest path between them, for all nodes that a path connects."""
        after: dict[str, list[Edge]] = {name: [] for name in self.nodes}
        for edge in self.edges:
            after[edge.source].append(edge)
        found: dict[tuple[str, str], Chain] = {}
        for start in self.nodes:
            layer = {start: Chain((start,), 1)}
            while layer:
                farther: dict[str, Chain] = {}
                for chain in layer.values():
                    for edge in after[chain.nodes[-1]]:
                        if (start, edge.target) not in found:
                            longer = Chain((*chain.nodes, edge.target), chain.sign * edge.sign)
                            found[start, edge.target] = farther[edge.target] = longer
                layer = farther
        return found

    def named(self, text: str) -> list[str]:
        """The nodes with this phrasing, compared by their letters alone, as in AllenAI's `lookup_node_from_grounding`."""
        return [name for name, own in self._letters.items() if letters(text) in own]

    def says(self, text: str) -> bool:
        """Whether a node has this phrasing, compared in the same way."""
        return letters(text) in self._all_letters

    @cached_property
    def _letters(self) -> dict[str, set[str]]:
        return {name: set(map(letters, own)) for name, own in self.nodes.items()}

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
    pairs = [(one, other) for one in graph.named(change) for other in graph.named(effect)]
    fitting = [pair for pair in pairs if pair in graph.chains and len(graph.chains[pair].nodes) == path_len]
    return fitting[0] if len(fitting) == 1 else ("", "")
