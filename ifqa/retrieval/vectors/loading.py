"""Opens an encoder by its model's name: any sentence-transformers model, or DPR's two encoders."""

import importlib.util
from pathlib import Path
from typing import Literal, Required, TypedDict

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import model_folder, question_model, quiet
from ifqa.retrieval.vectors.dpr import open_dpr
from ifqa.retrieval.vectors.encoder import Encoder
from ifqa.retrieval.vectors.sentence_transformer import open_sentence_transformer
from ifqa.settings import Precision, YesNo, checked
from ifqa.storage.files import read_json


class EncoderSettings(TypedDict, total=False):
    """The arguments of `open_encoder`."""

    model: Required[str]
    query_model: str
    titles: YesNo
    max_tokens: int
    precision: Precision | Literal["int8"]
    device: str
    query_prefix: str | None
    passage_prefix: str | None


@checked("setting of the encoder", given=["max_tokens"])  # without a limit in a model of word vectors
def open_encoder(
    model: str,
    *,
    query_model: str = "",
    titles: YesNo = "auto",
    max_tokens: int = 0,
    precision: Precision | Literal["int8"] = "auto",
    device: str = "auto",
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
) -> Encoder:
    """Load an encoder.

    Args:
        model: a sentence-transformers model, or DPR's context encoder: a folder, or a name on the hub.
        query_model: DPR's question encoder; empty for the encoder whose name matches that of the context encoder.
        titles: whether to put a passage's title before its text: "yes", "no", or "auto" (yes for DPR, else no).
        max_tokens: tokens after which a text is cut off; 0 for the model's own limit (256 for DPR).
        precision: "float32", "bfloat16", "int8" (passages alone, on a CPU, with ONNX Runtime), or "auto". "auto" is
            bfloat16 where the hardware multiplies in it, else int8 on a CPU if the extra onnx is installed, else float32.
        device: "cpu", "cuda", "mps", or "auto" (CUDA where there is a GPU, else the CPU).
        query_prefix, passage_prefix: put before each text; None for the prefix in the model's own files.

    Raises:
        IfqaError: the model is missing or does not load, or a setting does not fit the model.
    """
    quiet()
    device, folder = resolve_device(device), model_folder(model)
    if precision == "int8" and device != "cpu":
        raise IfqaError(
            f"precision 'int8' is for a CPU, and the device is {device}; take bfloat16, or device = \"cpu\""
        )
    resolved = resolve_precision(precision, device, model)
    config = read_json(folder / "config.json") if (folder / "config.json").exists() else {}
    if not isinstance(config, dict):
        raise IfqaError(f"{folder / 'config.json'}: wanted a table, found {type(config).__name__}")
    if config.get("model_type") == "dpr":
        if resolved == "int8" or query_prefix or passage_prefix:
            raise IfqaError("DPR's encoders take no prefix, and no precision int8; leave these settings out")
        return open_dpr(model, folder, query_model, titles, max_tokens, resolved, device)
    if query_model:
        raise IfqaError(f"query_model is for DPR's two encoders; {model} encodes questions itself")
    return open_sentence_transformer(
        model, folder, titles, max_tokens, resolved, device, query_prefix, passage_prefix
    )  # fmt: skip


def resolve_precision(precision: str, device: str, model: str) -> str:
    """`precision`, or on "auto" the precision that suits the device and the model."""
    if precision != "auto":
        return precision
    half = str(half_precision(device)).removeprefix("torch.")
    if half == "bfloat16" or device != "cpu" or question_model(model):
        return half
    # A CPU that lacks bfloat16 uses 8-bit integers, which are as fast and cost no more recall (README)
    return "int8" if all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime", "onnxscript")) else half


def refuse_other_weights(index: Path, model: str, built_with: str, found: str) -> None:
    """Refuse to search an index with a model whose files are not those that it was built with; both as SHA-256.

    Raises:
        IfqaError: they differ.
    """
    if found != built_with:
        raise IfqaError(
            f"{index} was built with another {model} (the SHA-256 of its files was {built_with[:8]}..., "
            f"now it is {found[:8]}...); build it again: ifqa index CORPUS"
        )
