"""Milvus: a collection of passages that several machines can hold and several people can share.

A collection has a field for BM25, and by choice for dense vectors and for learned sparse weights;
they are searched alone, or fused by the server. Without `uri` the collection is a file in the
index's folder (Milvus Lite), which one process at a time can open. On a server, an alias names the
collection in use: a changed corpus fills a new collection, and the alias moves when that is
complete, so searchers see all of it or nothing.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ifqa.corpus.passage_store import count_passages, read_shard
from ifqa.errors import ConfigError, DamagedArtifact, ServiceError
from ifqa.llms.credentials import check_address, is_local, redact
from ifqa.models import loading
from ifqa.progress import bar
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.retrieval.vectors import encoders, sparse_encoder
from ifqa.settings import (
    Natural,
    PluginSettings,
    Precision,
    StoredModel,
    Text,
    parse_stored,
)
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.files import read_json, require_file, sha256, write_json

if TYPE_CHECKING:
    from pymilvus import CollectionSchema, MilvusClient
    from pymilvus.milvus_client.index import IndexParams
    from sentence_transformers import SparseEncoder

logger = logging.getLogger(__name__)

KEY_VARIABLE = "MILVUS_TOKEN"  # the environment variable of "user:password", or of a key
# That of the server which gets the token, beside those on this machine
ADDRESS_VARIABLE = "MILVUS_URI"
Field = Literal["bm25", "dense", "sparse"]
_FACTS_FILE, _LITE_FILE = "milvus.json", "milvus.db"
# Passages of an insert; with 1,024 numbers each it stays below gRPC's limit of 4 MB
_INSERT_PASSAGES = 256
_SEARCH_QUESTIONS = 16  # questions of a search
_SEARCH_SECONDS = 300.0  # Milvus Lite takes 4 to 6 a question over 410,612 passages
_SECONDS = 60.0  # after which a request fails
_LOAD_SECONDS = 600.0
_LONGEST = 65_535  # bytes of a text or an id; the most that Milvus takes
_HASH = 12  # hex digits at the end of a collection's name: of its passages, encoders and analyzer
_K1, _B = 0.9, 0.4  # of `ifqa.retrieval.bm25`
# A collection's properties: the SHA-256 of its passages, empty while they change; and whether an
# alias has left it.
_PASSAGES, _REPLACED = "ifqa.passages", "ifqa.replaced"


class _MilvusFacts(StoredModel):
    """milvus.json: where the passages are, and the encoders, each with the SHA-256 of its files as
    `weights`.
    """

    uri: str
    collection: Text
    alias: str  # empty in a file
    passages: Natural
    dense: dict[str, Any]
    sparse: dict[str, Any]
    family: str
    trained_on: list[str]
    fingerprint: str = ""  # of the passages, as in `_insert`; version 0.2 did not write it


class Milvus(IndexedRetriever):
    """Searches a Milvus collection."""

    version = 1
    takes = ("index",)
    runtime_only = ("device",)
    resumes = True
    model_settings: ClassVar = {"model": "", "query_model": "", "sparse_model": ""}

    class Settings(PluginSettings):
        fields: list[Field] | None = None
        """The fields to search; several are fused by their ranks. By default all of the index."""
        rrf_k: Natural = 60
        """Damps the lead of the first ranks, if fields are fused."""
        device: str = "auto"
        """The device of the encoders: "cpu", "cuda", "mps" or "auto"."""

    class BuildSettings(PluginSettings):
        uri: str = ""
        """The server's address; empty for a file in the index's folder. The server's token is in
        the environment variable MILVUS_TOKEN.
        """
        collection: str = ""
        """The alias on the server; by default ifqa_CORPUS_INDEX."""
        replace: bool = True
        """Whether a changed corpus fills a new collection; if not, the changed passages are
        inserted and deleted in the collection that is being searched. A file is always made anew.
        """
        analyzer: str = "standard"
        """The analyzer of BM25's words: "standard", or one of the server's, such as "english".
        Milvus Lite has no stemming.
        """
        model: PathSetting = ""
        """The model of the field "dense", a sentence-transformers model or DPR's context encoder: a
        folder, or a name on the hub; empty for no such field.
        """
        query_model: PathSetting = ""
        """DPR's question encoder; empty for the encoder whose name matches the context
        encoder's.
        """
        sparse_model: PathSetting = ""
        """The model of the field "sparse", a learned sparse encoder of sentence-transformers: a
        folder, or a name on the hub; empty for no such field.
        """
        titles: bool = False
        """Encode a passage's title before its text. BM25 reads the text alone."""
        precision: Precision = "auto"
        """The precision of the encoders: "float32", "bfloat16", or "auto": bfloat16 if the hardware
        supports it.
        """
        device: str = "auto"
        """The device of the encoders: "cpu", "cuda", "mps" or "auto"."""

    def __init__(self, settings: Settings, *, index: Path) -> None:
        """Open an index, and the encoders of its fields.

        Raises IfqaError if the index or a model is missing, the server does not answer, or its
        collection is of another corpus.
        """
        device = settings.device
        path = require_file(index / _FACTS_FILE, "milvus index")
        facts = parse_stored(
            _MilvusFacts, read_json(path), str(path), "build it again: ifqa index CORPUS"
        )
        known = ["bm25", *(["dense"] if facts.dense else []), *(["sparse"] if facts.sparse else [])]
        self._fields = list[str](settings.fields or known)
        self._rrf_k = settings.rrf_k
        if missing := [field for field in self._fields if field not in known]:
            raise ConfigError(f"{index} has no field {missing[0]!r}; known: {', '.join(known)}")
        for field, stored in (("dense", facts.dense), ("sparse", facts.sparse)):
            if field in self._fields:
                weights = loading.model_fingerprint(stored["model"], stored.get("query_model", ""))
                encoders.refuse_other_weights(index, stored["model"], stored["weights"], weights)
        if "dense" in self._fields:
            self._encoder = _open_encoder(facts.dense, device)
        if "sparse" in self._fields:
            self._sparse = _open_sparse(facts.sparse, device)
        self.family = facts.family
        self.trained_on = tuple(facts.trained_on)
        self._uri = facts.uri
        self._name = facts.alias or facts.collection
        self._count = facts.passages
        self._client = connect(facts.uri, index)
        with report_errors(facts.uri):
            collection = facts.collection
            if facts.alias and self._client.has_collection(facts.alias):
                collection = self._client.describe_alias(facts.alias)["collection_name"]
            exists = self._client.has_collection(collection)
            count = count_rows(self._client, collection) if exists else 0
            held = _properties(self._client, collection).get(_PASSAGES) if exists else ""
        if collection != facts.collection or count != facts.passages:
            holds = (
                f"{collection} with {count:,} passages, wanted {facts.collection} with "
                f"{facts.passages:,}"
            )
            raise DamagedArtifact(
                f"{facts.uri or index} holds {holds}; remove the folder {index} and build it again"
            )
        if facts.fingerprint and held != facts.fingerprint:
            state, mend = "is being changed", "wait until that build is done, then"
            if held:
                state, mend = (
                    "holds other passages, because another build changed them in place",
                    "to get yours,",
                )
            again = f"{mend} remove the folder {index} and build it again"
            raise DamagedArtifact(
                f"{facts.uri or index}: the collection {collection} {state}; {again}"
            )

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first; ties have the server's order."""
        rankings: list[SearchResult] = []
        for start in range(0, len(questions), _SEARCH_QUESTIONS):
            texts = [
                encoders.replace_surrogates(question.text)
                for question in questions[start : start + _SEARCH_QUESTIONS]
            ]
            with report_errors(self._uri):
                answers = self._ask(
                    [(field, self._queries(field, texts)) for field in self._fields],
                    min(k, self._count),
                )
            # Milvus Lite has BM25's scores with a minus
            score = abs if self._fields == ["bm25"] else float
            rankings += [
                SearchResult([Hit(hit["id"], score(hit["distance"])) for hit in answer])
                for answer in answers
            ]
        return rankings

    def _queries(self, field: str, texts: Sequence[str]) -> Sequence[Any]:
        if field == "bm25":
            return texts
        if field == "dense":
            return list(self._encoder.encode_queries(texts))
        return sparse_encoder.query_weights(self._sparse, texts)

    def _ask(self, queries: Sequence[tuple[str, Sequence[Any]]], limit: int) -> Any:
        from pymilvus import AnnSearchRequest, RRFRanker

        options: dict[str, Any] = {
            "limit": limit,
            "output_fields": ["id"],
            "timeout": _SEARCH_SECONDS,
        }
        if len(queries) == 1:
            [(field, texts)] = queries
            return self._client.search(self._name, data=texts, anns_field=field, **options)
        requests = [AnnSearchRequest(texts, field, {}, limit) for field, texts in queries]
        return self._client.hybrid_search(self._name, requests, RRFRanker(self._rrf_k), **options)

    @classmethod
    def build(cls, passages: Path, folder: Path, settings: BuildSettings) -> None:
        """Insert `passages-*.jsonl` into a collection; passages of an interrupted build are kept.

        Raises IfqaError if there are no passages, a model is missing, or the server does not answer
        or refuses something.
        """
        uri = settings.uri
        shards, count = count_passages(passages)
        dense, sparse = _encoder_facts(settings)
        encoder = _open_encoder(dense, settings.device) if dense else None
        weigher = _open_sparse(sparse, settings.device) if sparse else None

        def to_records(batch: Sequence[Passage]) -> list[dict[str, Any]]:
            records: list[dict[str, Any]] = [
                {"id": item.id, "digest": _digest(item), "text": item.text} for item in batch
            ]
            if encoder:
                for record, vector in zip(records, encoder.encode_passages(batch), strict=True):
                    record["dense"] = vector
            if weigher:
                for record, weights in zip(
                    records,
                    sparse_encoder.passage_weights(weigher, settings.titles, batch),
                    strict=True,
                ):
                    record["sparse"] = weights
            return records

        shape = {
            "analyzer": settings.analyzer,
            "dense": dense,
            "sparse": sparse,
            "version": cls.version,
        }
        if settings.replace or not uri:
            shape["passages"] = list(map(sha256, shards.values()))
        alias = _alias(settings.collection, passages, folder) if uri else ""
        name = f"{alias or 'passages'}_{compute_fingerprint(shape)[:_HASH]}"
        client = connect(uri, folder)
        try:
            with report_errors(uri, "; what was inserted is kept"):
                former = _aliased_collection(client, alias) if alias else ""
                if not client.has_collection(name):
                    dimension = encoder.facts["dimension"] if encoder else None
                    client.create_collection(
                        name,
                        schema=_schema(settings.analyzer, dimension, bool(sparse)),
                        consistency_level="Strong",
                        index_params=_index_params(client, dimension, bool(sparse)),
                        timeout=_SECONDS,
                    )
                if not settings.replace:
                    client.alter_collection_properties(name, {_PASSAGES: ""})
                stored = chain.from_iterable(map(read_shard, shards.values()))
                fingerprint = _insert(client, name, stored, count, to_records)
                client.alter_collection_properties(name, {_PASSAGES: fingerprint, _REPLACED: "no"})
                if alias:
                    _move_alias(client, alias, former, name)
        finally:
            close(client, uri, folder)
        family, trained_on = (
            encoders.read_training(dense["model"], dense["query_model"]) if dense else ("", [])
        )
        facts = {
            "uri": uri,
            "collection": name,
            "alias": alias,
            "passages": count,
            "dense": dense,
            "sparse": sparse,
        }
        facts |= {"family": family, "trained_on": trained_on, "fingerprint": fingerprint}
        write_json(folder / _FACTS_FILE, facts)

    @classmethod
    def training_family(cls, settings: BuildSettings, root: Path) -> str:
        """The split family that `ifqa train dense` trained the encoder on, or empty."""
        model = settings.model
        return encoders.read_training(model)[0] if model and Path(model).is_dir() else ""

    @classmethod
    def build_requirements(
        cls, index: Path, settings: BuildSettings, root: Path
    ) -> list[Requirement]:
        """The encoders, and a server that answers."""
        needs: list[Requirement] = []
        if settings.model:
            needs += encoders.encoder_requirements(settings.model, root, settings.query_model)
        if settings.sparse_model:
            needs += encoders.encoder_requirements(settings.sparse_model, root)
        if uri := settings.uri:
            try:
                connect(uri, index).close()
                needs.append(Requirement(f"the Milvus server at {uri}"))
            except (ConfigError, ServiceError) as error:
                needs.append(Requirement(f"the Milvus server at {redact(uri, '')}", str(error)))
        return needs

    @classmethod
    def build_fingerprint(cls, settings: BuildSettings) -> str:
        """SHA-256 of the model files that `build` uses."""
        fingerprint = ""
        if model := settings.model:
            question_model = encoders.question_model(model, settings.query_model)
            fingerprint += loading.model_fingerprint(model, question_model)
        if settings.sparse_model:
            fingerprint += loading.model_fingerprint(settings.sparse_model)
        return fingerprint


