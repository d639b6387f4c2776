"""BM25 with Lucene: the paper's sparse retriever.

Rankings and scores equal those of pyserini's command line exactly.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal
from weakref import finalize

from pydantic import Field

from ifqa.corpus.languages import Language
from ifqa.corpus.passage_store import count_passages
from ifqa.errors import ConfigError, DamagedArtifact, IfqaError
from ifqa.progress import bar
from ifqa.protocols import IndexedRetriever
from ifqa.records import BuildCost, Hit, Question, SearchResult
from ifqa.retrieval.jvm import MEMORY_VARIABLE, load_jnius, run_java
from ifqa.settings import (
    Natural,
    NotNegative,
    PluginSettings,
    Share,
    StoredModel,
    parse_stored,
    wanted,
)
from ifqa.storage.files import read_json, read_jsonl, require_file, text_field, write_json

_FACTS_FILE = "bm25.json"  # the build settings that a searcher needs
_JavaFloat = Annotated[float, Field(ge=0, le=3e38, json_schema_extra=wanted("a number from 0"))]
_BATCH = 64  # questions per batch if `threads` is 0; bounds memory
_QUICK_PASSAGES = 50_000  # up to this many passages, Java's quick compiler is faster
_BUFFER_MB = 256  # Lucene flushes a segment at this size; fits the smallest heap
_MAX_TERMS = 1 << 20  # distinct words in a question; Lucene's default is 1,024
_Stemmer = Literal["porter", "krovetz", "none"]
_START_SECONDS, _PASSAGES_PER_SECOND = 3, 20_000  # JVM start; indexing speed
_BYTES_PER_PASSAGE, _INDEXING_MEMORY = 330, 500e6  # bytes on disk; bytes in memory
_ADDED = re.compile(r": (\d+) docs added\.$")
_DISK_FULL = re.compile(
    "No space left on device|not enough space on the disk|Disk quota exceeded|File too large"
)


class _LuceneFacts(StoredModel):
    """bm25.json; the defaults are for an index built by pyserini."""

    stemmer: _Stemmer = "porter"
    title: bool = True
    passages: Natural | None = None
    language: Language | None = None


class BM25(IndexedRetriever):
    """Searches a Lucene index with questions as bags of words.

    Questions are plain text: nothing in them (`AND`, `"`, `title:`) is query syntax. Ties are
    ranked by the byte order of ids.
    """

    version = 1
    takes = ("index",)
    runtime_only = ("threads", "memory_gb")

    class Settings(PluginSettings):
        # The defaults of k1 and b are pyserini's (pyserini/search/lucene/_searcher.py:583), not
        # Lucene's
        k1: _JavaFloat = 0.9
        """Term frequency saturation, at least 0; at a low value, repetitions of a word add
        little.
        """
        b: Share = 0.4
        """Length normalisation, from 0 to 1; at a high value, long passages score lower."""
        title_weight: _JavaFloat = 0.0
        """Weight of the title's score, added to the text's; above 0 the index needs titles."""
        threads: Natural = 0
        """Questions searched at a time; 0 for one per core."""
        memory_gb: NotNegative = 0.0
        """Limit of Java's heap, in GiB; 0 for the environment variable IFQA_JAVA_GB, or a quarter
        of the RAM if that is unset.
        """

    class BuildSettings(PluginSettings):
        stemmer: _Stemmer = "porter"
        """The stemmer for English: "porter", "krovetz" or "none"."""
        title: bool = False
        """Index the titles too, as a separate field for `title_weight`."""
        threads: Natural = 0
        """Files indexed at a time; 0 for one per core."""
        language: Language | None = None
        """ISO 639-1 code of Lucene's analyzer for another language than English; "zh" indexes pairs
        of characters.
        """

    def __init__(self, settings: Settings, *, index: Path) -> None:
        """Open an index, and start the JVM if this process has none.

        `index` is a folder from `build`, or a Lucene index of pyserini with the porter stemmer.
        Raises IfqaError if the index is missing, damaged, or lacks titles, or Java cannot start.
        """
        self._index = require_file(index, "BM25 index")
        self._batch = settings.threads or _BATCH
        path = index / _FACTS_FILE
        stored = read_json(path) if path.exists() else {}
        facts = parse_stored(_LuceneFacts, stored, str(path), "build it again: ifqa index CORPUS")
        self._jnius = load_jnius(settings.memory_gb)
        name = self._jnius.autoclass
        try:
            if facts.language:
                analyzer = name("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(
                    facts.language
                )
            else:
                analyzer = name("io.anserini.analysis.DefaultEnglishAnalyzer").fromArguments(
                    facts.stemmer, False, None
                )
            self._searcher = name("io.anserini.search.SimpleSearcher")(
                str(index.resolve()), analyzer
            )
        except self._jnius.JavaException as error:
            raise self._damaged(error) from error
        # Else its files stay mapped. A bound method of Java would close the newest searcher:
        # pyjnius binds it again.
        finalize(self, lambda searcher: searcher.close(), self._searcher).atexit = False
        self._count = self._searcher.get_total_num_docs()
        if facts.passages not in (None, self._count):
            counts = f"{self._count:,} of {facts.passages:,} passages"
            raise DamagedArtifact(f"{index} is damaged: it holds {counts}; build it again")
        if settings.title_weight and not facts.title:
            raise ConfigError(
                f"{index} was built without titles: set title_weight to 0, or "
                "build it with title = true"
            )
        self._searcher.set_bm25(settings.k1, settings.b)
        name("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(_MAX_TERMS)
        self._weights = name("java.util.HashMap")()
        if settings.title_weight:
            self._weights.put("contents", name("java.lang.Float")(1.0))
            self._weights.put("title", name("java.lang.Float")(settings.title_weight))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first.

        None for a question with only stop words.

        Scores are Anserini's: BM25 rounded to four decimals. A passage that ties, or nearly ties,
        with its predecessor is lowered by 1e-6 (ScoreTiesAdjusterReranker), a step that vanishes in
        32-bit floats above 16. Scores never rise along a ranking, so a TREC run, which is sorted by
        score, keeps its order. Raises IfqaError if the index is damaged.
        """
        array_list = self._jnius.autoclass("java.util.ArrayList")
        rankings: list[SearchResult] = []
        for start in range(0, len(questions), self._batch):
            batch = questions[start : start + self._batch]
            queries = array_list()
            keys = array_list()
            for number, question in enumerate(batch):
                # Pyjnius refuses lone surrogates
                queries.add(question.text.encode("utf-8", "replace").decode())
                keys.add(str(number))
            depth = min(k, self._count)
            # A thread per question, up to one per core: batch_search_fields ignores its argument
            # `threads`
            try:
                matches = self._searcher.batch_search_fields(
                    queries, keys, depth, len(batch), self._weights
                )
            except self._jnius.JavaException as error:
                raise self._damaged(error) from error
            for key in map(str, range(len(batch))):
                rankings.append(
                    SearchResult([Hit(match.docid, match.score) for match in matches.get(key)])
                )
        return rankings

    def _damaged(self, error: Exception) -> DamagedArtifact:
        fault = f"Lucene cannot read {self._index} ({' '.join(str(error).split())[:200]})"
        # `ifqa index` alone does not rebuild an index that a newer Lucene built
        return DamagedArtifact(f"{fault}; remove that folder, then: ifqa index CORPUS")

    @classmethod
    def build(cls, passages: Path, folder: Path, settings: BuildSettings) -> None:
        """Index `passages-*.jsonl` into a folder, in a separate Java process.

        Raises IfqaError if there are no passages, a passage is malformed or empty, the disk is
        full, or Java lacks memory.
        """
        language = settings.language
        shards, count = count_passages(passages)
        folder.mkdir(parents=True, exist_ok=True)
        workers = settings.threads or os.cpu_count() or 1
        options = [
            "-collection",
            "JsonCollection",
            "-generator",
            "DefaultLuceneDocumentGenerator",
            "-verbose",
        ]
        options += ["-stemmer", settings.stemmer]
        options += ["-memoryBuffer", f"{_BUFFER_MB}", "-threads", f"{workers}"]
        options += ["-fields", "title"] if settings.title else []
        options += ["-language", language] if language else []
        # link the passages into a new folder, because Anserini reads every .json, .jsonl and .gz,
        # even manifest.json
        with (
            tempfile.TemporaryDirectory(prefix="input-", dir=folder) as linked,
            bar("BM25 index", count) as advance,
        ):
            for file in shards.values():
                link = Path(linked) / file.name
                try:
                    link.symlink_to(file.resolve())
                except OSError:
                    # few Windows users may make symbolic links; a hard link needs the same disk
                    link.hardlink_to(file)

            def watch(line: str) -> None:
                if added := _ADDED.search(line.rstrip()):
                    advance(int(added[1]))

            arguments = [*options, "-input", linked, "-index", str(folder)]
            quick = count <= _QUICK_PASSAGES
            status, output = run_java(
                "io.anserini.index.IndexCollection", arguments, watch, quick=quick
            )
        # Anserini prints the error of a file, continues, and exits with 0
        indexed = _count_documents(folder)
        if status or indexed != count:
            if _DISK_FULL.search(output):
                raise IfqaError(
                    f"the disk is full at {folder}: free some space and run the same command again"
                )
            if "OutOfMemoryError" in output:
                raise IfqaError(
                    f"Java ran out of memory while indexing into {folder}; raise {MEMORY_VARIABLE}"
                )
            for file in shards.values():
                for number, record in read_jsonl(file):
                    for key in ("id", "contents"):
                        text_field(record, key, f"{file}:{number}")
            raise RuntimeError(
                f"Anserini indexed {indexed:,} of {count:,}, status {status}:\n{output[-4000:]}"
            )
        facts = {"stemmer": settings.stemmer, "title": settings.title, "passages": count}
        write_json(folder / _FACTS_FILE, facts | ({"language": language} if language else {}))

    @classmethod
    def forecast(cls, passages: int, settings: BuildSettings) -> BuildCost:
        """The cost of `build`, extrapolated from 410,612 passages on two cores."""
        seconds = _START_SECONDS + passages / _PASSAGES_PER_SECOND
        return BuildCost(seconds, passages * _BYTES_PER_PASSAGE, _INDEXING_MEMORY)


def _count_documents(index: Path) -> int:
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
