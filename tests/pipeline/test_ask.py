"""One question: its answer and its evidence."""

import subprocess
import sys
from pathlib import Path

import pytest
from outside_plugins import LAST, PLUGS, WORDS, corpus, experiment, five_questions, outside, rows, searching

from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError
from ifqa.pipeline.ask import ask


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    yield from five_questions(tmp_path, monkeypatch)


def test_a_question_is_answered_with_the_evidence_in_the_predictions_order():
    asked = ask(searching(reader=LAST), "  If team3 had won, who would lead?\n")
    assert asked.prediction.completion == "If team3 had won, who would lead?"
    assert asked.prediction.answer == "team0 is led by captain0"
    assert [(one.id, one.title) for one in asked.evidence] == [("p0", "Team 0"), ("p3", "Team 3")]


def test_asking_builds_the_corpus_and_leaves_no_experiment():
    ask(searching(reader=LAST), "If team3 had won, who would lead?")
    assert len(PassageStore(Path("indexes/few/passages"))) == 5
    assert Path("indexes/few/words/manifest.json").exists()
    assert not Path("experiments").exists()
    assert rows("searched.jsonl") == [[3, "If team3 had won, who would lead?"]]  # as deep as a run, which reads two


HOLDER = "import sys; from pathlib import Path; from ifqa.storage.artifacts import lock\nwith lock(Path('indexes/few')): print('in', flush=True); sys.stdin.read()"


def test_a_built_corpus_answers_whoever_else_works_in_it():
    ask(searching(reader=LAST), "If team3 had won, who would lead?")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        asked = ask(searching(reader=LAST), "If team3 had won, who would lead?")
        other.stdin.close()
    assert asked.prediction.answer == "team0 is led by captain0"


def test_evidence_may_be_stored_or_made_by_the_retriever():
    outside(
        PLUGS,
        "class Both(Words):\n    'Finds some and makes some.'\n"
        "    def search(self, questions, k): return [[Hit('p4', 3.0), Hit('new', 2.0), Hit('p1', 1.0)] for _ in questions]\n"
        "    def made_passages(self, questions): return [Passage('new', 'New', one.text) for one in questions]\n",
    )
    corpus('retriever = "outside_of_stages:Both"')
    mine = experiment(corpus="few", retriever=WORDS | {"name": "outside_of_stages:Both"}, reader=LAST | {"passages": 3})
    asked = ask(mine, "Who?")
    assert [(one.id, one.text) for one in asked.evidence] == [
        ("p1", "team1 is led by captain1"), ("new", "Who?"), ("p4", "team4 is led by captain4")
    ]  # fmt: skip


def test_a_closed_book_answers_without_evidence():
    asked = ask(experiment(reader={"name": LAST["name"]}), "If so, who?")
    assert (asked.prediction.answer, asked.evidence) == ("If so, who?", [])


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_question_is_refused_before_anything_is_built(text):
    with pytest.raises(IfqaError, match="the question is empty; wanted something like: ifqa ask"):
        ask(searching(reader=LAST), text)
    assert not Path("indexes/few").exists()
