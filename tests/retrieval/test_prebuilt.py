"""Published indexes: fetched from a server on loopback, verified, opened, and read; the index is a
real one of Lucene.
"""

import hashlib
import io
import json
import shutil
import tarfile
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import load_experiment
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.records import Question
from ifqa.retrieval import prebuilt
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.jvm import run_java
from ifqa.retrieval.prebuilt import fetch_prebuilt, open_prebuilt, prebuilt_requirement
from ifqa.retrieval.stored_documents import parse_stored_document, read_stored

pytestmark = pytest.mark.slow

DOCUMENTS = {
    "1": '"Ada ""the oar"" Lind"\nAda rowed for Brill and won the cup.',
    "2": '"Brill"\nBrill is a village in Kent with a windmill.',
    "3": '"Cup"\nThe cup was made of silver.',
}


def build(folder, *options):
    """An index of the documents, as Pyserini builds those that it publishes."""
    folder.mkdir(parents=True)
    texts = folder / "texts"
    texts.mkdir()
    lines = [json.dumps({"id": key, "contents": text}) for key, text in DOCUMENTS.items()]
    (texts / "documents.jsonl").write_text("\n".join(lines))
    arguments = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
    arguments += ["-input", str(texts), "-index", str(folder / "index"), *options]
    run_java("io.anserini.index.IndexCollection", arguments, lambda _: None, quick=True)
    return folder / "index"


@pytest.fixture(scope="session")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("prebuilt") / "raw", "-storeRaw")


def pack(file, index):
    with tarfile.open(file, "w:gz") as archive:
        archive.add(index, "lucene-index.tiny")
    return hashlib.md5(file.read_bytes()).hexdigest()


@contextmanager
def serving(folder):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def published(tmp_path, index, monkeypatch):
    """A function: publishes an archive of the index as "tiny" with this MD5; the cache is empty."""
    monkeypatch.setenv(prebuilt.CACHE_VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "site").mkdir()
    file = tmp_path / "site" / "lucene-index.tiny.tar.gz"
    right = pack(file, index)
    with serving(tmp_path / "site") as address:

        def publish(md5=right):
            entry = {"urls": [f"{address}/{file.name}"], "filename": file.name, "md5": md5}
            monkeypatch.setattr(prebuilt, "list_prebuilt", lambda: {"tiny": entry})
            return file

        publish()
        yield publish


def cached(tmp_path):
    folder = tmp_path / "cache" / "indexes"
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_published_index_is_fetched_once(published, tmp_path):
    [line] = fetch_prebuilt("tiny")
    assert "fetched from http" in line
    [again] = fetch_prebuilt("tiny")
    assert again.endswith("already there")
    assert [passage.id for passage, _ in read_stored(open_prebuilt("tiny"))] == ["1", "2", "3"]


def test_it_lies_where_pyserini_keeps_it(published, tmp_path):
    file = published()
    list(fetch_prebuilt("tiny"))
    name = f"lucene-index.tiny.{hashlib.md5(file.read_bytes()).hexdigest()}"
    assert cached(tmp_path) == [name, f"{name}.ifqa.json"]


def test_an_archive_with_another_checksum_is_refused(published, tmp_path):
    published(md5="0" * 32)
    with refused("MD5 .* not 000000000000… as published; it was removed"):
        list(fetch_prebuilt("tiny"))
    assert cached(tmp_path) == []


