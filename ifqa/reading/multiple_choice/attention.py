"""The network of decomposable attention (Parikh et al., EMNLP 2016), on MiniLM's token embeddings, which stay as they are.

Attend: each token of one text gets the mean of the other text's tokens, weighed by a softmax over F(a) * F(b). Compare: G reads
a token and that mean. Aggregate: H reads the sums of both texts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ifqa.models.hub import minilm_folder
from ifqa.models.transformer import load_tokenizer, token_embeddings
from ifqa.reading.multiple_choice.wiqa_question import split_stem

_NULL = 101  # [CLS] stands for the paper's NULL token before each text, to which a token aligns that has no counterpart
_MOST = 64  # tokens of a text that are read; the longest of WIQA's changes has about 40


class DecomposableAttention(nn.Module):
    """Scores classes for pairs of texts.

    `embeddings` are of the vocabulary's tokens, [tokens, features], at L2 norm 1 as in the paper (section 5.1). `hidden` is the
    size of the projected embeddings and of all layers, `dropout` the share of features that training drops before each layer.
    """

    embeddings: Tensor

    def __init__(self, embeddings: Tensor, classes: int, hidden: int = 200, dropout: float = 0.2) -> None:
        super().__init__()
        self.register_buffer("embeddings", F.normalize(embeddings.float(), dim=-1), persistent=False)
        self.project = nn.Linear(embeddings.shape[1], hidden, bias=False)
        self.attend = _layers(hidden, hidden, dropout)
        self.compare = _layers(2 * hidden, hidden, dropout)
        self.aggregate = _layers(2 * hidden, hidden, dropout)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, change: Tensor, effect: Tensor) -> Tensor:
        """Logits, [pairs, classes], of token ids of premises and hypotheses, both [pairs, tokens], -1 at padding."""
        there = change >= 0, effect >= 0  # each [pairs, tokens]
        a, b = (self.project(self.embeddings[ids.clamp(min=0)]) for ids in (change, effect))  # [pairs, tokens, hidden]
        scores = self.attend(a) @ self.attend(b).transpose(1, 2)  # [pairs, tokens of a, tokens of b]
        least = torch.finfo(scores.dtype).min
        of_b = torch.softmax(scores.masked_fill(~there[1][:, None, :], least), 2) @ b
        of_a = torch.softmax(scores.masked_fill(~there[0][:, :, None], least), 1).transpose(1, 2) @ a
        compared = (self.compare(torch.cat([a, of_b], 2)), self.compare(torch.cat([b, of_a], 2)))
        sums = [(tokens * mask[:, :, None]).sum(1) for tokens, mask in zip(compared, there, strict=True)]
        logits: Tensor = self.classify(self.aggregate(torch.cat(sums, 1)))
        return logits


def build_network(settings: Mapping[str, Any], classes: int) -> DecomposableAttention:
    """The network of a training's settings, before its weights are loaded."""
    return DecomposableAttention(token_embeddings(minilm_folder()), classes, settings["hidden"], settings["dropout"])


def encode_stem(stem: str) -> tuple[list[int], list[int]]:
    """MiniLM's token ids of a question's change and effect, each after the NULL token, cut to 64."""
    words = load_tokenizer(minilm_folder())
    change, effect = ([_NULL, *words.encode(text, add_special_tokens=False).ids][:_MOST] for text in split_stem(stem))
    return change, effect


def pad_ids(rows: Sequence[Sequence[int]]) -> Tensor:
    """Token ids of texts as one tensor, [texts, tokens], with -1 at padding."""
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=-1)


def _layers(inputs: int, outputs: int, dropout: float) -> nn.Sequential:
    """Two layers with ReLU, as in the paper."""
    return nn.Sequential(
        nn.Dropout(dropout), nn.Linear(inputs, outputs), nn.ReLU(),
        nn.Dropout(dropout), nn.Linear(outputs, outputs), nn.ReLU(),
    )  # fmt: skip
