"""Texts to vectors: any sentence-transformers model, and DPR's pair of encoders.

A model's own files decide pooling, prefixes and normalisation. `Encoder.facts` tells what is used, because a wrong query
prefix breaks nothing and costs points.
"""

import importlib.util
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError, unknown
from ifqa.models.batches import BUDGET, CHUNK, Features, batches, to_device
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import model_folder, question_model, quiet
from ifqa.progress import say
from ifqa.records import Passage
from ifqa.storage.files import read_json

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

PRECISIONS = ("auto", "float32", "bfloat16", "int8")
TITLES = ("auto", "yes", "no")
_NEEDS_PREFIX = re.compile(r"(^|[/_-])(e5|bge|gte-qwen|nomic-embed|arctic-embed|dkrr)", re.I)


class Encoder:
    """A model that is ready. `facts` has the settings that decide its vectors, for people and for an index's file."""

    def __init__(
        self, facts: dict[str, Any], device: str, queries: "Side", passages: "Side", with_titles: bool
    ) -> None:
        """Not to be called: see `open_encoder`."""
        self.facts = facts
        self.device = device
        self._queries, self._passages, self._with_titles = queries, passages, with_titles

    def encode_queries(self, texts: Sequence[str]) -> "NDArray[Any]":
        """Vectors of questions, float32 [texts, dimension]."""
        return _encode(self._queries, [(text, "") for text in texts], self.device)

    def encode_passages(
        self, passages: Sequence[Passage], advance: Callable[[int], None] = lambda done: None
    ) -> "NDArray[Any]":
        """Vectors of passages, float32 [passages, dimension]; `advance` is told how many more are done."""
        pairs = [(passage.text, passage.title if self._with_titles else "") for passage in passages]
        return _encode(self._passages, pairs, self.device, advance)


class Side:
    """One of a model's two ways in: texts to padded token ids, token ids to vectors."""

    def __init__(
        self, tokenise: Callable[[Sequence[tuple[str, str]]], Features], forward: Callable[[Features], "Tensor"]
    ) -> None:
        self.tokenise, self.forward = tokenise, forward


def open_encoder(
    model: str,
    *,
    query_model: str = "",
    titles: str = "auto",
    max_tokens: int = 0,
    precision: str = "auto",
    device: str = "auto",
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
) -> Encoder:
    """Load a model.

    Args:
        model: a sentence-transformers model, or DPR's context encoder: a folder, or a name of the hub.
        query_model: DPR's question encoder; empty for the one that belongs to the context encoder by its name.
        titles: whether a passage's title goes before its text: "yes", "no", or "auto" (DPR yes, others no).
        max_tokens: of a text, the rest is cut off; 0 for the model's own (DPR: 256).
        precision: "float32", "bfloat16", "int8" (passages alone, on a CPU, by ONNX Runtime), or "auto": bfloat16 where the
            hardware multiplies in it, else on a CPU int8 if the extra onnx is installed, else float32.
        device: "cpu", "cuda", "mps", or "auto": CUDA where there is one, else the CPU.
        query_prefix, passage_prefix: set before each text; None for what the model's own files say.

    Raises:
        IfqaError: the model is not to be had, does not load, or a setting does not fit it.
    """
    for what, value, known in (("precision", precision, PRECISIONS), ("titles", titles, TITLES)):
        if value not in known:
            raise unknown(what, value, known)
    for what, prefix in (("query_prefix", query_prefix), ("passage_prefix", passage_prefix)):
        if prefix is not None and not isinstance(prefix, str):
            raise IfqaError(f"{what}: wanted text, found {prefix!r}")
    if max_tokens < 0:
        raise IfqaError(f"max_tokens: wanted 0 (the model's own) or more, found {max_tokens}")
    quiet()
    device, folder = resolve_device(device), model_folder(model)
    if precision == "int8" and device != "cpu":
        raise IfqaError(
            f"precision 'int8' is for a CPU, and the device is {device}; take bfloat16, or device = \"cpu\""
        )
    precision = resolve_precision(precision, device, model)
    config = read_json(folder / "config.json") if (folder / "config.json").exists() else {}
    if not isinstance(config, dict):
        raise IfqaError(f"{folder / 'config.json'}: wanted a table, found {type(config).__name__}")
    if config.get("model_type") == "dpr":
        if precision == "int8" or query_prefix or passage_prefix:
            raise IfqaError("DPR's encoders take no prefix, and no precision int8; leave the settings out")
        from ifqa.dense.dpr import open_dpr

        return open_dpr(model, folder, query_model, titles, max_tokens, precision, device)
    if query_model:
        raise IfqaError(f"query_model is for DPR's pair of encoders; {model} encodes questions itself")
    return _open_sentence_transformer(
        model, folder, titles, max_tokens, precision, device, query_prefix, passage_prefix
    )  # fmt: skip


