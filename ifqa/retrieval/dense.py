"""Dense retrieval: the passages whose vectors have the highest inner product with the question's vector.

The encoder is the paper's DPR (Karpukhin et al., EMNLP 2020) or any sentence-transformers model. Where the model
normalises its vectors, the inner product is the cosine.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from ifqa.corpus.passage_store import count_passages
from ifqa.errors import ConfigError
from ifqa.models.hub import MINILM, encoder_requirements, model_fingerprint, model_folder, question_model
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Question, SearchResult
from ifqa.retrieval.vectors import vector_index
from ifqa.retrieval.vectors.encoders import (
    EncoderSettings,
    cached_encoder,
    encode_stored,
    precision_name,
    refuse_other_weights,
)
from ifqa.retrieval.vectors.vector_index import FlatIndex
from ifqa.retrieval.vectors.vector_store import VERSION, Shards, encode_corpus, estimate_encoding
from ifqa.settings import Natural, NotNegative, Precision, StoredModel, Text, YesNo, check_arguments, parse_stored
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.files import read_json, require_file, write_json
from ifqa.workers.pool import Engine

logger = logging.getLogger(__name__)

_FACTS_FILE = "dense.json"  # stored with the vectors: the build settings that a searcher needs


class Dense(IndexedRetriever):
    """Searches passage vectors exactly or with FAISS."""

    version = 1
    runtime_only = ("device", "engine", "workers", "memory_gb")
    resumes = True
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
        """Open an index and its model.

        Args:
            index: a folder from `build`.
            nprobe: lists of an IVF index to search; 0 for the default.
            ef_search: candidates kept by an HNSW search; 0 for the default.
            device: "cpu", "cuda", or "auto", for the encoder and a FAISS index. Exact search runs on the CPU.
            memory_gb: memory in 10^9 bytes above which a FAISS index is searched part by part; 0 for most of the free memory.

        Raises:
            IfqaError: the index is missing, damaged or of another model; the model or the GPU is missing; faiss is needed and
                not installed.
        """
        path = require_file(index / _FACTS_FILE, "dense index")
        facts = parse_stored(_DenseFacts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        refuse_other_weights(index, facts.model, facts.weights, model_fingerprint(facts.model, facts.query_model))
        encoder_facts = facts.model_dump(
            include={"model", "query_model", "max_tokens", "query_prefix", "passage_prefix"}
        )
        precision: Precision = "bfloat16" if facts.precision == "bfloat16" else "float32"  # old indexes may have "int8"
        titles: YesNo = "yes" if facts.titles else "no"
        self.encoder = cached_encoder(
            EncoderSettings(**encoder_facts, titles=titles, precision=precision, device=device)
        )
        self.family = facts.family
        self.trained_on = tuple(facts.trained_on)
        self._shards = Shards(index)
        if facts.factory:
            shape = (facts.passages, facts.dimension or 0)
            faiss_device = "cuda" if self.encoder.device == "cuda" else "cpu"  # FAISS supports no other device
            self._searcher = vector_index.FaissIndex(index, shape, nprobe, ef_search, faiss_device, memory_gb)
        else:
            if nprobe or ef_search:
                raise ConfigError(f"nprobe and ef_search need a FAISS index, but {index} has none; set them to 0")
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
        model: PathSetting = MINILM,
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
        """Encode a folder of passages, and build a FAISS index over the vectors if `factory` is given.

        Args:
            passages: a folder with `passages-*.jsonl`.
            folder: for vectors and index; vectors from an interrupted build are reused.
            model, query_model, query_prefix, passage_prefix, titles, max_tokens, precision, device: see
                `ifqa.retrieval.vectors.encoders.EncoderSettings`.
            factory: a FAISS index_factory string ("SQ8", "IVF4096,PQ48x8", "HNSW32", ...); empty to search the vectors
                exactly.
            train_sample: number of vectors to train a FAISS index on; 0 for the default.
            keep_vectors: keep the vectors next to a FAISS index; without them, another index needs a new encoding.
            seed: of the sample.
            engine: "local", or "ray" for a cluster.
            workers: encoding processes; 0 for one per GPU, or one on a CPU.

        Raises:
            IfqaError: there are no passages, the model is missing, or a setting is out of range.
        """
        if not factory and not keep_vectors:
            raise ConfigError("keep_vectors = false leaves nothing to search; set factory too")
        count_passages(passages)  # before the slow loading of the model
        resolved = precision_name(precision, device)  # the same for all workers
        settings = EncoderSettings(
            model, query_model, titles, max_tokens, resolved, device, query_prefix, passage_prefix
        )  # fmt: skip
        encoder = cached_encoder(settings)
        facts: dict[str, object] = {**encoder.facts}
        facts["weights"] = model_fingerprint(model, encoder.facts.get("query_model", ""))
        logger.info(f"{folder}: {json.dumps(facts)}")
        fingerprint = compute_fingerprint(facts | {"version": VERSION, "query_prefix": "", "query_model": ""})
        gpus = _count_gpus(encoder.device)
        workers = workers or (max(1, gpus) if engine == "local" else 0)
        encode = partial(encode_stored, settings)
        facts["passages"] = encode_corpus(
            passages, folder, ("vectors",), fingerprint, encode, engine=engine, workers=workers, gpus=gpus
        )
        if factory:
            facts["faiss"] = vector_index.build_index(
                Shards(folder), folder, factory, train_sample=train_sample, seed=seed
            )
        obsolete = ("faiss*", "trained.index") if not factory else () if keep_vectors else ("vectors-*.npy",)
        for path in (path for pattern in obsolete for path in folder.glob(pattern)):
            path.unlink()
        family, trained_on = _read_training(model, question_model(model, query_model))
        write_json(folder / _FACTS_FILE, facts | {"factory": factory, "family": family, "trained_on": trained_on})

    @classmethod
    def forecast(cls, passages: int, *, factory: str = "", **build_settings: Any) -> BuildCost:
        """The cost of `build` on this machine, measured by encoding some passages.

        Raises:
            IfqaError: the model is missing, or a setting is out of range.
        """
        names = {field.name for field in fields(EncoderSettings)}
        settings = EncoderSettings(**{name: value for name, value in build_settings.items() if name in names})
        encoder = cached_encoder(settings)
        cost = estimate_encoding(
            passages, partial(encode_stored, settings), encoder.device, gpus=max(1, _count_gpus(encoder.device))
        )
        search_bytes, part_bytes = cost.disk, 0
        if factory:
            counts, dimension = (passages, min(passages, vector_index.PART_VECTORS)), encoder.facts["dimension"] or 0
            search_bytes, part_bytes = (vector_index.estimate_bytes(factory, count, dimension) for count in counts)
            cost = replace(cost, disk=cost.disk + search_bytes)
        about = (
            f"{cost.about}; then {decimal(int(cost.memory + search_bytes))} of memory to search, or less part by part"
        )
        return replace(cost, memory=cost.memory + 2 * part_bytes, about=about)

    @classmethod
    def training_family(cls, model: str = MINILM, **_: object) -> str:
        """The split family that `ifqa train dense` trained a model on; else empty. Loads and downloads nothing."""
        return _read_training(model)[0] if Path(model).is_dir() else ""

    @classmethod
    def build_requirements(
        cls, index: Path, *, model: str = MINILM, query_model: str = "", root: Path = Path(), **_: object
    ) -> list[Requirement]:
        """The encoder."""
        return encoder_requirements(model, root, query_model)

    @classmethod
    def build_fingerprint(cls, model: str = MINILM, query_model: str = "", **_: object) -> str:
        """SHA-256 of the model files that `build` uses."""
        return model_fingerprint(model, question_model(model, query_model))


def _count_gpus(device: str) -> int:
    """The number of GPUs; 0 if `device` is no GPU."""
    import torch

    return torch.cuda.device_count() if device == "cuda" else 0


class _DenseFacts(StoredModel):
    """What a searcher reads from dense.json."""

    model: Text
    query_model: str = ""
    weights: str
    titles: bool
    max_tokens: int | None
    query_prefix: str | None
    passage_prefix: str | None
    precision: str
    dimension: int | None = None
    passages: Natural
    factory: str
    family: str
    trained_on: list[str]


def _read_training(*models: str) -> tuple[str, list[str]]:
    """The split family that `ifqa train dense` trained a model on, and the SHA-256 of its question files."""
    folders = [model_folder(model) for model in models if model]
    for path in (parent / "manifest.json" for folder in folders for parent in (folder, folder.parent)):
        if path.exists() and isinstance(manifest := read_json(path), dict) and "family" in manifest:
            return manifest["family"], list(manifest.get("sources", {}).values())
    return "", []
