"""The benchmark `file`: what a row may hold, invalid rows, and scores by group and label."""

import gzip
import json
import re
from pathlib import Path

import pytest
from command_line import ifqa_here
from prediction_files import write_predictions
from refusals import refused

from ifqa.benchmarks.file import File
from ifqa.config.experiment import load_experiment
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.plugins import open_benchmark
from ifqa.records import Question
from ifqa.report.gate import check_gate
from ifqa.scoring.scheme import load_scheme
from ifqa.scoring.stored_scores import read_scores

CSV = """\ufeffid,question,answers,passages,group,label
a,"If so, who?",Ada | Ada Lovelace,"One | two, said she.",people,easy
b,If not?,"[""x|y"", ""z""]",,things,easy|hard
,,,,,
"""
LINES = [
    {
        "id": "a",
        "question": "If so, who?",
        "answers": ["Ada", "Ada Lovelace"],
        "passages": "One | two, said she.",
        "group": "people",
        "label": "easy",
    },
    {
        "id": "b",
        "question": "If not?",
        "answers": ["x|y", "z"],
        "group": "things",
        "label": ["easy", "hard"],
    },
]
QUESTIONS = [
    Question(
        "file/mine/a-411e391b",
        "If so, who?",
        ("Ada", "Ada Lovelace"),
        ("One | two, said she.",),
        group="people",
        labels=(("label", "easy"),),
    ),
    Question(
        "file/mine/b-f586a2d1",
        "If not?",
        ("x|y", "z"),
        group="things",
        labels=(("label", "easy"), ("label", "hard")),
    ),
]


pytestmark = pytest.mark.usefixtures("here")


def read(name="mine.csv", text=None):
    if text is not None:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    return File().questions(name)


def test_each_format_gives_the_same_questions():
    semicolons = (
        CSV.replace(" | Ada", "|Ada").replace(",", ";").replace(";,", ",").replace("; ", ", ")
    )
    texts = {
        "mine.csv": CSV,
        "mine.jsonl": "".join(json.dumps(line) + "\n" for line in LINES),
        "mine.json": json.dumps(LINES),
        "semicolons/mine.csv": semicolons[1:],
    }
    for name, text in texts.items():
        assert read(name, text) == QUESTIONS, name
        Path(f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        assert read(f"{name}.gz") == QUESTIONS, name


def test_an_id_depends_on_its_question():
    numbered = read("my own.v2.csv", "question,answer\nIf so?,1\n,\nIf not?,2\n")
    assert [question.id for question in numbered] == [
        "file/my_own.v2/1-9993b76b",
        "file/my_own.v2/2-f586a2d1",
    ]
    rows = ["If so?,1", "If not?,1", "If so?,a better answer"]
    ids = [
        read(f"{name}/q.csv", f"question,answers\n{row}\n")[0].id
        for name, row in zip("abc", rows, strict=True)
    ]
    assert ids[0] == ids[2] != ids[1]
    row = '{"question": "If?", "answers": ["x"], "choices": ["x", "%s"]}\n'
    assert read("d.jsonl", row % "y")[0].id != read("e/d.jsonl", row % "z")[0].id
    assert read("a/q.csv", "question,answers\nIf so?,1 | 2\n")[0].answers == ("1", "2"), (
        "a changed file is read again"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "mine.csv:1: wanted a header with the column 'question'"),
        ("question,answers\n", "wanted questions with answers, found none"),
        ("question,answers\n,x\n", "mine.csv:2: key 'question' is missing"),
        (
            "question,answers\nIf?, | \n",
            "mine.csv:2: no answer; wanted at least one text under 'answers'",
        ),
        (
            "question,answer,answers\nIf?,x,y\n",
            "both 'answers' and 'answer'; wanted only one of them",
        ),
        ("question,answers,answers\nIf?,x,y\n", "mine.csv:1: two columns are called 'answers'"),
        (
            "question,answers,pasages\nIf?,x,y\n",
            "unknown column 'pasages'; did you mean 'passages'?",
        ),
        (
            "id,question,answers\na b,If?,x\n",
            "id 'a b' holds white space, which separates fields in rankings; use - or _",
        ),
        ("id,question,answers\na,If?,x\na,Or?,x\n", "mine.csv:3: another question has the id 'a'"),
        (
            "question,answers,group\nIf?,x,g\nOr?,x,\n",
            "mine.csv: some questions have a 'group', others have none",
        ),
        ("question,answers,label\nIf?,x,v1.0\n", "label 'v1.0': wanted a label without '.' or '@'"),
        ("question,answers,label\nIf?,x,macro\n", "label 'macro': wanted a label"),
        ('question,answers\nIf?,"[""x"", 7"\n', "'answers' starts like a list but is not"),
        ('question,answers\nIf?,"[""x"", 7]"\n', "'answers' must be str, found int"),
        ("question,answers\nIf?,x,y\n", "mine.csv:2: wanted 2 columns as in line 1, found 3"),
        ({"question": "If?", "answers": 1889}, "'answers' must be list, found int"),
        ({}, "no answer"),
        (
            {"question": "If?", "answers": "x", "grupp": "g"},
            "unknown key 'grupp'; did you mean 'group'?",
        ),
        ({"question": "If?", "answers": "x", "id": 1.5}, "'id' must be text or a whole number"),
    ],
)
def test_an_invalid_file_is_refused_with_its_location(text, complaint):
    name, where = (
        ("mine.csv", "mine.csv") if isinstance(text, str) else ("mine.jsonl", "mine.jsonl:2: ")
    )
    text = (
        text
        if isinstance(text, str)
        else '{"question": "If?", "answers": "x"}\n' + json.dumps(text) + "\n"
    )
    with refused(f"(?=.*{re.escape(complaint)}).*{where}"):
        read(name, text)


