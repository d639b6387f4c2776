"""Questions to ask from .txt, .csv, .tsv and .jsonl."""

import pytest

from ifqa.errors import IfqaError
from ifqa.formats.questions import read_questions


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("q.txt", "\ufeffIf a?\n\n  If b?  \n", [("1", "If a?"), ("3", "If b?")]),
        ("q.csv", 'Question,ID\n"If a, b?",x\n"If\nc?",\n', [("x", "If a, b?"), ("2", "If\nc?")]),
        ("q.tsv", "question\tid\nIf a?\tx\n\t\n If b?\t\n", [("x", "If a?"), ("2", "If b?")]),
        ("q.jsonl", '{"question": "If a?", "id": "x"}\n{"question": "If b?"}\n', [("x", "If a?"), ("2", "If b?")]),
    ],
)
def test_questions_are_read_in_their_order(tmp_path, name, text, wanted):
    (tmp_path / name).write_text(text)
    assert [(one.id, one.text) for one in read_questions(tmp_path / name)] == wanted


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("q.txt", "\n \n", "wanted questions, found none"),
        (
            "q.csv",
            "text\nIf?\n",
            "q.csv:1: wanted a first line that names columns, one of them 'question'; found 'text'",
        ),
        ("q.csv", "id,question\n1,If?\n1,If?\n", "two questions have the id '1'"),
        ("q.csv", "id,question\n1,\n", "q.csv:2: 'question' is empty"),
        ("q.csv", 'question\n"If" so\n', "q.csv:2: not CSV that can be read"),
        ("q.pdf", "", "wanted a .jsonl, .json, .csv, .tsv, .txt file"),
    ],
)
def test_a_file_without_questions_is_refused(tmp_path, name, text, complaint):
    (tmp_path / name).write_text(text)
    with pytest.raises(IfqaError, match=complaint):
        read_questions(tmp_path / name)
