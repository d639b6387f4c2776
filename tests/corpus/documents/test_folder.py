"""A folder of documents as a source: what is read, what is left out, and what is read again after a change."""

import json
import os
import shutil
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from mixed_documents import make

from ifqa.config.corpus import load_corpus
from ifqa.corpus import shards
from ifqa.corpus.documents import readers, source
from ifqa.corpus.documents.folder import existing
from ifqa.corpus.documents.source import Documents
from ifqa.corpus.store import PassageStore
from ifqa.corpus.work_units import make_shard
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.storage import files


@pytest.fixture
def docs(tmp_path, monkeypatch):
    (tmp_path / "work/indexes").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return make(tmp_path / "docs", huge=0)


def corpus(path, name="mine", **settings):
    lines = [
        f"{key} = {json.dumps(value)}" for key, value in {"format": "documents", "path": str(path), **settings}.items()
    ]
    Path(f"indexes/{name}.toml").write_text("[[passages.sources]]\n" + "\n".join(lines))
    return load_corpus(name, workers=1)


def build(path, **settings):
    return {one.id: one for one in PassageStore(stages.build_passages(corpus(path, **settings)))}


def read(monkeypatch):
    """The names of the files whose bytes are read as documents from now on."""
    names, plain = [], readers.WORKER.read

    def read(request, data):
        names.append(request["name"])
        return plain(request, data)

    monkeypatch.setattr(readers.WORKER, "read", read)
    return names


def test_every_kind_of_document_is_found_and_the_folder_is_left_as_it_was(docs):
    before = {path: path.lstat().st_mtime_ns for path in docs.rglob("*")}
    files = {one.partition("#")[0] for one in build(docs)}
    assert len(files) == 27
    assert {Path(one).suffix for one in files} == {
        ".pdf",
        ".html",
        ".htm",
        ".md",
        ".rst",
        ".txt",
        ".docx",
        ".epub",
        ".csv",
        ".jsonl",
    }
    assert {path: path.lstat().st_mtime_ns for path in docs.rglob("*")} == before


def test_what_is_left_out_is_listed_with_its_reason(docs, capsys):
    (docs / "big.txt").write_text("x" * 3_000_000)
    build(docs, max_mb=2)
    listed = {one["id"]: one["reason"] for one in shards.bad_pages(Path("indexes/mine/passages"))}
    assert listed == {
        ".git": "a hidden folder", "notes/.secret.txt": "a hidden file", "picture.jpg": "no kind of document that is read (.jpg)",
        "big.txt": "3 MB, more than max_mb = 2", "notes/empty.txt": "empty", "manuals/broken.pdf": listed["manuals/broken.pdf"],
        "manuals/scanned.pdf": "no text on its 2 pages: if they were scanned, run OCR on the file first",
        "notes/linked.txt": "a link; links are not followed", "notes/loop": "a link; links are not followed",
    }  # fmt: skip
    said = capsys.readouterr().err
    assert "left out: 2 hidden, 2 links, 1 of kinds that are not read\n" in said
    assert "left out: big.txt: 3 MB, more than max_mb = 2\n" in said


def test_any_number_of_files_can_be_left_out(docs, monkeypatch):
    monkeypatch.setattr(files, "LONGEST_LINE", 20_000)  # of the log, which lists them
    monkeypatch.setattr(source, "_LISTED", 100)
    for number in range(300):
        (docs / f"picture {number}.jpg").touch()
    build(docs)
    assert sum(one["kind"] == "other" for one in shards.bad_pages(Path("indexes/mine/passages"))) == 301


def test_only_changed_and_new_files_are_read_again(docs, monkeypatch, capsys):
    first, names = build(docs), read(monkeypatch)
    assert build(docs) == first
    assert names == []
    (docs / "notes/log03.txt").write_text("The lamp is out.\n")
    (docs / "notes/new.md").write_text("A new note.\n")
    (docs / "notes/log04.txt").unlink()
    os.utime(docs / "notes/log05.txt", ns=(1, 1))  # touched: the same bytes
    capsys.readouterr()
    second = build(docs)
    assert sorted(names) == ["notes/log03.txt", "notes/new.md"]
    wanted = "2 files read again, 28 unchanged; 1 changed (notes/log03.txt); 1 new (notes/new.md); 1 removed (notes/log04.txt)"
    assert f"mine: {wanted}\n" in capsys.readouterr().err
    assert {one for one in first.keys() ^ second.keys() if not one.startswith("notes/log0")} == {
        "notes/new.md#0:line=1"
    }
    assert second["notes/log03.txt#0:line=1"].text == "The lamp is out."