UNANSWERABLE = """question,answers,label
How old is Tom?,,unanswerable
Who is Tom?,the miller,plain
"""


def test_a_question_that_says_it_has_no_answer_is_not_asked():
    assert [question.text for question in read(text=UNANSWERABLE)] == ["Who is Tom?"]


def test_a_question_left_out_keeps_the_numbers_of_the_others():
    [question] = read(text=UNANSWERABLE)
    assert question.id.startswith("file/mine/2-")


def test_a_file_without_any_answer_is_refused():
    with refused("wanted questions with answers, found none"):
        read(text="question,answers,label\nHow old is Tom?,,unanswerable\n")


def test_own_questions_are_run_scored_and_reported_by_group_and_label(tmp_path):
    with refused(r"file q/none\.csv: q/none\.csv is missing; add it, or name another"):
        open_benchmark("file").files("q/none.csv")
    assert [subset.name for subset in load_scheme("file", split="q/none.csv").subsets] == [
        "numeric",
        "other",
    ]
    read("plain.csv", "question,answers\nIf?,x\n")
    read("mine.csv", CSV)
    assert [load_scheme("file", split=f"{name}.csv").groups for name in ("mine", "plain")] == [
        "group",
        "",
    ]
    Path("said.jsonl").write_text('{"question_id": "file/mine/a-411e391b", "answer": "Ada"}\n')
    Path("experiments").mkdir()
    Path("experiments/own.toml").write_text(
        'benchmark = "file"\nsplit = "mine.csv"\n[reader]\nname = '
        '"predictions"\npath = "said.jsonl"\n'
        '[expected."hard.EM"]\nvalue = 0.0\n[expected."macro.EM"]\nvalue = 50.0\n'
    )
    shown = ifqa_here("run", "own", "--quiet", folder=tmp_path)
    assert (shown.returncode, "macro.EM 50.0, expected 50: OK" in shown.stdout) == (0, True)
    assert ["people", "1", "100.0"] in [line.split()[:3] for line in shown.stdout.splitlines()]
    scores = read_scores(Path("experiments/own/score"))
    assert (scores["questions"], scores["n_failed"], scores["measures"]["EM"]["value"]) == (
        2,
        1,
        50.0,
    )
    parts = scores["groups"] | scores["subsets"]
    values = {
        name: part["measures"]["EM"]["value"] for name, part in parts.items() if part["questions"]
    }
    assert values == {"people": 100.0, "things": 0.0, "other": 50.0, "easy": 50.0, "hard": 0.0}
    assert ifqa_here("report", "own", folder=tmp_path).returncode == 0
    results = Path("experiments/RESULTS.md").read_text()
    assert "## file mine.csv" in results
    assert "| EM, hard | EM, macro |" in results
    assert (
        "file  [any .csv or .jsonl]  Questions of one file"
        in ifqa_here("list", "benchmarks", folder=tmp_path).stdout
    )


def squad(qas, context="Ada wrote it in 1843."):
    data = [{"title": "T", "paragraphs": [{"context": context, "qas": qas}]}]
    return json.dumps({"version": "v2.0", "data": data})


POSSIBLE = {
    "id": "5a",
    "question": "Who wrote it?",
    "is_impossible": False,
    "answers": [{"text": text, "answer_start": 0} for text in ("Ada", "Ada", "Ada wrote it")],
}
IMPOSSIBLE = {
    "id": "5b",
    "question": "Who sold it?",
    "is_impossible": True,
    "answers": [],
    "plausible_answers": [{"text": "Ada", "answer_start": 0}],
}


def test_a_file_of_squads_second_version_is_a_benchmark():
    [question] = read("dev-v2.0.json", squad([POSSIBLE, IMPOSSIBLE]))
    assert question.id.startswith("file/dev-v2.0/5a-")
    assert (question.text, question.answers, question.gold_passages) == (
        "Who wrote it?",
        ("Ada", "Ada wrote it"),
        ("Ada wrote it in 1843.",),
    )


