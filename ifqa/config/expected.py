"""Expected scores of an experiment (published or measured), and the verdict on a score: OK, near or
off.
"""

from dataclasses import asdict, dataclass

from ifqa.errors import ConfigError, unknown_name
from ifqa.scoring.measures.judged import is_judged
from ifqa.scoring.scheme import GOLD_READ, MACRO, ScoringScheme, split_key
from ifqa.scoring.stored_scores import MacroScores, ScoreInterval, ScoresJson, SubsetScores
from ifqa.settings import NotNegative, check_record

OK = "OK"
NEAR = "near"
OFF = "off"
RETIRED = "model retired"
OTHER_SET = "another test set"
PART = "no verdict on a part of the split"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Expected:
    """An expected score in percent. A score within the tolerance is OK.

    `measure` is a name such as "EM" or "gold_any@20"; for a part of the questions, "numeric.EM" or
    "gold_read.EM". A part is a subset of the benchmark, "gold_read", or, for a benchmark with
    groups, a group or "macro". `retired` names the language model of a published score if the model
    is no longer available, and `other_set` its test set if that is not the split; there is then no
    verdict.
    """

    measure: str
    value: float
    tolerance: NotNegative = 0.0
    source: str = ""
    retired: str = ""
    other_set: str = ""

    @property
    def differs(self) -> str:
        """The retired model and the other test set, which leave it without a verdict.

        Else empty.
        """
        return ", ".join(filter(None, (self.retired, self.other_set)))


def parse_expected(value: object, where: str, scheme: ScoringScheme) -> tuple[Expected, ...]:
    """Parse an experiment's [expected]: a section for each measure, or an array of sections
    (`[[expected.EM]]`).

    Groups are known only from the questions, so in a benchmark with groups a part may have any
    name. Raises ConfigError with a message that starts with `where`.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: [expected] wants a section for each measure, found {value!r}")
    expected = []
    for measure, content in value.items():
        at = f"{where}: [expected.{measure}]"
        part, key = split_key(measure)
        if is_judged(key):
            raise ConfigError(
                f"{at}: a model's verdicts decide nothing, so they have no expected value; remove "
                "it, or expect another measure, such as EM"
            )
        parts = [*(subset.name for subset in scheme.subsets), GOLD_READ]
        if part and part not in parts and not scheme.groups:
            raise unknown_name(f"{at}: subset", part, parts)
        for section in content if isinstance(content, list) else [content]:
            if not isinstance(section, dict):
                raise ConfigError(f"{at}: wanted a section, found {section!r}")
            check_record(Expected, section, "key", at, ["measure"])
            expected.append(Expected(measure, **section))
    return tuple(expected)


def expected_sections(expected: tuple[Expected, ...]) -> dict[str, list[dict[str, object]]]:
    """The sections of [expected], which `parse_expected` reads back unchanged."""
    sections: dict[str, list[dict[str, object]]] = {}
    for score in expected:
        row = {
            key: value
            for key, value in asdict(score).items()
            if key != "measure" and value not in ("", 0.0)
        }
        sections.setdefault(score.measure, []).append({"value": score.value, **row})
    return sections


def find_score(scores: ScoresJson, measure: str) -> ScoreInterval | None:
    """Value and interval of a measure in an experiment's scores; None if absent."""
    part, name = split_key(measure)
    scores_of_part = part_scores(scores, part)
    return scores_of_part["measures"].get(name) if scores_of_part else None


def part_scores(scores: ScoresJson, part: str) -> ScoresJson | SubsetScores | MacroScores | None:
    """The scores of a subset, a group or "macro"; all scores if `part` is empty.

    None if the part is absent.
    """
    if not part:
        return scores
    if part in scores["subsets"]:
        return scores["subsets"][part]
    return scores.get(MACRO) if part == MACRO else scores.get("groups", {}).get(part)


def count_scored(scores: ScoresJson, measure: str) -> int:
    """The number of questions that a score counts, or of groups for "macro"; 0 if it is absent."""
    part, _ = split_key(measure)
    score = find_score(scores, measure)
    if score is None:
        return 0
    if part == MACRO:
        return score.get("groups", len(scores.get("groups", {})))
    if part in scores["subsets"]:
        questions = scores["subsets"][part]["questions"]
    elif part:
        questions = scores.get("groups", {})[part]["questions"]
    else:
        questions = scores["questions"]
    return score.get("questions", questions)


def verdict(scores: ScoresJson, expected: Expected) -> str:
    """OK within the tolerance; near if the 95% interval contains the expected value; else off.

    Or why there is none.
    """
    score = find_score(scores, expected.measure)
    if expected.differs:
        return RETIRED if expected.retired else OTHER_SET
    if _is_part(scores):
        return PART
    if score is None:
        return OFF
    # Published scores are rounded, and a difference of floats may exceed that of its decimals
    if abs(round(score["value"], 2) - expected.value) <= expected.tolerance + _ROUNDING:
        return OK
    in_interval = "low" in score and score["low"] <= expected.value <= score["high"]
    return NEAR if in_interval else OFF


def _is_part(scores: ScoresJson) -> bool:
    """Whether some questions of the split were not asked; expected scores are over all of it."""
    return "of" in scores and (scores["questions"] < scores["of"] or scores["not_asked"] > 0)
