"""Scores of each question, and from them an experiment's scores: over all questions, by subset and by group."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NotRequired, TypedDict, cast, final

from ifqa.errors import IfqaError
from ifqa.protocols import AnyMeasure, RankingMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.declared import GOLD_READ, MACRO, Declared, strata, units
from ifqa.scoring.measures.answer_recall import ANSWER, ceiling, chance_floor
from ifqa.scoring.measures.gold_recall import GOLD_ALL, GOLD_ANY
from ifqa.scoring.sets import places_of, set_interval, set_macro
from ifqa.scoring.statistics import Interval, macro_interval, mean_interval

VERSION = 5  # raise it when a measure changes, so that experiments are scored again


class Row(TypedDict):
    """A line of `per_question.jsonl`; further keys are the scores, by the names of their measures (`score_in`)."""

    id: str
    subsets: list[str]
    gold_read: NotRequired[bool]  # whether the passages given to the reader hold a gold passage, and an answer
    answer_read: NotRequired[bool]
    failed: NotRequired[float]
    answer: NotRequired[str]
    factual: NotRequired[str]


class Mean(TypedDict):
    """A score and its 95% bootstrap interval, in percent; the number of questions or groups, if it is not over all."""

    value: float
    low: float
    high: float
    questions: NotRequired[int]
    groups: NotRequired[int]


Means = dict[str, Mean]


@final
class Part(TypedDict):
    """Scores over a subset or a group."""

    questions: int
    measures: Means


@final
class Macro(TypedDict):
    """Scores that are means over groups."""

    measures: Means


@final
class Content(TypedDict):
    """What `summarise` returns; in `scores.json` also what the score stage adds."""

    questions: int
    n_failed: int
    measures: Means
    subsets: dict[str, Part]
    groups: NotRequired[dict[str, Part]]
    macro: NotRequired[Macro]
    ceiling: NotRequired[float]
    chance: NotRequired[dict[str, float]]
    not_asked: NotRequired[int]
    retry: NotRequired[int]
    of: NotRequired[int]


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
    found: Row = {"id": question.id, "subsets": [one.name for one in by.subsets if one.holds(question)]}
    if texts is not None:
        found = cast(Row, {**found, **retrieval(question, texts, by, k, given)})
        found["subsets"] += [GOLD_READ] if found.get(GOLD_READ) else []
    return cast(Row, {**found, **reading(question, prediction, by)}) if prediction else found


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
        found = measure.of(question, texts, depths) if depths else {}
        scores |= {f"{measure.name}@{k}": _checked(measure, found[k], question) for k in depths if k in found}
    return scores


def reading(question: Question, prediction: Prediction, by: Declared) -> dict[str, float | str]:
    """The part of a question's row that comes from its prediction: whether it failed, its scores, its texts."""
    row: dict[str, float | str] = {"failed": float(prediction.failed)}
    for measure in by.answers:
        value = 1 - by.best(measure.name) if prediction.failed else measure.of(question, prediction)
        if value is not None:
            row[measure.name] = _checked(measure, value, question)
    return row | {"answer": prediction.answer} | ({"factual": prediction.factual} if prediction.factual else {})


def _checked(measure: AnyMeasure, value: float, question: Question) -> float:
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise IfqaError(f"measure {measure.name!r}: wanted a number from 0 to 1 for {question.id}, found {value!r}")
    return float(value)


@dataclass(frozen=True)
class _Scored:
    """Questions with their rows, and with predictions if there are any."""

    by: Declared
    seed: int
    rows: Sequence[Row]
    questions: Sequence[Question]
    predictions: Sequence[Prediction]

    def part(self, places: Sequence[int]) -> "_Scored":
        """The questions at these places."""
        predictions = [self.predictions[n] for n in places] if self.predictions else []
        return _Scored(
            self.by, self.seed, [self.rows[n] for n in places], [self.questions[n] for n in places], predictions
        )

    def means(self) -> Means:
        """Each measure's mean and interval in percent, over the questions with a score; with their number if not all have one."""
        means: Means = {}
        for key in self.by.keys({name for row in self.rows for name in row}):
            values, questions = self._of(key)
            measure = self.by.measure(key)
            of, within = units(measure, questions), strata(measure, self.by, questions)
            means[key] = _percent(mean_interval(values, self.seed, units=of, strata=within))
            if len(values) < len(self.rows):  # such as gold recall, of questions without gold passages; IfQA has none
                means[key]["questions"] = len(values)
        means |= self._sets()
        return {key: means[key] for key in self.by.keys(means)}

    def macro(self) -> Means:
        """Each measure's mean over groups and its interval in percent; with their number if it is not defined for all."""
        groups = {one.group for one in self.questions}
        means: Means = {}
        for key in self.by.keys({name for row in self.rows for name in row}):
            values, questions = self._of(key)
            measure, own = self.by.measure(key), [one.group for one in questions]
            if measure.unit == "group":
                parts = places_of(own).values()
                each = [math.fsum(values[n] for n in part) / len(part) for part in parts]
                means[key] = _percent(mean_interval(each, self.seed))
            else:
                means[key] = _percent(macro_interval(values, own, self.seed, units=units(measure, questions)))
            if len(set(own)) < len(groups):
                means[key]["groups"] = len(set(own))
        for one in self.by.sets if self.predictions else ():
            if found := set_macro(one, self.questions, self.predictions, self.seed):
                interval, several = found
                means[one.name] = _percent(interval)
                if several < len(groups):
                    means[one.name]["groups"] = several
        return {key: means[key] for key in self.by.keys(means)}

    def _of(self, key: str) -> tuple[list[float], list[Question]]:
        every = zip(self.rows, self.questions, strict=True)
        both = [(score, question) for row, question in every if (score := score_in(row, key)) is not None]
        return [value for value, _ in both], [question for _, question in both]

    def _sets(self) -> Means:
        if not self.predictions:
            return {}
        found = {one.name: set_interval(one, self.questions, self.predictions, self.seed) for one in self.by.sets}
        return {name: _percent(interval) for name, interval in found.items() if interval}


