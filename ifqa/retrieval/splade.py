"""Learned sparse retrieval (SPLADE; Formal et al., SIGIR 2021): a model weighs the words of its vocabulary for each text.

A passage's score is the inner product of its weights and the question's. The inverted index lists, for each word of the
vocabulary, the passages with that word and their weights. Search is exact. The model is a sentence-transformers `SparseEncoder`,
which may encode questions by table look-up alone.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import ConfigError, DamagedArtifact
from ifqa.models import hub
from ifqa.models.devices import resolve_device
from ifqa.protocols import IndexedRetriever, PathSetting, Requirement
from ifqa.records import BuildCost, Passage, Question, SearchResult
from ifqa.retrieval.vectors import encoders
from ifqa.retrieval.vectors.vector_index import keep_best
from ifqa.retrieval.vectors.vector_store import VERSION, Arrays, Shards, encode_corpus, estimate_encoding, to_float16
from ifqa.settings import Positive, Precision, StoredModel, Text, check_arguments, parse_stored
from ifqa.storage.artifacts import compute_fingerprint
from ifqa.storage.files import read_json, require_file, write_json

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder
    from torch import Tensor, nn

_FACTS_FILE = "splade.json"  # the build settings that a searcher needs
_ARRAYS = ("starts", "rows", "weights")  # of a shard
_BATCH = {
    "cpu": 16,
    "cuda": 64,
    "mps": 16,
}  # passages; the network computes a number for each token and vocabulary word


class _SparseFacts(StoredModel):
    """splade.json."""

    model: Text
    weights: str  # SHA-256 of the model's files
    titles: bool
    precision: str
    passages: Positive


class Splade(IndexedRetriever):
    """Searches inverted lists of learned weights."""

    version = 1
    runtime_only = ("device",)
    resumes = True
    model_settings: ClassVar = {"model": ""}

    @check_arguments("setting of retriever 'splade'")
    def __init__(self, index: Path, *, device: str = "auto") -> None:
        """Open an index and its model; `device` encodes the questions, and the CPU searches.

        Raises IfqaError if index or model is missing or damaged, or the model's weights changed.
        """
        path = require_file(index / _FACTS_FILE, "splade index")
        facts = parse_stored(_SparseFacts, read_json(path), str(path), "build it again: ifqa index CORPUS")
        encoders.refuse_other_weights(index, facts.model, facts.weights, hub.model_fingerprint(facts.model))
        self._model = open_sparse_encoder(facts.model, facts.precision, device)
        self._shards = Shards(index)
        self._lists = [InvertedLists(self._shards, place) for place in range(len(self._shards.numbers))]

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` passages of each question with the highest inner product above 0, best first."""
        queries = query_weights(self._model, [question.text for question in questions])
        size = min(k, len(self._shards))
        scores = np.zeros((len(queries), size), np.float32)  # zeros, because a passage needs a score above 0
        rows = np.full((len(queries), size), -1, np.int64)
        for first, lists in zip(self._shards.starts.tolist(), self._lists, strict=False):
            for number, (words, weights) in enumerate(queries):
                query = slice(number, number + 1)
                keep_best(scores[query], rows[query], lists.scores(words, weights)[None], first)
        return self._shards.to_rankings(scores, rows)

    @classmethod
    @check_arguments("build setting of retriever 'splade'", injected=["passages", "folder"])
    def build(
        cls, passages: Path, folder: Path, *, model: PathSetting, titles: bool = False, precision: Precision = "auto",
        device: str = "auto",
    ) -> None:  # fmt: skip
        """Encode `passages-*.jsonl` into a folder; shards of an interrupted build are reused.

        With `titles`, a passage's title goes before its text; for the other settings see `open_sparse_encoder`. Raises IfqaError
        if there are no passages, or the model is missing or of another kind.
        """
        resolved = encoders.precision_name(precision, device)
        facts = {"model": model, "weights": hub.model_fingerprint(model), "titles": titles, "precision": resolved}
        encode = partial(_encode_passages, open_sparse_encoder(model, resolved, device), titles)
        fingerprint = f"{VERSION} {compute_fingerprint(facts | {'version': cls.version, 'model': ''})} "
        count = encode_corpus(passages, folder, _ARRAYS, fingerprint, encode)
        write_json(folder / _FACTS_FILE, facts | {"passages": count})

    @classmethod
    def forecast(
        cls, passages: int, *, model: str, titles: bool = False, precision: str = "auto", device: str = "auto"
    ) -> BuildCost:
        """The cost of `build` on this machine, measured by encoding some passages."""
        encoder = open_sparse_encoder(model, precision, device)
        encode = partial(_encode_passages, encoder, titles)
        return estimate_encoding(passages, encode, encoder.device.type, fixed_arrays=1)

    @classmethod
    def build_requirements(cls, index: Path, *, model: str, root: Path = Path(), **_: object) -> list[Requirement]:
        """The encoder."""
        return hub.encoder_requirements(model, root)

    @classmethod
    def build_fingerprint(cls, *, model: str, **_: object) -> str:
        """SHA-256 of the model files that `build` uses."""
        return hub.model_fingerprint(model)


