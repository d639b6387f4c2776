"""What retrievers and readers get and may return, and where an interrupted reading resumes."""

from pathlib import Path
from typing import Any

import outside_plugins as toy
import pytest
from scored_experiments import write

from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System
from ifqa.protocols import Retriever
from ifqa.storage.artifacts import read_manifest
from ifqa.storage.files import sha256

pytestmark = pytest.mark.usefixtures("five")


def test_a_retriever_is_given_some_questions_at_a_time(monkeypatch):
    stages.run(Run(toy.searching()))
    run = Path("experiments/mine/retrieve/run.trec")
    searched = Path("searched.jsonl")
    at_once = run.read_text()
    assert [len(line) - 1 for line in toy.rows(searched)] == [5]
    searched.unlink()
    monkeypatch.setattr(Retriever, "chunk", 2)
    stages.run(Run(toy.experiment("parts", corpus="few", retriever=toy.WORDS)))
    assert [len(line) - 1 for line in toy.rows(searched)] == [2, 2, 1]
    assert Path("experiments/parts/retrieve/run.trec").read_text() == at_once


def test_a_retriever_is_given_its_depth(monkeypatch):
    monkeypatch.setattr(Retriever, "chunk", 2)
    stages.run(Run(toy.experiment(corpus="few", retriever=toy.WORDS)))
    assert [line[0] for line in toy.rows("searched.jsonl")] == [3, 3, 3]
    run = Path("experiments/mine/retrieve/run.trec").read_text()
    assert [
        line.split()[2] for line in run.splitlines() if line.startswith("ifqa/full-dev/3 ")
    ] == ["p3", "p0", "p1"]


def run_with_clauses():
    """Search with the supposition of each question alone."""
    clauses = toy.WORDS | {"query": "presupposition"}
    stages.run(Run(toy.experiment(corpus="few", retriever=clauses, reader=toy.LAST)))


def test_a_retriever_gets_the_clause():
    run_with_clauses()
    assert toy.rows("searched.jsonl")[0][1:3] == ["team0 had won", "team1 had won"]


def test_a_reader_gets_the_whole_question():
    run_with_clauses()
    assert (
        toy.rows("experiments/mine/read/predictions.jsonl")[1]["completion"]
        == "If team1 had won, who would lead?"
    )


@pytest.mark.parametrize(
    ("search", "complaint"),
    [
        (
            'return [[Hit("p0", 1.0), Hit("p1", 2.0)] for _ in questions]',
            "the score rises from 1.0 to 2.0 at rank 2",
        ),
        (
            'return [SearchResult([], [Passage("a b", "", "text")]) for _ in questions]',
            "has the id 'a b'; wanted a non-empty id",
        ),
    ],
)
def test_a_retriever_that_breaks_its_protocol_is_refused(search, complaint):
    toy.outside(
        toy.PLUGINS,
        f"class Broken(Words):\n    'Broken.'\n    def search(self, questions, k): {search}\n",
    )
    toy.corpus('retriever = "outside_of_stages:Broken"')
    with pytest.raises(IfqaError, match=complaint):
        stages.run(
            Run(
                toy.experiment(
                    corpus="few", retriever=toy.WORDS | {"name": "outside_of_stages:Broken"}
                )
            )
        )
    assert not Path("experiments/mine/retrieve").exists()


def test_a_ranking_of_an_unknown_passage_is_refused_by_read():
    write("run.trec", "ifqa/full-dev/0 Q0 p0 1 2.0 t\nifqa/full-dev/0 Q0 p99 2 1.0 t\n")
    mine = toy.experiment(
        corpus="few", retriever={"name": "run", "path": "run.trec"}, reader=toy.LAST
    )
    stages.prepare(Run(mine))
    stages.retrieve(Run(mine))
    with pytest.raises(IfqaError, match="no passage 'p99' in indexes/few/passages"):
        stages.read(Run(mine))
    assert not Path("experiments/mine/read").exists()


def test_a_reader_gets_as_many_of_the_best_passages_as_it_asks_for():
    stages.run(Run(toy.searching(reader=toy.LAST)))
    predictions = toy.rows("experiments/mine/read/predictions.jsonl")
    assert [prediction["passage_ids"] for prediction in predictions] == [
        ["p1", "p0"],
        ["p0", "p1"],
        ["p0", "p2"],
        ["p0", "p3"],
        ["p0", "p4"],
    ]
    assert predictions[0]["answer"] == "team1 is led by captain1"


WEIGHS = {"name": "outside_of_stages:Weighs", "passages": 2}


def test_a_reader_that_takes_scores_gets_those_of_the_run():
    stages.run(Run(toy.searching(reader=WEIGHS)))
    hits = [
        line.split() for line in Path("experiments/mine/retrieve/run.trec").read_text().splitlines()
    ]
    expected = [
        f"{[float(hit[4]) for hit in hits if hit[0].endswith(f'/{n}')][:2]}" for n in range(5)
    ]
    assert [
        row["answer"] for row in toy.rows("experiments/mine/read/predictions.jsonl")
    ] == expected
    assert set(expected) == {"[1.0, 0.0]"}


