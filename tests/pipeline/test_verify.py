"""`ifqa check --verify`: damaged files and changed sources are found, whatever their size and time of change."""

import os
from pathlib import Path

import pytest
from dumps import HEAD, TAIL, page

from ifqa.config.corpus import load_corpus
from ifqa.corpus import source_files
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.check import verify
from ifqa.pipeline.run import CorpusBuild
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


def test_an_untouched_corpus_passes(corpus):
    assert [finding.line for finding in verify(CorpusBuild(corpus))] == [
        "  indexes/c/passages: none of 4 files damaged",
        "  sources of indexes/c/passages: none of 1 files changed",
    ]


def test_a_source_with_a_hidden_change_is_named(corpus):
    change(Path("d.xml"))
    found = verify(CorpusBuild(corpus))
    assert [next(found), next(found)][1].line == "  sources of indexes/c/passages: 1 of 1 files changed"
    with pytest.raises(IfqaError, match=r"not as they were when the passages were built: .*d\.xml; .*ifqa passages c"):
        next(found)


def test_a_small_source_with_a_hidden_change_is_read_again(corpus, capsys):
    change(Path("d.xml"))
    assert "Apollo 99" in (stages.build_passages(corpus) / "passages-00000.jsonl").read_text()
    list(verify(CorpusBuild(corpus)))


def test_a_large_source_with_a_hidden_change_is_read_again_once_touched(corpus, monkeypatch):
    monkeypatch.setattr(source_files, "_SMALL", 0)
    change(Path("d.xml"))
    assert "Apollo 11" in (stages.build_passages(corpus) / "passages-00000.jsonl").read_text()
    with pytest.raises(IfqaError, match="not as they were when the passages were built"):
        list(verify(CorpusBuild(corpus)))
    os.utime("d.xml")
    assert "Apollo 99" in (stages.build_passages(corpus) / "passages-00000.jsonl").read_text()
    list(verify(CorpusBuild(corpus)))


def test_damaged_passages_and_changed_sources_are_named_together(corpus):
    change(Path("d.xml"))
    change(Path("indexes/c/passages/passages-00000.jsonl"))
    with pytest.raises(IfqaError, match=r"as they were written: .*passages-00000\.jsonl; .*were built: .*d\.xml"):
        list(verify(CorpusBuild(corpus)))
