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

FOLDER = Path(__file__).parent / "plugins"
IMPORTS = """
import json
from pathlib import Path
from ifqa.corpus.passage_store import PassageStore
from ifqa.records import Hit, Passage, Prediction, SearchResult
"""
PLUGINS = (FOLDER / "words_and_readers.py").read_text()
BUILDER = (FOLDER / "builder.py").read_text()


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
