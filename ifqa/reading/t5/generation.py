"""Inference of T5 with Fusion-in-Decoder: encodes passages in batches of similar length, then decodes many questions at once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.models.devices import BUDGET, Features, batches, out_of_memory, to_device
from ifqa.progress import say

if TYPE_CHECKING:
    from torch import Tensor

    from ifqa.reading.t5.model import FusionInDecoder

NO_NUMBERS = "the reader's probabilities are no numbers (NaN): its checkpoint's weights are damaged"
_WIDTH = 8  # lengths are padded to a multiple of this: attention kernels are faster with it
_DECODED = 8  # tokens attended to in a decoding batch, per token in an encoding batch
_TOGETHER = 64  # most questions decoded at a time: the logits of all their tokens are kept
_SHARE = 0.4  # share of a GPU's free memory for the keys and values of cross-attention


@dataclass(frozen=True)
class Reading:
    """The decoder's output for one question: token ids, their log-probability, and a score for each passage."""

    tokens: list[int]
    score: float
    passage_scores: list[float]


@dataclass
class Budget:
    """Batch sizes in passage tokens, padding included: tokens encoded at a time, and tokens decoded over at a time."""

    encoded: int
    decoded: int


def budget(model: "FusionInDecoder", beams: int, encoded: int = 0) -> Budget:
    """Batch sizes that fit the model's device; `encoded` is 0 for the device's default.

    Decoding keeps a key and a value for each passage token in every layer of the decoder.
    """
    import torch

    encoded = encoded or BUDGET[model.device.type]
    decoded = _DECODED * encoded
    if model.device.type == "cuda":
        config, free = model.config, torch.cuda.mem_get_info(model.device)[0]
        token = 2 * config.num_decoder_layers * config.num_heads * config.d_kv * model.dtype.itemsize * beams
        decoded = min(decoded, int(_SHARE * free / token))
    return Budget(encoded, decoded)


def read(
    model: "FusionInDecoder", features: Features, counts: Sequence[int], *, max_answer_tokens: int, beams: int = 1,
    room: Budget | None = None,
) -> list[Reading]:  # fmt: skip
    """Answers to questions, in their order; batching changes no answer.

    Args:
        model: on its device.
        features: of all passages of all questions, in order, as `ifqa.reading.t5.checkpoint.tokenise` gives them.
        counts: passages of each question, at least one.
        max_answer_tokens: most tokens of an answer, including the token that starts decoding.
        beams: 1 for greedy decoding, as FiD's.
        room: batch sizes; halved, with a message, if memory runs out.
    """
    room = room or budget(model, beams)
    return in_groups(model, features, counts, room, partial(_read, model, max_answer_tokens, beams, room))


def in_groups(
    model: "FusionInDecoder", features: Features, counts: Sequence[int], room: Budget,
    make: Callable[[Features, Sequence[int]], list[Reading]], together: int = _TOGETHER,
) -> list[Reading]:  # fmt: skip
    """What `make` gives for each question, asked for groups of questions of similar length that fit into the memory.

    `make` gets rows of the features, and their counts; `together` is the most questions of a group. The others are as in `read`.
    """
    import torch

    lengths = features["attention_mask"].sum(1).tolist()
    starts = [end - count for end, count in zip(accumulate(counts), counts, strict=True)]
    sizes = [sum(lengths[start : start + count]) for start, count in zip(starts, counts, strict=True)]
    todo = sorted(range(len(counts)), key=lambda n: -sizes[n])
    readings: dict[int, Reading] = {}
    while todo:
        most = min(together, max(1, room.decoded // max(1, sizes[todo[0]])))
        group = todo[: -(-len(todo) // -(-len(todo) // most))]  # as few groups as possible, of similar size
        rows = [row for n in group for row in range(starts[n], starts[n] + counts[n])]
        try:
            with torch.inference_mode():
                batch = make({key: value[rows] for key, value in features.items()}, [counts[n] for n in group])
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
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
        say(f"out of memory reading {len(group)} at a time: going on with batches of {room.encoded:,} tokens")
    return [readings[n] for n in range(len(counts))]


def _read(
    model: "FusionInDecoder", max_answer_tokens: int, beams: int, room: Budget, features: Features, counts: Sequence[int]
) -> list[Reading]:  # fmt: skip
    import torch
    from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig
    from transformers.modeling_outputs import BaseModelOutput

    states, mask, means = encode(model, features, counts, room.encoded)
    config = model.config
    greedy = GenerationConfig(
        max_length=max_answer_tokens, num_beams=beams, do_sample=False, use_cache=True, output_scores=True,
        return_dict_in_generate=True, bos_token_id=config.decoder_start_token_id, eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id, pad_token_id=config.pad_token_id,
    )  # fmt: skip
    with _first_position(model) as first:
        outputs = BaseModelOutput(last_hidden_state=states)
        generated = model.generate(
            encoder_outputs=outputs,
            attention_mask=mask,
            generation_config=greedy,
            # generate's own cache has as many layers as the encoder, which may differ from the decoder's
            past_key_values=EncoderDecoderCache(DynamicCache(), DynamicCache()),
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
        raise IfqaError(NO_NUMBERS)
    rows = zip(tokens.tolist(), lengths.tolist(), steps.sum(1).tolist(), scores.tolist(), counts, strict=True)
    return [Reading(ids[:length], score, shares[:count]) for ids, length, score, shares, count in rows]


def encode(
    model: "FusionInDecoder", features: Features, counts: Sequence[int], tokens: int
) -> tuple["Tensor", "Tensor", "Tensor"]:
    """Encode passages in batches of at most so many tokens, then concatenate each question's passages without the padding.

    Returns:
        Hidden states [questions, most tokens, d_model]; their mask; and the float32 mean of each passage's hidden
        states, [questions, most passages, d_model].
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from ifqa.reading.t5.model import fuse

    device, mask = model.device, features["attention_mask"]
    hidden = torch.zeros(*mask.shape, model.config.d_model, dtype=model.dtype, device=device)
    for rows, batch in batches(features, len(mask), tokens, multiple=_WIDTH):
        batch = to_device(batch, str(device))
        hidden[rows, : batch["input_ids"].shape[1]] = model.encode(batch["input_ids"], batch["attention_mask"])
    mask = mask.to(device)
    means = (hidden.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return *fuse(hidden, mask, counts), pad_sequence(list(torch.split(means, list(counts))), batch_first=True)


@contextmanager
def _first_position(model: "FusionInDecoder") -> "Iterator[list[Tensor]]":
    """Collect the input of each layer's cross-attention at the first decoded position, [questions x beams, d_model]."""
    first: list[Tensor] = []
    layers = [block.layer[1].EncDecAttention for block in model.decoder.block]

    def keep(_: object, taken: tuple["Tensor", ...]) -> None:
        if len(first) < len(layers):
            first.append(taken[0][:, 0])

    handles = [layer.register_forward_pre_hook(keep) for layer in layers]
    try:
        yield first
    finally:
        for handle in handles:
            handle.remove()