def test_articles_and_documents_of_a_corpus_are_reported_apart(docs, capsys):
    built = corpus(docs / "notes")
    articles = [{"id": "1", "title": "Mill", "text": "It grinds rye."}, {"id": "a b", "title": "Lamp", "text": "Lit."}]
    Path("a.jsonl").write_text("".join(json.dumps(article) + "\n" for article in articles))
    stages.build_passages(replace(built, sources=({"format": "articles", "path": "a.jsonl"}, *built.sources)))
    said = capsys.readouterr().err
    assert "1 bad page: indexes/mine/passages/bad_pages.jsonl\n" in said
    assert "left out: 1 hidden, 2 links\n" in said
    assert "left out: empty.txt: empty\n" in said
    assert "a b" not in said


def test_a_file_whose_name_is_not_utf_8_is_read_once(docs, monkeypatch):
    (docs / "caf\udce9.txt").write_text("The lamp is lit.\n")
    build(docs)
    names = read(monkeypatch)
    (docs / "notes/new.md").write_text("A new note.\n")
    assert "caf%E9.txt#0:line=1" in build(docs)
    assert names == ["notes/new.md"]


def test_increments_give_the_bytes_of_a_new_build(docs):
    build(docs)
    (docs / "notes/log03.txt").write_text("The lamp is out.\n")
    build(docs)
    build(docs, name="other")
    files = [
        {
            path.name: path.read_bytes()
            for path in Path(f"indexes/{name}/passages").iterdir()
            if path.name != "manifest.json"
        }
        for name in ("mine", "other")
    ]
    assert files[0].keys() == files[1].keys()
    assert {name for name in files[0] if files[0][name] != files[1][name]} == set()


def test_other_settings_read_everything_again(docs, monkeypatch):
    build(docs)
    names = read(monkeypatch)
    build(docs, words=50)
    assert len(names) > 20


def test_readers_of_a_later_version_read_everything_again(docs, monkeypatch):
    build(docs)
    monkeypatch.setattr(source, "VERSION", source.VERSION + 1)
    names = read(monkeypatch)
    build(docs)
    assert len(names) > 20


def test_damaged_passages_are_not_used_again(docs, monkeypatch):
    first = build(docs)
    shard = Path("indexes/mine/passages/passages-00000.jsonl")
    shard.write_bytes(shard.read_bytes().replace(b"Ruth", b"Rita"))
    assert build(docs) == first


def test_a_stopped_build_goes_on_after_its_finished_blocks(docs, monkeypatch):
    monkeypatch.setattr(source, "_FILES", 5)
    undisturbed, names = build(docs, name="other"), read(monkeypatch)

    def make_three(block):
        if block.number == 3:
            raise KeyboardInterrupt
        return make_shard(block)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stages, "make_shard", make_three)
        build(docs)
    done = len(names)
    assert build(docs) == undisturbed
    assert len(names) == len(set(names))
    assert 5 < done < len(names)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"include": ["*.pdf"]}, {"manuals/annual report.pdf", "manuals/broken.pdf", "manuals/handbook.pdf", "manuals/scanned.pdf"}),
        ({"include": ["web/*"], "exclude": ["*.htm"]}, {"web/ferry.html"}),
        ({"exclude": ["notes", "*.pdf", "web/", "books", "*.csv"]}, {"manuals/lease.docx", "tools.jsonl"}),
    ],
)  # fmt: skip
def test_patterns_choose_files(docs, settings, wanted):
    assert {one.name for one in Documents(str(docs), **settings).scanned if not one.kind} == wanted


def test_a_single_file_is_a_source(docs):
    assert set(build(docs / "notes/french.txt")) == {"french.txt#0:line=1"}


def test_a_folder_without_text_is_refused_with_the_reasons(docs):
    (docs / "only").mkdir()
    (docs / "only/a.txt").write_text(" \n")
    with pytest.raises(IfqaError, match=r"its sources hold no passage; left out: a\.txt: empty"):
        build(docs / "only")
    (docs / "only/a.txt").unlink()
    with pytest.raises(IfqaError, match=r"its sources hold no passage; no file in .*only$"):
        build(docs / "only")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"path": "nowhere"}, "documents not found: there is no "), ({"overlap": 100}, "wanted fewer words than a passage has"),
     ({"include": "x"}, "'include': wanted a list of texts"), ({"max_mb": 0}, "'max_mb': wanted a number above 0")],
)  # fmt: skip
def test_wrong_settings_are_refused(docs, settings, complaint):
    with pytest.raises(IfqaError, match=complaint):
        build(**{"path": docs} | settings)


def test_a_pdf_without_its_library_is_refused_with_the_way_to_install_it(docs, monkeypatch):
    monkeypatch.setattr("ifqa.corpus.documents.pdf._is_installed", lambda: False)
    with pytest.raises(IfqaError, match=r"pip install 'ifqa\[documents\]'"):
        build(docs)


def test_a_file_that_cannot_be_read_is_left_out(docs, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("tools.jsonl"))
    assert [one.reason for one in Documents(str(docs)).scanned if one.kind == "closed"] == ["no permission to read it"]


