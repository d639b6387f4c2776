"""Why a question was got wrong: one outcome for each, told from its row of `per_question.jsonl`.

Several may hold of one question, and the first of them in the order of OUTCOMES counts:

1. "right": 1 by a measure such as exact match. That the answer is also so in the real world, or that no gold passage was
   read, changes nothing.
2. "no answer": the reader gave none, whatever it had read.
3. "answered the real world": what it gave is the factual answer, as if nothing had been supposed. It stands before the
   misses because the answer itself says what went wrong, and a closed book can be told so, too.
4. "retrieval miss": no gold passage was among those that were read. That an answer stood in them all the same does not
   count: it may by accident (`ifqa.scoring.measures.answer_recall.chance_floor`).
5. "arithmetic miss": a gold passage was read, a number or a date is wanted, and no answer stands in what was read, so
   that it had to be computed (or, where the gold passage was found only in part, stood in the rest of it).
6. "reading miss": all that is left. A gold passage was read, and the answer stood there or had to be inferred; or nothing
   was retrieved at all (a closed book, which has no misses of the two kinds before); or the question has no gold passage.
"""

from collections.abc import Iterable, Mapping

from ifqa.errors import IfqaError
from ifqa.scoring.measures.normalize import normalize
from ifqa.scoring.summary import Row, score_in

OUTCOMES = ("right", "no answer", "answered the real world", "retrieval miss", "arithmetic miss", "reading miss")


def outcome(row: Row, measure: str, computed: str, factual: str = "") -> str:
    """The first of OUTCOMES that holds of a question.

    Args:
        row: of `per_question.jsonl`: the measure, "subsets", "failed" and "answer"; "gold_read", "answer_read" and "factual"
            where they are known.
        measure: the one that is 1 where an answer is right, such as "EM".
        computed: the subset of questions whose answers mostly must be computed, such as "numeric"; empty where none is.
        factual: the answer in the real world, as another experiment told it; beside the row's own, either of which counts.

    Raises:
        IfqaError: the row is of an experiment without a reader, or of a benchmark that is not scored by this measure.
    """
    if missing := [name for name in (measure, "failed", "answer") if name not in row]:
        raise IfqaError(
            f"question {row.get('id', '?')} has no {missing[0]!r}; wanted the scores of an experiment with a reader"
        )
    if score_in(row, measure) == 1:
        return "right"
    if row["failed"]:
        return "no answer"
    so_in_fact = {normalize(text) for text in (row.get("factual", ""), factual)} - {""}
    if normalize(row["answer"]) in so_in_fact:
        return "answered the real world"
    if row.get("gold_read") is False:
        return "retrieval miss"
    if row.get("gold_read") and computed in row["subsets"] and row.get("answer_read") is False:
        return "arithmetic miss"
    return "reading miss"


def count_outcomes(rows: Iterable[Row], measure: str, computed: str, factual: Mapping[str, str]) -> dict[str, int]:
    """How many questions have each of OUTCOMES, in that order; the counts sum to the number of rows.

    Args:
        rows: of `per_question.jsonl`.
        measure, computed: as `outcome` has them.
        factual: question id -> answer in the real world, for the questions of which another experiment told it; may be empty.

    Raises:
        IfqaError: as `outcome`.
    """
    counts = dict.fromkeys(OUTCOMES, 0)
    for row in rows:
        counts[outcome(row, measure, computed, factual.get(row["id"], ""))] += 1
    return counts
