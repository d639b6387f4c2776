"""Lucene indexes that Pyserini publishes of DPR's passages: fetched into Pyserini's cache, where Pyserini finds them too.

The table is a copy of Pyserini 1.6's (pyserini/prebuilt_index_info.py): Pyserini 2 asks the network for its table whenever the
module is imported. The cache is ~/.cache/pyserini or $PYSERINI_CACHE.
"""

import os
import shutil
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

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
    """Where Pyserini's cache has an index, or will have it (pyserini/util.py:191-260)."""
    cache = Path(os.environ.get("PYSERINI_CACHE") or Path.home() / ".cache" / "pyserini") / "indexes"
    published = entry(name)
    return cache / f"{published.url.rpartition('/')[2].removesuffix('.tar.gz')}.{published.md5}"


def put(name: str, passages: Path, folder: Path) -> int:
    """Put an index into a corpus's folder; returns the number of its passages.

    It is fetched into Pyserini's cache if it is not there. Its files are linked to those in the cache, or copied where that is on
    another disk.

    Args:
        name: of the table.
        passages: the corpus's passages, which must be those of the index.
        folder: exists already.

    Raises:
        IfqaError: it cannot be fetched or unpacked, is not the published one, or is of other passages.
    """
    cached = place(name)
    if not cached.exists():
        _fetch(name, cached)
    count = _check(name, cached, PassageStore(passages))
    for path in cached.iterdir():
        (folder / path.name).unlink(missing_ok=True)
        try:
            os.link(path, folder / path.name)
        except OSError:  # another disk, or one without hard links
            shutil.copy2(path, folder / path.name)
    return count


def _fetch(name: str, folder: Path) -> None:
    published, cache = entry(name), folder.parent
    archive = cache / f"ifqa-{published.url.rpartition('/')[2]}"
    cache.mkdir(parents=True, exist_ok=True)
    download_all([Remote(published.url, archive, published.bytes, "md5", published.md5)], cache)
    say(f"{archive.name}: unpacking into {folder}")
    try:
        with tempfile.TemporaryDirectory(prefix="ifqa-", dir=cache) as aside, tarfile.open(archive, "r:gz") as tar:
            tar.extractall(aside, filter="data")
            next(Path(aside).iterdir()).rename(folder)  # the archive holds one folder
    except (OSError, EOFError, StopIteration, zlib.error, tarfile.TarError) as error:
        raise IfqaError(
            f"prebuilt index {name}: cannot unpack {archive} ({error or type(error).__name__}); make room, or set "
            "PYSERINI_CACHE to a folder on another disk; if the file is damaged, remove it; then run the same command again"
        ) from error
    archive.unlink()


def _check(name: str, index: Path, passages: PassageStore) -> int:
    """The number of an index's passages, after a look at whether they are the corpus's."""
    jnius = java()
    try:
        reader = jnius.autoclass("io.anserini.index.IndexReaderUtils").getReader(str(index.resolve()))
    except jnius.JavaException as error:
        raise IfqaError(f"{index}: Lucene cannot read it; remove that folder to fetch it again") from error
    try:
        count, last = int(reader.numDocs()), reader.maxDoc()
        stored = reader.storedFields()
        numbers = range(0, last, max(last // _SAMPLE, 1))
        ids = [str(stored.document(number).get("id")) for number in numbers][:_SAMPLE]
    finally:
        reader.close()
    known = passages.find(ids)
    absent = [passage_id for passage_id in ids if passage_id not in known]
    if count != len(passages) or absent:
        why = f"its passage {absent[0]!r} is not there" if absent else f"it has {count:,}, the corpus {len(passages):,}"
        raise IfqaError(f"prebuilt index {name} is not of this corpus's passages: {why}; wanted those it was made from")
    return count
