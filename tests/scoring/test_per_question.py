"""Rows of questions, and scores over all questions, subsets and groups."""

from dataclasses import replace

import pytest

from ifqa.errors import IfqaError
from ifqa.protocols import Measure, SetMeasure, Subset
from ifqa.records import Prediction, Question
from ifqa.scoring import per_question
from ifqa.scoring.aggregation import aggregate_rows
from ifqa.scoring.scheme import ScoringScheme, default_scheme
from ifqa.scoring.statistics import mean_interval

QUESTIONS = [
    Question("q/1", "If one, how many?", ("5", "five"), ("There were 5 of them in the old barn.",)),
    Question("q/2", "If two, who?", ("Ada",), ("It was Ada who came first that year.",)),
    Question("q/3", "If three, who?", ("Bo",), ("Nobody is named in this short passage.",)),
]


SCHEME = default_scheme()


def summarise(rows, questions, scheme, k, seed, predictions=()):
    return aggregate_rows(rows, questions, scheme, k, predictions).scores(seed)


def rows(*scores):
    scored = [per_question.score_question(question, SCHEME) for question in QUESTIONS]
    return [
        row | {"EM": em, "failed": 0.0, "answer": "x"}
        for row, em in zip(scored, scores, strict=True)
    ]


def test_means_are_over_all_questions_and_by_subset():
    scores = summarise(rows(1.0, 0.0, 0.0), QUESTIONS, SCHEME, None, seed=0)
    assert scores["questions"] == 3
    assert scores["measures"]["EM"]["value"] == pytest.approx(100 / 3)
    assert "questions" not in scores["measures"]["EM"]
    all_right, all_wrong = (
        {"EM": {"value": value, "low": value, "high": value}} for value in (100.0, 0.0)
    )
    numeric = {"questions": 1, "measures": all_right}
    other = {"questions": 2, "measures": all_wrong}
    assert scores["subsets"] == {"numeric": numeric, "other": other}
    assert {"ceiling", "groups", "macro"} & set(scores) == set()


def test_a_subset_is_left_out_if_unknown_but_not_if_empty():
    scheme = replace(
        SCHEME, subsets=(Subset("untold", lambda _: None), Subset("empty", lambda _: False))
    )
    subsets = summarise(rows(1.0, 0.0, 0.0), QUESTIONS, scheme, None, seed=0)["subsets"]
    assert subsets == {"empty": {"questions": 0, "measures": {}}}


def test_a_failure_is_counted_and_stays_in_the_denominator():
    scored = [row | {"label": "a", "EMM": 0.5} for row in rows(1.0, 1.0, 0.0)]
    scored[2]["failed"] = 1.0
    scores = summarise(scored, QUESTIONS, SCHEME, None, seed=0)
    assert scores["n_failed"] == 1
    assert scores["measures"]["EM"]["value"] == pytest.approx(200 / 3)
    assert list(scores["measures"]) == ["EM"], "other keys are no measures"


def test_a_failure_scores_worst_without_a_call():
    calls = []
    low = Measure(
        "distance", lambda _, prediction: calls.append(prediction.answer) or 0.25, best="low"
    )
    scheme = ScoringScheme((*SCHEME.measures, low))
    failed = per_question.score_prediction(
        QUESTIONS[0], Prediction("q/1", "5", error="cut"), scheme
    )
    assert {name: failed[name] for name in ("EM", "F1", "contains", "distance", "failed")} == {
        "EM": 0.0,
        "F1": 0.0,
        "contains": 0.0,
        "distance": 1.0,
        "failed": 1.0,
    }
    assert calls == []
    assert (
        per_question.score_prediction(QUESTIONS[0], Prediction("q/1", "5"), scheme)["distance"]
        == 0.25
    )


def test_a_row_lacks_measures_that_are_not_defined_for_its_question():
    scheme = ScoringScheme(
        (Measure("odd", lambda question, _: None if question.id == "q/2" else 1.0),)
    )
    scored = [
        per_question.score_question(question, scheme, prediction=Prediction(question.id, "x"))
        for question in QUESTIONS
    ]
    assert ["odd" in row for row in scored] == [True, False, True]
    assert summarise(scored, QUESTIONS, scheme, None, 0)["measures"]["odd"]["questions"] == 2


@pytest.mark.parametrize("score", [1.5, -0.1, float("nan"), "1"])
def test_a_score_outside_0_to_1_is_refused(score):
    scheme = ScoringScheme((Measure("mine", lambda *_: score),))
    with pytest.raises(IfqaError, match="measure 'mine': wanted a number from 0 to 1 for q/1"):
        per_question.score_prediction(QUESTIONS[0], Prediction("q/1", "5"), scheme)
    over_all = ScoringScheme((SetMeasure("all", lambda *_: score),))
    predictions = [Prediction(question.id, "x") for question in QUESTIONS]
    with pytest.raises(IfqaError, match="measure 'all': wanted a number from 0 to 1"):
        summarise(rows(0, 0, 0), QUESTIONS, over_all, None, 0, predictions)


