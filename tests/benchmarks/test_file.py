"""Own questions: what a row may hold, how it is refused, and that scores are told by group and label."""

import csv
import gzip
import json
from pathlib import Path

import pytest
from command_line import ifqa_here
from hypothesis import given
from hypothesis import strategies as st

from ifqa.benchmarks.file import File
from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import open_benchmark
from ifqa.records import Question
from ifqa.scoring.scheme import declared
from ifqa.scoring.score_files import read_scores

CSV = """\ufeffid,question,answers,passages,group,label
a,"If so, who?",Ada | Ada Lovelace,"One | two, said she.",people,easy
b,If not?,"[""x|y"", ""z""]",,things,easy|hard
,,,,,
"""
SEMICOLONS = """\
id;question;answers;passages;group;label
a;If so, who?;Ada | Ada Lovelace;One | two, said she.;people;easy
b;If not?;"[""x|y"", ""z""]";;things;easy | hard
"""
LINES = [
    {"id": "a", "question": "If so, who?", "answers": ["Ada", "Ada Lovelace"], "passages": "One | two, said she.",
     "group": "people", "label": "easy"},
    {"id": "b", "question": "If not?", "answers": ["x|y", "z"], "group": "things", "label": ["easy", "hard"]},
]  # fmt: skip
READ = [
    Question(
        "file/mine/a-411e391b", "If so, who?", ("Ada", "Ada Lovelace"), ("One | two, said she.",), group="people",
        labels=(("label", "easy"),),
    ),
    Question("file/mine/b-f586a2d1", "If not?", ("x|y", "z"), group="things", labels=(("label", "easy"), ("label", "hard"))),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(name="mine.csv"):
    return File().questions(name)


def test_csv_and_json_lines_give_the_same_questions():
    texts = {
        "mine.csv": CSV,
        "mine.jsonl": "".join(json.dumps(one) + "\n" for one in LINES),
        "mine.json": json.dumps(LINES),
        "semicolons/mine.csv": SEMICOLONS,
    }
    for name, text in texts.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
        Path(f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        assert read(name) == read(f"{name}.gz") == READ, name


def test_questions_without_an_id_are_numbered_and_the_names_blanks_are_replaced():
    Path("my own.v2.csv").write_text("question,answer\nIf so?,1\n,\nIf not?,2\n")
    assert [one.id for one in read("my own.v2.csv")] == ["file/my_own.v2/1-9993b76b", "file/my_own.v2/2-f586a2d1"]


def test_an_id_holds_for_its_question_alone():
    rows = ["If so?,1", "If not?,1", "If so?,a better answer"]
    ids = []
    for name, row in zip("abc", rows, strict=True):
        Path(name).mkdir()
        Path(f"{name}/q.csv").write_text(f"question,answers\n{row}\n")
        ids.append(read(f"{name}/q.csv")[0].id)
    assert ids[0] == ids[2] != ids[1]
    Path("d.jsonl").write_text('{"question": "If?", "answers": ["x"], "choices": ["x", "y"]}\n')
    Path("e/").mkdir()
    Path("e/d.jsonl").write_text('{"question": "If?", "answers": ["x"], "choices": ["x", "z"]}\n')
    assert read("d.jsonl")[0].id != read("e/d.jsonl")[0].id


def test_a_file_that_changed_is_read_again():
    Path("mine.csv").write_text("question,answers\nIf so?,1\n")
    assert read()[0].answers == ("1",)
    Path("mine.csv").write_text("question,answers\nIf so?,1 | 2\n")
    assert read()[0].answers == ("1", "2")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "mine.csv:1: wanted a first line that names columns, one of them 'question'"),
        ("question,answers\n", "wanted questions, found none"),
        ("question,answers\n,x\n", "mine.csv:2: key 'question' is missing"),
        ("question,answers\nIf?,\n", "mine.csv:2: no answer; wanted one text at least as 'answers'"),
        ("question,answers\nIf?, | \n", "mine.csv:2: no answer"),
        ("question,answer,answers\nIf?,x,y\n", "both 'answers' and 'answer'; wanted one of them"),
        ("question,answers,answers\nIf?,x,y\n", "mine.csv:1: two columns are called 'answers'"),
        ("question,answers,pasages\nIf?,x,y\n", "unknown column 'pasages'; did you mean 'passages'?"),
        ("id,question,answers\na b,If?,x\n", "id 'a b' holds white space, at which rankings are split; put a - or _ there"),
        ("id,question,answers\na,If?,x\na,Or?,x\n", "mine.csv:3: another question has the id 'a'"),
        ("question,answers,group\nIf?,x,g\nOr?,x,\n", "mine.csv: some questions have a 'group', others have none"),
        ("question,answers,label\nIf?,x,v1.0\n", "label 'v1.0': wanted one without '.' and '@'"),
        ("question,answers,label\nIf?,x,macro\n", "label 'macro': wanted one"),
        ('question,answers\nIf?,"[""x"", 7"\n', "'answers' begins as a list, and is none"),
        ('question,answers\nIf?,"[""x"", 7]"\n', "'answers' must be str, found int"),
        ("question,answers\nIf?,x,y\n", "mine.csv:2: wanted 2 columns as in line 1, found 3"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_in_one_line_with_its_place(text, complaint):
    Path("mine.csv").write_text(text)
    with pytest.raises(IfqaError) as refused:
        read()
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question": "If?", "answers": 1889}, "'answers' must be list, found int"),
        ({"question": "If?", "answers": []}, "no answer"),
        ({}, "no answer"),
        ({"question": ["If?"], "answers": "x"}, "'question' must be str, found list"),
        ({"question": "If?", "answers": "x", "grupp": "g"}, "unknown key 'grupp'; did you mean 'group'?"),
        ({"question": "If?", "answers": "x", "id": 1.5}, "'id' must be text or a whole number"),
    ],
)
def test_wrong_json_is_refused_with_the_number_of_its_line(row, complaint):
    Path("mine.jsonl").write_text('{"question": "If?", "answers": "x"}\n' + json.dumps(row) + "\n")
    with pytest.raises(IfqaError, match=r"mine.jsonl:2: ") as refused:
        read("mine.jsonl")
    assert complaint in str(refused.value)


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1).filter(
    lambda text: text == text.strip() and "|" not in text and not text.startswith('["')
)


