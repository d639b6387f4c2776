"""Fusion-in-Decoder on transformers' T5 (T5, T5 v1.1, Flan-T5), whose weights and files are those of a plain T5; and inference.

The encoder reads each passage apart; the decoder attends to all of a question's passages at once, their padding dropped
(FiD src/model.py:30-55, 139-147). Passages are encoded in batches of similar length, then many questions are decoded at once.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig, T5Config, T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.t5.modeling_t5 import T5Attention

from ifqa.errors import IfqaError
from ifqa.models.devices import BATCH_TOKENS, Features, is_out_of_memory, split_batches, to_device

logger = logging.getLogger(__name__)

NAN_ERROR = "the reader's probabilities are no numbers (NaN): its checkpoint's weights are damaged"
_WIDTH = 8  # lengths are padded to a multiple of this: attention kernels are faster with it
_DECODED = 8  # tokens attended to in a decoding batch, per token in an encoding batch
_TOGETHER = 64  # most questions decoded at a time: the logits of all their tokens are kept
_SHARE = 0.4  # share of a GPU's free memory for the keys and values of cross-attention


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
            attention.__class__ = _CrossAttentionBias
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
        states, mask = fuse_passages(self.encode(passage_ids, passage_mask), passage_mask, counts.tolist())
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


class _CrossAttentionBias(T5Attention):
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


def fuse_passages(hidden: Tensor, mask: Tensor, counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Concatenate the hidden states of each question's passages, without the padding between them.

    `hidden` is [passages, tokens, d_model], `mask` False at padding, `counts` the passages of each question. Gives [questions,
    most tokens, d_model], zero after a question's last token, and its mask.
    """
    ends = torch.tensor(counts, device=mask.device).cumsum(0) - 1
    tokens = mask.sum(1).cumsum(0)[ends].diff(prepend=ends.new_zeros(1))
    fused = torch.arange(int(tokens.max()), device=mask.device)[None] < tokens[:, None]
    states = hidden.new_zeros(*fused.shape, hidden.shape[-1])
    return states.masked_scatter(fused[..., None], hidden[mask]), fused


@dataclass(frozen=True)
class GeneratedAnswer:
    """The decoder's output for one question: token ids, their log-probability, and a score for each passage."""

    tokens: list[int]
    score: float
    passage_scores: list[float]


@dataclass
class BatchLimits:
    """Batch sizes in passage tokens, padding included: tokens encoded at a time, and tokens decoded over at a time."""

    encoded: int
    decoded: int


def batch_limits(model: FusionInDecoder, beams: int, encoded: int = 0) -> BatchLimits:
    """Batch sizes that fit the model's device; `encoded` is 0 for the device's default.

    Decoding keeps a key and a value for each passage token in every layer of the decoder.
    """
    encoded = encoded or BATCH_TOKENS[model.device.type]
    decoded = _DECODED * encoded
    if model.device.type == "cuda":
        config, free = model.config, torch.cuda.mem_get_info(model.device)[0]
        token = 2 * config.num_decoder_layers * config.num_heads * config.d_kv * model.dtype.itemsize * beams
        decoded = min(decoded, int(_SHARE * free / token))
    return BatchLimits(encoded, decoded)


def generate_answers(
    model: FusionInDecoder, features: Features, counts: Sequence[int], *, max_answer_tokens: int, beams: int = 1,
    room: BatchLimits | None = None,
) -> list[GeneratedAnswer]:  # fmt: skip
    """Answers to questions, in their order; batching changes no answer.

    `features` are of all passages of all questions, in order, as `encode_texts` gives them; `counts` the passages of each
    question, at least one. An answer has at most `max_answer_tokens`, including the token that starts decoding.
    `beams` is 1 for greedy decoding, as FiD's. `room` has the batch sizes, halved, with a message, if memory runs out.
    """
    room = room or batch_limits(model, beams)
    return generate_in_batches(
        model, features, counts, room, partial(_generate_batch, model, max_answer_tokens, beams, room)
    )


