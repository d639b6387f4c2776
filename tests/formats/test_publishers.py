"""Each dataset of CausalQA in its publisher's layout: what ten invented records become, and what wrong ones get."""

import gzip
import json
import zipfile

import pytest
from causal_publishers import (
    WRITERS,
    eli5,
    lines,
    naturalquestions,
    searchqa,
    write_publishers,
)

from ifqa.benchmarks.causalqa.corpus import build
from ifqa.errors import IfqaError

# Dataset -> id, context and answers of its causal questions, and the numbers of those in the original train and valid part.
# The questions are "why does lamp N glow", N = 0, 3, 6 and 9.
WANTED = {
    "paq": (
        [(str(n + 1), f'Lamp {n} has a "wick" that is hot.', [f"heat {n}"]) for n in (0, 3, 6, 9)],
        None,  # the random split
    ),
    "gooaq": (
        [("100", "", ["long 0"]), ("103", "", ["long 3"]), ("106", "", ["short 6"]), ("109", "", ["long 9"])],
        ([0, 2], [1]),
    ),
    "msmarco": (
        [(str(1000 + n), f"passage 0 of {n}\npassage 1 of {n}", [f"heat {n}"]) for n in (0, 3, 6)],
        ([0, 1], [2]),
    ),
    "naturalquestions": (
        [(str(-n), "A lamp is hot .", ["lamp is hot", "A"]) for n in (0, 3, 6)],
        ([0, 1], [2]),
    ),
    "eli5": ([(f"q{n}", "", [f"heat {n}", "it burns"]) for n in (0, 3, 6)], None),
    "searchqa": (
        [
            (f"{part}-{n:06}", f"a {n}\nb {n}", [f"heat {n}"])
            for part, n in (("train", 0), ("train", 3), ("val", 6), ("test", 9))
        ],
        ([0, 1], [2]),
    ),
    "squad2": ([(f"56be{n}", "A lamp is hot.", ["hot", "hot"]) for n in (0, 3, 6)], ([0, 1], [2])),
    "newsqa": (
        [
            (f"./cnn/stories/{n}.story/{k}", "Hyrule -- A lamp is hot. It burns.", ["is hot."])
            for n, k in ((0, 0), (0, 3), (1, 1))
        ],
        ([0, 1], [2]),
    ),
    "hotpotqa": (
        [(f"5a8b{n}", "Lamp: It is hot. It burns.\nWick: A wick.", [f"heat {n}"]) for n in (0, 3, 6, 9)],
        ([0, 1], [2, 3]),
    ),
    "triviaqa": (
        [
            (f"tc_{n}", context, [f"heat {n}", "warmth"])
            for n, context in ((0, "About 0"), (3, "Lamp 3 is hot."), (6, "Lamp 6 burns."), (9, "About 9"))
        ],
        ([0, 1], [2, 3]),
    ),
}


def built(folder, name, **options):
    """The records of each split of a dataset, after a build from FOLDER/NAME."""
    list(build(folder / "out", folder, **options))
    place = folder / "out/data/causalqa"
    return {
        path.parent.name: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted(place.glob(f"*/{name}.jsonl"))
    }


def both(found, family):
    return {one["id"]: one for part in ("train", "valid") for one in found[f"{family}-{part}"]}


@pytest.mark.parametrize("name", WRITERS)
def test_ten_records_become_causal_questions_with_their_answers(name, tmp_path):
    write_publishers(tmp_path, name)
    found = built(tmp_path, name)
    wanted, original = WANTED[name]
    drawn = both(found, "random")
    assert drawn.keys() == {one[0] for one in wanted}
    for number, context, answers in wanted:
        one = drawn[number]
        assert (one["context"], one["answers"], one["rules"]) == (context, answers, ["R1"])
        assert one["question"].startswith("why does lamp ")
    if original is None:
        assert [found[f"original-{part}"] for part in ("train", "valid")] == [
            found[f"random-{part}"] for part in ("train", "valid")
        ]
    else:
        for part, numbers in zip(("train", "valid"), original, strict=True):
            assert [one["id"] for one in found[f"original-{part}"]] == [wanted[number][0] for number in numbers]


def test_the_text_below_a_title_is_part_of_the_question(tmp_path):
    write_publishers(tmp_path, "eli5")
    asked = {one["question"] for one in both(built(tmp_path, "eli5"), "random").values()}
    assert asked == {"why does lamp 0 glow", "why does lamp 3 glow in the dark", "why does lamp 6 glow"}


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
    one, other = (both(built(tmp_path / place, name), "original") for place in ("one", "other"))
    assert one.keys() == other.keys() != set()
    for number in one:  # what the other layout does not have
        if name == "eli5":
            one[number] |= {"question": f"why does lamp {number[1:]} glow", "answers": one[number]["answers"][:1]}
    assert other == one


