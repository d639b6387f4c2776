"""BM25 with Lucene: the paper's sparse retriever.

Rankings and scores equal those of pyserini's command line exactly.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ifqa.corpus.languages import Language
from ifqa.corpus.passage_store import count_passages
from ifqa.errors import ConfigError
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Question, SearchResult
from ifqa.retrieval.lucene import (
    INDEXING_MEMORY,
    START_SECONDS,
    IndexingFailed,
    LuceneSearcher,
    build_index,
    count_documents,
    linked_files,
)
from ifqa.retrieval.prebuilt import fingerprint_index, open_prebuilt, prebuilt_requirement
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
_Stemmer = Literal["porter", "krovetz", "none"]
_PASSAGES_PER_SECOND = 20_000  # indexing speed
_BYTES_PER_PASSAGE = 330  # on disk


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
    # `prebuilt` is part of the identity by its files: `build_fingerprint`
    runtime_only = ("threads", "memory_gb", "prebuilt")

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
        prebuilt: PathSetting = ""
        """An index of Pyserini's list, such as "wikipedia-dpr-100w", or a folder with an index; it
        is taken as it is, for passages from the same index (the source 'lucene').
        """

    def __init__(self, settings: Settings, *, index: Path) -> None:
        """Open an index, and start the JVM if this process has none.

        `index` is a folder from `build`, or a Lucene index of pyserini with the porter stemmer.
        Raises IfqaError if the index is missing, damaged, or lacks titles, or Java cannot start.
        """
        require_file(index, "BM25 index")
        self._batch = settings.threads or _BATCH
        path = index / _FACTS_FILE
        stored = read_json(path) if path.exists() else {}
        facts = parse_stored(_LuceneFacts, stored, str(path), "build it again: ifqa index CORPUS")

        def make(java: Callable[[str], Any], path: str) -> Any:
            if facts.language:
                analyzer = java("io.anserini.analysis.AnalyzerMap").getLanguageSpecificAnalyzer(
                    facts.language
                )
            else:
                analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").fromArguments(
                    facts.stemmer, False, None
                )
            return java("io.anserini.search.SimpleSearcher")(path, analyzer)

        self._lucene = LuceneSearcher(index, make, facts.passages, settings.memory_gb)
        if settings.title_weight and not facts.title:
            raise ConfigError(
                f"{index} was built without titles: set title_weight to 0, or "
                "build it with title = true"
            )
        self._lucene.searcher.set_bm25(settings.k1, settings.b)
        self._weights = self._lucene.java("java.util.HashMap")()
        if settings.title_weight:
            number = self._lucene.java("java.lang.Float")
            self._weights.put("contents", number(1.0))
            self._weights.put("title", number(settings.title_weight))

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first.

        None for a question with only stop words.

        Scores are Anserini's: BM25 rounded to four decimals. A passage that ties, or nearly ties,
        with its predecessor is lowered by 1e-6 (ScoreTiesAdjusterReranker), a step that vanishes in
        32-bit floats above 16. Scores never rise along a ranking, so a TREC run, which is sorted by
        score, keeps its order. Raises IfqaError if the index is damaged.
        """
        depth = min(k, self._lucene.count)
        rankings: list[SearchResult] = []
        for start in range(0, len(questions), self._batch):
            batch = questions[start : start + self._batch]
            # Pyjnius refuses lone surrogates
            texts = [question.text.encode("utf-8", "replace").decode() for question in batch]

            def find(queries: Any, keys: Any, threads: int = len(batch)) -> Any:
                # A thread per question, up to one per core: batch_search_fields ignores its
                # argument `threads`
                return self._lucene.searcher.batch_search_fields(
                    queries, keys, depth, threads, self._weights
                )

            rankings += map(SearchResult, self._lucene.search(texts, find))
        return rankings

    @classmethod
    def build(cls, passages: Path, folder: Path, settings: BuildSettings) -> None:
        """Index `passages-*.jsonl` into a folder, in a separate Java process.

        Raises IfqaError if there are no passages, a passage is malformed or empty, the disk is
        full, or Java lacks memory.
        """
        if settings.prebuilt:
            _take_over(settings, passages, folder)
            return
        language = settings.language
        shards, count = count_passages(passages)
        folder.mkdir(parents=True, exist_ok=True)
        options = ["-collection", "JsonCollection", "-stemmer", settings.stemmer]
        options += ["-fields", "title"] if settings.title else []
        options += ["-language", language] if language else []
        with linked_files(shards.values(), folder) as inputs:
            try:
                build_index(inputs, folder, options, count, settings.threads, "BM25 index")
            except IndexingFailed:
                for file in shards.values():
                    for number, record in read_jsonl(file):
                        for key in ("id", "contents"):
                            text_field(record, key, f"{file}:{number}")
                raise
        facts = {"stemmer": settings.stemmer, "title": settings.title, "passages": count}
        write_json(folder / _FACTS_FILE, facts | ({"language": language} if language else {}))

    @classmethod
    def build_requirements(
        cls, index: Path, settings: BuildSettings, root: Path
    ) -> list[Requirement]:
        """The published index."""
        return [prebuilt_requirement(settings.prebuilt, root)] if settings.prebuilt else []

    @classmethod
    def build_fingerprint(cls, settings: BuildSettings) -> str:
        """The fingerprint of the published index; empty without one."""
        if not settings.prebuilt:
            return ""
        return fingerprint_index(open_prebuilt(settings.prebuilt))

    @classmethod
    def forecast(cls, passages: int, settings: BuildSettings) -> BuildCost:
        """The cost of `build`, extrapolated from 410,612 passages on two cores."""
        seconds = START_SECONDS + passages / _PASSAGES_PER_SECOND
        if settings.prebuilt:  # linked, or at most copied
            seconds = START_SECONDS
        return BuildCost(seconds, passages * _BYTES_PER_PASSAGE, INDEXING_MEMORY)


def _take_over(settings: BM25.BuildSettings, passages: Path, folder: Path) -> None:
    """Link or copy a published index into a folder.

    Raises IfqaError if it holds fewer documents than there are passages: the passages are from
    another index.
    """
    _, count = count_passages(passages)
    source = open_prebuilt(settings.prebuilt)
    held = count_documents(source)
    if held < count:
        raise ConfigError(
            f"{source} holds {held:,} documents, but the corpus has {count:,} passages; wanted "
            'passages from the same index: format = "lucene"'
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if path.is_file() and path.name != "write.lock":
            place = folder / path.name
            place.unlink(missing_ok=True)
            try:
                place.hardlink_to(path.resolve())
            except OSError:  # another disk
                shutil.copyfile(path, place)
    facts = {"stemmer": settings.stemmer, "title": False, "passages": held}
    write_json(folder / _FACTS_FILE, facts)
