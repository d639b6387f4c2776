"""A T5 of a few thousand weights, with a tokenizer of its own, for the tests of
Fusion-in-Decoder.
"""

import copy
import functools
import tempfile
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import T5Config, T5ForConditionalGeneration, T5Tokenizer
from transformers.modeling_outputs import BaseModelOutput

from ifqa.reading.t5.fusion_in_decoder import FusionInDecoder

TEXTS = [
    (
        "question: If the bridge had been built in 1890, who would have opened it? title: "
        "Old Bridge context: The bridge"
    ),
    (
        "was opened in 1895 by the mayor Anna Berg, five years late, and carries two lanes "
        "across the river Lune."
    ),
    (
        "title: Harbour context: The harbour of Wick was dug from 1803 to 1811 by the engineer "
        "Thomas Telford."
    ),
]


def tokenizer(texts=TEXTS, size=300):
    """A T5 tokenizer trained on some texts: <pad> 0, </s> 1, <unk> 2."""
    unigram = Tokenizer(models.Unigram())
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    unigram.train_from_iterator(
        texts,
        trainers.UnigramTrainer(
            vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False
        ),
    )
    # In another order each time it is trained
    pieces = [*special, *sorted({*unigram.get_vocab()} - {*special})]
    return T5Tokenizer(
        vocab=[(piece, 0.0 if n < 3 else -10.0) for n, piece in enumerate(pieces)], extra_ids=0
    )


def config(vocabulary=320, gated=False, **changes):
    return T5Config(
        **{
            "vocab_size": vocabulary,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_decoder_layers": 3,
            "num_heads": 4,
            "dropout_rate": 0.0,
            "decoder_start_token_id": 0,
            "feed_forward_proj": "gated-gelu" if gated else "relu",
            "tie_word_embeddings": not gated,
        }
        | changes
    )


def model(seed=0, gain=3.0, **changes):
    """A random network.

    Its outputs differ between inputs; the larger `gain`, the more they differ.
    """
    torch.manual_seed(seed)
    network = FusionInDecoder(config(**changes)).eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "relative_attention_bias" in name:
                weight.normal_(std=0.5)
            elif weight.dim() > 1 and "shared" not in name:
                weight.mul_(gain)
    return network


def save(folder, seed=0, texts=TEXTS, **changes):
    """Save a checkpoint in a folder, for `--checkpoint`."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, path in _files(seed, tuple(texts), **changes).items():
        Path(folder, name).write_bytes(path)
    return folder


@functools.cache
def _files(seed, texts, **changes):
    """Name -> bytes of a checkpoint's files; many tests save the same one."""
    with tempfile.TemporaryDirectory() as folder:
        words = tokenizer(texts)
        model(seed, vocabulary=len(words), **changes).save_pretrained(folder)
        words.save_pretrained(folder)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


SHAPES: dict[str, dict[str, Any]] = {
    "T5": {},
    "v1.1": {"gated": True},
    "deep encoder": {"num_layers": 3, "num_decoder_layers": 1},
    "untied head": {"gated": True, "untied": True},
}
#: Questions of passages of token ids.
questions_of_ids = st.lists(
    st.lists(st.lists(st.integers(3, 39), min_size=1, max_size=9), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


def small(seed=0, untied=False, **changes):
    """A model of 40 tokens, so that some short answers end. `untied`: as T5 v1.1 and Flan-T5."""
    network = model(seed, **{"vocabulary": 40} | changes)
    if untied:
        network.lm_head.weight = torch.nn.Parameter(torch.randn_like(network.shared.weight))
    return network


def plain(network):
    """transformers' T5 with the same weights and eager attention."""
    other = copy.deepcopy(network)
    other.__class__ = T5ForConditionalGeneration
    other.set_attn_implementation("eager")
    return other


def flat(questions, width=0):
    """Token ids and mask of all passages of all questions, in order.

    Padding holds arbitrary ids.
    """
    passages = [passage for question in questions for passage in question]
    width = max([width, *map(len, passages)])
    ids = torch.tensor([[*passage, *[7] * (width - len(passage))] for passage in passages])
    mask = torch.tensor(
        [[True] * len(passage) + [False] * (width - len(passage)) for passage in passages]
    )
    return ids, mask


def padded_states(t5, questions, width=0):
    """As the original FiD does: pad passages and questions, encode all at once.

    [questions, passages * width].
    """
    most = max(map(len, questions))
    width = max([width, *(len(passage) for question in questions for passage in question)])
    ids = torch.full((len(questions), most, width), 7)
    mask = torch.zeros(len(questions), most, width, dtype=torch.long)
    for i, question in enumerate(questions):
        for j, passage in enumerate(question):
            ids[i, j, : len(passage)] = torch.tensor(passage)
            mask[i, j, : len(passage)] = 1
    states = t5.encoder(
        input_ids=ids.view(-1, width), attention_mask=mask.view(-1, width)
    ).last_hidden_state
    return states.reshape(len(questions), most * width, -1), mask.view(len(questions), -1), width


def padded_forward(t5, questions, width=0, **inputs):
    """The original FiD's outputs: its decoder reads the padded states with a mask."""
    states, mask, _ = padded_states(t5, questions, width)
    return t5(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask,
        use_cache=False,
        **inputs,
    )