@given(st.lists(st.tuples(_TEXT, st.lists(_TEXT, min_size=1, max_size=3, unique=True)), min_size=1, max_size=4))
def test_what_the_csv_module_writes_comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "mine.csv"
    with open(path, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerows([["question", "answers"], *([text, " | ".join(answers)] for text, answers in rows)])
    found = File(path.parent).questions("mine.csv")
    assert [(one.text, list(one.answers)) for one in found] == rows


def test_a_file_that_is_not_there_is_named_and_its_experiment_still_loads():
    with pytest.raises(IfqaError, match=r"file q/none\.csv: q/none\.csv is not there; put it there, or name another"):
        open_benchmark("file").files("q/none.csv")
    assert [one.name for one in declared("file", split="q/none.csv").subsets] == ["numeric", "other"]


def test_only_a_split_with_groups_is_scored_by_group():
    Path("mine.csv").write_text(CSV)
    Path("plain.csv").write_text("question,answers\nIf?,x\n")
    assert [one.name for one in declared("file", split="mine.csv").subsets] == ["numeric", "other", "easy", "hard"]
    assert [declared("file", split=f"{name}.csv").groups for name in ("mine", "plain")] == ["group", ""]


def test_own_questions_are_run_scored_and_reported_by_group_and_label(tmp_path):
    Path("mine.csv").write_text(CSV)
    Path("said.jsonl").write_text('{"question_id": "file/mine/a-411e391b", "answer": "Ada"}\n')
    Path("experiments").mkdir()
    Path("experiments/own.toml").write_text(
        'benchmark = "file"\nsplit = "mine.csv"\n[reader]\nname = "predictions"\npath = "said.jsonl"\n'
        '[expected."hard.EM"]\nvalue = 0.0\n[expected."macro.EM"]\nvalue = 50.0\n'
    )
    scores = read_scores(stages.run(Run(load_experiment("own"))))
    assert (scores["questions"], scores["n_failed"], scores["measures"]["EM"]["value"]) == (2, 1, 50.0)
    assert {name: one["measures"]["EM"]["value"] for name, one in scores["groups"].items()} == {
        "people": 100.0,
        "things": 0.0,
    }
    subsets = {name: one["measures"]["EM"]["value"] for name, one in scores["subsets"].items() if one["questions"]}
    assert subsets == {"other": 50.0, "easy": 50.0, "hard": 0.0}
    shown = ifqa_here("run", "own", "--quiet", folder=tmp_path)
    assert (shown.returncode, "macro.EM 50.0, expected 50: OK" in shown.stdout) == (0, True)
    assert ["people", "1", "100.0"] in [line.split()[:3] for line in shown.stdout.splitlines()]
    assert ifqa_here("report", "own", folder=tmp_path).returncode == 0
    results = Path("experiments/RESULTS.md").read_text()
    assert "## file mine.csv" in results
    assert "| EM, hard | EM, macro |" in results
    assert "file (any .csv or .jsonl)" in ifqa_here("list", folder=tmp_path).stdout