def test_scores_of_a_run_have_its_ceiling_and_chance():
    scored = [
        per_question.score_question(question, SCHEME, question.gold_passages, k=5)
        for question in QUESTIONS
    ]
    scores = summarise(scored, QUESTIONS, SCHEME, 5, seed=0)
    assert scores["ceiling"] == pytest.approx(200 / 3)
    assert set(scores["chance"]) == {"answer@1", "answer@5"}
    assert scores["measures"]["gold_any@1"]["value"] == 100.0
    assert scores["measures"]["answer@5"]["value"] == pytest.approx(200 / 3)
    assert [name for name in scored[0] if name.startswith("gold_any")] == [
        "gold_any@1",
        "gold_any@5",
    ]
    without = replace(SCHEME, measures=SCHEME.measures[:5])  # no answer recall
    assert "chance" not in summarise(scored, QUESTIONS, without, 5, seed=0)


def test_whether_gold_was_read_is_known_and_a_subset():
    (gold,) = QUESTIONS[1].gold_passages
    read = per_question.score_question(QUESTIONS[1], SCHEME, ["x", gold], k=2, read_depth=2)
    missed = per_question.score_question(QUESTIONS[1], SCHEME, ["x", gold], k=2, read_depth=1)
    assert (read["gold_read"], missed["gold_read"]) == (True, False)
    assert (read["subsets"], missed["subsets"]) == (["other", "gold_read"], ["other"])
    scores = summarise([read, missed], [QUESTIONS[1]] * 2, SCHEME, 2, 0)
    assert scores["subsets"]["gold_read"]["questions"] == 1


def grouped(*groups):
    return [
        replace(question, group=group) for question, group in zip(QUESTIONS, groups, strict=True)
    ]


def test_each_group_has_scores_and_equal_weight_in_the_macro_average():
    scheme = replace(SCHEME, groups="dataset")
    questions = grouped("a", "b", "b")
    scores = summarise(rows(1.0, 0.0, 1.0), questions, scheme, None, seed=0)
    assert [scores["groups"][name]["measures"]["EM"]["value"] for name in "ab"] == [100.0, 50.0]
    assert scores["macro"]["measures"]["EM"]["value"] == 75.0
    assert scores["measures"]["EM"]["value"] == pytest.approx(200 / 3)
    scored = rows(1.0, 0.0, 1.0)
    del scored[0]["EM"]
    macro = summarise(scored, questions, scheme, None, seed=0)["macro"]["measures"]["EM"]
    assert (macro["value"], macro["groups"]) == (50.0, 1)


def test_the_mean_over_questions_resamples_within_groups_and_the_macro_average_groups_if_they_are_the_unit():
    questions = grouped("a", "b", "b")
    scored = rows(1.0, 0.0, 0.0)
    pooled = summarise(scored, questions, SCHEME, None, seed=0)["measures"]["EM"]
    within = summarise(scored, questions, replace(SCHEME, groups="dataset"), None, seed=0)[
        "measures"
    ]["EM"]
    assert (pooled["low"], pooled["high"]) == (0.0, 100.0)
    assert (within["value"], within["low"], within["high"]) == pytest.approx((100 / 3,) * 3)
    scheme = ScoringScheme((Measure("right", lambda *_: 1.0, unit="group"),), groups="dataset")
    scored = [row | {"right": value} for row, value in zip(scored, (1.0, 0.0, 1.0), strict=True)]
    macro = summarise(scored, questions, scheme, None, seed=0)["macro"]["measures"]["right"]
    assert (macro["value"], macro["low"], macro["high"]) == tuple(
        100 * end for end in mean_interval([1.0, 0.5])
    )


def test_a_question_without_its_group_or_unit_is_named():
    scheme = ScoringScheme((Measure("right", lambda *_: 1.0, unit="paragraph"),))
    scored = [row | {"right": 1.0} for row in rows(0, 0, 0)]
    with pytest.raises(
        IfqaError, match="'right' resamples by paragraph, but q/1 has no label 'paragraph'"
    ):
        summarise(scored, QUESTIONS, scheme, None, 0)
    with pytest.raises(IfqaError, match="question q/2 has no dataset"):
        summarise(rows(0, 0, 0), grouped("a", "", "b"), replace(SCHEME, groups="dataset"), None, 0)
