"""Pyserini's published indexes, with its own cache, and an index that is made small here."""

import hashlib
import json
import tarfile
from dataclasses import replace
from importlib.metadata import version

import pytest
from file_server import serving

from ifqa.config.corpus import load_corpus
from ifqa.corpus.store import write_id_index
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.protocols import Requirement
from ifqa.records import Question
from ifqa.retrieval import prebuilt
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.jvm import java
from ifqa.retrieval.prebuilt import Entry
from ifqa.storage import download

TEXTS = {f"{n}": f"The red fox number{n} was running from {n + 3} hounds" for n in range(30)}


def write_passages(folder, texts):
    folder.mkdir(parents=True)
    lines = [json.dumps({"id": key, "title": "Fox", "contents": text}) for key, text in texts.items()]
    (folder / "passages-00000.jsonl").write_text("\n".join(lines) + "\n")
    write_id_index(folder)
    return folder


@pytest.fixture(scope="module")
def passages(tmp_path_factory):
    return write_passages(tmp_path_factory.mktemp("prebuilt") / "passages", TEXTS)


@pytest.fixture(scope="module")
def index(passages):
    """The index as its publisher makes it: Lucene's files alone, in the folder that is packed."""
    folder = passages.parent / "lucene-index.tiny.2021"
    BM25.build(passages, folder)
    (folder / "bm25.json").unlink()
    return folder


@pytest.fixture(scope="module")
def archive(index):
    packed = index.with_name(f"{index.name}.tar.gz")
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(index, index.name)
    return packed.read_bytes()


@pytest.fixture
def published(archive, index, tmp_path, monkeypatch):
    """A server with the archive, a table with an entry for it, and an empty cache."""
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    with serving() as server:
        path = f"/{index.name}.tar.gz"
        server.files[path] = archive
        server.entry = Entry(f"{server.url}{path}", len(archive), hashlib.md5(archive).hexdigest())
        monkeypatch.setitem(prebuilt.TABLE, "tiny", server.entry)
        yield server


@pytest.mark.skipif(version("pyserini") >= "2", reason="Pyserini 2 asks the network for its table")
@pytest.mark.parametrize("name", prebuilt.TABLE)
def test_the_table_is_pyserinis(name):
    java()  # before Pyserini starts a Java machine of its own
    from pyserini.prebuilt_index_info import TF_INDEX_INFO

    theirs = TF_INDEX_INFO[name]
    assert Entry(theirs["urls"][-1], theirs["size compressed (bytes)"], theirs["md5"]) == prebuilt.entry(name)


def ask(folder):
    return BM25(folder).search([Question("q", "Which fox ran from 12 hounds?")], 5)


def test_a_prebuilt_index_is_fetched_once_and_ranks_like_one_built_here(published, passages, index, archive, tmp_path):
    published.cut = len(archive) // 2 + 1  # the connection breaks once
    BM25.build(passages, tmp_path / "bm25", prebuilt="tiny")
    assert ask(tmp_path / "bm25") == ask(index)
    assert len(published.asked) == 2
    assert json.loads((tmp_path / "bm25/bm25.json").read_text()) == {
        "passages": 30,
        "stemmer": "porter",
        "title": False,
    }
    place = prebuilt.place("tiny")
    assert {path.name for path in place.parent.iterdir()} == {place.name, ".lock"}
    BM25.build(passages, tmp_path / "again", prebuilt="tiny")
    assert len(published.asked) == 2


def test_a_copy_in_pyserinis_cache_is_used_and_survives_there(published, index, tmp_path, monkeypatch):
    place = prebuilt.place("tiny")
    place.parent.mkdir(parents=True)
    place.mkdir()
    for path in index.iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    write_passages(tmp_path / "indexes/mine/source", TEXTS)
    (tmp_path / "indexes/mine.toml").write_text(
        '[[passages.sources]]\nformat = "passages"\npath = "indexes/mine/source/passages-00000.jsonl"\n'
        '[index.bm25]\nretriever = "bm25"\nprebuilt = "tiny"\n'
    )
    corpus = load_corpus("mine", tmp_path)
    assert BM25.build_requirements(corpus.folder / "bm25", prebuilt="tiny") == [Requirement("the prebuilt index tiny")]
    stages.build_passages(corpus)
    folder = stages.build_index(corpus, "bm25")
    assert ask(folder) == ask(index)
    assert published.asked == []
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["inputs"]["files"] == published.entry.md5
    for path in place.iterdir():
        path.unlink()
    assert ask(folder) == ask(index)
    newer = replace(published.entry, md5="0" * 32)
    monkeypatch.setitem(prebuilt.TABLE, "tiny", newer)
    with pytest.raises(IfqaError, match="HTTP 404"):
        published.files.clear()
        stages.build_index(corpus, "bm25")
    assert ask(folder) == ask(index)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({**TEXTS, "30": "one more"}, "it has 30, the corpus 31"),
        ({f"p{key}": text for key, text in TEXTS.items()}, "its passage '0' is not there"),
    ],
)
def test_an_index_of_other_passages_is_refused(texts, told, published, tmp_path):
    other = write_passages(tmp_path / "other", texts)
    with pytest.raises(IfqaError, match=f"prebuilt index tiny is not of this corpus's passages: {told}"):
        BM25.build(other, tmp_path / "bm25", prebuilt="tiny")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("absent", r"2021.tar.gz \(HTTP 404 Not Found\)"),
        ("checksum", "MD5 .*, published is 0{12}…; it was removed"),
        ("no archive", "cannot unpack .*; make room, or set PYSERINI_CACHE"),
    ],
)
def test_a_fault_of_the_download_is_one_line_and_the_cache_stays_empty(
    fault, told, published, passages, tmp_path, monkeypatch
):
    if fault == "absent":
        published.files.clear()
    elif fault == "checksum":
        monkeypatch.setitem(prebuilt.TABLE, "tiny", replace(published.entry, md5="0" * 32))
    else:
        content = b"no archive" * 100
        published.files = dict.fromkeys(published.files, content)
        wrong = replace(published.entry, md5=hashlib.md5(content).hexdigest(), bytes=len(content))
        monkeypatch.setitem(prebuilt.TABLE, "tiny", wrong)
    with pytest.raises(IfqaError, match=told):
        BM25.build(passages, tmp_path / "bm25", prebuilt="tiny")
    assert not prebuilt.place("tiny").exists()
    assert not (tmp_path / "bm25/bm25.json").exists()


def test_what_is_needed_names_the_bytes_and_the_command(published, tmp_path):
    folder = tmp_path / "indexes/tiny/bm25"
    [index] = BM25.build_requirements(folder, prebuilt="tiny")
    assert index.what == "the prebuilt index tiny"
    assert (
        index.how == f"{published.entry.bytes:,} bytes, fetched into {tmp_path / 'cache/indexes'} by: ifqa index tiny"
    )
    assert "did you mean 'tiny'" in BM25.build_requirements(folder, prebuilt="tini")[0].how
    assert BM25.build_requirements(folder) == []


def test_a_name_that_pyserini_lacks_and_settings_of_a_build_are_refused(published, passages, tmp_path):
    with pytest.raises(IfqaError, match="unknown prebuilt index 'tini'; did you mean 'tiny'"):
        BM25.build(passages, tmp_path / "bm25", prebuilt="tini")
    with pytest.raises(IfqaError, match="has the porter stemmer and no titles; leave out stemmer and title"):
        BM25.build(passages, tmp_path / "bm25", prebuilt="tiny", title=True)
