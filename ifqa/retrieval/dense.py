"""Dense retrieval: the passages whose vectors have the highest inner product with the question's
vector.

The encoder is the paper's DPR (Karpukhin et al., EMNLP 2020) or any sentence-transformers model. If
the model normalises its vectors, the inner product is the cosine.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from rich.filesize import decimal

from ifqa.corpus.passage_store import count_passages
from ifqa.errors import ConfigError
from ifqa.models import hub
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Question, SearchResult
from ifqa.retrieval.vectors import encoders, vector_index
from ifqa.retrieval.vectors.vector_index import FlatIndex
from ifqa.retrieval.vectors.vector_store import VERSION, Shards, encode_corpus, estimate_encoding
from ifqa.settings import (
    Natural,
    NotNegative,
    Precision,
    StoredModel,
    Text,
    YesNo,
    check_arguments,
    parse_stored,
)
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.files import read_json, require_file, write_json
from ifqa.workers.pool import Engine

logger = logging.getLogger(__name__)

_FACTS_FILE = "dense.json"  # the build settings that a searcher needs


class Dense(IndexedRetriever):
    """Searches passage vectors exactly or with FAISS."""

    version = 1
    runtime_only = ("device", "engine", "workers", "memory_gb")
    resumes = True
    model_settings: ClassVar = {"model": hub.MINILM, "query_model": ""}
    _searcher: vector_index.FaissIndex | FlatIndex

    @check_arguments("setting of retriever 'dense'")
    def __init__(
        self,
        index: Path,
        *,
        nprobe: Natural = 0,
        ef_search: Natural = 0,
        device: str = "auto",
        memory_gb: NotNegative = 0.0,
    ) -> None:
        """Open an index from `build`, and its model.

        Raises IfqaError if the index is missing, damaged or for another model, or if the model, the
        GPU or faiss is missing.

        Args:
            nprobe: lists of an IVF index to search; 0 for the default.
            ef_search: candidates kept by an HNSW search; 0 for the default.
            device: "cpu", "cuda", or "auto", for the encoder and a FAISS index. Exact search runs
                on the CPU.
            memory_gb: memory in 10^9 bytes above which a FAISS index is searched part by part; 0
                for most of the free memory.
        """
        path = require_file(index / _FACTS_FILE, "dense index")
        facts = parse_stored(
            _DenseFacts, read_json(path), str(path), "build it again: ifqa index CORPUS"
        )
        weights = hub.model_fingerprint(facts.model, facts.query_model)
        encoders.refuse_other_weights(index, facts.model, facts.weights, weights)
        keys = {"model", "query_model", "max_tokens", "query_prefix", "passage_prefix", "precision"}
        settings = facts.model_dump(include=keys)
        settings |= {"titles": "yes" if facts.titles else "no", "device": device}
        self.encoder = encoders.cached_encoder(encoders.EncoderSettings(**settings))
        self.family = facts.family
        self.trained_on = tuple(facts.trained_on)
        self._shards = Shards(index)
        if facts.factory:
            shape = (facts.passages, facts.dimension or 0)
            # FAISS has no other devices
            faiss_device = "cuda" if self.encoder.device == "cuda" else "cpu"
            self._searcher = vector_index.FaissIndex(
                index, shape, nprobe, ef_search, faiss_device, memory_gb
            )
        else:
            if nprobe or ef_search:
                raise ConfigError(
                    f"nprobe and ef_search need a FAISS index, but {index} has none; set them to 0"
                )
            self._searcher = FlatIndex(self._shards)

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` passages of each question with the highest inner product, best first."""
        if not questions:
            return []
        vectors = self.encoder.encode_queries([question.text for question in questions])
        return self._shards.to_rankings(*self._searcher.search(vectors, k))

    @classmethod
    @check_arguments("build setting of retriever 'dense'", injected=["passages", "folder"])
    def build(
        cls,
        passages: Path,
        folder: Path,
        *,
        model: PathSetting = hub.MINILM,
        query_model: PathSetting = "",
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        titles: YesNo = "auto",
        max_tokens: Natural = 0,
        precision: Precision = "auto",
        factory: str = "",
        train_sample: Natural = 0,
        keep_vectors: bool = True,
        seed: Natural = 0,
        device: str = "auto",
        engine: Engine = "local",
        workers: Natural = 0,
    ) -> None:
        """Encode `passages-*.jsonl` into a folder, and build a FAISS index over the vectors if
        `factory` is given.

        Vectors of an interrupted build are reused. Raises IfqaError if there are no passages, the
        model is missing, or a setting is out of range.

        Args:
            model, query_model, query_prefix, passage_prefix, titles, max_tokens, precision, device:
                see `ifqa.retrieval.vectors.encoders.EncoderSettings`.
            factory: a FAISS index_factory string ("SQ8", "IVF4096,PQ48x8", "HNSW32", ...); empty
                for exact search.
            train_sample: number of vectors to train a FAISS index on; 0 for the default.
            keep_vectors: keep the vectors next to a FAISS index; without them, another index needs
                a new encoding.
            seed: chooses the sample.
            engine: "local", or "ray" for a cluster.
            workers: encoding processes; 0 for one per GPU, or a single process on a CPU.
        """
        if not factory and not keep_vectors:
            raise ConfigError("keep_vectors = false leaves nothing to search; set factory too")
        count_passages(passages)  # before the slow loading of the model
        precision = encoders.precision_name(precision, device)  # the same for all workers
        settings = encoders.EncoderSettings(
            model, query_model, titles, max_tokens, precision, device, query_prefix, passage_prefix
        )
        encoder = encoders.cached_encoder(settings)
        facts: dict[str, object] = {**encoder.facts}
        facts["weights"] = hub.model_fingerprint(model, encoder.facts.get("query_model", ""))
        logger.info(f"{folder}: {json.dumps(facts)}")
        fingerprint = compute_fingerprint(
            facts | {"version": VERSION, "query_prefix": "", "query_model": ""}
        )
        gpus = _count_gpus(encoder.device)
        workers = workers or (max(1, gpus) if engine == "local" else 0)
        encode = partial(encoders.encode_stored, settings)
        facts["passages"] = encode_corpus(
            passages, folder, fingerprint, encode, engine=engine, workers=workers, gpus=gpus
        )
        if factory:
            shards = Shards(folder)
            facts["faiss"] = vector_index.build_index(
                shards, folder, factory, train_sample=train_sample, seed=seed
            )
        obsolete: list[Path] = []
        if not factory:
            obsolete = list(folder.glob("faiss*"))
        elif not keep_vectors:
            obsolete = list(folder.glob("vectors-*.npy"))
        for path in obsolete:
            path.unlink()
        family, trained_on = encoders.read_training(model, hub.question_model(model, query_model))
        write_json(
            folder / _FACTS_FILE,
            facts | {"factory": factory, "family": family, "trained_on": trained_on},
        )

    @classmethod
    def forecast(cls, passages: int, *, factory: str = "", **build_settings: Any) -> BuildCost:
        """The cost of `build` on this machine, measured by encoding some passages.

        Raises as `build` does.
        """
        names = {field.name for field in fields(encoders.EncoderSettings)}
        settings = encoders.EncoderSettings(
            **{name: build_settings[name] for name in names & build_settings.keys()}
        )
        encoder = encoders.cached_encoder(settings)
        encode = partial(encoders.encode_stored, settings)
        cost = estimate_encoding(
            passages, encode, encoder.device, gpus=max(1, _count_gpus(encoder.device))
        )
        search_bytes = cost.disk
        part_bytes = 0
        if factory:
            counts = (passages, min(passages, vector_index.PART_VECTORS))
            dimension = encoder.facts["dimension"] or 0
            search_bytes, part_bytes = (
                vector_index.estimate_bytes(factory, count, dimension) for count in counts
            )
            cost = replace(cost, disk=cost.disk + search_bytes)
        search_memory = decimal(int(cost.memory + search_bytes))
        about = f"{cost.about}; then {search_memory} of memory to search, or less part by part"
        return replace(cost, memory=cost.memory + 2 * part_bytes, about=about)

    @classmethod
    def training_family(cls, model: str = hub.MINILM, **_: object) -> str:
        """The split family that `ifqa train dense` trained a model on, or empty, without loading
        the model.
        """
        return encoders.read_training(model)[0] if Path(model).is_dir() else ""

    @classmethod
    def build_requirements(
        cls,
        index: Path,
        *,
        model: str = hub.MINILM,
        query_model: str = "",
        root: Path = Path(),
        **_: object,
    ) -> list[Requirement]:
        """The encoder."""
        return hub.encoder_requirements(model, root, query_model)

    @classmethod
    def build_fingerprint(cls, model: str = hub.MINILM, query_model: str = "", **_: object) -> str:
        """SHA-256 of the model files that `build` uses."""
        return hub.model_fingerprint(model, hub.question_model(model, query_model))


def _count_gpus(device: str) -> int:
    """The number of GPUs; 0 for another device."""
    import torch

    return torch.cuda.device_count() if device == "cuda" else 0


class _DenseFacts(StoredModel):
    """The keys of dense.json that a searcher reads."""

    model: Text
    query_model: str = ""
    weights: str
    titles: bool
    max_tokens: int | None
    query_prefix: str | None
    passage_prefix: str | None
    precision: Literal["float32", "bfloat16"]
    dimension: int | None = None
    passages: Natural
    factory: str
    family: str
    trained_on: list[str]