def resolve_precision(precision: str, device: str, model: str) -> str:
    """The precision that "auto" stands for on a device, or the one that was asked for."""
    if precision != "auto":
        return precision
    half = str(half_precision(device)).removeprefix("torch.")
    if half == "bfloat16" or device != "cpu" or question_model(model):
        return half
    # 8-bit integers are as fast as bfloat16 and cost no more recall (README); a CPU without the one has the other
    return "int8" if all(importlib.util.find_spec(one) for one in ("onnx", "onnxruntime", "onnxscript")) else half


def _open_sentence_transformer(
    name: str, folder: Path, titles: str, max_tokens: int, precision: str, device: str, query_prefix: str | None,
    passage_prefix: str | None,
) -> Encoder:  # fmt: skip
    import torch
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(str(folder), device=device, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise IfqaError(
            f"{name} does not load as a sentence-transformers model: {' '.join(str(error).split())[:200]}"
        ) from error
    if max_tokens and max_tokens != model.max_seq_length:
        transformer: Any = model[0]
        check_positions(max_tokens, transformer.model.config)
        model.max_seq_length = max_tokens
    prompts = {"query": query_prefix, "document": passage_prefix}
    for task, names in (("query", ("query",)), ("document", ("document", "passage", "corpus"))):
        if prompts[task] is None:
            prompts[task] = next((model.prompts[one] for one in names if model.prompts.get(one)), "")
    if not any(prompts.values()) and _NEEDS_PREFIX.search(name):
        say(f"{name}: its files name no prefix, and models of its family are trained with one; see query_prefix")

    def side(task: str, used: Any) -> Side:
        def tokenise(pairs: Sequence[tuple[str, str]]) -> Features:
            texts = [f"{title} {text}" if title else text for text, title in pairs]
            features: Features = used.preprocess(texts, prompt=prompts[task] or None, task=task)
            return features

        return Side(tokenise, lambda features: used.forward(features, task=task)["sentence_embedding"])

    if precision == "bfloat16":
        model[0].to(torch.bfloat16)
        model[0].register_forward_hook(_in_float)
    passages = model
    if precision == "int8":
        from ifqa.dense.int8 import quantised

        passages = quantised(model)
    pooling = next((str(one.pooling_mode) for one in model if hasattr(one, "pooling_mode")), "the model's own")
    facts = {
        "model": name,
        "pooling": pooling,
        "normalised": any(type(one).__name__ == "Normalize" for one in model),
        "query_prefix": prompts["query"],
        "passage_prefix": prompts["document"],
        "titles": titles == "yes",
        "max_tokens": model.max_seq_length,
        "precision": precision,
        "dimension": model.get_embedding_dimension(),
    }
    return Encoder(facts, device, side("query", model), side("document", passages), titles == "yes")


def _in_float(module: Any, given: Any, features: Features) -> Features:
    """Pooling and normalisation in bfloat16 would leave vectors of length 0.996."""
    return {
        k: v.float() if hasattr(v, "is_floating_point") and v.is_floating_point() else v for k, v in features.items()
    }


def check_positions(max_tokens: int, config: Any) -> None:
    """Refuse more tokens than a network has positions: it would fail at the first text that long."""
    most = getattr(config, "max_position_embeddings", max_tokens)
    if not 3 <= max_tokens <= most:
        raise IfqaError(f"max_tokens: wanted 3 to {most}, for so many positions has the model; found {max_tokens}")


def _whole(text: str) -> str:
    """The text as a tokenizer takes it."""
    return text.encode("utf-8", "replace").decode()  # half a surrogate pair is no character


def _encode(
    side: Side, pairs: Sequence[tuple[str, str]], device: str, advance: Callable[[int], None] = lambda done: None
) -> "NDArray[Any]":
    """Chunks are tokenised one ahead; within one, batches hold texts of like length, as many as a budget of tokens allows."""
    import numpy as np
    import torch

    pairs = [(_whole(text), _whole(title)) for text, title in pairs]
    if not pairs:
        return _encode(side, [("x", "")], device)[:0]
    chunks = [pairs[start : start + CHUNK] for start in range(0, len(pairs), CHUNK)]
    found = []
    with ThreadPoolExecutor(1) as ahead, torch.inference_mode():
        waiting = [ahead.submit(side.tokenise, chunk) for chunk in chunks[:1]]
        for number, chunk in enumerate(chunks):
            features = waiting.pop().result()
            waiting += [ahead.submit(side.tokenise, following) for following in chunks[number + 1 : number + 2]]
            vectors: list[Any] = []
            order: list[int] = []
            for places, batch in batches(features, len(chunk), BUDGET[device]):
                vectors.append(side.forward(to_device(batch, device)).float())
                order += places
                if device == "cpu":
                    advance(len(places))
            found.append(torch.cat(vectors).cpu().numpy()[np.argsort(order)])  # a GPU is waited for once a chunk
            if device != "cpu":
                advance(len(chunk))
    return np.concatenate(found) if found else np.empty((0, 0), np.float32)
