"""From a model's name to an encoder that is ready: any sentence-transformers model, or DPR's pair of encoders."""

import importlib.util
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
    """What `open_encoder` takes."""

    model: Required[str]
    query_model: str
    titles: YesNo
    max_tokens: int
    precision: Precision | Literal["int8"]
    device: str
    query_prefix: str | None
    passage_prefix: str | None


@checked("setting of the encoder", given=["max_tokens"])  # which a model of word vectors has without end
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
            raise IfqaError("DPR's encoders take no prefix, and no precision int8; leave the settings out")
        return open_dpr(model, folder, query_model, titles, max_tokens, resolved, device)
    if query_model:
        raise IfqaError(f"query_model is for DPR's pair of encoders; {model} encodes questions itself")
    return open_sentence_transformer(
        model, folder, titles, max_tokens, resolved, device, query_prefix, passage_prefix
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
