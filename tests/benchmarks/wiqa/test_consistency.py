"""Transitivity, disjunctive consistency and symmetry: of a perfect reader, of coins, and counted again from the graphs."""

import random
from itertools import combinations
from statistics import fmean, stdev

import pytest

from ifqa.benchmarks.wiqa.benchmark import SPLITS
from ifqa.benchmarks.wiqa.consistency import DISJUNCTIVE, SIGNS, SYMMETRY, TRANSITIVITY
from ifqa.plugins import open_benchmark
from ifqa.records import Prediction, Question
from ifqa.scoring.statistics import SetStatistic

SAMPLE = open_benchmark("sample-wiqa")
QUESTIONS = [question for split in SPLITS for question in SAMPLE.questions(split)]
GRAPHS = SAMPLE.graphs("test")
MEASURES = (TRANSITIVITY, DISJUNCTIVE, SYMMETRY)
CHANCE = {"transitivity": 1 / 3, "disjunctive": 2 / 9, "symmetry": 1 / 3}


def predictions(answers):
    return [Prediction(question.id, answer) for question, answer in zip(QUESTIONS, answers, strict=True)]


def score(measure, *cases):
    """A measure of questions: (change, effect, gold answer, hops, answer), and a graph and a group if they are not the first."""
    questions, answers = [], []
    for n, (change, effect, gold, hops, answer, *place) in enumerate(cases):
        graph, group = place or ("1", "p")
        stem = f"suppose {change} happens, how will it affect {effect}."
        labels = (("hops", str(hops or "")), ("graph", graph))
        questions.append(Question(str(n), stem, (gold,), choices=tuple(SIGNS), group=group, labels=labels))
        answers.append(Prediction(str(n), answer))
    return measure.score(questions, answers)


def again(answered):
    """Transitivity and disjunctive consistency from the graphs' edges and the questions' nodes alone: a truth value a case."""
    signs = {
        tuple(map(question.label, ("graph", "source", "target"))): SIGNS.get(answered[question.id])
        for question in QUESTIONS
    }
    chains, pairs = [], []
    for graph in GRAPHS.values():
        edges = [(edge.source, edge.target) for edge in graph.edges]
        paths = [[edge] for edge in edges]
        for path in paths:  # it grows meanwhile
            paths += [[*path, edge] for edge in edges if path[-1][1] == edge[0]]
        for path in paths:
            steps = [signs[graph.id, *edge] for edge in path]
            if len(path) > 1:
                product = None if None in steps else (-1) ** steps.count(-1) * (0 not in steps)
                chains.append(product is not None and product == signs[graph.id, path[0][0], path[-1][1]])
        for one, other in combinations(graph.edges, 2):
            if (one.source == other.source or one.target == other.target) and one.sign != other.sign:
                pairs.append({signs[graph.id, *edge[:2]] for edge in (one, other)} == {1, -1})
    return chains, pairs


GOLD = {question.id: question.answers[0] for question in QUESTIONS}


@pytest.mark.parametrize("measure", MEASURES, ids=lambda one: one.name)
def test_a_perfect_reader_is_wholly_consistent_and_a_coin_lands_on_chance(measure):
    assert measure.score(QUESTIONS, predictions(GOLD.values())) == 1
    coins = [predictions(random.Random(seed).choices([*SIGNS], k=len(QUESTIONS))) for seed in range(60)]
    groups = [question.group for question in QUESTIONS]
    value, low, high = SetStatistic(measure, list(zip(QUESTIONS, coins[0], strict=True)), groups).interval(0)
    assert low <= CHANCE[measure.name] <= high
    assert low <= value <= high
    values = [measure.score(QUESTIONS, coin) for coin in coins]
    assert abs(fmean(values) - CHANCE[measure.name]) < 3 * stdev(values) / 60**0.5
    assert f"chance {100 * CHANCE[measure.name]:.1f}" in measure.about


@pytest.mark.parametrize("seed", range(2))
def test_a_brute_force_over_the_graphs_counts_the_same(seed):
    draw = random.Random(seed)
    answers = [draw.choice([gold, *SIGNS, "", "perhaps"]) for gold in GOLD.values()]
    chains, pairs = again(dict(zip(GOLD, answers, strict=True)))
    assert (len(chains), len(pairs)) == (216, 84)
    found = [measure.score(QUESTIONS, predictions(answers)) for measure in (TRANSITIVITY, DISJUNCTIVE)]
    assert found == pytest.approx([fmean(chains), fmean(pairs)])


def test_a_chain_fits_within_one_graph_and_paragraph_and_a_missing_answer_with_nothing():
    steps = ("a", "b", "more", 1), ("b", "c", "less", 1), ("a", "c", "less", 2)
    assert score(TRANSITIVITY, *((*step, "") for step in steps)) == 0
    far = [
        ("b", "c", "less", 1, "less", "2", "p"),
        ("a", "c", "less", 2, "less"),
        ("b", "c", "less", 1, "less", "1", "q"),
    ]
    assert score(TRANSITIVITY, ("a", "b", "more", 1, "more"), *far) is None


def test_opposite_steps_are_disjunctive():
    def pair(first, second, *place):
        return ("a", "b", "more", 1, first, *place), ("a", "c", "less", 1, second, *place)

    assert score(DISJUNCTIVE, *pair("more", "")) == 0
    assert score(DISJUNCTIVE, *pair("less", "More.")) == 1
    alike = ("a", "b", "more", 1, "more"), ("a", "c", "more", 1, "more"), ("d", "e", "less", 1, "more")
    assert score(DISJUNCTIVE, *alike) is None
    drawn = [*pair("more", "less"), *pair("more", "more", "1", "q"), *pair("more", "more", "1", "q#2")]
    assert score(DISJUNCTIVE, *drawn) == pytest.approx(1 / 3), "a paragraph that a resample has twice counts twice"


def test_exchanging_more_and_less_once_turns_the_answer_and_twice_keeps_it():
    def pair(gold, first, second, effects=("MORE mud", "less mud")):
        return score(SYMMETRY, ("more rain", effects[0], gold, 1, first), ("less rain", effects[1], gold, 1, second))

    assert (pair("more", "less", "less"), pair("more", "less", "more")) == (1, 0)
    once = ("mud", "mud")
    assert pair("no effect", "no effect", "no effect", once) == 1
    assert pair("no effect", "more", "more", once) == 0
    assert pair("more", "more", "more", once) is None, "gold answers that break the rule are left out"
