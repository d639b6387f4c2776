import json
import pickle

import pytest

from ifqa import stages
from ifqa.convert import convert
from ifqa.ctxs import read_ctxs
from ifqa.errors import IfqaError
from ifqa.experiment import load_experiment
from ifqa.inputs import questions_of
from ifqa.runs import read_run

GOLD = 'benchmark = "sample"\nsplit = "dev"\n[retriever]\nname = "gold"\n'
CLOSED = 'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "predictions"\npath = "p.jsonl"\n'


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/mine.toml").write_text(GOLD)
    return tmp_path


@pytest.fixture
def done(work):
    stages.retrieve(load_experiment("mine"))
    return work


def test_a_run_becomes_ctxs_with_its_texts(done):
    assert convert("mine", done / "out/x.json") == done / "out/x.json"
    questions = questions_of(load_experiment("mine"))
    entries = json.loads((done / "out/x.json").read_text())
    assert [(one["id"], one["question"], tuple(one["answers"])) for one in entries] == [
        (question.id, question.text, question.answers) for question in questions
    ]
    assert [tuple(ctx["text"] for ctx in one["ctxs"]) for one in entries] == [
        tuple(dict.fromkeys(question.gold_passages)) for question in questions
    ]


def test_a_run_becomes_trec_as_it_is_or_cut(done):
    run = done / "experiments/mine/retrieve/run.trec"
    convert("mine", done / "all.trec")
    convert("mine", done / "one.trec", k=1)
    assert (done / "all.trec").read_bytes() == run.read_bytes()
    assert read_run(done / "one.trec") == {question: hits[:1] for question, hits in read_run(run).items()}


def test_ctxs_are_cut_to_k(done):
    convert("mine", done / "x.json", k=1)
    assert {len(ranking) for _, ranking in read_ctxs(done / "x.json")} == {1}


def test_ctxs_become_the_run_they_came_from(done):
    run = read_run(done / "experiments/mine/retrieve/run.trec")
    convert("mine", done / "x.json")
    convert("x.json", done / "own-ids.trec")
    assert read_run(done / "own-ids.trec") == run
    entries = json.loads((done / "x.json").read_text())
    (done / "no-ids.json").write_text(json.dumps([{key: one[key] for key in one if key != "id"} for one in entries]))
    convert("no-ids.json", done / "matched.trec", benchmark="sample", split="dev")
    assert read_run(done / "matched.trec") == run
    with pytest.raises(IfqaError, match=r"entry 1: wanted an 'id' .*found ''; .*--split"):
        convert("no-ids.json", done / "no.trec")
    with pytest.raises(IfqaError, match="no entry for sample/train"):
        convert("x.json", done / "no.trec", benchmark="sample", split="train")
    (done / "twice.json").write_text(json.dumps(entries[:1] * 2))
    with pytest.raises(IfqaError, match="entry 2: wanted an 'id' of its own"):
        convert("twice.json", done / "no.trec")
    assert not (done / "no.trec").exists()


def test_a_file_that_is_there_is_kept_unless_told(done):
    (done / "x.json").write_text("precious")
    with pytest.raises(IfqaError, match=r"x\.json is there already; overwrite it with --force"):
        convert("mine", done / "x.json")
    assert (done / "x.json").read_text() == "precious"
    convert("mine", done / "x.json", force=True)
    assert list(read_ctxs(done / "x.json"))
    (done / "folder.json").mkdir()
    with pytest.raises(IfqaError, match="is a folder"):
        convert("mine", done / "folder.json", force=True)


def test_a_run_that_is_not_what_the_experiment_says_is_refused(work):
    with pytest.raises(IfqaError, match="is not there yet; make it with: ifqa retrieve"):
        convert("mine", work / "x.json")
    stages.retrieve(load_experiment("mine"))
    (work / "experiments/mine.toml").write_text(GOLD + "k = 1\n")
    with pytest.raises(IfqaError, match="was made from something else"):
        convert("mine", work / "x.json")
    assert not (work / "x.json").exists()


