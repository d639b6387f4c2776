"""Each dataset of CausalQA in its publisher's layout: ten invented records, and invalid ones."""

import gzip
import json
import zipfile

import pytest
from causal_publishers import WRITERS, eli5, lines, naturalquestions, searchqa, write_publishers

from ifqa.benchmarks.causalqa.builder import build_causalqa
from ifqa.errors import IfqaError

# Dataset -> id, context and answers of its causal questions, and the places of those in the original train and valid part.
# The questions are "why does lamp N glow", N = 0, 3, 6 and 9.
WANTED = {
    "paq": ([(str(n + 1), f'Lamp {n} has a "wick" that is hot.', [f"heat {n}"]) for n in (0, 3, 6, 9)], None),  # a random split
    "gooaq": ([(str(100 + n), "", [f"{'short' if n == 6 else 'long'} {n}"]) for n in (0, 3, 6, 9)], ([0, 2], [1])),
    "msmarco": ([(str(1000 + n), f"passage 0 of {n}\npassage 1 of {n}", [f"heat {n}"]) for n in (0, 3, 6)], ([0, 1], [2])),
    "naturalquestions": ([(str(-n), "A lamp is hot .", ["lamp is hot", "A"]) for n in (0, 3, 6)], ([0, 1], [2])),
    "eli5": ([(f"q{n}", "", [f"heat {n}", "it burns"]) for n in (0, 3, 6)], None),
    "searchqa": ([(f"{part}-{n:06}", f"a {n}\nb {n}", [f"heat {n}"]) for part, n in (("train", 0), ("train", 3), ("val", 6), ("test", 9))], ([0, 1], [2])),
    "squad2": ([(f"56be{n}", "A lamp is hot.", ["hot", "hot"]) for n in (0, 3, 6)], ([0, 1], [2])),
    "newsqa": ([(f"./cnn/stories/{n}.story/{k}", "Hyrule -- A lamp is hot. It burns.", ["is hot."]) for n, k in ((0, 0), (0, 3), (1, 1))], ([0, 1], [2])),
    "hotpotqa": ([(f"5a8b{n}", "Lamp: It is hot. It burns.\nWick: A wick.", [f"heat {n}"]) for n in (0, 3, 6, 9)], ([0, 1], [2, 3])),
    "triviaqa": (
        [(f"tc_{n}", text, [f"heat {n}", "warmth"]) for n, text in ((0, "About 0"), (3, "Lamp 3 is hot."), (6, "Lamp 6 burns."), (9, "About 9"))],
        ([0, 1], [2, 3]),
    ),
}  # fmt: skip


