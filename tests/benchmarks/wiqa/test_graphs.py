"""Influence graphs: both layouts, what is refused, signs and chains against brute force."""

import json
from contextlib import suppress
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.benchmarks.wiqa.graphs import locate, read_graph, read_graphs
from ifqa.errors import IfqaError

RELEASED = {
    "graph_id": "7", "para_id": "3", "prompt": "How do seeds spread?", "paragraph": "Trees make seeds. Wind carries them.",
    "X": "more seeds are made", "Y": "more seeds are carried off", "W": ["the seeds stay [OR] no seed flies"],
    "U": ["the wind stops"], "Z": ["a good summer", "a wet spring"], "V": [], "para_outcome_accelerate": "MORE new trees?",
    "para_outcome_decelerate": ["LESS new trees"], "Y_affects_outcome": "more", "Y_is_outcome": "",
}  # fmt: skip
FREE = {
    "graph_id": "8", "para_id": "3", "paragraph": "It rains. The path is muddy.",
    "nodes": {"rain": ["it rains more"], "sun": ["the sun shines"], "more": ["MORE mud"], "less": ["LESS mud"]},
    "edges": [["rain", "more", "+"], ["rain", "less", "-"], ["sun", "more", "-"]], "outside": ["sun"],
    "outcome": ["more", "less"],
}  # fmt: skip


def test_the_released_layout():
    graph = read_graph(RELEASED, "x:1")
    assert graph.nodes == {
        "Z": ("a good summer", "a wet spring"),
        "X": ("more seeds are made",),
        "U": ("the wind stops",),
        "Y": ("more seeds are carried off",),
        "W": ("the seeds stay", "no seed flies"),
        "A": ("MORE new trees",),
        "D": ("LESS new trees",),
    }
    assert graph.outside == ("Z",)
    assert graph.steps == ["Trees make seeds", "Wind carries them."]
    assert graph.usable


def test_the_other_layout():
    graph = read_graph(FREE, "x:1")
    assert graph.chains["sun", "more"].sign == -1
    assert graph.chains["rain", "less"].hops == 1
    assert ("sun", "less") not in graph.chains


@pytest.mark.parametrize("affects", ["less", "d", "LESS"])
def test_the_outcome_may_be_affected_the_other_way(affects):
    chains = read_graph(RELEASED | {"Y_affects_outcome": affects}, "x").chains
    assert [chains[pair].sign for pair in (("Y", "A"), ("Y", "D"), ("W", "A"), ("W", "D"))] == [-1, 1, 1, -1]
    assert chains["Z", "A"].sign == -1


@pytest.mark.parametrize("marker", ["no_effect", "NO_EFFECT", "none", "-"])
def test_a_graph_without_effect_is_read_and_marked(marker):
    graph = read_graph(RELEASED | {"Y_affects_outcome": marker}, "x")
    assert not graph.usable
    assert ("Z", "Y") in graph.chains
    assert ("Y", "A") not in graph.chains