def connect(uri: str, index: Path) -> "MilvusClient":
    """A client of a server, or of the file in an index's folder.

    Raises ConfigError for a wrong address or one that may not get the token, ServiceError if the
    server does not answer or refuses the token, or another process has the file open.
    """
    # gRPC prints that Milvus Lite answers its pings too late
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from pymilvus import MilvusClient, MilvusException

    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs each error that it raises
    logging.getLogger("milvus_lite").setLevel(logging.CRITICAL)
    if not uri:
        try:
            return MilvusClient(str(index / _LITE_FILE))
        except MilvusException as error:
            fault = (
                f"cannot open {index / _LITE_FILE}: another process has it open, or it is damaged"
            )
            raise ServiceError(
                f"{fault}; wait for that process, or share the index on a server (uri)"
            ) from error
    check_address(uri, "milvus: uri", "http://localhost:19530", KEY_VARIABLE)
    token = os.environ.get(KEY_VARIABLE, "")
    if token and not is_local(uri) and uri != os.environ.get(ADDRESS_VARIABLE, ""):
        raise ConfigError(
            f"{KEY_VARIABLE} is not sent to {uri}; if you trust that server: "
            f"export {ADDRESS_VARIABLE}={uri}"
        )
    with report_errors(uri):
        return MilvusClient(uri, token=token, timeout=_SECONDS)


