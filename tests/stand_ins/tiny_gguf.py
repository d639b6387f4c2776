"""A Llama of a few thousand random weights, and the same model as a GGUF file, written with the
package gguf.
"""

import json

import gguf
import tiny_chat
import torch
from transformers import LlamaConfig, LlamaForCausalLM

HEADS = 4
KEYS = 2
SIZE = 64
INNER = 96
_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def llama(words, seed=0):
    torch.manual_seed(seed)
    end = words.convert_tokens_to_ids(tiny_chat.END)
    settings = {
        "vocab_size": len(words),
        "hidden_size": SIZE,
        "intermediate_size": INNER,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEYS,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "eos_token_id": end,
        "bos_token_id": end,
        "pad_token_id": 0,
        "initializer_range": 0.2,
        "rms_norm_eps": 1e-5,
    }
    return LlamaForCausalLM(LlamaConfig(**settings)).eval()


def _paired(weight, heads):
    """Rows of queries or keys in llama.cpp's order: it rotates neighbours, transformers the two
    halves of a head.
    """
    rows, columns = weight.shape
    return (
        weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
    )


def write(file, words, model, kind=None):
    """Write a Llama as GGUF.

    Matrices in `kind`, such as `gguf.GGMLQuantizationType.Q8_0`, or in float32.
    """
    out = gguf.GGUFWriter(file, "llama")
    config = model.config
    backend = words.backend_tokenizer
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(SIZE)
    out.add_block_count(2)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KEYS)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_freq_base(config.rope_parameters["rope_theta"])
    out.add_rope_dimension_count(SIZE // HEADS)
    out.add_vocab_size(len(words))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("smollm")
    vocabulary = sorted(words.get_vocab(), key=words.get_vocab().get)
    out.add_token_list(vocabulary)
    special = {tiny_chat.PAD, tiny_chat.TURN, tiny_chat.END}
    out.add_token_types([3 if token in special else 1 for token in vocabulary])
    merges = json.loads(backend.to_str())["model"]["merges"]
    out.add_token_merges([" ".join(merge) for merge in merges])
    out.add_eos_token_id(config.eos_token_id)
    out.add_bos_token_id(config.eos_token_id)
    out.add_unk_token_id(0)
    out.add_pad_token_id(0)
    out.add_chat_template(words.chat_template)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":  # shared with the embeddings
            continue
        weight = tensor.numpy()
        short = {
            "model.embed_tokens.weight": "token_embd.weight",
            "model.norm.weight": "output_norm.weight",
        }.get(name)
        if short is None:
            _, _, layer, rest = name.split(".", 3)
            part = rest.removesuffix(".weight")
            short = f"blk.{layer}.{_NAMES[part]}.weight"
            heads = {"self_attn.q_proj": HEADS, "self_attn.k_proj": KEYS}.get(part)
            weight = _paired(weight, heads) if heads else weight
        if kind is not None and weight.ndim > 1:
            out.add_tensor(short, gguf.quants.quantize(weight, kind), raw_dtype=kind)
        else:
            out.add_tensor(short, weight)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return file
