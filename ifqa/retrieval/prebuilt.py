"""Lucene indexes that Pyserini publishes: its table names them, and its cache holds them.

Pyserini's downloader begins anew after a broken connection, so `ifqa.storage.remote` fetches the archive. An index in
Pyserini's cache, ~/.cache/pyserini or $PYSERINI_CACHE, is used from there, and Pyserini uses one that is put there.
"""

import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError, unknown
from ifqa.progress import say
from ifqa.retrieval.jvm import java
from ifqa.storage.remote import Remote, Unreachable, download_all

SIZE = "size compressed (bytes)"  # of an entry
_SAMPLE = 20  # documents of an index that are looked up among the passages


def entry(name: str, memory_gb: float) -> Mapping[str, Any]:
    """Pyserini's entry of an index: `urls`, `filename`, `md5`, `documents` and the bytes of the archive.

    Raises:
        IfqaError: the table has no BM25 index of that name.
    """
    java(memory_gb)  # before pyserini starts a JVM of its own, which fails (see `ifqa.retrieval.jvm`)
    table: dict[str, dict[str, Any]] = import_module("pyserini.prebuilt_index_info").TF_INDEX_INFO
    if name not in table:
        raise unknown("prebuilt index", name, table)
    return table[name]


def place(name: str, memory_gb: float) -> Path:
    """Where Pyserini's cache has an index, or will have it (pyserini/util.py:198-260)."""
    one = entry(name, memory_gb)
    return _cache() / f"{one['filename'].partition('.tar.gz')[0]}.{one['md5']}"


def fetch(name: str, memory_gb: float) -> Path:
    """The folder of an index in Pyserini's cache; it is fetched if it is not there.

    Raises:
        IfqaError: it cannot be fetched or unpacked, is not the published one, or the disk has no room for it.
    """
    folder, one = place(name, memory_gb), entry(name, memory_gb)
    if folder.exists():
        return folder
    _require_room(name, one)
    archive = _cache() / f"ifqa-{one['filename']}"
    for url in one["urls"]:
        try:
            download_all([Remote(url, archive, one[SIZE], "md5", one["md5"])], _cache())
            break
        except Unreachable as error:
            if url == one["urls"][-1]:
                raise
            say(f"{str(error).partition('; ')[0]}; the next address is tried")
    say(f"{archive.name}: unpacking into {folder}")
    try:
        with tempfile.TemporaryDirectory(prefix="ifqa-", dir=_cache()) as aside, tarfile.open(archive, "r:gz") as tar:
            tar.extractall(aside, filter="data")
            next(Path(aside).iterdir()).rename(folder)  # the archive holds one folder
    except (OSError, EOFError, StopIteration, zlib.error, tarfile.TarError) as error:
        raise IfqaError(
            f"prebuilt index {name}: cannot unpack {archive} ({error or type(error).__name__}); "
            "make room if the disk is full, or remove that file, and run the same command again"
        ) from error
    archive.unlink()
    return folder


def put(name: str, memory_gb: float, passages: Path, folder: Path) -> int:
    """Put an index into a corpus's folder; returns the number of its passages.

    Its files are linked to those in Pyserini's cache, or copied where that is on another disk.

    Args:
        name: of Pyserini's table.
        memory_gb: as for `ifqa.retrieval.jvm.java`.
        passages: the corpus's passages, which must be those of the index.
        folder: exists already.

    Raises:
        IfqaError: as `fetch`; or the index is of other passages or another language.
    """
    found = fetch(name, memory_gb)
    count = _check(name, found, PassageStore(passages), memory_gb)
    for path in found.iterdir():
        (folder / path.name).unlink(missing_ok=True)
        try:
            os.link(path, folder / path.name)
        except OSError:  # another disk, or one without hard links
            shutil.copy2(path, folder / path.name)
    return count


def _cache() -> Path:
    folder = os.environ.get("PYSERINI_CACHE") or Path.home() / ".cache" / "pyserini"  # pyserini/util.py:191-195
    return Path(folder) / "indexes"


def _require_room(name: str, one: Mapping[str, Any]) -> None:
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(folder).free, 2 * one[SIZE]  # the archive and what is unpacked
    if needed > free:
        raise IfqaError(
            f"prebuilt index {name} needs about {needed:,} bytes while it is unpacked, {folder} has {free:,} free; make room, or "
            "set PYSERINI_CACHE to a folder on another disk"
        )


def _check(name: str, index: Path, passages: PassageStore, memory_gb: float) -> int:
    """The number of an index's passages, after a look at some of them: are they the corpus's, in the words we search for?"""
    jnius = java(memory_gb)
    try:
        reader = jnius.autoclass("io.anserini.index.IndexReaderUtils").getReader(str(index.resolve()))
    except jnius.JavaException as error:
        raise IfqaError(f"{index}: Lucene cannot read it; remove that folder to fetch it again") from error
    try:
        count: int = reader.numDocs()
        every = max(reader.maxDoc() // _SAMPLE, 1)
        stored = reader.storedFields()
        ids = [str(stored.document(number).get("id")) for number in range(0, reader.maxDoc(), every)][:_SAMPLE]
        if count != len(passages):
            raise _misfit(name, f"it has {count:,} passages, the corpus {len(passages):,}")
        known = passages.find(ids)
        if absent := [one for one in ids if one not in known]:
            raise _misfit(name, f"its passage {absent[0]!r} is not in the corpus")
        _check_words(name, jnius, reader, {one: passage.text for one, passage in known.items()})
    finally:
        reader.close()
    return count


def _check_words(name: str, jnius: Any, reader: Any, texts: Mapping[str, str]) -> None:
    """Each word of the texts, stemmed as questions are, must be a word of the index."""
    analyzer = jnius.autoclass("io.anserini.analysis.DefaultEnglishAnalyzer").fromArguments("porter", False, None)
    analyze = jnius.autoclass("io.anserini.analysis.AnalyzerUtils").analyze
    term = jnius.autoclass("org.apache.lucene.index.Term")
    for passage_id, text in texts.items():
        words: Sequence[str] = [str(word) for word in analyze(analyzer, text).toArray()]
        for word in words:
            if not reader.docFreq(term("contents", word)):
                raise _misfit(name, f"it lacks the word {word!r} of the corpus's passage {passage_id!r}")


def _misfit(name: str, why: str) -> IfqaError:
    return IfqaError(
        f"prebuilt index {name} is not of this corpus's passages: {why}; wanted the passages that it was made from, in English"
    )
