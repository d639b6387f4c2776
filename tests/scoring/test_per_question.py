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


def many_rows(scores):
    """A row for each score, of questions that are not told apart."""
    [row, *_] = rows(0.0, 0.0, 0.0)
    return [row | {"id": f"q/{n}", "EM": em} for n, em in enumerate(scores)]


def one_right():
    return summarise(rows(1.0, 0.0, 0.0), QUESTIONS, SCHEME, None, seed=0)


def test_means_are_over_all_questions():
    scores = one_right()
    assert scores["questions"] == 3
    assert scores["measures"]["EM"]["value"] == pytest.approx(100 / 3)
    assert "questions" not in scores["measures"]["EM"]


def test_each_subset_has_its_means():
    numeric = {"questions": 1, "measures": {"EM": {"value": 100.0}}}
    other = {"questions": 2, "measures": {"EM": {"value": 0.0}}}
    assert one_right()["subsets"] == {"numeric": numeric, "other": other}


def test_scores_without_a_search_or_groups_have_no_key_for_them():
    assert {"ceiling", "groups", "macro"} & set(one_right()) == set()


def test_a_subset_is_left_out_if_unknown_but_not_if_empty():
    scheme = replace(
        SCHEME, subsets=(Subset("untold", lambda _: None), Subset("empty", lambda _: False))
    )
    subsets = summarise(rows(1.0, 0.0, 0.0), QUESTIONS, scheme, None, seed=0)["subsets"]
    assert subsets == {"empty": {"questions": 0, "measures": {}}}


def one_failure():
    scored = [row | {"label": "a", "EMM": 0.5} for row in rows(1.0, 1.0, 0.0)]
    scored[2]["failed"] = 1.0
    return summarise(scored, QUESTIONS, SCHEME, None, seed=0)


def test_a_failure_is_counted():
    assert one_failure()["n_failed"] == 1


def test_a_failure_stays_in_the_denominator():
    assert one_failure()["measures"]["EM"]["value"] == pytest.approx(200 / 3)


def test_other_keys_of_a_row_are_no_measures():
    assert list(one_failure()["measures"]) == ["EM"]


def test_a_failure_scores_worst_without_a_call():
    calls: list[str] = []

    def distance(_, prediction):
        calls.append(prediction.answer)
        return 0.25

    low = Measure("distance", distance, best="low")
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


def rows_of_a_run():
    return [
        per_question.score_question(question, SCHEME, question.gold_passages, k=5)
        for question in QUESTIONS
    ]


def scores_of_a_run(scheme=SCHEME):
    return summarise(rows_of_a_run(), QUESTIONS, scheme, 5, seed=0)


def test_scores_of_a_run_have_its_ceiling():
    assert scores_of_a_run()["ceiling"] == pytest.approx(200 / 3)


def test_scores_of_a_run_have_the_recall_of_its_passages():
    measures = scores_of_a_run()["measures"]
    assert measures["gold_any@1"]["value"] == 100.0
    assert measures["answer@5"]["value"] == pytest.approx(200 / 3)


def test_a_row_has_recall_at_each_cutoff_up_to_k():
    names = [name for name in rows_of_a_run()[0] if name.startswith("gold_any")]
    assert names == ["gold_any@1", "gold_any@5"]


def test_scores_of_a_run_have_its_chance():
    assert set(scores_of_a_run()["chance"]) == {"answer@1", "answer@5"}


def test_scores_without_answer_recall_have_no_chance():
    without = replace(SCHEME, measures=SCHEME.measures[:5])  # no answer recall
    assert "chance" not in scores_of_a_run(without)


def row_by_depth(depth):
    """The row of a question whose second passage is gold."""
    (gold,) = QUESTIONS[1].gold_passages
    return per_question.score_question(QUESTIONS[1], SCHEME, ["x", gold], k=2, read_depth=depth)


@pytest.mark.parametrize(("depth", "read"), [(2, True), (1, False)])
def test_a_row_tells_whether_gold_was_read(depth, read):
    assert row_by_depth(depth)["gold_read"] == read


@pytest.mark.parametrize(("depth", "subsets"), [(2, ["other", "gold_read"]), (1, ["other"])])
def test_a_question_whose_gold_was_read_is_in_a_subset(depth, subsets):
    assert row_by_depth(depth)["subsets"] == subsets


def test_questions_whose_gold_was_read_are_scored_as_a_subset():
    scores = summarise([row_by_depth(2), row_by_depth(1)], [QUESTIONS[1]] * 2, SCHEME, 2, 0)
    assert scores["subsets"]["gold_read"]["questions"] == 1


def grouped(*groups):
    return [
        replace(question, group=group) for question, group in zip(QUESTIONS, groups, strict=True)
    ]


def scores_by_group(scored):
    scheme = replace(SCHEME, groups="dataset")
    return summarise(scored, grouped("a", "b", "b"), scheme, None, seed=0)


def test_each_group_has_scores():
    groups = scores_by_group(rows(1.0, 0.0, 1.0))["groups"]
    assert [groups[name]["measures"]["EM"]["value"] for name in "ab"] == [100.0, 50.0]


def test_each_group_has_equal_weight_in_the_macro_average_only():
    scores = scores_by_group(rows(1.0, 0.0, 1.0))
    assert scores["macro"]["measures"]["EM"]["value"] == 75.0
    assert scores["measures"]["EM"]["value"] == pytest.approx(200 / 3)


def test_the_macro_average_leaves_out_a_group_without_the_measure():
    scored = rows(1.0, 0.0, 1.0)
    del scored[0]["EM"]
    macro = scores_by_group(scored)["macro"]["measures"]["EM"]
    assert macro["value"] == 50.0
    assert macro["groups"] == 1


def test_the_mean_over_questions_resamples_within_groups():
    groups = ["a"] * 5 + ["b"] * 10
    questions = [replace(QUESTIONS[0], id=f"q/{n}", group=group) for n, group in enumerate(groups)]
    scored = many_rows([1.0] * 5 + [0.0] * 9 + [1.0])
    grouping = replace(SCHEME, groups="dataset")
    pooled = summarise(scored, questions, SCHEME, None, seed=0)["measures"]["EM"]
    within = summarise(scored, questions, grouping, None, seed=0)["measures"]["EM"]
    assert within["value"] == pooled["value"]
    assert pooled["low"] < within["low"] == pytest.approx(100 / 3)


def test_the_macro_average_resamples_groups_if_they_are_the_unit():
    scheme = ScoringScheme((Measure("right", lambda *_: 1.0, unit="group"),), groups="dataset")
    values = [float(n % 3 == 0) for n in range(20)]
    scored = [row | {"right": value} for row, value in zip(many_rows(values), values, strict=True)]
    questions = [replace(QUESTIONS[0], id=f"q/{n}", group=str(n // 2)) for n in range(20)]
    macro = summarise(scored, questions, scheme, None, seed=0)["macro"]["measures"]["right"]
    means = [(values[n] + values[n + 1]) / 2 for n in range(0, 20, 2)]
    assert (macro["value"], macro["low"], macro["high"]) == pytest.approx(
        tuple(100 * end for end in mean_interval(sorted(means)))
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
