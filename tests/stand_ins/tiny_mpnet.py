"""An MPNet of two layers with random weights, and a tokenizer of the words of some texts."""

import json

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

MARKS = ["<s>", "<pad>", "</s>", "[UNK]"]
SIZE = 32
HEADS = 4
LAYERS = 2
INNER = 48


def tiny_mpnet(folder, *texts, seed=0, **changed):
    """Write `config.json`, `model.safetensors` and `tokenizer.json`; returns the folder.

    `changed` replaces keys of the config.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pieces = pre_tokenizers.BertPreTokenizer()
    lower = normalizers.Lowercase()
    words = dict.fromkeys(
        word for text in texts for word, _ in pieces.pre_tokenize_str(lower.normalize_str(text))
    )
    vocabulary = {word: number for number, word in enumerate([*MARKS, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "[UNK]"))
    tokenizer.normalizer = lower
    tokenizer.pre_tokenizer = pieces
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "mpnet",
        "vocab_size": len(vocabulary),
        "hidden_size": SIZE,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": 260,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "relative_attention_num_buckets": 32,
        "hidden_act": "gelu",
    } | changed
    (folder / "config.json").write_text(json.dumps(config))
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], SIZE),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], SIZE),
        "encoder.relative_attention_bias.weight": (config["relative_attention_num_buckets"], HEADS),
        **_norm("embeddings.LayerNorm"),
    }
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        for name in "qkvo":
            shapes |= _linear(f"{layer}.attention.attn.{name}", SIZE, SIZE)
        shapes |= _norm(f"{layer}.attention.LayerNorm") | _norm(f"{layer}.output.LayerNorm")
        shapes |= _linear(f"{layer}.intermediate.dense", INNER, SIZE) | _linear(
            f"{layer}.output.dense", SIZE, INNER
        )
    weights = {
        name: torch.randn(shape, generator=generator) * SIZE**-0.5 for name, shape in shapes.items()
    }
    weights |= {
        name: weight + 1 for name, weight in weights.items() if name.endswith("LayerNorm.weight")
    }
    weights["encoder.relative_attention_bias.weight"] *= SIZE**0.5  # so that it matters
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def _linear(name, out, size):
    return {f"{name}.weight": (out, size), f"{name}.bias": (out,)}


def _norm(name):
    return {f"{name}.weight": (SIZE,), f"{name}.bias": (SIZE,)}
