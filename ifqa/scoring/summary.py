"""From scores of each question to an experiment's scores: means with intervals, over all questions and by kind."""

from collections.abc import Mapping, Sequence
from typing import Any

from ifqa.records import Prediction, Question
from ifqa.scoring.measures import recall as measures
from ifqa.scoring.measures.answers import is_numeric
from ifqa.scoring.statistics import mean_interval

VERSION = 3  # raise it when a measure changes, so that old scores are made again

NOT_MEASURES = {"id", "answer", "factual", "numeric", "failed", "gold_read", "answer_read"}


def kind(question: Question) -> dict[str, Any]:
    """What subset a question belongs to."""
    return {"numeric": is_numeric(question.answers)}


def retrieval(question: Question, texts: Sequence[str], k: int, given: int = 0) -> dict[str, Any]:
    """Gold and answer recall of one ranking at every cutoff up to `k`, the depth that was asked for.

    Recall@100 of a run of 20 would be Recall@20 under another name. Where the first `given` passages went to a reader, also
    whether a gold one, and an answer, is among them: "gold_read" and "answer_read".
    """
    row: dict[str, Any] = dict(measures.score_ranking(question, texts, cutoffs_within(k)))
    if given:
        among = measures.score_ranking(question, texts, [given])
        for name, measure in (("gold_read", f"gold_any@{given}"), ("answer_read", f"answer@{given}")):
            if measure in among:
                row[name] = bool(among[measure])
    return row


def reading(prediction: Prediction, scores: Mapping[str, float]) -> dict[str, Any]:
    """What of a prediction stands in a question's row: whether it failed, its scores, its texts."""
    factual = {"factual": prediction.factual} if prediction.factual else {}
    return {"failed": float(prediction.failed), **scores, "answer": prediction.answer, **factual}


def cutoffs_within(k: int) -> list[int]:
    """The usual cutoffs that a run of depth `k` can be scored at."""
    return [cutoff for cutoff in measures.CUTOFFS if cutoff <= k]


def summarise(
    rows: Sequence[dict[str, Any]], questions: Sequence[Question], k: int | None, seed: int
) -> dict[str, Any]:
    """Scores of an experiment from one row for each question.

    Returns:
        "questions" and "n_failed" (counts); "measures": name -> {"value", "low", "high"}, in percent, with the 95%
        bootstrap interval; "numeric" and "other": the same over the questions with numeric answers and the rest, with
        their "questions"; "gold_read", where passages were read: the same over those with a gold passage among them; and
        for a run ("k" given) "ceiling" and "chance": the answer recall of the gold passages, and of as many random gold
        passages of other questions.
    """
    subsets = {"numeric": [row for row in rows if row["numeric"]], "other": [row for row in rows if not row["numeric"]]}
    if any("gold_read" in row for row in rows):
        subsets["gold_read"] = [row for row in rows if row.get("gold_read")]
    scores: dict[str, Any] = {
        "questions": len(rows),
        "n_failed": int(sum(row.get("failed", 0) for row in rows)),
        "measures": _means(rows, seed),
    }
    scores |= {name: {"questions": len(some), "measures": _means(some, seed)} for name, some in subsets.items()}
    annotated = [question for question in questions if question.gold_passages]
    if k and annotated:
        ceilings = [measures.ceiling(question) for question in annotated]
        scores["ceiling"] = round(100 * sum(ceilings) / len(ceilings), 2)
        scores["chance"] = {
            name: round(100 * share, 2) for name, share in measures.chance_floor(annotated, cutoffs_within(k)).items()
        }
    return scores


def _means(rows: Sequence[dict[str, Any]], seed: int) -> dict[str, dict[str, float]]:
    """Mean and interval of every measure, in percent; over the questions it is defined for, counted where not all are."""
    names = dict.fromkeys(name for row in rows for name in row if name not in NOT_MEASURES)
    means = {}
    for name in names:
        values = [row[name] for row in rows if name in row]
        mean, low, high = (round(100 * share, 2) for share in mean_interval(values, seed=seed))
        means[name] = {"value": mean, "low": low, "high": high}
        if len(values) < len(rows):  # gold recall of questions without gold passages, which IfQA has none of
            means[name]["questions"] = len(values)
    return means


def partial(scores: Mapping[str, Any]) -> str:
    """How an experiment's scores fall short of its split: "PARTIAL: 8 of 83 questions; 2 not asked"; empty if they do not.

    `scores` are those of `summarise` with "of", the questions of the split, and "not_asked" and "retry", how many of those
    asked a language model was not asked, or did not wholly answer.
    """
    told = [f"{scores['questions']:,} of {scores['of']:,} questions"] if scores["questions"] < scores["of"] else []
    unanswered = scores["retry"] - scores["not_asked"]
    told += [f"{scores['not_asked']:,} not asked"] if scores["not_asked"] else []
    told += [f"{unanswered:,} not wholly answered"] if unanswered > 0 else []
    return f"PARTIAL: {'; '.join(told)}" if told else ""
