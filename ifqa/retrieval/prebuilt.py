"""Lucene indexes that Pyserini publishes of DPR's passages: fetched into Pyserini's cache, where Pyserini finds them too.

The table is a copy of Pyserini 1.6's (pyserini/prebuilt_index_info.py): Pyserini 2 asks the network for its table whenever the
module is imported. The cache is ~/.cache/pyserini or $PYSERINI_CACHE.
"""

import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError, unknown
from ifqa.progress import say
from ifqa.retrieval.jvm import java
from ifqa.storage.download import Remote, download_all

_SAMPLE = 20  # documents of an index that are looked up among the passages


@dataclass(frozen=True)
class Entry:
    """A published archive; it holds one folder."""

    url: str
    bytes: int
    md5: str


_PLACE = "https://rgw.cs.uwaterloo.ca/pyserini/indexes/lucene-index"
TABLE = {
    "wikipedia-dpr-100w": Entry(
        f"{_PLACE}.wikipedia-dpr-100w.20210120.d1b9e6.tar.gz", 9_177_917_732, "7b58c08da992b2ea7e96667f0b176651"
    ),
    "wikipedia-dpr-100w-slim": Entry(
        f"{_PLACE}.wikipedia-dpr-100w-slim.20210120.d1b9e6.tar.gz", 1_810_337_190, "5d24352f0de6ae75b60e11a9cf622251"
    ),
}


def entry(name: str) -> Entry:
    """The entry of an index.

    Raises:
        IfqaError: the table has no index of that name.
    """
    if name not in TABLE:
        raise unknown("prebuilt index", name, TABLE)
    return TABLE[name]


def place(name: str) -> Path:
    """Where Pyserini's cache has an index, or will have it (pyserini/util.py:198-260)."""
    published = entry(name)
    return _cache() / f"{_file_name(published).removesuffix('.tar.gz')}.{published.md5}"


def fetch(name: str) -> Path:
    """The folder of an index in Pyserini's cache; it is fetched if it is not there.

    Raises:
        IfqaError: it cannot be fetched or unpacked, is not the published one, or the disk has no room for it.
    """
    folder, published = place(name), entry(name)
    if folder.exists():
        return folder
    _require_room(name, published)
    archive = _cache() / f"ifqa-{_file_name(published)}"
    download_all([Remote(published.url, archive, published.bytes, "md5", published.md5)], _cache())
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
    found = fetch(name)
    count = _check(name, found, PassageStore(passages), memory_gb)
    for path in found.iterdir():
        (folder / path.name).unlink(missing_ok=True)
        try:
            os.link(path, folder / path.name)
        except OSError:  # another disk, or one without hard links
            shutil.copy2(path, folder / path.name)
    return count


def _file_name(published: Entry) -> str:
    return published.url.rpartition("/")[2]


def _cache() -> Path:
    folder = os.environ.get("PYSERINI_CACHE") or Path.home() / ".cache" / "pyserini"  # pyserini/util.py:191-195
    return Path(folder) / "indexes"


def _require_room(name: str, published: Entry) -> None:
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True)
    free, needed = shutil.disk_usage(folder).free, 2 * published.bytes  # the archive and what is unpacked
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
