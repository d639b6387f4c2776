"""Questions in the formats of other tools: what is written is read back, and wrong files are refused."""

import bz2
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.formats.questions import (
    find_answer,
    read_questions,
    write_squad,
    write_topics,
)
from ifqa.formats.runs import write_qrels
from ifqa.records import Question
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.storage.files import write_jsonl

ODD = "\t\n\r\x0b\x0c\x1c\x1d\x85\u2028\u2029\xa0\ufeff\"'\\,{}[]<>&é漢😀\x00ab1 /"
texts = (st.text(ODD, min_size=1) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)).filter(str.strip)
words = texts.map(lambda text: "".join(text.split()).lstrip("\ufeff")).filter(bool)
lists = st.lists(texts, max_size=3).map(tuple)


def several(ids):
    one = st.builds(Question, ids, texts, lists, lists, lists)
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda question: question.id)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@given(several(words))
def test_topics_come_back_with_their_blanks_squeezed(folder, questions):
    assert write_topics(folder / "x.tsv", questions) == len(questions)
    assert read_questions(folder / "x.tsv") == [Question(one.id, " ".join(one.text.split())) for one in questions]


@given(several(words))
def test_json_lines_come_back_as_they_were(folder, questions):
    keys = ("answers", "choices")
    lists = [{key: list(getattr(question, key)) for key in keys if getattr(question, key)} for question in questions]
    write_jsonl(
        folder / "x.jsonl",
        [
            {"id": question.id, "question": question.text, "passages": list(question.gold_passages), **more}
            for question, more in zip(questions, lists, strict=True)
        ],
    )
    assert read_questions(folder / "x.jsonl") == questions


@given(several(words))
def test_squad_comes_back_with_the_context_that_holds_an_answer(folder, questions):
    shown = [one for one in questions if any(find_answer(gold, a) for gold in one.gold_passages for a in one.answers)]
    if not shown:
        with pytest.raises(IfqaError, match="would hold no question"):
            write_squad(folder / "x.json", questions)
        return
    assert write_squad(folder / "x.json", questions) == len(shown)
    again = read_questions(folder / "x.json")
    assert [(one.id, one.text) for one in again] == [(one.id, one.text) for one in shown]
    for question, found in zip(shown, again, strict=True):
        assert found.gold_passages[0] in question.gold_passages
        assert found.answers
    assert write_squad(folder / "y.json", again) == len(again)
    assert read_questions(folder / "y.json") == again
    for article in json.loads((folder / "x.json").read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for answer in paragraph["qas"][0]["answers"]:
                assert paragraph["context"][answer["answer_start"] :].startswith(answer["text"])


@given(st.dictionaries(words, st.dictionaries(words, st.integers(-2, 3), min_size=1, max_size=3), max_size=3))
def test_qrels_come_back_and_ir_measures_reads_the_same(folder, judged):
    import ir_measures

    assert write_qrels(folder / "x.qrels", judged) == sum(map(len, judged.values()))
    with open(folder / "x.qrels", encoding="utf-8") as handle:
        theirs = [(one.query_id, one.doc_id, one.relevance) for one in ir_measures.read_trec_qrels(handle)]
    assert theirs == [(question, doc, rel) for question, docs in judged.items() for doc, rel in docs.items()]


@pytest.mark.parametrize("name", ["", "a b", "a\u2028b", "\ufeffa", "a\tb"])
def test_an_id_that_topics_cannot_hold_is_refused(tmp_path, name):
    with pytest.raises(IfqaError, match="is empty or holds white space"):
        write_topics(tmp_path / "x", [Question(name, "q", ("a",))])
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "answer", "found"),
    [
        ("the 12 apostles and 2 more", "2", "2"),
        ("may march in May", "May", "May"),
        ("in New\n York City", "new york", "New\n York"),
        ("about US$5 million", "$5 million", "$5 million"),
        ("a U.S. senator", "U.S.", "U.S."),
        ("Newyork", "New York", None),
        ("Yorkshire", "York", None),
        ("anything", " ", None),
        ("a😀b 😀 1987", "1987", "1987"),
    ],
)
def test_an_answer_is_found_as_whole_words(text, answer, found):
    span = find_answer(text, answer)
    assert (span and text[slice(*span)]) == found


@given(texts, texts)
def test_an_answer_that_was_cut_from_a_text_is_found_in_it(before, answer):
    tokens = find_answer(answer, answer)
    assert (find_answer(f"{before} {answer} {before}", answer) is None) == (tokens is None)


@given(st.text("ab1 .,$é-", max_size=30), st.text("ab1 .,$é-", min_size=1, max_size=5))
def test_spans_and_has_answer_agree(text, answer):
    assert (find_answer(text, answer) is not None) == has_answer(text, [answer])


