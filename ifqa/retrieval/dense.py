"""Dense retrieval: the passages whose vectors have the highest inner product with the question's
vector.

The encoder is the paper's DPR (Karpukhin et al., EMNLP 2020) or any sentence-transformers model. If
the model normalises its vectors, the inner product is the cosine.
"""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from rich.filesize import decimal

from ifqa.corpus.passage_store import count_passages
from ifqa.errors import ConfigError
from ifqa.formatting import format_duration
from ifqa.models import loading, places
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Question, SearchResult
from ifqa.retrieval.vectors import encoders, vector_index
from ifqa.retrieval.vectors.vector_index import FlatIndex
from ifqa.retrieval.vectors.vector_store import (
    ID_BYTES,
    SHARD_PASSAGES,
    VERSION,
    Shards,
    encode_corpus,
    estimate_encoding,
)
from ifqa.settings import (
    Natural,
    NotNegative,
    PluginSettings,
    Precision,
    StoredModel,
    Text,
    YesNo,
    parse_stored,
)
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.files import read_json, require_file, write_json
from ifqa.workers.hardware import cores
from ifqa.workers.pool import Engine

logger = logging.getLogger(__name__)

#: DPR's passage encoders; their vectors have 768 dimensions.
_DPR_ENCODER = re.compile(r"^facebook/dpr-ctx_encoder-")
_DPR_DIMENSION = 768
_FLOAT_BYTES = 4  # of a number while it is encoded
_STORED_BYTES = 2  # of a number in a shard, which is float16
# Passages a second. A GPU: 21 million in 8.8 hours on 8 (Karpukhin et al. 2020, section 5), with
# batches of 64 in 16 GB (DPR's README). A core: a 7.8th of MiniLM's 26, as measured.
_DPR_PER_GPU, _DPR_PER_CORE = 83, 3.3
_FACTS_FILE = "dense.json"  # the build settings that a searcher needs


