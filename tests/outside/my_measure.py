"""A measure from outside: whether an answer is one word."""

from ifqa import Prediction, Question
from ifqa.protocols import Measure


def one_word(question: Question, prediction: Prediction) -> float:
    """1 if the answer is one word, else 0."""
    return float(len(prediction.answer.split()) == 1)


ONE_WORD = Measure("one word", one_word, in_tables=True, about="the answer is one word")
