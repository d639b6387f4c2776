"""An opened system answers with evidence, retrieves with texts, and opens each part once."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from outside_plugins import (
    FILE,
    LAST,
    PLUGINS,
    WORDS,
    corpus,
    experiment,
    five_questions,
    outside,
    rows,
    scores,
    searching,
)

from ifqa.config.experiment import parse_experiment
from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.pipeline.system import as_questions
from ifqa.records import Question


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    yield from five_questions(tmp_path, monkeypatch)


def ask(experiment, text):
    with open_system(Run(experiment)) as system:
        return system.ask(text)


def test_an_answer_has_its_evidence_in_the_predictions_order():
    asked = ask(searching(reader=LAST), "  If team3 had won, who would lead?\n")
    assert asked.question.text == "If team3 had won, who would lead?"
    assert asked.text == "team0 is led by captain0"
    assert [(one.id, one.title) for one in asked.evidence] == [("p0", "Team 0"), ("p3", "Team 3")]


def test_asking_builds_the_corpus_and_leaves_no_experiment():
    ask(searching(reader=LAST), "If team3 had won, who would lead?")
    assert len(PassageStore(Path("indexes/few/passages"))) == 5
    assert Path("indexes/few/words/manifest.json").exists()
    assert not Path("experiments").exists()
    assert rows("searched.jsonl") == [
        [3, "If team3 had won, who would lead?"]
    ]  # the retriever's own k, though the reader reads two


HOLDER = "import sys; from pathlib import Path; from ifqa.storage.artifacts import lock\nwith lock(Path('indexes/few')): print('in', flush=True); sys.stdin.read()"


def test_a_built_corpus_can_be_read_while_it_is_locked():
    ask(searching(reader=LAST), "If team3 had won, who would lead?")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "in\n"
        asked = ask(searching(reader=LAST), "If team3 had won, who would lead?")
        other.stdin.close()
    assert asked.text == "team0 is led by captain0"


def test_evidence_may_be_stored_or_made_by_the_retriever():
    outside(
        PLUGINS,
        "class Both(Words):\n    'Finds some and makes some.'\n"
        "    def search(self, questions, k):\n"
        "        hits = [Hit('p4', 3.0), Hit('new', 2.0), Hit('p1', 1.0)]\n"
        "        return [SearchResult(hits, [Passage('new', 'New', one.text)]) for one in questions]\n",
    )
    corpus('retriever = "outside_of_stages:Both"')
    mine = experiment(corpus="few", retriever=WORDS | {"name": "outside_of_stages:Both"}, reader=LAST | {"passages": 3})
    asked = ask(mine, "Who?")
    assert [(one.id, one.text) for one in asked.evidence] == [
        ("p1", "team1 is led by captain1"), ("new", "Who?"), ("p4", "team4 is led by captain4")
    ]  # fmt: skip


def test_a_closed_book_answers_without_evidence():
    asked = ask(experiment(reader={"name": LAST["name"]}), "If so, who?")
    assert (asked.text, asked.evidence) == ("If so, who?", ())


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_question_is_refused(text):
    with pytest.raises(IfqaError, match="the question is empty; wanted something like: ifqa ask"):
        as_questions([text])


OPENED = """
def note(what):
    with open("opened.txt", "a") as file:
        print(what, file=file)
class Opened(Words):
    'Says that it was opened.'
    def __init__(self, index):
        super().__init__(index)
        note("retriever")
class Slow(Last):
    'Notes whether two threads were in it at once.'
    inside = 0
    def __init__(self):
        note("reader")
    def answer(self, questions, passages):
        import time
        Slow.inside += 1
        time.sleep(0.01)
        if Slow.inside > 1: raise RuntimeError("two at once")
        Slow.inside -= 1
        return super().answer(questions, passages)
