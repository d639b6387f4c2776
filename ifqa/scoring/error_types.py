"""Classifies why an answer is right or wrong: an outcome for each question, from its row of `per_question.jsonl`.

The outcome is the first of OUTCOMES that applies:

1. "right": the score is 1 in a measure such as exact match, even if the answer is also true in the real world or no gold
   passage was read.
2. "no answer": the reader gave no answer.
3. "answered the real world": the reader gave the factual answer, as if nothing had been supposed. This comes before the
   misses because the answer itself shows the mistake, also without retrieval.
4. "retrieval miss": no gold passage was among the passages that were read. The passages may still hold an answer by
   chance (`ifqa.scoring.measures.answer_recall.chance_floor`).
5. "arithmetic miss": a gold passage was read, the answer is a number or a date, and no passage that was read holds an
   answer, so it had to be computed (or it was in a part of the gold passage that was not found).
6. "reading miss": everything else. A gold passage was read, and it held the answer or the answer had to be inferred; or
   nothing was retrieved (a closed book has no retrieval or arithmetic misses); or the question has no gold passage.
"""

from ifqa.errors import IfqaError
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.score_files import QuestionRow, row_score

OUTCOMES = ("right", "no answer", "answered the real world", "retrieval miss", "arithmetic miss", "reading miss")


def classify_outcome(row: QuestionRow, measure: str, computed: str, factual: str = "") -> str:
    """The first of OUTCOMES that applies to a question.

    Args:
        row: a row of `per_question.jsonl` with the measure, "subsets", "failed" and "answer"; "gold_read", "answer_read" and
            "factual" if they are known.
        measure: the measure that is 1 for a right answer, such as "EM".
        computed: the subset of questions whose answers must mostly be computed, such as "numeric"; empty if there is none.
        factual: the answer in the real world, from another experiment; the row's own factual answer counts as well.
    """
    if missing := [name for name in (measure, "failed", "answer") if name not in row]:
        raise IfqaError(
            f"question {row.get('id', '?')} has no {missing[0]!r}; wanted the scores of an experiment with a reader"
        )
    if row_score(row, measure) == 1:
        return "right"
    if row["failed"]:
        return "no answer"
    real_answers = {normalize(text) for text in (row.get("factual", ""), factual)} - {""}
    if normalize(row["answer"]) in real_answers:
        return "answered the real world"
    if row.get("gold_read") is False:
        return "retrieval miss"
    if row.get("gold_read") and computed in row["subsets"] and row.get("answer_read") is False:
        return "arithmetic miss"
    return "reading miss"
