"""What retrievers and readers get and may return, and where an interrupted reading resumes."""

from pathlib import Path

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


def test_a_retriever_is_given_some_questions_at_a_time_and_its_depth(monkeypatch):
    stages.run(Run(toy.searching()))
    run = Path("experiments/mine/retrieve/run.trec")
    searched = Path("searched.jsonl")
    at_once = run.read_text()
    assert [len(line) - 1 for line in toy.rows(searched)] == [5]
    searched.unlink()
    monkeypatch.setattr(Retriever, "chunk", 2)
    stages.run(Run(toy.experiment("parts", corpus="few", retriever=toy.WORDS)))
    assert [(line[0], len(line) - 1) for line in toy.rows(searched)] == [(3, 2), (3, 2), (3, 1)]
    assert Path("experiments/parts/retrieve/run.trec").read_text() == at_once
    assert [
        line.split()[2] for line in at_once.splitlines() if line.startswith("ifqa/full-dev/3 ")
    ] == ["p3", "p0", "p1"]


def test_a_retriever_gets_the_clause_and_the_reader_the_whole_question():
    stages.run(
        Run(
            toy.experiment(
                corpus="few", retriever=toy.WORDS | {"query": "presupposition"}, reader=toy.LAST
            )
        )
    )
    assert toy.rows("searched.jsonl")[0][1:3] == ["team0 had won", "team1 had won"]
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


def test_a_reader_gets_the_best_passages_and_no_more_than_it_asks_for():
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


def test_a_reader_that_takes_scores_gets_the_retrievers_in_a_run_and_when_asked():
    mine = toy.searching(reader={"name": "outside_of_stages:Weighs", "passages": 2})
    stages.run(Run(mine))
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
    with System(Run(mine)) as system:
        assert [prediction.text for prediction in system.answer(Run(mine).questions)] == expected
    stages.run(Run(toy.experiment(reader={"name": "outside_of_stages:Weighs"})))
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


def test_usage_and_label_of_a_retriever_and_a_reader_are_in_the_manifest():
    known = sha256(Path("data/ifqa/full_split/dev.json"))
    finds = (
        f"class Finds(Words):\n    trained_on = ({known!r},)\n    def usage(self): "
        f"return {{'took': [3, 4]}}\n"
    )
    tells = "class Tells(Last):\n    label = 'a toy'\n    def usage(self): return {'cut': 3}\n"
    toy.outside(toy.PLUGINS, finds, tells)
    toy.corpus('retriever = "outside_of_stages:Finds"')
    retriever = toy.WORDS | {"name": "outside_of_stages:Finds"}
    stages.run(
        Run(
            toy.experiment(
                corpus="few", retriever=retriever, reader={"name": "outside_of_stages:Tells"}
            )
        )
    )
    retrieved, read = (
        read_manifest(Path("experiments/mine", stage))["record"] for stage in ("retrieve", "read")
    )
    assert (retrieved["took"], retrieved["trained_on_them"]) == ([3, 4], True)
    assert (read["label"], read["cut"], read["trained_on_them"]) == ("a toy", 3, False)
