"""A folder of documents as a source: files that are read, skipped, and read again after a
change.
"""

import io
import json
import os
import shutil
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from mixed_documents import make
from opened_sources import documents

from ifqa.config.corpus import load_corpus
from ifqa.corpus import shard_writer
from ifqa.corpus.documents import readers, source
from ifqa.corpus.documents.folder import require_documents
from ifqa.corpus.documents.left_out import describe_left_out, mend
from ifqa.corpus.passage_store import PassageStore
from ifqa.corpus.sources import parse_source
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.corpus_build import CorpusBuild
from ifqa.plugins import Plugins


def folders(root):
    """A folder of documents, and one to work in."""
    (root / "work/indexes").mkdir(parents=True)
    return make(root / "docs")


@pytest.fixture
def docs(tmp_path, monkeypatch):
    docs = folders(tmp_path)
    monkeypatch.chdir(tmp_path / "work")
    return docs


def corpus(path, name="mine", **settings):
    section = {"format": "documents", "path": str(path), **settings}
    lines = [f"{key} = {json.dumps(setting)}" for key, setting in section.items()]
    Path(f"indexes/{name}.toml").write_text("[[passages.sources]]\n" + "\n".join(lines))
    return load_corpus(name, workers=1)


def build(path, **settings):
    return {
        passage.id: passage
        for passage in PassageStore(stages.build_passages(corpus(path, **settings)))
    }


def files_read(monkeypatch):
    """A function that lists the files read from now on."""
    spy = Mock(wraps=readers.WORKER.read)
    monkeypatch.setattr(readers.WORKER, "read", spy)
    return lambda: [call.args[0]["name"] for call in spy.call_args_list]


def skipped_files():
    return {
        file["id"]: file["reason"]
        for file in shard_writer.read_bad_pages(Path("indexes/mine/passages"))
    }


