"""Influence graphs: the released layout, and invalid files."""

import json
import re

import pytest
from refusals import refused

from ifqa.companions.wiqa.graphs import locate_nodes, parse_graph, read_graphs

RELEASED = {
    "graph_id": "7",
    "para_id": "3",
    "prompt": "How do seeds spread?",
    "paragraph": "Trees make seeds. Wind carries them.",
    "X": "more seeds are made",
    "Y": "more seeds are carried off",
    "W": ["the seeds stay [OR] no seed flies"],
    "U": ["the wind stops"],
    "Z": ["a good summer", "a wet spring"],
    "V": [],
    "para_outcome_accelerate": "MORE new trees?",
    "para_outcome_decelerate": ["LESS new trees"],
    "Y_affects_outcome": "more",
    "Y_is_outcome": "",
}


def test_the_released_layout():
    graph = parse_graph(RELEASED, "x:1")
    assert graph.nodes == {
        "Z": ("a good summer", "a wet spring"),
        "X": ("more seeds are made",),
        "U": ("the wind stops",),
        "Y": ("more seeds are carried off",),
        "W": ("the seeds stay", "no seed flies"),
        "A": ("MORE new trees",),
        "D": ("LESS new trees",),
    }
    assert graph.steps == ["Trees make seeds", "Wind carries them."]
    assert graph.usable


def test_the_outcome_may_be_affected_the_other_way_or_not_at_all():
    for affects in ("less", "d", "LESS"):
        chains = parse_graph(RELEASED | {"Y_affects_outcome": affects}, "x").chains
        pairs = ("Y", "A"), ("Y", "D"), ("W", "A"), ("W", "D"), ("Z", "A")
        assert [chains[pair].sign for pair in pairs] == [-1, 1, 1, -1, -1]
    for marker in ("no_effect", "NO_EFFECT", "none", "-"):
        graph = parse_graph(RELEASED | {"Y_affects_outcome": marker}, "x")
        assert (graph.usable, ("Z", "Y") in graph.chains, ("Y", "A") in graph.chains) == (
            False,
            True,
            False,
        )


BAD = {
    "a duplicate id": ({"graph_id": "7"}, "another graph has the id '7'; wanted unique ids"),
    "no X": ({"X": None}, "key 'X': wanted text or a list of texts"),
    "an unknown key": ({"promt": "?"}, "unknown key 'promt'; did you mean 'prompt'?"),
    "two outcomes": (
        {"para_outcome_accelerate": ["MORE a", "MORE b"]},
        "'para_outcome_accelerate' is ['MORE a', 'MORE b']; wanted one text",
    ),
    "no outcome": (
        {"para_outcome_decelerate": ""},
        "'para_outcome_decelerate' is ''; wanted one text",
    ),
    "an unknown effect": (
        {"Y_affects_outcome": "mroe"},
        "'Y_affects_outcome' is 'mroe'; wanted more, less or no_effect",
    ),
    "half a character": ({"paragraph": "\ud800"}, "key 'paragraph': wanted text"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_an_invalid_graph_is_refused_with_its_location(changes, message, tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text(
        json.dumps(RELEASED) + "\n" + json.dumps(RELEASED | {"graph_id": "9"} | changes)
    )
    with refused(f"{re.escape(f'{path}:2: ')}.*{re.escape(message)}"):
        read_graphs(path)


def test_a_question_is_located_in_its_graph():
    graph = parse_graph(RELEASED, "x")
    assert locate_nodes(graph, "The wind  stops.", "LESS new trees", 3) == ("U", "D")
    assert locate_nodes(graph, "the wind stops", "LESS new trees", 4) == ("", "")
    assert locate_nodes(graph, "a volcano erupts", "more new trees", 0) == ("", "A")
    assert locate_nodes(graph, "a volcano erupts", "more new trees", 2) == ("", "")
