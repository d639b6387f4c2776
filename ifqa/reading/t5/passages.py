"""Passages that are read one at a time: the input text of each, and the prediction with a score for each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from ifqa.records import Passage, Prediction, Question

if TYPE_CHECKING:
    from ifqa.reading.t5.answer import Reading

Mode = Literal["sequence", "token"]  # of RAG (see `ifqa.reading.t5.marginal.log_likelihoods`)
MAX_ANSWER = 50  # tokens of an answer, including the token that starts decoding (FiD test_reader.py:42-46)


def passage_inputs(question: str, passages: Sequence[Passage], titles: bool) -> list[str]:
    """The input texts of a question's passages, best first; without passages, the question alone.

    `question: {q} title: {t} context: {x}` (FiD src/data.py:16-18, 40, 44-46, 114). Without passages FiD's code would read the
    question alone, but that code is never reached (src/data.py:46-51).
    """
    asked = f"question: {question}"
    if not passages:
        return [asked]
    return [f"{asked} title: {one.title if titles else ''} context: {one.text}" for one in passages]


def prediction(question: Question, passages: Sequence[Passage], reading: "Reading", text: str) -> Prediction:
    """A decoded answer as a prediction, with the passages by their scores, highest first."""
    # Without passages there is still one score, for the question read alone
    scored = sorted(zip(reading.passage_scores, passages, strict=False), key=lambda pair: -pair[0])
    ids, scores = tuple(passage.id for _, passage in scored), tuple(score for score, _ in scored)
    return Prediction(
        question.id, text.strip(), completion=text, passage_ids=ids, score=reading.score, passage_scores=scores
    )
