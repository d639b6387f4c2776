"""Learned sparse encoders (SPLADE; Formal et al., SIGIR 2021): a model weighs the words of its
vocabulary for each text.

A passage's score is the inner product of its weights and the question's. The model is a
sentence-transformers `SparseEncoder`, which may encode questions by table look-up alone.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import ConfigError
from ifqa.models import loading, places
from ifqa.models.devices import resolve_device
from ifqa.records import Passage
from ifqa.retrieval.vectors import encoders
from ifqa.storage.files import read_json

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sentence_transformer.modules import Transformer
    from torch import Tensor, nn

_BATCH = {
    "cpu": 16,
    "cuda": 64,
    "mps": 16,
}  # passages; the network computes a number for each token and vocabulary word
# Of the vocabulary at a time; blocks of 128 to 2,048 take about equally long on a processor
_WORDS = 1024


@dataclass(frozen=True)
class SparseSettings:
    """The settings of a learned sparse encoder; a worker opens it from them."""

    model: str
    titles: bool
    precision: str
    device: str


Weights = dict[int, float]  # numbers of words in the vocabulary, and their weights


def query_weights(model: "SparseEncoder", texts: Sequence[str]) -> list[Weights]:
    """The weights of each question."""
    return _encode_sparse(model.encode_query, texts, model) if texts else []


def passage_weights(
    model: "SparseEncoder", titles: bool, passages: Sequence[Passage]
) -> list[Weights]:
    """The weights of each passage; with `titles`, of its title and text."""
    texts = [
        f"{passage.title} {passage.text}" if titles and passage.title else passage.text
        for passage in passages
    ]
    return _encode_sparse(model.encode_document, texts, model)


def _encode_sparse(
    encode: "Callable[..., Tensor]", texts: Sequence[str], model: "SparseEncoder"
) -> list[Weights]:
    readable = [encoders.replace_surrogates(text) for text in texts]
    options = {
        "batch_size": _BATCH[model.device.type],
        "save_to_cpu": True,
        "show_progress_bar": False,
    }
    encoded = encode(readable, **options).coalesce()
    weights: list[Weights] = [{} for _ in texts]
    for row, word, weight in zip(
        *encoded.indices().tolist(), encoded.values().float().tolist(), strict=True
    ):
        weights[row][word] = weight
    return weights


def open_sparse_encoder(name: str, precision: str, device: str) -> "SparseEncoder":
    """Load a `SparseEncoder` of sentence-transformers.

    The model is a folder or a name on the hub; precision and device are as in
    `ifqa.retrieval.vectors.encoders.EncoderSettings`. Raises IfqaError if the model is missing,
    cannot be loaded, is of another kind, or lacks weights.
    """
    import torch
    from sentence_transformers import SparseEncoder

    loading.silence_transformers()
    device = resolve_device(device)
    folder = places.model_folder(name)
    with loading.report_load_errors(name, "a learned sparse encoder"):
        _refuse_untrained(name, folder)
        model = SparseEncoder(
            str(folder), device=device, trust_remote_code=False, local_files_only=True
        )
        reports = [
            encoders.load_report(path, module) for module, path in _list_networks(model, folder)
        ]
    for report in reports:
        loading.refuse_missing(name, report, unused="pooler.")
    if model.similarity_fn_name != "dot":
        similarity = model.similarity_fn_name
        raise ConfigError(
            f"{name} has the similarity {similarity!r}; wanted a model for inner product ('dot')"
        )
    _keep_highest(model)
    if encoders.precision_name(precision, device) == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(encoders.to_float32)
    return model.eval()


def cached_sparse_encoder(settings: SparseSettings) -> "SparseEncoder":
    """The encoder, cached in the process by settings and model files."""
    return _open_cached(settings, loading.model_fingerprint(settings.model))


@lru_cache(maxsize=1)  # for a worker's many tasks
def _open_cached(settings: SparseSettings, weights: str) -> "SparseEncoder":
    return open_sparse_encoder(settings.model, settings.precision, settings.device)


def _keep_highest(model: "SparseEncoder") -> None:
    """Have a masked language model's head give, of each text, the highest number of each word.

    SPLADE's pooling takes the highest of all tokens' weights, after a logarithm. The highest number
    gives the same weight, and a head that keeps only it, block by block of the vocabulary, takes a
    third of the time (`bench/encoding.py sparse`): what it writes stays in the processor's cache.
    """
    from sentence_transformers.sentence_transformer.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    modules = list(model.modules())
    poolings = [module for module in modules if isinstance(module, SpladePooling)]
    if any(pooling.pooling_strategy != "max" for pooling in poolings):
        return
    for pooling in poolings:
        pooling.register_forward_pre_hook(_one_token_a_text)
    for module in modules:
        if isinstance(module, Transformer) and module.transformer_task == "fill-mask":
            _replace_head(module)


def _replace_head(transformer: "Transformer") -> None:
    head = transformer.model.get_output_embeddings()
    all_tokens: Callable[[Tensor], Tensor] = head.forward
    state = threading.local()  # several threads may ask questions

    def keep_mask(_transformer: object, inputs: "tuple[Mapping[str, Tensor]]") -> None:
        state.mask = inputs[0].get("attention_mask")

    def highest(hidden: "Tensor") -> "Tensor":
        mask: Tensor | None = state.mask
        if mask is None or mask.shape != hidden.shape[:2]:  # texts in one row, without padding
            return all_tokens(hidden)
        return _highest_numbers(hidden, mask, head.weight, head.bias)

    transformer.register_forward_pre_hook(keep_mask)
    head.forward = highest


def _highest_numbers(
    hidden: "Tensor", mask: "Tensor", weight: "Tensor", bias: "Tensor | None"
) -> "Tensor":
    """Of each text, the highest number of each word, [texts, 1, words].

    `hidden` is [texts, tokens, dimension], and `mask` is 0 where a text is padded.
    """
    import torch

    # A padded place repeats a token of its text, which changes no maximum
    first = mask.argmax(1)
    repeated = hidden[torch.arange(len(hidden), device=hidden.device), first].unsqueeze(1)
    tokens = torch.where(mask.bool().unsqueeze(-1), hidden, repeated)
    blocks = [(tokens @ part.T).amax(1) for part in torch.split(weight, _WORDS)]
    numbers = torch.cat(blocks, 1)
    return (numbers if bias is None else numbers + bias).unsqueeze(1)


def _one_token_a_text(
    _pooling: object, inputs: "tuple[Mapping[str, Tensor], ...]"
) -> "tuple[dict[str, Tensor]]":
    """The mask of texts of which only the highest numbers are left."""
    features = dict(inputs[0])
    mask = features.get("attention_mask")
    if mask is not None and features["token_embeddings"].shape[1] == 1:
        features["attention_mask"] = mask.new_ones((len(mask), 1))
    return (features,)


def _refuse_untrained(name: str, folder: Path) -> None:
    """Refuse models of another kind: sentence-transformers opens any encoder, and initialises
    missing weights at random.
    """
    paths = (folder / "config_sentence_transformers.json", folder / "config.json")
    settings, config = (read_json(path) if path.exists() else {} for path in paths)
    saved = str(settings.get("model_type", ""))
    architectures = list(map(str, config.get("architectures") or []))
    bare = not (folder / "modules.json").exists()
    known = bare and any(architecture.endswith("ForMaskedLM") for architecture in architectures)
    if not known and saved != "SparseEncoder":
        kinds = saved or ", ".join(architectures) or "no type"
        fault = f"{name} is not a learned sparse encoder: its files name {kinds}"
        raise ConfigError(f"{fault}; docs/retrieval.md lists suitable models")


def _list_networks(model: "SparseEncoder", folder: Path) -> Iterator[tuple["nn.Module", Path]]:
    """The modules with a network of transformers, each with the folder of its files."""
    modules = folder / "modules.json"
    folders = (
        [folder / module["path"] for module in read_json(modules)] if modules.exists() else [folder]
    )
    # For other libraries' layouts, modules are added at the end
    for module, path in zip(model, folders, strict=False):
        if (routes := getattr(module, "sub_modules", None)) is None:
            yield module, path
            continue
        for route, names in read_json(path / "router_config.json")["structure"].items():
            yield from (
                (submodule, path / name)
                for submodule, name in zip(routes[route], names, strict=True)
            )