def test_a_reader_that_takes_scores_gets_them_when_it_is_asked():
    mine = toy.searching(reader=WEIGHS)
    stages.prepare(Run(mine))
    with System(Run(mine)) as system:
        answers = system.answer(Run(mine).questions)
    assert [answer.text for answer in answers] == ["[1.0, 0.0]"] * 5


def test_a_reader_that_takes_scores_gets_none_without_a_retriever():
    stages.run(Run(toy.experiment(reader={"name": WEIGHS["name"]})))
    assert [row["answer"] for row in toy.rows("experiments/mine/read/predictions.jsonl")] == [
        "[]"
    ] * 5


def test_a_reader_that_breaks_its_protocol_is_refused():
    answer = (
        "def answer(self, questions, passages): return [Prediction(q.id, None) for q in questions]"
    )
    toy.outside(toy.PLUGINS, f"class Broken(Last):\n    'Not so.'\n    {answer}\n")
    with pytest.raises(
        IfqaError,
        match=r"reader 'outside_of_stages:Broken'.*ifqa/full-dev/0: answer: .* found None",
    ):
        stages.run(Run(toy.experiment(reader={"name": "outside_of_stages:Broken"})))
    assert not Path("experiments/mine/read").exists()


def test_an_interrupted_reading_resumes_after_the_last_answered_question(capsys):
    stages.read(Run(toy.interrupted()))
    assert Path("asked.txt").read_text().splitlines() == ["0 1", "2 3", "4"]
    assert "experiments/mine/read: resuming after 4 of 5 questions" in capsys.readouterr().err
    mine, undisturbed = (
        Path("experiments", name, "read/predictions.jsonl") for name in ("mine", "undisturbed")
    )
    assert mine.read_bytes() == undisturbed.read_bytes()


def test_a_reading_with_another_setting_begins_anew():
    stages.read(Run(toy.interrupted(said="captain1")))
    assert Path("asked.txt").read_text().splitlines() == ["0 1", "2 3", "0 1", "2 3", "4"]
    assert {row["answer"] for row in toy.rows("experiments/mine/read/predictions.jsonl")} == {
        "captain1"
    }


def test_questions_that_change_while_they_are_read_leave_nothing():
    spoil = (
        'Path(\'data/ifqa/full_split/dev.json\').write_text(\'[{"idx": 0, "question": '
        '"?", "answers": ["x"], "context": []}]\')'
    )
    toy.outside(
        toy.PLUGINS,
        "class Spoil(Last):\n    'Spoils.'\n    def answer(self, questions, passages):\n     "
        f"   {spoil}\n        return super().answer(questions, passages)\n",
    )
    with pytest.raises(
        IfqaError, match="an input of experiments/mine/read changed while it was being made"
    ):
        stages.read(Run(toy.experiment(reader={"name": "outside_of_stages:Spoil"})))
    assert not Path("experiments/mine/read").exists()


def test_the_manifest_of_a_retrieval_has_what_its_retriever_tells():
    known = sha256(Path("data/ifqa/full_split/dev.json"))
    finds = (
        f"class Finds(Words):\n    trained_on = ({known!r},)\n    def usage(self): "
        f"return {{'took': [3, 4]}}\n"
    )
    toy.outside(toy.PLUGINS, finds)
    toy.corpus('retriever = "outside_of_stages:Finds"')
    retriever = toy.WORDS | {"name": "outside_of_stages:Finds"}
    stages.run(Run(toy.experiment(corpus="few", retriever=retriever)))
    manifest = read_manifest(Path("experiments/mine/retrieve"))
    assert manifest is not None
    record: Any = manifest["record"]
    assert record["took"] == [3, 4]
    assert record["trained_on_them"] is True


def test_the_manifest_of_a_reading_has_what_its_reader_tells():
    tells = "class Tells(Last):\n    label = 'a toy'\n    def usage(self): return {'cut': 3}\n"
    toy.outside(toy.PLUGINS, tells)
    stages.run(Run(toy.searching(reader={"name": "outside_of_stages:Tells"})))
    manifest = read_manifest(Path("experiments/mine/read"))
    assert manifest is not None
    record: Any = manifest["record"]
    assert record["label"] == "a toy"
    assert record["cut"] == 3
    assert record["trained_on_them"] is False
    assert "calibrated_on_them" not in record


def test_the_manifest_of_a_reading_says_if_its_confidence_was_fitted_on_the_questions():
    known = sha256(Path("data/ifqa/full_split/dev.json"))
    toy.outside(toy.PLUGINS, f"class Fitted(Last):\n    calibrated_on = ({known!r},)\n")
    stages.run(Run(toy.searching(reader={"name": "outside_of_stages:Fitted"})))
    manifest = read_manifest(Path("experiments/mine/read"))
    assert manifest is not None
    assert manifest["record"]["calibrated_on_them"] is True
