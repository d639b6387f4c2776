"""BM25 through Lucene: the paper's sparse retriever. Rankings equal those of pyserini's command line in every digit.

k1 = 0.9 and b = 0.4 are pyserini's defaults (pyserini/search/lucene/_searcher.py:583), not Lucene's.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ifqa.corpus.passage_store import count_passages
from ifqa.errors import IfqaError
from ifqa.progress import bar
from ifqa.protocols import IndexedRetriever
from ifqa.records import BuildCost, Hit, Question, SearchResult
from ifqa.retrieval.jvm import MEMORY_VARIABLE, load_jnius, run_java
from ifqa.settings import Natural, NotNegative, Share, StoredModel, check_arguments, parse_stored
from ifqa.storage.files import read_json, read_jsonl, require_file, text_field, write_json

_FACTS_FILE = "bm25.json"  # beside Lucene's files: the build settings that a searcher needs
_JavaFloat = Annotated[float, Field(ge=0, le=3e38, description="a number from 0")]
_BATCH = 64  # questions searched at once where `threads` is 0; bounds the memory of the rankings
_QUICK_PASSAGES = 50_000  # passages that Java indexes sooner with its quick compiler
_BUFFER_MB = 256  # Lucene writes a segment when it holds this much; small enough for the smallest heap
_MAX_TERMS = 1 << 20  # different words in a question; Lucene's own limit of 1,024 guards against generated queries
_Stemmer = Literal["porter", "krovetz", "none"]
_START_SECONDS, _PASSAGES_PER_SECOND = 3, 20_000  # seconds until Java runs; passages indexed per second
_BYTES_PER_PASSAGE, _INDEXING_MEMORY = (
    330,
    500e6,
)  # bytes on disk per passage; bytes of memory that Java and Python take to index
_ADDED = re.compile(r": (\d+) docs added\.$")
_DISK_FULL_MESSAGES = (
    "No space left on device",
    "not enough space on the disk",
    "Disk quota exceeded",
    "File too large",
)


class _LuceneFacts(StoredModel):
    """bm25.json; its defaults are for an index that pyserini made."""

    stemmer: _Stemmer = "porter"
    title: bool = True
    passages: Natural | None = None


class BM25(IndexedRetriever):
    """A Lucene index, searched for questions as bags of words.

    Questions are text, not queries: nothing in them (`AND`, `"`, `title:`) is syntax. Passages of equal score are ranked by
    the byte order of their ids.
    """

    version = 1
    runtime_only = ("threads", "memory_gb")

    @check_arguments("setting of retriever 'bm25'")
    def __init__(
        self,
        index: Path,
        *,
        k1: _JavaFloat = 0.9,
        b: Share = 0.4,
        title_weight: _JavaFloat = 0.0,
        threads: Natural = 0,
        memory_gb: NotNegative = 0.0,
    ) -> None:
        """Open an index. The first index that a process opens starts the JVM.

        Args:
            index: a folder that `build` filled, or a Lucene index made by pyserini with the porter stemmer.
            k1: term frequency saturation, from 0. The lower, the sooner further occurrences of a word stop counting.
            b: length normalisation, 0 to 1. The higher, the lower long passages score.
            title_weight: this times the title's score is added to the text's; above 0 the index must have titles.
            threads: questions searched at a time; 0 for one per core. Does not change a ranking.
            memory_gb: as for `ifqa.retrieval.jvm.load_jnius`. Does not change a ranking.

        Raises:
            IfqaError: the index is missing, damaged, or has no titles; a setting is out of range; Java cannot start.
        """
        self._index, self._batch = require_file(index, "BM25 index"), threads or _BATCH
        path = index / _FACTS_FILE
        facts = _LuceneFacts()
        if path.exists():
            facts = parse_stored(_LuceneFacts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        self._jnius = load_jnius(memory_gb)
        name = self._jnius.autoclass
        try:
            analyzer = name("io.anserini.analysis.DefaultEnglishAnalyzer").fromArguments(facts.stemmer, False, None)
            self._searcher = name("io.anserini.search.SimpleSearcher")(str(index.resolve()), analyzer)
        except self._jnius.JavaException as error:
            raise self._damaged(error) from error
        self._count = self._searcher.get_total_num_docs()
        if facts.passages not in (None, self._count):
            raise IfqaError(f"{index} holds {self._count:,} of {facts.passages:,} passages: damaged; build it again")
        if title_weight and not facts.title:
            raise IfqaError(f"{index} was built without titles: set title_weight to 0, or build it with title = true")
        self._searcher.set_bm25(float(k1), float(b))
        name("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(_MAX_TERMS)
        self._weights = name("java.util.HashMap")()
        if title_weight:
            self._weights.put("contents", name("java.lang.Float")(1.0))
            self._weights.put("title", name("java.lang.Float")(float(title_weight)))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first; none for a question of stop words alone.

        Scores are Anserini's: BM25 rounded to four decimals. A passage that ties, or nearly ties, with the passage before
        it is set 1e-6 lower (ScoreTiesAdjusterReranker). Scores are 32-bit floats, which above 16 are too coarse to show
        these steps. Scores never rise along a ranking, so a TREC run, which is read by score, keeps the ranking's order.

        Raises:
            IfqaError: the index turns out to be damaged.
        """
        array_list = self._jnius.autoclass("java.util.ArrayList")
        rankings: list[SearchResult] = []
        for start in range(0, len(questions), self._batch):
            batch, queries, keys = questions[start : start + self._batch], array_list(), array_list()
            for number, question in enumerate(batch):
                queries.add(question.text.encode("utf-8", "replace").decode())  # pyjnius refuses lone surrogates
                keys.add(str(number))
            try:  # each text in a thread, up to one per core: batch_search ignores the number of threads that it is given
                lists = self._searcher.batch_search_fields(
                    queries, keys, min(k, self._count), len(batch), self._weights
                )
            except self._jnius.JavaException as error:
                raise self._damaged(error) from error
            matches = (lists.get(str(number)) for number in range(len(batch)))
            rankings += [SearchResult([Hit(match.docid, match.score) for match in ranking]) for ranking in matches]
        return rankings

    def _damaged(self, error: Exception) -> IfqaError:
        reason = " ".join(str(error).split())[:200]
        return IfqaError(  # `ifqa index` finds nothing to do where a newer Lucene wrote the index
            f"Lucene cannot read {self._index} ({reason}); remove that folder, then: ifqa index CORPUS"
        )

    @classmethod
    @check_arguments("build setting of retriever 'bm25'", injected=["passages", "folder"])
    def build(
        cls, passages: Path, folder: Path, *, stemmer: _Stemmer = "porter", title: bool = False, threads: Natural = 0
    ) -> None:
        """Index a folder of passages, in a Java process of its own, several files at a time.

        Args:
            passages, folder: with `passages-*.jsonl`; gets Lucene's files.
            stemmer: "porter", "krovetz" or "none".
            title: also index the titles, as a field of their own, for searches with `title_weight`.
            threads: files indexed at a time; 0 for one per core.

        Raises:
            IfqaError: there are no passages, one is not readable or empty, the disk is full, or Java lacks memory.
        """
        shards, count = count_passages(passages)
        folder.mkdir(parents=True, exist_ok=True)
        workers = threads or os.cpu_count() or 1
        options = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-verbose"]
        options += ["-stemmer", stemmer, "-memoryBuffer", f"{_BUFFER_MB}", "-threads", f"{workers}"]
        options += ["-fields", "title"] if title else []
        # Anserini reads every .json, .jsonl and .gz of a folder, manifest.json too: it gets one of nothing but passages
        with tempfile.TemporaryDirectory(prefix="input-", dir=folder) as linked, bar("BM25 index", count) as advance:
            for file in shards.values():
                link = Path(linked) / file.name
                try:
                    link.symlink_to(file.resolve())
                except OSError:  # Windows lets few users make symbolic links; a hard link needs the same disk
                    link.hardlink_to(file)

            def watch(line: str) -> None:
                if added := _ADDED.search(line.rstrip()):
                    advance(int(added[1]))

            arguments = [*options, "-input", linked, "-index", str(folder)]
            status, output = run_java(
                "io.anserini.index.IndexCollection", arguments, watch, quick=count <= _QUICK_PASSAGES
            )
        # Anserini prints a file's error, goes on, and exits as if nothing had failed
        indexed = _count_documents(folder)
        if status or indexed != count:
            if any(sign in output for sign in _DISK_FULL_MESSAGES):
                raise IfqaError(f"no room on the disk to write {folder}: make room and run the same command again")
            if "OutOfMemoryError" in output:
                raise IfqaError(f"Java ran out of memory indexing into {folder}; set {MEMORY_VARIABLE} to more")
            for file in shards.values():
                for number, record in read_jsonl(file):
                    for key in ("id", "contents"):
                        text_field(record, key, f"{file}:{number}")
            raise RuntimeError(f"Anserini ended with {status}, {indexed:,} of {count:,} passages:\n{output[-4000:]}")
        write_json(folder / _FACTS_FILE, {"stemmer": stemmer, "title": title, "passages": count})

    @classmethod
    def forecast(cls, passages: int, **_: object) -> BuildCost:
        """What `build` will take, extrapolated from 410,612 passages on two cores."""
        return BuildCost(
            _START_SECONDS + passages / _PASSAGES_PER_SECOND, passages * _BYTES_PER_PASSAGE, _INDEXING_MEMORY
        )


def _count_documents(index: Path) -> int:
    """How many documents Lucene finds in an index; 0 where it finds no index."""
    jnius = load_jnius()
    try:
        reader = jnius.autoclass("io.anserini.index.IndexReaderUtils").getReader(str(index.resolve()))
    except jnius.JavaException:  # Anserini's output has the reason, and the caller reports it
        return 0
    try:
        return int(reader.numDocs())
    finally:
        reader.close()
