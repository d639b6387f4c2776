"""An experiment's scores from the rows of its questions, of which only the numbers are kept: means, subsets and groups.

A million questions with twenty measures take some 180 MB. Measures over sets need every question and prediction; these are
kept only where such a measure is declared.
"""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ifqa.errors import IfqaError
from ifqa.protocols import AnyMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.columns import column_interval, column_macro
from ifqa.scoring.measures.answer_recall import ANSWER, ceiling, chance_floor
from ifqa.scoring.measures.confidence import RIGHT
from ifqa.scoring.scheme import GOLD_READ, MACRO, Declared, keys, unit_of, within_groups, without_unit
from ifqa.scoring.sets import places_of, set_interval, set_macro
from ifqa.scoring.statistics import Interval, macro_interval, mean_interval
from ifqa.scoring.summary import Content, Mean, Means, Part, Row, score_in
from ifqa.scoring.sureness import sureness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Collected:
    """The numbers of rows, added one by one."""

    def __init__(self, by: Declared, k: int | None) -> None:
        """Begin with no row.

        Args:
            by: the measures, subsets and groups.
            k: how many passages were retrieved; None or 0 without a run.
        """
        self.by = by
        self.count = 0
        self.pairs: list[tuple[Question, Prediction]] = []  # for measures over sets
        units = {one.unit for one in by.measures} | ({"group"} if by.groups else set())
        self.units = {unit: _Names() for unit in units - {"question"}}
        self._columns: dict[str, array[float]] = {}  # NaN where a question has no score
        self._keys = {key for one in by.measures for key in keys(one)} | {"failed", "abstained"}
        self._keys |= {column for one in by.columns for column in one.columns}
        self._subsets: dict[str, array[int]] = {
            one.name: array("Q") for one in by.subsets
        }  # the places of the questions
        self._known: set[str] = set()  # the subsets that can be told
        self._depths = [depth for depth in ANSWER.depths if depth <= k] if k and _recalls_answers(by) else []
        self._annotated: list[Question] = []

    def add(self, row: Row, question: Question, prediction: Prediction | None = None) -> None:
        """Add the row of a question. Rows with a prediction are not mixed with others."""
        for key in self._keys:
            if (score := score_in(row, key)) is not None:
                column = self._columns.setdefault(key, array("d"))
                column.extend(math.nan for _ in range(self.count - len(column)))
                column.append(score)
        for subset in self.by.subsets:
            if subset.name not in self._known and subset.holds(question) is not None:
                self._known.add(subset.name)
        if GOLD_READ in row:
            self._known.add(GOLD_READ)
            self._subsets.setdefault(GOLD_READ, array("Q"))
            if row[GOLD_READ]:
                self._subsets[GOLD_READ].append(self.count)
        for name in row["subsets"]:
            if name != GOLD_READ and name in self._subsets:
                self._subsets[name].append(self.count)
        for unit, names in self.units.items():
            names.add(unit_of(unit, question), question.id)
        if self.by.sets and prediction:
            self.pairs.append((question, prediction))
        if self._depths and question.gold_passages:
            self._annotated.append(question)
        self.count += 1

    def scores(self, seed: int) -> Content:
        """Scores over all questions, and over parts of them.

        Args:
            seed: of the bootstrap.

        Returns:
            "questions" and "n_failed" (counts); "measures": key -> {"value", "low", "high"}, in percent, with the 95% bootstrap
            interval; "subsets": name -> {"questions", "measures"} of each subset that can be told and, if passages were read, of
            "gold_read", the questions with a gold passage among these. If the benchmark has groups, "groups": the same for
            each group, and "macro": {"measures"}, the mean over groups. If a run is scored by answer recall, "ceiling" and
            "chance": the answer recall of the gold passages, and of K random gold passages of other questions.

        Raises:
            IfqaError: a question lacks the unit that a measure resamples, or the benchmark has groups and it has none.
        """
        import numpy as np

        for column in self._columns.values():
            column.extend(math.nan for _ in range(self.count - len(column)))
        columns = {key: np.frombuffer(column) for key, column in self._columns.items()}  # (questions,) each
        every = _Part(self, columns, seed, np.arange(self.count))
        told = [*(one.name for one in self.by.subsets), GOLD_READ]
        subsets = {name: self._subsets[name] for name in told if name in self._known}
        scores: Content = {
            "questions": self.count,
            "n_failed": int(np.nansum(columns.get("failed", 0.0))),
            "measures": every.means(),
            "subsets": every.parts(subsets),
        }
        if abstained := int(np.nansum(columns.get("abstained", 0.0))):
            scores["n_abstained"] = abstained
        if any(set(RIGHT) <= set(one.columns) for one in self.by.columns) and "confidence" in columns:
            scores["sureness"] = sureness(every.numbers(RIGHT), seed)
        if self.by.groups:
            groups = self.units["group"]
            if alone := next(iter(groups.lacking.values()), ""):
                raise IfqaError(
                    f"{alone} is of no {self.by.groups}; its benchmark is scored by {self.by.groups}, so give it a group"
                )
            scores["groups"] = every.parts(places_of(groups.of(every.places)))
            scores[MACRO] = {"measures": every.macro()}
        if self._annotated:
            ceilings = [ceiling(question) for question in self._annotated]
            scores["ceiling"] = round(100 * sum(ceilings) / len(ceilings), 2)
            chance = chance_floor(self._annotated, self._depths)
            scores["chance"] = {name: round(100 * share, 2) for name, share in chance.items()}
        return scores