def test_two_files_of_one_name_are_refused(tmp_path):
    write_publishers(tmp_path, "squad2")
    plain = (tmp_path / "squad2/dev-v2.0.json").read_bytes()
    (tmp_path / "squad2/dev-v2.0.json.gz").write_bytes(gzip.compress(plain))
    with pytest.raises(IfqaError, match=r"dev-v2.0.json and .*dev-v2.0.json.gz: two files of one name; keep one"):
        list(build(tmp_path / "out", tmp_path))


def test_an_archive_and_its_unpacked_folder_are_refused(tmp_path):
    write_publishers(tmp_path, "searchqa")
    searchqa(tmp_path / "searchqa", packed=False)
    with pytest.raises(IfqaError, match="one question twice; keep the archive or the folder"):
        list(build(tmp_path / "out", tmp_path))


def test_a_document_outside_of_the_evidence_is_not_read(tmp_path):
    write_publishers(tmp_path, "triviaqa")
    assert (tmp_path / "secret.txt").read_text() == "secret"
    found = built(tmp_path, "triviaqa")
    assert "secret" not in json.dumps(found)


def column(name, value):
    return json.dumps({"query": {"0": "why"}, "query_id": {"0": 1}, "passages": {"0": []}} | {name: value}).encode()


def zipped(data, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("000001.json", data)


STORY = {"storyId": "s", "text": "short", "type": "train"}
PAGE = {"question_text": "why", "example_id": 1, "document_text": "a b"}
# A file, what is in it, and the one line that it gets.
WRONG = [
    ("paq/PAQ.metadata.jsonl", b'{"question": "why", "answer": "x", "answers": []}\n{"question": "why"\n', r"PAQ.metadata.jsonl:2: not JSON \(Expecting"),
    ("paq/PAQ.metadata.jsonl", b"[1]\n", "PAQ.metadata.jsonl:1: wanted a JSON object, found list"),
    ("paq/PAQ.metadata.jsonl", lines([{"answer": ["x"]}]), "PAQ.metadata.jsonl:1: key 'question' is missing; found 'answer'"),
    ("paq/PAQ.metadata.jsonl", lines([{"question": "why", "answer": ["x"], "answers": []}]), "PAQ.metadata.jsonl:1: 'answer' must be str, found list"),
    ("paq/PAQ.metadata.jsonl", b"\xff\n", "PAQ.metadata.jsonl:1: not UTF-8"),
    ("paq/PAQ.metadata.jsonl", lines([{"question": "why", "answer": "x", "answers": [1]}]), "'answers': wanted a JSON object, found int"),
    ("gooaq/gooaq.jsonl", lines([{"question": "why", "answer": "x"}]), "gooaq.jsonl:1: 'id' must be an id, a string or a whole number; found None"),
    ("gooaq/gooaq.jsonl", lines([{"id": 1, "question": "why", "answer": ["x"]}]), "gooaq.jsonl:1: 'answer' must be str, found list"),
    ("msmarco/dev_v2.1.json", b'{"query": {"0": "why"}}', "dev_v2.1.json: column 'query_id' is missing; found 'query'"),
    ("msmarco/dev_v2.1.json", column("query", {"0": 5}), "dev_v2.1.json:1: query '0' must be a string, found int"),
    ("msmarco/dev_v2.1.json", column("query", {"0": "why", "1": "why"}), "dev_v2.1.json: row '1' has a query and no passages"),
    ("msmarco/dev_v2.1.json", column("passages", {"0": "x"}), "row '0': 'passages' must be a list of objects, found str"),
    ("msmarco/dev_v2.1.json", column("answers", {"0": "x"}), "row '0': 'answers' must be a list of strings, found 'x'"),
    ("msmarco/dev_v2.1.json", b'{"query": ["why"]}', r"dev_v2.1.json:1: wanted an object, found an array"),
    ("msmarco/dev_v2.1.json", b'{"query": {"0": "wh', r"dev_v2.1.json:1: not JSON \(Unterminated string"),
    ("naturalquestions/nq-dev-00.jsonl", lines([{"question_text": "why", "example_id": 1}]), "'document_tokens' must be a list of objects, found NoneType"),
    (
        "naturalquestions/nq-dev-00.jsonl",
        lines([PAGE | {"annotations": [{"short_answers": [{"start_token": 1, "end_token": 3}]}]}]),
        "nq-dev-00.jsonl:1: a short answer goes from token 1 to 3; the page has 2 tokens",
    ),
    ("eli5/train_eli5.jsonl", lines([{"title": "why", "q_id": "1", "answers": ["x"]}]), "'answers': wanted a JSON object, found list"),
    ("squad2/dev-v2.0.json", b'{"version": "v2.0"}', "dev-v2.0.json: key 'data' is missing; found 'version'"),
    ("squad2/dev-v2.0.json", b'{"data": [\n{"title": "x"}]}', "dev-v2.0.json:2: 'paragraphs' must be a list of objects, found NoneType"),
    ("squad2/dev-v2.0.json", b'{"data": [\n{"paragraphs": []}\n{}]}', r"dev-v2.0.json:3: not JSON \(wanted ',', found '{'\)"),
    (
        "newsqa/combined-newsqa-data-v1.json",
        json.dumps({"data": [STORY | {"questions": [{"q": "why", "consensus": {"s": 1, "e": 9}}]}]}).encode(),
        "an answer goes from character 1 to 9; the story has 5",
    ),
    ("hotpotqa/hotpot_train_v1.1.json", b'{"a": 1}', "hotpot_train_v1.1.json:1: wanted an array, found an object"),
    (
        "hotpotqa/hotpot_train_v1.1.json",
        b'[{"_id": "1", "question": "why", "context": [["T", "text"]]}]',
        r"'context' must hold pairs of a title and a list of sentences, found \['T', 'text'\]",
    ),
    ("triviaqa/web-dev.json", b'{"Data": [{"Question": "why", "QuestionId": "1", "Answer": {}}]}', "web-dev.json:1: key 'Value' is missing; found no keys"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "data", "message"), WRONG, ids=[f"{n}-{file}" for n, (file, _, _) in enumerate(WRONG)]
)
def test_a_wrong_record_gets_one_line_and_nothing_is_written(file, data, message, tmp_path):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_bytes(data)
    with pytest.raises(IfqaError, match=message) as error:
        list(build(tmp_path / "out", tmp_path))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out/data/causalqa").exists()


def test_a_wrong_file_of_an_archive_is_named_with_the_archive(tmp_path):
    (tmp_path / "searchqa").mkdir()
    zipped(b'{"question": 5}', tmp_path / "searchqa/train.zip")
    with pytest.raises(IfqaError, match=r"train.zip/000001.json:1: 'question' must be str, found int"):
        list(build(tmp_path / "out", tmp_path))
    data = (tmp_path / "searchqa/train.zip").read_bytes()
    (tmp_path / "searchqa/train.zip").write_bytes(data.replace(b'"question"', b'"QUESTION"'))
    with pytest.raises(IfqaError, match=r"train.zip/000001.json: the archive is damaged"):
        list(build(tmp_path / "out", tmp_path))
    (tmp_path / "searchqa/train.zip").write_bytes(data[:-9])
    with pytest.raises(IfqaError, match=r"train.zip: not a zip archive that can be read"):
        list(build(tmp_path / "out", tmp_path))


def test_a_member_that_cannot_be_unpacked_is_refused(tmp_path):
    (tmp_path / "searchqa").mkdir()
    with zipfile.ZipFile(tmp_path / "searchqa/train.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train/000001.json", json.dumps({"question": "why " * 99}))
        start = archive.getinfo("train/000001.json").header_offset + 30 + len("train/000001.json")
    data = bytearray((tmp_path / "searchqa/train.zip").read_bytes())
    data[start] = 0xFF  # no kind of block has this number
    (tmp_path / "searchqa/train.zip").write_bytes(data)
    with pytest.raises(IfqaError, match=r"train.zip/train/000001.json: compressed data ends or breaks"):
        list(build(tmp_path / "out", tmp_path))


def test_a_passage_that_is_not_at_its_line_is_refused(tmp_path):
    write_publishers(tmp_path, "paq")
    table = tmp_path / "paq/psgs_w100.tsv"
    table.write_text("id\ttext\ttitle\n7\tother\tT\n")
    with pytest.raises(IfqaError, match=r"PAQ.metadata.jsonl.gz:1: passage '1' is not at its line of .*psgs_w100.tsv"):
        list(build(tmp_path / "out", tmp_path))
    table.rename(table.with_suffix(".tsv.gz"))
    with pytest.raises(IfqaError, match="passages are looked up in an unpacked file"):
        list(build(tmp_path / "out", tmp_path))


def test_a_split_that_names_no_ids_is_refused(tmp_path):
    write_publishers(tmp_path, "gooaq")
    (tmp_path / "gooaq/split.json").write_text('{"train": [["x", 1]]}')
    with pytest.raises(IfqaError, match=r"split.json:1: wanted the id of a question, found \['x', 1\]"):
        list(build(tmp_path / "out", tmp_path))


def test_a_damaged_packed_file_is_refused(tmp_path):
    write_publishers(tmp_path, "msmarco", "eli5")
    for path in (tmp_path / "msmarco/dev_v2.1.json.gz", tmp_path / "eli5/train_eli5.jsonl.bz2"):
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])
        with pytest.raises(IfqaError, match=f"{path.name}: compressed data ends or breaks"):
            list(build(tmp_path / "out", tmp_path))
        path.write_bytes(whole)
