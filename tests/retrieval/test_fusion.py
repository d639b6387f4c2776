"""Fusion follows its formulas, ranks ties deterministically, and takes its parts from an experiment
file.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.config.overrides import override, write_resolved
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System
from ifqa.protocols import LanguageModel, Retriever
from ifqa.records import Completion, Hit, Question, SearchResult
from ifqa.retrieval.composition import Part
from ifqa.retrieval.fusion import Fusion, fuse_by_rank, fuse_by_score, top_hits
from ifqa.retrieval.genread import GenRead
from ifqa.retrieval.question_texts import Gold

SEARCHES: list[tuple[str, int]] = []  # (text, k) of each question that Scripted got


class Scripted(Retriever):
    """Always returns the same ranking."""

    def __init__(self, *, ranks: str = "a b c") -> None:
        self.ranks = ranks.split()

    def search(self, questions, k):
        SEARCHES.extend((question.text, k) for question in questions)
        hits = [
            Hit(passage_id, 1 / rank) for rank, passage_id in enumerate(self.ranks[:k], start=1)
        ]
        return [SearchResult(hits) for _ in questions]


@pytest.fixture(autouse=True)
def _folder(here):
    SEARCHES.clear()


id_lists = st.builds(lambda ids, size: ids[:size], st.permutations("abcdefgh"), st.integers(0, 8))
weights = st.lists(st.floats(0, 4), min_size=4, max_size=4)


@given(
    id_lists=st.lists(id_lists, min_size=2, max_size=4), weights=weights, rrf_k=st.integers(0, 100)
)
def test_rrf_is_the_sum_of_cormack_et_al(id_lists, weights, rrf_k):
    weights = weights[: len(id_lists)]
    expected = dict.fromkeys((passage_id for ids in id_lists for passage_id in ids), 0.0)
    for passage_id in expected:
        for weight, ids in zip(weights, id_lists, strict=True):
            if passage_id in ids:
                expected[passage_id] += weight / (rrf_k + ids.index(passage_id) + 1)
    rankings = [[Hit(passage_id, 1.0) for passage_id in ids] for ids in id_lists]
    assert fuse_by_rank(rankings, weights, rrf_k) == pytest.approx(expected)


def test_a_passage_gets_the_last_score_of_a_ranking_that_lacks_it_or_zero_if_it_is_short():
    bm25 = [Hit("a", 20.0), Hit("b", 15.0), Hit("c", 5.0)]
    dense = [Hit("d", 0.8), Hit("a", 0.2)]
    fused = fuse_by_score([bm25, dense], [1.0, 2.0])  # the last scores are 5/20 and 0.2/0.8
    assert fused == pytest.approx({"a": 1 + 0.5, "b": 0.75 + 0.5, "c": 0.25 + 0.5, "d": 0.25 + 2})
    few = [Hit("a", 20.0)]
    many = [Hit("b", 0.8), Hit("a", 0.6)]
    assert fuse_by_score([few, many], [1.0, 1.0], [5, 2]) == pytest.approx({"a": 1.75, "b": 1.0})
    assert fuse_by_score([few, many], [1.0, 1.0], [1, 2]) == pytest.approx({"a": 1.75, "b": 2.0})
    assert fuse_by_score([[Hit("c", 0.0)], many], [1.0, 1.0]) == pytest.approx(
        {"b": 1.0, "a": 0.75, "c": 0.75}
    )
    with refused('best score is at least 0, found -1; set method = "rrf"'):
        fuse_by_score([[Hit("a", -1.0)], [Hit("b", 1.0)]], [1.0, 1.0])


@given(
    fused=st.dictionaries(st.text(max_size=3), st.integers(0, 3).map(float)), k=st.integers(1, 9)
)
def test_equal_scores_keep_the_order_of_insertion(fused, k):
    order = list(fused)
    expected = sorted(fused, key=lambda passage: (-fused[passage], order.index(passage)))
    assert [hit.passage_id for hit in top_hits(fused, k)] == expected[:k]


def sections(**retriever):
    return {
        "benchmark": "sample",
        "split": "dev",
        "corpus": "sample",
        "retriever": {"name": "fusion"} | retriever,
    }


def fuse(*retrievers, **settings):
    return Fusion(Fusion.Settings(**settings), parts=[Part(part, 5) for part in retrievers])


def part(**settings):
    return {"name": f"{__name__}:Scripted"} | settings


INNER = {
    "name": "fusion",
    "weight": 0.5,
    "method": "rrf",
    "parts": [part(ranks="x y", k=1), part(query="main")],
}
OUTER = [part(ranks="a b c d", k=2, weight=2.0, query="presupposition"), INNER]
NESTED = sections(k=9, method="rrf", parts=OUTER)


def test_each_part_gets_its_depth_and_query_in_order():
    retriever = System(Run(parse_experiment("x", NESTED, "x.toml"))).retriever
    [hits] = retriever.search([Question("q", "If it rained, who would come?")], 3)
    searches = [(text.rstrip("?., ").lower(), k) for text, k in SEARCHES]
    assert searches == [
        ("it rained", 2),
        ("if it rained, who would come", 1),
        ("who would come", 9),
    ]
    # a: 2/61 + .5/62, b: 2/62 + .5/63, x: .5/61
    assert [hit.passage_id for hit in hits] == ["a", "b", "x"]
    assert hits[0].score == pytest.approx(2 / 61 + 0.5 / 62)


def retriever_of(experiment):
    assert experiment.retriever is not None
    return experiment.retriever


def test_a_nested_experiment_gets_defaults_and_its_variant_loads_again():
    experiment = parse_experiment("x", NESTED, "x.toml")
    first, second = retriever_of(experiment).parts
    assert (first.k, first.weight, first.query) == (2, 2.0, "presupposition")
    assert (second.k, second.weight, [part.k for part in second.parts]) == (9, 0.5, [1, 9])
    assert len(list(retriever_of(experiment).steps)) == 5
    variant = override(experiment, {"k": 3})
    assert [part.k for part in retriever_of(variant).parts] == [2, 9]
    write_resolved(variant)
    assert load_experiment("x+k=3") == variant
    variant = override(load_experiment("sample"), {"retriever": "fusion"})
    assert variant.indexes == ["bm25", "dense"]
    fusion = retriever_of(variant)
    assert [part.k for part in fusion.parts] == [fusion.k] * 2


def test_generated_passages_are_returned_once():
    questions = [
        Question("q1", "If?", gold_passages=("one", "two")),
        Question("q2", "If?", gold_passages=("two",)),
    ]
    fused = fuse(Gold(), Scripted(), Gold())
    first, second = fused.search(questions, 9)
    assert [passage.text for passage in first.generated] == ["one", "two"]
    assert {passage.id for passage in first.generated} == {hit.passage_id for hit in first} - {
        "a",
        "b",
        "c",
    }
    assert [passage.text for passage in second.generated] == ["two"]
    assert fuse(Scripted(), Scripted()).search(questions, 9)[0].generated is None
    for method in ("rrf", "weighted"):
        empty = fuse(Scripted(ranks=""), Scripted(ranks=""), method=method)
        assert empty.search(questions[:1], 3) == [SearchResult([])]


class Model(LanguageModel):
    """Gives every request the same completion."""

    def __init__(self, completion):
        self.completion = completion

    def complete(self, requests, advance=None):
        return [self.completion for _ in requests]


def test_the_usage_has_the_highest_count_of_any_part_and_questions_not_asked():
    capped = Model(Completion(error="not asked: the cap is reached"))
    answering = Model(Completion("A mill."))
    fused = fuse(*(GenRead(GenRead.Settings(), llm=model) for model in (capped, answering)))
    [ranking] = fused.search([Question("q", "If so, who?")], 3)
    assert [passage.text for passage in ranking.generated] == ["A mill."]
    assert {key: fused.usage()[key] for key in ("retry", "not_asked", "too_long")} == {
        "retry": 1,
        "not_asked": 1,
        "too_long": 0,
    }


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        ({"parts": [part()]}, r"at least two \[\[retriever.parts\]\], found 1"),
        ({"parts": "bm25"}, r"wants \[\[retriever.parts\]\], found 'bm25'"),
        ({"parts": [part(), part(weight=-1)]}, "'weight': wanted a number from 0, found -1"),
        ({"parts": [part(weight=0)] * 2}, "weights of at least 0, and one above 0"),
        ({"weight": 1.0}, "'fusion' takes no 'weight' here"),
        ({"query": "main"}, "'fusion' takes no 'query' here"),
        ({"parts": [part(), part(query="mian")]}, "unknown query 'mian'; did you mean 'main'"),
        ({"parts": [part(), part(parts=[part()])]}, "takes no 'parts' here"),
    ],
)
def test_wrong_fusion_settings_are_refused_in_one_line(retriever, message):
    with refused(message):
        _ = System(Run(parse_experiment("x", sections(**retriever), "x.toml"))).retriever
