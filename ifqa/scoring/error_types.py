"""Classifies why an answer is right or wrong: one outcome for each question, from its row of
`per_question.jsonl`.
"""

from ifqa.errors import FormatError
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.stored_scores import QuestionRow, row_score

#: A question has the first outcome that applies: right: the score is 1, even if the answer is also
#: true in the real world or no gold passage was read. no answer: the reader gave none. answered the
#: real world: the reader gave the factual answer, as if nothing had been supposed. It comes before
#: the misses because the answer itself shows the mistake, even without retrieval. retrieval miss:
#: no gold passage was read. A passage may still hold an answer by chance
#: (`answer_recall.chance_floor`). arithmetic miss: a gold passage was read, the answer is a number
#: or a date, and no passage that was read holds an answer. So the answer had to be computed, or was
#: in a part of the gold passage that was not retrieved. reading miss: all others. The answer was in
#: the gold passage that was read, or had to be inferred; or nothing was retrieved (a closed book
#: has no retrieval or arithmetic misses); or the question has no gold passage.
OUTCOMES = (
    "right",
    "no answer",
    "answered the real world",
    "retrieval miss",
    "arithmetic miss",
    "reading miss",
)


def classify_outcome(row: QuestionRow, measure: str, computed: str, factual: str = "") -> str:
    """The question's outcome, one of OUTCOMES.

    Args:
        row: has the measure, "subsets", "failed" and "answer"; and "gold_read", "answer_read" and
            "factual" if known.
        measure: the measure that is 1 for a right answer, such as "EM".
        computed: the subset of questions whose answers are mostly computed, such as "numeric";
            empty for none.
        factual: the answer in the real world, from another experiment; the row's own factual answer
            counts as well.
    """
    if missing := [name for name in (measure, "failed", "answer") if name not in row]:
        question_id = row.get("id", "?")
        wanted = "wanted the scores of an experiment with a reader"
        raise FormatError(f"question {question_id} has no {missing[0]!r}; {wanted}")
    if row_score(row, measure) == 1:
        return "right"
    if row["failed"] or row.get("abstained"):
        return "no answer"
    if normalize(row["answer"]) in {
        normalize(text) for text in (row.get("factual", ""), factual)
    } - {""}:
        return "answered the real world"
    if row.get("gold_read") is False:
        return "retrieval miss"
    if row.get("gold_read") and computed in row["subsets"] and row.get("answer_read") is False:
        return "arithmetic miss"
    return "reading miss"
