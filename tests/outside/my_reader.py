"""A reader from outside: the last word of the best passage."""

from collections.abc import Sequence

from ifqa import Passage, Prediction, Question


class LastWord:
    """Has only `answer`; `ifqa.plugins.load` adds the rest of a reader's role."""

    def __init__(self, lower: bool = False) -> None:
        self.lower = lower

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]
    ) -> list[Prediction]:
        """One prediction a question, in their order."""
        return [
            self._read(question, passage)
            for question, passage in zip(questions, passages, strict=True)
        ]

    def _read(self, question: Question, passages: Sequence[Passage]) -> Prediction:
        if not passages:
            return Prediction(question.id, "", error="no passages")
        word = passages[0].text.split()[-1].strip(".")
        return Prediction(
            question.id, word.lower() if self.lower else word, passage_ids=(passages[0].id,)
        )
