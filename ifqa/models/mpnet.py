"""The network of all-mpnet-base-v2 (Song et al., NeurIPS 2020; sentence-transformers): MPNet's encoder."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ifqa.models.transformer import Encoder

_BIAS = "encoder.relative_attention_bias.weight"
_FARTHEST = 128  # tokens; farther ones share the last bucket


class MPNet(Encoder):
    """BERT's encoder with a bias on attention by relative position, which the layers share, and without types of tokens.

    Two `</s>` stand between the texts of a pair, as in RoBERTa.
    """

    LINEAR = ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o",
              "intermediate.dense", "output.dense")  # fmt: skip
    NORM = "attention.LayerNorm"
    OTHERS = (_BIAS,)
    FIRST = 2  # the rows before it are those of padding
    MARKS = (("<s>",), ("</s>", "</s>"), ("</s>",))

    def _added(self, padding: Tensor) -> Tensor:
        table, places = self.weight(_BIAS), torch.arange(padding.shape[-1], device=padding.device)
        bias = F.embedding(buckets(places - places[:, None], len(table)), table)  # [tokens, tokens, heads]
        return padding + bias.permute(2, 0, 1)


def buckets(distances: Tensor, count: int) -> Tensor:
    """The buckets of distances in tokens, from a query to a key, as in T5: half of them for keys behind the query.

    Of each half, the first half has a bucket for each distance; the others grow with the logarithm of the distance.
    """
    half = count // 2
    exact = half // 2
    far = distances.abs()
    grown = torch.log(far.clamp(min=1).float() / exact) / math.log(_FARTHEST / exact) * (half - exact)
    near = torch.where(far < exact, far, (exact + grown.long()).clamp(max=half - 1))
    return near + (distances > 0).long() * half
