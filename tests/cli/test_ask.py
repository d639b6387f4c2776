"""`ifqa ask`: over a folder of documents, many questions into a file, at a prompt.

With a retriever and a reader from outside.
"""

import csv
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ifqa, ifqa_here
from mixed_documents import make
from outside_plugins import EXPERIMENT
from scored_experiments import write

from ifqa.pipeline.system import System
from ifqa.report import answers as answer_files

ASKED = "Who was the carpenter Ruth Hallam in 1871.?"


@pytest.fixture
def docs(five, here):
    write("experiments/mine.toml", EXPERIMENT)
    return make(here / "docs")


def ask(*arguments):
    return ifqa_here("ask", "-e", "mine", *arguments, folder=".")


def name_of_corpus():
    """The name of the only corpus that was made of a folder."""
    [path] = Path("indexes").glob("docs-*.toml")
    return path.stem


def test_a_folder_is_indexed_by_its_first_question(docs):
    done = ask(ASKED, "--docs", str(docs))
    assert f"indexes/{name_of_corpus()}/passages: 64 passages of 27 files" in done.stderr


def test_an_answer_says_where_it_stands(docs):
    done = ask(ASKED, "--docs", str(docs))
    assert done.returncode == 0
    assert "Source    manuals/handbook.pdf, p. 2 · 2 The wheel\n" in done.stdout
    unwrapped = "".join(done.stdout.split())  # a long path goes over several lines
    assert f"Searched 27 files, 64 passages in {docs}".replace(" ", "") in unwrapped


def test_an_indexed_folder_is_asked_by_the_name_of_its_corpus(docs):
    ask(ASKED, "--docs", str(docs))
    name = name_of_corpus()
    again = ask(ASKED, "--corpus", name, "--json")
    answer = json.loads(again.stdout)
    assert answer["support"]["source"] == "manuals/handbook.pdf, p. 2 · 2 The wheel"
    assert answer["searched"] == {
        "corpus": name,
        "passages": 64,
        "folders": [str(docs)],
        "files": 27,
        "left_out": 8,
    }
    assert "read again" not in again.stderr


def test_edits_of_the_corpus_file_of_a_folder_are_kept(docs):
    ask(ASKED, "--docs", str(docs))
    file = Path(f"indexes/{name_of_corpus()}.toml")
    edited = file.read_text().replace('path = "', 'words = 50\npath = "')
    file.write_text(edited)
    assert "passages" in ask(ASKED, "--docs", str(docs)).stdout
    assert file.read_text() == edited


def test_two_folders_are_searched_together(docs, here):
    for name, text in (("left", "Rye is ground by Ann Boll."), ("right", "Oats are dried by Bo.")):
        (here / name).mkdir()
        (here / name / "notes.md").write_text(text)
    both = ["--docs", str(here / "right"), "--docs", str(here / "left")]
    answer = json.loads(ask("Who are Ann Boll and Bo?", *both, "--json").stdout)
    assert answer["evidence"][0]["source"] in ("left/notes.md, line 1", "right/notes.md, line 1")
    assert answer["searched"]["passages"] == 2
    assert answer["searched"]["folders"] == [str(here / "left"), str(here / "right")]
    assert name_of_corpus().startswith("docs-left-right-")


def test_the_largest_file_is_chosen_on_the_command_line(docs):
    (docs / "big.txt").write_text("The keeper of the tower is Cy Dent. " * 30_000)
    small = ask(ASKED, "--docs", str(docs), "--max-mb", "1")
    hint = f"start with --max-mb, or raise max_mb in indexes/{name_of_corpus()}.toml"
    assert f"left out: big.txt: 1 MB, more than max_mb = 1; {hint}\n" in small.stderr
    assert "left out: big.txt" not in ask(ASKED, "--docs", str(docs), "--max-mb", "2").stderr


def test_a_larger_max_mb_in_the_corpus_file_is_taken(docs):
    (docs / "big.txt").write_text("The keeper of the tower is Cy Dent. " * 30_000)
    ask(ASKED, "--docs", str(docs), "--max-mb", "1")
    file = Path(f"indexes/{name_of_corpus()}.toml")
    file.write_text(file.read_text().replace("max_mb = 1.0", "max_mb = 2"))
    again = ask(ASKED, "--corpus", name_of_corpus())
    assert "unchanged; 1 new (big.txt)\n" in again.stderr


