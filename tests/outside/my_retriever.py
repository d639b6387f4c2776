"""A retriever from outside: ranks passages by the number of words that they share with the
question.
"""

from collections.abc import Iterable, Sequence

from ifqa import Hit, Passage, Question


class Words:
    """Searches the whole corpus, which it gets because its constructor has the parameter
    `corpus`.
    """

    def __init__(self, corpus: Iterable[Passage], least: int = 1) -> None:
        self.passages = list(corpus)
        self.least = least

    def search(self, questions: Sequence[Question], k: int) -> list[list[Hit]]:
        """Up to `k` passages of each question, best first."""
        return [self._ranked(question)[:k] for question in questions]

    def _ranked(self, question: Question) -> list[Hit]:
        words = set(question.text.lower().split())
        shared = (
            (passage.id, len(words & set(passage.text.lower().split())))
            for passage in self.passages
        )
        hits = [
            Hit(passage_id, float(count)) for passage_id, count in shared if count >= self.least
        ]
        return sorted(hits, key=lambda hit: -hit.score)