def generate_in_batches(
    model: FusionInDecoder, features: Features, counts: Sequence[int], room: BatchLimits,
    make: Callable[[Features, Sequence[int]], list[GeneratedAnswer]], together: int = _TOGETHER,
) -> list[GeneratedAnswer]:  # fmt: skip
    """What `make` gives for each question, asked for groups of questions of similar length that fit into the memory.

    `make` gets rows of the features, and their counts; `together` is the most questions of a group. The others are as in `read`.
    """
    lengths = features["attention_mask"].sum(1).tolist()
    starts = [end - count for end, count in zip(accumulate(counts), counts, strict=True)]
    sizes = [sum(lengths[start : start + count]) for start, count in zip(starts, counts, strict=True)]
    todo = sorted(range(len(counts)), key=lambda n: -sizes[n])
    readings: dict[int, GeneratedAnswer] = {}
    while todo:
        most = min(together, max(1, room.decoded // max(1, sizes[todo[0]])))
        group = todo[: -(-len(todo) // -(-len(todo) // most))]  # as few groups as possible, of similar size
        rows = [row for n in group for row in range(starts[n], starts[n] + counts[n])]
        try:
            with torch.inference_mode():
                batch = make({key: value[rows] for key, value in features.items()}, [counts[n] for n in group])
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            full = len(group) == 1 and room.encoded < max(lengths[row] for row in rows)
        else:
            readings |= dict(zip(group, batch, strict=True))
            todo = todo[len(group) :]
            continue
        if full:  # raised outside the handler, whose traceback would keep the memory in use
            raise IfqaError(
                f"one question with {counts[group[0]]} passages does not fit into the memory of {model.device}; "
                "read fewer passages, with a smaller checkpoint, or on another device"
            )
        tokens = len(group) * sizes[group[0]]
        room.encoded, room.decoded = (max(1, min(size, tokens) // 2) for size in (room.encoded, room.decoded))
        if model.device.type == "cuda":
            torch.cuda.empty_cache()
        logger.info(f"out of memory reading {len(group)} at a time: going on with batches of {room.encoded:,} tokens")
    return [readings[n] for n in range(len(counts))]


def _generate_batch(
    model: FusionInDecoder, max_answer_tokens: int, beams: int, room: BatchLimits, features: Features, counts: Sequence[int]
) -> list[GeneratedAnswer]:  # fmt: skip
    states, mask, means = encode_passages(model, features, counts, room.encoded)
    config = model.config
    greedy = GenerationConfig(
        max_length=max_answer_tokens, num_beams=beams, do_sample=False, use_cache=True, output_scores=True,
        return_dict_in_generate=True, bos_token_id=config.decoder_start_token_id, eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id, pad_token_id=config.pad_token_id,
    )  # fmt: skip
    with _first_position(model) as first:
        # generate's own cache has as many layers as the encoder, which may differ from the decoder's
        cache, encoded = EncoderDecoderCache(DynamicCache(), DynamicCache()), BaseModelOutput(last_hidden_state=states)
        generated = model.generate(
            encoder_outputs=encoded, attention_mask=mask, generation_config=greedy, past_key_values=cache
        )
    # [questions, tokens]: greedy scores are logits and need normalising; those of beams are log-probabilities
    steps = model.compute_transition_scores(
        generated.sequences, generated.scores, generated.get("beam_indices"), normalize_logits=beams == 1
    ).float()
    tokens = generated.sequences[:, 1:]
    ended = torch.isin(tokens, torch.tensor(config.eos_token_id, device=tokens.device)).cumsum(1)
    lengths = (ended == 0).sum(1) + 1  # the padding after the end depends on the other questions of the batch
    steps = steps.masked_fill(torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None], 0.0)
    scores = model.passage_scores([hidden[::beams] for hidden in first], means)
    if steps.isnan().any() or scores.isnan().any():
        raise IfqaError(NAN_ERROR)
    rows = zip(tokens.tolist(), lengths.tolist(), steps.sum(1).tolist(), scores.tolist(), counts, strict=True)
    return [GeneratedAnswer(ids[:length], score, shares[:count]) for ids, length, score, shares, count in rows]


def encode_passages(
    model: FusionInDecoder, features: Features, counts: Sequence[int], tokens: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Encode passages in batches of at most so many tokens, then concatenate each question's passages without the padding.

    Returns:
        Hidden states [questions, most tokens, d_model]; their mask; and the float32 mean of each passage's hidden
        states, [questions, most passages, d_model].
    """
    device, mask = model.device, features["attention_mask"]
    hidden = torch.zeros(*mask.shape, model.config.d_model, dtype=model.dtype, device=device)
    for rows, batch in split_batches(features, len(mask), tokens, multiple=_WIDTH):
        batch = to_device(batch, str(device))
        hidden[rows, : batch["input_ids"].shape[1]] = model.encode(batch["input_ids"], batch["attention_mask"])
    mask = mask.to(device)
    means = (hidden.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return *fuse_passages(hidden, mask, counts), pad_sequence(list(torch.split(means, list(counts))), batch_first=True)


@contextmanager
def _first_position(model: FusionInDecoder) -> Iterator[list[Tensor]]:
    """Collect the input of each layer's cross-attention at the first decoded position, [questions x beams, d_model]."""
    first: list[Tensor] = []
    layers = [block.layer[1].EncDecAttention for block in model.decoder.block]

    def keep(_: object, taken: tuple[Tensor, ...]) -> None:
        if len(first) < len(layers):
            first.append(taken[0][:, 0])

    handles = [layer.register_forward_pre_hook(keep) for layer in layers]
    try:
        yield first
    finally:
        for handle in handles:
            handle.remove()
