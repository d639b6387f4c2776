"""The authors' measures: ROUGE-L against another computation of the longest common subsequence."""

import random
import re

import pytest

from ifqa.companions.causalqa.measures import AUTHORS_F1, rouge_l
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.exact_match import normalize

WORDS = (
    "the sea otter otters was hunting hunted almost to extinction in 1850 U.S. "
    "Shōkaku naïve a cold-blooded it's кот"
).split()


def common(a, b):
    """Length of the longest common subsequence, by the bits of whole numbers (Hyyrö 2004), not by a
    table.
    """
    places: dict[str, int] = {}
    for n, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << n
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        both = row & places.get(word, 0)
        row = (row + both | row - both) & full
    return len(a) - row.bit_count()


def expected(answer, gold):
    """Precision, recall and F1."""
    a, b = (re.findall("[a-z0-9]+", normalize(text)) for text in (answer, gold))
    shared = common(a, b)
    return shared / max(len(a), 1), shared / max(len(b), 1), 2 * shared / max(len(a) + len(b), 1)


def test_it_agrees_with_another_computation_on_5000_pairs():
    rng = random.Random(18)
    f1s = set()
    for _ in range(5_000):
        answer, gold = (" ".join(rng.choices(WORDS, k=rng.randint(0, 14))) for _ in range(2))
        scores = rouge_l(answer, [gold])
        assert (
            max(abs(a - b) for a, b in zip(scores, expected(answer, gold), strict=True)) < 1e-12
        ), (answer, gold)
        f1s.add(round(scores.f1, 3))
    assert len(f1s) > 50


def test_all_three_scores_are_of_the_gold_answer_with_the_best_f1():
    golds = ["yellow fever", "yellow fever and malaria killed about twenty two thousand people"]
    assert rouge_l("yellow fever and malaria", golds) == pytest.approx((2 / 4, 1, 2 / 3))


def test_the_package_splits_words_at_other_letters():
    assert (rouge_l("Shōkaku", ["sh kaku"]).f1, rouge_l("кот", ["кот"]).f1) == (1, 0)


def test_an_answer_without_words_scores_0():
    question = Question("q", "why?", ("A", "b"))
    assert AUTHORS_F1.score(question, Prediction("q", "the")) == rouge_l("the", ["A"]).f1 == 0
    assert AUTHORS_F1.score(question, Prediction("q", "b c")) == pytest.approx(2 / 3)