class InvertedLists:
    """The inverted lists of a shard: `rows[starts[word] : starts[word + 1]]` are the passages with a word, ascending.

    `starts` is uint32 [vocabulary + 1]; `rows` and `weights` are uint16 and float16 [weights of all passages].
    """

    def __init__(self, shards: Shards, place: int) -> None:
        """Map the files. Raises IfqaError if a file is missing or damaged."""
        self._starts, self._rows, self._weights = (shards.array(kind, place) for kind in _ARRAYS)
        first, last = shards.bounds()[place]
        self._count = last - first
        kinds = [array.dtype.name for array in (self._starts, self._rows, self._weights)]
        if kinds != ["uint32", "uint16", "float16"] or not self._starts[-1] == len(self._rows) == len(self._weights):
            raise DamagedArtifact(f"{shards.folder}: the lists of shard {place} do not match; build the index again")

    def scores(self, words: NDArray[np.int64], weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The inner product of each passage with a question's `words`, ascending numbers, and their weights."""
        first, last = self._starts[words].astype(np.int64), self._starts[words + 1].astype(np.int64)
        lengths = last - first
        positions = np.arange(lengths.sum()) + np.repeat(last - np.cumsum(lengths), lengths)
        products = np.repeat(weights, lengths) * self._weights[positions].astype(np.float32)
        return np.bincount(self._rows[positions], products, minlength=self._count).astype(np.float32)


#: The words of a text (numbers in the vocabulary, ascending), and their weights.
Weights = tuple[NDArray[np.int64], NDArray[np.float32]]


def query_weights(model: "SparseEncoder", texts: Sequence[str]) -> list[Weights]:
    """The weights of each question."""
    return _split_texts(len(texts), *_encode_sparse(model.encode_query, texts, model)) if texts else []


def passage_weights(model: "SparseEncoder", titles: bool, passages: Sequence[Passage]) -> list[Weights]:
    """The weights of each passage; with `titles`, of its title and text."""
    texts = _passage_texts(titles, passages)
    return _split_texts(len(texts), *_encode_sparse(model.encode_document, texts, model))


def _passage_texts(titles: bool, passages: Sequence[Passage]) -> list[str]:
    return [f"{passage.title} {passage.text}" if titles and passage.title else passage.text for passage in passages]


def _split_texts(
    count: int, numbers: NDArray[np.int64], words: NDArray[np.int64], weights: NDArray[np.float32]
) -> list[Weights]:
    cuts = np.cumsum(np.bincount(numbers, minlength=count))[:-1]
    return list(zip(np.split(words, cuts), np.split(weights, cuts), strict=True))


def _encode_passages(model: "SparseEncoder", titles: bool, passages: Sequence[Passage]) -> Arrays:
    """The inverted lists of passages: starts, rows and weights."""
    rows, words, weights = _encode_sparse(model.encode_document, _passage_texts(titles, passages), model)
    order = np.argsort(words, kind="stable")  # rows stay ascending within a word
    counts = np.bincount(words, minlength=model.get_embedding_dimension() or 0)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    ids = np.array([passage.id for passage in passages])
    return starts, rows[order].astype(np.uint16), to_float16(weights, ids[rows])[order]


def _encode_sparse(
    encode: "Callable[..., Tensor]", texts: Sequence[str], model: "SparseEncoder"
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Text numbers, words and values of all nonzero weights, sorted by text, then by word."""
    readable = [encoders.replace_surrogates(text) for text in texts]
    options = {"batch_size": _BATCH[model.device.type], "save_to_cpu": True, "show_progress_bar": False}
    weights = encode(readable, **options).coalesce()
    rows, words = weights.indices().numpy()
    return rows, words, weights.values().float().numpy()


def open_sparse_encoder(name: str, precision: str, device: str) -> "SparseEncoder":
    """Load a `SparseEncoder` of sentence-transformers.

    The model is a folder or a name on the hub; precision and device are as in `ifqa.retrieval.vectors.encoders.EncoderSettings`.
    Raises IfqaError if the model is missing, cannot be loaded, is of another kind, or lacks weights.
    """
    import torch
    from sentence_transformers import SparseEncoder

    hub.silence_transformers()
    device, folder = resolve_device(device), hub.model_folder(name)
    with hub.report_load_errors(name, "a learned sparse encoder"):
        _refuse_untrained(name, folder)
        model = SparseEncoder(str(folder), device=device, trust_remote_code=False, local_files_only=True)
        reports = [encoders.load_report(path, module) for module, path in _list_networks(model, folder)]
    for report in reports:
        hub.refuse_missing(name, report, unused="pooler.")
    if model.similarity_fn_name != "dot":
        similarity = model.similarity_fn_name
        raise ConfigError(f"{name} has the similarity {similarity!r}; wanted a model for inner product ('dot')")
    if encoders.precision_name(precision, device) == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(encoders.to_float32)
    return model.eval()


def _refuse_untrained(name: str, folder: Path) -> None:
    """Refuse models of another kind: sentence-transformers opens any encoder, and initialises missing weights at random."""
    paths = (folder / "config_sentence_transformers.json", folder / "config.json")
    settings, config = (read_json(path) if path.exists() else {} for path in paths)
    saved, architectures = str(settings.get("model_type", "")), list(map(str, config.get("architectures") or []))
    bare = not (folder / "modules.json").exists()
    known = bare and any(architecture.endswith("ForMaskedLM") for architecture in architectures)
    if not known and saved != "SparseEncoder":
        kinds = saved or ", ".join(architectures) or "no type"
        fault = f"{name} is not a learned sparse encoder: its files name {kinds}"
        raise ConfigError(f"{fault}; docs/retrieval.md lists suitable models")


def _list_networks(model: "SparseEncoder", folder: Path) -> Iterator[tuple["nn.Module", Path]]:
    """The modules with a network of transformers, each with the folder of its files."""
    modules = folder / "modules.json"
    folders = [folder / module["path"] for module in read_json(modules)] if modules.exists() else [folder]
    for module, path in zip(model, folders, strict=False):  # for other libraries' layouts, modules are added at the end
        if (routes := getattr(module, "sub_modules", None)) is None:
            yield module, path
            continue
        for route, names in read_json(path / "router_config.json")["structure"].items():
            yield from ((submodule, path / name) for submodule, name in zip(routes[route], names, strict=True))
