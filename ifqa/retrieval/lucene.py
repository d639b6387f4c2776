"""Lucene's indexes, for BM25 and for learned sparse weights: Anserini builds and searches them.

The indexing runs in a Java process of its own (`ifqa.retrieval.jvm`).
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import finalize

from ifqa.errors import DamagedArtifact, IfqaError
from ifqa.progress import bar
from ifqa.records import Hit
from ifqa.retrieval.jvm import MEMORY_VARIABLE, load_jnius, run_java

_QUICK_PASSAGES = 50_000  # up to this many passages, Java's quick compiler is faster
_BUFFER_MB = 256  # Lucene flushes a segment at this size; fits the smallest heap
_MAX_TERMS = 1 << 20  # distinct words in a question; Lucene's default is 1,024
START_SECONDS = 3  # of the JVM
INDEXING_MEMORY = 500e6  # bytes
_ADDED = re.compile(r": (\d+) docs added\.$")
_DISK_FULL = re.compile(
    "No space left on device|not enough space on the disk|Disk quota exceeded|File too large"
)


class IndexingFailed(RuntimeError):
    """Anserini indexed another number of passages than it was given."""


def build_index(
    inputs: Path, folder: Path, options: Sequence[str], count: int, threads: int, label: str
) -> None:
    """Index `count` passages, the JSON lines of a folder, in a separate Java process.

    `options` are those of Anserini's IndexCollection, with a collection; `label` names the bar.
    Raises IfqaError if the disk is full or Java lacks memory, and IndexingFailed if another number
    of passages was indexed.
    """
    arguments = ["-generator", "DefaultLuceneDocumentGenerator", "-verbose", *options]
    arguments += ["-memoryBuffer", f"{_BUFFER_MB}", "-threads", f"{threads or os.cpu_count() or 1}"]
    arguments += ["-input", str(inputs), "-index", str(folder)]
    with bar(label, count) as advance:

        def watch(line: str) -> None:
            if added := _ADDED.search(line.rstrip()):
                advance(int(added[1]))

        status, output = run_java(
            "io.anserini.index.IndexCollection", arguments, watch, quick=count <= _QUICK_PASSAGES
        )
    # Anserini prints the error of a file, continues, and exits with 0
    indexed = count_documents(folder)
    if not status and indexed == count:
        return
    if _DISK_FULL.search(output):
        raise IfqaError(
            f"the disk is full at {folder}: free some space and run the same command again"
        )
    if "OutOfMemoryError" in output:
        raise IfqaError(
            f"Java ran out of memory while indexing into {folder}; raise {MEMORY_VARIABLE}"
        )
    raise IndexingFailed(
        f"Anserini indexed {indexed:,} of {count:,}, status {status}:\n{output[-4000:]}"
    )


def count_documents(index: Path) -> int:
    """The number of documents in a Lucene index; 0 if there is no index."""
    jnius = load_jnius()
    try:
        reader = jnius.autoclass("io.anserini.index.IndexReaderUtils").getReader(
            str(index.resolve())
        )
    except jnius.JavaException:  # the caller reports the reason from Anserini's output
        return 0
    try:
        return int(reader.numDocs())
    finally:
        reader.close()


@contextmanager
def linked_files(files: Iterable[Path], folder: Path) -> Iterator[Path]:
    """A new folder below `folder` with links to the files.

    Anserini reads every .json, .jsonl and .gz of a folder, even manifest.json.
    """
    with tempfile.TemporaryDirectory(prefix="input-", dir=folder) as linked:
        for file in files:
            link = Path(linked) / file.name
            try:
                link.symlink_to(file.resolve())
            except OSError:
                # few Windows users may make symbolic links; a hard link needs the same disk
                link.hardlink_to(file)
        yield Path(linked)


class LuceneSearcher:
    """An opened index, and the class of Anserini that searches it.

    Ties are ranked by the byte order of ids. `count` is the number of passages.
    """

    def __init__(
        self,
        index: Path,
        make: Callable[[Callable[[str], Any], str], Any],
        passages: int | None,
        memory_gb: float,
    ) -> None:
        """Open an index, and start the JVM if this process has none.

        `make` gets jnius's `autoclass` and the index's path, and returns the searcher. Raises
        IfqaError if the index is damaged or does not hold `passages` passages (None: any), or Java
        cannot start.
        """
        self._index = index
        self._jnius = load_jnius(memory_gb)
        self.java: Callable[[str], Any] = self._jnius.autoclass
        try:
            self.searcher = make(self.java, str(index.resolve()))
        except self._jnius.JavaException as error:
            raise self._damaged(error) from error
        # Else its files stay mapped. A bound method of Java would close the newest searcher:
        # pyjnius binds it again.
        finalize(self, lambda searcher: searcher.close(), self.searcher).atexit = False
        self.count = int(self.searcher.get_total_num_docs())
        if passages not in (None, self.count):
            counts = f"{self.count:,} of {passages:,} passages"
            raise DamagedArtifact(f"{index} is damaged: it holds {counts}; build it again")
        self.java("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(_MAX_TERMS)

    def search(self, queries: Sequence[Any], search: Callable[[Any, Any], Any]) -> list[list[Hit]]:
        """The hits of each query, best first.

        `search` gets Java's lists of the queries and of their keys, and returns Anserini's map from
        a key to its documents. Raises IfqaError if the index is damaged.
        """
        array_list = self.java("java.util.ArrayList")
        values = array_list()
        keys = array_list()
        for number, query in enumerate(queries):
            values.add(query)
            keys.add(str(number))
        try:
            matches = search(values, keys)
        except self._jnius.JavaException as error:
            raise self._damaged(error) from error
        return [
            [Hit(match.docid, match.score) for match in matches.get(str(number))]
            for number in range(len(queries))
        ]

    def _damaged(self, error: Exception) -> DamagedArtifact:
        fault = f"Lucene cannot read {self._index} ({' '.join(str(error).split())[:200]})"
        # `ifqa index` alone does not rebuild an index that a newer Lucene built
        return DamagedArtifact(f"{fault}; remove that folder, then: ifqa index CORPUS")
