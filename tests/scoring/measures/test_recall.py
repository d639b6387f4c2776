"""Gold recall and answer recall, against DPR's matcher, trec_eval and counting by hand."""

import itertools
import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.records import Question
from ifqa.scoring.measures.answer_recall import ceiling, chance_floor, has_answer
from ifqa.scoring.per_question import score_ranking


def passage(seed):
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghij", k=rng.randint(2, 7))) for _ in range(100))


def question(*gold, answers=("Paris",)):
    return Question("mine/dev/0", "If ..., where?", answers, gold)


FOUND = [
    ("It lies in PARIS, France.", "Paris"),
    ("the U. S. Army", "U.S."),
    ("1914–1918", "1918"),
    ("ΟΔΟΣ", "οδος"),
    ("Beyoncé sang", unicodedata.normalize("NFD", "beyoncé")),
    ("It was (by far)the best", "far) the"),
    ("New\n\tYork", "new york"),
    ("R&D", "r & d"),
    ("x ≠ y", "="),
]
NOT_FOUND = [  # DPR would find " \u200b", which has no tokens, everywhere
    ("Parisian", "Paris"),
    ("10,000", "10000"),
    ("the US Army", "U.S."),
    ("Beyoncé", "Beyonce"),
    ("New and York", "New York"),
    ("", "Paris"),
    ("Paris", ""),
    ("Paris", " \u200b"),
]


def test_answers_are_found_by_tokens():
    assert [
        pair for pair in [*FOUND, *NOT_FOUND] if has_answer(pair[0], ["nowhere else", pair[1]])
    ] == FOUND
    assert not has_answer("Paris", [])
    with pytest.raises(TypeError, match="letters"):
        has_answer("Paris", "Paris")


ASSIGNED = st.text(st.characters(exclude_categories=("Cs", "Cn", "Co")), max_size=40)
TRICKY = st.text("aAbé\u0301ΣσςİIi .,'’-–1½²Ⓐ\n\t\u00a0\u200b\u2028ﬁ東&;", max_size=20)


@given(ASSIGNED | TRICKY, ASSIGNED | TRICKY, st.data())
def test_agrees_with_dpr_as_pyserini_has_it(text, other, draws):
    from pyserini.eval.evaluate_dpr_retrieval import SimpleTokenizer, has_answers

    tokenizer = SimpleTokenizer()
    ends = sorted(draws.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    for answer in (other[:3], text[slice(*ends)], text[slice(*ends)].swapcase()):
        # DPR finds none everywhere
        some = bool(tokenizer.tokenize(unicodedata.normalize("NFD", answer)).words())
        assert has_answer(text, [answer]) == (some and has_answers(text, [answer], tokenizer))


CUTOFFS = (1, 2, 3, 5, 10)


def scores_by_cutoff():
    texts = [passage(0), passage(1), f"{passage(2)} in Paris", passage(3), passage(4)]
    return score_ranking(question(passage(1), passage(4)), texts, CUTOFFS)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("gold_any", [0, 1, 1, 1, 1]),
        ("gold_all", [0, 0, 0, 1, 1]),
        ("answer", [0, 0, 1, 1, 1]),
    ],
)
def test_a_measure_has_a_score_at_each_cutoff(measure, expected):
    scores = scores_by_cutoff()
    assert [scores[f"{measure}@{k}"] for k in CUTOFFS] == expected


def test_a_ranking_has_three_measures():
    assert len(scores_by_cutoff()) == 3 * len(CUTOFFS)


def test_a_ranking_without_passages_scores_0():
    assert set(score_ranking(question(passage(0)), [], (1, 5)).values()) == {0.0}


def test_a_question_without_gold_passages_has_no_gold_recall():
    assert score_ranking(question(), ["Paris"], depths=(1,)) == {"answer@1": 1.0}


def test_a_question_without_answers_has_no_answer_recall():
    assert set(score_ranking(question(passage(0), answers=()), ["Paris"], depths=(1,))) == {
        "gold_any@1",
        "gold_all@1",
    }


@given(st.permutations(range(12)), st.sets(st.integers(0, 15), min_size=1, max_size=3))
def test_gold_recall_agrees_with_trec_eval(order, gold):
    import ir_measures
    from ir_measures import R, Success

    ours = score_ranking(
        question(*map(passage, sorted(gold))),
        [passage(number) for number in order],
        depths=(1, 5, 10),
    )
    qrels = [ir_measures.Qrel("q", str(number), 1) for number in gold]
    run = [
        ir_measures.ScoredDoc("q", str(number), -float(rank)) for rank, number in enumerate(order)
    ]
    for k in (1, 5, 10):
        theirs = ir_measures.calc_aggregate([Success @ k, R @ k], qrels, run)
        assert ours[f"gold_any@{k}"] == theirs[Success @ k]
        assert ours[f"gold_all@{k}"] == float(theirs[R @ k] == 1)


def test_chance_is_the_mean_over_all_draws():
    questions = [
        Question("0", "", ("red",), ("red one", "shared blue")),
        Question("1", "", ("blue", "green"), ("shared blue", "plain")),
        Question("2", "", ("one", "plain"), ("green grass",)),
        Question("3", "", ("",), ("a dull thing",)),
        Question("4", "", ("dull",), ()),
    ]
    pool = ["red one", "shared blue", "plain", "green grass", "a dull thing"]
    chance = chance_floor(questions, depths=(1, 2, 3, 10))
    for k in (1, 2, 3, 10):
        shares = []
        for query in questions:
            others = [text for text in pool if text not in query.gold_passages]
            draws = list(itertools.combinations(others, min(k, len(others))))
            shares.append(
                sum(any(has_answer(text, query.answers) for text in draw) for draw in draws)
                / len(draws)
            )
        assert chance[f"answer@{k}"] == pytest.approx(sum(shares) / len(shares))


def test_chance_without_other_passages_is_0():
    assert chance_floor([question("in Paris")], depths=(1, 5)) == {"answer@1": 0.0, "answer@5": 0.0}


@pytest.mark.parametrize(("more", "expected"), [((), 0.0), (("Or in Paris.",), 1.0)])
def test_the_ceiling_looks_into_gold_passages(more, expected):
    assert ceiling(question("It is in Rome.", *more)) == expected
