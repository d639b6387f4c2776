"""Questions of multiple choice about weather, and encoders of one layer with random weights to
learn them.
"""

import random
from itertools import product

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import (
    BertConfig,
    BertForMultipleChoice,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMultipleChoice,
)

from ifqa.records import Passage, Question

CHOICES = ("more", "less", "no effect")
ANSWERS = {"more rain": "more", "less rain": "less", "a dog": "no effect"}


def worded(change, effect):
    """A question in WIQA's words."""
    return f"suppose {change} happens, how will it affect {effect}."


SIZE = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "initializer_range": 0.1,
}


def questions(count=12, seed=0):
    """Questions that the change alone answers: more rain, less rain, or a dog, which has no
    effect.
    """
    pairs = product(ANSWERS, ["mud", "more mud", "worms", "more worms"], range(2))
    shuffled = [
        Question(
            f"w/{n}",
            worded(f"{change} in place {place}", effect),
            (ANSWERS[change],),
            choices=CHOICES,
            context=f"Rain falls in place {place}. It makes mud.",
            group=f"place {place}",
        )
        for n, (change, effect, place) in enumerate(pairs)
    ]
    random.Random(seed).shuffle(shuffled)
    return shuffled[:count]


def contexts(question_list):
    return [
        [Passage(f"context/{question.group}", "", question.context)] for question in question_list
    ]


def encoder(folder, kind="bert", seed=0):
    """A whole model of multiple choice whose tokenizer has the words of `questions`."""
    texts = [
        text for question in questions() for text in (question.text, question.context, *CHOICES)
    ]
    known = sorted(set(" ".join(texts).lower().replace(".", " . ").split()))
    words = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *known])
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(seed)
    shape = SIZE | {"vocab_size": len(words), "pad_token_id": 0}
    if kind == "bert":
        shape |= {
            "max_position_embeddings": 64,
            "hidden_dropout_prob": 0.02,
            "attention_probs_dropout_prob": 0.0,
        }
        network = BertForMultipleChoice(BertConfig(**shape))
    else:
        network = RobertaForMultipleChoice(
            RobertaConfig(**shape, max_position_embeddings=40, type_vocab_size=1)
        )
    network.save_pretrained(folder)
    return str(folder)