def times_of_change(folder):
    return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A build of a folder that also has a file of 3 MB."""
    root = tmp_path_factory.mktemp("built")
    docs = folders(root)
    (docs / "big.txt").write_text("x" * 3_000_000)
    before = times_of_change(docs)
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as stderr:
        patch.chdir(root / "work")
        files = {name.partition("#")[0] for name in build(docs, max_mb=2)}
        skipped = skipped_files()
    after = times_of_change(docs)
    message = stderr.getvalue()
    return SimpleNamespace(
        files=files, skipped=skipped, message=message, before=before, after=after
    )


def test_documents_of_every_kind_are_read(built):
    assert len(built.files) == 27
    assert {Path(name).suffix for name in built.files} == set(
        ".pdf .html .htm .md .rst .txt .docx .epub .csv .jsonl".split()
    )


def test_a_build_does_not_change_the_folder(built):
    assert built.after == built.before


def test_other_files_are_listed_with_their_reasons(built):
    assert built.skipped == {
        ".git": "a hidden folder",
        "notes/.secret.txt": "a hidden file",
        "picture.jpg": "no kind of document that is read (.jpg)",
        "big.txt": "3 MB, more than max_mb = 2",
        "notes/empty.txt": "empty",
        "manuals/broken.pdf": built.skipped["manuals/broken.pdf"],
        "manuals/scanned.pdf": "no text on its 2 pages: if they were scanned, --ocr reads them",
        "notes/linked.txt": "a link; links are not followed",
        "notes/loop": "a link; links are not followed",
    }


def test_a_build_says_which_files_are_left_out(built):
    for line in (
        "2 hidden: rename without the dot to have it read",
        "2 linked: put the file itself into the folder",
        "1 .jpg: pictures: ocrmypdf IN OUT.pdf makes a PDF with their text",
        "big.txt: 3 MB, more than max_mb = 2; start with --max-mb, or raise max_mb in "
        "indexes/mine.toml",
    ):
        assert f"left out: {line}\n" in built.message


def other(*names):
    """Files that no reader takes."""
    return [{"id": name, "kind": "other", "reason": "no kind of document"} for name in names]


def test_files_that_no_reader_takes_are_counted_by_the_way_to_read_them():
    files = other("a.pages", "b.pages", "c/D.WPS", "e.xyz", "f.xyz", "g.so", "h", "i.numbers")
    assert list(describe_left_out(files, "mine")) == [
        "left out: 2 .pages, 1 .wps: save as .docx: soffice --headless --convert-to docx FILE",
        "left out: 1 .numbers: save as .xlsx: soffice --headless --convert-to xlsx FILE",
        "left out: 2 .xyz, 1 .so, 1 without a usual ending: not read as documents",
    ]


def test_an_ending_that_is_named_steers_no_terminal():
    [line] = describe_left_out(other("a.\x1b[2J", f"b.{'x' * 99}"), "mine")
    assert line == ("left out: 1 .\ufffd[2j, 1 without a usual ending: not read as documents")


def test_many_endings_are_summed_up():
    [line] = describe_left_out(other(*(f"a.y{n:02}" for n in range(20))), "mine")
    assert line.endswith("1 .y07, 12 others: not read as documents")


def test_files_of_several_folders_have_the_prefix_of_theirs(docs):
    Path("indexes/mine.toml").write_text(
        "".join(
            f"[[passages.sources]]\nformat = 'documents'\npath = '{docs}'\n"
            f"include = ['*.md']\nprefix = '{prefix}'\n"
            for prefix in ("left", "right")
        )
    )
    store = PassageStore(stages.build_passages(load_corpus("mine", workers=1)))
    ids = [passage.id for passage in store]
    left = [passage_id.removeprefix("left/") for passage_id in ids[: len(ids) // 2]]
    right = [passage_id.removeprefix("right/") for passage_id in ids[len(ids) // 2 :]]
    assert left == right != ids


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """Builds of a folder: at first, unchanged, after edits, and as another corpus."""
    root = tmp_path_factory.mktemp("rebuilt")
    docs = folders(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root / "work")
        patch.setattr(source, "_FILES", 5)
        first = build(docs)
        names = files_read(patch)
        unchanged = build(docs)
        read_unchanged = names()
        (docs / "notes/log03.txt").write_text("The lamp is out.\n")
        (docs / "notes/new.md").write_text("A new note.\n")
        (docs / "notes/log04.txt").unlink()
        os.utime(docs / "notes/log05.txt", ns=(1, 1))  # touched: the same bytes
        with redirect_stderr(io.StringIO()) as stderr:
            second = build(docs)
        read_edited = names()[len(read_unchanged) :]
        other = build(docs, name="other")
    return SimpleNamespace(
        first=first,
        unchanged=unchanged,
        second=second,
        other=other,
        read_unchanged=read_unchanged,
        read_edited=read_edited,
        message=stderr.getvalue(),
        indexes=root / "work/indexes",
    )


def test_a_build_without_changes_reads_no_file(rebuilt):
    assert rebuilt.unchanged == rebuilt.first
    assert rebuilt.read_unchanged == []


def test_only_files_with_other_bytes_are_read_again(rebuilt):
    assert sorted(rebuilt.read_edited) == ["notes/log03.txt", "notes/new.md"]


def test_a_build_says_which_files_have_changed(rebuilt):
    wanted = (
        "2 files read again, 28 unchanged; 1 changed (notes/log03.txt); 1 new (notes/new.md); "
        "1 removed (notes/log04.txt)"
    )
    assert f"mine: {wanted}\n" in rebuilt.message


def test_passages_follow_their_files(rebuilt):
    different = rebuilt.first.keys() ^ rebuilt.second.keys()
    changed = {name for name in different if not name.startswith("notes/log0")}
    assert changed == {"notes/new.md#0:line=1"}
    assert rebuilt.second["notes/log03.txt#0:line=1"].text == "The lamp is out."


def test_the_bytes_of_a_second_build_are_those_of_a_new_one(rebuilt):
    assert rebuilt.other == rebuilt.second
    mine = rebuilt.indexes / "mine/passages"
    other = rebuilt.indexes / "other/passages"
    assert len([*other.glob("passages-*.jsonl")]) > 3
    for path in set(mine.iterdir()) - {mine / "manifest.json"}:
        assert path.read_bytes() == (other / path.name).read_bytes()


def test_an_edit_that_only_the_bytes_show_is_read(docs):
    page = docs / "notes/log03.txt"
    page.write_text("The lamp is lit.\n")
    build(docs)
    before = page.stat()
    page.write_text("The lamp is out.\n")
    os.utime(page, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert build(docs)["notes/log03.txt#0:line=1"].text == "The lamp is out."


def test_a_path_too_long_for_the_system_is_left_out_with_its_reason(docs, monkeypatch):
    with monkeypatch.context() as patch:
        patch.chdir(docs)
        for _ in range(22):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    assert "stars.csv#0:line=2" in build(docs)
    [(name, reason)] = [
        (name, reason) for name, reason in skipped_files().items() if len(name) > 3000
    ]
    assert reason == "cannot be read (File name too long)"
    assert (
        mend({"kind": "closed", "id": name, "reason": reason}, "mine")
        == "give its folders shorter names"
    )


def test_damaged_passages_are_made_again(docs):
    first = build(docs)
    shard = Path("indexes/mine/passages/passages-00000.jsonl")
    shard.write_bytes(shard.read_bytes().replace(b"Ruth", b"Rita"))
    assert build(docs) == first


def test_files_are_read_again_with_other_settings(docs, monkeypatch):
    build(docs)
    names = files_read(monkeypatch)
    build(docs, words=50)
    assert len(names()) > 20


def test_files_are_read_again_by_a_later_reader(docs, monkeypatch):
    build(docs, words=50)
    names = files_read(monkeypatch)
    monkeypatch.setattr(source, "VERSION", source.VERSION + 1)
    build(docs, words=50)
    assert len(names()) > 20


def test_bad_articles_are_reported_apart_from_documents_left_out(docs, capsys):
    notes = corpus(docs / "notes")
    articles = [
        {"id": "1", "title": "Mill", "text": "It grinds rye."},
        {"id": "a b", "title": "Lamp", "text": "Lit."},
    ]
    Path("a.jsonl").write_text("".join(json.dumps(article) + "\n" for article in articles))
    source = parse_source({"format": "articles", "path": "a.jsonl"}, "mine", Plugins())
    stages.build_passages(replace(notes, sources=(source, *notes.sources)))
    message = capsys.readouterr().err
    assert "1 bad page: indexes/mine/passages/bad_pages.jsonl\n" in message
    assert "left out: 1 hidden: " in message
    assert "left out: 2 linked: " in message
    assert "left out: empty.txt: empty\n" in message
    assert "a b" not in message


def test_a_file_whose_name_is_not_utf_8_is_read_once(docs, monkeypatch):
    (docs / "caf\udce9.txt").write_text("The lamp is lit.\n")
    build(docs)
    names = files_read(monkeypatch)
    (docs / "notes/new.md").write_text("A new note.\n")
    assert "caf%E9.txt#0:line=1" in build(docs)
    assert names() == ["notes/new.md"]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (
            {"include": ["*.pdf"]},
            {
                "manuals/annual report.pdf",
                "manuals/broken.pdf",
                "manuals/handbook.pdf",
                "manuals/scanned.pdf",
            },
        ),
        ({"include": ["WEB/*"], "exclude": ["*.HTM"]}, {"web/ferry.html"}),
        (
            {"exclude": ["notes", "*.pdf", "web/", "books", "*.csv"]},
            {"manuals/lease.docx", "tools.jsonl"},
        ),
    ],
)
def test_patterns_choose_files(docs, settings, wanted):
    assert {
        file.name for file in documents(str(docs), **settings).scanned if not file.kind
    } == wanted
    assert [file.name for file in documents(str(docs / "notes/french.txt")).scanned] == [
        "french.txt"
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": "nowhere"}, "documents not found: there is no "),
        ({"overlap": 100}, "wanted fewer words than a passage has"),
        ({"include": "x"}, "'include': wanted a list of texts"),
        ({"max_mb": 0}, "'max_mb': wanted a number above 0"),
    ],
)
def test_wrong_settings_are_refused(docs, settings, message):
    with pytest.raises(IfqaError, match=message):
        build(**{"path": docs} | settings)


def test_a_folder_without_text_or_without_the_library_for_its_pdfs_is_refused(docs, monkeypatch):
    (docs / "only").mkdir()
    with pytest.raises(IfqaError, match=r"its sources hold no passage; no file in .*only$"):
        build(docs / "only")
    (docs / "only/a.txt").write_text(" \n")
    with pytest.raises(IfqaError, match=r"its sources hold no passage; left out: a\.txt: empty"):
        build(docs / "only")
    with pytest.raises(IfqaError, match="--docs ~nobody-of-this-name/papers: there is no "):
        require_documents("~nobody-of-this-name/papers")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("tools.jsonl"))
    assert "no permission to read it" in {
        file.reason for file in documents(str(docs)).scanned if file.kind == "closed"
    }


def test_a_file_that_cannot_be_hashed_is_skipped_until_it_can(docs, monkeypatch):
    def fail_on_log03(function):
        def read(path, *rest, **more):
            if path == docs / "notes/log03.txt":
                raise OSError(5, "no disk")
            return function(path, *rest, **more)

        return read

    with monkeypatch.context() as patch:
        patch.setattr(source, "sha256", fail_on_log03(source.sha256))
        patch.setattr(Path, "open", fail_on_log03(Path.open))
        names = {locator.partition("#")[0] for locator in build(docs)}
    assert {"notes/log02.txt", "notes/log03.txt"} & names == {"notes/log02.txt"}
    assert skipped_files()["notes/log03.txt"] == "cannot be read (no disk)"
    assert "notes/log03.txt" in {locator.partition("#")[0] for locator in build(docs)}


def change_while_reading(monkeypatch, change):
    """Have `change` called before each file that is read."""
    read = source.read_passages

    def changed(*given):
        change()
        return read(*given)

    monkeypatch.setattr(source, "read_passages", changed)


def test_a_log_that_grows_is_read_as_it_was_listed(docs, monkeypatch):
    log = docs / "notes/log03.txt"
    log.write_text("The lamp is lit.\n")

    def grow():
        with log.open("a") as handle:
            handle.write("It is out.\n")

    with monkeypatch.context() as patch:
        change_while_reading(patch, grow)
        first = build(docs)
    assert first["notes/log03.txt#0:line=1"].text == "The lamp is lit."
    [later] = [text for name, text in build(docs).items() if name.startswith("notes/log03.txt#0")]
    assert later.text.startswith("The lamp is lit. It is out.")


def test_a_file_that_is_written_again_is_left_out_until_the_next_build(docs, monkeypatch):
    log = docs / "notes/log03.txt"
    with monkeypatch.context() as patch:
        change_while_reading(patch, lambda: log.write_text("The lamp is out.\n"))
        first = build(docs)
    assert skipped_files()["notes/log03.txt"] == readers.CHANGED
    assert "notes/log02.txt" in {locator.partition("#")[0] for locator in first}
    assert build(docs)["notes/log03.txt#0:line=1"].text == "The lamp is out."


def test_a_file_left_out_for_a_change_is_told_with_what_helps(docs):
    file = {"id": "a.log", "kind": "bad", "reason": readers.CHANGED}
    assert list(describe_left_out([file], "mine")) == [
        "left out: a.log: it changed while it was being read; run the same command again"
    ]


@pytest.mark.parametrize("keeps", [True, False])
def test_the_end_of_a_stage_lists_no_documents_again(docs, keeps):
    held = CorpusBuild(corpus(docs))
    [listed] = held.sources
    held.refresh(keeps_documents=keeps)
    assert (held.sources[0] is listed) == keeps


def test_output_of_ifqa_in_the_folder_is_no_document(docs, monkeypatch, capsys):
    monkeypatch.chdir(docs)
    (docs / "indexes").mkdir()
    before = build(docs)
    shutil.copytree(docs / "indexes", docs / "notes/another/indexes")
    (docs / "experiments").mkdir()
    for name in ("RESULTS.md", "mine.md"):
        (docs / "experiments" / name).write_text("The keeper is Ada.")
    after = build(docs)
    assert after.keys() - before.keys() == {"experiments/mine.md#0:line=1"}
    ours = {
        file["id"]
        for file in shard_writer.read_bad_pages(Path("indexes/mine/passages"))
        if file["kind"] == "ifqa"
    }
    assert ours == {
        "indexes/mine.toml",
        "indexes/mine/passages",
        "notes/another/indexes/mine.toml",
        "notes/another/indexes/mine/passages",
        "experiments/RESULTS.md",
    }
    capsys.readouterr()
    build(docs)
    assert ": up to date\n" in capsys.readouterr().err
    for below in ("", "/passages-00000.jsonl"):
        assert [file.reason for file in documents(f"indexes/mine/passages{below}").scanned] == [
            "written by ifqa"
        ]


@pytest.mark.parametrize(
    "manifest", ["[" * 100_000, '{"record": 1}', '{"name": "An app", "icons": []}']
)
def test_a_folder_with_a_manifest_of_another_program_is_read(manifest, docs):
    (docs / "app").mkdir()
    (docs / "app/manifest.json").write_text(manifest)
    (docs / "app/readme.md").write_text("The keeper is Ada.")
    assert "app/readme.md" in {file.name for file in documents(str(docs)).scanned if not file.kind}
