"""Fusion-in-Decoder on transformers' T5 (T5, T5 v1.1, Flan-T5): its weights and files are those of a plain T5.

The encoder reads each passage apart; the decoder attends to all of a question's passages at once, their padding dropped
(FiD src/model.py:30-55, 139-147).
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.t5.modeling_t5 import T5Attention


class FusionInDecoder(T5ForConditionalGeneration):
    """A T5 that reads several passages per question.

    A config with `cross_position_bias` has the decoder add relative positions to its attention to the passages, as T5 in
    transformers did before 4.0. T5 itself has none (huggingface/transformers#8518), but FiD's published readers were
    trained with them.
    """

    accepts_loss_kwargs = False  # the loss is a mean, so transformers' trainer divides it by the accumulated steps

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        if getattr(config, "cross_position_bias", False):
            attention = self.decoder.block[0].layer[1].EncDecAttention  # all layers use the bias it computes
            attention.__class__ = _CrossPositions
            attention.has_relative_attention_bias = True
            buckets = config.relative_attention_num_buckets
            attention.relative_attention_bias = torch.nn.Embedding(buckets, config.num_heads)
            self.post_init()

    def forward(self, passage_ids: Tensor | None = None, encoder_outputs: Any = None, **inputs: Any) -> Any:
        """T5's outputs for questions with passages, with a loss if `labels` are given; otherwise T5's own.

        The loss is the mean over questions of the mean over an answer's tokens. FiD trains with this loss, with one question
        per GPU. It does not depend on how many questions go through the network at once.

        Args:
            passage_ids: token ids of all passages of all questions, in order, [passages, tokens].
            encoder_outputs, inputs: T5's own; `generate` looks for the former's name. With passages also `passage_mask`, False
                at padding, same shape; `counts`, the passages of each question, [questions]; `labels`, token ids of the
                answers, padded with -100, [questions, tokens]; `weights`, of the questions in the loss's mean, [questions].
        """
        if passage_ids is None:
            return super().forward(encoder_outputs=encoder_outputs, **inputs)
        passage_mask, counts = inputs.pop("passage_mask"), inputs.pop("counts")
        labels, weights = inputs.pop("labels", None), inputs.pop("weights", None)
        states, mask = fuse(self.encode(passage_ids, passage_mask), passage_mask, counts.tolist())
        if labels is not None:
            inputs["decoder_input_ids"] = self._shift_right(labels)
        encoded = BaseModelOutput(last_hidden_state=states)
        outputs = super().forward(encoder_outputs=encoded, attention_mask=mask, **inputs)
        if labels is not None:
            losses = F.cross_entropy(outputs.logits.float().transpose(1, 2), labels, reduction="none")
            means = losses.sum(1) / (labels != -100).sum(1)
            outputs.loss = (means if weights is None else means * weights).mean()
        return outputs

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The hidden states of passages, [passages, tokens, d_model]; ids and mask, False at padding, are [passages, tokens]."""
        hidden: Tensor = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return hidden

    def passage_scores(self, first: Sequence[Tensor], means: Tensor) -> Tensor:
        """The decoder's attention to each passage when it makes the first token, before the softmax (FiD src/model.py:95-118).

        Averaged over layers, heads and the passage's tokens, [questions, passages]. The mean of a query's products with all
        tokens is its product with the tokens' mean. `first` is the input of each layer's cross-attention at the first position,
        [layers] of [questions, d_model]; `means` the float32 mean of the hidden states of each passage's tokens, [questions,
        passages, d_model].
        """
        total = means.new_zeros(means.shape[:2])
        heads = self.config.num_heads
        for block, hidden in zip(self.decoder.block, first, strict=True):
            attention = block.layer[1].EncDecAttention
            query = F.linear(hidden.float(), attention.q.weight.float())
            total += torch.einsum("bd,bpd->bp", query @ attention.k.weight.float(), means) / heads
        attention = self.decoder.block[0].layer[1].EncDecAttention
        if attention.has_relative_attention_bias:  # at the first position all passages are in the first bucket
            total += attention.relative_attention_bias.weight[0].float().mean() * len(first)
        return total / len(first)


class _CrossPositions(T5Attention):
    """Cross-attention that adds relative positions (transformers 3.0.2 src/transformers/modeling_t5.py, compute_bias).

    Positions count from the start of the first passage without its padding; only its first tokens get more than a constant.
    """

    def compute_bias(
        self, query_length: int, key_length: int, device: torch.device | None = None, past_seen_tokens: int = 0
    ) -> Tensor:
        # The cache of the decoder's own attention, whose length this is, holds these queries already
        past = max(past_seen_tokens - query_length, 0)
        bias: Tensor = super().compute_bias(query_length, key_length, device, past)
        return bias


def fuse(hidden: Tensor, mask: Tensor, counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Concatenate the hidden states of each question's passages, without the padding between them.

    `hidden` is [passages, tokens, d_model], `mask` False at padding, `counts` the passages of each question. Gives [questions,
    most tokens, d_model], zero after a question's last token, and its mask.
    """
    ends = torch.tensor(counts, device=mask.device).cumsum(0) - 1
    tokens = mask.sum(1).cumsum(0)[ends].diff(prepend=ends.new_zeros(1))
    fused = torch.arange(int(tokens.max()), device=mask.device)[None] < tokens[:, None]
    states = hidden.new_zeros(*fused.shape, hidden.shape[-1])
    return states.masked_scatter(fused[..., None], hidden[mask]), fused
