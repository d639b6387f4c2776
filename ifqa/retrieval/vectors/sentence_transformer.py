"""Opens any sentence-transformers model as an encoder; its files decide pooling, prefixes and normalisation."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ifqa.models.batches import Features
from ifqa.models.hub import loading, refuse_missing
from ifqa.progress import say
from ifqa.retrieval.vectors.encoder import Encoder, Facts, Side, check_positions
from ifqa.storage.files import read_json

_NEEDS_PREFIX = re.compile(r"(^|[/_-])(e5|bge|gte-qwen|nomic-embed|arctic-embed|dkrr)", re.I)


def open_sentence_transformer(
    name: str, folder: Path, titles: str, max_tokens: int, precision: str, device: str, query_prefix: str | None,
    passage_prefix: str | None,
) -> Encoder:  # fmt: skip
    """The encoder of the model in `folder`; the settings are those of `ifqa.retrieval.vectors.loading.open_encoder`.

    Raises:
        IfqaError: the model does not load, or has fewer positions than `max_tokens`.
    """
    import torch
    from sentence_transformers import SentenceTransformer

    with loading(name, folder, "a sentence-transformers model"):
        model = SentenceTransformer(str(folder), device=device, trust_remote_code=False, local_files_only=True)
        modules = folder / "modules.json"
        place = folder / read_json(modules)[0]["path"] if modules.exists() else folder
        report = load_report(place, model[0])
    refuse_missing(name, report, unused="pooler.")  # pooling here is of the tokens' vectors
    if max_tokens and max_tokens != model.max_seq_length:
        transformer: Any = model[0]
        check_positions(max_tokens, transformer.model.config)
        model.max_seq_length = max_tokens
    prompts = {"query": query_prefix, "document": passage_prefix}
    for task, names in (("query", ("query",)), ("document", ("document", "passage", "corpus"))):
        if prompts[task] is None:
            prompts[task] = next((model.prompts[key] for key in names if model.prompts.get(key)), "")
    if not any(prompts.values()) and _NEEDS_PREFIX.search(name):
        say(f"{name}: its files name no prefix, but models of its family are trained with a prefix; see query_prefix")

    def side(task: str, used: Any) -> Side:
        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            texts = [f"{title} {text}" if title else text for text, title in pairs]
            features: Features = used.preprocess(texts, prompt=prompts[task] or None, task=task)
            return features

        return Side(tokenise, lambda features: used.forward(features, task=task)["sentence_embedding"])

    if precision == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(in_float)
    passages = model
    if precision == "int8":
        from ifqa.retrieval.vectors.int8 import quantised

        passages = quantised(model)
    pooling = next((str(part.pooling_mode) for part in model if hasattr(part, "pooling_mode")), "the model's own")
    facts: Facts = {
        "model": name,
        "pooling": pooling,
        "normalised": any(type(part).__name__ == "Normalize" for part in model),
        "query_prefix": prompts["query"],
        "passage_prefix": prompts["document"],
        "titles": titles == "yes",
        "max_tokens": model.max_seq_length,
        "precision": precision,
        "dimension": model.get_embedding_dimension(),
    }
    return Encoder(facts, device, side("query", model), side("document", passages), titles == "yes")


def load_report(place: Path, transformer: Any) -> Any:
    """What transformers reports of the weights it found, which sentence-transformers keeps to itself.

    On the meta device, which takes accelerate, the second loading costs neither time nor memory.
    """
    network: Any = getattr(transformer, "model", None)
    if not hasattr(network, "from_pretrained"):  # word vectors, which load whole or not at all
        return {"missing_keys": (), "mismatched_keys": ()}
    meta = {"device_map": "meta"} if find_spec("accelerate") else {}
    loaded = type(network).from_pretrained(place, output_loading_info=True, local_files_only=True, **meta)
    return loaded[1]


def in_float(module: Any, given: Any, features: Features) -> Features:
    """Features in float32, for pooling and normalisation in bfloat16 would give vectors of length 0.996."""
    return {
        k: v.float() if hasattr(v, "is_floating_point") and v.is_floating_point() else v for k, v in features.items()
    }