def close(client: "MilvusClient", uri: str, index: Path) -> None:
    """Close a client; a file is closed too, so that its folder can be renamed."""
    client.close()
    if not uri:
        from milvus_lite.server_manager import server_manager_instance

        server_manager_instance.release_server(str(index / _LITE_FILE))


@contextmanager
def report_errors(uri: str, state: str = "") -> Iterator[None]:
    """Turn the server's errors into ServiceError, in one line without the token.

    `state` says what is kept.
    """
    from grpc import RpcError
    from pymilvus import MilvusException

    try:
        yield
    except (MilvusException, RpcError) as error:  # gRPC's own if a request took too long
        # gRPC's, which a refused token has
        details = getattr(error.__cause__ or error, "details", lambda: "")()
        message = redact(
            f"{getattr(error, 'message', 'no answer')}{details and f' ({details})'}",
            os.environ.get(KEY_VARIABLE, ""),
        )
        raise ServiceError(f"milvus {uri or _LITE_FILE}: {message}{state}") from error


def count_rows(client: "MilvusClient", collection: str) -> int:
    """Load a collection for searching, and count its passages, without deleted ones."""
    client.load_collection(collection, timeout=_LOAD_SECONDS)
    return int(client.query(collection, filter="", output_fields=["count(*)"])[0]["count(*)"])


