"""A retriever and a reader whose answers depend only on words of the question.

The reader can be blocked.
"""

import threading

from ifqa import Calculation, Explanation, Hit, IfqaError, Prediction, Term

OPEN = threading.Event()  # while it is not set, the reader waits
BATCHES: list[list[str]] = []  # the questions of each call of the reader
SEARCHED: list[list[str]] = []  # the questions of each call of the retriever
FACT = "It was finished in 1849 by Ada Stone."  # every passage holds it


class FixedRetriever:
    """The first k passages of a corpus, whatever is asked."""

    def __init__(self, corpus) -> None:
        self.ids = [passage.id for passage in corpus]

    def search(self, questions, k):
        SEARCHED.append([question.text for question in questions])
        hits = [Hit(passage_id, 1 / (rank + 1)) for rank, passage_id in enumerate(self.ids[:k])]
        return [hits for _ in questions]


class SearchingReader:
    """Answers with the first sentence of the passage that it searches for."""

    def __init__(self, search) -> None:
        self.search = search

    def answer(self, questions, passages):
        found = self.search([question.text for question in questions], 1)
        return [
            Prediction(question.id, hits[0].text.partition(".")[0], passage_ids=(hits[0].id,))
            for question, hits in zip(questions, found, strict=True)
        ]


class BlockingReader:
    """Reads up to four questions at once, when it may."""

    chunk = 4
    abstain_threshold = 0.5

    def answer(self, questions, passages):
        BATCHES.append([question.text for question in questions])
        assert OPEN.wait(60)
        return [self.predict(*pair) for pair in zip(questions, passages, strict=True)]

    def predict(self, question, passages):
        first = passages[0]
        ids = tuple(passage.id for passage in passages)
        if FACT not in first.text:
            return Prediction(question.id, "", passage_ids=ids, error="nothing was found")
        year = first.text.index("1849")
        name = first.text.index("Ada Stone")
        sentence = (first.text.index("It was"), first.text.index("Stone.") + len("Stone."))
        if "bug" in question.text:
            raise RuntimeError("an inner secret")
        if "refused" in question.text:
            raise IfqaError("the model refuses every request")
        if "fails" in question.text:
            return Prediction(question.id, "", passage_ids=ids, error="cut off")
        if "choose" in question.text:
            return Prediction(question.id, question.choices[-1], passage_ids=ids)
        if "later" in question.text:
            start = question.text.index("ten")
            terms = (
                Term("1849", "1849", "passage", year, year + 4),
                Term("ten", "10", "question", start, start + 3),
            )
            how = Explanation(
                first.id, sentence, (year, year + 4), Calculation("1859", "plus", terms)
            )
            return Prediction(question.id, "1859", passage_ids=ids, how=how, confidence=0.75)
        how = Explanation(first.id, sentence, (name, name + len("Ada Stone")))
        sure = 0.1 if "unsure" in question.text else 0.9
        return Prediction(
            question.id, "Ada Stone", passage_ids=ids, how=how, confidence=sure, factual="Bo"
        )
