"""Learned sparse retrieval in Lucene: a model weighs the words of its vocabulary for each passage
and question (SPLADE; Formal et al., SIGIR 2021), and Lucene adds up the products.

Weights are stored as whole numbers, the model's times 100; Pyserini's are the model's times 51.2
(pyserini/encode/_splade.py:43-50). Words are stored by their number in the vocabulary.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ifqa.corpus.passage_store import count_passages
from ifqa.errors import FormatError
from ifqa.models import loading
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Hit, Passage, Question, SearchResult
from ifqa.retrieval.lucene import START_SECONDS, LuceneSearcher, build_index
from ifqa.retrieval.vectors import encoders
from ifqa.retrieval.vectors.sparse_encoder import (
    SparseSettings,
    Weights,
    cached_sparse_encoder,
    passage_weights,
    query_weights,
)
from ifqa.retrieval.vectors.vector_store import (
    VERSION,
    Arrays,
    Shards,
    encode_corpus,
    estimate_encoding,
)
from ifqa.settings import Natural, NotNegative, PluginSettings, Precision, StoredModel, parse_stored
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.files import atomic_write, read_json, require_file, write_json

SCALE = 100  # a stored weight is the model's, times this
_HIGHEST = np.iinfo(np.uint16).max
_FACTS_FILE = "sparse.json"  # the build settings that a searcher needs
_LUCENE_FOLDER = "lucene"
_INPUT_FOLDER = "lucene-input"
_BATCH = 64  # questions per batch if `threads` is 0; bounds memory
_PASSAGES_PER_SECOND = 700  # that Lucene indexes, of 230 words each
_WORD_BYTES = 4  # of a passage's word in Lucene's index and in its input, together

#: Of a shard: the words of all its passages, their weights, and how many each passage has.
KINDS = ("words", "impacts", "counts")


class _SparseFacts(StoredModel):
    """The keys of sparse.json that a searcher reads."""

    model: str
    weights: str
    precision: str
    indexed: Natural
    family: str
    trained_on: list[str]


class Sparse(IndexedRetriever):
    """Searches learned sparse weights in a Lucene index: the passages with the highest inner
    product of weights.

    The model is a `SparseEncoder` of sentence-transformers, which may look up the weights of a
    question in a table.
    """

    version = 1
    takes = ("index",)
    runtime_only = ("threads", "memory_gb", "device")
    resumes = True
    model_settings: ClassVar = {"model": ""}

    class Settings(PluginSettings):
        threads: Natural = 0
        """Questions searched at a time; 0 for one per core."""
        memory_gb: NotNegative = 0.0
        """Limit of Java's heap, in GiB; 0 for the environment variable IFQA_JAVA_GB, or a quarter
        of the RAM if that is unset.
        """
        device: str = "auto"
        """The device of the encoder: "cpu", "cuda", "mps" or "auto"."""

    class BuildSettings(PluginSettings):
        model: PathSetting
        """A learned sparse encoder of sentence-transformers: a folder, a name on the hub, or
        "splade-tiny".
        """
        titles: bool = False
        """Encode a passage's title before its text."""
        precision: Precision = "auto"
        """The precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware supports it."""
        device: str = "auto"
        """The device of the encoder: "cpu", "cuda", "mps" or "auto"."""
        threads: Natural = 0
        """Files that Lucene indexes at a time; 0 for one per core."""

    def __init__(self, settings: Settings, *, index: Path) -> None:
        """Open an index from `build`, and its model.

        Raises IfqaError if the index is missing, damaged or for another model, if the model is
        missing, or Java cannot start.
        """
        path = require_file(index / _FACTS_FILE, "sparse index")
        facts = parse_stored(
            _SparseFacts, read_json(path), str(path), "build it again: ifqa index CORPUS"
        )
        weights = loading.model_fingerprint(facts.model)
        encoders.refuse_other_weights(index, facts.model, facts.weights, weights)
        self.family = facts.family
        self.trained_on = tuple(facts.trained_on)
        self._batch = settings.threads or _BATCH
        lucene = require_file(index / _LUCENE_FOLDER, "sparse index")

        def make(java: Callable[[str], Any], path: str) -> Any:
            return java("io.anserini.search.SimpleImpactSearcher")(path)

        self._lucene = LuceneSearcher(lucene, make, facts.indexed, settings.memory_gb)
        self._model = cached_sparse_encoder(
            SparseSettings(facts.model, False, facts.precision, settings.device)
        )

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first.

        A passage without a word of the question is not found. Scores are inner products of weights
        that are rounded to hundredths.
        """
        depth = min(k, self._lucene.count)
        rankings: list[SearchResult] = []
        for start in range(0, len(questions), self._batch):
            texts = [question.text for question in questions[start : start + self._batch]]
            queries = [
                self._to_java(impacts(weights)) for weights in query_weights(self._model, texts)
            ]

            def find(values: Any, keys: Any, threads: int = len(texts)) -> Any:
                return self._lucene.searcher.batch_search(values, keys, depth, threads)

            for hits in self._lucene.search(queries, find):
                scaled = [Hit(hit.passage_id, hit.score / SCALE**2) for hit in hits]
                rankings.append(SearchResult(scaled))
        return rankings

    def _to_java(self, words: dict[int, int]) -> Any:
        """Java's map from a word to its weight."""
        mapping = self._lucene.java("java.util.HashMap")()
        number = self._lucene.java("java.lang.Integer")
        for word, impact in words.items():
            mapping.put(str(word), number(impact))
        return mapping

    @classmethod
    def build(cls, passages: Path, folder: Path, settings: BuildSettings) -> None:
        """Encode `passages-*.jsonl`, and index the weights in a separate Java process.

        Weights of an interrupted build are reused. Raises IfqaError if there are no passages, the
        model is missing, the disk is full, or Java lacks memory.
        """
        count_passages(passages)  # before the slow loading of the model
        precision = encoders.precision_name(settings.precision, settings.device)
        encoding = replace(_encoder_settings(settings), precision=precision)
        cached_sparse_encoder(encoding)
        facts: dict[str, object] = {
            "model": settings.model,
            "weights": loading.model_fingerprint(settings.model),
            "titles": settings.titles,
            "precision": precision,
        }
        fingerprint = compute_fingerprint(facts | {"version": VERSION, "scale": SCALE})
        encode = partial(encode_impacts, encoding)
        facts["passages"] = encode_corpus(passages, folder, fingerprint, encode, kinds=KINDS)
        facts["indexed"] = _index(folder, settings.threads)
        family, trained_on = encoders.read_training(settings.model)
        write_json(folder / _FACTS_FILE, facts | {"family": family, "trained_on": trained_on})

    @classmethod
    def forecast(cls, passages: int, settings: BuildSettings) -> BuildCost:
        """The cost of `build` on this machine, measured by encoding some passages."""
        encoding = _encoder_settings(settings)
        device = str(cached_sparse_encoder(encoding).device.type)
        cost = estimate_encoding(passages, partial(encode_impacts, encoding), device)
        seconds = cost.seconds + START_SECONDS + passages / _PASSAGES_PER_SECOND
        return replace(cost, seconds=seconds, disk=cost.disk * (1 + _WORD_BYTES / 6))

    @classmethod
    def training_family(cls, settings: BuildSettings, root: Path) -> str:
        """The split family that a model was trained on, or empty, without loading the model."""
        model = settings.model
        return encoders.read_training(model)[0] if Path(model).is_dir() else ""

    @classmethod
    def build_requirements(
        cls, index: Path, settings: BuildSettings, root: Path
    ) -> list[Requirement]:
        """The encoder."""
        return encoders.encoder_requirements(settings.model, root)

    @classmethod
    def build_fingerprint(cls, settings: BuildSettings) -> str:
        """SHA-256 of the model files that `build` uses."""
        return loading.model_fingerprint(settings.model)


