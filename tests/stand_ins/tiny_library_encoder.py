"""ModernBERT and DeBERTa-v3 of two layers with random weights, with tokenizers of their kinds."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import DebertaV2Config, DebertaV2Model, ModernBertConfig, ModernBertModel

MARKS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
SIZE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
SHARED = SIZE | {"num_attention_heads": 4, "max_position_embeddings": 260, "pad_token_id": 0}
KINDS = ("modernbert", "deberta-v2")


def tiny_library_encoder(folder, kind, *texts, seed=0):
    """Write a model of transformers and `tokenizer.json`; returns the folder.

    A token has the space before it, as in the published tokenizers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _bytes_tokenizer(texts) if kind == "modernbert" else _pieces_tokenizer(texts)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(seed)
    words = {"vocab_size": tokenizer.get_vocab_size()}
    if kind == "modernbert":
        marks = {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
        config = ModernBertConfig(**SHARED, **words, **marks, initializer_range=0.2)
        ModernBertModel(config).save_pretrained(folder)
    else:
        relative = {
            "relative_attention": True,
            "position_buckets": 8,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        }
        config = DebertaV2Config(**SHARED, **words, **relative, initializer_range=0.2)
        DebertaV2Model(config).save_pretrained(folder)
    return folder


def _bytes_tokenizer(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=MARKS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _pieces_tokenizer(texts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=MARKS, unk_token="[UNK]", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
