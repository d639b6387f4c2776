"""Sentence encoders of two layers with random weights, and a tokenizer of twenty words."""

import shutil

import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    Transformer,
)
from sentence_transformers.sparse_encoder.modules import (
    Router,
    SparseStaticEmbedding,
    SpladePooling,
)
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    DPRConfig,
    DPRContextEncoder,
    DPRQuestionEncoder,
    LlamaConfig,
    LlamaModel,
    PreTrainedTokenizerFast,
)

WORDS = (
    "red blue green cat dog bird sun moon tree rock fish ship gold iron "
    "salt wolf query passage other :"
).split()
SIZE = {
    "vocab_size": 4 + len(WORDS),
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 48,
}
PROMPTS = {"query": "query: ", "document": "passage: "}


def tokenizer(padding_side="right", special=True):
    words = Tokenizer(
        models.WordLevel(
            {w: n for n, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}, "[UNK]"
        )
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    if special:
        words.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        **names,
        padding_side=padding_side,
        model_max_length=48,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"][:: 1 if special else 2],
    )


def tiny(
    folder,
    *,
    pooling="mean",
    normalise=True,
    decoder=False,
    include_prompt=True,
    seed=0,
    prompts=PROMPTS,
):
    """A sentence-transformers model of two layers with random weights.

    A decoder pads on the left.
    """
    torch.manual_seed(seed)
    network = LlamaModel(LlamaConfig(**SIZE)) if decoder else BertModel(BertConfig(**SIZE))
    network.save_pretrained(folder / "network")
    tokenizer("left" if decoder else "right", special=not decoder).save_pretrained(
        folder / "network"
    )
    modules = [
        Transformer(str(folder / "network")),
        Pooling(32, pooling, include_prompt=include_prompt),
    ]
    modules += [Normalize()] if normalise else []
    SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save(str(folder))
    shutil.rmtree(folder / "network")
    return str(folder)


def tiny_dpr(folder):
    """DPR's two encoders; returns the context encoder's folder."""
    for seed, (kind, name) in enumerate(
        ((DPRContextEncoder, "ctx_encoder"), (DPRQuestionEncoder, "question_encoder"))
    ):
        torch.manual_seed(seed)
        kind(DPRConfig(**SIZE | {"max_position_embeddings": 300})).save_pretrained(folder / name)
        tokenizer().save_pretrained(folder / name)
    return str(folder / "ctx_encoder")


def tiny_mlm(folder, seed=0):
    """BERT with its head for words, as SPLADE's first models were published."""
    torch.manual_seed(seed)
    BertForMaskedLM(BertConfig(**SIZE, initializer_range=1.0)).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def tiny_splade(folder, *, looked_up=False, similarity="dot"):
    """A SparseEncoder.

    With `looked_up` a question's weights come from a table, and no network encodes it.
    """
    words = tiny_mlm(folder / "network")
    modules = [Transformer(words, transformer_task="fill-mask"), SpladePooling()]
    if looked_up:
        weights = torch.linspace(0.5, 3, SIZE["vocab_size"])
        modules = [
            Router.for_query_document(
                [SparseStaticEmbedding(modules[0].tokenizer, weights, frozen=True)], modules
            )
        ]
    SparseEncoder(modules=modules, device="cpu", similarity_fn_name=similarity).save(str(folder))
    shutil.rmtree(folder / "network")
    return str(folder)


def tiny_late_interaction(folder, seed=0):
    """A MultiVectorEncoder with a projection to eight numbers a token."""
    torch.manual_seed(seed)
    BertModel(BertConfig(**SIZE, initializer_range=1.0)).save_pretrained(folder / "network")
    tokenizer().save_pretrained(folder / "network")
    modules = [
        Transformer(str(folder / "network")),
        Dense(
            32,
            8,
            bias=False,
            activation_function=torch.nn.Identity(),
            module_input_name="token_embeddings",
        ),
        MultiVectorMask(),
        Normalize(module_input_name="token_embeddings"),
    ]
    MultiVectorEncoder(modules=modules, device="cpu").save(str(folder))
    shutil.rmtree(folder / "network")
    return str(folder)
