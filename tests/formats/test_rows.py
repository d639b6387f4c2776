import bz2
import csv
import gzip
import json
import lzma
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.formats.questions import iter_questions
from ifqa.formats.rows import kind_of, read_rows
from ifqa.records import Question

SQUAD = {"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "s", "question": "Why?", "answers": []}]}]}]}
LAYOUTS = {  # name -> (text, what is read)
    "lines.jsonl": ('{"question": "Why?", "id": 7}\n\n{"question": "Who?"}\n', [("7", "Why?"), ("2", "Who?")]),
    "list.json": ('[{"question": "Why?", "qid": "a"},\n{"question": "Who?"}]', [("a", "Why?"), ("2", "Who?")]),
    "squad.json": (json.dumps(SQUAD), [("s", "Why?")]),
    "named.csv": ('x,question,id\n1,"Why, and\nwho?",a\n', [("a", "Why, and\nwho?")]),
    "capitals.csv": ("ID;Question\n;\na;Why?\n", [("a", "Why?")]),
    "named.tsv": ("id\tquestion\na\tWhy?\n\n", [("a", "Why?")]),
    "topics.tsv": ("17\tWhy?\n\n18\tWho? [x]\n", [("17", "Why?"), ("18", "Who? [x]")]),
    "plain.txt": ('Why "that?\n\nWho?\n', [("1", 'Why "that?'), ("3", "Who?")]),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize(
    ("end", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_each_layout_is_read_packed_or_not(tmp_path, name, end, pack):
    text, wanted = LAYOUTS[name]
    (tmp_path / f"{name}{end}").write_bytes(pack(text.encode()))
    assert [(one.id, one.text) for one in iter_questions(tmp_path / f"{name}{end}")] == wanted


def test_a_dataset_and_a_label_come_along(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"question": "Why?", "dataset": "nq", "causal": true}\n{"question": "Who?", "causal": 0}\n')
    assert list(iter_questions(path)) == [
        Question("1", "Why?", group="nq", labels=(("causal", "true"),)),
        Question("2", "Who?", labels=(("causal", "false"),)),
    ]


WRONG = {  # name -> (text, message)
    "x.parquet": ("", "wanted a .jsonl, .json, .csv, .tsv, .txt file"),
    "no.jsonl": ("", "found none"),
    "no.txt": ("", "found none"),
    "no.csv": ("", "names columns, one of them 'question'; found ''"),
    "x.jsonl": ('{"query": "Why?"}', ":1: key 'question' is missing; found 'query'"),
    "blank.jsonl": ('{"question": " "}', "'question' is empty"),
    "label.jsonl": ('{"question": "Why?", "causal": "maybe"}', "'causal' must be true or false, found 'maybe'"),
    "group.jsonl": ('{"question": "Why?", "dataset": 7}', "'dataset' must be text"),
    "id.jsonl": ('{"question": "Why?", "id": [7]}', "'id' must be text or a whole number"),
    "x.json": ('{"a": 1}', "key 'data' is missing; found 'a'"),
    "cut.json": ('[{"question": "Why?"}', "entry 2: the JSON ends too early; fetch the file again"),
    "x.csv": ("id,text\n1,Why?\n", "one of them 'question'; found 'id,text'"),
    "short.csv": ("id,question\n1\n", ":2: wanted 2 columns as in line 1, found 1"),
    "open.csv": ('id,question\n1,"Why\n', "not CSV that can be read"),
    "open.tsv": ('id\tquestion\n1\t"Why\n2\tWho\n', "a cell goes over several lines"),
    "topics.tsv": ("1\tWhy?\tb\n", "wanted 'id TAB question', the id without white space, as in the first line"),
    "mixed.txt": ("Why?\n2\tWho?\n", ":2: wanted 'a question' as in the first line"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_layout_is_refused_with_its_place(tmp_path, name):
    text, message = WRONG[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(IfqaError) as refused:
        list(iter_questions(tmp_path / name))
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path / name}")


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_csv_comes_back_as_the_csv_module_wrote_it(tmp_path_factory, cells):
    cells = [[one.replace("\r", "").replace("\ud800", "") for one in row] for row in cells]
    cells = [row for row in cells if all("\n\n" not in one for one in row) and "".join(row).strip()]
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with open(path, "w", encoding="utf-8", newline="") as handle:
        csv.writer(handle, lineterminator="\n").writerows([["a", "b"], *cells])
    assert [list(row.values()) for _, row in read_rows(path, "b")] == cells


def test_questions_are_read_one_at_a_time(tmp_path):
    path = tmp_path / "x.jsonl"
    line = json.dumps({"question": "Why is it so?", "context": "x" * 4_000}) + "\n"
    path.write_text(line * 3_000)  # 12 MB
    tracemalloc.start()
    assert sum(1 for _ in iter_questions(path)) == 3_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000


def test_the_kind_is_that_of_the_file_within_the_packing():
    assert [kind_of(Path(name)) for name in ("a.json.xz", "a.b.tsv", "a.xz", "a")] == [".json", ".tsv", "", ""]