def _encoder_settings(settings: Sparse.BuildSettings) -> SparseSettings:
    return SparseSettings(settings.model, settings.titles, settings.precision, settings.device)


def impacts(weights: Weights) -> dict[int, int]:
    """Weights as whole numbers, without those that are zero."""
    rounded = {word: round(weight * SCALE) for word, weight in weights.items()}
    return {word: impact for word, impact in rounded.items() if impact > 0}


def encode_impacts(settings: SparseSettings, passages: Sequence[Passage]) -> Arrays:
    """The arrays of `KINDS` of passages.

    Raises FormatError, with the passage's id, for a weight that is too large.
    """
    rows = [
        impacts(weights)
        for weights in passage_weights(cached_sparse_encoder(settings), settings.titles, passages)
    ]
    for passage, row in zip(passages, rows, strict=True):
        if max(row.values(), default=0) > _HIGHEST:
            raise FormatError(
                f"a weight of passage {passage.id} is {max(row.values()) / SCALE:g}, wanted at "
                f"most {_HIGHEST / SCALE:g}: the model is damaged"
            )
    return {
        "words": np.array([word for row in rows for word in row], np.uint32),
        "impacts": np.array([impact for row in rows for impact in row.values()], np.uint16),
        "counts": np.array([len(row) for row in rows], np.uint32),
    }


def _index(folder: Path, threads: int) -> int:
    """Index a folder's shards of weights below it; returns the number of passages with a weight."""
    lucene = folder / _LUCENE_FOLDER
    inputs = folder / _INPUT_FOLDER
    for former in (lucene, inputs):
        shutil.rmtree(former, ignore_errors=True)
    inputs.mkdir()
    shards = Shards(folder)
    indexed = 0
    for position, number in enumerate(shards.numbers):
        with atomic_write(inputs / f"weights-{number:05d}.jsonl") as handle:
            for line in _lines(shards, position):
                handle.write(json.dumps(line).encode() + b"\n")
                indexed += 1
    options = ["-collection", "JsonVectorCollection", "-impact", "-pretokenized"]
    build_index(inputs, lucene, options, indexed, threads, "sparse index")
    shutil.rmtree(inputs)
    return indexed


def _lines(shards: Shards, position: int) -> Iterator[dict[str, object]]:
    """Anserini's records of a shard's passages; one without weights cannot be found."""
    first, last = shards.bounds()[position]
    ids = shards.ids(range(first, last))
    words, weights, counts = (shards.array(kind, position).tolist() for kind in KINDS)
    start = 0
    for passage_id, count in zip(ids, counts, strict=True):
        end = start + count
        vector = dict(zip(map(str, words[start:end]), weights[start:end], strict=True))
        if vector:
            yield {"id": passage_id, "contents": "", "vector": vector}
        start = end
