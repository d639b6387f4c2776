"""A served folder of documents whose files change: answers stay those of a complete index, and then
the new one's.
"""

import gc
import logging
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import blocking_reader
import pytest
from blocking_reader import FACT
from serving_system import client, on_loopback, small, until

from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import build_corpus
from ifqa.serve import html, watcher
from ifqa.serve import service as served

pytestmark = pytest.mark.slow

SOURCE = '[[passages.sources]]\nformat = "documents"\npath = "docs"\n'


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.setattr(watcher, "_PAUSE", 0.0)
    # A slow scan must not see what the test writes after an answer
    monkeypatch.setattr(watcher, "_PATIENCE", 60.0)
    folder = tmp_path / "docs"
    folder.mkdir()
    write(folder / "mill.md", "The first mill is old")
    write(folder / "inn.md", "The inn burned down")
    return folder


@contextmanager
def serving(root, index="", **tables):
    experiment = small(root, **tables)
    (root / "indexes/few.toml").write_text(SOURCE + index)
    with client(experiment) as web_client:
        yield web_client


@pytest.fixture
def web(tmp_path, docs):
    with serving(tmp_path) as web_client:
        yield web_client


def write(file, sentence):
    file.write_text(f"{sentence}. {FACT}\n")


def evidence(web):
    [answer] = web.post("/v1/ask", json={"question": "If not, who built the mill?"}).json()[
        "answers"
    ]
    return sorted(passage["text"].partition(".")[0] for passage in answer["evidence"])


def look_until(web, condition):
    """Open the page until a condition holds."""

    def holds():
        time.sleep(0.05)
        web.get("/v1/about")
        return condition(web.service.watcher)

    until(holds)


def update(web):
    before = web.service.watcher.updated
    look_until(web, lambda watching: watching.updated != before)


def test_changes_of_files_are_taken_without_a_restart(web, docs):
    assert evidence(web) == ["The first mill is old", "The inn burned down"]
    write(docs / "mill.md", "The second mill is new")
    write(docs / "barn.md", "The barn stands")
    (docs / "inn.md").unlink()
    update(web)
    folder = web.get("/v1/documents").json()
    assert folder["changed"] == 3
    assert folder["problem"] == ""
    assert not folder["updating"]
    assert folder["updated"].endswith("+00:00")
    assert evidence(web) == ["The barn stands", "The second mill is new"]


def test_a_reader_searches_the_index_of_changed_files(tmp_path, docs):
    with serving(tmp_path, reader={"name": "blocking_reader:SearchingReader"}) as web:
        write(docs / "barn.md", "The barn stands")
        (docs / "inn.md").unlink()
        (docs / "mill.md").unlink()
        update(web)
        assert evidence(web)[-1] == "The barn stands"


def test_answers_come_from_the_old_index_until_the_new_one_is_complete(web, docs, monkeypatch):
    built = threading.Event()
    go = threading.Event()
    replies = []

    def build_and_wait(run):
        build_corpus(run)
        built.set()
        go.wait(60)

    monkeypatch.setattr(watcher, "build_corpus", build_and_wait)
    before = evidence(web)
    write(docs / "mill.md", "The second mill is new")
    look_until(web, lambda _: built.is_set())  # the old files are replaced
    assert web.service.watcher.updating
    assert evidence(web) == before
    blocking_reader.OPEN.clear()
    waiting = threading.Thread(target=lambda: replies.append(evidence(web)))
    waiting.start()
    until(lambda: web.service.asking.busy)
    go.set()
    until(lambda: not web.service.watcher.updating)
    blocking_reader.OPEN.set()
    waiting.join(60)
    assert replies == [before]  # the old system's last question
    assert evidence(web) == ["The inn burned down", "The second mill is new"]


@pytest.mark.parametrize(
    "step", [(html, "document_page"), (served, "read_bad_pages")], ids=lambda step: step[1]
)
def test_a_page_is_whole_although_its_index_is_replaced_meanwhile(web, docs, monkeypatch, step):
    other = web.service.system
    run = getattr(*step)
    write(docs / "mill.md", "The second mill is new")
    (docs / "old.pages").write_bytes(b"\xd0")
    update(web)
    [answer] = web.post("/v1/ask", json={"question": "If not, who built the mill?"}).json()[
        "answers"
    ]
    page = quote(answer["evidence"][0]["source"]["url"])
    paths = {
        "document_page": (page, answer["evidence"][0]["text"][:20]),
        "read_bad_pages": ("/v1/documents", "old.pages"),
    }
    path, text = paths[step[1]]
    replaced = []

    def late(*arguments):
        web.service.system = web.service.watcher._system = other
        gc.collect()
        replaced.append(arguments)
        return run(*arguments)

    monkeypatch.setattr(*step, late)
    assert text in web.get(path).text
    assert replaced


def test_a_vanished_folder_is_told_once(web, docs, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("ifqa.serve"), "propagate", True)
    docs.rename(docs.with_name("away"))
    for _ in range(3):
        look_until(web, lambda watching: "documents not found" in watching.problem)
    assert sum("documents not found" in record.message for record in caplog.records) == 1


