"""Fusion-in-Decoder on transformers' T5 (T5, T5 v1.1, Flan-T5), and its inference.

Weights and files are those of a plain T5.

The encoder reads each passage alone; the decoder attends to all passages of a question at once,
without their padding (FiD src/model.py:30-55, 139-147). Passages are encoded in batches of similar
length, then many questions are decoded at once.
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
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.t5.modeling_t5 import T5Attention

from ifqa.errors import IfqaError
from ifqa.models.devices import BATCH_TOKENS, Features, is_out_of_memory, split_batches, to_device

logger = logging.getLogger(__name__)

NAN_ERROR = "the reader's probabilities are not numbers (NaN): its checkpoint's weights are damaged"
_WIDTH = 8  # lengths are padded to a multiple of this, which makes attention kernels faster
_DECODED = 8  # tokens attended to in a decoding batch, per token in an encoding batch
# Maximum number of questions decoded at once, because the logits of all their tokens are kept
_TOGETHER = 64
_SHARE = 0.4  # share of a GPU's free memory for the keys and values of cross-attention


class FusionInDecoder(T5ForConditionalGeneration):
    """A T5 that reads several passages per question.

    With `cross_position_bias` in the config, the decoder adds relative positions to its attention
    to the passages. T5 has none (huggingface/transformers#8518), but transformers before 4.0 added
    them, and FiD's published readers were trained with them.
    """

    # The loss is a mean, so transformers' trainer divides it by the accumulated steps
    accepts_loss_kwargs = False

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        if getattr(config, "cross_position_bias", False):
            attention = self.decoder.block[0].layer[1].EncDecAttention  # all layers use its bias
            attention.__class__ = _CrossAttentionBias
            attention.has_relative_attention_bias = True
            buckets = config.relative_attention_num_buckets
            attention.relative_attention_bias = torch.nn.Embedding(buckets, config.num_heads)
            self.post_init()

    def forward(
        self, passage_ids: Tensor | None = None, encoder_outputs: Any = None, **inputs: Any
    ) -> Any:
        """T5's outputs for questions with passages, with a loss if there are `labels`.

        Without passages, T5's own.

        The loss is the mean over questions of the mean over an answer's tokens, FiD's loss with one
        question per GPU. It does not depend on the batch size. `passage_ids` are those of all
        questions' passages, in order, [passages, tokens]. `inputs` are T5's own, and with passages
        also `passage_mask`, False at padding, of the same shape; `counts`, the passages per
        question, [questions]; `labels`, the answers' token ids, padded with -100, [questions,
        tokens]; and `weights` of the questions in the loss, [questions]. `generate` passes
        `encoder_outputs`.
        """
        if passage_ids is None:
            return super().forward(encoder_outputs=encoder_outputs, **inputs)
        passage_mask = inputs.pop("passage_mask")
        counts = inputs.pop("counts")
        labels = inputs.pop("labels", None)
        weights = inputs.pop("weights", None)
        states, mask = fuse_passages(
            self.encode(passage_ids, passage_mask), passage_mask, counts.tolist()
        )
        if labels is not None:
            inputs["decoder_input_ids"] = self._shift_right(labels)
        encoded = BaseModelOutput(last_hidden_state=states)
        outputs = super().forward(encoder_outputs=encoded, attention_mask=mask, **inputs)
        if labels is not None:
            losses = F.cross_entropy(
                outputs.logits.float().transpose(1, 2), labels, reduction="none"
            )
            means = losses.sum(1) / (labels != -100).sum(1)
            outputs.loss = (means if weights is None else means * weights).mean()
        return outputs

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Hidden states [passages, tokens, d_model] from ids and mask (False at padding), both
        [passages, tokens].
        """
        hidden: Tensor = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return hidden

    def passage_scores(self, first: Sequence[Tensor], means: Tensor) -> Tensor:
        """The decoder's attention to each passage at the first token, before the softmax (FiD
        src/model.py:95-118).

        [questions, passages], averaged over layers, heads and the passage's tokens: a query's mean
        product with all tokens is its product with their mean. `first` is the input of each layer's
        cross-attention at the first position, [layers] of [questions, d_model]; `means` is the
        float32 mean of each passage's hidden states, [questions, passages, d_model].
        """
        total = means.new_zeros(means.shape[:2])
        heads = self.config.num_heads
        for block, hidden in zip(self.decoder.block, first, strict=True):
            attention = block.layer[1].EncDecAttention
            query = F.linear(hidden.float(), attention.q.weight.float())
            total += torch.einsum("bd,bpd->bp", query @ attention.k.weight.float(), means) / heads
        attention = self.decoder.block[0].layer[1].EncDecAttention
        # From the first position, all passages are in the first bucket
        if attention.has_relative_attention_bias:
            total += attention.relative_attention_bias.weight[0].float().mean() * len(first)
        return total / len(first)


