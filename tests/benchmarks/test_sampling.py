"""Random samples of questions: the same everywhere, and fair."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.benchmarks.sampling import draw_sample, draw_stratified_sample
from ifqa.records import Question

PINNED = "31 34 38 47 70 75".split()
PINNED_STRATIFIED = "15 34 55 59 68 92 94 98".split()


def questions(count):
    return [Question(f"x/dev/{number}", "If so, who?") for number in range(count)]


def ids(sample):
    return [question.id.rpartition("/")[2] for question in sample]


def test_the_draw_is_pinned():
    """Another draw would make every sampled run of a user again."""
    assert ids(draw_sample(questions(100), 6, 1)) == PINNED
    strata = ["a" if number % 4 else "b" for number in range(100)]
    assert ids(draw_stratified_sample(questions(100), 8, 1, strata)) == PINNED_STRATIFIED


@given(st.permutations(range(30)), st.integers(0, 30), st.integers(0, 5))
def test_the_order_of_the_questions_does_not_decide(order, count, seed):
    drawn = draw_sample(questions(30), count, seed)
    shuffled = [questions(30)[number] for number in order]
    assert {*ids(draw_sample(shuffled, count, seed))} == {*ids(drawn)}


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
def test_a_smaller_sample_is_part_of_a_larger_one(small, more, seed):
    few = ids(draw_sample(questions(60), small, seed))
    assert {*few} <= {*ids(draw_sample(questions(60), small + more, seed))}


@given(st.integers(1, 80), st.integers(0, 5))
def test_a_sample_keeps_the_order_of_the_questions(count, seed):
    drawn = draw_sample(questions(60), count, seed)
    assert drawn == sorted(drawn, key=questions(60).index)
    assert len(drawn) == min(count, 60)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.data())
def test_each_stratum_has_its_share(strata, data):
    asked = questions(len(strata))
    count = data.draw(st.integers(1, len(strata)))
    seed = data.draw(st.integers(0, 9))
    drawn = draw_stratified_sample(asked, count, seed, strata)
    assert len(drawn) == count
    of = dict(zip(ids(asked), strata, strict=True))
    taken = Counter(of[name] for name in ids(drawn))
    for stratum, size in Counter(strata).items():
        assert abs(taken[stratum] - count * size / len(strata)) < 1


@pytest.mark.parametrize("stratified", [False, True])
def test_each_question_has_the_same_chance(stratified):
    asked = questions(20)
    strata = ["rare" if number < 3 else "common" for number in range(20)]
    taken: Counter[str] = Counter()
    for seed in range(2000):
        drawn = (
            draw_stratified_sample(asked, 5, seed, strata)
            if stratified
            else draw_sample(asked, 5, seed)
        )
        taken.update(ids(drawn))
    # 500 each; the standard deviation is 19.4
    assert {*taken} == {*ids(asked)}
    assert all(abs(count - 500) < 5 * 19.4 for count in taken.values())


def test_a_sample_of_more_than_all_is_all():
    assert draw_stratified_sample(questions(5), 9, 0, ["a"] * 5) == questions(5)
