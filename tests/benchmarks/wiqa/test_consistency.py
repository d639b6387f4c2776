"""Transitivity, disjunctive consistency and symmetry: of a perfect reader, of coins, and counted again from the graphs."""

import random
import re
from itertools import combinations
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.benchmarks.wiqa.benchmark import SPLITS
from ifqa.benchmarks.wiqa.consistency import DISJUNCTIVE, SIGNS, SYMMETRY, TRANSITIVITY
from ifqa.plugins import open_benchmark
from ifqa.reading.multiple_choice.wiqa_question import opposite, parts
from ifqa.records import Prediction, Question
from ifqa.scoring.resampling import SetStatistic

SAMPLE = open_benchmark("sample-wiqa")
QUESTIONS = [one for split in SPLITS for one in SAMPLE.questions(split)]
GRAPHS = SAMPLE.graphs("test")
MEASURES = (TRANSITIVITY, DISJUNCTIVE, SYMMETRY)
CHANCE = {"transitivity": 1 / 3, "disjunctive": 2 / 9, "symmetry": 1 / 3}


def predictions(answers):
    return [Prediction(one.id, answer) for one, answer in zip(QUESTIONS, answers, strict=True)]


def coin(seed):
    draw = random.Random(seed)
    return predictions(draw.choices([*SIGNS], k=len(QUESTIONS)))


def question(name, change, effect, answer, hops, graph="1", group="p"):
    stem = f"suppose {change} happens, how will it affect {effect}."
    labels = (("hops", str(hops or "")), ("graph", graph))
    return Question(name, stem, (answer,), choices=tuple(SIGNS), group=group, labels=labels)


def again(answered):
    """The three measures from the graphs' edges and the questions' nodes alone: (fit, cases) each."""
    signs = {
        (one.label("graph"), one.label("source"), one.label("target")): SIGNS.get(answered[one.id]) for one in QUESTIONS
    }
    chains, pairs = [], []
    for graph in GRAPHS.values():
        edges = [(edge.source, edge.target) for edge in graph.edges]
        paths = [[edge] for edge in edges]
        for _ in graph.nodes:
            paths += [
                [*path, edge]
                for path in paths
                for edge in edges
                if path[-1][1] == edge[0] and [*path, edge] not in paths
            ]
        for path in paths:
            steps = [signs[graph.id, *edge] for edge in path]
            if len(path) > 1:
                product = None if None in steps else (-1) ** steps.count(-1) * (0 not in steps)
                chains.append(product is not None and product == signs[graph.id, path[0][0], path[-1][1]])
        for one, other in combinations(graph.edges, 2):
            if (one.source == other.source or one.target == other.target) and one.sign != other.sign:
                pairs.append({signs[graph.id, *edge[:2]] for edge in (one, other)} == {1, -1})
    mirrored = []
    for one, other in combinations(QUESTIONS, 2):
        if one.label("graph") == other.label("graph"):
            turned = mirror(one.text, other.text)
            gold, found = ([SIGNS.get(of[each.id]) for each in (one, other)] for of in (GOLD, answered))
            if turned and gold[0] == turned * gold[1]:
                mirrored.append(None not in found and found[0] == turned * found[1])
    return [(sum(cases), len(cases)) for cases in (chains, pairs, mirrored)]


def mirror(stem, other):
    """-1 if one of the two parts is exchanged, 1 if both are, 0 for other questions."""
    found = [relation(*both) for both in zip(parts(stem), parts(other), strict=True)]
    return {("exchanged", "same"): -1, ("same", "exchanged"): -1, ("exchanged", "exchanged"): 1}.get(tuple(found), 0)


def relation(one, other):
    one, other = (re.sub("[^a-z ]", "", text.lower()).split() for text in (one, other))
    if one == other:
        return "same"
    exchanged = [opposite(" ".join(words)).split() for words in (one, other)]
    return "exchanged" if exchanged[0] == other or exchanged[1] == one else ""


GOLD = {one.id: one.answers[0] for one in QUESTIONS}


@pytest.mark.parametrize("measure", MEASURES, ids=lambda one: one.name)
def test_a_perfect_reader_is_wholly_consistent(measure):
    assert measure.score(QUESTIONS, predictions(GOLD.values())) == 1


@pytest.mark.parametrize("measure", MEASURES, ids=lambda one: one.name)
def test_a_coin_lands_on_chance(measure):
    pairs, groups = list(zip(QUESTIONS, coin(0), strict=True)), [question.group for question in QUESTIONS]
    value, low, high = SetStatistic(measure, pairs, groups).interval(0)
    assert low <= CHANCE[measure.name] <= high
    assert low <= value <= high
    values = [measure.score(QUESTIONS, coin(seed)) for seed in range(60)]
    assert abs(fmean(values) - CHANCE[measure.name]) < 3 * stdev(values) / 60**0.5


@pytest.mark.parametrize("measure", MEASURES, ids=lambda one: one.name)
def test_what_chance_is_stands_in_the_head_of_a_report(measure):
    assert f"chance {100 * CHANCE[measure.name]:.1f}" in measure.about


