"""Schemas of an experiment's scores and of its questions' rows, and functions that read both from
its score folder.
"""

from pathlib import Path
from typing import Annotated, NotRequired, final

from pydantic import Field
from typing_extensions import TypedDict  # pydantic accepts typing.TypedDict only from Python 3.12

from ifqa.errors import DamagedArtifact
from ifqa.formatting import pluralize
from ifqa.settings import Natural, Share, Text, check_shape, is_share
from ifqa.storage.files import read_json, read_jsonl

SCORES, ROWS = "scores.json", "per_question.jsonl"
Percent = Annotated[float, Field(ge=0, le=100)]


class QuestionRow(TypedDict):
    """A line of `per_question.jsonl`.

    Other keys are measures, and their values are scores (`row_score`).
    """

    id: Text
    subsets: list[str]
    gold_read: NotRequired[bool]  # whether the passages given to the reader include a gold passage
    answer_read: NotRequired[bool]  # whether the passages given to the reader hold an answer
    failed: NotRequired[Share]
    abstained: NotRequired[Share]  # always 1; absent if the reader answered
    confidence: NotRequired[Share]  # the probability that the answer, or the candidate, is right
    answer: NotRequired[str]
    candidate: NotRequired[str]
    factual: NotRequired[str]
    verdict: NotRequired[str]  # on the answer, by the experiment's judge


class ScoreInterval(TypedDict):
    """A score and its 95% bootstrap interval, in percent.

    With the number of questions or groups if the score leaves some out.

    A measure with `has_interval = False` has no interval.
    """

    value: Percent
    low: NotRequired[Percent]
    high: NotRequired[Percent]
    questions: NotRequired[Natural]
    groups: NotRequired[Natural]


ScoreIntervals = dict[str, ScoreInterval]


@final
class SubsetScores(TypedDict):
    """Scores over a subset or a group."""

    questions: Natural
    measures: ScoreIntervals


@final
class MacroScores(TypedDict):
    measures: ScoreIntervals


class Risk(TypedDict):
    """A point of the risk-coverage curve: `value` is the share of wrong answers among the most
    confident questions.
    """

    coverage: Percent  # the share of the questions that are answered
    value: Percent
    low: Percent
    high: Percent


class Bin(TypedDict):
    """A bin of a reliability diagram: questions of similar confidence, and the share of right
    answers (`value`).
    """

    questions: Natural
    confidence: Percent  # mean
    value: Percent
    low: Percent
    high: Percent


class CalibrationCurves(TypedDict):
    """The data of the confidence figures: the risk at each coverage, and up to fifteen bins, least
    confident first.
    """

    risks: Annotated[list[Risk], Field(min_length=1)]
    bins: Annotated[list[Bin], Field(min_length=1)]


@final
class JudgeCounts(TypedDict):
    """The verdicts of an experiment's judge, by their kind: answers that are an exact match, which
    it was not asked about, those that mean the same or not, replies that are neither yes nor no,
    and answers that do not fit its window. The last three count as not the same.
    """

    model: str
    exact: Natural
    same: Natural
    different: Natural
    unclear: Natural
    too_long: Natural


@final
class ScoresJson(TypedDict):
    """The scores that `Aggregator.scores` returns.

    In `scores.json` the score stage adds "of", "not_asked", "retry" and "selection".
    """

    questions: Natural
    n_failed: Natural
    measures: ScoreIntervals
    subsets: dict[str, SubsetScores]
    n_abstained: NotRequired[Natural]  # absent if there are none
    sureness: NotRequired[CalibrationCurves]  # if the reader gives confidences
    groups: NotRequired[dict[str, SubsetScores]]
    macro: NotRequired[MacroScores]
    ceiling: NotRequired[Percent]
    chance: NotRequired[dict[str, Percent]]
    of: NotRequired[Natural]  # number of questions in the split
    selection: NotRequired[str]  # how a part of the split was chosen; absent in older files
    not_asked: NotRequired[Natural]  # questions that a language model was not asked
    retry: NotRequired[Natural]  # questions without a complete answer, which the next run retries
    # Questions whose request failed for good; absent if there are none
    stored_failures: NotRequired[Natural]
    judge: NotRequired[JudgeCounts]  # if a language model judged the answers


def judge_notice(scores: ScoresJson) -> str:
    """How many answers a judge was asked about, and what it said, in a sentence; empty without
    one.
    """
    counts = scores.get("judge")
    if counts is None:
        return ""
    asked = counts["same"] + counts["different"] + counts["unclear"]
    said = f"says that {counts['same']:,} mean the same"
    notice = (
        f"{counts['model']} was asked about {pluralize(asked, 'answer')} that "
        f"{'is' if asked == 1 else 'are'} no exact match, and {said}"
    )
    if counts["unclear"]:
        replies = pluralize(counts["unclear"], "reply", "replies")
        notice += f"; {replies}, neither yes nor no, counted as not the same"
    if counts["too_long"]:
        answers = pluralize(counts["too_long"], "answer")
        notice += f"; {answers}, too long to ask about, counted as not the same"
    return f"{notice}."


def read_scores(folder: Path) -> ScoresJson:
    return parse_scores(read_json(folder / SCORES), str(folder / SCORES))


def parse_scores(content: object, where: str) -> ScoresJson:
    """Check the scores from a file, which errors name as `where`."""
    scores = check_shape(ScoresJson, content, where)
    partners = {"groups": "macro", "ceiling": "chance"}  # keys that only occur together
    for key in (
        "of",
        "not_asked",
        "retry",
        *(partners[name] for name in partners if name in scores),
    ):
        if key not in scores:
            raise DamagedArtifact(f"{where}: not as ifqa writes it ({key}: Field required)")
    return scores


def read_rows(folder: Path) -> list[QuestionRow]:
    """The row of each question in a score folder, in the questions' order.

    Checks that scores are from 0 to 1.
    """
    rows = []
    for number, record in read_jsonl(folder / ROWS):
        where = f"{folder / ROWS}:{number}"
        rows.append(check_shape(QuestionRow, record, where))
        for key, score in record.items():
            if key not in QuestionRow.__annotations__ and not is_share(score):
                problem = f"{key}: wanted a number from 0 to 1, found {score!r:.80}"
                raise DamagedArtifact(f"{where}: not as ifqa writes it ({problem})")
    return rows


def row_score(row: QuestionRow, key: str) -> float | None:
    """A question's score in a measure; None if it is undefined."""
    score = row.get(key)
    return score if isinstance(score, int | float) else None


def partial_notice(scores: ScoresJson) -> str:
    """The part of the split that was scored, and how it was chosen, as in "PARTIAL: 8 of 83
    questions (the first, no sample); 2 not asked".

    Empty for a complete split.
    """
    missing = []
    if scores["questions"] < scores["of"]:
        part = f"{scores['questions']:,} of {scores['of']:,} questions"
        chosen = scores.get("selection")
        missing.append(f"{part} ({chosen})" if chosen else part)
    unanswered = scores["retry"] - scores["not_asked"]
    missing += [f"{scores['not_asked']:,} not asked"] if scores["not_asked"] else []
    missing += [f"{unanswered:,} not completely answered"] if unanswered > 0 else []
    stored = scores.get("stored_failures", 0)
    missing += [f"{pluralize(stored, 'stored failure')}: --retry-failed"] if stored else []
    return f"PARTIAL: {'; '.join(missing)}" if missing else ""
