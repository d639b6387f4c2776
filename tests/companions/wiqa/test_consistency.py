"""Transitivity, disjunctive consistency and symmetry: for a perfect reader, random answers, and by
brute force.
"""

import random
from itertools import combinations
from statistics import fmean, stdev
from typing import cast

import pytest

from ifqa.companions.wiqa.benchmark import SPLITS, Wiqa
from ifqa.companions.wiqa.consistency import DISJUNCTIVE, SIGNS, SYMMETRY, TRANSITIVITY
from ifqa.plugins import open_benchmark
from ifqa.records import Prediction, Question
from ifqa.scoring.statistics import SetStatistic

SAMPLE = cast(Wiqa, open_benchmark("sample-wiqa"))
QUESTIONS = [question for split in SPLITS for question in SAMPLE.questions(split)]
GRAPHS = SAMPLE.graphs("test")
MEASURES = (TRANSITIVITY, DISJUNCTIVE, SYMMETRY)
CHANCE = {"transitivity": 1 / 3, "disjunctive": 2 / 9, "symmetry": 1 / 3}


def predictions(answers):
    return [
        Prediction(question.id, answer) for question, answer in zip(QUESTIONS, answers, strict=True)
    ]


def score(measure, *cases):
    """A measure over cases: change, effect, gold answer, hops, answer, and optionally graph and
    group.
    """
    questions = []
    answers = []
    for n, (change, effect, gold, hops, answer, *place) in enumerate(cases):
        graph, group = place or ("1", "p")
        stem = f"suppose {change} happens, how will it affect {effect}."
        labels = (("hops", str(hops or "")), ("graph", graph))
        questions.append(
            Question(str(n), stem, (gold,), choices=tuple(SIGNS), group=group, labels=labels)
        )
        answers.append(Prediction(str(n), answer))
    return measure.score(questions, answers)


def brute_force(answers):
    """Transitivity and disjunctive consistency from the graphs' edges and the questions' nodes: a
    truth value per case.
    """
    nodes = [tuple(map(question.label, ("graph", "source", "target"))) for question in QUESTIONS]
    signs = dict(zip(nodes, map(SIGNS.get, answers), strict=True))
    chains = []
    pairs = []
    for graph in GRAPHS.values():
        edges = [(edge.source, edge.target) for edge in graph.edges]
        paths = [[edge] for edge in edges]
        for path in paths:  # the list grows
            paths += [[*path, edge] for edge in edges if path[-1][1] == edge[0]]
        for path in paths:
            steps = [signs[graph.id, *edge] for edge in path]
            if len(path) > 1:
                product = None if None in steps else (-1) ** steps.count(-1) * (0 not in steps)
                chains.append(
                    product is not None and product == signs[graph.id, path[0][0], path[-1][1]]
                )
        for edge, other in combinations(graph.edges, 2):
            if (
                edge.source == other.source or edge.target == other.target
            ) and edge.sign != other.sign:
                pairs.append({signs[graph.id, *ends[:2]] for ends in (edge, other)} == {1, -1})
    return chains, pairs


GOLD = [question.answers[0] for question in QUESTIONS]


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_a_perfect_reader_is_consistent_and_random_answers_score_chance(measure):
    chance = CHANCE[measure.name]
    assert measure.score(QUESTIONS, predictions(GOLD)) == 1
    draws = [
        predictions(random.Random(seed).choices([*SIGNS], k=len(QUESTIONS))) for seed in range(60)
    ]
    groups = [question.group for question in QUESTIONS]
    interval = SetStatistic(measure, list(zip(QUESTIONS, draws[0], strict=True)), groups).interval(
        0
    )
    assert interval is not None
    value, low, high = interval
    assert low <= chance <= high
    assert low <= value <= high
    values = [measure.score(QUESTIONS, draw) for draw in draws]
    assert abs(fmean(values) - chance) < 3 * stdev(values) / 60**0.5
    assert f"chance {100 * chance:.1f}" in measure.about


@pytest.mark.parametrize("seed", range(2))
def test_a_brute_force_over_the_graphs_counts_the_same(seed):
    draw = random.Random(seed)
    answers = [draw.choice([gold, *SIGNS, "", "perhaps"]) for gold in GOLD]
    chains, pairs = brute_force(answers)
    assert (len(chains), len(pairs)) == (216, 84)
    scores = [
        measure.score(QUESTIONS, predictions(answers)) for measure in (TRANSITIVITY, DISJUNCTIVE)
    ]
    assert scores == pytest.approx([fmean(chains), fmean(pairs)])


def test_a_chain_is_within_a_graph_and_paragraph_and_a_missing_answer_is_never_consistent():
    steps = ("a", "b", "more", 1), ("b", "c", "less", 1), ("a", "c", "less", 2)
    assert score(TRANSITIVITY, *((*step, "") for step in steps)) == 0
    elsewhere = [("b", "c", "less", 1, "less", "2", "p"), ("b", "c", "less", 1, "less", "1", "q")]
    assert (
        score(
            TRANSITIVITY, ("a", "b", "more", 1, "more"), ("a", "c", "less", 2, "less"), *elsewhere
        )
        is None
    )


def test_opposite_steps_are_disjunctive():
    def pair(first, second, *place):
        return ("a", "b", "more", 1, first, *place), ("a", "c", "less", 1, second, *place)

    assert score(DISJUNCTIVE, *pair("more", "")) == 0
    assert score(DISJUNCTIVE, *pair("less", "More.")) == 1
    alike = (
        ("a", "b", "more", 1, "more"),
        ("a", "c", "more", 1, "more"),
        ("d", "e", "less", 1, "more"),
    )
    assert score(DISJUNCTIVE, *alike) is None
    drawn = [
        *pair("more", "less"),
        *pair("more", "more", "1", "q"),
        *pair("more", "more", "1", "q#2"),
    ]
    assert score(DISJUNCTIVE, *drawn) == pytest.approx(1 / 3), (
        "a paragraph that is drawn twice counts twice"
    )


def test_swapping_more_and_less_once_reverses_the_answer_and_twice_keeps_it():
    def pair(gold, first, second, effects=("MORE mud", "less mud")):
        return score(
            SYMMETRY,
            ("more rain", effects[0], gold, 1, first),
            ("less rain", effects[1], gold, 1, second),
        )

    assert (pair("more", "less", "less"), pair("more", "less", "more")) == (1, 0)
    once = ("mud", "mud")
    assert pair("no effect", "no effect", "no effect", once) == 1
    assert pair("no effect", "more", "more", once) == 0
    assert pair("more", "more", "more", once) is None, (
        "gold answers that break the rule are left out"
    )