def summarise(
    rows: Sequence[Row],
    questions: Sequence[Question],
    by: Declared,
    k: int | None,
    seed: int,
    predictions: Sequence[Prediction] = (),
) -> Content:
    """Scores of an experiment from the rows of its questions.

    Args:
        rows: the result of `row` for each question.
        questions: the questions, in the same order.
        by: the measures, subsets and groups.
        k: how many passages were retrieved; None without a run.
        seed: seed of the bootstrap.
        predictions: the predictions, in the same order, for measures over sets.

    Returns:
        "questions" and "n_failed" (counts); "measures": key -> {"value", "low", "high"}, in percent, with the 95% bootstrap
        interval; "subsets": name -> {"questions", "measures"} of each subset that can be told and, if passages were read, of
        "gold_read", the questions with a gold passage among these. If the benchmark has groups, "groups": the same for each
        group, and "macro": {"measures"}, the mean over groups. If a run is scored by answer recall, "ceiling" and "chance":
        the answer recall of the gold passages, and of K random gold passages of other questions.

    Raises:
        IfqaError: a question lacks the unit that a measure resamples, or the benchmark has groups and it has none.
    """
    every = _Scored(by, seed, rows, questions, predictions)
    known = [one.name for one in by.subsets if any(one.holds(question) is not None for question in questions)]
    parts = {name: [n for n, row in enumerate(rows) if name in row["subsets"]] for name in known}
    if any(GOLD_READ in row for row in rows):
        parts[GOLD_READ] = [n for n, row in enumerate(rows) if row.get(GOLD_READ)]
    scores: Content = {
        "questions": len(rows),
        "n_failed": int(sum(row.get("failed", 0) for row in rows)),
        "measures": every.means(),
        "subsets": _parts(every, parts),
    }
    if by.groups:
        if alone := next((one.id for one in questions if not one.group), ""):
            raise IfqaError(f"{alone} is of no {by.groups}; its benchmark is scored by {by.groups}, so give it a group")
        scores["groups"] = _parts(every, places_of([one.group for one in questions]))
        scores[MACRO] = {"measures": every.macro()}
    annotated = [question for question in questions if question.gold_passages]
    if k and annotated and ANSWER.of in [one.of for one in by.rankings]:
        ceilings = [ceiling(question) for question in annotated]
        scores["ceiling"] = round(100 * sum(ceilings) / len(ceilings), 2)
        depths = [depth for depth in ANSWER.depths if depth <= k]
        scores["chance"] = {name: round(100 * share, 2) for name, share in chance_floor(annotated, depths).items()}
    return scores


def _parts(every: _Scored, parts: Mapping[str, Sequence[int]]) -> dict[str, Part]:
    return {name: {"questions": len(some), "measures": every.part(some).means()} for name, some in parts.items()}


def _percent(interval: Interval) -> Mean:
    value, low, high = (round(100 * share, 2) for share in interval)
    return {"value": value, "low": low, "high": high}


def partial(scores: Content) -> str:
    """What scores lack of their whole split: "PARTIAL: 8 of 83 questions; 2 not asked"; empty if they lack nothing.

    `scores` are those of `summarise` with "of", the number of questions of the split, "not_asked", how many questions a
    language model was not asked, and "retry", how many it was not asked or did not answer completely.
    """
    missing = [f"{scores['questions']:,} of {scores['of']:,} questions"] if scores["questions"] < scores["of"] else []
    unanswered = scores["retry"] - scores["not_asked"]
    missing += [f"{scores['not_asked']:,} not asked"] if scores["not_asked"] else []
    missing += [f"{unanswered:,} not wholly answered"] if unanswered > 0 else []
    return f"PARTIAL: {'; '.join(missing)}" if missing else ""