BAD = {
    "no X": ({"X": None}, "'X' must be list"),
    "a number": ({"W": [3]}, "'W' must be a list of strings, found int"),
    "an unknown key": ({"promt": "?"}, "unknown key 'promt'; did you mean 'prompt'?"),
    "two outcomes": ({"para_outcome_accelerate": ["MORE a", "MORE b"]}, "'para_outcome_accelerate' has two outcomes"),
    "no outcome": ({"para_outcome_decelerate": ""}, "'para_outcome_decelerate' is empty"),
    "an unknown effect": ({"Y_affects_outcome": "mroe"}, "'Y_affects_outcome' is 'mroe'; wanted more, less or no_effect"),
    "an effect that is no text": ({"Y_affects_outcome": True}, "'Y_affects_outcome' must be str, found bool"),
    "no id": ({"graph_id": " "}, "'graph_id' is empty"),
    "half a character": ({"paragraph": "\ud800"}, "half a surrogate pair"),
}  # fmt: skip
BAD_FREE = {
    "an edge to nowhere": ({"edges": [["rain", "mud", "+"]]}, "the edge rain -> mud leads to nowhere: unknown node 'mud'"),
    "a cycle": ({"edges": [["rain", "sun", "+"], ["sun", "rain", "-"]]}, "the edges have a cycle, "),
    "an edge to itself": ({"edges": [["rain", "rain", "+"]]}, "the edges have a cycle, rain -> rain"),
    "opposite paths": (
        {"edges": [["rain", "sun", "+"], ["sun", "more", "+"], ["rain", "more", "-"]]},
        "two paths from rain to more have opposite signs",
    ),
    "one end": ({"outcome": ["more"]}, "'outcome' has 1 nodes; wanted two"),
    "two outcomes": ({"outcome": ["more", "less", "sun"]}, "'outcome' has 3 nodes; wanted two"),
    "an outcome that goes on": ({"edges": [["more", "rain", "+"]]}, "the edge more -> rain starts at the outcome"),
    "a sign": ({"edges": [["rain", "more", "?"]]}, "has the sign '?'; wanted + or -"),
    "half an edge": ({"edges": [["rain", "more"]]}, "an edge is ['rain', 'more']; wanted"),
    "a node outside": ({"outside": ["moon"]}, "unknown node 'moon'"),
    "an empty node": ({"nodes": FREE["nodes"] | {"fog": []}}, "node 'fog' has no text"),
    "too many nodes": ({"nodes": {str(n): ["x"] for n in range(101)}}, "'nodes' has 101 nodes; wanted 100 at most"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "changes", "message"),
    [*((RELEASED, *one) for one in BAD.values()), *((FREE, *one) for one in BAD_FREE.values())],
    ids=[*BAD, *(f"free: {name}" for name in BAD_FREE)],
)
def test_a_bad_graph_is_one_line_with_its_place(record, changes, message, tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text(json.dumps(record) + "\n" + json.dumps(record | {"graph_id": "9"} | changes))
    with pytest.raises(IfqaError) as told:
        read_graphs(path)
    assert str(told.value).startswith(f"{path}:2: ")
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_a_graph_id_may_not_be_there_twice(tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text(f"{json.dumps(RELEASED)}\n{json.dumps(RELEASED)}\n")
    with pytest.raises(IfqaError, match=r"graphs.jsonl:2: graph_id '7' is there twice"):
        read_graphs(path)


NAMES = [f"n{n}" for n in range(4)]
ENDS = ["more", "less"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES + ENDS), st.sampled_from("+-")), max_size=12))
def test_signs_and_hops_are_those_of_brute_force(edges):
    """Every order of nodes is tried as a path; the reader refuses exactly cycles and contradictions."""
    record = FREE | {
        "nodes": {name: [name] for name in NAMES + ENDS},
        "edges": [[*edge] for edge in edges],
        "outside": [],
    }
    signs = {}
    for source, target, sign in edges:
        signs.setdefault((source, target), set()).add(1 if sign == "+" else -1)
    found = {}
    for length in range(2, len(NAMES) + 2):
        for nodes in permutations(NAMES + ENDS, length):
            products = {1}
            for pair in pairwise(nodes):
                products = {one * other for one in products for other in signs.get(pair, ())}
            if products:
                shortest, own = found.get((nodes[0], nodes[-1]), (length - 1, set()))
                found[nodes[0], nodes[-1]] = min(shortest, length - 1), own | products
    cyclic = any((b, a) in found for a, b in found) or any(a == b for a, b in signs)
    if cyclic or any(len(own) > 1 for _, own in found.values()):
        with pytest.raises(IfqaError, match=r"cycle|opposite signs"):
            read_graph(record, "x")
    else:
        chains = read_graph(record, "x").chains
        assert {pair: (chain.hops, {chain.sign}) for pair, chain in chains.items()} == found


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*RELEASED, *FREE, "q"]), inner, max_size=5)
        ),
        max_leaves=12,
    ),
    st.sampled_from([*RELEASED, *FREE]),
)
def test_any_value_is_read_or_refused(value, key):
    for record in (RELEASED, FREE):
        with suppress(IfqaError):
            assert read_graph(record | {key: value}, "x").nodes


def test_a_question_is_located_in_its_graph():
    graph = read_graph(RELEASED, "x")
    assert locate(graph, "The wind  stops.", "LESS new trees", 3) == ("U", "D")
    assert locate(graph, "the wind stops", "LESS new trees", 4) == ("", "")
    assert locate(graph, "a volcano erupts", "more new trees", 0) == ("", "A")
    assert locate(graph, "a volcano erupts", "more new trees", 2) == ("", "")