@pytest.mark.parametrize(
    "record",
    [
        {"question": "q", "answer": ["a", "b"]},  # nq_open
        {"question": "q", "answer": {"value": "a", "aliases": ["a", "b"]}},  # TriviaQA
        {"question": "q", "answers": {"text": ["a", "b"], "answer_start": [0, 1]}},  # SQuAD as `datasets` gives it
        {"question": "q", "target": ["a", "b"], "context": ""},
    ],
)
def test_what_lm_evals_tasks_read_is_read(tmp_path, record):
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(json.dumps(record).encode()))
    assert read_questions(tmp_path / "x.jsonl.gz") == [Question("1", "q", ("a", "b"))]
    (tmp_path / "x.json.bz2").write_bytes(bz2.compress(json.dumps([record], indent=1).encode()))
    assert read_questions(tmp_path / "x.json.bz2") == [Question("1", "q", ("a", "b"))]


def test_squads_second_version_is_read(tmp_path):
    answers = [{"text": "b", "answer_start": 2}] * 3
    qas = [
        {"id": "1", "question": "q", "answers": answers, "is_impossible": False},
        {"id": "2", "question": "r", "answers": [], "plausible_answers": answers, "is_impossible": True},
    ]
    value = {"version": "v2.0", "data": [{"title": "T", "paragraphs": [{"context": "a b", "qas": qas}]}]}
    (tmp_path / "x.json").write_text(json.dumps(value, indent=2))
    assert read_questions(tmp_path / "x.json") == [
        Question("1", "q", ("b",), ("a b",)),
        Question("2", "r", (), ("a b",)),
    ]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("x.tsv", "a b\tq\n", r"x\.tsv:1: wanted 'id TAB question'"),
        ("x.tsv", "a\tq\na\tr\n", "two questions have the id 'a'"),
        ("x.tsv", "\n", "wanted questions, found none"),
        ("x.pdf", "a,q\n", "wanted a .jsonl, .json"),
        ("x.jsonl", '{"q": 1}\n', r"x\.jsonl:1: key 'question' is missing"),
        ("x.jsonl", '{"question": "q", "id": true}', "'id' must be text or a whole number, found bool"),
        ("x.jsonl", '{"question": "q", "answers": [1]}', "must be str, found int"),
        ("x.jsonl", '{"question": "q", "answers": 1}', "'answers' must be list, found int"),
        ("x.jsonl", '{"question": "\\ud800"}', "half a surrogate pair"),
        ("x.json", "[1]", "entry 1: wanted a JSON object"),
        ("x.json", "{}", "key 'data' is missing"),
        ("x.json", "[\n{]", r"x\.json: entry 1: not JSON"),
        ("x.json", "[" * 100_000, "wanted a JSON object"),
        ("x.json", '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "q"}]}]}]}', "'question' is missing"),
        ("x.json", '{"data": [{}]}', "article 1: key 'paragraphs' is missing"),
    ],
)
def test_an_invalid_file_of_questions_is_refused_in_one_line(tmp_path, name, content, complaint):
    (tmp_path / name).write_text(content)
    with pytest.raises(IfqaError, match=complaint) as caught:
        read_questions(tmp_path / name)
    assert "\n" not in str(caught.value)


QUESTIONS = [
    Question("ifqa/dev/2", 'If "so"\u2028were\tit, what 😀?', ("é 1", "other"), ("a\nb é 1 c\u2028", "more")),
    Question("ifqa/dev/10", "If not, who?", ("Ann",), ("It was ann, and Ann.",)),
]


def test_pyserini_reads_our_topics(tmp_path):
    from ifqa.retrieval.jvm import java

    write_topics(tmp_path / "x.tsv", QUESTIONS)
    name = java().autoclass
    path = name("java.nio.file.Paths").get(str(tmp_path / "x.tsv"))
    topics = name("io.anserini.search.topicreader.TsvStringTopicReader")(path).read()
    found = {key: topics.get(key).get("title") for key in topics.keySet().toArray()}
    assert found == {one.id: one.text for one in read_questions(tmp_path / "x.tsv")}


def test_datasets_reads_our_squad(tmp_path):
    datasets = pytest.importorskip("datasets")
    write_squad(tmp_path / "x.json", QUESTIONS)
    squad = datasets.load_dataset(
        "json", data_files=str(tmp_path / "x.json"), field="data", split="train", cache_dir=str(tmp_path / "cache")
    )
    found = [(article["paragraphs"][0]["context"], article["paragraphs"][0]["qas"][0]) for article in squad]
    assert [(context, qa["id"], qa["question"]) for context, qa in found] == [
        (one.gold_passages[0], one.id, one.text) for one in QUESTIONS
    ]
    assert [qa["answers"] for _, qa in found] == [
        [{"text": "é 1", "answer_start": 4}],
        [{"text": "Ann", "answer_start": 16}],
    ]


@pytest.mark.parametrize("question", [Question("a\ud800", "q"), Question("a", "q\ud800")])
def test_topics_and_judgements_of_what_no_file_can_hold_are_refused(folder, question):
    with pytest.raises(IfqaError, match="holds half a surrogate pair"):
        write_topics(folder / "half.tsv", [question])
    with pytest.raises(IfqaError, match="holds half a surrogate pair"):
        write_qrels(folder / "half.qrels", {"a": {"p\ud800": 1}})
    assert not (folder / "half.tsv").exists()
