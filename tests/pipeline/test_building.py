"""Passages and indexes are built once, and again if their inputs changed."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from outside_plugins import BUILDER, corpus, outside, passages, stamps
from scored_experiments import write

from ifqa.config.corpus import load_corpus
from ifqa.corpus.passage_store import PassageStore, write_id_index
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.storage.artifacts import read_manifest

pytestmark = pytest.mark.usefixtures("five")


def manifest_of(folder):
    """The manifest of a finished artifact."""
    manifest = read_manifest(folder)
    assert manifest is not None
    return manifest


def test_passages_are_built_in_the_order_of_their_sources_and_found_by_id():
    passages((7, 5), "more.jsonl")
    corpus(sources=(("passages", "more.jsonl"), ("passages", "few.jsonl")))
    folder = stages.build_passages(load_corpus("few"))
    assert folder == Path("indexes/few/passages")
    assert [passage.id for passage in PassageStore(folder)] == [
        "p7",
        "p5",
        "p0",
        "p1",
        "p2",
        "p3",
        "p4",
    ]
    assert PassageStore(folder).get(["p1"])[0].text == "team1 is led by captain1"
    record = manifest_of(folder)["record"]
    assert (record["passages"], record["shards"], record["words"]) == (7, 2, 35)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            '{"id": "1", "title": "Empty", "text": " "}\n',
            "its sources hold no passage; pages left out: 1 empty$",
        ),
        (
            '{"id": "a b", "title": "A", "text": "a"}\n{"id": "c d", "title": "C", "text": "c"}\n',
            "2 bad; for example 'A': .*few.jsonl:1: id 'a b'",
        ),
        (
            '{"id": "1", "title": "A", "text": "a"}\n{"id": "1", "title": "B", "text": "b"}\n',
            "'1-0'",
        ),
        (None, "few.jsonl is not in"),
    ],
)
def test_a_bad_source_is_refused_before_the_built_corpus_is_replaced(text, complaint):
    write("few.jsonl", '{"id": "1", "title": "A", "text": "some words"}\n')
    corpus(sources=[("articles", "few.jsonl")])
    before = stamps(stages.build_passages(load_corpus("few")))
    Path("few.jsonl").unlink()
    if text is not None:
        write("few.jsonl", text)
    with pytest.raises(IfqaError, match=complaint):
        stages.build_passages(load_corpus("few"))
    assert stamps("indexes/few/passages") == before


def test_a_build_without_room_on_the_disk_is_not_begun(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(IfqaError, match="has room for 10 bytes, but the passages will take about"):
        stages.build_passages(load_corpus("few"))
    assert not Path("indexes/few/passages").exists()


def test_passages_cut_while_their_ids_are_indexed_are_refused(monkeypatch):
    def cut_first(folder):
        shard = folder / "passages-00000.jsonl"
        shard.write_bytes(b"".join(shard.read_bytes().splitlines(keepends=True)[:4]))
        return write_id_index(folder)

    monkeypatch.setattr("ifqa.pipeline.passages.write_id_index", cut_first)
    with pytest.raises(IfqaError, match=r"the shards in .* changed while they were indexed"):
        stages.build_passages(load_corpus("few"))
    assert not Path("indexes/few/passages").exists()


def test_passages_and_an_index_are_built_once_and_again_when_settings_or_sources_change():
    stages.build_passages(load_corpus("few"))
    folder = stages.build_index(load_corpus("few"), "words")
    assert manifest_of(folder)["record"]["passages"] == 5
    before = stamps(folder)
    of_passages = stamps("indexes/few/passages")
    stages.build_passages(load_corpus("few"))
    assert stages.build_index(load_corpus("few"), "words") == folder
    assert (stamps(folder), stamps("indexes/few/passages")) == (before, of_passages)
    corpus('retriever = "outside_of_stages:Words"\nmost = 1')
    stages.build_index(load_corpus("few"), "words")
    assert json.loads((folder / "words.json").read_text())["p2"] == ["team2"]
    assert stamps("indexes/few/passages") == of_passages
    passages(range(2))
    stages.build_passages(load_corpus("few"))
    stages.build_index(load_corpus("few"), "words")
    assert json.loads((folder / "words.json").read_text()) == {"p0": ["team0"], "p1": ["team1"]}
    with pytest.raises(IfqaError, match=r"corpus few has no \[index.dense\]; it has: words"):
        stages.build_index(load_corpus("few"), "dense")


@pytest.mark.parametrize(
    ("resumes", "files"), [("    resumes = True\n", ["", "half"]), ("", ["", ""])]
)
def test_a_stopped_build_resumes_only_if_the_plugin_can(resumes, files):
    outside(BUILDER, resumes)
    corpus('retriever = "outside_of_stages:Builder"')
    stages.build_passages(load_corpus("few"))
    write("stop", "")
    with pytest.raises(KeyboardInterrupt):
        stages.build_index(load_corpus("few"), "words")
    assert not Path("indexes/few/words").exists()
    Path("stop").unlink()
    assert (stages.build_index(load_corpus("few"), "words") / "half").read_text() == "of it"
    assert Path("found.txt").read_text().splitlines() == files


def test_a_shard_that_no_manifest_lists_is_neither_found_nor_indexed():
    few = load_corpus("few")
    folder = stages.build_passages(few)
    write(
        folder / "passages-00099.jsonl",
        '{"id": "p9", "title": "", "contents": "team9 is led by captain9"}\n',
    )
    assert [passage.id for passage in PassageStore(folder)] == ["p0", "p1", "p2", "p3", "p4"]
    index = stages.build_index(few, "words")
    assert manifest_of(index)["record"]["passages"] == 5


NORWEGIAN = (
    "Mølla i Aldbrook maler rug for bakeriet i Marlow. Hvis bremsen "
    "svikter, lukker Tom Ferris slusen."
)


@pytest.mark.parametrize(
    ("setting", "language"), [("", "no"), ('language = "en"\n', None), ('language = "de"\n', "de")]
)
def test_a_folder_is_indexed_in_the_language_of_its_passages_or_of_the_corpus_file(
    setting, language
):
    Path("mill").mkdir()
    write("mill/handbok.txt", NORWEGIAN)
    write(
        "indexes/mill.toml",
        f"{setting}[[passages.sources]]\nformat = 'documents'\npath = "
        "'mill'\n[index.bm25]\nretriever = 'bm25'",
    )
    mill = load_corpus("mill")
    stages.build_passages(mill)
    folder = stages.build_index(mill, "bm25")
    assert json.loads((folder / "bm25.json").read_text()).get("language") == language
    assert manifest_of(folder)["inputs"]["settings"].get("language") == language


def test_a_language_without_an_analyzer_is_refused():
    write(
        "indexes/mill.toml",
        "language = 'tlh'\n[[passages.sources]]\nformat = 'documents'\npath = 'mill'\n",
    )
    with pytest.raises(IfqaError, match="language"):
        load_corpus("mill")
