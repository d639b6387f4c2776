"""What an experiment should score: values that were published or measured before, and how far off a score is."""

from dataclasses import asdict, dataclass

from ifqa.errors import IfqaError, unknown
from ifqa.scoring.declared import GOLD_READ, MACRO, Declared
from ifqa.scoring.summary import Content, Macro, Mean, Part
from ifqa.settings import NotNegative, Table, check_table

OK, NEAR, OFF, RETIRED = "OK", "near", "off", "model retired"


@dataclass(frozen=True)
class Expected:
    """A value of one measure, in percent: "EM", "gold_any@20", or over a part of the questions "numeric.EM", "gold_read.EM".

    A part is a subset that the benchmark declares, or "gold_read"; where it has groups, one of them, or "macro".

    `retired` names the model it was published for, where nobody can ask that any more: the value then stands beside a
    score and judges nothing.
    """

    measure: str
    value: float
    tolerance: float = 0.0
    source: str = ""
    retired: str = ""


class ExpectedTable(Table):
    """[expected.MEASURE] of an experiment file."""

    value: float
    tolerance: NotNegative = 0.0
    source: str = ""
    retired: str = ""


def parse_expected(value: object, where: str, by: Declared) -> tuple[Expected, ...]:
    """The values of an experiment's [expected]: a table for each measure, or several (`[[expected.EM]]`).

    What groups there are only the questions tell, so a benchmark with groups may have a part of any name.

    Raises:
        IfqaError: a key is unknown or a value is not a number; `where` opens the message.
    """
    if not isinstance(value, dict):
        raise IfqaError(f"{where}: [expected] wants a table for each measure, found {value!r}")
    found = []
    for measure, tables in value.items():
        at = f"{where}: [expected.{measure}]"
        part, parts = measure.rpartition(".")[0], [*(one.name for one in by.subsets), GOLD_READ]
        if part and part not in parts and not by.groups:
            raise unknown(f"{at}: subset", part, parts)
        for table in tables if isinstance(tables, list) else [tables]:
            check_table(ExpectedTable, table, at)
            found.append(Expected(measure, **table))
    return tuple(found)


def expected_tables(expected: tuple[Expected, ...]) -> dict[str, list[dict[str, object]]]:
    """What `parse_expected` reads back as the same."""
    tables: dict[str, list[dict[str, object]]] = {}
    for one in expected:
        row = {key: value for key, value in asdict(one).items() if key != "measure" and value not in ("", 0.0)}
        tables.setdefault(one.measure, []).append({"value": one.value, **row})
    return tables


def measured(scores: Content, measure: str) -> Mean | None:
    """Value and interval of a measure in an experiment's scores, as `summarise` gives them; None if it has it not."""
    part, _, name = measure.rpartition(".")
    found = part_of(scores, part)
    return found["measures"].get(name) if found else None


def part_of(scores: Content, part: str) -> Content | Part | Macro | None:
    """The scores over a part of the questions: a subset, "macro", or a group; all of them where it is empty; None without."""
    if not part:
        return scores
    if part in scores["subsets"]:
        return scores["subsets"][part]
    return scores.get(MACRO) if part == MACRO else scores.get("groups", {}).get(part)


def verdict(scores: Content, expected: Expected) -> str:
    """OK within the tolerance of the expected value; else near, if that is within the 95% interval; else off."""
    found = measured(scores, expected.measure)
    if expected.retired:
        return RETIRED
    if found is None:
        return OFF
    if abs(found["value"] - expected.value) <= expected.tolerance:
        return OK
    return NEAR if found["low"] <= expected.value <= found["high"] else OFF
