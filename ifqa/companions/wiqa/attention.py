"""The network of decomposable attention (Parikh et al., EMNLP 2016), on MiniLM's frozen token
embeddings.

Attend: each token of a text gets the mean of the other text's tokens, weighted by a softmax over
F(a) * F(b). Compare: G reads a token and that mean. Aggregate: H reads the sums of both texts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ifqa.companions.wiqa.release import split_stem
from ifqa.models.places import minilm_folder
from ifqa.models.span_encoder import load_tokenizer
from ifqa.models.transformer import token_embeddings

# [CLS] serves as the paper's NULL token before each text, to which tokens without a counterpart
# align
_NULL = 101
_MOST = 64  # most tokens of a text; WIQA's longest change has about 40


class DecomposableAttention(nn.Module):
    """Scores classes for pairs of texts.

    `hidden` is the size of the projected embeddings and of all layers.

    `embeddings` are [vocabulary, features], normalised to L2 norm 1 as in the paper (section 5.1).
    """

    embeddings: Tensor

    def __init__(
        self, embeddings: Tensor, classes: int, hidden: int = 200, dropout: float = 0.2
    ) -> None:
        super().__init__()
        self.register_buffer(
            "embeddings", F.normalize(embeddings.float(), dim=-1), persistent=False
        )
        self.project = nn.Linear(embeddings.shape[1], hidden, bias=False)
        self.attend = _layers(hidden, hidden, dropout)
        self.compare = _layers(2 * hidden, hidden, dropout)
        self.aggregate = _layers(2 * hidden, hidden, dropout)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, change: Tensor, effect: Tensor) -> Tensor:
        """Logits, [pairs, classes], from token ids of changes and effects, both [pairs, tokens], -1
        at padding.
        """
        masks = change >= 0, effect >= 0  # each [pairs, tokens]
        # [pairs, tokens, hidden]
        a, b = (self.project(self.embeddings[ids.clamp(min=0)]) for ids in (change, effect))
        # [pairs, tokens of a, tokens of b]
        scores = self.attend(a) @ self.attend(b).transpose(1, 2)
        least = torch.finfo(scores.dtype).min
        mean_b = torch.softmax(scores.masked_fill(~masks[1][:, None, :], least), 2) @ b
        mean_a = (
            torch.softmax(scores.masked_fill(~masks[0][:, :, None], least), 1).transpose(1, 2) @ a
        )
        compared = (
            self.compare(torch.cat([a, mean_b], 2)),
            self.compare(torch.cat([b, mean_a], 2)),
        )
        sums = [
            (tokens * mask[:, :, None]).sum(1) for tokens, mask in zip(compared, masks, strict=True)
        ]
        logits: Tensor = self.classify(self.aggregate(torch.cat(sums, 1)))
        return logits


def build_network(settings: Mapping[str, Any], classes: int) -> DecomposableAttention:
    """An untrained network with a training's settings."""
    return DecomposableAttention(
        token_embeddings(minilm_folder()), classes, settings["hidden"], settings["dropout"]
    )


def encode_stem(stem: str) -> tuple[list[int], list[int]]:
    """MiniLM's token ids of a question's change and effect, each after the NULL token, cut to 64
    tokens.
    """
    tokenizer = load_tokenizer(minilm_folder())
    encodings = (tokenizer.encode(text, add_special_tokens=False) for text in split_stem(stem))
    change, effect = ([_NULL, *encoding.ids][:_MOST] for encoding in encodings)
    return change, effect


def pad_ids(rows: Sequence[Sequence[int]]) -> Tensor:
    """Token ids as a tensor, [texts, tokens], with -1 at padding."""
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=-1)


def _layers(inputs: int, outputs: int, dropout: float) -> nn.Sequential:
    """Two layers with ReLU, as in the paper."""
    return nn.Sequential(
        nn.Dropout(dropout),
        nn.Linear(inputs, outputs),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(outputs, outputs),
        nn.ReLU(),
    )
