"""A T5 of a few thousand weights with a tokenizer of its own, made in a moment: what the tests of Fusion-in-Decoder read with."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import T5Config, T5Tokenizer

from ifqa.fid.model import FusionInDecoder

TEXTS = [
    "question: If the bridge had been built in 1890, who would have opened it? title: Old Bridge context: The bridge",
    "was opened in 1895 by the mayor Anna Berg, five years late, and carries two lanes across the river Lune.",
    "title: Harbour context: The harbour of Wick was dug from 1803 to 1811 by the engineer Thomas Telford.",
]


def tokenizer(texts=TEXTS, size=300):
    """A T5 tokenizer whose pieces are learnt from some texts: <pad> 0, </s> 1, <unk> 2."""
    unigram = Tokenizer(models.Unigram())
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    unigram.train_from_iterator(
        texts, trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False)
    )
    pieces = sorted(unigram.get_vocab().items(), key=lambda one: one[1])
    return T5Tokenizer(vocab=[(piece, 0.0 if n < 3 else -10.0) for piece, n in pieces], extra_ids=0)


def config(vocabulary=320, gated=False, **changes):
    return T5Config(
        **{
            "vocab_size": vocabulary, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 3,
            "num_heads": 4, "dropout_rate": 0.0, "decoder_start_token_id": 0,
            "feed_forward_proj": "gated-gelu" if gated else "relu", "tie_word_embeddings": not gated,
        }
        | changes
    )  # fmt: skip


def model(seed=0, **changes):
    """A random network whose outputs differ enough between inputs to tell one from another."""
    torch.manual_seed(seed)
    made = FusionInDecoder(config(**changes)).eval()
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "relative_attention_bias" in name:
                weight.normal_(std=0.5)
            elif weight.dim() > 1 and "shared" not in name:
                weight.mul_(3.0)
    return made


def save(folder, seed=0, texts=TEXTS, **changes):
    """A checkpoint in a folder, as `--checkpoint` takes it."""
    words = tokenizer(texts)
    model(seed, vocabulary=len(words), **changes).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
