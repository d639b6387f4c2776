"""Sources of passages: which are refused, in which order they are read, and what their identity is."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, page

from ifqa.corpus import work_units
from ifqa.corpus.sources import open_source, total_size
from ifqa.errors import IfqaError
from ifqa.plugins import open_benchmark
from ifqa.storage.artifacts import compute_fingerprint

PAGES = [page(n, f"Page {n}", f"Words of page {n}. " * 9) for n in range(1, 6)]
DUMP = (HEAD + "".join(PAGES) + TAIL).encode()
GOLD = {"format": "gold", "benchmark": "ifqa", "splits": ["full-dev"]}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.xml").write_bytes(DUMP)
    Path("a.jsonl").write_text('{"id": "1", "title": "t", "text": "x"}\n')
    Path("p.tsv").write_text("1\ttext\ttitle\n")
    Path("empty").mkdir()


def write_questions(answer="five", indent=None, split="dev"):
    records = [{"idx": 1, "question": "If?", "answers": [answer], "context": ["Gold one."]}]
    Path("data/ifqa/full_split").mkdir(parents=True, exist_ok=True)
    Path(f"data/ifqa/full_split/{split}.json").write_text(json.dumps(records, indent=indent))


def questions_of(benchmark, splits):
    return [open_benchmark(benchmark).questions(split) for split in splits]


def opened(table):
    return open_source(table, questions_of=questions_of)


def known(table, facts=None):
    return compute_fingerprint(opened(table).fingerprint(facts or {}))


def dump(path="d.xml", **settings):
    return {"format": "dump", "path": str(path)} | settings


def test_readable_sources_have_the_size_of_what_they_read():
    write_questions()
    good = [dump(profile="release"), {"format": "passages", "path": "p.tsv"}, GOLD]
    assert total_size([opened(section) for section in good]) == len(DUMP) + len("1\ttext\ttitle\n")


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ({"path": "d.xml"}, "unknown format of a passage source ''; known: articles, documents, dump, gold, passages"),
        ({"format": "dmp", "path": "d.xml"}, "'dmp'; did you mean 'dump'?"),
        (dump(word=50), "unknown setting of a 'dump' source 'word'; did you mean 'words'?"),
        (dump(words=0), "'words': wanted a whole number from 1, found 0"),
        (dump(profile="relase"), "'profile': unknown value 'relase'; did you mean 'release'?"),
        (dump("none.xml"), "none.xml is not in"),
        (dump("empty"), "empty holds no dump"),
        (dump("d**.xml"), "passage source 'd**.xml' is not a pattern"),
        ({"format": "passages", "path": "empty"}, "empty holds no file of passages (.jsonl or .tsv"),
        ({"format": "passages", "path": "/nowhere/p.tsv"}, "/nowhere/p.tsv does not exist; put it there"),
        ({"format": "articles", "path": "empty"}, "empty holds no article file"),
        ({"format": "articles", "path": "a.jsonl", "share": 0.0}, "'share': wanted a number above 0, at most 1"),
        ({"format": "articles", "path": "a.jsonl", "share": 1.5}, "'share': wanted a number above 0, at most 1"),
        ({"format": "gold", "benchmark": "sample", "splits": "dev"}, "wanted a list of texts, found 'dev'"),
    ],
)
def test_a_wrong_source_is_refused_in_one_line(source, complaint):
    with pytest.raises(IfqaError) as caught:
        open_source(source)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_the_dumps_of_a_folder_are_read_in_order_of_their_numbers():
    Path("parts").mkdir()
    parts = [
        "wiki-articles1.xml-p1p41242.bz2",
        "wiki-articles2.xml-p41243p151573.bz2",
        "wiki-articles10.xml-p4045403p5399366.bz2",
        "wiki-articles10.xml-p5399367p6899366.bz2",
    ]
    others = ["wiki-index1.txt-p1p41242.bz2", "wiki-articles3.xml.bz2.part", "wiki-md5sums.txt", "wiki.sql.gz"]
    for name in [*reversed(parts), *others]:
        Path("parts", name).touch()
    Path("parts/wiki-articles11.xml").mkdir()
    packed = ["x1.xml", "x2.xml.gz", "x3.xml.xz", "x4.xml-p1p9.gz"]
    for name in packed:
        Path("empty", name).touch()
    assert [file.name for file in opened(dump("empty")).files()] == packed
    assert [file.name for file in opened(dump("parts")).files()] == parts


def test_a_pattern_gives_its_files_in_the_order_of_their_numbers_and_folders(tmp_path, monkeypatch):
    names = ["p2/1.x", "p2/10.x", "p10/1.x", "below/p3/1.x", "x[1].x", "x1.x"]
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    for kind, start in (("dump", ""), ("articles", f"{tmp_path}/"), ("passages", "")):

        def listed(pattern, kind=kind, start=start):
            files = opened({"format": kind, "path": start + pattern}).files()
            return [str(file.resolve().relative_to(tmp_path)) for file in files]

        assert listed("p*/[0-9]*.x") == ["p2/1.x", "p10/1.x", "p2/10.x"]
        assert set(listed("**/*.x")) == set(names)
        assert listed("x[1].x") == ["x[1].x"]
    assert opened(GOLD | {"splits": []}).files() == []


def test_a_source_is_its_bytes_their_order_and_its_settings():
    Path("elsewhere").mkdir()
    Path("elsewhere/another-name.xml").write_bytes(DUMP)
    for number, content in enumerate([DUMP, b"<other/>"]):
        for folder, name in (("one", f"{number}.xml"), ("same", f"part{number}.xml"), ("turned", f"{1 - number}.xml")):
            Path(folder).mkdir(exist_ok=True)
            Path(folder, name).write_bytes(content)
    Path("e.xml").write_bytes(DUMP.replace(b"page 5", b"page 6", 1))
    articles = {"format": "articles", "path": "a.jsonl"}
    assert known(dump()) == known(dump("elsewhere/another-name.xml")) == known(dump("elsewhere"))
    assert known(dump()) == known(dump(wrap=True, words=100, profile="ifqa"))
    assert known(articles) == known(articles | {"share": 1.0, "words": 100})
    assert known(dump("one")) == known(dump("same"))
    others = [*map(dump, ("d.xml", "e.xml", "one", "turned"))]
    others += [dump(profile="release"), dump(words=50), dump(wrap=False)]
    others += [articles, articles | {"share": 0.5}, {"format": "passages", "path": "a.jsonl"}]
    assert len(set(map(known, others))) == len(others)


def test_gold_has_the_identity_of_the_questions_of_all_its_splits_in_any_folder(monkeypatch):
    for split in ("dev", "train"):
        write_questions(split=split)
    both = GOLD | {"splits": ["full-dev", "full-train"]}
    before = known(both)
    assert len({before, known(GOLD), known(GOLD | {"splits": ["full-train"]})}) == 3
    write_questions(indent=4)  # the layout of the file does not matter
    assert known(both) == before
    write_questions("six", split="train")
    assert known(both) != before
    monkeypatch.chdir("empty")
    for split in ("dev", "train"):
        write_questions(split=split)
    assert known(both) == before


def test_each_gold_passage_of_several_splits_is_taken_once_without_title():
    for split in ("dev", "train"):
        write_questions(split=split)
    [unit] = opened(GOLD | {"splits": ["full-dev", "full-train"]}).work_units()
    assert [(passage.title, passage.text) for passage in unit.content] == [("", "Gold one.")]


def test_a_known_hash_is_used_for_a_large_source_of_equal_size_and_time_of_change(tmp_path, monkeypatch):
    several = [dump(), {"format": "articles", "path": "a.jsonl"}]
    facts = json.loads(json.dumps({path: fact for table in several for path, fact in opened(table).facts().items()}))
    assert [known(table, facts) for table in several] == [known(table) for table in several]
    made_up = {path: [*fact[:2], "made up"] for path, fact in facts.items()}

    def hashed():
        return opened(dump()).fingerprint(made_up)["files"]

    file, true = tmp_path / "d.xml", [hashlib.sha256(DUMP).hexdigest()]
    assert hashed() == true
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP))
    assert hashed() == true
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP) - 1)
    assert hashed() == ["made up"]
    modified = file.stat().st_mtime_ns
    os.utime(file, ns=(0, modified + 1))
    assert hashed() == true
    file.write_bytes(DUMP + b"\n")
    os.utime(file, ns=(0, modified))
    assert hashed() == [hashlib.sha256(DUMP + b"\n").hexdigest()]
