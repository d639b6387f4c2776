"""Sources of passages: checks, order of their files, and fingerprints."""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, page
from refusals import refused

from ifqa.corpus import work_units
from ifqa.corpus.sources import open_source, total_size
from ifqa.plugins import open_benchmark
from ifqa.storage.artifacts import compute_fingerprint

PAGES = [page(n, f"Page {n}", f"Words of page {n}. " * 9) for n in range(1, 6)]
DUMP = (HEAD + "".join(PAGES) + TAIL).encode()
GOLD = {"format": "gold", "benchmark": "ifqa", "splits": ["full-dev"]}


@pytest.fixture(autouse=True)
def _files(here):
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


def open_section(section):
    return open_source(section, questions_of=questions_of)


def fingerprint(section, known=None):
    return compute_fingerprint(open_section(section).fingerprint(known or {}))


def dump(path="d.xml", **settings):
    return {"format": "dump", "path": str(path)} | settings


def test_readable_sources_have_the_size_of_what_they_read():
    write_questions()
    sources = map(
        open_section, [dump(profile="release"), {"format": "passages", "path": "p.tsv"}, GOLD]
    )
    assert total_size(sources) == len(DUMP) + len("1\ttext\ttitle\n")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            {"path": "d.xml"},
            (
                "unknown format of a passage source ''; known: articles, "
                "documents, dump, gold, passages"
            ),
        ),
        ({"format": "dmp", "path": "d.xml"}, "'dmp'; did you mean 'dump'?"),
        (dump(word=50), "unknown setting of a 'dump' source 'word'; did you mean 'words'?"),
        (dump(words=0), "'words': wanted a whole number from 1, found 0"),
        (dump(profile="relase"), "'profile': unknown value 'relase'; did you mean 'release'?"),
        (dump("none.xml"), "none.xml is not in"),
        (dump("empty"), "empty holds no dump"),
        (dump("d**.xml"), "passage source 'd**.xml' is not a pattern"),
        (
            {"format": "passages", "path": "empty"},
            "empty holds no file of passages (.jsonl or .tsv",
        ),
        (
            {"format": "passages", "path": "/nowhere/p.tsv"},
            "/nowhere/p.tsv does not exist; put it there",
        ),
        ({"format": "articles", "path": "empty"}, "empty holds no article file"),
        (
            {"format": "articles", "path": "a.jsonl", "share": 1.5},
            "'share': wanted a number above 0, at most 1",
        ),
        (
            {"format": "gold", "benchmark": "sample", "splits": "dev"},
            "wanted a list of texts, found 'dev'",
        ),
    ],
)
def test_a_wrong_source_is_refused_in_one_line(section, message):
    with refused(re.escape(message)):
        open_source(section)


def test_only_the_dumps_of_a_folder_are_read_in_order_of_their_numbers():
    Path("parts").mkdir()
    ranges = [
        "1.xml-p1p41242",
        "2.xml-p41243p151573",
        "10.xml-p4045403p5399366",
        "10.xml-p5399367p6899366",
    ]
    parts = [f"wiki-articles{numbers}.bz2" for numbers in ranges]
    others = [
        "wiki-index1.txt-p1p41242.bz2",
        "wiki-articles3.xml.bz2.part",
        "wiki-md5sums.txt",
        "wiki.sql.gz",
    ]
    for name in [*reversed(parts), *others]:
        Path("parts", name).touch()
    Path("parts/wiki-articles11.xml").mkdir()
    packed = ["x1.xml", "x2.xml.gz", "x3.xml.xz", "x4.xml-p1p9.gz"]
    for name in packed:
        Path("empty", name).touch()
    assert [file.name for file in open_section(dump("empty")).files()] == packed
    assert [file.name for file in open_section(dump("parts")).files()] == parts


