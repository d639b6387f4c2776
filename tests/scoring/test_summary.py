import pytest

from ifqa.records import Question
from ifqa.scoring import summary

QUESTIONS = [
    Question("q/1", "If one, how many?", ("5", "five"), ("There were 5 of them in the old barn.",)),
    Question("q/2", "If two, who?", ("Ada",), ("It was Ada who came first that year.",)),
    Question("q/3", "If three, who?", ("Bo",), ("Nobody is named in this short passage.",)),
]


def rows(*scores):
    return [
        {"id": question.id, "EM": score, "failed": 0.0, "answer": "x"} | summary.kind(question)
        for question, score in zip(QUESTIONS, scores, strict=True)
    ]


def test_means_are_over_all_questions_and_by_kind():
    scores = summary.summarise(rows(1.0, 0.0, 0.0), QUESTIONS, None, seed=0)
    assert scores["questions"] == 3
    assert scores["measures"]["EM"]["value"] == pytest.approx(33.33)
    assert scores["numeric"] == {"questions": 1, "measures": {"EM": {"value": 100.0, "low": 100.0, "high": 100.0}}}
    assert scores["other"]["measures"]["EM"]["value"] == 0.0
    assert "ceiling" not in scores


def test_a_failure_is_counted_and_stays_in_the_denominator():
    scored = rows(1.0, 1.0, 0.0)
    scored[2]["failed"] = 1.0
    scores = summary.summarise(scored, QUESTIONS, None, seed=0)
    assert scores["n_failed"] == 1
    assert scores["measures"]["EM"]["value"] == pytest.approx(66.67)
    assert "failed" not in scores["measures"]


def test_a_run_has_its_ceiling_and_chance_beside_it():
    scored = [
        row | summary.retrieval(question, question.gold_passages, k=5)
        for row, question in zip(rows(0, 0, 0), QUESTIONS, strict=True)
    ]
    scores = summary.summarise(scored, QUESTIONS, 5, seed=0)
    assert scores["ceiling"] == pytest.approx(66.67)
    assert set(scores["chance"]) == {"answer@1", "answer@5"}
    assert scores["measures"]["gold_any@1"]["value"] == 100.0
    assert scores["measures"]["answer@5"]["value"] == pytest.approx(66.67)


def test_a_run_is_not_scored_deeper_than_it_is():
    assert summary.cutoffs_within(20) == [1, 5, 10, 20]
    assert "answer@20" not in summary.retrieval(QUESTIONS[0], ["x"], k=10)


def test_a_measure_that_some_questions_lack_says_of_how_many_it_is():
    scored = rows(1.0, 0.0, 0.0)
    scored[1]["gold_any@1"] = 1.0
    scores = summary.summarise(scored, QUESTIONS, None, seed=0)
    assert scores["measures"]["gold_any@1"]["questions"] == 1
    assert "questions" not in scores["measures"]["EM"]
