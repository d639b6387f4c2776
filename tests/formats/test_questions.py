"""Questions in the formats of other tools: each layout is read, written files are read back,
invalid ones refused.
"""

import bz2
import csv
import gzip
import json
import lzma
import re
import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.formats.questions import iter_questions, read_questions, write_topics
from ifqa.formats.runs import write_qrels
from ifqa.formats.tables import join_cell, read_rows, split_cell
from ifqa.records import Question
from ifqa.storage.files import write_jsonl

SQUAD = {
    "data": [
        {"paragraphs": [{"context": "c", "qas": [{"id": "s", "question": "Why?", "answers": []}]}]}
    ]
}
LAYOUTS = {  # name -> (text, ids and questions)
    "lines.jsonl": (
        '{"question": "Why?", "id": 7}\n\n{"question": "Who?"}\n',
        [("7", "Why?"), ("2", "Who?")],
    ),
    "list.json": (
        '[{"question": "Why?", "qid": "a"},\n{"question": "Who?"}]',
        [("a", "Why?"), ("2", "Who?")],
    ),
    "squad.json": (json.dumps(SQUAD), [("s", "Why?")]),
    "named.csv": (
        'x,question,id\n1,"Why, and\nwho?",a\n2,Who?,\n',
        [("a", "Why, and\nwho?"), ("2", "Who?")],
    ),
    "capitals.csv": ("ID;Question\n;\na;Why?\n", [("a", "Why?")]),
    "named.tsv": ("id\tquestion\na\tWhy?\n\n", [("a", "Why?")]),
    "topics.tsv": ("17\tWhy?\n\n18\tWho? [x]\n", [("17", "Why?"), ("18", "Who? [x]")]),
    "plain.txt": ('\ufeffWhy "that?\n\n  Who?  \n', [("1", 'Why "that?'), ("3", "Who?")]),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize(
    ("end", "pack"),
    [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)],
)
def test_each_layout_is_read_compressed_or_not(tmp_path, name, end, pack):
    (text, questions) = LAYOUTS[name]
    path = tmp_path / f"{name}{end}"
    path.write_bytes(pack(text.encode()))
    assert [(question.id, question.text) for question in read_questions(path)] == questions
    assert [(question.id, question.text.strip()) for question in iter_questions(path)] == questions


@pytest.mark.parametrize("name", ["topics.dpr.nq.dev.txt", "nq-dev.qa.csv"])
def test_the_questions_of_dpr_are_read_with_their_answers(tmp_path, name):
    rows = [
        ("who, where", ["Linda Davis"]),
        ("What's Poland's dish?", ["Gentleman's", 'the "Bigos"']),
        ('"If"', ["1\t2"]),
    ]
    with (tmp_path / name).open("w", newline="") as handle:
        csv.writer(handle, delimiter="\t").writerows(
            (text, repr(answers)) for text, answers in rows
        )
    expected = [Question(str(n), text, tuple(answers)) for n, (text, answers) in enumerate(rows, 1)]
    assert read_questions(tmp_path / name) == expected
    assert list(iter_questions(tmp_path / name)) == expected


@pytest.mark.parametrize(
    "record",
    [
        {"question": "q", "answer": ["a", "b"]},  # nq_open
        {"question": "q", "answer": {"value": "a", "aliases": ["a", "b"]}},  # TriviaQA
        # SQuAD as `datasets` gives it
        {"question": "q", "answers": {"text": ["a", "b"], "answer_start": [0, 1]}},
        {"question": "q", "target": ["a", "b"], "context": ""},
    ],
)
def test_the_layouts_of_lm_evals_tasks_are_read(tmp_path, record):
    for name, text in (("x.jsonl", json.dumps(record)), ("x.json", json.dumps([record], indent=1))):
        (tmp_path / name).write_text(text)
        assert read_questions(tmp_path / name) == [Question("1", "q", ("a", "b"))]


def test_a_dataset_a_label_and_squads_second_version_are_read(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"question": "Why?", "dataset": "nq", "causal": true}\n{"question": "Who?", "causal": 0}\n'
    )
    assert list(iter_questions(path)) == [
        Question("1", "Why?", group="nq", labels=(("causal", "true"),)),
        Question("2", "Who?", labels=(("causal", "false"),)),
    ]
    answers = [{"text": "b", "answer_start": 2}] * 3
    qas = [
        {"id": "1", "question": "q", "answers": answers, "is_impossible": False},
        {
            "id": "2",
            "question": "r",
            "answers": [],
            "plausible_answers": answers,
            "is_impossible": True,
        },
    ]
    squad = {
        "version": "v2.0",
        "data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": qas}]}],
    }
    (tmp_path / "x.json").write_text(json.dumps(squad, indent=2))
    assert read_questions(tmp_path / "x.json") == [
        Question("1", "q", ("b",), ("a b",)),
        Question("2", "r", (), ("a b",)),
    ]


