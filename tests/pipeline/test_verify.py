"""`ifqa check --verify`: damaged files and changed sources are found, whatever their size and time of change."""

import os
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, page

from ifqa.config.corpus import load_corpus
from ifqa.corpus import work_units
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.check import Verified, check
from ifqa.storage import files


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.xml").write_text(HEAD + page(1, "Page", "Apollo 11 flew.") + TAIL)
    Path("indexes").mkdir()
    Path("indexes/c.toml").write_text('[[passages.sources]]\nformat = "dump"\npath = "d.xml"\n')
    loaded = load_corpus("c")
    stages.build_passages(loaded)
    return loaded


def change(path):
    """Change a file's bytes, and neither its size nor its time of change."""
    before = path.stat()
    path.write_text(path.read_text().replace("Apollo 11", "Apollo 99"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    files.cached_sha256.cache_clear()  # as in another process


def verified():
    return [str(finding) for finding in check("c", thorough=True) if isinstance(finding, Verified)]


@pytest.mark.parametrize("small", [True, False])
def test_a_source_with_a_hidden_change_is_read_again_once_touched_if_it_is_large(corpus, monkeypatch, small):
    assert verified() == [
        "  indexes/c/passages: none of 4 files changed",
        "  sources of indexes/c/passages: none of 1 files changed",
    ]
    if not small:
        monkeypatch.setattr(work_units, "_SMALL", 0)
    change(Path("d.xml"))
    with pytest.raises(IfqaError, match=r"d\.xml: not as when the passages were built; .*ifqa passages c"):
        verified()
    if not small:
        assert "Apollo 11" in (stages.build_passages(corpus) / "passages-00000.jsonl").read_text()
        os.utime("d.xml")
    assert "Apollo 99" in (stages.build_passages(corpus) / "passages-00000.jsonl").read_text()
    verified()


def test_damaged_passages_and_changed_sources_are_named_together(corpus):
    change(Path("d.xml"))
    change(Path("indexes/c/passages/passages-00000.jsonl"))
    with pytest.raises(IfqaError, match=r"passages-00000\.jsonl: not as written; .*d\.xml: not as when"):
        verified()
