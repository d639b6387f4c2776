"""A page that a dump holds twice is kept once, in its later revision, and told in one line."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from dumps import multistream, page
from hypothesis import given
from hypothesis import strategies as st

from ifqa.config.corpus import load_corpus
from ifqa.corpus.passage_store import PassageStore, hash_id, id_bytes
from ifqa.corpus.repeated_pages import find_repeats, page_revisions
from ifqa.corpus.wikipedia import source
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.storage.artifacts import read_manifest

WORDS = " ".join(f"w{n}" for n in range(250))  # three passages
PAGES = [page(n, f"Page {n}", f"p{n} {WORDS}") for n in range(1, 30)]


@pytest.fixture(autouse=True)
def _small_blocks(here, monkeypatch):
    monkeypatch.setattr(source, "PACKED", 4000)
    Path("indexes").mkdir()


def build(pages, each=5, sources=1):
    """The texts of a corpus's passages by id, and its bad pages."""
    multistream(Path("d.xml.bz2"), pages, each)
    section = '[[passages.sources]]\nformat = "dump"\npath = "d.xml.bz2"\n'
    Path("indexes/c.toml").write_text(section * sources)
    folder = stages.build_passages(load_corpus("c", workers=1))
    bad = folder / "bad_pages.jsonl"
    lines = [json.loads(line) for line in bad.read_text().splitlines()] if bad.exists() else []
    return {passage.id: passage.text for passage in PassageStore(folder)}, lines


def copy(number, text, revision):
    return page(number, f"Page {number}", f"{text} {WORDS}", revision=revision)


@pytest.mark.parametrize(
    "place", [0, 1, 28], ids=["in the first block", "beside it", "in the last block"]
)
def test_the_later_revision_is_kept_wherever_it_stands(place):
    pages = [*PAGES[:place], copy(1, "newer", 5 * 10**6), *PAGES[place:]]
    texts, bad = build(pages)
    assert texts["1-0"].startswith("newer")
    assert [(entry["id"], entry["title"]) for entry in bad] == [("1", "Page 1")]
    assert "more than once" in bad[0]["reason"]
    assert len(texts) == 3 * len(PAGES)


def test_an_earlier_revision_that_comes_later_is_left_out():
    texts, _ = build([*PAGES, copy(1, "older", 5)])
    assert texts["1-0"].startswith("p1")


def test_of_equal_revisions_the_last_is_kept():
    texts, bad = build([*PAGES, copy(1, "last", 1 + 10**6)])
    assert texts["1-0"].startswith("last")
    assert len(bad) == 1


def test_the_manifest_counts_what_is_kept():
    build([*PAGES, copy(1, "newer", 5 * 10**6), copy(2, "newer", 5 * 10**6)])
    manifest = read_manifest(Path("indexes/c/passages"))
    assert manifest is not None
    record: Any = manifest["record"]
    assert (record["pages"], record["passages"], record["bad"]) == (29, 87, 2)
    assert record["words"] == 29 * 251 + 29 * 49  # the last passage is filled up from the start


def test_a_dump_without_repeats_is_written_as_before():
    build(PAGES)
    log = Path("indexes/c/passages/blocks.jsonl").read_text()
    assert "revised" not in log
    assert not list(Path("indexes/c/passages").glob("revisions-*"))


def test_a_build_that_is_stopped_behind_its_last_block_ends_as_an_undisturbed_one(monkeypatch):
    pages = [*PAGES, copy(1, "newer", 5 * 10**6)]
    for step in ("write_id_index", "read_file_records"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(f"ifqa.pipeline.passages.{step}", Mock(side_effect=KeyboardInterrupt))
            build(pages)
    texts, bad = build(pages)
    assert texts["1-0"].startswith("newer")
    assert (len(texts), len(bad)) == (3 * len(PAGES), 1)


def test_the_same_page_of_two_sources_is_still_refused():
    with pytest.raises(IfqaError, match="appears twice"):
        build(PAGES, sources=2)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_each_page_is_kept_once_in_its_latest_revision(shards):
    revisions = {
        n: (0, page_revisions([(str(p), r) for p, r in shard])) for n, shard in enumerate(shards)
    }
    repeats = find_repeats(revisions)
    kept = []
    for number, shard in enumerate(shards):
        seen: dict[int, int] = {}
        for page_number, revision in shard:
            place = seen.get(page_number, 0)
            seen[page_number] = place + 1
            if (hash_id(id_bytes(str(page_number))), place) not in repeats.get(number, set()):
                kept.append((page_number, revision))
    latest = {
        p: max(r for shard in shards for q, r in shard if q == p)
        for shard in shards
        for p, _ in shard
    }
    assert sorted(kept) == sorted(latest.items())
