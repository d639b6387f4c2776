import json
from pathlib import Path

import pytest
from command_line import ifqa_here

ROOT = Path(__file__).parents[3]
HEAD = "dataset\tid\tsemantic\tpragmatic\n"
A = f"{HEAD}x\t1\tcause\tknowledge\nx\t2\tcause\tsolution\nx\t3\tresult\tknowledge\ny\t1\tnone\topinion\n"
B = f"{HEAD}x\t1\tcause\tknowledge\nx\t2\tgoal\tsolution\nx\t3\tresult\topinion\n"
TEXTS = {"x 1": "Why did the dam break?", "x 2": "Who wrote Emma?", "x 3": "salt", "y 1": "Who knew?"}


def ifqa(*arguments):
    return ifqa_here("stats", "typology", *arguments, folder=Path(), COLUMNS="120")


@pytest.fixture(autouse=True)
def _files():
    Path("a.tsv").write_text(A)
    Path("b.tsv").write_text(B)
    lines = [{"dataset": key[0], "id": key[2], "question": text} for key, text in TEXTS.items()]
    Path("q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_two_annotators_are_compared_on_the_questions_of_both():
    counts = json.loads(ifqa("a.tsv", "--json").stdout)["counts"]["a.tsv"]
    assert (counts["semantic"]["cause"], counts["semantic"]["goal"], counts["pragmatic"]["knowledge"]) == (2, 0, 2)
    told = json.loads(ifqa("a.tsv", "b.tsv", "--json").stdout)
    assert (told["questions"], told["kappa"]) == (3, pytest.approx({"semantic": 0.5, "pragmatic": 0.5, "both": 0.25}))
    shown = ifqa("a.tsv", "b.tsv").stdout
    assert "semantic 0.50, pragmatic 0.50, both 0.25; of the paper's annotators: 0.54" in shown


def test_the_labeller_is_judged_by_each_annotator_and_where_they_agree():
    told = json.loads(ifqa("a.tsv", "b.tsv", "--questions", "q.jsonl", "--json").stdout)["labeller"]
    every = {name: scores["semantic"]["all"] for name, scores in told.items()}
    right = {name: (score["right"], score["given"], score["of"]) for name, score in every.items()}
    assert right == {"a.tsv": (2, 3, 4), "b.tsv": (1, 2, 3), "both agree": (1, 1, 2)}
    assert every["both agree"]["coverage"][0] == 0.5
    assert "both agree" in ifqa("a.tsv", "b.tsv", "--questions", "q.jsonl").stdout
    alone = json.loads(ifqa("--questions", "q.jsonl", "--json").stdout)["counts"]["labeller"]["semantic"]
    assert (alone["cause"], alone["none"], alone[""]) == (1, 2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "wanted one or two files of annotations, or --questions FILE; found 0 files"),
        (["a.tsv", "b.tsv", "c.tsv"], "found 3 files"),
        (["a.tsv", "a.tsv"], "a.tsv is named twice"),
        (["c.tsv"], "file not found: c.tsv"),
        (["a.tsv", "--questions", "few.jsonl"], "no question text for 3 annotations, such as 'x 2'; add it"),
        (["a.tsv", "other.tsv"], "the two files share no question"),
    ],
)
def test_wrong_files_are_refused_in_one_line(arguments, message):
    Path("few.jsonl").write_text('{"dataset": "x", "id": 1, "question": "Why?"}\n')
    Path("other.tsv").write_text(f"{HEAD}z\t1\tcause\tknowledge\n")
    told = ifqa(*arguments)
    assert (told.returncode, told.stderr.count("\n"), message in told.stderr) == (2, 1, True), told.stderr


def test_the_recorded_annotations_have_the_agreement_that_the_docs_give():
    folder = ROOT / "bench"
    told = json.loads(ifqa(*(str(folder / f"typology-100-{annotator}.tsv") for annotator in "ab"), "--json").stdout)
    page = (ROOT / "docs/causalqa.md").read_text(encoding="utf-8")
    assert told["questions"] == 100
    assert "kappa {semantic:.2f} (semantic), {pragmatic:.2f} (pragmatic)".format(**told["kappa"]) in page
