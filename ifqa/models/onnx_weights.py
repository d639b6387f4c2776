"""Reads a T5's weights out of int8 ONNX files, dequantised, with protobuf alone."""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ifqa.errors import FormatError
from ifqa.models.places import WEIGHTS
from ifqa.storage.files import read_json, write_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOAT = 1
_UINT8 = 2
_INT8 = 3
_BIAS = "relative_attention_bias.weight"
_TYPES = {_FLOAT: "<f4", _UINT8: "u1", _INT8: "i1"}
#: Message -> fields, as name, number, type ("*" for repeated): the part of onnx.proto that holds
#: weights and their users.
_SCHEMA = {
    "Tensor": [
        ("dims", 1, "*int64"),
        ("data_type", 2, "int32"),
        ("floats", 4, "*float"),
        ("integers", 5, "*int32"),
        ("name", 8, "string"),
        ("raw", 9, "bytes"),
    ],
    "Node": [
        ("input", 1, "*string"),
        ("output", 2, "*string"),
        ("name", 3, "string"),
        ("op_type", 4, "string"),
    ],
    "Graph": [("node", 1, "*Node"), ("initializer", 5, "*Tensor")],
    "Model": [("graph", 7, "Graph")],
}


@cache
def _model_message() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="ifqa_onnx.proto", package="ifqa_onnx", syntax="proto2"
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in _SCHEMA.items():
        entry = file.message_type.add(name=message)
        for name, number, kind in fields:
            label = kinds.LABEL_REPEATED if kind[0] == "*" else kinds.LABEL_OPTIONAL
            field = entry.field.add(name=name, number=number, label=label)
            if (kind := kind.lstrip("*")) in _SCHEMA:
                field.type = kinds.TYPE_MESSAGE
                field.type_name = f".ifqa_onnx.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ifqa_onnx.Model"))


def convert_t5(files: Sequence[Path], folder: Path) -> None:
    """Write a T5 of version 1.1 as a model folder, from the ONNX files of its encoder and decoder
    and its tokenizer.
    """
    from safetensors.numpy import save_file

    encoder, decoder, tokenizer = files
    weights = {
        name: np.ascontiguousarray(weight)
        for name, weight in sorted(read_t5(encoder, decoder).items())
    }
    try:
        words, width = weights["shared.weight"].shape
        buckets, heads = weights[f"encoder.block.0.layer.0.SelfAttention.{_BIAS}"].shape
        keys = weights["encoder.block.0.layer.0.SelfAttention.q.weight"].shape[0]
        inner = weights["encoder.block.0.layer.1.DenseReluDense.wi_0.weight"].shape[0]
    except KeyError as error:
        raise FormatError(
            f"{encoder}: wanted a T5 of version 1.1, found none of its weights {error}"
        ) from error
    layers, decoder_layers = (
        sum(
            name.startswith(f"{part}.") and name.endswith(".SelfAttention.q.weight")
            for name in weights
        )
        for part in ("encoder", "decoder")
    )
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / WEIGHTS, {"format": "pt"})
    config = {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        "vocab_size": words,
        "d_model": width,
        "d_kv": keys // heads,
        "d_ff": inner,
        "num_layers": layers,
        "num_decoder_layers": decoder_layers,
        "num_heads": heads,
        "relative_attention_num_buckets": buckets,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }
    write_json(folder / "config.json", config)
    words_file = read_json(tokenizer)
    if not isinstance(words_file, dict):
        raise FormatError(f"{tokenizer}: wanted a JSON object, found {type(words_file).__name__}")
    # Cut for titles
    write_json(folder / "tokenizer.json", words_file | {"truncation": None, "padding": None})
    special = {
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "model_max_length": 512,
    }
    write_json(
        folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **special}
    )


def read_t5(encoder: Path, decoder: Path) -> "dict[str, NDArray[np.float32]]":
    """A T5's weights by transformers' names, from the int8 ONNX files of its encoder and of its
    decoder with its head.
    """
    weights: dict[str, NDArray[np.float32]] = {}
    for file in (encoder, decoder):
        for name, weight in _dequantised(file):
            name = (
                name.replace("/", ".").strip(".").removeprefix("m.").replace("enc.", "encoder.", 1)
            )
            weights[name if name.endswith(".weight") else f"{name}.weight"] = weight
    weights.pop("encoder.embed_tokens.weight", None)  # the same as shared
    return weights


def _dequantised(file: Path) -> "Iterator[tuple[str, NDArray[np.float32]]]":
    """The float weights of an ONNX file, dequantised.

    Those of multiplications by their nodes' names, which alone name them.
    """
    from google.protobuf.message import DecodeError

    model = _model_message()()
    try:
        model.ParseFromString(file.read_bytes())
        tensors = {tensor.name: _array(tensor) for tensor in model.graph.initializer}
        users = {
            name.removesuffix("_quantized"): node.name.removesuffix("_quant").removesuffix(
                "/MatMul"
            )
            for node in model.graph.node
            if node.op_type == "MatMulInteger"
            for name in node.input
            if name.endswith("_quantized") and name in tensors
        }
        for name, tensor in tensors.items():
            if (base := name.removesuffix("_quantized")) != name:
                zero = tensors[f"{base}_zero_point"].astype(np.float32)
                scale = tensors[f"{base}_scale"]
                weight = (tensor.astype(np.float32) - zero) * scale
                yield (users[base], weight.T) if base in users else (base, weight)
            elif name.endswith(".weight"):
                yield name, tensor.astype(np.float32)
    except (DecodeError, ValueError, KeyError) as error:
        raise FormatError(
            f"{file}: wanted an int8 ONNX file of a T5, found {type(error).__name__}: {error}"
        ) from error


def _array(tensor: Any) -> "NDArray[Any]":
    """The weights of a tensor; empty if they are of no type that a weight or its scale has."""
    if tensor.data_type not in _TYPES:
        return np.empty(0)
    kind = np.dtype(_TYPES[tensor.data_type])
    dims = tuple(tensor.dims)
    if tensor.raw:
        return np.frombuffer(tensor.raw, kind).reshape(dims)
    return (
        np.array([*tensor.floats, *tensor.integers], kind).reshape(dims)
        if tensor.floats or tensor.integers
        else np.zeros(dims, kind)
    )