class Dense(IndexedRetriever):
    """Searches passage vectors exactly or with FAISS."""

    version = 1
    takes = ("index",)
    runtime_only = ("device", "engine", "workers", "memory_gb")
    resumes = True
    model_settings: ClassVar = {"model": places.MINILM, "query_model": ""}
    _searcher: vector_index.FaissIndex | FlatIndex

    class Settings(PluginSettings):
        nprobe: Natural = 0
        """Lists of an IVF index to search; 0 for 1/64 of all lists, and at least 64."""
        ef_search: Natural = 0
        """Candidates kept by an HNSW search; 0 for 128."""
        device: str = "auto"
        """The device of the encoder and of a FAISS index: "cpu", "cuda", or "auto". Exact search
        runs on the CPU.
        """
        memory_gb: NotNegative = 0.0
        """Memory in 10^9 bytes above which a FAISS index is searched part by part; 0 for 70% of the
        free memory.
        """

    class BuildSettings(PluginSettings):
        model: PathSetting = places.MINILM
        """A sentence-transformers model or DPR's context encoder: a folder, or a name on the
        hub.
        """
        query_model: PathSetting = ""
        """DPR's question encoder; empty for the encoder whose name matches the context
        encoder's.
        """
        query_prefix: str | None = None
        """Put before each question; by default the prefix in the model's files."""
        passage_prefix: str | None = None
        """Put before each passage; by default the prefix in the model's files."""
        titles: YesNo = "auto"
        """Whether to put a passage's title before its text: "yes", "no", or "auto": yes for DPR,
        else no.
        """
        max_tokens: Natural = 0
        """Texts are truncated to this number of tokens; 0 for the model's limit (256 for DPR)."""
        precision: Precision = "auto"
        """The precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware supports it."""
        factory: str = ""
        """A FAISS index_factory string ("SQ8", "IVF4096,PQ48x8", "HNSW32", ...); empty for exact
        search.
        """
        train_sample: Natural = 0
        """Number of vectors to train a FAISS index on; 0 for 64 per centroid."""
        keep_vectors: bool = True
        """Keep the vectors next to a FAISS index; without them, another index needs a new
        encoding.
        """
        seed: Natural = 0
        """The seed that chooses the sample."""
        device: str = "auto"
        """The device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU."""
        engine: Engine = "local"
        """Where passages are encoded: "local", or "ray" for a cluster."""
        workers: Natural = 0
        """Encoding processes; 0 for one per GPU, or a single process on a CPU."""

    def __init__(self, settings: Settings, *, index: Path) -> None:
        """Open an index from `build`, and its model.

        Raises IfqaError if the index is missing, damaged or for another model, or if the model, the
        GPU or faiss is missing.
        """
        path = require_file(index / _FACTS_FILE, "dense index")
        facts = parse_stored(
            _DenseFacts, read_json(path), str(path), "build it again: ifqa index CORPUS"
        )
        weights = loading.model_fingerprint(facts.model, facts.query_model)
        encoders.refuse_other_weights(index, facts.model, facts.weights, weights)
        keys = {"model", "query_model", "max_tokens", "query_prefix", "passage_prefix", "precision"}
        built = facts.model_dump(include=keys)
        built |= {"titles": "yes" if facts.titles else "no", "device": settings.device}
        self.encoder = encoders.cached_encoder(encoders.EncoderSettings(**built))
        self.family = facts.family
        self.trained_on = tuple(facts.trained_on)
        self._shards = Shards(index)
        if facts.factory:
            self._searcher = vector_index.FaissIndex(
                index,
                (facts.passages, facts.dimension or 0),
                settings.nprobe,
                settings.ef_search,
                # FAISS has no other devices
                "cuda" if self.encoder.device == "cuda" else "cpu",
                settings.memory_gb,
            )
        else:
            if settings.nprobe or settings.ef_search:
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
    def build(cls, passages: Path, folder: Path, settings: BuildSettings) -> None:
        """Encode `passages-*.jsonl` into a folder, and build a FAISS index over the vectors if
        `factory` is given.

        Vectors of an interrupted build are reused. Raises IfqaError if there are no passages, the
        model is missing, or a setting does not apply to it.
        """
        factory = settings.factory
        if not factory and not settings.keep_vectors:
            raise ConfigError("keep_vectors = false leaves nothing to search; set factory too")
        count_passages(passages)  # before the slow loading of the model
        precision = encoders.precision_name(settings.precision, settings.device)
        # The same precision for all workers
        encoding = replace(_encoder_settings(settings), precision=precision)
        encoder = encoders.cached_encoder(encoding)
        facts: dict[str, object] = {**encoder.facts}
        facts["weights"] = loading.model_fingerprint(
            settings.model, encoder.facts.get("query_model", "")
        )
        logger.info(f"{folder}: {json.dumps(facts)}")
        fingerprint = compute_fingerprint(
            facts | {"version": VERSION, "query_prefix": "", "query_model": ""}
        )
        gpus = _count_gpus(encoder.device)
        workers = settings.workers or (max(1, gpus) if settings.engine == "local" else 0)
        facts["passages"] = encode_corpus(
            passages,
            folder,
            fingerprint,
            partial(encoders.encode_stored, encoding),
            engine=settings.engine,
            workers=workers,
            gpus=gpus,
        )
        if factory:
            shards = Shards(folder)
            facts["faiss"] = vector_index.build_index(
                shards,
                folder,
                factory,
                train_sample=settings.train_sample,
                seed=settings.seed,
            )
        obsolete: list[Path] = []
        if not factory:
            obsolete = list(folder.glob("faiss*"))
        elif not settings.keep_vectors:
            obsolete = list(folder.glob("vectors-*.npy"))
        for path in obsolete:
            path.unlink()
        family, trained_on = encoders.read_training(
            settings.model, encoders.question_model(settings.model, settings.query_model)
        )
        write_json(
            folder / _FACTS_FILE,
            facts | {"factory": factory, "family": family, "trained_on": trained_on},
        )

    @classmethod
    def forecast(cls, passages: int, settings: BuildSettings) -> BuildCost:
        """The cost of `build` on this machine, measured by encoding some passages.

        Raises as `build` does.
        """
        factory = settings.factory
        encoding = _encoder_settings(settings)
        encoder = encoders.cached_encoder(encoding)
        encode = partial(encoders.encode_stored, encoding)
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
    def expected_cost(cls, passages: int, settings: BuildSettings) -> BuildCost | None:
        """The cost of `build` with DPR's encoder, which is not here, by the rates of docs/scale.md.

        None for other encoders.
        """
        if not _DPR_ENCODER.search(settings.model):
            return None
        of_gpu = passages / _DPR_PER_GPU
        gpus = _count_gpus("cuda")
        if gpus:
            seconds = of_gpu / gpus
            about = f"by the published rate, {_DPR_PER_GPU} passages a second of a GPU of 16 GB"
        else:
            seconds = passages / (_DPR_PER_CORE * cores())
            about = (
                f"by a measured rate, {_DPR_PER_CORE} passages a second of a core; published: "
                f"{format_duration(of_gpu)} on a GPU of 16 GB"
            )
        disk = float(passages * (_DPR_DIMENSION * _STORED_BYTES + ID_BYTES))
        memory = 3.0 * SHARD_PASSAGES * _DPR_DIMENSION * _FLOAT_BYTES
        search = disk
        if settings.factory:
            search, part = (
                float(vector_index.estimate_bytes(settings.factory, count, _DPR_DIMENSION))
                for count in (passages, min(passages, vector_index.PART_VECTORS))
            )
            disk += search
            memory += 2 * part
        about += f"; then {decimal(int(search))} of memory to search, or less part by part"
        return BuildCost(seconds, disk, memory, about)

    @classmethod
    def training_family(cls, settings: BuildSettings, root: Path) -> str:
        """The split family that `ifqa train dense` trained a model on, or empty, without loading
        the model.
        """
        model = settings.model
        return encoders.read_training(model)[0] if Path(model).is_dir() else ""

    @classmethod
    def build_requirements(
        cls, index: Path, settings: BuildSettings, root: Path
    ) -> list[Requirement]:
        """The encoder."""
        return encoders.encoder_requirements(settings.model, root, settings.query_model)

    @classmethod
    def build_fingerprint(cls, settings: BuildSettings) -> str:
        """SHA-256 of the model files that `build` uses."""
        model = settings.model
        return loading.model_fingerprint(
            model, encoders.question_model(model, settings.query_model)
        )


def _encoder_settings(settings: Dense.BuildSettings) -> encoders.EncoderSettings:
    return encoders.EncoderSettings(
        settings.model,
        settings.query_model,
        settings.titles,
        settings.max_tokens,
        settings.precision,
        settings.device,
        settings.query_prefix,
        settings.passage_prefix,
    )


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
