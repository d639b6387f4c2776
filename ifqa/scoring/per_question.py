"""Scores single questions."""

from collections.abc import Sequence
from numbers import Real

from ifqa.errors import PluginError
from ifqa.protocols import AnyMeasure, RankingMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.answer_recall import ANSWER
from ifqa.scoring.measures.gold_recall import GOLD_ALL, GOLD_ANY
from ifqa.scoring.scheme import GOLD_READ, ScoringScheme
from ifqa.scoring.stored_scores import QuestionRow
from ifqa.settings import check_shape

VERSION = 5  # increment when a measure changes, so that experiments are scored again


def score_question(
    question: Question,
    scheme: ScoringScheme,
    texts: Sequence[str] | None = None,
    k: int = 0,
    read_depth: int = 0,
    prediction: Prediction | None = None,
) -> QuestionRow:
    """The row of a question: its id, its subsets, and the scores of its ranking and of its
    prediction (None without a reader).

    `texts` are those of the `k` retrieved passages, best first; None without a run. Rankings are
    scored only at depths up to `k`: recall@100 of 20 passages would be recall@20. The reader got
    the first `read_depth` passages.
    """
    scores: dict[str, float | str] = {}
    subsets = [subset.name for subset in scheme.subsets if subset.holds(question)]
    if texts is not None:
        for measure in scheme.rankings:
            scores |= score_ranking(
                question, texts, [depth for depth in measure.depths if depth <= k], [measure]
            )
        for name, measure in ((GOLD_READ, GOLD_ANY), ("answer_read", ANSWER)) if read_depth else ():
            for score in score_ranking(question, texts, [read_depth], [measure]).values():
                scores[name] = bool(score)
        subsets += [GOLD_READ] if scores.get(GOLD_READ) else []
    scores |= score_prediction(question, prediction, scheme) if prediction else {}
    return check_shape(
        QuestionRow, {"id": question.id, "subsets": subsets, **scores}, f"question {question.id}"
    )


def score_ranking(
    question: Question,
    texts: Sequence[str],
    depths: Sequence[int],
    measures: Sequence[RankingMeasure] = (GOLD_ANY, GOLD_ALL, ANSWER),
) -> dict[str, float]:
    """The defined scores, by `name@depth`, of a ranking's passage texts, best first, at these
    depths.
    """
    scores: dict[str, float] = {}
    for measure in measures:
        by_depth = measure.score(question, texts, depths) if depths else {}
        scores |= {
            f"{measure.name}@{k}": _check_score(measure, by_depth[k], question)
            for k in depths
            if k in by_depth
        }
    return scores


def score_prediction(
    question: Question, prediction: Prediction, scheme: ScoringScheme
) -> dict[str, float | str]:
    """The part of a question's row that depends on its prediction: "failed", "abstained", scores
    and texts.
    """
    row: dict[str, float | str] = {"failed": float(prediction.failed)}
    row |= {"abstained": 1.0} if prediction.abstained else {}
    for measure in scheme.answers:
        unanswered = prediction.failed or prediction.abstained
        score = (
            1 - scheme.best_value(measure.name)
            if unanswered
            else measure.score(question, prediction)
        )
        if score is not None:
            row[measure.name] = _check_score(measure, score, question)
    row |= (
        {}
        if prediction.confidence is None or prediction.failed
        else {"confidence": prediction.confidence}
    )
    texts = {"candidate": prediction.candidate, "factual": prediction.factual}
    return row | {"answer": prediction.answer} | {key: text for key, text in texts.items() if text}


def _check_score(measure: AnyMeasure, score: float, question: Question) -> float:
    if not isinstance(score, Real) or not 0 <= score <= 1:
        raise PluginError(
            f"measure {measure.name!r}: wanted a number from 0 to 1 for "
            f"{question.id}, found {score!r}"
        )
    return float(score)
