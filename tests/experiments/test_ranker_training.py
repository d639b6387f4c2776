"""Training the ranker: folds that share no gold passage, and weights that put right passages first."""

import numpy as np
import ranker

from ifqa.protocols import TrainingData
from ifqa.records import Hit, Question
from ifqa.retrieval.linear_ranker import FEATURES


def make_list(number):
    """A list in which the right passage has the highest second feature; other features are random."""
    rng = np.random.default_rng(number)
    rows, place = rng.normal(size=(12, len(FEATURES))), number % 12
    rows[place, 1] = rows[:, 1].max() + 1
    right = np.arange(12) == place
    return ranker.ListFeatures(rows, right, np.full(12, True))


def make_lists(number):
    """`number` lists, each with the ranking of its passages."""
    hits = [Hit(f"p{n}", 1.0) for n in range(12)]
    features = [make_list(n) for n in range(number)]
    return ranker.Lists(TrainingData((), (), "", {}), [hits] * number, features)


def test_questions_that_share_a_gold_passage_are_in_one_fold():
    golds = [("a",), ("b",), ("b", "c"), ("c",), ("d",), ("e",), ("f",), ("g",)]
    questions = [Question(f"q/{n}", "If so?", (), texts) for n, texts in enumerate(golds)]
    folds = ranker.assign_folds(questions, 3)
    assert folds[1] == folds[2] == folds[3]
    assert sorted(set(folds)) == [0, 1, 2]
    assert folds == ranker.assign_folds(questions, 3)


def test_the_feature_that_separates_right_from_wrong_gets_the_weight():
    lists = make_lists(60)
    weights = ranker.fit_weights(lists.features, range(len(FEATURES)), "all", 0.1)
    assert np.argmax(weights) == 1
    folds = [number % 5 for number in range(60)]
    first = [hits[0].passage_id for hits in ranker.cross_rank(lists, folds, range(len(FEATURES)), "gold", 0.1)]
    assert np.mean([passage_id == f"p{number % 12}" for number, passage_id in enumerate(first)]) > 0.9
    boosted = ranker.cross_rank(lists, folds, range(len(FEATURES)), "gold", 0.1, ranker.fit_boosted)
    assert np.mean([hits[0].passage_id == f"p{number % 12}" for number, hits in enumerate(boosted)]) > 0.6
    without = ranker.fit_weights(lists.features, [0, 2, 3], "all", 0.1)
    assert np.flatnonzero(without).tolist() == [0, 2, 3]
