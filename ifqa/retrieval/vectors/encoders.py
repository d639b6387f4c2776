"""Encoders turn texts into vectors, in batches of similar length: any sentence-transformers model, or DPR's two encoders.

A model's own files decide pooling, prefixes and normalisation. `Encoder.facts` reports them, because a wrong query prefix
raises no error and costs recall.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError
from ifqa.models.devices import (
    BATCH_TOKENS,
    CHUNK,
    Features,
    resolve_device,
    resolve_precision,
    split_batches,
    to_device,
)
from ifqa.models.hub import (
    MINILM,
    model_fingerprint,
    model_folder,
    question_model,
    refuse_missing,
    report_load_errors,
    silence_transformers,
)
from ifqa.records import Passage
from ifqa.retrieval.vectors.vector_store import to_float16
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
    """What opens an encoder.

    Attributes:
        model: a sentence-transformers model, or DPR's context encoder: a folder, or a name on the hub.
        query_model: DPR's question encoder; empty for the encoder whose name matches that of the context encoder.
        titles: whether to put a passage's title before its text: "yes", "no", or "auto" (yes for DPR, else no).
        max_tokens: tokens after which a text is cut off; 0 for the model's own limit (256 for DPR).
        precision: "float32", "bfloat16", or "auto" for bfloat16 where the hardware multiplies in it.
        device: "cpu", "cuda", "mps", or "auto" (CUDA where there is a GPU, else the CPU).
        query_prefix, passage_prefix: put before each text; None for the prefix in the model's own files.
    """

    model: str = MINILM
    query_model: str = ""
    titles: YesNo = "auto"
    max_tokens: int | None = 0  # without a limit in a model of word vectors
    precision: Precision = "auto"
    device: str = "auto"
    query_prefix: str | None = None
    passage_prefix: str | None = None


class Tower(NamedTuple):
    """How a model encodes questions, or passages: pairs of text and title to padded token ids, and these to vectors."""

    tokenise: Callable[[Sequence[tuple[str, str]]], Features]
    forward: Callable[[Features], "Tensor"]


@dataclass(frozen=True)
class Encoder:
    """A loaded model. `facts` has the settings that decide its vectors; they are printed and stored in the index."""

    facts: EncoderFacts
    device: str
    queries: Tower
    passages: Tower

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions, float32 [texts, dimension].

        Raises:
            IfqaError: a vector holds NaN or infinity.
        """
        vectors = _encode(self.queries, [(text, "") for text in texts], self.device)
        if not np.isfinite(vectors).all():
            raise IfqaError(f"{self.facts['model']} gives a question a vector with NaN or infinity: it is damaged")
        return vectors

    def encode_passages(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Vectors of passages, float32 [passages, dimension]."""
        with_titles = self.facts["titles"]
        pairs = [(passage.text, passage.title if with_titles else "") for passage in passages]
        return _encode(self.passages, pairs, self.device)


def cached_encoder(settings: EncoderSettings) -> Encoder:
    """The encoder; a process loads it once for the same settings and files."""
    return _open_cached(
        settings, model_fingerprint(settings.model, question_model(settings.model, settings.query_model))
    )


@lru_cache(maxsize=1)  # a worker has many pieces; by weights, for a model may be trained again in the same folder
def _open_cached(settings: EncoderSettings, weights: str) -> Encoder:
    return open_encoder(settings)


def encode_stored(settings: EncoderSettings, passages: Sequence[Passage]) -> tuple[NDArray[np.float16]]:
    """The vectors of passages as they are stored, float16 [passages, dimension]."""
    vectors = cached_encoder(settings).encode_passages(passages)
    return (to_float16(vectors, [passage.id for passage in passages]),)


def open_encoder(settings: EncoderSettings) -> Encoder:
    """Load an encoder.

    Raises:
        IfqaError: the model is missing or does not load, or a setting does not fit the model.
    """
    silence_transformers()
    device, folder = resolve_device(settings.device), model_folder(settings.model)
    if questions := question_model(settings.model, settings.query_model):
        if settings.query_prefix or settings.passage_prefix:
            raise IfqaError("DPR's encoders take no prefix; leave the setting out")
        return _open_dpr(settings, folder, questions, device)
    if settings.query_model:
        raise IfqaError(f"query_model is for DPR's two encoders; {settings.model} encodes questions itself")
    return _open_sentence_transformer(settings, folder, device)


def precision_name(precision: str, device: str) -> Literal["float32", "bfloat16"]:
    """A setting "precision", with "auto" resolved: "float32" or "bfloat16"."""
    import torch

    resolved = resolve_precision(precision, resolve_device(device))
    return "bfloat16" if resolved == torch.bfloat16 else "float32"


def refuse_other_weights(index: Path, model: str, built_with: str, weights: str) -> None:
    """Refuse to search an index with a model whose files are not those that it was built with; both as SHA-256."""
    if weights != built_with:
        raise IfqaError(
            f"{index} was built with another {model} (the SHA-256 of its files was {built_with[:8]}..., "
            f"now it is {weights[:8]}...); build it again: ifqa index CORPUS"
        )


def replace_surrogates(text: str) -> str:
    """The text without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode()


def _check_positions(max_tokens: int, config: "PretrainedConfig") -> None:
    """Refuse more tokens than a network has positions, for it would fail at the first text that long."""
    most = config.max_position_embeddings
    if not 3 <= max_tokens <= most:
        raise IfqaError(f"max_tokens: wanted 3 to {most}, the number of the model's positions; found {max_tokens}")


def _encode(side: Tower, pairs: Sequence[tuple[str, str]], device: str) -> NDArray[np.float32]:
    """A thread tokenises the next chunk. A chunk's batches hold texts of similar length, up to a budget of tokens."""
    import torch

    if not pairs:
        return _encode(side, [("x", "")], device)[:0]
    pairs = [(replace_surrogates(text), replace_surrogates(title)) for text, title in pairs]
    chunks = [pairs[start : start + CHUNK] for start in range(0, len(pairs), CHUNK)]
    encoded = []
    with ThreadPoolExecutor(1) as ahead, torch.inference_mode():
        for chunk, features in zip(chunks, ahead.map(side.tokenise, chunks), strict=True):
            vectors: list[Tensor] = []
            order: list[int] = []
            for places, batch in split_batches(features, len(chunk), BATCH_TOKENS[device]):
                vectors.append(side.forward(to_device(batch, device)).float())
                order += places
            encoded.append(torch.cat(vectors).cpu().numpy()[np.argsort(order)])  # wait for a GPU once per chunk
    return np.concatenate(encoded)


def _open_dpr(settings: EncoderSettings, folder: Path, questions: str, device: str) -> Encoder:
    """DPR's two encoders (Karpukhin et al., EMNLP 2020), for questions and for passages with their titles."""
    import torch
    from transformers import AutoTokenizer, DPRContextEncoder, DPRQuestionEncoder

    if questions == settings.model:
        raise IfqaError(
            f"{settings.model} is an encoder of DPR; name the question encoder that belongs to it as query_model"
        )
    longest, dtype = settings.max_tokens or _DPR_TOKENS, resolve_precision(settings.precision, device)

    def side(kind: type[DPRContextEncoder] | type[DPRQuestionEncoder], place: Path) -> Tower:
        with report_load_errors(str(place), f"a {kind.__name__}"):
            tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
            model, report = kind.from_pretrained(place, dtype=dtype, output_loading_info=True)
            model = model.to(device).eval()
        refuse_missing(str(place), report)
        _check_positions(longest, model.config)

        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            # DPR replaces curly apostrophes in questions by straight ones (dpr/utils/data_utils.py:63-65). It reads title and
            # text as a pair, or the text alone where there is no title (dpr/models/hf_models.py:281-317)
            plain = [(text.replace("’", "'") if kind is DPRQuestionEncoder else text, title) for text, title in pairs]
            inputs = [(title, text) if title else text for text, title in plain]
            ids = tokenizer(inputs, truncation=True, max_length=longest)["input_ids"]
            features = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
            features["token_type_ids"] = torch.zeros_like(features["input_ids"])  # all 0 in DPR, in pairs too
            return dict(features)

        return Tower(tokenise, lambda features: model(**features).pooler_output)

    passages, queries = side(DPRContextEncoder, folder), side(DPRQuestionEncoder, model_folder(questions))
    precision = precision_name(settings.precision, device)
    dimension = int(_encode(queries, [("dimension", "")], device).shape[1])
    facts: EncoderFacts = {
        "model": settings.model, "query_model": questions, "pooling": "cls", "normalised": False, "query_prefix": "",
        "passage_prefix": "", "titles": settings.titles != "no", "max_tokens": longest, "precision": precision,
        "dimension": dimension,
    }  # fmt: skip
    return Encoder(facts, device, queries, passages)


def _open_sentence_transformer(settings: EncoderSettings, folder: Path, device: str) -> Encoder:
    """Any sentence-transformers model; its files decide pooling, prefixes and normalisation."""
    import torch
    from sentence_transformers import SentenceTransformer

    name, longest = settings.model, settings.max_tokens
    with report_load_errors(name, "a sentence-transformers model"):
        model = SentenceTransformer(str(folder), device=device, trust_remote_code=False, local_files_only=True)
        modules = folder / "modules.json"
        place = folder / read_json(modules)[0]["path"] if modules.exists() else folder
        report = load_report(place, model[0])
    refuse_missing(name, report, unused="pooler.")  # pooling here is of the tokens' vectors
    if longest and longest != model.max_seq_length:
        network: Any = model[0]
        _check_positions(longest, network.model.config)
        model.max_seq_length = longest
    prompts = {"query": settings.query_prefix, "document": settings.passage_prefix}
    for task, names in (("query", ("query",)), ("document", ("document", "passage", "corpus"))):
        if prompts[task] is None:
            prompts[task] = next((model.prompts[key] for key in names if model.prompts.get(key)), "")
    if not any(prompts.values()) and _NEEDS_PREFIX.search(name):
        logger.info(
            f"{name}: its files name no prefix, but models of its family are trained with a prefix; see query_prefix"
        )

    def side(task: str) -> Tower:
        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            texts = [f"{title} {text}" if title else text for text, title in pairs]
            features: Features = model.preprocess(texts, prompt=prompts[task] or None, task=task)
            return features

        return Tower(tokenise, lambda features: model.forward(features, task=task)["sentence_embedding"])

    precision = precision_name(settings.precision, device)
    if precision == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(to_float32)
    pooling = next((str(part.pooling_mode) for part in model if hasattr(part, "pooling_mode")), "the model's own")
    normalised = any(type(part).__name__ == "Normalize" for part in model)
    facts: EncoderFacts = {
        "model": name, "pooling": pooling, "normalised": normalised, "query_prefix": prompts["query"],
        "passage_prefix": prompts["document"], "titles": settings.titles == "yes", "max_tokens": model.max_seq_length,
        "precision": precision, "dimension": model.get_embedding_dimension(),
    }  # fmt: skip
    return Encoder(facts, device, side("query"), side("document"))


def load_report(place: Path, transformer: "nn.Module") -> Mapping[str, Sequence[object]]:
    """What transformers reports of the weights it found, which sentence-transformers keeps to itself.

    On the meta device, which takes accelerate, the second loading costs neither time nor memory.
    """
    network: Any = getattr(transformer, "model", None)
    if not hasattr(network, "from_pretrained"):  # word vectors, which load whole or not at all
        return {"missing_keys": (), "mismatched_keys": ()}
    meta = {"device_map": "meta"} if find_spec("accelerate") else {}
    _, report = type(network).from_pretrained(place, output_loading_info=True, local_files_only=True, **meta)
    return dict(report)


def to_float32(_module: object, _inputs: object, features: Features) -> Features:
    """Features in float32, for pooling and normalisation in bfloat16 would give vectors of length 0.996."""
    import torch

    return {
        name: value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in features.items()
    }