def evil(member):
    """An archive with one member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(member, io.BytesIO(b"x" * member.size))
    return buffer.getvalue()


def outside():
    member = tarfile.TarInfo("../outside.txt")
    member.size = 1
    return member


def link():
    member = tarfile.TarInfo("index/segments_1")
    member.type = tarfile.SYMTYPE
    member.linkname = "/etc/passwd"
    return member


@pytest.mark.parametrize("content", [evil(outside()), evil(link()), b"no archive", b""])
def test_a_hostile_or_damaged_archive_is_refused(published, tmp_path, content):
    published().write_bytes(content)
    published(md5=hashlib.md5(content).hexdigest())
    with refused("cannot be unpacked|is not an archive|holds 0 Lucene indexes"):
        list(fetch_prebuilt("tiny"))
    assert not (tmp_path / "cache" / "outside.txt").exists()
    with refused("is not there; fetch it with: ifqa data tiny"):
        open_prebuilt("tiny")


def by_pyserini(tmp_path, published, index):
    """The index in the cache, as Pyserini unpacks it."""
    md5 = hashlib.md5(published().read_bytes()).hexdigest()
    return shutil.copytree(index, tmp_path / "cache" / "indexes" / f"lucene-index.tiny.{md5}")


def test_an_index_that_pyserini_fetched_is_opened_as_not_verified(
    published, tmp_path, index, caplog
):
    folder = by_pyserini(tmp_path, published, index)
    caplog.set_level("INFO")
    assert open_prebuilt("tiny") == folder
    assert "not verified, because ifqa did not fetch it" in caplog.text


def test_an_index_that_changed_since_it_was_first_opened_is_refused(published, tmp_path, index):
    folder = by_pyserini(tmp_path, published, index)
    open_prebuilt("tiny")
    (folder / "more.txt").write_text("more")
    with refused("has changed since it was first opened; remove it and .*then: ifqa data tiny"):
        open_prebuilt("tiny")


def test_a_name_that_is_not_listed_is_refused(published):
    with refused("'unknown' is neither a folder nor an index of Pyserini's list"):
        open_prebuilt("unknown")


def test_a_missing_index_is_a_requirement_with_its_command(published):
    assert prebuilt_requirement("tiny").remedy.endswith("fetch it with: ifqa data tiny")


def test_titles_in_quotation_marks_are_taken_out_of_the_text(index):
    passages = [passage for passage, _ in read_stored(index)]
    assert [passage.title for passage in passages] == ['Ada "the oar" Lind', "Brill", "Cup"]
    assert passages[1].text == "Brill is a village in Kent with a windmill."


@given(title=st.text(), text=st.text())
def test_a_document_with_a_title_of_its_own_keeps_its_text(title, text):
    raw = json.dumps({"id": "1", "title": title, "text": text})
    passage = parse_stored_document("1", raw, Path("index"))
    assert (passage.title, passage.text) == (title, text)


@given(raw=st.text())
def test_any_stored_text_is_read_as_a_passage(raw):
    assert parse_stored_document("1", raw, Path("index")).id == "1"


def test_an_index_without_texts_is_refused(tmp_path):
    slim = build(tmp_path / "slim")
    with refused("does not store the text of its documents"):
        list(read_stored(slim))


def test_a_folder_without_an_index_is_refused(tmp_path):
    with refused("has no file segments_"):
        open_prebuilt(str(tmp_path))


CORPUS = """
[[passages.sources]]
format = "lucene"
index = "tiny"

[index.bm25]
retriever = "bm25"
prebuilt = "tiny"
"""
EXPERIMENT = """
benchmark = "sample"
split = "dev"
corpus = "tiny"

[retriever]
name = "bm25"
k = 3

[reader]
name = "extractive"
"""


@pytest.fixture
def corpus(published, tmp_path, monkeypatch):
    list(fetch_prebuilt("tiny"))
    monkeypatch.chdir(tmp_path)
    for folder, text in (("indexes", CORPUS), ("experiments", EXPERIMENT)):
        Path(folder).mkdir()
        Path(folder, "tiny.toml").write_text(text)
    return load_corpus("tiny")


def test_an_experiment_searches_a_published_index(corpus):
    with open_system(Run(load_experiment("tiny"))) as system:
        [ranking] = system.retrieve(["Who rowed for Brill?"], 3)
    assert [hit.passage_id for hit in ranking.hits] == ["1", "2"]
    assert ranking.passages[0].title == 'Ada "the oar" Lind'


def test_rankings_are_those_of_the_published_index(corpus, index):
    with open_system(Run(load_experiment("tiny"))):
        built = BM25(BM25.Settings(), index=corpus.folder / "bm25")
    direct = BM25(BM25.Settings(), index=index)
    questions = [Question("q", text) for text in ("cup of silver", "Brill", "windmill in Kent")]
    assert built.search(questions, 3) == direct.search(questions, 3)


def test_passages_of_another_corpus_are_refused(corpus):
    lines = [json.dumps({"id": str(n), "title": "", "contents": "text"}) for n in range(4)]
    Path("passages").mkdir()
    Path("passages", "passages-00000.jsonl").write_text("\n".join(lines))
    with refused("holds 3 documents, but the corpus has 4 passages"):
        BM25.build(Path("passages"), Path("index"), BM25.BuildSettings(prebuilt="tiny"))
