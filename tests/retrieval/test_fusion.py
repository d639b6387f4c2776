"""Fusion follows its formulas, orders ties the same every time, and takes its parts from an experiment file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.config.experiment import load_experiment, parse_experiment, retriever_sections
from ifqa.config.overrides import override, write_resolved
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System
from ifqa.protocols import Retriever
from ifqa.records import Hit, Question, SearchResult
from ifqa.retrieval.composition import Part, fuse_by_rank, fuse_by_score, top_hits
from ifqa.retrieval.context import Gold
from ifqa.retrieval.fusion import Fusion

ASKED = []  # what Scripted was asked: (text, k)


class Scripted(Retriever):
    """Always returns the same ranking, and appends to ASKED what it is asked."""

    def __init__(self, *, ranks: str = "a b c") -> None:
        self.ranks = ranks.split()

    def search(self, questions, k):
        ASKED.extend((question.text, k) for question in questions)
        hits = [Hit(passage_id, 1 / rank) for rank, passage_id in enumerate(self.ranks[:k], start=1)]
        return [SearchResult(hits) for _ in questions]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ASKED.clear()


def ranking(passages, scores):
    return [Hit(*pair) for pair in zip(passages, sorted(scores, reverse=True), strict=False)]


scores = st.lists(st.floats(0.01, 100), min_size=8, max_size=8)
some_ranking = st.builds(
    lambda names, n, given: ranking(names[:n], given), st.permutations("abcdefgh"), st.integers(0, 8), scores
)
rankings = st.lists(some_ranking, min_size=2, max_size=4)
weights = st.lists(st.floats(0, 4), min_size=4, max_size=4)


@given(rankings=rankings, weights=weights, rrf_k=st.integers(0, 100))
def test_rrf_is_the_sum_of_cormack_et_al(rankings, weights, rrf_k):
    weights = weights[: len(rankings)]
    expected = {}
    for passage in {hit.passage_id for ranking in rankings for hit in ranking}:
        places = [[hit.passage_id for hit in ranking] for ranking in rankings]
        contributions = [
            (weight, place.index(passage)) for weight, place in zip(weights, places, strict=True) if passage in place
        ]
        expected[passage] = sum(weight / (rrf_k + rank + 1) for weight, rank in contributions)
    assert fuse_by_rank(rankings, weights, rrf_k) == pytest.approx(expected)


def test_shares_of_the_best_score_equal_sums_by_hand():
    bm25, dense = [Hit("a", 20.0), Hit("b", 15.0), Hit("c", 5.0)], [Hit("d", 0.8), Hit("a", 0.2)]
    fused = fuse_by_score([bm25, dense], [1.0, 2.0])
    # a passage that a ranking lacks gets the last score: 5/20 in the first ranking, 0.2/0.8 in the second
    assert fused == pytest.approx({"a": 1 + 0.5, "b": 0.75 + 0.5, "c": 0.25 + 0.5, "d": 0.25 + 2})


def test_a_passage_absent_from_a_short_ranking_scores_zero():
    few, many = [Hit("a", 20.0)], [Hit("b", 0.8), Hit("a", 0.6)]
    assert fuse_by_score([few, many], [1.0, 1.0], [5, 2]) == pytest.approx({"a": 1.75, "b": 1.0})
    assert fuse_by_score([few, many], [1.0, 1.0], [1, 2]) == pytest.approx({"a": 1.75, "b": 2.0})
    with refused('best score is above 0, found -1; set method = "rrf"'):
        fuse_by_score([[Hit("a", -1.0)], [Hit("b", 1.0)]], [1.0, 1.0])


@given(fused=st.dictionaries(st.text(max_size=3), st.integers(0, 3).map(float)), k=st.integers(1, 9))
def test_equal_scores_keep_the_order_of_insertion(fused, k):
    order = list(fused)
    expected = sorted(fused, key=lambda passage: (-fused[passage], order.index(passage)))
    assert [hit.passage_id for hit in top_hits(fused, k)] == expected[:k]


def tables(**retriever):
    return {"benchmark": "sample", "split": "dev", "corpus": "sample", "retriever": {"name": "fusion"} | retriever}


def part(**settings):
    return {"name": f"{__name__}:Scripted"} | settings


NESTED = tables(
    k=9,
    method="rrf",
    parts=[
        part(ranks="a b c d", k=2, weight=2.0, query="presupposition"),
        {"name": "fusion", "weight": 0.5, "method": "rrf", "parts": [part(ranks="x y", k=1), part(query="main")]},
    ],
)


def test_each_part_is_asked_with_its_own_depth_and_query_in_order():
    retriever = System(Run(parse_experiment("x", NESTED, "x.toml"))).retriever
    ((*hits,),) = retriever.search([Question("q", "If it rained, who would come?")], 3)
    texts = [text.rstrip("?., ").lower() for text, _ in ASKED]
    assert texts == ["it rained", "if it rained, who would come", "who would come"]
    assert [k for _, k in ASKED] == [2, 1, 9]
    assert [hit.passage_id for hit in hits] == ["a", "b", "x"]  # a: 2/61 + .5/62, b: 2/62 + .5/63, x: .5/61
    assert hits[0].score == pytest.approx(2 / 61 + 0.5 / 62)


def test_a_nested_experiment_gets_defaults_and_its_variant_loads_again():
    experiment = parse_experiment("x", NESTED, "x.toml")
    first, second = experiment.retriever["parts"]
    assert (first["k"], first["weight"], first["query"]) == (2, 2.0, "presupposition")
    assert (second["k"], second["weight"], [part["k"] for part in second["parts"]]) == (9, 0.5, [1, 9])
    assert len(list(retriever_sections(experiment.retriever))) == 5
    variant = override(experiment, {"k": 3})
    assert [part["k"] for part in variant.retriever["parts"]] == [2, 9]
    write_resolved(variant)
    assert load_experiment("x+k=3") == variant
    variant = override(load_experiment("sample"), {"retriever": "fusion"})
    assert variant.indexes == ["bm25", "dense"]
    assert [part["k"] for part in variant.retriever["parts"]] == [variant.retriever["k"]] * 2


def test_passages_made_by_parts_are_returned_once():
    questions = [Question("q1", "If?", gold_passages=("one", "two")), Question("q2", "If?", gold_passages=("two",))]
    fused = Fusion(parts=[Part(Gold(), 5), Part(Scripted(), 5), Part(Gold(), 5)])
    first, second = fused.search(questions, 9)
    assert [passage.text for passage in first.generated] == ["one", "two"]
    assert {passage.id for passage in first.generated} == {hit.passage_id for hit in first} - {"a", "b", "c"}
    assert [passage.text for passage in second.generated] == ["two"]
    assert Fusion(parts=[Part(Scripted(), 5)] * 2).search(questions, 9)[0].generated is None
    for method in ("rrf", "weighted"):
        empty = Fusion(parts=[Part(Scripted(ranks=""), 5)] * 2, method=method)
        assert empty.search(questions[:1], 3) == [SearchResult([])]


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        ({"parts": [part()]}, r"at least two \[\[retriever.parts\]\], found 1"),
        ({"parts": "bm25"}, r"wants \[\[retriever.parts\]\], found 'bm25'"),
        ({"parts": [part(), part(weight=-1)]}, "'weight': wanted a number from 0, found -1"),
        ({"parts": [part(weight=0)] * 2}, "weights of at least 0, and one above 0"),
        ({"rrf_k": -1, "parts": [part()] * 2}, "'rrf_k': wanted a whole number from 0, found -1"),
        ({"weight": 1.0}, "'fusion' takes no 'weight' here"),
        ({"query": "main"}, "'fusion' takes no 'query' here"),
        ({"parts": [part(), part(query="mian")]}, "unknown query 'mian'; did you mean 'main'"),
        ({"parts": [part(), part(parts=[part()])]}, "takes no 'parts' here"),
    ],
)
def test_wrong_fusion_settings_are_refused_in_one_line(retriever, message):
    with refused(message):
        _ = System(Run(parse_experiment("x", tables(**retriever), "x.toml"))).retriever
