"""Dense encoders, which turn texts into vectors: any sentence-transformers model, or DPR's two
encoders.

A model's files define pooling, prefixes and normalisation. `Encoder.facts` reports them, because a
wrong query prefix costs recall without an error.
"""

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import ConfigError, FormatError, IfqaError
from ifqa.models import devices, loading, places
from ifqa.models.devices import Features
from ifqa.protocols import Requirement
from ifqa.records import Passage
from ifqa.retrieval.vectors.vector_store import Arrays, to_float16
from ifqa.settings import Precision, YesNo
from ifqa.storage.files import read_json

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PretrainedConfig

logger = logging.getLogger(__name__)

_NEEDS_PREFIX = re.compile(r"(^|[/_-])(e5|bge|gte-qwen|nomic-embed|arctic-embed|dkrr)", re.I)
_DPR_TOKENS = 256  # conf/encoder/hf_bert.yaml: sequence_length


class EncoderFacts(TypedDict):
    """The settings that decide an encoder's vectors."""

    model: str
    query_model: NotRequired[str]  # DPR only
    pooling: str
    normalised: bool
    query_prefix: str | None
    passage_prefix: str | None
    titles: bool
    max_tokens: int | None
    precision: str
    dimension: int | None


@dataclass(frozen=True)
class EncoderSettings:
    """The settings of an encoder, as `ifqa.retrieval.dense.Dense.BuildSettings` describes them."""

    model: str = places.MINILM
    query_model: str = ""
    titles: YesNo = "auto"
    max_tokens: int | None = 0  # None for models of word vectors, which have no limit
    precision: Precision = "auto"
    device: str = "auto"
    query_prefix: str | None = None
    passage_prefix: str | None = None


class Tower(NamedTuple):
    """One side of a bi-encoder: turns (text, title) pairs into padded token ids, and these into
    vectors.
    """

    tokenise: Callable[[Sequence[tuple[str, str]]], Features]
    forward: Callable[[Features], "Tensor"]


@dataclass(frozen=True)
class Encoder:
    """A loaded model; `facts` are logged and stored in the index."""

    facts: EncoderFacts
    device: str
    queries: Tower
    passages: Tower

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions, float32 [texts, dimension].

        Raises FormatError if a vector holds NaN or infinity.
        """
        vectors = _encode(self.queries, [(text, "") for text in texts], self.device)
        if not np.isfinite(vectors).all():
            raise FormatError(
                f"{self.facts['model']} returns a vector with NaN or infinity; the model is damaged"
            )
        return vectors

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Vectors of passages, float32 [passages, dimension]."""
        with_titles = self.facts["titles"]
        pairs = [(passage.text, passage.title if with_titles else "") for passage in passages]
        return _encode(self.passages, pairs, self.device)


def cached_encoder(settings: EncoderSettings) -> Encoder:
    """The encoder, cached in the process by settings and model files."""
    questions = question_model(settings.model, settings.query_model)
    return _open_cached(settings, loading.model_fingerprint(settings.model, questions))


# For a worker's many tasks; keyed by `weights` too: a model may be trained again
@lru_cache(maxsize=1)
def _open_cached(settings: EncoderSettings, weights: str) -> Encoder:
    return open_encoder(settings)


def encode_stored(settings: EncoderSettings, passages: Sequence[Passage]) -> Arrays:
    """The vectors of passages in storage precision, float16 [passages, dimension]."""
    vectors = cached_encoder(settings).encode_passages(passages)
    return {"vectors": to_float16(vectors, [passage.id for passage in passages])}


def open_encoder(settings: EncoderSettings) -> Encoder:
    """Load an encoder.

    Raises IfqaError if the model is missing or cannot be loaded, or a setting does not apply to it.
    """
    loading.silence_transformers()
    device = devices.resolve_device(settings.device)
    folder = places.model_folder(settings.model)
    if questions := question_model(settings.model, settings.query_model):
        if settings.query_prefix or settings.passage_prefix:
            raise ConfigError("DPR's encoders take no prefix; remove the setting")
        return _open_dpr(settings, folder, questions, device)
    if settings.query_model:
        raise ConfigError(f"query_model is for DPR; {settings.model} encodes questions itself")
    return _open_sentence_transformer(settings, folder, device)


def precision_name(precision: str, device: str) -> Literal["float32", "bfloat16"]:
    """The precision that the setting chooses on a device."""
    import torch

    resolved = devices.resolve_precision(precision, devices.resolve_device(device))
    return "bfloat16" if resolved == torch.bfloat16 else "float32"


