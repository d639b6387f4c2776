"""An experiment's scoring scheme: its benchmark's measures, subsets and groups, and the measures
that the experiment's file adds.

A *key* names a measure in rows and scores: `name`, or `name@depth` for a measure of rankings.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypeVar

from ifqa.errors import ConfigError, PluginError
from ifqa.plugins import Plugins, load_measure
from ifqa.protocols import AnyMeasure, ColumnMeasure, Measure, RankingMeasure, SetMeasure, Subset
from ifqa.scoring.measures.answer_recall import ANSWER
from ifqa.scoring.measures.confidence import CONFIDENCE
from ifqa.scoring.measures.exact_match import CONTAINS, EM, F1
from ifqa.scoring.measures.gold_recall import GOLD_ALL, GOLD_ANY
from ifqa.scoring.measures.judged import JUDGED, is_judged, judged_measure
from ifqa.scoring.measures.numeric import NUMERIC, OTHER
from ifqa.scoring.stored_scores import QuestionRow

GOLD_READ: Final = "gold_read"  # a subset that no benchmark declares
MACRO: Final = "macro"
_Kind = TypeVar("_Kind", bound=AnyMeasure)


@dataclass(frozen=True)
class ScoringScheme:
    """The measures, subsets and groups of an experiment."""

    # In display order, but ranking measures are displayed first; names are unique
    measures: tuple[AnyMeasure, ...]
    subsets: tuple[Subset, ...] = ()
    groups: str = ""  # what `Question.group` means, such as "subject"

    def _of(self, kind: type[_Kind]) -> list[_Kind]:
        return [measure for measure in self.measures if isinstance(measure, kind)]

    @property
    def rankings(self) -> list[RankingMeasure]:
        return self._of(RankingMeasure)

    @property
    def answers(self) -> list[Measure]:
        return self._of(Measure)

    @property
    def sets(self) -> list[SetMeasure]:
        return self._of(SetMeasure)

    @property
    def columns(self) -> list[ColumnMeasure]:
        return self._of(ColumnMeasure)

    def keys(self, known: Collection[str]) -> list[str]:
        """The keys in `known` that belong to these measures, in display order."""
        return [key for key in self._measures if key in known]

    @cached_property
    def _measures(self) -> dict[str, AnyMeasure]:
        """The measure of each key, in display order."""
        rest = [measure for measure in self.measures if not isinstance(measure, RankingMeasure)]
        return {key: measure for measure in (*self.rankings, *rest) for key in measure.keys}

    def measure(self, key: str) -> AnyMeasure:
        return self._measures[key]

    def table_keys(self, known: Collection[str]) -> list[str]:
        """The keys in `known` that result tables show, except keys of rankings; headlines first."""
        shown = sorted(self.measures, key=lambda measure: not measure.headline)
        shown = [measure for measure in shown if measure.headline or measure.in_tables]
        return [
            measure.name
            for measure in shown
            if measure not in self.rankings and measure.name in known
        ]

    def headline(self, known: Collection[str]) -> str:
        """The key in `known` of the first headline measure, else of the first measure in tables,
        else the first; "" if none.
        """
        first = []
        second = []
        measures = [measure for measure in self.measures if not measure.advisory]
        for measure in measures:
            depths = measure.tables if isinstance(measure, RankingMeasure) else ()
            tables = [f"{measure.name}@{depth}" for depth in depths]
            first += [*tables, *measure.keys] if measure.headline else []
            second += (
                [*tables, *measure.keys] if tables or measure.headline or measure.in_tables else []
            )
        rest = [key for key, measure in self._measures.items() if not measure.advisory]
        return next((key for key in (*first, *second, *rest) if key in known), "")

    def best_value(self, key: str) -> float:
        """The best possible value: 1, or 0 if lower is better."""
        return float(self.measure(key).best == "high")

    def display_name(self, key: str) -> str:
        """The key for display, with an arrow if lower is better."""
        return key if self.best_value(key) else f"{key} ↓"


def default_scheme() -> ScoringScheme:
    """IfQA's scheme; benchmarks that declare no measures use it too."""
    return ScoringScheme(
        (EM, F1, CONTAINS, *CONFIDENCE, GOLD_ANY, GOLD_ALL, ANSWER), (NUMERIC, OTHER)
    )


def load_scheme(
    name: str,
    extra: Sequence[str] = (),
    root: Path = Path(),
    split: str = "",
    plugins: Plugins | None = None,
    judge: str = "",
) -> ScoringScheme:
    """A benchmark's scheme for a split, with `extra` measures by name or as "my_module:MEASURE".

    Files are found below `root`. If `judge` names a language model, its verdicts are a measure
    behind those of answers that tables show.
    """
    benchmark = (plugins or Plugins(root)).benchmark(name)
    default = default_scheme()
    measures = (
        *(benchmark.measures or default.measures),
        *(load_measure(measure, root) for measure in extra),
    )
    names = [measure.name for measure in measures]
    _check_names(name, "measure", names)
    row_keys = [measure.name for measure in measures if not isinstance(measure, RankingMeasure)]
    _check_names(name, "measure", row_keys, {*QuestionRow.__annotations__})
    if judge:
        measures = _with_judged(measures, judge)
    unit = benchmark.unit(split)
    measures = tuple(
        replace(measure, unit=unit) if measure.unit == "question" else measure
        for measure in measures
    )
    subsets, groups = benchmark.parts(split)
    subsets = subsets if benchmark.measures or subsets else default.subsets
    _check_names(name, "subset", [subset.name for subset in subsets], {GOLD_READ, MACRO})
    return ScoringScheme(measures, tuple(subsets), groups)


def _with_judged(measures: Sequence[AnyMeasure], model: str) -> tuple[AnyMeasure, ...]:
    """The measures with a model's verdicts, behind the last measure of answers that tables show."""
    shown = [
        number
        for number, measure in enumerate(measures, start=1)
        if isinstance(measure, Measure) and (measure.headline or measure.in_tables)
    ]
    place = shown[-1] if shown else len(measures)
    return (*measures[:place], judged_measure(model), *measures[place:])


def split_key(key: str) -> tuple[str, str]:
    """The part of the questions that a score's name begins with, and the measure's key:
    "numeric.EM" -> ("numeric", "EM").

    The part is empty if there is none. The name of a judge may have dots.
    """
    if is_judged(key):
        return "", key
    part, dot, model = key.partition(f".{JUDGED}")
    if dot:
        return part, f"{JUDGED}{model}"
    part, _, name = key.rpartition(".")
    return part, name


def _check_names(
    benchmark: str, kind: str, names: Sequence[str], taken: Collection[str] = ()
) -> None:
    for index, name in enumerate(names):
        if not name or set(name) & set(".@"):
            raise PluginError(
                f"benchmark {benchmark!r}: {kind} {name!r}: wanted a name without '.' or '@'"
            )
        if name in taken or name in names[:index] or is_judged(name):
            raise ConfigError(
                f"benchmark {benchmark!r}: the name of {kind} {name!r} is taken; choose another"
            )


def merge_schemes(schemes: Iterable[ScoringScheme]) -> ScoringScheme:
    """A scheme for several experiments on a benchmark: the first's subsets and groups, and the
    measures of all. Measures that differ in their unit alone are one.
    """
    first, *others = schemes
    measures = list(first.measures)
    for scheme in others:
        known = [replace(measure, unit="question") for measure in measures]
        measures += [
            measure for measure in scheme.measures if replace(measure, unit="question") not in known
        ]
    return replace(first, measures=tuple(measures))
