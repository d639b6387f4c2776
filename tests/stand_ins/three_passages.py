"""Three passages, and a retriever that always ranks them alike."""

from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, SearchResult

PASSAGES = {
    "a": "Ada Lind won the cup at Brill in 1931 and turned to coaching; bands played.",
    "b": "Brill is a village in Kent with a windmill.",
    "c": "The Lind glacier moves two metres a year.",
}


class Scripted(Retriever):
    """Ranks c, b, a, whatever is asked, and keeps the questions."""

    trained_on = ("abc",)

    def __init__(self):
        self.asked = []

    def search(self, questions, k):
        self.asked += [question.text for question in questions]
        hits = [Hit("c", 3.0), Hit("b", 2.0), Hit("a", 1.0)]
        return [SearchResult(hits[:k]) for _ in questions]


def fetch(ids):
    return [Passage(name, "", PASSAGES[name]) for name in ids]
