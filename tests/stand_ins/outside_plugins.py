"""An experiment of five questions whose passages, retriever and readers come from outside, made in
a working directory.
"""

import json
from pathlib import Path

import pytest
from scored_experiments import benchmark, write

from ifqa.config.experiment import parse_experiment
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run

GOLD = {"name": "gold", "k": 2}
FILE = {"name": "predictions", "path": "answers.jsonl"}
WORDS = {"name": "outside_of_stages:Words", "k": 3, "index": "words"}
LAST = {"name": "outside_of_stages:Last", "passages": 2}

EXPERIMENT = """benchmark = "ifqa"
split = "full-dev"
corpus = "few"
retriever = { name = "outside_of_stages:Words", index = "words", k = 3 }
reader = { name = "outside_of_stages:Last", passages = 1 }
"""

IMPORTS = """
import json
from pathlib import Path
from ifqa.corpus.passage_store import PassageStore
from ifqa.records import Hit, Passage, Prediction, SearchResult
"""
PLUGINS = '''
class Words:
    """Ranks passages by the words that they share with the question; records its calls."""

    def __init__(self, index) -> None:
        self.words = json.loads((index / "words.json").read_text())

    def search(self, questions, k):
        with open("searched.jsonl", "a") as file:
            print(json.dumps([k, *(one.text for one in questions)]), file=file)
        return [self.ranked(set(one.text.split()))[:k] for one in questions]

    def ranked(self, asked):
        scores = {passage_id: len(asked.intersection(words)) for passage_id, words in self.words.items()}
        return [Hit(one, float(scores[one])) for one in sorted(scores, key=lambda one: -scores[one])]

    @classmethod
    def build(cls, passages, folder, *, most: int = 100):
        words = {one.id: one.text.split()[:most] for one in PassageStore(passages)}
        (folder / "words.json").write_text(json.dumps(words))


class Last:
    """Answers with the text of the last passage, its first evidence; without passages, with the question."""

    def answer(self, questions, passages):
        return [
            Prediction(one.id, given[-1].text if given else one.text, one.text, tuple(p.id for p in reversed(given)))
            for one, given in zip(questions, passages, strict=True)
        ]


class Careful:
    """Reads two questions at a time, records them, and stops at the last question while there is a file "stop"."""

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
    """Answers "captain0" with a confidence that falls with each question, and abstains below `least`."""

    abstain_threshold = 0.5

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def answer(self, questions, passages):
        sure = [Prediction(one.id, "captain0", confidence=0.9 - int(one.text[7]) / 5) for one in questions]
        return [one.abstain_below(self.least) for one in sure]


class Doubtful:
    """Answers "captain0" with a confidence of 0.5, and is less sure of each question that a passage has the answer."""

    answerable_threshold = 0.5

    def answer(self, questions, passages):
        return [Prediction(one.id, "captain0", confidence=0.5, answerable=0.9 - int(one.text[7]) / 5) for one in questions]


class English:
    """Answers questions in English, and is half sure."""

    language, abstain_threshold = "en", 0.2

    def answer(self, questions, passages):
        return [Prediction(one.id, "captain0", confidence=0.5) for one in questions]


class Weighs:
    """Answers with the scores of its passages."""

    takes_scores = True

    def answer(self, questions, passages, scores):
        assert [len(several) for several in passages] == [len(own) for own in scores]
        return [Prediction(one.id, f"{own}") for one, own in zip(questions, scores, strict=True)]
'''
BUILDER = '''
class Builder:
    """Records the files in its folder, and stops half-way while there is a file "stop"."""

    def __init__(self, index) -> None:
        pass

    def search(self, questions, k):
        return []

    @classmethod
    def build(cls, passages, folder):
        with open("found.txt", "a") as file:
            print(*(path.name for path in folder.glob("half*")), file=file)
        (folder / "half").write_text("of it")
        if Path("stop").exists():
            raise KeyboardInterrupt
'''


def question(n):
    return {
        "question": f"If team{n} had won, who would lead?",
        "answers": [f"captain{n}"],
        "context": [f"team{n} is led by captain{n}"],
    }


def answers(texts, path="answers.jsonl"):
    lines = [
        json.dumps({"question_id": f"ifqa/full-dev/{n}", "answer": text})
        for n, text in texts.items()
    ]
    write(path, "\n".join(lines))


def passages(numbers, path="few.jsonl"):
    lines = [
        {"id": f"p{n}", "title": f"Team {n}", "contents": f"team{n} is led by captain{n}"}
        for n in numbers
    ]
    write(path, "".join(json.dumps(line) + "\n" for line in lines))


def corpus(build='retriever = "outside_of_stages:Words"', sources=(("passages", "few.jsonl"),)):
    tables = [
        f'[[passages.sources]]\nformat = "{kind}"\npath = "{path}"\n' for kind, path in sources
    ]
    write("indexes/few.toml", "".join(tables) + f"[index.words]\n{build}\n")


def outside(*classes):
    write("outside_of_stages.py", IMPORTS + "".join(classes))


def experiment(name="mine", **tables):
    return parse_experiment(
        name, {"benchmark": "ifqa", "split": "full-dev", **tables}, f"{name}.toml"
    )


def searching(**tables):
    return experiment(corpus="few", retriever=WORDS, **tables)


def stamps(folder):
    """File -> a mark that changes if the file is replaced."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def rows(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def scores(folder="experiments/mine/score"):
    return json.loads((Path(folder) / "scores.json").read_text())


def interrupted(**settings):
    """A read stage that stopped at the last of five questions."""
    careful = {"name": "outside_of_stages:Careful"}
    stages.read(Run(experiment("undisturbed", reader=careful)))
    Path("asked.txt").unlink()
    write("stop", "")
    with pytest.raises(KeyboardInterrupt):
        stages.read(Run(experiment(reader=careful)))
    assert not Path("experiments/mine/read").exists()
    Path("stop").unlink()
    return experiment(reader=careful | settings)


def five_questions():
    """Five questions, a file that answers three of them right, five passages, and plugins from
    outside.
    """
    benchmark(*map(question, range(5)))
    answers({n: f"captain{n}" if n < 3 else "nobody" for n in range(5)})
    passages(range(5))
    corpus()
    outside(PLUGINS)