def build(folder, name):
    """The records of each split of a dataset, built from FOLDER/NAME."""
    list(build_causalqa(folder / "out", folder))
    paths = sorted((folder / "out/data/causalqa").glob(f"*/{name}.jsonl"))
    return {path.parent.name: [json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in paths}


def refused(folder, message):
    with pytest.raises(IfqaError, match=message) as error:
        list(build_causalqa(folder / "out", folder))
    assert "\n" not in str(error.value)
    assert not (folder / "out/data/causalqa").exists()


def both(splits, family):
    return {row["id"]: row for part in ("train", "valid") for row in splits[f"{family}-{part}"]}


@pytest.mark.parametrize("name", WRITERS)
def test_ten_records_become_causal_questions_with_their_answers(name, tmp_path):
    write_publishers(tmp_path, name)
    splits = build(tmp_path, name)
    wanted, original = WANTED[name]
    rows = both(splits, "random")
    summaries = {number: (row["context"], row["answers"], row["rules"]) for number, row in rows.items()}
    assert summaries == {number: (context, answers, ["R1"]) for number, context, answers in wanted}
    questions = {row["question"] for row in rows.values()}
    assert all(question.startswith("why does lamp ") for question in questions)
    assert ("why does lamp 3 glow in the dark" in questions) == (name == "eli5"), "only eli5 has a text below its title"
    assert "secret" not in json.dumps(splits)  # a document outside of triviaqa's evidence
    for place, part in enumerate(("train", "valid")):
        rows = splits[f"original-{part}"]
        if original is None:
            assert rows == splits[f"random-{part}"]
        else:
            assert [row["id"] for row in rows] == [wanted[number][0] for number in original[place]]


OTHER_LAYOUTS = {
    "naturalquestions": lambda folder: naturalquestions(folder, original=True),
    "eli5": lambda folder: eli5(folder, kilt=True),
    "searchqa": lambda folder: searchqa(folder, packed=False),
}


@pytest.mark.parametrize("name", OTHER_LAYOUTS)
def test_a_publishers_other_layout_gives_the_same_questions(name, tmp_path):
    write_publishers(tmp_path / "one", name)
    (tmp_path / "other" / name).mkdir(parents=True)
    OTHER_LAYOUTS[name](tmp_path / "other" / name)
    first, second = (both(build(tmp_path / place, name), "original") for place in ("one", "other"))
    assert first.keys() == second.keys() != set()
    for number in first:  # fields that the other layout lacks
        if name == "eli5":
            first[number] |= {"question": f"why does lamp {number[1:]} glow", "answers": first[number]["answers"][:1]}
    assert second == first


def test_a_duplicate_file_or_archive_is_refused(tmp_path):
    write_publishers(tmp_path, "squad2")
    plain = (tmp_path / "squad2/dev-v2.0.json").read_bytes()
    (tmp_path / "squad2/dev-v2.0.json.gz").write_bytes(gzip.compress(plain))
    refused(tmp_path, r"dev-v2.0.json and .*dev-v2.0.json.gz have the same name; keep one")
    (tmp_path / "squad2/dev-v2.0.json").unlink()
    write_publishers(tmp_path, "searchqa")
    searchqa(tmp_path / "searchqa", packed=False)
    refused(tmp_path, "hold the same question; keep the archive or the folder")


def column(name, cells):
    return json.dumps({"query": {"0": "why"}, "query_id": {"0": 1}, "passages": {"0": []}} | {name: cells}).encode()


STORY = {"storyId": "s", "text": "short", "type": "train", "questions": [{"q": "why", "consensus": {"s": 1, "e": 9}}]}
SPANS = [{"short_answers": [{"start_token": 1, "end_token": 3}]}]
PAGE = {"question_text": "why", "example_id": 1, "document_text": "a b", "annotations": SPANS}
# A file, its content, and the message.
WRONG = [
    ("paq/PAQ.metadata.jsonl", b'{"question": "why", "answer": "x", "answers": []}\n{"question": "why"\n', r"PAQ.metadata.jsonl:2: not JSON \(Expecting"),
    ("paq/PAQ.metadata.jsonl", lines([{"question": "why", "answer": ["x"], "answers": []}]), "PAQ.metadata.jsonl:1: 'answer' must be str, found list"),
    ("paq/PAQ.metadata.jsonl", lines([{"question": "why", "answer": "x", "answers": [1]}]), "'answers': wanted a JSON object, found int"),
    ("gooaq/gooaq.jsonl", lines([{"question": "why", "answer": "x"}]), "gooaq.jsonl:1: 'id' must be an id .a string or a whole number., found None"),
    ("msmarco/dev_v2.1.json", b'{"query": {"0": "why"}}', "dev_v2.1.json: column 'query_id' is missing; found 'query'"),
    ("msmarco/dev_v2.1.json", column("query", {"0": 5}), "dev_v2.1.json:1: query '0' must be a string, found int"),
    ("msmarco/dev_v2.1.json", column("query", {"0": "why", "1": "why"}), "dev_v2.1.json: row '1' has a query and no passages"),
    ("msmarco/dev_v2.1.json", column("answers", {"0": "x"}), "row '0': 'answers' must be a list of strings, found 'x'"),
    ("msmarco/dev_v2.1.json", b'{"query": ["why"]}', r"dev_v2.1.json:1: wanted an object, found an array"),
    ("naturalquestions/nq-dev-00.jsonl", lines([PAGE]), "nq-dev-00.jsonl:1: an answer spans 1 to 3, but its text ends at 2"),
    ("eli5/train_eli5.jsonl", lines([{"title": "why", "q_id": "1", "answers": ["x"]}]), "'answers': wanted a JSON object, found list"),
    ("squad2/dev-v2.0.json", b'{"data": [\n{"title": "x"}]}', "dev-v2.0.json:2: 'paragraphs' must be a list of objects, found NoneType"),
    ("newsqa/combined-newsqa-data-v1.json", json.dumps({"data": [STORY]}).encode(), "an answer spans 1 to 9, but its text ends at 5"),
    ("hotpotqa/hotpot_train_v1.1.json", b'{"a": 1}', "hotpot_train_v1.1.json:1: wanted an array, found an object"),
    ("hotpotqa/hotpot_train_v1.1.json", b'[{"_id": "1", "question": "why", "context": [["T", "x"]]}]', "'context' must hold pairs of a title and its sentences"),
    ("gooaq/split.json", b'{"train": [["x", 1]]}', r"split.json:1: wanted the id of a question, found \['x', 1\]"),
    ("msmarco/dev_v2.1.json.gz", gzip.compress(b'{"query": {"0": "why"}}', mtime=0)[:-9], "dev_v2.1.json.gz: the compressed data is truncated or damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "content", "message"), WRONG)
def test_an_invalid_record_is_refused_and_nothing_is_written(file, content, message, tmp_path):
    if file == "gooaq/split.json":
        write_publishers(tmp_path, "gooaq")
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_bytes(content)
    refused(tmp_path, message)


def test_an_invalid_file_of_an_archive_is_named_with_the_archive(tmp_path):
    path = tmp_path / "searchqa/train.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("000001.json", b'{"question": 5}')
    refused(tmp_path, r"train.zip/000001.json:1: 'question' must be str, found int")
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"question"', b'"QUESTION"'))
    refused(tmp_path, r"train.zip/000001.json: the archive is damaged")
    path.write_bytes(content[:-9])
    refused(tmp_path, r"train.zip: not a readable zip archive")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.json", json.dumps({"question": "why " * 99}))
    packed = bytearray(path.read_bytes())
    packed[30 + len("1.json")] = 0xFF  # no kind of block has this number
    path.write_bytes(packed)
    refused(tmp_path, r"train.zip/1.json: the compressed data is truncated or damaged")


def test_a_passage_that_is_not_on_its_line_is_refused(tmp_path):
    write_publishers(tmp_path, "paq")
    table = tmp_path / "paq/psgs_w100.tsv"
    table.write_text("id\ttext\ttitle\n7\tother\tT\n")
    refused(tmp_path, r"PAQ.metadata.jsonl.gz:1: passage '1' is not on its line of .*psgs_w100.tsv")
    table.rename(table.with_suffix(".tsv.gz"))
    refused(tmp_path, "look-ups need an uncompressed file")
