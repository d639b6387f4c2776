"""Sources of passages: which are refused, in which order they are read, and what their identity is."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, page
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus import source_files
from ifqa.corpus.source_files import file_facts
from ifqa.corpus.sources import open_source, open_sources, size_of
from ifqa.errors import IfqaError
from ifqa.plugins import open_benchmark
from ifqa.storage.artifacts import identity

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


def gold(**changes):
    return GOLD | changes


def known(table, facts=None):
    return identity(opened(table).fingerprint(facts or {}))


def dump(path="d.xml", **settings):
    return {"format": "dump", "path": str(path)} | settings


def test_readable_sources_are_accepted():
    write_questions()
    articles = {"format": "articles", "path": "a.jsonl", "share": 0.5, "words": 1}
    good = [dump(profile="release"), dump("*.xml"), articles, {"format": "passages", "path": "p.tsv"}, GOLD]
    open_sources(good, questions_of=questions_of)
    Path("p.tsv").unlink()
    with pytest.raises(IfqaError, match=r"p\.tsv"):
        open_sources(good, questions_of=questions_of)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ({"path": "d.xml"}, "unknown format of a passage source ''; known: articles, documents, dump, gold, passages"),
        ({"format": "dmp", "path": "d.xml"}, "'dmp'; did you mean 'dump'?"),
        ({"format": ["dump"], "path": "d.xml"}, "unknown format of a passage source"),
        ({"format": "dump"}, "setting of a 'dump' source 'path' is missing"),
        (dump(word=50), "unknown setting of a 'dump' source 'word'; did you mean 'words'?"),
        (dump(share=0.5), "unknown setting of a 'dump' source 'share'"),
        (dump(words=0), "'words': wanted a whole number from 1, found 0"),
        (dump(words="100"), "'words': wanted a whole number from 1, found '100'"),
        (dump(words=True), "'words': wanted a whole number from 1, found True"),
        (dump(wrap=1), "'wrap': wanted true or false, found 1"),
        (dump(profile="relase"), "'profile': unknown value 'relase'; did you mean 'release'?"),
        ({"format": "dump", "path": 5}, "'path': wanted text, found 5"),
        (dump("none.xml"), "none.xml is not in"),
        (dump("empty"), "empty holds no dump"),
        (dump("d**.xml"), "passage source 'd**.xml' is no pattern"),
        ({"format": "passages", "path": "empty"}, "empty holds no file of passages (.jsonl or .tsv"),
        ({"format": "passages", "path": "empty/*.jsonl"}, "empty/*.jsonl holds no file of passages"),
        ({"format": "passages", "path": "/nowhere/p.tsv"}, "/nowhere/p.tsv is not there; put it there"),
        ({"format": "articles", "path": "empty"}, "empty holds no article file"),
        ({"format": "dump", "path": "-"}, "- is not in"),
        (
            {"format": "articles", "path": "a.jsonl", "share": "half"},
            "'share': wanted a number above 0, at most 1, found 'half'",
        ),
        ({"format": "gold", "benchmark": "sample"}, "'splits' is missing"),
        ({"format": "gold", "benchmark": "sample", "splits": "dev"}, "wanted a list of texts, found 'dev'"),
        ({"format": "gold", "benchmark": "sample", "splits": [1]}, "wanted a list of texts, found [1]"),
    ],
)
def test_a_wrong_source_is_refused_in_one_line_at_any_place(source, complaint):
    for several in ([source], [dump(), source], [source, dump()]):
        with pytest.raises(IfqaError) as caught:
            open_sources(several)
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
    assert [file.name for file in opened(dump("parts")).files()] == parts


def test_files_of_the_same_name_are_read_in_the_order_of_their_folders(monkeypatch):
    paths = [Path(folder, "x.xml") for folder in ("a2", "a10", "b1")]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    monkeypatch.setattr(Path, "glob", lambda self, pattern: reversed(paths))
    assert opened(dump("*/x.xml")).files() == paths


@pytest.mark.parametrize("name", ["x.xml", "x.xml.bz2", "x.xml.gz", "x.xml.xz", "x.xml-p1p9.gz"])
def test_a_dump_in_a_folder_may_be_packed(name):
    Path("empty", name).touch()
    assert opened(dump("empty")).files() == [Path("empty", name)]


@given(st.sets(st.integers(1, 10**6), min_size=1, max_size=8))
def test_a_pattern_lists_its_files_in_the_order_of_their_numbers(tmp_path_factory, numbers):
    folder = tmp_path_factory.mktemp("parts")
    for number in numbers:
        (folder / f"part{number}.xml").touch()
    (folder / "part.xml.part").touch()
    found = opened(dump(folder / "part*.xml")).files()
    assert found == [folder / f"part{number}.xml" for number in sorted(numbers)]


def test_a_pattern_may_be_relative_or_absolute(tmp_path):
    Path("empty/x1.xml").touch()
    assert [file.resolve() for file in opened(dump("empt?/x[0-9].xml")).files()] == [tmp_path / "empty/x1.xml"]
    assert opened(dump(tmp_path / "empt?/x[0-9].xml")).files() == [tmp_path / "empty/x1.xml"]


def test_a_file_whose_name_is_a_pattern_is_read(tmp_path):
    for name in ("x[1].xml", "x1.xml"):
        Path(name).touch()
    assert opened(dump("x[1].xml")).files() == [tmp_path / "x[1].xml"]


def test_each_format_lists_the_files_that_it_reads(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "notes.txt"):
        Path("empty", name).touch()
    assert opened({"format": "articles", "path": "empty"}).files() == [Path("empty/a.jsonl"), Path("empty/b.jsonl")]
    assert opened({"format": "passages", "path": "p.tsv"}).files() == [tmp_path / "p.tsv"]
    write_questions()
    assert opened(GOLD).files() == []


@pytest.mark.parametrize("kind", ["dump", "articles", "passages"])
def test_every_format_takes_a_pattern_with_any_folder_before_it(tmp_path, kind):
    Path("parts/below").mkdir(parents=True)
    for name in ("parts/p2.x", "parts/p10.x", "parts/below/p1.x"):
        Path(name).touch()
    for start in ("", f"{tmp_path}/"):
        found = [file.resolve() for file in opened({"format": kind, "path": f"{start}parts/p*.x"}).files()]
        assert found == [tmp_path / "parts/p2.x", tmp_path / "parts/p10.x"]
        assert len(opened({"format": kind, "path": f"{start}parts/**/*.x"}).files()) == 3


def test_a_folder_of_passages_is_read_with_its_subfolders():
    Path("many/below").mkdir(parents=True)
    Path("many/p10.jsonl").write_text('{"id": "3", "contents": "c"}\n')
    Path("many/p2.tsv.gz").write_bytes(gzip.compress(b"id\ttext\ttitle\n1\ta\tA\n"))
    Path("many/below/p3.jsonl").write_text('{"id": "2", "contents": "b"}\n')
    for name in ("many/README.md", "many/.p1.jsonl", "many/p.jsonl.part"):
        Path(name).write_text("no passage")
    source = opened({"format": "passages", "path": "many"})
    assert [passage.id for unit in source.work_units() for passage in unit.content] == ["1", "2", "3"]
    assert source.size() == sum(path.stat().st_size for path in source.files())
    assert len(source.fingerprint({})["files"]) == 3


def test_the_same_bytes_elsewhere_are_the_same_source():
    Path("elsewhere").mkdir()
    Path("elsewhere/another-name.xml").write_bytes(DUMP)
    assert known(dump("elsewhere/another-name.xml")) == known(dump()) == known(dump("elsewhere"))


def test_a_changed_byte_is_another_source():
    Path("e.xml").write_bytes(DUMP.replace(b"page 5", b"page 6", 1))
    assert Path("e.xml").stat().st_size == len(DUMP)
    assert known(dump("e.xml")) != known(dump())


def test_the_same_files_in_another_order_are_another_source():
    for number, data in enumerate([DUMP, b"<other/>"]):
        for folder, name in (("one", f"{number}.xml"), ("same", f"part{number}.xml"), ("turned", f"{1 - number}.xml")):
            Path(folder).mkdir(exist_ok=True)
            Path(folder, name).write_bytes(data)
    assert known(dump("one")) == known(dump("same")) != known(dump("turned"))


@pytest.mark.parametrize("setting", [{"profile": "release"}, {"words": 50}, {"wrap": False}], ids=str)
def test_a_changed_setting_is_another_source(setting):
    assert known(dump(**setting)) != known(dump())


def test_the_same_file_in_another_format_is_another_source():
    assert known({"format": "articles", "path": "a.jsonl"}) != known({"format": "passages", "path": "a.jsonl"})


def test_a_source_with_its_defaults_written_out_is_the_same_source():
    written = {"wrap": True, "words": 100, "profile": "ifqa"}
    assert known(dump(**written)) == known(dump())
    articles = {"format": "articles", "path": "a.jsonl"}
    assert known(articles | {"share": 1.0, "words": 100}) == known(articles)
    assert known(articles | {"share": 0.5}) != known(articles)


def test_gold_has_the_identity_of_its_questions_in_any_folder(monkeypatch):
    write_questions()
    before = known(gold())
    write_questions(indent=4)  # the layout of the file does not matter
    assert known(gold()) == before
    write_questions("six")
    assert known(gold()) != before
    monkeypatch.chdir("empty")
    write_questions()
    assert known(gold()) == before


def test_the_questions_of_every_split_are_part_of_gold_s_identity():
    for split in ("dev", "train"):
        write_questions(split=split)
    both = ["full-dev", "full-train"]
    before = known(gold(splits=both))
    assert len({before, known(gold()), known(gold(splits=["full-train"]))}) == 3
    write_questions("six", split="train")
    assert known(gold(splits=both)) != before


def test_each_gold_passage_of_several_splits_is_taken_once_without_title():
    for split in ("dev", "train"):
        write_questions(split=split)
    [unit] = opened(gold(splits=["full-dev", "full-train"])).work_units()
    assert [(passage.title, passage.text) for passage in unit.content] == [("", "Gold one.")]


def made_up(file):
    stat = file.stat()
    return {str(file): [stat.st_size, stat.st_mtime_ns, "made up"]}


def test_a_known_hash_is_used_while_size_and_time_of_change_are_equal(tmp_path, monkeypatch):
    monkeypatch.setattr(source_files, "_SMALL", 0)
    file, facts = tmp_path / "d.xml", made_up(tmp_path / "d.xml")
    stat = file.stat()
    assert file_facts(file, facts) == (stat.st_size, stat.st_mtime_ns, "made up")
    assert opened(dump()).fingerprint(facts)["files"] == ["made up"]


def test_a_small_source_is_hashed_whatever_was_known_of_it(tmp_path, monkeypatch):
    facts = made_up(tmp_path / "d.xml")
    assert opened(dump()).fingerprint(facts)["files"] == [hashlib.sha256(DUMP).hexdigest()]
    monkeypatch.setattr(source_files, "_SMALL", len(DUMP) - 1)
    assert opened(dump()).fingerprint(facts)["files"] == ["made up"]


def test_a_known_hash_is_not_used_for_a_touched_file(tmp_path):
    file, facts = tmp_path / "d.xml", made_up(tmp_path / "d.xml")
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    assert file_facts(file, facts)[2] == hashlib.sha256(DUMP).hexdigest()


def test_a_known_hash_is_not_used_for_a_file_of_another_size(tmp_path):
    file, facts = tmp_path / "d.xml", made_up(tmp_path / "d.xml")
    modified = file.stat().st_mtime_ns
    file.write_bytes(DUMP + b"\n")
    os.utime(file, ns=(0, modified))
    assert file_facts(file, facts)[2] == hashlib.sha256(DUMP + b"\n").hexdigest()


def test_a_hash_of_another_file_or_outside_a_table_is_not_used(tmp_path):
    os.utime("d.xml", ns=(0, 0))
    Path("e.xml").write_bytes(DUMP[::-1])
    os.utime("e.xml", ns=(0, 0))
    true = hashlib.sha256(DUMP).hexdigest()
    assert file_facts(tmp_path / "d.xml", made_up(tmp_path / "e.xml"))[2] == true
    assert file_facts(tmp_path / "d.xml", [1, 2])[2] == true  # a manifest written by hand


def test_facts_read_back_from_json_give_the_same_identities(monkeypatch):
    monkeypatch.setattr(source_files, "_SMALL", 0)
    several = [dump(), {"format": "articles", "path": "a.jsonl"}]
    facts = json.loads(
        json.dumps({path: of_file for table in several for path, of_file in opened(table).facts().items()})
    )
    assert [known(one, facts) for one in several] == [known(one) for one in several]
    made_up = {path: [*fact[:2], "made up"] for path, fact in facts.items()}
    assert [opened(one).fingerprint(made_up)["files"] for one in several] == [
        ["made up"]
    ] * 2  # no file is hashed again


def test_sources_have_the_size_of_their_files():
    write_questions()
    both = [opened(dump()), opened({"format": "passages", "path": "p.tsv"})]
    assert size_of(both) == len(DUMP) + len("1\ttext\ttitle\n")
    assert opened(GOLD).size() == 0
