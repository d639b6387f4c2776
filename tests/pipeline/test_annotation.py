"""`ifqa screen`, and the way from its tasks to a benchmark: questions written, verified and converted."""

import json
from functools import partial
from pathlib import Path

import pytest
from command_line import ifqa_here

from ifqa.benchmarks.file import File
from ifqa.config.corpus import load_corpus
from ifqa.corpus.passage_filter import find_causal_sentence
from ifqa.errors import IfqaError
from ifqa.pipeline.convert import convert
from ifqa.pipeline.stages import build_passages
from ifqa.plugins import open_benchmark

TWENTY = open_benchmark("sample").questions("dev")[:20]


def test_screen_reports_shares_shows_examples_and_overwrites_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build_passages(load_corpus("sample"))
    ifqa = partial(ifqa_here, "screen", "sample", "--workers", "1", folder=".")
    report = json.loads(ifqa("--split", "dev", "--benchmark", "sample", "--json").stdout)
    assert report["passages"] == 426
    assert report["kept"] == sum(report["keywords"].values()) == round(426 * report["share"]) > 0
    texts = {text for question in open_benchmark("sample").questions("dev") for text in question.gold_passages}
    assert report["gold"]["dev"]["passages"] == len(texts)
    assert report["gold"]["dev"]["kept"] == sum(find_causal_sentence(text) is not None for text in texts)
    shown = ifqa("--show", "3", "--number", "5", "--to", "t.json")
    assert (shown.returncode, "5 passages to annotate: t.json, t.xml" in shown.stderr) == (0, True)
    tasks = json.loads(Path("t.json").read_text())
    assert [set(task["data"]) for task in tasks] == [{"passage_id", "title", "passage", "keyword"}] * 5
    assert all(find_causal_sentence(task["data"]["passage"]).keyword == task["data"]["keyword"] for task in tasks)
    assert all(task["data"]["passage_id"] in shown.stdout for task in tasks[:3])
    assert shown.stdout.count("…") >= 3
    run = ifqa("--to", "t.json")
    assert (run.returncode, run.stdout, "t.json exists" in run.stderr) == (2, "", True)
    assert json.loads(Path("t.json").read_text()) == tasks


def annotate(path, filled):
    """Fill in the tasks of a file as Label Studio exports them; `filled` has (worker, fields) for each task."""
    tasks = json.loads(path.read_text())
    for task, workers in zip(tasks, filled, strict=True):
        task["annotations"] = []
        for worker, fields in workers:
            entries = [
                {"from_name": name, "type": "textarea", "value": {"text": text}} for name, text in fields.items()
            ]
            task["annotations"].append({"completed_by": worker, "result": entries})
    path.write_text(json.dumps(tasks))


def test_twenty_questions_come_back_from_annotation_as_they_were(tmp_path, capsys):
    tasks = [
        {"data": {"passage_id": f"p{n}", "passage": question.gold_passages[0]}} for n, question in enumerate(TWENTY)
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    fields = (
        {"question": [question.text], "answer": [question.answers[0]], "other_answers": list(question.answers[1:]),
         "answer_type": ["entity"], "other_passages": list(question.gold_passages[1:])}
        for question in TWENTY
    )  # fmt: skip
    annotate(tmp_path / "tasks.json", [[(1, field)] for field in fields])
    convert(str(tmp_path / "tasks.json"), tmp_path / "votes.json", form="verification")
    annotate(tmp_path / "votes.json", [[(worker, {"verdict": ["right"]}) for worker in (2, 3)] for _ in TWENTY])
    convert(str(tmp_path / "votes.json"), tmp_path / "mine.jsonl", form="file")
    assert "20 questions kept by 40 votes of 2 workers; 0 dropped" in capsys.readouterr().err
    read = File(tmp_path).questions("mine.jsonl")
    assert [(question.text, question.answers, question.gold_passages) for question in read] == [
        (question.text, question.answers, question.gold_passages) for question in TWENTY
    ]
    assert [question.id.rpartition("-")[0] for question in read] == [f"file/mine/p{n}" for n in range(20)]
    assert {question.labels for question in read} == {(("label", "entity"),)}


def test_verification_is_for_written_questions_alone(tmp_path):
    with pytest.raises(IfqaError, match="wanted a file of questions written about"):
        convert("sample:dev", tmp_path / "new.json", form="verification")
    assert not (tmp_path / "new.json").exists()
