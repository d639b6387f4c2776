import json
from pathlib import Path

import pytest
from command_line import ifqa_here

HEAD = "dataset\tid\tsemantic\tpragmatic\n"
A = f"{HEAD}x\t1\tcause\tknowledge\nx\t2\tcause\tsolution\nx\t3\tresult\tknowledge\ny\t1\tnone\topinion\n"
TEXTS = {"x 1": "Why did the dam break?", "x 2": "Who wrote Emma?", "x 3": "salt", "y 1": "Who knew?"}


def ifqa(*arguments):
    return ifqa_here("stats", "typology", *arguments, folder=Path(), COLUMNS="120")


@pytest.fixture(autouse=True)
def _files():
    Path("a.tsv").write_text(A)
    lines = [{"dataset": key[0], "id": key[2], "question": text} for key, text in TEXTS.items()]
    Path("q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_classes_are_counted_and_the_labeller_is_judged_by_them():
    counts = json.loads(ifqa("a.tsv", "--json").stdout)["counts"]["annotator"]
    assert (counts["semantic"]["cause"], counts["semantic"]["goal"], counts["pragmatic"]["knowledge"]) == (2, 0, 2)
    score = json.loads(ifqa("a.tsv", "--questions", "q.jsonl", "--json").stdout)["labeller"]["semantic"]["all"]
    assert (score["right"], score["given"], score["of"], score["coverage"][0]) == (2, 3, 4, 0.75)
    assert "The labeller, judged by the annotations" in ifqa("a.tsv", "--questions", "q.jsonl").stdout
    alone = json.loads(ifqa("--questions", "q.jsonl", "--json").stdout)["counts"]["labeller"]["semantic"]
    assert (alone["cause"], alone["none"], alone[""]) == (1, 2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "wanted a file of annotations, or --questions FILE; found neither"),
        (["c.tsv"], "file not found: c.tsv"),
        (["a.tsv", "--questions", "few.jsonl"], "no question text for 3 annotations, such as 'x 2'; add it"),
    ],
)
def test_wrong_files_are_refused_in_one_line(arguments, message):
    Path("few.jsonl").write_text('{"dataset": "x", "id": 1, "question": "Why?"}\n')
    told = ifqa(*arguments)
    assert (told.returncode, told.stderr.count("\n"), message in told.stderr) == (2, 1, True), told.stderr
