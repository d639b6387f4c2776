"""Learned sparse encoders (SPLADE; Formal et al., SIGIR 2021): a model weighs the words of its
vocabulary for each text.

A passage's score is the inner product of its weights and the question's. The model is a
sentence-transformers `SparseEncoder`, which may encode questions by table look-up alone.
"""

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
    from torch import Tensor, nn

_BATCH = {
    "cpu": 16,
    "cuda": 64,
    "mps": 16,
}  # passages; the network computes a number for each token and vocabulary word


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
    from sentence_transformers.sparse_encoder.modules import SpladePooling

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
    for module in model.modules():
        if isinstance(module, SpladePooling) and module.pooling_strategy == "max":
            module.register_forward_pre_hook(_keep_highest)
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


def _keep_highest(
    _pooling: object, inputs: "tuple[Mapping[str, Tensor], ...]"
) -> "tuple[dict[str, Tensor]]":
    """Of a text's tokens, the highest number of each word, before SPLADE's logarithm.

    The pooling takes it after the logarithm, which gives the same weights; over all tokens the
    logarithm takes as long as the network.
    """
    features = dict(inputs[0])
    if "cu_seq_lens_q" in features:  # texts without padding in one row, which the pooling separates
        return (features,)
    logits = features["token_embeddings"]
    mask = features["attention_mask"]
    if not bool(mask.all()):
        logits = logits * mask.unsqueeze(-1).to(logits.dtype)
    features["token_embeddings"] = logits.amax(1, keepdim=True)
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
