"""The scores of each question."""

from collections.abc import Sequence
from numbers import Real

from ifqa.errors import IfqaError
from ifqa.protocols import AnyMeasure, RankingMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.answer_recall import ANSWER
from ifqa.scoring.measures.gold_recall import GOLD_ALL, GOLD_ANY
from ifqa.scoring.scheme import GOLD_READ, ScoringScheme
from ifqa.scoring.score_files import QuestionRow
from ifqa.settings import check_shape

VERSION = 5  # raise it when a measure changes, so that experiments are scored again


def score_question(
    question: Question, by: ScoringScheme, texts: Sequence[str] | None = None, k: int = 0, given: int = 0,
    prediction: Prediction | None = None,
) -> QuestionRow:  # fmt: skip
    """The row of a question: its id, its subsets, the scores of its ranking, and what `reading` returns.

    `texts` are of the `k` retrieved passages, best first, None without a run. Measures of rankings are at each depth up to `k`:
    recall@100 of a run of 20 would be recall@20. The first `given` passages went to a reader; the row says whether a gold
    passage, and an answer, is among these. `prediction` is None without a reader.
    """
    scores: dict[str, float | str] = {}
    subsets = [subset.name for subset in by.subsets if subset.holds(question)]
    if texts is not None:
        for measure in by.rankings:
            scores |= score_ranking(question, texts, [depth for depth in measure.depths if depth <= k], [measure])
        for name, measure in ((GOLD_READ, GOLD_ANY), ("answer_read", ANSWER)) if given else ():
            for held in score_ranking(question, texts, [given], [measure]).values():
                scores[name] = bool(held)
        subsets += [GOLD_READ] if scores.get(GOLD_READ) else []
    scores |= reading(question, prediction, by) if prediction else {}
    return check_shape(QuestionRow, {"id": question.id, "subsets": subsets, **scores}, f"question {question.id}")


def score_ranking(
    question: Question, texts: Sequence[str], depths: Sequence[int],
    measures: Sequence[RankingMeasure] = (GOLD_ANY, GOLD_ALL, ANSWER),
) -> dict[str, float]:  # fmt: skip
    """The scores of a ranking's passage texts, best first, at these depths, by `name@depth`; only those that are defined."""
    scores: dict[str, float] = {}
    for measure in measures:
        values = measure.score(question, texts, depths) if depths else {}
        scores |= {f"{measure.name}@{k}": _checked(measure, values[k], question) for k in depths if k in values}
    return scores


def reading(question: Question, prediction: Prediction, by: ScoringScheme) -> dict[str, float | str]:
    """The part of a question's row that comes from its prediction: whether it failed or abstained, its scores, its texts."""
    row: dict[str, float | str] = {"failed": float(prediction.failed)}
    row |= {"abstained": 1.0} if prediction.abstained else {}
    for measure in by.answers:
        none = prediction.failed or prediction.abstained
        value = 1 - by.best(measure.name) if none else measure.score(question, prediction)
        if value is not None:
            row[measure.name] = _checked(measure, value, question)
    row |= {} if prediction.confidence is None or prediction.failed else {"confidence": prediction.confidence}
    texts = {"candidate": prediction.candidate, "factual": prediction.factual}
    return row | {"answer": prediction.answer} | {key: text for key, text in texts.items() if text}


def _checked(measure: AnyMeasure, value: float, question: Question) -> float:
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise IfqaError(f"measure {measure.name!r}: wanted a number from 0 to 1 for {question.id}, found {value!r}")
    return float(value)