class _CrossAttentionBias(T5Attention):
    """Cross-attention with relative positions (transformers 3.0.2 src/transformers/modeling_t5.py,
    compute_bias).

    Positions count from the first passage's first token, without padding; from the query's position
    on, the bias is constant.
    """

    def compute_bias(
        self,
        query_length: int,
        key_length: int,
        device: torch.device | None = None,
        past_seen_tokens: int = 0,
    ) -> Tensor:
        # The cache of self-attention already holds these queries
        past = max(past_seen_tokens - query_length, 0)
        bias: Tensor = super().compute_bias(query_length, key_length, device, past)
        return bias


def fuse_passages(hidden: Tensor, mask: Tensor, counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Concatenate the hidden states of each question's passages, without the padding between them.

    `hidden` is [passages, tokens, d_model]; `counts` are the passages per question. Returns states
    [questions, most tokens, d_model], zero after a question's last token, and their mask.
    """
    ends = torch.tensor(counts, device=mask.device).cumsum(0) - 1
    tokens = mask.sum(1).cumsum(0)[ends].diff(prepend=ends.new_zeros(1))
    fused = torch.arange(int(tokens.max()), device=mask.device)[None] < tokens[:, None]
    states = hidden.new_zeros(*fused.shape, hidden.shape[-1])
    return states.masked_scatter(fused[..., None], hidden[mask]), fused


@dataclass(frozen=True)
class GeneratedAnswer:
    """The decoder's output for a question: token ids, their log-probability, and a score for each
    passage.
    """

    tokens: list[int]
    score: float
    passage_scores: list[float]


@dataclass
class BatchLimits:
    """Batch sizes in passage tokens, padding included: tokens encoded at a time, and tokens
    attended to in decoding.
    """

    encoded: int
    decoded: int


def batch_limits(model: FusionInDecoder, beams: int, encoded: int = 0) -> BatchLimits:
    """Batch sizes that fit the model's device; `encoded` may be 0, for the device's default."""
    encoded = encoded or BATCH_TOKENS[model.device.type]
    decoded = _DECODED * encoded
    # Decoding keeps a key and a value for each passage token in every layer
    if model.device.type == "cuda":
        config = model.config
        free = torch.cuda.mem_get_info(model.device)[0]
        token = (
            2
            * config.num_decoder_layers
            * config.num_heads
            * config.d_kv
            * model.dtype.itemsize
            * beams
        )
        decoded = min(decoded, int(_SHARE * free / token))
    return BatchLimits(encoded, decoded)


def generate_answers(
    model: FusionInDecoder,
    features: Features,
    counts: Sequence[int],
    *,
    max_answer_tokens: int,
    beams: int = 1,
    limits: BatchLimits | None = None,
) -> list[GeneratedAnswer]:
    """Answers to questions, in their order; batching changes no answer.

    `features`, from `encode_texts`, are those of all questions' passages, in order; `counts` are
    the passages per question, at least one. `max_answer_tokens` includes the token that starts
    decoding. `beams` is 1 for greedy decoding, as in FiD. If memory runs out, `limits` are halved
    and a message is logged.
    """
    limits = limits or batch_limits(model, beams)
    generate = partial(_generate_batch, model, max_answer_tokens, beams, limits)
    return generate_in_batches(model, features, counts, limits, generate)


def generate_in_batches(
    model: FusionInDecoder,
    features: Features,
    counts: Sequence[int],
    limits: BatchLimits,
    generate: Callable[[Features, Sequence[int]], list[GeneratedAnswer]],
    together: int = _TOGETHER,
) -> list[GeneratedAnswer]:
    """Group questions of similar length that fit into memory, and call `generate` with each group's
    features and counts.

    A group has at most `together` questions. The other arguments are as in `generate_answers`.
    """
    lengths = features["attention_mask"].sum(1).tolist()
    starts = [end - count for end, count in zip(accumulate(counts), counts, strict=True)]
    sizes = [
        sum(lengths[start : start + count]) for start, count in zip(starts, counts, strict=True)
    ]
    todo = sorted(range(len(counts)), key=lambda n: -sizes[n])
    answers: dict[int, GeneratedAnswer] = {}
    while todo:
        most = min(together, max(1, limits.decoded // max(1, sizes[todo[0]])))
        # As few groups as possible, of similar size
        group = todo[: -(-len(todo) // -(-len(todo) // most))]
        rows = [row for n in group for row in range(starts[n], starts[n] + counts[n])]
        try:
            with torch.inference_mode():
                batch = generate(
                    {key: tensor[rows] for key, tensor in features.items()},
                    [counts[n] for n in group],
                )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            full = len(group) == 1 and limits.encoded < max(lengths[row] for row in rows)
        else:
            answers |= dict(zip(group, batch, strict=True))
            todo = todo[len(group) :]
            continue
        if full:  # raised outside the handler, whose traceback would keep the memory in use
            problem = (
                f"a question with {counts[group[0]]} passages does not fit into "
                f"the memory of {model.device}"
            )
            raise IfqaError(
                f"{problem}; read fewer passages, or use a smaller checkpoint or another device"
            )
        tokens = len(group) * sizes[group[0]]
        limits.encoded, limits.decoded = (
            max(1, min(size, tokens) // 2) for size in (limits.encoded, limits.decoded)
        )
        if model.device.type == "cuda":
            torch.cuda.empty_cache()
        logger.info(
            f"out of memory with {len(group)} questions: continuing with batches of "
            f"{limits.encoded:,} tokens"
        )
    return [answers[n] for n in range(len(counts))]


def _generate_batch(
    model: FusionInDecoder,
    max_answer_tokens: int,
    beams: int,
    limits: BatchLimits,
    features: Features,
    counts: Sequence[int],
) -> list[GeneratedAnswer]:
    states, mask, means = encode_passages(model, features, counts, limits.encoded)
    with _first_position(model) as first:
        generated, tokens, lengths = decode(
            model, states, mask, max_answer_tokens, beams, output_scores=True
        )
    # [questions, tokens]: greedy scores are logits and need normalising; beam scores are
    # log-probabilities
    steps = model.compute_transition_scores(
        generated.sequences,
        generated.scores,
        generated.get("beam_indices"),
        normalize_logits=beams == 1,
    ).float()
    steps = steps.masked_fill(
        torch.arange(tokens.shape[1], device=tokens.device) >= lengths[:, None], 0.0
    )
    scores = model.passage_scores([hidden[::beams] for hidden in first], means)
    if steps.isnan().any() or scores.isnan().any():
        raise IfqaError(NAN_ERROR)
    rows = zip(
        tokens.tolist(),
        lengths.tolist(),
        steps.sum(1).tolist(),
        scores.tolist(),
        counts,
        strict=True,
    )
    return [
        GeneratedAnswer(ids[:length], score, shares[:count])
        for ids, length, score, shares, count in rows
    ]


def decode(
    model: FusionInDecoder, states: Tensor, mask: Tensor, most: int, beams: int, **settings: Any
) -> tuple[Any, Tensor, Tensor]:
    """Decode from hidden states, without sampling.

    `settings` are more of transformers' `GenerationConfig`.

    Returns what `generate` does; the tokens after the first, [rows, tokens]; and the number of each
    row's tokens up to `</s>`, [rows]. The padding after the end depends on the other rows.
    """
    config = model.config
    generation = GenerationConfig(
        max_length=most,
        num_beams=beams,
        do_sample=False,
        use_cache=True,
        return_dict_in_generate=True,
        bos_token_id=config.decoder_start_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
        pad_token_id=config.pad_token_id,
        **settings,
    )
    generated = model.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask,
        generation_config=generation,
        # generate's own cache would have as many layers as the encoder, not the decoder
        past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache()),
    )
    tokens = generated.sequences[:, 1:]
    ended = torch.isin(tokens, torch.tensor(config.eos_token_id, device=tokens.device)).cumsum(1)
    return generated, tokens, (ended == 0).sum(1) + 1


def encode_passages(
    model: FusionInDecoder, features: Features, counts: Sequence[int], tokens: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Encode passages in batches of at most `tokens` tokens, then concatenate each question's
    passages without the padding.

    Returns hidden states, [questions, most tokens, d_model], their mask, and the float32 mean of
    each passage's hidden states, [questions, most passages, d_model].
    """
    device = model.device
    mask = features["attention_mask"]
    hidden = torch.zeros(*mask.shape, model.config.d_model, dtype=model.dtype, device=device)
    for rows, batch in split_batches(features, len(mask), tokens, multiple=_WIDTH):
        batch = to_device(batch, str(device))
        hidden[rows, : batch["input_ids"].shape[1]] = model.encode(
            batch["input_ids"], batch["attention_mask"]
        )
    mask = mask.to(device)
    means = (hidden.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return *fuse_passages(hidden, mask, counts), pad_sequence(
        list(torch.split(means, list(counts))), batch_first=True
    )


@contextmanager
def _first_position(model: FusionInDecoder) -> Iterator[list[Tensor]]:
    """Collect the input of each layer's cross-attention at the first decoded position, [questions x
    beams, d_model].
    """
    first: list[Tensor] = []
    layers = [block.layer[1].EncDecAttention for block in model.decoder.block]

    def keep(_: object, inputs: tuple[Tensor, ...]) -> None:
        if len(first) < len(layers):
            first.append(inputs[0][:, 0])

    handles = [layer.register_forward_pre_hook(keep) for layer in layers]
    try:
        yield first
    finally:
        for handle in handles:
            handle.remove()
