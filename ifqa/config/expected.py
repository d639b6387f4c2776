"""Expected scores of an experiment, published or measured before, and the verdict on a score: OK, near or off."""

from dataclasses import asdict, dataclass

from ifqa.errors import IfqaError, unknown_name
from ifqa.scoring.scheme import GOLD_READ, MACRO, ScoringScheme
from ifqa.scoring.score_files import MacroScores, ScoreInterval, ScoresJson, SubsetScores
from ifqa.settings import NotNegative, check_settings

OK, NEAR, OFF, RETIRED = "OK", "near", "off", "model retired"


@dataclass(frozen=True)
class Expected:
    """An expected score in percent.

    Attributes:
        measure: "EM", "gold_any@20"; or over a part of the questions "numeric.EM", "gold_read.EM". A part is a subset of the
            benchmark, or "gold_read"; for a benchmark with groups also a group, or "macro".
        value: the expected score.
        tolerance: how far a score may be off and still be OK.
        source: where the value is from.
        retired: the language model of the published value, if nobody can ask it any more; there is then no verdict.
    """

    measure: str
    value: float
    tolerance: NotNegative = 0.0
    source: str = ""
    retired: str = ""


def parse_expected(value: object, where: str, by: ScoringScheme) -> tuple[Expected, ...]:
    """The expected scores of an experiment's [expected]: one table for each measure, or several (`[[expected.EM]]`).

    The groups of a benchmark are known only from its questions, so for a benchmark with groups a part may have any name.

    Raises:
        IfqaError: a key is unknown or a value is not a number; the message starts with `where`.
    """
    if not isinstance(value, dict):
        raise IfqaError(f"{where}: [expected] wants a table for each measure, found {value!r}")
    expected = []
    for measure, tables in value.items():
        at = f"{where}: [expected.{measure}]"
        part, parts = measure.rpartition(".")[0], [*(subset.name for subset in by.subsets), GOLD_READ]
        if part and part not in parts and not by.groups:
            raise unknown_name(f"{at}: subset", part, parts)
        for table in tables if isinstance(tables, list) else [tables]:
            if not isinstance(table, dict):
                raise IfqaError(f"{at}: wanted a table, found {table!r}")
            check_settings("key", Expected, table, ["measure"], at)
            expected.append(Expected(measure, **table))
    return tuple(expected)


def expected_sections(expected: tuple[Expected, ...]) -> dict[str, list[dict[str, object]]]:
    """The tables of [expected], which `parse_expected` reads back as the same values."""
    tables: dict[str, list[dict[str, object]]] = {}
    for score in expected:
        row = {key: value for key, value in asdict(score).items() if key != "measure" and value not in ("", 0.0)}
        tables.setdefault(score.measure, []).append({"value": score.value, **row})
    return tables


def find_score(scores: ScoresJson, measure: str) -> ScoreInterval | None:
    """Value and interval of a measure in an experiment's scores, as `Aggregator.scores` gives them; None if it is absent."""
    part, _, name = measure.rpartition(".")
    over = part_scores(scores, part)
    return over["measures"].get(name) if over else None


def part_scores(scores: ScoresJson, part: str) -> ScoresJson | SubsetScores | MacroScores | None:
    """The scores over a subset, a group or "macro"; all scores if `part` is empty; None if there is no such part."""
    if not part:
        return scores
    if part in scores["subsets"]:
        return scores["subsets"][part]
    return scores.get(MACRO) if part == MACRO else scores.get("groups", {}).get(part)


def verdict(scores: ScoresJson, expected: Expected) -> str:
    """OK if the score is within the tolerance; near if the expected value is within the 95% interval; else off."""
    score = find_score(scores, expected.measure)
    if expected.retired:
        return RETIRED
    if score is None:
        return OFF
    if abs(score["value"] - expected.value) <= expected.tolerance:
        return OK
    return NEAR if score["low"] <= expected.value <= score["high"] else OFF