"""


def test_parts_are_opened_once_and_used_by_a_thread_at_a_time():
    outside(PLUGINS, OPENED)
    corpus('retriever = "outside_of_stages:Opened"')
    mine = experiment(
        corpus="few", retriever=WORDS | {"name": "outside_of_stages:Opened"}, reader={"name": "outside_of_stages:Slow"}
    )
    with open_system(Run(mine)) as system, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: system.ask(f"If team{n} had won, who?").text, range(5)))
    assert rows_of("opened.txt") == ["retriever", "reader"]
    assert found == [system.ask(f"If team{n} had won, who?").text for n in range(5)]


def rows_of(path):
    return Path(path).read_text().splitlines()


def test_rankings_come_with_their_passages_at_the_depth_that_is_asked_for():
    with open_system(Run(searching(reader=LAST))) as system:
        first, second = system.retrieve(["If team3 had won, who would lead?", Question("mine", "Of team1?")], k=2)
    assert [(passage.id, score) for passage, score in first] == [("p3", 1.0), ("p0", 0.0)]
    assert (len(second), second.question.id, second.passages[0].text) == (2, "mine", "team0 is led by captain0")


@pytest.mark.parametrize("asked", [None, 3])
def test_what_is_no_question_is_refused(asked):
    with pytest.raises(IfqaError, match="wanted a text or a Question, found"):
        as_questions([asked])


def test_a_single_text_in_place_of_a_list_is_refused():
    with pytest.raises(IfqaError, match="wanted a list of questions, found"):
        open_system(Run(searching(reader=LAST))).retrieve("If so, who?")


@pytest.mark.parametrize(
    ("search", "refused"),
    [
        ("return [[]]", "must return a list with one ranking for each question: wanted 2, found 1"),
        ("return None", "wanted 2, found NoneType"),
        ("return [[Hit('p0', 1.0)] * 4] * 2", "gave ask/0 4 passages; wanted at most k = 3"),
        ("return [[Hit('p0', 1.0)] * 2] * 2", "gave ask/0 a passage twice"),
        ("return [[Hit('p 0', 1.0)]] * 2", "gave ask/0 the passage id 'p 0'; wanted one without white space"),
        ("return [[Hit('p0', float('nan'))]] * 2", "gave ask/0 the score nan for p0; wanted a number"),
    ],
)
def test_a_retriever_that_breaks_its_protocol_is_refused_by_name(search, refused):
    outside(PLUGINS, f"class Wrong(Words):\n    'Wrong.'\n    def search(self, questions, k): {search}\n")
    corpus('retriever = "outside_of_stages:Wrong"')
    mine = experiment(corpus="few", retriever=WORDS | {"name": "outside_of_stages:Wrong"})
    with pytest.raises(IfqaError, match=f"retriever 'outside_of_stages:Wrong' .*{re.escape(refused)}"):
        open_system(Run(mine)).retrieve(["If?", "If so?"])


def test_evidence_that_the_reader_was_not_given_is_refused():
    outside(
        PLUGINS,
        "class Makes(Last):\n    'Wrong.'\n    def answer(self, questions, passages): return [Prediction(q.id, 'x', passage_ids=('p9',)) for q in questions]\n",
    )
    with pytest.raises(IfqaError, match="reader 'outside_of_stages:Makes', ask/0: cites passage 'p9'"):
        ask(searching(reader={"name": "outside_of_stages:Makes"}), "If?")


def test_a_system_works_below_its_root_from_any_working_directory(tmp_path, monkeypatch):
    """Corpus, benchmark, files that settings name, and all that is made; nothing appears in the working directory."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    mine = parse_experiment(
        "mine",
        {
            "benchmark": "ifqa",
            "split": "full-dev",
            "corpus": "few",
            "retriever": {"name": "gold", "k": 2},
            "reader": FILE,
        },
        "mine.toml",
        tmp_path,
    )
    stages.run(Run(mine))
    assert scores(tmp_path / "experiments/mine/score")["measures"]["EM"]["value"] == 60.0
    assert (tmp_path / "indexes/few/passages/manifest.json").exists()
    assert list(elsewhere.iterdir()) == []


UNSURE = {"name": "outside_of_stages:Unsure"}


@pytest.mark.parametrize(("threshold", "given"), [(None, [0, 1, 2]), (0, [0, 1, 2, 3, 4]), (0.75, [0]), (1, [])])
def test_an_opened_system_abstains_below_the_readers_or_its_own_threshold(threshold, given):
    texts = [f"If team{n} had won, who would lead?" for n in range(5)]
    with open_system(Run(experiment(reader=UNSURE))) as system:
        found = system.answer(texts, threshold)
        assert system.ask(texts[4], threshold) == replace(found[4], question=Question("ask/0", texts[4]))
    assert [n for n, one in enumerate(found) if one.text == "captain0"] == given
    assert [one.candidate for one in found] == ["" if n in given else "captain0" for n in range(5)]
    assert [one.confidence for one in found] == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1])


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "0.5", True])
def test_a_threshold_that_is_no_confidence_is_refused(threshold):
    with (
        open_system(Run(experiment(reader=UNSURE))) as system,
        pytest.raises(IfqaError, match="threshold: wanted a confid"),
    ):
        system.ask("If so?", threshold)


def test_a_scored_run_answers_all_questions_unless_its_reader_abstains():
    stages.run(Run(experiment("all", reader=UNSURE)))
    stages.run(Run(experiment("some", reader=UNSURE | {"least": 0.6})))
    every, some = scores("experiments/all/score"), scores("experiments/some/score")
    assert ("n_abstained" in every, some["n_abstained"], some["n_failed"]) == (False, 3, 0)
    assert every["measures"]["EM"] == some["measures"]["EM"]  # the first answer is the only right one
    assert every["measures"]["Brier"] == some["measures"]["Brier"]
    first, *_, last = rows("experiments/some/score/per_question.jsonl")
    assert (first["answer"], first["EM"], first["confidence"]) == ("captain0", 1.0, 0.9)
    assert (last["answer"], last["candidate"], last["abstained"], last["EM"]) == ("", "captain0", 1.0, 0.0)
    assert "candidate" not in first
    predictions = rows("experiments/some/read/predictions.jsonl")
    assert [one.get("candidate") for one in predictions] == [None, None, "captain0", "captain0", "captain0"]