def write_paragraphs(paragraphs, each):
    """Write questions on paragraphs, as many on each."""
    rows = [
        {"question": f"Who {n} of {m}?", "answers": "Ada", "passages": f"Ada wrote {m}."}
        for m in range(paragraphs)
        for n in range(each)
    ]
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(("each", "unit"), [(1, "question"), (2, "passages")])
def test_questions_on_a_paragraph_are_one_unit(each, unit):
    write_paragraphs(3, each)
    assert {measure.unit for measure in load_scheme("file", split="mine.jsonl").measures} == {unit}


def test_questions_of_squad_are_resampled_by_paragraph():
    read("dev-v2.0.json", squad([POSSIBLE, POSSIBLE | {"id": "5c", "question": "When?"}]))
    assert load_scheme("file", split="dev-v2.0.json").measures[0].unit == "passages"


def scored(paragraphs, each):
    """EM over questions of which those on every second paragraph are answered right."""
    write_paragraphs(paragraphs, each)
    questions = read("mine.jsonl")
    answers = {q.id: "Ada" if n // each % 2 else "Bo" for n, q in enumerate(questions)}
    stages.run(Run(write_predictions("own", answers, "file", "mine.jsonl")))
    return read_scores(Path("experiments/own/score"))["measures"]["EM"]


def test_more_questions_on_the_same_paragraphs_leave_the_interval_as_it_is():
    single = scored(20, 1)
    assert single["low"] > 20
    assert scored(20, 4) == pytest.approx(single, abs=5)


def test_the_gate_tests_paragraphs():
    write_paragraphs(20, 4)
    for name, right in (("old", range(80)), ("new", range(60))):
        questions = read("mine.jsonl")
        answers = {q.id: "Ada" if n in right else "Bo" for n, q in enumerate(questions)}
        stages.run(Run(write_predictions(name, answers, "file", "mine.jsonl")))
    gate = check_gate(load_experiment("old"), load_experiment("new"), "EM")
    # Five of five paragraphs are lost: 1/32, one-sided
    assert gate.measures[0].p == pytest.approx(1 / 32, abs=0.01)
    assert gate.noticed is not None


def test_questions_on_few_paragraphs_have_no_interval():
    assert "low" not in scored(3, 20)


def test_questions_that_repeat_are_told(caplog):
    read(text="id,question,answers\na,Who?,Ada\nb,Who?,Ada\nc,When?,1843\n")
    assert "mine.csv: 1 question with the text of another, under another id" in caplog.text


def test_questions_that_differ_in_their_context_do_not_repeat(caplog):
    read(text="question,answers,context\nWho?,Ada,Ada wrote it.\nWho?,Bo,Bo wrote it.\n")
    assert not caplog.text


def test_questions_without_an_answer_are_left_out_aloud(caplog):
    caplog.set_level("INFO", "ifqa")
    read("dev-v2.0.json", squad([POSSIBLE, IMPOSSIBLE]))
    assert "dev-v2.0.json: 1 question without an answer left out" in caplog.text


def test_a_file_of_mrqa_is_a_benchmark():
    qa = {
        "qid": "f00",
        "question": "Who wrote it?",
        "question_tokens": [["Who", 0]],
        "detected_answers": [{"text": "Ada", "char_spans": [[0, 2]], "token_spans": [[0, 0]]}],
        "answers": ["Ada", "Ada"],
        "is_impossible": False,
    }
    header = {"header": {"dataset": "SQuAD", "mrqa_split": "dev"}}
    line = {"id": "x", "context": "Ada wrote it.", "context_tokens": [], "qas": [qa]}
    content = "".join(json.dumps(record) + "\n" for record in (header, line))
    Path("SQuAD.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    [question] = read("SQuAD.jsonl.gz")
    assert question.id.startswith("file/SQuAD/f00-")
    assert (question.answers, question.gold_passages) == (("Ada",), ("Ada wrote it.",))


def test_the_datasets_of_flashrag_are_benchmarks():
    row = {"id": "test_0", "question": "Who?", "golden_answers": ["Ada"], "metadata": {"a": 1}}
    [question] = read("test.jsonl", json.dumps(row) + "\n")
    assert question.answers == ("Ada",)
    [cell] = read("test.csv", "question,golden_answers\nWho?,Ada | Bo\n")
    assert cell.answers == ("Ada", "Bo")


def test_two_names_for_answers_are_refused():
    row = {"question": "Who?", "golden_answers": ["Ada"], "answers": ["Bo"]}
    with refused("found both 'answers' and 'golden_answers'; wanted only one"):
        read("test.jsonl", json.dumps(row) + "\n")
