"""Sources of passages: checks, order of their files, and fingerprints."""

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, page
from opened_sources import open_section
from refusals import refused

from ifqa.corpus import work_units
from ifqa.corpus.sources import total_size
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


def fingerprint(section, known=None):
    return compute_fingerprint(open_section(section).identity(known or {}))


def dump(path="d.xml", **settings):
    return {"format": "dump", "path": str(path)} | settings


def test_readable_sources_have_the_size_of_what_they_read():
    write_questions()
    sections = (dump(profile="release"), {"format": "passages", "path": "p.tsv"}, GOLD)
    sources = [open_section(section) for section in sections]
    assert total_size(sources) == len(DUMP) + len("1\ttext\ttitle\n")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            {"path": "d.xml"},
            "wanted a format, such as 'dump'; found None",
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
        open_section(section)


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


@pytest.fixture
def files_of_pattern(tmp_path):
    """A function that lists the files of a pattern among the files that are made here."""
    for name in NUMBERED:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()

    def files(kind, pattern):
        paths = open_section({"format": kind, "path": pattern}).files()
        return [str(path.resolve().relative_to(tmp_path)) for path in paths]

    return files


NUMBERED = ["p2/1.x", "p2/10.x", "p10/1.x", "below/p3/1.x", "x[1].x", "x1.x"]
PATTERNS = pytest.mark.parametrize(
    ("kind", "absolute"), [("dump", False), ("articles", True), ("passages", False)]
)


@PATTERNS
def test_files_of_a_pattern_are_in_the_order_of_their_numbers(
    files_of_pattern, tmp_path, kind, absolute
):
    start = f"{tmp_path}/" if absolute else ""
    wanted = ["p2/1.x", "p10/1.x", "p2/10.x"]
    assert files_of_pattern(kind, f"{start}p*/[0-9]*.x") == wanted


@PATTERNS
def test_two_stars_of_a_pattern_match_all_folders_below(files_of_pattern, tmp_path, kind, absolute):
    start = f"{tmp_path}/" if absolute else ""
    assert set(files_of_pattern(kind, f"{start}**/*.x")) == set(NUMBERED)


@PATTERNS
def test_a_name_with_brackets_is_a_file_before_a_pattern(
    files_of_pattern, tmp_path, kind, absolute
):
    start = f"{tmp_path}/" if absolute else ""
    assert files_of_pattern(kind, f"{start}x[1].x") == ["x[1].x"]


def test_gold_passages_of_no_split_have_no_files():
    assert open_section(GOLD | {"splits": []}).files() == []


ONE_ARTICLE = {"format": "articles", "path": "a.jsonl"}


@pytest.fixture
def _folders_of_dumps():
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


@pytest.mark.usefixtures("_folders_of_dumps")
def test_the_fingerprint_does_not_depend_on_the_names_of_files():
    assert (
        fingerprint(dump())
        == fingerprint(dump("elsewhere/another-name.xml"))
        == fingerprint(dump("elsewhere"))
    )
    assert fingerprint(dump("one")) == fingerprint(dump("same"))


def test_the_fingerprint_does_not_depend_on_whether_a_default_is_given():
    assert fingerprint(dump()) == fingerprint(dump(wrap=True, words=100, profile="ifqa"))
    assert fingerprint(ONE_ARTICLE) == fingerprint(ONE_ARTICLE | {"share": 1.0, "words": 100})


@pytest.mark.usefixtures("_folders_of_dumps")
def test_all_that_changes_passages_changes_the_fingerprint():
    others = [*map(dump, ("d.xml", "e.xml", "one", "turned"))]
    others += [dump(profile="release"), dump(words=50), dump(wrap=False)]
    others += [ONE_ARTICLE, ONE_ARTICLE | {"share": 0.5}, {"format": "passages", "path": "a.jsonl"}]
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


TRUE_HASH = [hashlib.sha256(DUMP).hexdigest()]


@pytest.fixture
def hashes():
    """A function that hashes the dump whose hash is known as "known"."""
    facts = json.loads(json.dumps(open_section(dump()).facts()))
    known = {path: [*fact[:2], "known"] for path, fact in facts.items()}
    return lambda: open_section(dump()).identity(known)["files"]


def test_known_facts_do_not_change_the_fingerprint():
    facts = json.loads(json.dumps(open_section(dump()).facts()))
    assert fingerprint(dump(), facts) == fingerprint(dump())


def test_a_small_source_is_always_hashed(hashes, monkeypatch):
    assert hashes() == TRUE_HASH
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP))
    assert hashes() == TRUE_HASH


def test_a_known_hash_is_used_for_an_unchanged_large_source(hashes, monkeypatch):
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP) - 1)
    assert hashes() == ["known"]


def test_a_large_source_is_hashed_after_another_time_of_change(hashes, monkeypatch):
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP) - 1)
    modified = Path("d.xml").stat().st_mtime_ns
    os.utime("d.xml", ns=(0, modified + 1))
    assert hashes() == TRUE_HASH


def test_a_large_source_of_another_size_is_hashed(hashes, monkeypatch):
    monkeypatch.setattr(work_units, "_SMALL", len(DUMP) - 1)
    modified = Path("d.xml").stat().st_mtime_ns
    Path("d.xml").write_bytes(DUMP + b"\n")
    os.utime("d.xml", ns=(0, modified))
    assert hashes() == [hashlib.sha256(DUMP + b"\n").hexdigest()]