@pytest.mark.parametrize("seed", range(3))
def test_a_brute_force_over_the_graphs_counts_the_same(seed):
    draw = random.Random(seed)
    answers = [draw.choice([gold, *SIGNS, "", "perhaps"]) for gold in GOLD.values()]
    found = [measure.score(QUESTIONS, predictions(answers)) for measure in MEASURES]
    counted = again(dict(zip(GOLD, answers, strict=True)))
    assert [cases for _, cases in counted[:2]] == [216, 84]
    assert (
        counted[2][1] >= 24
    )  # each graph has questions that differ in "MORE" and "LESS" of its outcome; the lexicon has more words
    assert found == pytest.approx([fit / cases for fit, cases in counted])


def test_a_product_with_no_effect_is_no_effect():
    chain = [
        question("1", "a", "b", "more", 1),
        question("2", "b", "c", "less", 1),
        question("3", "a", "c", "less", 2),
    ]
    answered = {"12": ("no effect", "less"), "3": "no effect"}
    given = [*answered["12"], answered["3"]]
    assert (
        TRANSITIVITY.score(chain, [Prediction(one.id, answer) for one, answer in zip(chain, given, strict=True)]) == 1
    )
    given[2] = "less"
    assert (
        TRANSITIVITY.score(chain, [Prediction(one.id, answer) for one, answer in zip(chain, given, strict=True)]) == 0
    )


def test_a_missing_answer_fits_with_nothing():
    chain = [
        question("1", "a", "b", "more", 1),
        question("2", "b", "c", "less", 1),
        question("3", "a", "c", "less", 2),
    ]
    given = [Prediction("1", "", error="none"), Prediction("2", ""), Prediction("3", "")]
    assert TRANSITIVITY.score(chain, given) == 0
    pair = [question("1", "a", "b", "more", 1), question("2", "a", "c", "less", 1)]
    assert DISJUNCTIVE.score(pair, [Prediction("1", "more"), Prediction("2", "")]) == 0
    assert DISJUNCTIVE.score(pair, [Prediction("1", "less"), Prediction("2", "More.")]) == 1


def test_steps_of_another_graph_or_paragraph_make_no_chain():
    steps = [question("1", "a", "b", "more", 1), question("2", "b", "c", "less", 1, graph="2")]
    far = [question("3", "a", "c", "less", 2), question("4", "b", "c", "less", 1, group="q")]
    several = [*steps, *far]
    assert TRANSITIVITY.score(several, [Prediction(one.id, one.answers[0]) for one in several]) is None


def test_without_opposite_steps_nothing_is_disjunctive():
    alike = [question("1", "a", "b", "more", 1), question("2", "a", "c", "more", 1), question("3", "d", "e", "less", 1)]
    assert DISJUNCTIVE.score(alike, [Prediction(one.id, "more") for one in alike]) is None


def test_exchanging_more_and_less_twice_keeps_the_answer():
    twice = [question("1", "more rain", "MORE mud", "more", 1), question("2", "less rain", "less mud", "more", 1)]
    assert SYMMETRY.score(twice, [Prediction("1", "less"), Prediction("2", "less")]) == 1
    assert SYMMETRY.score(twice, [Prediction("1", "less"), Prediction("2", "more")]) == 0
    once = [question("1", "more rain", "mud", "no effect", 0), question("2", "less rain", "mud", "no effect", 0)]
    assert SYMMETRY.score(once, [Prediction("1", "no effect"), Prediction("2", "no effect")]) == 1
    assert SYMMETRY.score(once, [Prediction("1", "more"), Prediction("2", "more")]) == 0


def test_a_pair_whose_gold_answers_break_the_rule_is_left_out():
    broken = [question("1", "more rain", "mud", "more", 1), question("2", "less rain", "mud", "more", 1)]
    assert SYMMETRY.score(broken, [Prediction("1", "more"), Prediction("2", "more")]) is None


def test_a_paragraph_that_a_resample_has_twice_counts_twice():
    one = [question("1", "a", "b", "more", 1), question("2", "a", "c", "less", 1)]
    other = [question("3", "a", "b", "more", 1, group="q"), question("4", "a", "c", "less", 1, group="q")]
    again = [question("5", "a", "b", "more", 1, group="q#2"), question("6", "a", "c", "less", 1, group="q#2")]
    given = [Prediction(str(n), answer) for n, answer in enumerate(["more", "less", *["more"] * 4], start=1)]
    assert DISJUNCTIVE.score([*one, *other, *again], given) == pytest.approx(1 / 3)


@settings(max_examples=25)
@given(st.lists(st.sampled_from([*SIGNS, "", "maybe"]), min_size=len(QUESTIONS), max_size=len(QUESTIONS)))
def test_every_value_is_a_share(answers):
    for measure in MEASURES:
        assert 0 <= measure.score(QUESTIONS, predictions(answers)) <= 1