def summarise(
    rows: Sequence[Row],
    questions: Sequence[Question],
    by: Declared,
    k: int | None,
    seed: int,
    predictions: Sequence[Prediction] = (),
) -> Content:
    """The scores of rows that are there at once, as `Collected` gives them; `predictions` are for measures over sets."""
    collected = Collected(by, k)
    each: Iterable[Prediction | None] = predictions or [None] * len(rows)
    for row, question, prediction in zip(rows, questions, each, strict=True):
        collected.add(row, question, prediction)
    return collected.scores(seed)


@dataclass
class _Names:
    """The name of each question's unit, each name kept once; and the ids of questions without one, by place."""

    codes: "array[int]" = field(default_factory=lambda: array("l"))
    known: dict[str, int] = field(default_factory=dict)
    lacking: dict[int, str] = field(default_factory=dict)

    def add(self, name: str, question_id: str) -> None:
        if not name:
            self.lacking[len(self.codes)] = question_id
        self.codes.append(self.known.setdefault(name, len(self.known)))

    def of(self, places: "NDArray[np.intp]") -> list[str]:
        """The names at these places."""
        names = list(self.known)
        return [names[self.codes[place]] for place in places.tolist()]


@dataclass(frozen=True)
class _Part:
    """Some of the questions, by their places; `columns` has the scores of all questions, NaN where one has none."""

    all: Collected
    columns: "Mapping[str, NDArray[np.float64]]"
    seed: int
    places: "NDArray[np.intp]"

    def parts(self, parts: Mapping[str, Iterable[int]]) -> dict[str, Part]:
        """The scores of parts, by name."""
        import numpy as np

        several = {
            name: _Part(self.all, self.columns, self.seed, np.array(some, np.intp)) for name, some in parts.items()
        }
        return {name: {"questions": len(one.places), "measures": one.means()} for name, one in several.items()}

    def means(self) -> Means:
        """Each measure's mean and interval in percent, over the questions with a score; with their number if not all have one."""
        means: Means = {}
        for key, (values, there) in self._columns().items():
            measure = self.all.by.measure(key)
            within = self.all.units["group"].of(there) if within_groups(measure, self.all.by) else ()
            means[key] = _percent(mean_interval(values, self.seed, units=self._units(measure, there), strata=within))
            if len(values) < len(self.places):  # such as gold recall, of questions without gold passages; IfQA has none
                means[key]["questions"] = len(values)
        questions, predictions = self._pairs()
        for one in self.all.by.sets if predictions else ():
            if interval := set_interval(one, questions, predictions, self.seed):
                means[one.name] = _percent(interval)
        for column in self.all.by.columns:
            units = self._units(column, self.places)
            if interval := column_interval(column, self.numbers(column.columns), self.seed, units):
                means[column.name] = _percent(interval)
        return {key: means[key] for key in self.all.by.keys(means)}

    def macro(self) -> Means:
        """Each measure's mean over groups and its interval in percent; with their number if it is not defined for all."""
        means: Means = {}
        names = self.all.units["group"]
        groups = set(names.of(self.places))
        for key, (values, there) in self._columns().items():
            measure, own = self.all.by.measure(key), names.of(there)
            if measure.unit == "group":
                each = [math.fsum(values[n] for n in part) / len(part) for part in places_of(own).values()]
                means[key] = _percent(mean_interval(each, self.seed))
            else:
                means[key] = _percent(macro_interval(values, own, self.seed, units=self._units(measure, there)))
            if len(set(own)) < len(groups):
                means[key]["groups"] = len(set(own))
        questions, predictions = self._pairs()
        for one in self.all.by.sets if predictions else ():
            if found := set_macro(one, questions, predictions, self.seed):
                interval, several = found
                means[one.name] = _percent(interval)
                if several < len(groups):
                    means[one.name]["groups"] = several
        for column in self.all.by.columns:
            units, own = self._units(column, self.places), names.of(self.places)
            if found := column_macro(column, self.numbers(column.columns), own, self.seed, units):
                interval, several = found
                means[column.name] = _percent(interval)
                if several < len(groups):
                    means[column.name]["groups"] = several
        return {key: means[key] for key in self.all.by.keys(means)}

    def numbers(self, keys: Sequence[str]) -> "NDArray[np.float64]":
        """Columns of the questions here, (questions, columns); NaN where a question has none."""
        import numpy as np

        nothing = np.full(self.all.count, np.nan)
        return np.stack([self.columns.get(key, nothing)[self.places] for key in keys], axis=1)

    def _columns(self) -> "dict[str, tuple[list[float], NDArray[np.intp]]]":
        """The values of each measure that is defined for a question here, and the places of those questions."""
        import numpy as np

        found = {}
        for key in self.all.by.keys(self.columns):
            column = self.columns[key][self.places]
            there = ~np.isnan(column)
            if there.any():
                found[key] = (cast(list[float], column[there].tolist()), self.places[there])
        return found

    def _units(self, measure: AnyMeasure, places: "NDArray[np.intp]") -> list[str]:
        """The unit of each question, which the bootstrap of a measure draws as a whole; empty if the unit is the question."""
        if measure.unit == "question":
            return []
        names = self.all.units[measure.unit]
        if (
            names.lacking
            and (alone := next((one for one in places.tolist() if one in names.lacking), None)) is not None
        ):
            raise without_unit(measure, names.lacking[alone])
        return names.of(places)

    def _pairs(self) -> tuple[list[Question], list[Prediction]]:
        """Questions and predictions, if a measure over sets is declared."""
        some = [self.all.pairs[place] for place in self.places.tolist()] if self.all.pairs else []
        return [question for question, _ in some], [prediction for _, prediction in some]


def _recalls_answers(by: Declared) -> bool:
    return ANSWER.score in [one.score for one in by.rankings]


def _percent(interval: Interval) -> Mean:
    value, low, high = (round(100 * share, 2) for share in interval)
    return {"value": value, "low": low, "high": high}
