"""Statistics of a benchmark's questions: the counts, the rules behind them, and the tables."""

import json

import pytest

from ifqa.benchmarks.ifqa import IfQA
from ifqa.errors import IfqaError
from ifqa.records import Question
from ifqa.report.stats import show_tables
from ifqa.report.stats.questions import (
    PAPER,
    QUESTION_WORDS,
    TYPES,
    answer_type,
    count_split,
    measure,
    question_word,
    tables,
)
from ifqa.storage.files import write_json


def question_of(text, answers, *passages):
    return Question("q/0", text, tuple(answers), passages)


CLAUSES = {
    "who": (
        "who would lead?",
        "Who would lead?",
        '"whose" band would it be?',
        "to whom would it belong?",
    ),
    "which": ("in which year would it have sunk?", "he would be part of which band?"),
    "how many": ("and for how much would it sell?", "how many goals would he have?"),
    "how": ("how long would it last?",),
    "what": ("what would be the year when it sank?",),
    "why": ("why would he leave?",),
    "none": ("would it have sunk?", "somewhere whatever", ""),
}


@pytest.mark.parametrize("word", CLAUSES)
def test_the_question_word_of_a_clause(word):
    assert {question_word(clause) for clause in CLAUSES[word]} == {word}
    assert word in QUESTION_WORDS


KINDS = {
    "date": [
        ("in which year would it open?", "1984"),
        ("when would it open?", "May 4, 1979"),
        ("in which decade was it?", "1970s"),
        ("in which century was it?", "19th century"),
        ("which season was it?", "2007–08"),
        ("on which day of the month was it?", "12"),
    ],
    "number": [
        ("how many people came?", "2000"),
        ("which place would she reach?", "fourth"),
        ("how long would it last?", "three years"),
        ("what would it cost?", "$6.4 million"),
    ],
    "entity": [
        ("who?", "Ann Lee"),
        ("what?", "The Lord of the Rings"),
        ("what is it?", "K2"),
        ("what is it?", "A"),
    ],
    "other": [
        ("what?", "house arrest"),
        ("what?", "Military construction projects"),
        ("would it sink?", "Yes"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "clause", "answer"), [(kind, *pair) for kind, pairs in KINDS.items() for pair in pairs]
)
def test_the_kind_of_an_answer(kind, clause, answer):
    assert answer_type(question_of(clause, [answer]), clause) == kind


def test_the_gold_passage_decides_on_the_capitals_of_an_answer():
    clause, gold = "what would it be?", "It went platinum soon."
    for answer, text, kind in (
        ("Platinum", gold, "other"),
        ("Plat", gold, "entity"),
        ("pink floyd", "a band named Pink Floyd", "entity"),
    ):
        assert answer_type(question_of(clause, [answer], text), clause) == kind


def test_the_counts_of_a_few_questions():
    stats = count_split(
        [
            question_of(
                "If Ann left, who would lead?", ["Bob May", "Bob"], "Bob May came", "then Ann left"
            ),
            question_of(
                "If Ann had won in 1998, in which year would it be?",
                ["1999", "the 1999"],
                "Ann won in 1998",
            ),
            question_of("If two had gone, how many would stay?", ["2", "two"], "then Ann left"),
            question_of("If not, would it sink?", ["no"]),
        ]
    )
    assert (stats["questions"], stats["several"]) == (4, 2)
    assert stats["means"] == {"question_words": 31 / 4, "answer_words": 5 / 4}
    assert stats["in_gold"] == (1, 3)
    assert stats["types"] == {"entity": 1, "number": 1, "date": 1, "other": 1}
    assert {word: n for word, n in stats["asked"].items() if n} == {
        "who": 1,
        "which": 1,
        "how many": 1,
        "none": 1,
    }
    assert stats["vocabulary"] == len(
        "if ann left, who would lead? had won in 1998, which year it be? two gone, how many "
        "stay? not, sink?".split()
    )


def test_a_question_without_answers_is_counted():
    bare = count_split([Question("q/0", "What is it?")])
    assert bare["questions"] == 1
    assert sum(bare["types"].values()) == 0
    assert bare["means"]["answer_words"] is None
    assert bare["in_gold"] == (0, 0)
    assert tuple(bare["types"]) == TYPES


def test_no_questions_are_counted():
    assert count_split([])["questions"] == 0


@pytest.fixture
def release(tmp_path):
    """A release of two splits in the working directory: full-dev, and few-dev, which has one
    question of full-dev.
    """
    records = [
        {
            "idx": n,
            "question": f"If {n}, who?",
            "answers": ["Ann", "Bob"],
            "context": ["Ann " * 100],
        }
        for n in range(3)
    ]
    for folder, part in {"full_split": records[:2], "few_split": records[1:]}.items():
        (tmp_path / "data/ifqa" / folder).mkdir(parents=True)
        write_json(tmp_path / "data/ifqa" / folder / "dev.json", part)


def test_without_names_all_splits_with_files_are_measured(release):
    measured = json.loads(json.dumps(measure("ifqa")))
    assert list(measured["splits"]) == ["full-dev", "few-dev"]
    assert measured["paper"] == PAPER
    dev = measured["splits"]["full-dev"]
    assert dev["questions"] == 2
    assert dev["means"]["question_words"] == 3
    assert dev["percent"]["types"]["entity"] == 100
    assert dev["percent"]["answers"] == {"several": 100, "in_gold": 100}
    assert list(measure("ifqa", ["few-dev"])["splits"]) == ["few-dev"]


def test_what_is_not_there_is_named(release, tmp_path, monkeypatch):
    with pytest.raises(IfqaError, match="run: ifqa data ifqa"):
        measure("ifqa", ["full-dev", "full-train"])
    with pytest.raises(IfqaError, match="did you mean 'full-dev'"):
        measure("ifqa", ["ful-dev"])
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(IfqaError, match="no split in data/ifqa; run: ifqa data ifqa"):
        measure("ifqa")


@pytest.fixture
def lines_of_six(release, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    measured = measure("ifqa")
    every = dict.fromkeys(IfQA.paths, measured["splits"]["full-dev"])
    show_tables(tables(measured | {"splits": every}))
    return capsys.readouterr().out.splitlines()


def test_tables_of_six_splits_fit_80_columns(lines_of_six):
    assert max(map(len, lines_of_six)) <= 80
    assert not any("…" in line for line in lines_of_six)


def test_tables_show_the_paper_beside_each_split(lines_of_six):
    rows = [line.split() for line in lines_of_six]
    assert ["paper", "701", "22.42", "1.80", "4,524"] in rows
    assert ["paper,", "all", "49.7", "15.9", "14.5", "19.9"] in rows
    assert ["paper,", "all", "11.2", "75.1"] in rows
    assert ["full-dev", "2", "3.00", "1.00", "4"] in rows
    assert ["full-dev", "100.0", "100.0"] in rows


def test_tables_of_another_benchmark_do_not_name_the_paper(capsys):
    show_tables(tables(measure("sample")))
    assert "paper" not in capsys.readouterr().out
