"""Rankings from TREC runs and ctxs files, by the question's id or text."""

import json
import pickle

from refusals import refused

from ifqa.config.experiment import parse_experiment
from ifqa.formats.ctxs import write_ctxs
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passages_of, rankings_of
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.retrieval.run_file import RunFile

QUESTIONS = [
    Question("b/dev/1", "If  John’s cat barked,\nwho?"),
    Question("b/dev/2", "If so, what?"),
]


def ctx(n, text=None, **fields):
    return {
        "id": f"wiki:{n}",
        "title": f"T{n}",
        "text": text or f"text {n}",
        "score": str(100 - n),
    } | fields


def ctxs_file(path, *entries):
    path.write_text(json.dumps([{"answers": ["x"], **entry} for entry in entries]))
    return str(path)


def open_run(path):
    return RunFile(RunFile.Settings(path=path))


def test_a_trec_run_may_leave_questions_out(tmp_path):
    (tmp_path / "run").write_text("b/dev/1 Q0 p 2 1.0 t\nb/dev/1 Q0 q 1 2.0 t\n")
    run = open_run(str(tmp_path / "run"))
    assert run.search(QUESTIONS, 1) == [SearchResult([Hit("q", 2.0)]), SearchResult([])]


def test_a_trec_run_of_other_questions_is_refused(tmp_path):
    (tmp_path / "run").write_text("b/dev/1 Q0 p 2 1.0 t\nb/dev/1 Q0 q 1 2.0 t\n")
    run = open_run(str(tmp_path / "run"))
    with refused("wanted ids like c/dev/1, found b/dev/1"):
        run.search([Question("c/dev/1", "?")], 1)


def test_entries_are_matched_by_text_as_dpr_writes_it(tmp_path):
    entries = {"If so, what?": (1, 2), " If John's cat barked, who?": (3, 1), "Another?": (4,)}
    ctxs = [
        {"question": text, "ctxs": [ctx(n) for n in numbers]} for text, numbers in entries.items()
    ]
    run = open_run(ctxs_file(tmp_path / "x.json", *ctxs))
    first, second = run.search(QUESTIONS, 1)
    assert [*first, *second] == [Hit("wiki:1", 99.0)] * 2
    assert [len(ranking) for ranking in run.search(QUESTIONS, 5)] == [2, 2]
    assert first.generated == [Passage("wiki:1", "T1", "text 1"), Passage("wiki:3", "T3", "text 3")]
    assert [passage.id for passage in second.generated] == ["wiki:1", "wiki:2"]
    assert run.search(QUESTIONS[::-1], 1)[0].generated == second.generated


def test_a_matching_id_counts_before_the_text(tmp_path):
    entries = [
        ("b/dev/2", QUESTIONS[0].text),
        (7, "Other?"),
        (7, QUESTIONS[0].text + " "),
        (7, "If what?"),
    ]
    ctxs = [
        {"id": key, "question": text, "ctxs": [ctx(n)]}
        for n, (key, text) in enumerate(entries, start=1)
    ]
    run = open_run(ctxs_file(tmp_path / "x.json", *ctxs))
    rankings = run.search([*QUESTIONS, Question("b/dev/3", "If what?")], 1)
    assert [ranking[0].passage_id for ranking in rankings] == ["wiki:1", "wiki:1", "wiki:4"]


def test_ctxs_of_other_questions_are_refused(tmp_path):
    path = ctxs_file(tmp_path / "x.json", {"question": "who sang it?", "ctxs": []})
    with refused(r"no entry for b/dev/2, 'If so, what\?'; found 1 .*'who sang it\?'"):
        open_run(path).search(QUESTIONS[1:], 5)


def test_a_pickle_is_refused(tmp_path):
    (tmp_path / "wikipedia_passages_00").write_bytes(pickle.dumps([1]))
    settings = RunFile.Settings(path=str(tmp_path / "wikipedia_passages_00"))
    with refused("is a pickle"):
        RunFile(settings)
    with refused("is a pickle"):
        RunFile.fingerprint(settings, tmp_path)


def experiment(path, split="dev", k=2):
    tables = {
        "benchmark": "sample",
        "split": split,
        "retriever": {"name": "run", "path": str(path), "k": k},
    }
    return parse_experiment("mine", tables, "mine.toml")


def test_ctxs_are_retrieved_and_scored_without_a_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    questions = Run(experiment("x.json")).questions
    entries = []
    for n, question in enumerate(questions, start=1):
        ctxs = [
            ctx(0, "nothing at all"),
            ctx(n, question.gold_passages[0]),
            ctx(-1, "low", score="1"),
        ]
        entries.append({"question": question.text, "ctxs": ctxs})
    ctxs_file(tmp_path / "x.json", *entries)
    mine = experiment("x.json", k=5)
    stages.retrieve(Run(mine))
    rankings = list(rankings_of(mine, questions))
    texts = [[passage.text for passage in passages] for passages in passages_of(mine, rankings)]
    assert texts == [["nothing at all", question.gold_passages[0], "low"] for question in questions]
    scores = json.loads((stages.score(Run(mine)) / "scores.json").read_text())["measures"]
    assert (scores["gold_any@1"]["value"], scores["gold_any@5"]["value"]) == (0, 100)
    with refused("no entry for sample/train/"):
        stages.retrieve(Run(experiment("x.json", split="train")))
    run = (mine.folder / "retrieve/run.trec").read_text()
    write_ctxs(tmp_path / "y.json", questions, rankings, passages_of(mine, rankings))
    again = experiment("y.json", k=5)
    stages.retrieve(Run(again))
    assert list(rankings_of(again, questions)) == rankings
    assert (again.folder / "retrieve/run.trec").read_text() == run