def refuse_other_weights(index: Path, model: str, built_with: str, weights: str) -> None:
    """Refuse an index if the model's files changed since its build; both hashes are SHA-256."""
    if weights != built_with:
        change = f"the SHA-256 of its files was {built_with[:8]}..., now it is {weights[:8]}..."
        raise IfqaError(
            f"{index} was built with a different {model} ({change}); build it again: "
            "ifqa index CORPUS"
        )


def replace_surrogates(text: str) -> str:
    """The text without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode()


def _check_positions(max_tokens: int, config: "PretrainedConfig") -> None:
    """Refuse more tokens than the network has positions."""
    limit = config.max_position_embeddings
    if not 3 <= max_tokens <= limit:
        raise ConfigError(
            f"max_tokens: wanted 3 to {limit}, the model's number of positions; found {max_tokens}"
        )


def _encode(tower: Tower, pairs: Sequence[tuple[str, str]], device: str) -> NDArray[np.float32]:
    """Vectors of texts, in batches of similar length up to a token budget.

    A thread tokenises the next chunk.
    """
    import torch

    if not pairs:
        return _encode(tower, [("x", "")], device)[:0]
    pairs = [(replace_surrogates(text), replace_surrogates(title)) for text, title in pairs]
    chunks = [pairs[start : start + devices.CHUNK] for start in range(0, len(pairs), devices.CHUNK)]
    encoded = []
    with ThreadPoolExecutor(1) as ahead, torch.inference_mode():
        for chunk, features in zip(chunks, ahead.map(tower.tokenise, chunks), strict=True):
            vectors: list[Tensor] = []
            order: list[int] = []
            for positions, batch in devices.split_batches(
                features, len(chunk), devices.BATCH_TOKENS[device]
            ):
                vectors.append(tower.forward(devices.to_device(batch, device)).float())
                order += positions
            # Synchronise once per chunk
            encoded.append(torch.cat(vectors).cpu().numpy()[np.argsort(order)])
    return np.concatenate(encoded)


def _open_dpr(settings: EncoderSettings, folder: Path, questions: str, device: str) -> Encoder:
    """Load DPR's two encoders (Karpukhin et al., EMNLP 2020)."""
    import torch
    from transformers import AutoTokenizer, DPRContextEncoder, DPRQuestionEncoder

    if questions == settings.model:
        raise ConfigError(
            f"{settings.model} is a DPR encoder; set query_model to its question encoder"
        )
    max_tokens = settings.max_tokens or _DPR_TOKENS
    dtype = devices.resolve_precision(settings.precision, device)

    def load_tower(kind: type[DPRContextEncoder] | type[DPRQuestionEncoder], path: Path) -> Tower:
        with loading.report_load_errors(str(path), f"a {kind.__name__}"):
            tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
            model, report = kind.from_pretrained(path, dtype=dtype, output_loading_info=True)
            model = model.to(device).eval()
        loading.refuse_missing(str(path), report)
        _check_positions(max_tokens, model.config)

        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            # DPR straightens curly apostrophes in questions (dpr/utils/data_utils.py:63-65). It
            # reads title and text as a pair, or the text alone without a title
            # (dpr/models/hf_models.py:281-317)
            texts = [
                (text.replace("’", "'") if kind is DPRQuestionEncoder else text, title)
                for text, title in pairs
            ]
            inputs = [(title, text) if title else text for text, title in texts]
            ids = tokenizer(inputs, truncation=True, max_length=max_tokens)["input_ids"]
            features = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
            # All 0 in DPR, in pairs too
            features["token_type_ids"] = torch.zeros_like(features["input_ids"])
            return dict(features)

        return Tower(tokenise, lambda features: model(**features).pooler_output)

    passages = load_tower(DPRContextEncoder, folder)
    queries = load_tower(DPRQuestionEncoder, places.model_folder(questions))
    precision = precision_name(settings.precision, device)
    dimension = int(_encode(queries, [("dimension", "")], device).shape[1])
    facts: EncoderFacts = {
        "model": settings.model,
        "query_model": questions,
        "pooling": "cls",
        "normalised": False,
        "query_prefix": "",
        "passage_prefix": "",
        "titles": settings.titles != "no",
        "max_tokens": max_tokens,
        "precision": precision,
        "dimension": dimension,
    }
    return Encoder(facts, device, queries, passages)


