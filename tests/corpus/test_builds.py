"""Builds of passages give the same bytes after interruptions and with any number of workers."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
from dumps import HEAD, TAIL, multistream, page

from ifqa.config.corpus import load_corpus
from ifqa.corpus.passage_store import PassageStore
from ifqa.corpus.sources import estimate_build, open_source
from ifqa.corpus.wikipedia import source
from ifqa.corpus.work_units import make_shard
from ifqa.pipeline import stages
from ifqa.storage.artifacts import read_manifest

PAGES = [
    page(n, f"Page {n}", " ".join(f"w{n}x{i}" for i in range(n * 37 % 400))) for n in range(1, 120)
]
PARTIAL = Path("indexes/c/.passages.partial")


@pytest.fixture(autouse=True)
def _small_blocks(here, monkeypatch):
    monkeypatch.setattr(source, "PACKED", 4000)
    monkeypatch.setattr(source, "TEXT", 20_000)
    Path("indexes").mkdir()
    multistream(Path("d.xml.bz2"), PAGES, 5)


def corpus(name="c", path="d.xml.bz2", workers=1, **settings):
    """One worker is this process, which starts no other."""
    section = {"format": "dump", "path": path} | settings
    lines = [f"{key} = {json.dumps(setting)}" for key, setting in section.items()]
    Path(f"indexes/{name}.toml").write_text("\n".join(["[[passages.sources]]", *lines]))
    return load_corpus(name, workers=workers)


def manifest_of(folder):
    """The manifest of a finished artifact."""
    manifest = read_manifest(folder)
    assert manifest is not None
    return manifest


def build(**settings):
    folder = stages.build_passages(corpus(**settings))
    files = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"
    }
    return files | {"inputs": manifest_of(folder)["inputs"]}


def stop_build(monkeypatch, step="write_id_index", stop=None, **settings):
    """Interrupt a build, by default after its last block."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"ifqa.pipeline.passages.{step}", stop or Mock(side_effect=KeyboardInterrupt))
        build(**settings)


def test_the_bytes_do_not_depend_on_the_number_of_workers():
    local = build()
    assert len([name for name in local if name.startswith("passages-")]) > 3
    shutil.rmtree("indexes/c")
    assert build(workers=3) == local


def test_a_stopped_build_resumes_with_the_unfinished_blocks(monkeypatch, capsys):
    undisturbed = build(name="u")

    def make_three(block):
        if block.number == 3:
            raise KeyboardInterrupt
        return make_shard(block)

    stop_build(monkeypatch, "make_shard", make_three)
    assert build() == undisturbed
    assert "3 blocks had been finished by an earlier build" in capsys.readouterr().err


def test_shards_of_another_number_of_words_are_not_reused(monkeypatch, capsys):
    undisturbed = build(name="u", words=50)
    stop_build(monkeypatch, words=10)
    assert build(words=50) == undisturbed
    assert "finished by an earlier build" not in capsys.readouterr().err


def test_a_shard_that_changed_after_the_build_stopped_is_made_again(monkeypatch, capsys):
    undisturbed = build(name="u")
    stop_build(monkeypatch)
    shard = PARTIAL / "passages-00001.jsonl"
    shard.write_bytes(shard.read_bytes().replace(b"x1 ", b"x9 "))
    assert build() == undisturbed
    blocks = len(undisturbed["blocks.jsonl"].splitlines())
    assert f"{blocks - 1} blocks had been finished by an earlier build" in capsys.readouterr().err


def test_shards_of_removed_blocks_are_deleted(monkeypatch):
    stop_build(monkeypatch)
    multistream(Path("d.xml.bz2"), PAGES[:20], 5)
    assert build() == build(name="u")


def test_only_the_block_of_a_changed_article_is_made_again(monkeypatch, capsys):
    def write(first):
        rows = [
            {"id": str(n), "title": "T", "text": f"{first if n == 0 else 'w'} " * 500}
            for n in range(100)
        ]
        Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("old")
    stop_build(monkeypatch, format="articles", path="a.jsonl")
    write("new")
    build(format="articles", path="a.jsonl")
    assert "5 blocks had been finished" in capsys.readouterr().err
    assert PassageStore(Path("indexes/c/passages")).get(["0-0"])[0].text.startswith("new new")


def build_with_a_bad_page():
    Path("e.xml").write_text(f"{HEAD}{PAGES[0]}<page><ns>0</ns><id>8</id></page>{TAIL}")
    return stages.build_passages(corpus(path="e.xml"))


def test_bad_pages_are_listed(capsys):
    folder = build_with_a_bad_page()
    listed = [json.loads(line) for line in (folder / "bad_pages.jsonl").read_text().splitlines()]
    assert [(page["id"], page["title"]) for page in listed] == [("8", "page 2")]
    assert "1 bad page: indexes/c/passages/bad_pages.jsonl" in capsys.readouterr().err


def test_bad_pages_are_counted():
    record = manifest_of(build_with_a_bad_page())["record"]
    assert record["pages"] == 1
    assert record["bad"] == 1
    assert record["left_out"] == {"bad": 1}


@pytest.mark.parametrize(("each", "near"), [(5, 0.3), (40, 0.5), (119, 0.5)])
def test_an_estimate_is_near_the_built_numbers(each, near):
    multistream(Path("d.xml.bz2"), PAGES, each)
    loaded = corpus()
    estimate = estimate_build([open_source(section) for section in loaded.sources])
    record = manifest_of(stages.build_passages(loaded))["record"]
    assert estimate.passages == pytest.approx(record["passages"], rel=near)
    assert 0 < estimate.seen < 1 or each > 5


@pytest.mark.parametrize("line", [b"{}", b'{"block": [0]}', b"\xff"])
def test_a_damaged_log_costs_only_its_blocks(line):
    undisturbed = build(name="u")
    PARTIAL.mkdir(parents=True)
    (PARTIAL / "blocks.jsonl").write_bytes(line + b"\n" + undisturbed["blocks.jsonl"])
    (PARTIAL / "more").mkdir()
    (PARTIAL / "more/notes.txt").write_text("not ours")
    assert build() == undisturbed