# Name -> (text, message); only iter_questions refuses "brief", only read_questions "whole"
WRONG = {
    "x.xlsx": ("", "wanted a .jsonl, .json, .parquet, .csv, .tsv, .txt file"),
    "x.parquet": ("", "not a complete parquet file"),
    "no.txt": ("\n \n", "found none"),
    "no.csv": ("", "wanted a header with the column 'question'; found ''"),
    "x.jsonl": ('{"query": "Why?"}', ":1: key 'question' is missing; found 'query'"),
    "blank.jsonl": ('{"question": " "}', "'question' is empty"),
    "brief label.jsonl": (
        '{"question": "Why?", "causal": "maybe"}',
        "'causal' must be true or false, found 'maybe'",
    ),
    "brief group.jsonl": ('{"question": "Why?", "dataset": 7}', "'dataset' must be text"),
    "id.jsonl": ('{"question": "Why?", "id": [7]}', "'id' must be text or a whole number"),
    "whole id.jsonl": (
        '{"question": "Why?", "id": true}',
        "'id' must be text or a whole number, found bool",
    ),
    "whole answers.jsonl": ('{"question": "q", "answers": [1]}', "must be str, found int"),
    "whole answer.jsonl": ('{"question": "q", "answers": 1}', "'answers' must be list, found int"),
    "whole half.jsonl": ('{"question": "\\ud800"}', "half a surrogate pair"),
    "x.json": ('{"a": 1}', "key 'data' is missing; found 'a'"),
    "cut.json": ('[{"question": "Why?"}', "not JSON (Expecting ',' delimiter"),
    "broken.json": ("[\n{]", "not JSON (Expecting property name"),
    "squad.json": (
        '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "q"}]}]}]}',
        "'question' is missing",
    ),
    "article.json": ('{"data": [{}]}', "article 1: key 'paragraphs' is missing"),
    "x.csv": ("id,text\n1,Why?\n", "a header with the column 'question'; found 'id,text'"),
    "whole twice.csv": ("id,question\n1,If?\n1,If?\n", "two questions have the id '1'"),
    "empty.csv": ("id,question\n1,\n", ":2: 'question' is empty"),
    "short.csv": ("id,question\n1\n", ":2: wanted 2 columns as in line 1, found 1"),
    "open.csv": ('id,question\n1,"Why\n', "invalid CSV"),
    "mac.csv": ("id,question\r1,Why?\r", ":1: invalid line (new-line character"),
    "mac dpr.txt": ("Why?\t['a']\nWho\rme?\t['b']\n", ":2: invalid line"),
    "mac.txt": ("Why?\rWho?\r", ":1: invalid line"),
    "open.tsv": ('id\tquestion\n1\t"Why\n2\tWho\n', "a cell spans several lines"),
    "blank.tsv": ("a b\tq\n", ":1: wanted 'id TAB question'"),
    "topics.tsv": (
        "1\tWhy?\tb\n",
        "wanted 'id TAB question', without white space in the id, as in the first line",
    ),
    "dpr.txt": (
        "Why?\t['a']\nWho?\t['a'\n",
        """:2: wanted "question TAB ['answer', ...]" as in the first line""",
    ),
    "dpr numbers.txt": ("Why?\t['a']\nWho?\t[1]\n", ":2: 'answers'"),
    "mixed.txt": ("Why?\n2\tWho?\n", ":2: wanted a question as in the first line"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_layout_is_refused_with_its_location(tmp_path, name):
    text, message = WRONG[name]
    (tmp_path / name).write_bytes(text.encode())
    both: list[Callable[..., Iterable[Question]]] = [iter_questions, read_questions]
    readers = {"brief": both[:1], "whole": both[1:]}
    for read in readers.get(name.partition(" ")[0], both):
        with refused(f"{re.escape(str(tmp_path / name))}.*{re.escape(message)}"):
            list(read(tmp_path / name))


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_csv_is_read_as_the_csv_module_wrote_it(tmp_path_factory, cells):
    cells = [[cell.replace("\r", "").replace("\ud800", "") for cell in row] for row in cells]
    cells = [
        row for row in cells if all("\n\n" not in cell for cell in row) and "".join(row).strip()
    ]
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with open(path, "w", encoding="utf-8", newline="") as handle:
        csv.writer(handle, lineterminator="\n").writerows([["a", "b"], *cells])
    assert [list(row.values()) for _, row in read_rows(path, "b")] == cells


def test_questions_are_streamed(tmp_path):
    line = json.dumps({"question": "Why is it so?", "context": "x" * 4_000}) + "\n"
    (tmp_path / "x.jsonl").write_text(line * 3_000)  # 12 MB
    tracemalloc.start()
    assert sum(1 for _ in iter_questions(tmp_path / "x.jsonl")) == 3_000
    assert tracemalloc.get_traced_memory()[1] < 8_000_000
    tracemalloc.stop()


ODD = "\t\n\r\x0b\x0c\x1c\x1d\x85\u2028\u2029\xa0\ufeff\"'\\,{}[]<>&é漢😀\x00ab1 /"
texts = (
    st.text(ODD, min_size=1) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
).filter(str.strip)
words = texts.map(lambda text: "".join(text.split()).lstrip("\ufeff")).filter(bool)
lists = st.lists(texts, max_size=3).map(tuple)
generated = st.builds(Question, words, texts, lists, lists, lists)
question_lists = st.lists(generated, min_size=1, max_size=4, unique_by=lambda question: question.id)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@given(question_lists)
def test_topics_are_read_back_with_single_blanks_and_json_lines_unchanged(folder, questions):
    assert write_topics(folder / "x.tsv", questions) == len(questions)
    squeezed = [Question(question.id, " ".join(question.text.split())) for question in questions]
    assert read_questions(folder / "x.tsv") == squeezed
    records = []
    for question in questions:
        fields = {
            key: list(getattr(question, key))
            for key in ("answers", "choices")
            if getattr(question, key)
        }
        passages = list(question.gold_passages)
        records.append(
            {"id": question.id, "question": question.text, "passages": passages, **fields}
        )
    write_jsonl(folder / "x.jsonl", records)
    assert read_questions(folder / "x.jsonl") == questions


@given(
    st.dictionaries(
        words, st.dictionaries(words, st.integers(-2, 3), min_size=1, max_size=3), max_size=3
    )
)
def test_ir_measures_reads_our_qrels(folder, qrels):
    import ir_measures

    assert write_qrels(folder / "x.qrels", qrels) == sum(map(len, qrels.values()))
    with open(folder / "x.qrels", encoding="utf-8") as handle:
        lines = [
            (qrel.query_id, qrel.doc_id, qrel.relevance)
            for qrel in ir_measures.read_trec_qrels(handle)
        ]
    assert lines == [
        (question, doc, rel) for question, docs in qrels.items() for doc, rel in docs.items()
    ]


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        (Question(name, "q"), "is empty or holds white space")
        for name in ("", "a b", "a\u2028b", "\ufeffa")
    ]
    + [
        (Question("a\ud800", "q"), "half a surrogate pair"),
        (Question("a", "q\ud800"), "half a surrogate pair"),
    ],
)
def test_topics_and_qrels_refuse_ids_and_texts_that_they_cannot_hold(tmp_path, question, complaint):
    with refused(complaint):
        write_topics(tmp_path / "x", [question])
    with refused("holds half a surrogate pair"):
        write_qrels(tmp_path / "x", {"a": {"p\ud800": 1}})
    assert not (tmp_path / "x").exists()