def test_two_simultaneous_first_questions_are_answered_from_one_indexing(docs):
    with ThreadPoolExecutor() as pool:
        both = list(
            pool.map(
                lambda _: ifqa("ask", "-e", "mine", ASKED, "--docs", str(docs), folder="."),
                range(2),
            )
        )
    assert [done.returncode for done in both] == [0, 0]
    assert both[0].stdout == both[1].stdout
    assert sorted("passages indexed" in done.stderr for done in both) == [False, True]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--docs", "nowhere", "If?"], "nowhere; name a folder of documents, or a file"),
        (["--docs", ".", "--corpus", "few", "If?"], "--docs and --corpus are given"),
        (["--include", "*.md", "If?"], "--include, --exclude, --ocr and --max-mb are for --docs"),
        (
            ["--docs", "few.jsonl", "--include", "*.md", "If?"],
            "few.jsonl is a file; remove them",
        ),
        (["--docs", ".", "--docs", "indexes", "If?"], ", which would be read twice"),
        (["--docs", ".", "--max-mb", "0", "If?"], "--max-mb 0: wanted more than 0 megabytes"),
        (["--questions", "q.txt"], "wanted one question, or --questions FILE --out FILE"),
        (
            ["--questions", "q.txt", "--out", "a.csv", "If?"],
            "wanted one question, or --questions FILE --out FILE",
        ),
        (["--questions", "q.txt", "--out", "a.pdf"], "unknown ending of --out '.pdf'"),
        (
            ["--questions", "q.txt", "--out", "few.jsonl"],
            "few.jsonl exists, and ifqa overwrites nothing",
        ),
        ([], "no question, and no terminal to ask for one"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_made(
    docs, monkeypatch, arguments, complaint
):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    done = ask(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("ifqa: ")) == (2, "", 1), done.stderr
    assert complaint in done.stderr
    assert not list(Path("indexes").glob("*/passages"))


LAMPS = [f"If lamp {n} had failed, who is the keeper of lamp {n}?" for n in range(20)]


def run_twice(docs, monkeypatch):
    """Stop a run of many questions, and start it again.

    Both runs, and the questions that were answered.
    """
    Path("q.csv").write_text(
        "id,question\n" + "".join(f'q{n},"{text}"\n' for n, text in enumerate(LAMPS))
    )
    answered: list[str] = []
    plain = System.answer

    def answer(self, questions, threshold=None):
        if len(answered) == 8 and not Path("go").exists():
            raise KeyboardInterrupt
        answered.extend(question.id for question in questions)
        failing = "" if Path("go").exists() else "q6"
        return [
            replace(a, error="down" * (a.question.id == failing))
            for a in plain(self, questions, threshold)
        ]

    monkeypatch.setattr(System, "answer", answer)
    stopped = ask("--questions", "q.csv", "--out", "a.csv", "--docs", str(docs))
    assert stopped.returncode == 130
    assert not Path("a.csv").exists()
    Path("go").touch()
    done = ask("--questions", "q.csv", "--out", "a.csv", "--docs", str(docs))
    return done, answered


def test_a_stopped_run_of_many_questions_goes_on(docs, monkeypatch):
    done, answered = run_twice(docs, monkeypatch)
    assert "a.csv: resuming after 6 of 20 questions" in done.stderr
    assert answered == [f"q{n}" for n in (*range(8), *range(6, 20))]
    assert not [path for path in Path().iterdir() if path.name.startswith(".a.csv")]


def test_many_questions_are_answered_in_order(docs, monkeypatch):
    run_twice(docs, monkeypatch)
    with open("a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["question"]) for row in rows] == [
        (f"q{n}", text) for n, text in enumerate(LAMPS)
    ]
    assert all(
        row["answer"] and row["source"].partition(",")[0].startswith(("notes/log", "manuals/"))
        for row in rows
    )


def test_answers_are_written_as_json_lines_or_as_text(docs):
    Path("q.txt").write_text(
        "If team1 had won, who would lead?\nIf team2 had won, who would lead?\n"
    )
    for name in ("a.jsonl", "a.txt"):
        assert ask("--questions", "q.txt", "--out", name).returncode == 0
    cells = {"=1+1": "'=1+1", "@a": "'@a", "-2+3|x": "'-2+3|x", "-5 km": "-5 km", "+3.5%": "+3.5%"}
    rendered = answer_files._render_file(
        [{"id": "@1", "answer": cell} for cell in cells], ".csv"
    ).decode()
    assert [row.strip(",") for row in rendered.splitlines()[1:]] == [
        f"@1,,{cell}" for cell in cells.values()
    ]
    answers = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    assert [(answer["id"], answer["answer"]) for answer in answers] == [
        (f"{n}", f"team{n} is led by captain{n}") for n in (1, 2)
    ]
    assert Path("a.txt").read_text().splitlines() == [answer["answer"] for answer in answers]


def ask_at_prompt(monkeypatch, *typed):
    lines = iter(typed)
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    done = ask("--json")
    return done, [json.loads(line)["answer"] for line in done.stdout.splitlines()]


@pytest.mark.usefixtures("docs")
def test_a_prompt_answers_until_an_empty_line(monkeypatch):
    first = "If team1 had won, who would lead?"
    second = "If team2 had won, who would lead?"
    _, answers = ask_at_prompt(monkeypatch, first, second, "", first)
    assert answers == ["team1 is led by captain1", "team2 is led by captain2"]


@pytest.mark.usefixtures("docs")
def test_a_prompt_survives_an_error(monkeypatch):
    first = "If team1 had won, who would lead?"
    second = "If team2 had won, who would lead?"
    done, answers = ask_at_prompt(monkeypatch, first, "\ud800", second, "")
    assert answers == ["team1 is led by captain1", "team2 is led by captain2"]
    assert "half a surrogate pair" in done.stderr


def test_a_withheld_answer_says_by_which_threshold(five, here):
    for reader, refusal in {
        "Unsure": "below a confidence of 50%",
        "Doubtful": "that a passage has the answer is 30.0% likely, wanted 50.0%",
    }.items():
        write("experiments/mine.toml", EXPERIMENT.replace(":Last", f":{reader}"))
        shown = " ".join(ask("If team3 had won, who would lead?").stdout.split())
        assert (
            f"by the reader outside_of_stages:{reader}: {refusal}; to see its answer: --threshold 0"
            in shown
        )
    answer = json.loads(ask("If team3 had won, who would lead?", "--json").stdout)
    shares = [
        answer[key] for key in ("confidence", "answerable", "threshold", "answerable_threshold")
    ]
    assert shares == pytest.approx([0.5, 0.3, 0.0, 0.5])


UNSURE_OVER_DOCUMENTS = EXPERIMENT.replace(":Last", ":Documents")


def test_over_documents_a_reader_has_a_threshold_of_its_own(docs):
    """The reader answers "captain0" with a confidence of 0.7, which is below 0.8 alone."""
    write("experiments/mine.toml", UNSURE_OVER_DOCUMENTS)
    answer = json.loads(
        ask("If team1 had won, who would lead?", "--docs", str(docs), "--json").stdout
    )
    assert (answer["answer"], answer["candidate"], answer["threshold"]) == ("", "captain0", 0.8)


def test_elsewhere_it_keeps_to_its_usual_threshold(five, here):
    write("experiments/mine.toml", UNSURE_OVER_DOCUMENTS)
    assert json.loads(ask("If team1 had won, who would lead?", "--json").stdout)["threshold"] == 0.5


def test_with_a_withheld_answer_comes_the_readers_advice(docs):
    write("experiments/mine.toml", UNSURE_OVER_DOCUMENTS)
    shown = ask("If team1 had won, who would lead?", "--docs", str(docs)).stdout
    assert "to see its answer: --threshold 0\n          ask someone\n" in shown


def test_a_threshold_is_fitted_on_ones_own_questions(docs):
    """The reader answers "captain0", with confidences 0.9, 0.7, 0.5, 0.3, 0.1 for team0 to
    team4.
    """
    rows = [
        f'"If team{n} had won, who would lead?",{answer}'
        for n, answer in enumerate(["Captain0", "Ada", "captain0", "", ""])
    ]
    Path("own.csv").write_text("\n".join(["question,answers", *rows]))
    Path("experiments/mine.toml").write_text(
        EXPERIMENT.replace("outside_of_stages:Last", "outside_of_stages:Unsure")
    )

    def calibrate(*arguments):
        return ifqa_here("calibrate", "own.csv", "-e", "mine", *arguments, folder=".")

    facts = json.loads(calibrate("--error", "0.4", "--json").stdout)
    assert facts.pop("wrong_interval") == pytest.approx([1 / 3, 0.06, 0.79], abs=0.01)
    assert facts == {
        "threshold": 0.5,
        "questions": 5,
        "answered": 3,
        "wrong": 1,
        "without_answer": 2,
        "refused": 2,
    }
    assert calibrate("--error", "0.4").stdout.splitlines() == [
        "threshold 0.5000: 3 answers to 5 questions",
        "1 of them wrong: 33% [6%, 79%]",
        "fewer than 50 questions: with others the threshold may be quite different",
        "2 of 2 questions without an answer get none",
        "use it with: --threshold 0.5000, or in an experiment: reader.threshold = 0.5000",
    ]
    assert json.loads(calibrate("--json").stdout)["threshold"] == 0.9
    Path("own.csv").write_text("question,answers\n" + rows[1])
    none = calibrate()
    assert (none.returncode, none.stdout[:64]) == (
        1,
        "no threshold keeps wrong answers to 10%: of 1 answer 0 are right",
    )
    Path("experiments/mine.toml").write_text(EXPERIMENT)
    assert "gives no confidence" in calibrate().stderr
    Path("own.csv").write_text("question,answrs\n" + rows[0])
    assert (
        "own.csv: no question has an answer; wanted a column or key 'answers'" in calibrate().stderr
    )
