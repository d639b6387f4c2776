"""Dense retrieval: the passages whose vectors have the highest inner product with the question's vector.

The encoder is the paper's DPR (Karpukhin et al., EMNLP 2020) or any sentence-transformers model. Where the model
normalises its vectors, the inner product is the cosine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from rich.filesize import decimal

from ifqa.errors import IfqaError
from ifqa.models.hub import NAME, encoder_requirements, identity_of, model_folder, question_model
from ifqa.protocols import Indexed, Place, Requirement
from ifqa.records import Cost, Hit, Question, SearchResult
from ifqa.settings import Natural, NotNegative, Precision, Stored, Text, YesNo, check_stored, checked
from ifqa.storage.artifacts import identity
from ifqa.storage.files import read_json, require, write_json
from ifqa.workers.tasks import Engine

if TYPE_CHECKING:
    from ifqa.retrieval.vectors.encoders import EncoderSettings
    from ifqa.retrieval.vectors.faiss_index import FaissIndex
    from ifqa.retrieval.vectors.flat_index import FlatIndex

_FACTS = "dense.json"  # beside the vectors: the build settings that a searcher needs
_SHAPES = 250e6  # bytes that torch caches on a CPU for batches of many shapes; the cache levels off there
_MODEL = ("model", "query_model", "titles", "max_tokens", "query_prefix", "passage_prefix")


class Dense(Indexed):
    """Searches vectors of passages exactly or through FAISS."""

    version = 1
    not_identity = ("device", "engine", "workers", "memory_gb")
    resumes = True
    _searcher: "FaissIndex | FlatIndex"

    @checked("setting of retriever 'dense'")
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
            index: a folder that `build` filled.
            nprobe: cells of an IVF index that are searched; 0 for the default.
            ef_search: candidates that the search of an HNSW index keeps; 0 for the default.
            device: "cpu", "cuda", or "auto" for a GPU where there is one.
            memory_gb: memory that a FAISS index may take, in 10^9 bytes; 0 for most of the free memory. A larger index is
                searched part by part.

        Raises:
            IfqaError: the index is missing, damaged or of another model; the model is missing; `device` names a GPU that
                is absent; faiss is needed and not installed.
        """
        from ifqa.retrieval.vectors.encoders import refuse_other_weights
        from ifqa.retrieval.vectors.sharded_build import encoder_of
        from ifqa.retrieval.vectors.vector_store import Ids, Vectors

        path = require(index / _FACTS, "dense index")
        facts = check_stored(_Facts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        settings = facts.model_dump(include={"model", "max_tokens", "query_prefix", "passage_prefix"})
        settings |= {"titles": "yes" if facts.titles else "no", "device": device}
        settings |= {"query_model": facts.query_model} if facts.query_model else {}
        refuse_other_weights(index, facts.model, facts.weights, identity_of(facts.model, facts.query_model))
        precision = {"int8": "float32"}.get(facts.precision, facts.precision)
        self.encoder = encoder_of(tuple(sorted((settings | {"precision": precision}).items())))
        self.family = facts.family
        self.trained_on = tuple(facts.trained_on)
        self._ids = Ids(index)
        where = "cuda" if self.encoder.device == "cuda" else "cpu"  # the search runs on no other device
        if facts.factory:
            from ifqa.retrieval.vectors.faiss_index import FaissIndex

            self._searcher = FaissIndex(
                index,
                (facts.passages, facts.dimension or 0),
                nprobe=nprobe,
                ef_search=ef_search,
                device=where,
                memory_gb=memory_gb,
            )
        else:
            from ifqa.retrieval.vectors.flat_index import FlatIndex

            for name, value in (("nprobe", nprobe), ("ef_search", ef_search)):
                if value:
                    raise IfqaError(f"{name} is for a FAISS index, and {index} is searched exactly; leave it out")
            self._searcher = FlatIndex(Vectors(index), where)

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` passages of each question with the highest inner product, best first.

        Raises:
            IfqaError: the index has vectors of another dimension than the model.
        """
        if not questions:
            return []
        vectors = self.encoder.encode_queries([question.text for question in questions])
        scores, rows = self._searcher.search(vectors, k)
        rankings = []
        for question_scores, question_rows in zip(scores.tolist(), rows.tolist(), strict=True):
            there = [(row, score) for row, score in zip(question_rows, question_scores, strict=True) if row >= 0]
            ids = self._ids.of([row for row, _ in there])
            hits = [Hit(passage_id, score) for passage_id, (_, score) in zip(ids, there, strict=True)]
            rankings.append(SearchResult(hits))
        return rankings

    @classmethod
    @checked("build setting of retriever 'dense'", given=["passages", "folder"])
    def build(
        cls,
        passages: Path,
        folder: Path,
        *,
        model: Place = NAME,
        query_model: Place = "",
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        titles: YesNo = "auto",
        max_tokens: Natural = 0,
        precision: Precision | Literal["int8"] = "auto",
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
            folder: gets vectors and index; a killed build's files there are reused.
            model, query_model, query_prefix, passage_prefix, titles, max_tokens, precision, device: see
                `ifqa.retrieval.vectors.encoders.open_encoder`.
            factory: FAISS's index_factory string ("SQ8", "IVF4096,PQ48x8", "HNSW32", ...); empty to search the vectors
                exactly.
            train_sample: vectors that a FAISS index is trained on; 0 for the default.
            keep_vectors: keep the vectors beside a FAISS index. Without them another index requires encoding again.
            seed: of the sample.
            engine: "local", or "ray" for a cluster.
            workers: processes that encode; 0 for one per GPU, or one on a CPU.

        Raises:
            IfqaError: there are no passages, the model is missing, or a setting is out of range.
        """
        from ifqa.retrieval.vectors.sharded_build import encode
        from ifqa.retrieval.vectors.vector_store import Vectors

        if not factory and not keep_vectors:
            raise IfqaError("keep_vectors = false leaves nothing to search in; set factory as well")
        settings: EncoderSettings = {"model": model, "query_model": query_model, "titles": titles, "max_tokens": max_tokens,
                    "precision": precision, "device": device, "query_prefix": query_prefix,
                    "passage_prefix": passage_prefix}  # fmt: skip
        facts = encode(passages, folder, settings, engine=engine, workers=workers)
        for path in () if factory else (*folder.glob("faiss*"), *folder.glob("trained.index")):
            path.unlink()  # left by an earlier build of another index
        if factory:
            from ifqa.retrieval.vectors.faiss_index import build

            vectors = Vectors(folder)
            key = identity({"vectors": vectors.keys, "factory": factory, "train_sample": train_sample, "seed": seed})
            facts["faiss"] = build(vectors, folder, factory, train_sample=train_sample, seed=seed, key=key)
            if not keep_vectors:
                for path in folder.glob("vectors-*.npy"):
                    path.unlink()
        write_json(folder / _FACTS, facts | {"factory": factory, **_stamp(model, question_model(model, query_model))})

    @classmethod
    def forecast(cls, passages: int, *, factory: str = "", train_sample: int = 0, **settings: object) -> Cost:
        """What `build` will take on this machine, measured by encoding some passages.

        Raises:
            IfqaError: the model is missing, or a setting is out of range.
        """
        from ifqa.retrieval.vectors.sharded_build import ID_BYTES, encoder_of, gpus_for, pace

        named = {name: settings[name] for name in (*_MODEL, "precision", "device") if name in settings}
        encoder = encoder_of(tuple(sorted(named.items())))
        taken = pace(lambda sample, _: (encoder.encode_passages(sample),), encoder.device, copies=1)
        dimension = int(taken.arrays[0].shape[1])
        per_second = taken.per_second * max(1, gpus_for(encoder.device))
        memory = taken.memory + (_SHAPES if encoder.device == "cpu" else 0)
        disk = searched = passages * (2 * dimension + ID_BYTES)
        training = 0.0
        if factory:
            from ifqa.retrieval.vectors.faiss_index import PART, index_bytes, train_bytes

            searched = index_bytes(factory, passages, dimension) or 4 * passages * dimension
            part = index_bytes(factory, min(passages, PART), dimension) or 4 * PART * dimension
            disk += searched
            training = max(2 * part, train_bytes(factory, passages, dimension, train_sample))
        about = (
            f" at {per_second:,.0f} passages a second, measured now; then {decimal(int(memory + searched))} of memory to "
            "search, or less where the index is read part by part"
        )
        memory += training
        return Cost(passages / per_second, disk, memory, about)

    @classmethod
    def trained(cls, model: str = NAME, **_: object) -> str:
        """The split family that a model of `ifqa train dense` was trained on; empty for others. Loads and fetches nothing."""
        return _stamp(model)["family"] if Path(model).is_dir() else ""

    @classmethod
    def build_requirements(
        cls, index: Path, *, model: str = NAME, query_model: str = "", root: Path = Path(), **_: object
    ) -> list[Requirement]:
        """The encoder."""
        return encoder_requirements(model, root, query_model)

    @classmethod
    def built_from(cls, model: str = NAME, query_model: str = "", **_: object) -> str:
        """SHA-256 of the files of the model that `build` uses."""
        return identity_of(model, question_model(model, query_model))


class _Facts(Stored):
    """What a searcher reads of dense.json."""

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


class _Stamp(TypedDict):
    family: str
    trained_on: list[str]


def _stamp(*models: str) -> _Stamp:
    """The split family that a model of `ifqa train dense` was trained on, and the SHA-256 of the questions' files."""
    folders = [model_folder(model) for model in models if model]
    for path in (place / "manifest.json" for folder in folders for place in (folder, folder.parent)):
        if path.exists() and isinstance(manifest := read_json(path), dict) and "family" in manifest:
            return {"family": manifest["family"], "trained_on": list(manifest.get("sources", {}).values())}
    return {"family": "", "trained_on": []}