def _encoder_facts(settings: Milvus.BuildSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts of the dense and of the sparse encoder; empty for a field that is not built."""
    dense: dict[str, Any] = {}
    if model := settings.model:
        query_model = encoders.question_model(model, settings.query_model)
        dense = {"model": model, "query_model": query_model}
    sparse: dict[str, Any] = {"model": settings.sparse_model} if settings.sparse_model else {}
    precision = encoders.precision_name(settings.precision, settings.device)
    for facts in (dense, sparse):
        if facts:
            facts["weights"] = loading.model_fingerprint(
                facts["model"], facts.get("query_model", "")
            )
            facts |= {"titles": settings.titles, "precision": precision}
    return dense, sparse


def _alias(collection: str, passages: Path, folder: Path) -> str:
    """The alias of a collection on a server."""
    index = folder.name.strip(".").removesuffix(".partial")
    name = collection or f"ifqa_{passages.parent.name}_{index}"
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _open_sparse(facts: Mapping[str, Any], device: str) -> "SparseEncoder":
    return sparse_encoder.open_sparse_encoder(facts["model"], facts["precision"], device)


def _open_encoder(facts: Mapping[str, Any], device: str) -> encoders.Encoder:
    titles: Literal["yes", "no"] = "yes" if facts["titles"] else "no"
    return encoders.cached_encoder(
        encoders.EncoderSettings(
            facts["model"],
            facts["query_model"],
            titles,
            precision=facts["precision"],
            device=device,
        )
    )


def _digest(passage: Passage) -> str:
    """What tells a changed passage: a hash of title and text."""
    return hashlib.sha256(
        f"{passage.title}\n{passage.text}".encode("utf-8", "replace")
    ).hexdigest()[:16]


def _schema(analyzer: str, dimension: int | None, sparse: bool) -> "CollectionSchema":
    from pymilvus import DataType, Function, FunctionType, MilvusClient

    schema = MilvusClient.create_schema(auto_id=False)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=_LONGEST)
    schema.add_field("digest", DataType.VARCHAR, max_length=16)
    words = {"enable_analyzer": True, "analyzer_params": {"type": analyzer}}
    schema.add_field("text", DataType.VARCHAR, max_length=_LONGEST, **words)
    schema.add_field("bm25", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function("bm25", FunctionType.BM25, input_field_names=["text"], output_field_names=["bm25"])
    )
    if dimension:
        schema.add_field("dense", DataType.FLOAT_VECTOR, dim=dimension)
    if sparse:
        schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    return schema


def _index_params(client: "MilvusClient", dimension: int | None, sparse: bool) -> "IndexParams":
    params = client.prepare_index_params()
    inverted = "SPARSE_INVERTED_INDEX"
    params.add_index(
        "bm25", index_type=inverted, metric_type="BM25", params={"bm25_k1": _K1, "bm25_b": _B}
    )
    if dimension:
        params.add_index("dense", index_type="AUTOINDEX", metric_type="IP")
    if sparse:
        params.add_index("sparse", index_type=inverted, metric_type="IP")
    return params


def _insert(
    client: "MilvusClient",
    name: str,
    passages: Iterator[Passage],
    count: int,
    to_records: Callable[[Sequence[Passage]], list[dict[str, Any]]],
) -> str:
    """Insert the passages that a collection lacks or has with another text, and delete those that
    the corpus lacks.

    Returns the SHA-256 of the passages' ids and digests, in their order.
    """
    before = count_rows(client, name)
    kept = 0
    ids = set[str]()
    fingerprint = hashlib.sha256()
    with bar("milvus", count) as advance:
        while batch := list(islice(passages, _INSERT_PASSAGES)):
            digests: dict[str, str] = {}
            if before:
                ids.update(passage.id for passage in batch)
                stored = client.get(
                    name, ids=[passage.id for passage in batch], output_fields=["id", "digest"]
                )
                digests = {row["id"]: row["digest"] for row in stored}
            changed = [passage for passage in batch if digests.get(passage.id) != _digest(passage)]
            kept += len(batch) - len(changed)
            for passage in batch:
                fingerprint.update(f"{passage.id}\n{_digest(passage)}\n".encode("utf-8", "replace"))
            if changed:
                client.upsert(name, to_records(changed), timeout=_SECONDS)
            advance(len(batch))
    if kept:
        logger.info(f"{kept:,} passages kept from an earlier build")
    client.flush(name, timeout=_SECONDS)
    if before and count_rows(client, name) != count:
        stored_ids = client.query_iterator(name, batch_size=_INSERT_PASSAGES, output_fields=["id"])
        extra: list[str] = []
        while page := stored_ids.next():
            extra += [row["id"] for row in page if row["id"] not in ids]
        for start in range(0, len(extra), _INSERT_PASSAGES):
            client.delete(name, ids=extra[start : start + _INSERT_PASSAGES])
        client.flush(name, timeout=_SECONDS)
    return fingerprint.hexdigest()


def _properties(client: "MilvusClient", collection: str) -> dict[str, str]:
    return dict(client.describe_collection(collection).get("properties") or {})


def _move_alias(client: "MilvusClient", alias: str, former: str, name: str) -> None:
    """Let an alias name another collection, and drop those that it has left.

    The collection is marked before the alias leaves it, so that the next build drops it if this one
    is killed in between.
    """
    if not former:
        client.create_alias(name, alias)
    elif former != name:
        client.alter_collection_properties(former, {_REPLACED: "yes"})
        client.alter_alias(name, alias)
    for collection in client.list_collections():
        if collection == name or not _is_ours(collection, alias):
            continue
        if _properties(client, collection).get(_REPLACED) == "yes":
            client.drop_collection(collection)
        else:
            logger.info(
                f"{collection} is of a build that did not end; if nobody "
                "builds it, drop it on the server"
            )


def _is_ours(collection: str, alias: str) -> bool:
    """Whether a collection's name is one that `Milvus.build` gives."""
    return re.fullmatch(rf"{alias}_[0-9a-f]{{{_HASH}}}", collection) is not None


def _aliased_collection(client: "MilvusClient", alias: str) -> str:
    """The collection that an alias names, or empty.

    Raises ConfigError if ifqa did not make it, since it would be dropped.
    """
    if not client.has_collection(alias):
        return ""
    name = str(client.describe_alias(alias)["collection_name"])
    if not _is_ours(name, alias):
        raise ConfigError(
            f"milvus: the alias {alias!r} names the collection {name!r}, which ifqa did not "
            "make; set `collection`"
        )
    return name
