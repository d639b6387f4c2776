"""A retriever by words, and readers, as a user would write them; tests copy this text."""

import json
from pathlib import Path

from ifqa.corpus.passage_store import PassageStore
from ifqa.records import Hit, Prediction


class Words:
    """Ranks passages by the words that they share with the question; records its calls."""

    def __init__(self, index) -> None:
        self.words = json.loads((index / "words.json").read_text())

    def search(self, questions, k):
        with open("searched.jsonl", "a") as file:
            print(json.dumps([k, *(one.text for one in questions)]), file=file)
        return [self.ranked(set(one.text.split()))[:k] for one in questions]

    def ranked(self, asked):
        scores = {key: len(asked.intersection(words)) for key, words in self.words.items()}
        best_first = sorted(scores, key=lambda key: -scores[key])
        return [Hit(key, float(scores[key])) for key in best_first]

    @classmethod
    def build(cls, passages, folder, *, most: int = 100):
        words = {one.id: one.text.split()[:most] for one in PassageStore(passages)}
        (folder / "words.json").write_text(json.dumps(words))


class Last:
    """Answers with the text of the last passage, its first evidence.

    Without passages it answers with the question.
    """

    def answer(self, questions, passages):
        return [self.read(one, given) for one, given in zip(questions, passages, strict=True)]

    def read(self, question, passages):
        text = passages[-1].text if passages else question.text
        evidence = tuple(passage.id for passage in reversed(passages))
        return Prediction(question.id, text, question.text, evidence)


class Careful:
    """Reads two questions at a time, and records them.

    It stops at the last question while there is a file "stop".
    """

    chunk = 2

    def __init__(self, said: str = "captain0") -> None:
        self.said = said

    def answer(self, questions, passages):
        if Path("stop").exists() and questions[-1].id.endswith("/4"):
            raise KeyboardInterrupt
        with open(Path(__file__).with_name("asked.txt"), "a") as file:
            print(*(one.id[-1] for one in questions), file=file)
        return [Prediction(one.id, self.said) for one in questions]


class Unsure:
    """Answers "captain0" with a confidence that falls with each question.

    It abstains below `least`.
    """

    abstain_threshold = 0.5

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def answer(self, questions, passages):
        return [self.read(question).abstain_below(self.least) for question in questions]

    def read(self, question):
        confidence = 0.9 - int(question.text[7]) / 5
        return Prediction(question.id, "captain0", confidence=confidence)


class Unweighed:
    """Answers "captain0" without a confidence, and leaves a file when it is asked."""

    gives_confidence = False

    def answer(self, questions, passages):
        Path("unweighed.txt").touch()
        return [Prediction(question.id, "captain0") for question in questions]


class Documents(Unsure):
    """Like `Unsure`, with a threshold of its own and an advice over documents."""

    document_thresholds = (0.8, 0.0)
    advice = "ask someone"


class Doubtful:
    """Answers "captain0" with a confidence of 0.5.

    Of each question it is less sure that a passage has the answer.
    """

    answerable_threshold = 0.5

    def answer(self, questions, passages):
        return [self.read(question) for question in questions]

    def read(self, question):
        answerable = 0.9 - int(question.text[7]) / 5
        return Prediction(question.id, "captain0", confidence=0.5, answerable=answerable)


class English:
    """Answers questions in English, and is half sure."""

    language = "en"
    abstain_threshold = 0.2

    def answer(self, questions, passages):
        pairs = zip(questions, passages, strict=True)
        return [
            Prediction(one.id, "captain0", passage_ids=(several[0].id,), confidence=0.5)
            for one, several in pairs
        ]


class Weighs:
    """Answers with the scores of its passages."""

    takes_scores = True

    def answer(self, questions, passages, scores):
        assert [len(several) for several in passages] == [len(own) for own in scores]
        return [Prediction(one.id, f"{own}") for one, own in zip(questions, scores, strict=True)]