@pytest.mark.parametrize(
    ("source", "to", "settings", "complaint"),
    [
        ("mine", "x.csv", {}, "ends in .json"),
        ("mine", "x.json", {"k": 0}, "--k, .* at least 1; found 0"),
        ("mine", "x.json", {"split": "dev"}, "--split dev is for a ctxs file"),
        ("mien", "x.json", {}, "did you mean 'mine'"),
        ("closed", "x.json", {}, "has no .retriever."),
        ("none.json", "x.trec", {}, "file not found"),
        ("some/where", "x.trec", {}, "file not found"),
        ("run.trec", "x.json", {}, "wanted an experiment, or a ctxs JSON"),
        ("ctxs.json", "x.json", {}, "has ctxs already; wanted --to FILE.trec"),
        ("wikipedia_passages_00", "x.trec", {}, "is a pickle"),
    ],
)
def test_what_cannot_be_converted_is_one_line(work, source, to, settings, complaint):
    (work / "experiments/closed.toml").write_text(CLOSED)
    (work / "run.trec").write_text("q Q0 p 1 1.0 t\n")
    (work / "ctxs.json").write_text("[]")
    (work / "wikipedia_passages_00").write_bytes(pickle.dumps([1]))
    with pytest.raises(IfqaError, match=complaint) as caught:
        convert(source, work / to, **settings)
    assert "\n" not in str(caught.value)


SCORED = """
from ifqa.records import Prediction
class Scores:
    version = 1
    def answer(self, questions, passages):
        return [Prediction(q.id, "x", passage_ids=tuple(p.id for p in several[::-1]),
                           passage_scores=tuple(-1.5 * n for n in range(len(several)))) for q, several in zip(questions, passages)]
"""


def test_the_readers_scores_of_passages_become_a_ranking(work, monkeypatch):
    (work / "scored.py").write_text(SCORED)
    monkeypatch.syspath_prepend(work)
    (work / "experiments/read.toml").write_text(GOLD + '[reader]\nname = "scored:Scores"\npassages = 2\n')
    stages.retrieve(load_experiment("read"))
    with pytest.raises(IfqaError, match="ifqa read --experiment read"):
        convert("read", work / "early.trec", scores="reader")
    stages.read(load_experiment("read"))
    convert("read", work / "x.trec", scores="reader")
    convert("read", work / "x.json", scores="reader")
    run, scored = read_run(work / "experiments/read/retrieve/run.trec"), read_run(work / "x.trec")
    assert {question: [hit.passage_id for hit in hits] for question, hits in scored.items()} == {
        question: [hit.passage_id for hit in hits[:2]][::-1] for question, hits in run.items()
    }
    assert {hit.score for hits in scored.values() for hit in hits} == {0.0, -1.5}
    assert [[one.id for one, _ in ranking] for _, ranking in read_ctxs(work / "x.json")] == [
        [hit.passage_id for hit in hits] for hits in scored.values()
    ]


def test_a_reader_without_scores_and_no_reader_are_refused(done, monkeypatch):
    with pytest.raises(IfqaError, match="no \\[reader\\]"):
        convert("mine", done / "x.trec", scores="reader")
    with pytest.raises(IfqaError, match="did you mean 'reader'"):
        convert("mine", done / "x.trec", scores="readr")
    (done / "silent.py").write_text(
        SCORED.replace("passage_scores=tuple", "completion=str").replace("Scores", "Silent")
    )
    monkeypatch.syspath_prepend(done)
    (done / "experiments/read.toml").write_text(GOLD + '[reader]\nname = "silent:Silent"\npassages = 1\n')
    stages.retrieve(load_experiment("read"))
    stages.read(load_experiment("read"))
    with pytest.raises(IfqaError, match="'silent:Silent' of read scores no passages"):
        convert("read", done / "x.trec", scores="reader")