def test_a_pattern_gives_its_files_in_the_order_of_their_numbers_and_folders(tmp_path, monkeypatch):
    names = ["p2/1.x", "p2/10.x", "p10/1.x", "below/p3/1.x", "x[1].x", "x1.x"]
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()

    def files(kind, pattern):
        paths = open_section({"format": kind, "path": pattern}).files()
        return [str(path.resolve().relative_to(tmp_path)) for path in paths]

    for kind, start in (("dump", ""), ("articles", f"{tmp_path}/"), ("passages", "")):
        assert files(kind, f"{start}p*/[0-9]*.x") == ["p2/1.x", "p10/1.x", "p2/10.x"]
        assert set(files(kind, f"{start}**/*.x")) == set(names)
        assert files(kind, f"{start}x[1].x") == ["x[1].x"]
    assert open_section(GOLD | {"splits": []}).files() == []


def test_the_fingerprint_depends_on_the_bytes_their_order_and_the_settings():
    Path("elsewhere").mkdir()
    Path("elsewhere/another-name.xml").write_bytes(DUMP)
    for number, content in enumerate([DUMP, b"<other/>"]):
        for folder, name in (
            ("one", f"{number}.xml"),
            ("same", f"part{number}.xml"),
            ("turned", f"{1 - number}.xml"),
        ):
            Path(folder).mkdir(exist_ok=True)
            Path(folder, name).write_bytes(content)
    Path("e.xml").write_bytes(DUMP.replace(b"page 5", b"page 6", 1))
    articles = {"format": "articles", "path": "a.jsonl"}
    assert (
        fingerprint(dump())
        == fingerprint(dump("elsewhere/another-name.xml"))
        == fingerprint(dump("elsewhere"))
    )
    assert fingerprint(dump()) == fingerprint(dump(wrap=True, words=100, profile="ifqa"))
    assert fingerprint(articles) == fingerprint(articles | {"share": 1.0, "words": 100})
    assert fingerprint(dump("one")) == fingerprint(dump("same"))
    others = [*map(dump, ("d.xml", "e.xml", "one", "turned"))]
    others += [dump(profile="release"), dump(words=50), dump(wrap=False)]
    others += [articles, articles | {"share": 0.5}, {"format": "passages", "path": "a.jsonl"}]
    assert len(set(map(fingerprint, others))) == len(others)


def test_the_fingerprint_of_gold_passages_is_that_of_the_questions_in_any_folder(monkeypatch):
    for split in ("dev", "train"):
        write_questions(split=split)
    both = GOLD | {"splits": ["full-dev", "full-train"]}
    [unit] = open_section(both).work_units()  # each passage once
    assert [(passage.title, passage.text) for passage in unit.content] == [("", "Gold one.")]
    before = fingerprint(both)
    assert len({before, fingerprint(GOLD), fingerprint(GOLD | {"splits": ["full-train"]})}) == 3
    write_questions(indent=4)  # the layout of the file does not matter
    assert fingerprint(both) == before
    write_questions("six", split="train")
    assert fingerprint(both) != before
    monkeypatch.chdir("empty")
    for split in ("dev", "train"):
        write_questions(split=split)
    assert fingerprint(both) == before


def test_a_known_hash_is_used_for_a_large_source_of_equal_size_and_time_of_change(
    tmp_path, monkeypatch
):
    facts = json.loads(json.dumps(open_section(dump()).facts()))
    assert fingerprint(dump(), facts) == fingerprint(dump())
    known = {path: [*fact[:2], "known"] for path, fact in facts.items()}

    def hashes():
        return open_section(dump()).fingerprint(known)["files"]

    file = tmp_path / "d.xml"
    true = [hashlib.sha256(DUMP).hexdigest()]
    assert hashes() == true
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP))
    assert hashes() == true
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP) - 1)
    assert hashes() == ["known"]
    modified = file.stat().st_mtime_ns
    os.utime(file, ns=(0, modified + 1))
    assert hashes() == true
    file.write_bytes(DUMP + b"\n")
    os.utime(file, ns=(0, modified))
    assert hashes() == [hashlib.sha256(DUMP + b"\n").hexdigest()]