def test_pyserini_reads_our_topics(tmp_path):
    from ifqa.retrieval.jvm import load_jnius

    questions = [
        Question("ifqa/dev/2", 'If "so"\u2028were\tit, what 😀?'),
        Question("ifqa/dev/10", "If not, who?"),
    ]
    write_topics(tmp_path / "x.tsv", questions)
    java_class = load_jnius().autoclass
    path = java_class("java.nio.file.Paths").get(str(tmp_path / "x.tsv"))
    topics = java_class("io.anserini.search.topicreader.TsvStringTopicReader")(path).read()
    titles = {key: topics.get(key).get("title") for key in topics.keySet().toArray()}
    assert titles == {question.id: question.text for question in read_questions(tmp_path / "x.tsv")}


@given(st.lists(st.text("a|[\"' ,é\n", min_size=1), min_size=1, max_size=3))
def test_the_texts_of_a_cell_are_read_back(texts):
    wanted = [text.strip() for text in texts if text.strip()]
    assert split_cell(join_cell(wanted), "here") == wanted


@given(st.text("a|[\"' ,é", min_size=1))
def test_the_text_of_a_cell_without_separator_is_read_back(text):
    wanted = [text.strip()] if text.strip() else []
    assert split_cell(join_cell(wanted, separator=""), "here", separator="") == wanted