def test_an_emptied_folder_is_told(web, docs):
    away = docs.with_name("away")
    docs.rename(away)
    docs.mkdir()
    look_until(web, lambda watching: "no file in" in watching.problem)
    docs.rmdir()
    away.rename(docs)
    look_until(web, lambda watching: not watching.problem)


def test_the_old_index_answers_for_a_vanished_folder(web, docs):
    before = evidence(web)
    away = docs.with_name("away")
    docs.rename(away)
    for _ in range(3):
        look_until(web, lambda watching: "documents not found" in watching.problem)
        assert evidence(web) == before
    docs.mkdir()
    look_until(web, lambda watching: "no file in" in watching.problem)
    docs.rmdir()
    away.rename(docs)
    look_until(web, lambda watching: not watching.problem)
    assert evidence(web) == before


def fail_to_build(web, docs, patch):
    """A full disk and then a bug prevent a new index."""
    write(docs / "mill.md", "The second mill is new")
    errors: list[Exception] = [OSError(28, "No space left on device")]
    patch.setattr(watcher, "build_corpus", lambda run: (_ for _ in ()).throw(errors[-1]))
    look_until(web, lambda watching: "No space left" in watching.problem)
    errors.append(ValueError("inner"))
    look_until(web, lambda watching: watching.problem.startswith("a bug in ifqa"))


def test_the_server_answers_while_no_index_can_be_built(web, docs, monkeypatch):
    before = evidence(web)
    with monkeypatch.context() as patch:
        fail_to_build(web, docs, patch)
        assert evidence(web) == before


def test_the_watching_goes_on_after_an_index_could_not_be_built(web, docs, monkeypatch):
    before = evidence(web)
    with monkeypatch.context() as patch:
        fail_to_build(web, docs, patch)
    update(web)
    assert evidence(web) != before


def test_an_index_that_another_process_built_is_taken(web, docs):
    write(docs / "mill.md", "The second mill is new")
    build_corpus(Run(web.service.system.experiment))
    update(web)
    assert evidence(web) == ["The inn burned down", "The second mill is new"]


def test_nothing_is_left_of_an_old_index(tmp_path, docs):
    index = '[index.words]\nretriever = "bm25"\n'
    with serving(tmp_path, index, retriever={"name": "bm25", "index": "words", "k": 3}) as web:
        [links] = (tmp_path / "indexes/few").glob(".served-*")
        for number in range(2):
            write(docs / "mill.md", f"The mill of year {number} stands")
            update(web)
            assert evidence(web) == [f"The mill of year {number} stands"]
        # The test's own client holds the first system.
        until(lambda: gc.collect() is not None and not (links / "2").exists())
        maps = Path("/proc/self/maps")
        if maps.exists():
            until(lambda: f"{links}/2/" not in maps.read_text())


def test_links_of_a_killed_server_are_removed(tmp_path, docs):
    left = tmp_path / "indexes/few/.served-dead"
    left.mkdir(parents=True)
    (left / "passages.jsonl").write_text("x")
    with serving(tmp_path) as web:
        assert not left.exists()
        assert len(evidence(web)) == 2


def test_a_server_removes_its_own_links_at_the_end(tmp_path, docs):
    with serving(tmp_path):
        assert len(list((tmp_path / "indexes/few").glob(".served-*"))) == 1
    assert list((tmp_path / "indexes/few").glob(".served-*")) == []


@pytest.fixture
def open_page(tmp_path, docs, chromium):
    """The page on a folder of two files, with one that is left out."""
    experiment = small(tmp_path)
    (tmp_path / "indexes/few.toml").write_text(SOURCE)
    (docs / "<img src=x onerror=hacked()>.exe").write_text("x")
    with on_loopback(experiment) as (_, url):
        chromium.open(url, width=400)
        yield chromium
        assert chromium.complaints == []


def shows(chromium, place, text):
    """Wait until a place of the page has a text."""
    until(lambda: text in (chromium.value(f"document.querySelector('{place}')?.innerText") or ""))


def ask_after_a_change(chromium, docs):
    """Ask once a file was added, and wait for the answer."""
    shows(chromium, "#about", "Answers come from 2 files in docs.")
    until(lambda: chromium.value("document.activeElement.id") == "question")
    write(docs / "barn.md", "The barn stands")
    chromium.type("If not, who built the mill?")
    chromium.press("Enter")
    shows(chromium, ".big", "Ada Stone")
    shows(chromium, "#updates", "updated at")


def test_the_open_page_lists_files_that_were_left_out(open_page):
    shows(open_page, "#left-out summary", "1 file was left out")
    open_page.value("document.querySelector('#left-out summary').click()")
    shows(open_page, "#left-out li", "<img src=x onerror=hacked()>.exe: ")


def test_the_open_page_tells_a_change(open_page, docs):
    ask_after_a_change(open_page, docs)
    shows(open_page, "#about", "3 files")


def test_the_open_page_answers_from_a_change(open_page, docs):
    ask_after_a_change(open_page, docs)
    assert open_page.value(
        "document.querySelector('.passage h4 a').getAttribute('href')"
    ).startswith("/documents/")
    for _ in range(20):  # by keyboard alone: to "Ask again"
        open_page.press("Tab")
        if open_page.value("document.activeElement.innerText") == "Ask again":
            break
    open_page.press("Enter")
    shows(open_page, ".passage", "The barn stands")
