"""Reader 'polarity': compares whether change and effect say "more" or "less", by a lexicon (Tandon et al. 2019, section 5)."""

import random
from collections.abc import Sequence

from ifqa.protocols import Advance, Reader, silent
from ifqa.reading.choice.lexicon import direction, polarity
from ifqa.reading.choice.offered import require_choices
from ifqa.reading.choice.stems import parts
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import checked


class Polarity(Reader):
    """Answers "more" if change and effect have the same polarity, "less" if they differ; draws one of the two if it is undecided.

    The paper calls these "correct" and "opposite". Its polarity baseline answers "no effect" almost never (0.27% of those
    questions are right), so the draw is between the two choices as well. The question's id seeds the draw. Which choice says
    more and which says less is read from their words.
    """

    version = 1
    chooses = True
    passages_are = "ignored"

    @checked("setting of reader 'polarity'")
    def __init__(self) -> None:
        pass

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; the passages are not read.

        Raises:
            IfqaError: a question has no choices, or is not worded "suppose ... happens, how will it affect ...".
        """
        require_choices(questions, "polarity")
        advance(len(questions))
        return [_answer(question) for question in questions]


def _answer(question: Question) -> Prediction:
    directed = {direction(choice): choice for choice in reversed(question.choices)}
    if not {1, -1} <= directed.keys():
        return Prediction(question.id, "", error="no two choices say more and less")
    change, effect = parts(question.text)
    same = polarity(change) * polarity(effect)
    return Prediction(question.id, directed[same or random.Random(question.id).choice((1, -1))])
