"""The scores of each question, and the shape of an experiment's scores, which `ifqa.scoring.aggregation` makes of them."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Annotated, NotRequired, cast, final

from pydantic import Field
from typing_extensions import TypedDict  # pydantic reads typing's own from Python 3.12 on

from ifqa.errors import IfqaError
from ifqa.protocols import AnyMeasure, RankingMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.answer_recall import ANSWER
from ifqa.scoring.measures.gold_recall import GOLD_ALL, GOLD_ANY
from ifqa.scoring.scheme import GOLD_READ, Declared
from ifqa.settings import Natural, Share, Text

Percent = Annotated[float, Field(ge=0, le=100)]
VERSION = 5  # raise it when a measure changes, so that experiments are scored again


class Row(TypedDict):
    """A line of `per_question.jsonl`; further keys are the scores, by the names of their measures (`score_in`)."""

    id: Text
    subsets: list[str]
    gold_read: NotRequired[bool]  # whether the passages given to the reader hold a gold passage, and an answer
    answer_read: NotRequired[bool]
    failed: NotRequired[Share]
    abstained: NotRequired[Share]  # 1; only if the reader did
    confidence: NotRequired[Share]  # that the answer, or the candidate, is right
    answer: NotRequired[str]
    candidate: NotRequired[str]
    factual: NotRequired[str]


class Mean(TypedDict):
    """A score and its 95% bootstrap interval, in percent; the number of questions or groups, if it is not over all."""

    value: Percent
    low: Percent
    high: Percent
    questions: NotRequired[Natural]
    groups: NotRequired[Natural]


Means = dict[str, Mean]


@final
class Part(TypedDict):
    """Scores over a subset or a group."""

    questions: Natural
    measures: Means


@final
class Macro(TypedDict):
    """Scores that are means over groups."""

    measures: Means


class Risk(TypedDict):
    """A point of the risk-coverage curve: the share of wrong answers among the surest questions."""

    coverage: Percent  # the share of the questions that are answered
    value: Percent
    low: Percent
    high: Percent


class Bin(TypedDict):
    """A bin of a reliability diagram: questions of like confidence."""

    questions: Natural
    confidence: Percent  # mean
    value: Percent  # the share of right answers
    low: Percent
    high: Percent


class Sureness(TypedDict):
    """What the figures of confidence show: the risk at each coverage, and fifteen bins, those of least confidence first."""

    risks: Annotated[list[Risk], Field(min_length=1)]
    bins: Annotated[list[Bin], Field(min_length=1)]


@final
class Content(TypedDict):
    """What `Aggregator.scores` returns; in `scores.json` also what the score stage adds."""

    questions: Natural
    n_failed: Natural
    measures: Means
    subsets: dict[str, Part]
    n_abstained: NotRequired[Natural]  # if there are any
    sureness: NotRequired[Sureness]  # if the reader gives confidences
    groups: NotRequired[dict[str, Part]]
    macro: NotRequired[Macro]
    ceiling: NotRequired[Percent]
    chance: NotRequired[dict[str, Percent]]
    not_asked: NotRequired[Natural]
    retry: NotRequired[Natural]
    of: NotRequired[Natural]


def score_in(row: Row, key: str) -> float | None:
    """A question's score in a measure; None if it has none."""
    return cast(Mapping[str, float], row).get(key)


def row(
    question: Question,
    by: Declared,
    texts: Sequence[str] | None = None,
    k: int = 0,
    given: int = 0,
    prediction: Prediction | None = None,
) -> Row:
    """The row of a question: its "id", its "subsets", and what `retrieval` and `reading` return.

    `texts` are the texts of the retrieved passages, None without a run; `prediction` is None without a reader.
    """
    row: Row = {"id": question.id, "subsets": [subset.name for subset in by.subsets if subset.holds(question)]}
    if texts is not None:
        row = cast(Row, {**row, **retrieval(question, texts, by, k, given)})
        row["subsets"] += [GOLD_READ] if row.get(GOLD_READ) else []
    return cast(Row, {**row, **reading(question, prediction, by)}) if prediction else row


def retrieval(question: Question, texts: Sequence[str], by: Declared, k: int, given: int = 0) -> dict[str, float]:
    """The measures of one ranking at every depth up to `k`, the retrieved depth.

    Deeper measures are left out: recall@100 of a run of 20 would be recall@20. If the first `given` passages went to a
    reader, also whether a gold passage, and an answer, is among them: "gold_read" and "answer_read".
    """
    row: dict[str, float] = {}
    for measure in by.rankings:
        row |= score_ranking(question, texts, [depth for depth in measure.depths if depth <= k], [measure])
    if given:
        among = score_ranking(question, texts, [given], [GOLD_ANY, ANSWER])
        for name, measure in ((GOLD_READ, GOLD_ANY), ("answer_read", ANSWER)):
            if (key := f"{measure.name}@{given}") in among:
                row[name] = bool(among[key])
    return row


def score_ranking(
    question: Question,
    texts: Sequence[str],
    depths: Sequence[int],
    measures: Sequence[RankingMeasure] = (GOLD_ANY, GOLD_ALL, ANSWER),
) -> dict[str, float]:
    """The scores of a ranking's passage texts, best first, at these depths, by `name@depth`; only those that are defined.

    Raises:
        IfqaError: a measure returns something else than a number from 0 to 1.
    """
    scores: dict[str, float] = {}
    for measure in measures:
        values = measure.score(question, texts, depths) if depths else {}
        scores |= {f"{measure.name}@{k}": _checked(measure, values[k], question) for k in depths if k in values}
    return scores


def reading(question: Question, prediction: Prediction, by: Declared) -> dict[str, float | str]:
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


def partial(scores: Content) -> str:
    """What scores lack of their whole split: "PARTIAL: 8 of 83 questions; 2 not asked"; empty if they lack nothing.

    `scores` are those of `Aggregator.scores` with "of", the number of questions of the split, "not_asked", how many questions a
    language model was not asked, and "retry", how many it was not asked or did not answer completely.
    """
    missing = [f"{scores['questions']:,} of {scores['of']:,} questions"] if scores["questions"] < scores["of"] else []
    unanswered = scores["retry"] - scores["not_asked"]
    missing += [f"{scores['not_asked']:,} not asked"] if scores["not_asked"] else []
    missing += [f"{unanswered:,} not wholly answered"] if unanswered > 0 else []
    return f"PARTIAL: {'; '.join(missing)}" if missing else ""
