"""Influence graphs: the released layout, and what is refused."""

import json
from contextlib import suppress

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
    assert graph.steps == ["Trees make seeds", "Wind carries them."]
    assert graph.usable


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
    "no X": ({"X": None}, "key 'X': wanted text or a list of texts"),
    "a number": ({"W": [3]}, "key 'W': wanted text or a list"),
    "an unknown key": ({"promt": "?"}, "unknown key 'promt'; did you mean 'prompt'?"),
    "two outcomes": ({"para_outcome_accelerate": ["MORE a", "MORE b"]}, "'para_outcome_accelerate' is ['MORE a', 'MORE b']; wanted one text"),
    "no outcome": ({"para_outcome_decelerate": ""}, "'para_outcome_decelerate' is ''; wanted one text"),
    "an unknown effect": ({"Y_affects_outcome": "mroe"}, "'Y_affects_outcome' is 'mroe'; wanted more, less or no_effect"),
    "an effect that is no text": ({"Y_affects_outcome": True}, "key 'Y_affects_outcome': wanted text, found True"),
    "no id": ({"graph_id": " "}, "key 'graph_id': wanted text that is not empty"),
    "half a character": ({"paragraph": "\ud800"}, "key 'paragraph': wanted text"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_a_bad_graph_is_one_line_with_its_place(changes, message, tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text(json.dumps(RELEASED) + "\n" + json.dumps(RELEASED | {"graph_id": "9"} | changes))
    with pytest.raises(IfqaError) as told:
        read_graphs(path)
    assert str(told.value).startswith(f"{path}:2: ")
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_a_graph_id_may_not_be_there_twice(tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text(f"{json.dumps(RELEASED)}\n{json.dumps(RELEASED)}\n")
    with pytest.raises(IfqaError, match=r"graphs.jsonl:2: the id '7' is there twice"):
        read_graphs(path)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*RELEASED, "q"]), inner, max_size=5)
        ),
        max_leaves=12,
    ),
    st.sampled_from([*RELEASED]),
)
def test_any_value_is_read_or_refused(value, key):
    with suppress(IfqaError):
        assert read_graph(RELEASED | {key: value}, "x").nodes


def test_a_question_is_located_in_its_graph():
    graph = read_graph(RELEASED, "x")
    assert locate(graph, "The wind  stops.", "LESS new trees", 3) == ("U", "D")
    assert locate(graph, "the wind stops", "LESS new trees", 4) == ("", "")
    assert locate(graph, "a volcano erupts", "more new trees", 0) == ("", "A")
    assert locate(graph, "a volcano erupts", "more new trees", 2) == ("", "")