def _open_sentence_transformer(settings: EncoderSettings, folder: Path, device: str) -> Encoder:
    """Load a sentence-transformers model."""
    import torch
    from sentence_transformers import SentenceTransformer

    name = settings.model
    max_tokens = settings.max_tokens
    with loading.report_load_errors(name, "a sentence-transformers model"):
        model = SentenceTransformer(
            str(folder), device=device, trust_remote_code=False, local_files_only=True
        )
        modules = folder / "modules.json"
        report = load_report(
            folder / read_json(modules)[0]["path"] if modules.exists() else folder, model[0]
        )
    loading.refuse_missing(name, report, unused="pooler.")  # this code pools token vectors
    longest = model.max_seq_length
    is_limited = longest is not None and math.isfinite(longest)
    if max_tokens and not is_limited:
        raise ConfigError(
            f"max_tokens = {max_tokens}: {name} has word vectors and reads a text of any length; "
            "remove the setting"
        )
    if max_tokens and max_tokens != longest:
        network: Any = model[0]
        _check_positions(max_tokens, network.model.config)
        model.max_seq_length = max_tokens
    prompts = {"query": settings.query_prefix, "document": settings.passage_prefix}
    for task, names in (("query", ("query",)), ("document", ("document", "passage", "corpus"))):
        if prompts[task] is None:
            prompts[task] = next(
                (model.prompts[key] for key in names if model.prompts.get(key)), ""
            )
    if not any(prompts.values()) and _NEEDS_PREFIX.search(name):
        logger.info(
            f"{name}: its files have no prefix, but its family is trained with prefixes; "
            "see query_prefix"
        )

    def make_tower(task: str) -> Tower:
        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            texts = [f"{title} {text}" if title else text for text, title in pairs]
            features: Features = model.preprocess(texts, prompt=prompts[task] or None, task=task)
            return features

        return Tower(
            tokenise, lambda features: model.forward(features, task=task)["sentence_embedding"]
        )

    precision = precision_name(settings.precision, device)
    if precision == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(to_float32)
    pooling = next(
        (str(part.pooling_mode) for part in model if hasattr(part, "pooling_mode")),
        "the model's own",
    )
    normalised = any(type(part).__name__ == "Normalize" for part in model)
    facts: EncoderFacts = {
        "model": name,
        "pooling": pooling,
        "normalised": normalised,
        "query_prefix": prompts["query"],
        "passage_prefix": prompts["document"],
        "titles": settings.titles == "yes",
        "max_tokens": model.max_seq_length if is_limited else None,
        "precision": precision,
        "dimension": model.get_embedding_dimension(),
    }
    return Encoder(facts, device, make_tower("query"), make_tower("document"))


def load_report(folder: Path, transformer: "nn.Module") -> Mapping[str, Sequence[object]]:
    """The loading report of transformers, which sentence-transformers discards.

    A load on the meta device costs nothing.
    """
    network: Any = getattr(transformer, "model", None)
    if not hasattr(network, "from_pretrained"):  # word vectors load completely or fail
        return {"missing_keys": (), "mismatched_keys": ()}
    options = {"output_loading_info": True, "local_files_only": True, "device_map": "meta"}
    _, report = type(network).from_pretrained(folder, **options)
    return dict(report)


def to_float32(_module: object, _inputs: object, features: Features) -> Features:
    """A forward hook that converts features to float32.

    Normalisation in bfloat16 gives vectors of length 0.996.
    """
    import torch

    floats = {
        name
        for name, feature in features.items()
        if torch.is_tensor(feature) and feature.is_floating_point()
    }
    return {
        name: feature.float() if name in floats else feature for name, feature in features.items()
    }


def question_model(model: str, query_model: str = "") -> str:
    """The question encoder of a DPR context encoder.

    Empty for a model that encodes questions itself.
    """
    folder = places.model_folder(model)
    path = folder / "config.json"
    config = read_json(path) if path.exists() else {}
    if not isinstance(config, dict):
        raise FormatError(f"{path}: wanted a JSON object, found {type(config).__name__}")
    if config.get("model_type") != "dpr":
        return ""
    return query_model or question_encoder_name(model)


def encoder_requirements(model: str, root: Path, query_model: str = "") -> list[Requirement]:
    names = dict.fromkeys((model, query_model or question_encoder_name(model)))
    return [places.model_requirement(name, root) for name in names]


def question_encoder_name(model: str) -> str:
    """The name of a DPR context encoder's question encoder; other names are unchanged."""
    return "question_encoder".join(model.rsplit("ctx_encoder", 1))


def read_training(*models: str) -> tuple[str, list[str]]:
    """The split family that `ifqa train dense` trained a model on, and the SHA-256 of its question
    files; empty for others.
    """
    folders = [places.model_folder(model) for model in models if model]
    for path in (
        parent / "manifest.json" for folder in folders for parent in (folder, folder.parent)
    ):
        if path.exists() and isinstance(manifest := read_json(path), dict) and "family" in manifest:
            return manifest["family"], list(manifest.get("sources", {}).values())
    return "", []