@pytest.mark.parametrize(
    ("error", "listed"), [(FileNotFoundError(2, "gone"), []), (OSError(5, "no disk"), ["cannot be read (no disk)"])]
)
def test_a_file_that_cannot_be_hashed_is_left_out_until_it_can(docs, monkeypatch, error, listed):
    lost = docs / "notes/log03.txt"
    plain, plain_bytes = source.sha256, Path.read_bytes

    def refuse(path):
        raise error

    monkeypatch.setattr(source, "sha256", lambda path: refuse(path) if path == lost else plain(path))
    monkeypatch.setattr(Path, "read_bytes", lambda path: refuse(path) if path == lost else plain_bytes(path))
    names = {one.partition("#")[0] for one in build(docs)}
    bad = shards.bad_pages(Path("indexes/mine/passages"))
    assert {"notes/log02.txt", "notes/log03.txt"} & names == {"notes/log02.txt"}
    assert [one["reason"] for one in bad if one["id"] == "notes/log03.txt"] == listed
    monkeypatch.setattr(source, "sha256", plain)
    monkeypatch.setattr(Path, "read_bytes", plain_bytes)
    assert "notes/log03.txt" in {one.partition("#")[0] for one in build(docs)}


def test_what_ifqa_writes_into_the_folder_is_no_document(docs, monkeypatch, capsys):
    monkeypatch.chdir(docs)
    (docs / "indexes").mkdir()
    before = build(docs)
    shutil.copytree(docs / "indexes", docs / "notes/another/indexes")
    (docs / "experiments").mkdir()
    (docs / "experiments/RESULTS.md").write_text("# Results\n\nThe lamp is lit.")
    (docs / "experiments/mine.md").write_text("The keeper is Ada.")
    after = build(docs)
    assert after.keys() - before.keys() == {"experiments/mine.md#0:line=1"}
    listed = {one["id"] for one in shards.bad_pages(Path("indexes/mine/passages")) if one["kind"] == "ifqa"}
    assert listed == {"indexes/mine/passages", "notes/another/indexes/mine/passages", "experiments/RESULTS.md"}
    capsys.readouterr()
    build(docs)
    assert "made from exactly this before" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "/passages-00000.jsonl"])
def test_the_folder_of_an_index_is_no_folder_of_documents(docs, below):
    build(docs)
    left_out = Documents(f"indexes/mine/passages{below}").scanned
    assert [one.reason for one in left_out] == ["written by ifqa"]


@pytest.mark.parametrize("manifest", ["{}", "[" * 100_000, '{"record": 1}', '{"name": "An app", "icons": []}'])
def test_a_folder_with_a_manifest_of_another_program_is_read(manifest, docs):
    (docs / "app").mkdir()
    (docs / "app/manifest.json").write_text(manifest)
    (docs / "app/readme.md").write_text("The keeper is Ada.")
    assert "app/readme.md" in {one.name for one in Documents(str(docs)).scanned if not one.kind}


def test_a_file_over_which_its_reader_ends_is_left_out_with_the_reason(docs):
    style = '<w:style w:styleId="a"><w:name w:val="heading {}"/></w:style>'
    word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    parts = {
        "word/document.xml": f"<w:document {word}><w:p><w:r><w:t>A lamp.</w:t></w:r></w:p></w:document>",
        "word/styles.xml": f"<w:styles {word}>{style.format('1' * 5_000)}</w:styles>",
    }
    with zipfile.ZipFile(docs / "levels.docx", "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
    (docs / "deep.jsonl").write_text('{"text": ' + "[" * 950 + "]" * 950 + "}")
    far = (docs / "levels.docx").read_bytes()  # its last entry stands at 2^63, by a field of zip64
    entry, end = far.rindex(b"PK\x01\x02"), far.rindex(b"PK\x05\x06")
    field = struct.pack("<HHQ", 1, 8, 1 << 63)
    header = far[entry : entry + 30] + struct.pack("<H", len(field)) + far[entry + 32 : entry + 42] + b"\xff" * 4
    size = struct.pack("<L", struct.unpack("<L", far[end + 12 : end + 16])[0] + len(field))
    tail = far[end : end + 12] + size + far[end + 16 :]
    (docs / "far.docx").write_bytes(far[:entry] + header + far[entry + 46 : end] + field + tail)
    files = {name.partition("#")[0] for name in build(docs)}
    listed = {one["id"]: one["reason"] for one in shards.bad_pages(Path("indexes/mine/passages"))}
    assert len(files) == 27
    assert "OverflowError" in listed["far.docx"]
    assert "ValueError" in listed["levels.docx"]
    deep = ("RecursionError", "no text in it")  # Python 3.11 gives up, later ones read the lists to their end
    assert any(reason in listed["deep.jsonl"] for reason in deep)


def test_the_home_of_nobody_is_refused():
    with pytest.raises(IfqaError, match="--docs ~nobody-of-this-name/papers: there is no such user"):
        existing("~nobody-of-this-name/papers")
