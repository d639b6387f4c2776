"""Ways of reading with Fusion-in-Decoder, from the original to ours, on random weights and inputs,
and their FLOPs.

`fid.py` measures them and explains the terms.
"""

import gc
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.nn.functional import pad
from transformers import GenerationConfig, T5Config
from transformers.modeling_outputs import BaseModelOutput

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ifqa.reading.t5.checkpoint import pad_ids
from ifqa.reading.t5.fusion_in_decoder import (
    BatchLimits,
    FusionInDecoder,
    encode_passages,
    fuse_passages,
    generate_answers,
)

LENGTH = 250  # tokens that a passage is padded to
SHAPES = {  # T5 version 1: d_model, d_ff, layers, heads of 64
    "tiny": (32, 64, 2, 2),
    "small": (512, 2048, 6, 8),
    "base": (768, 3072, 12, 12),
    "large": (1024, 4096, 24, 16),
}
VOCABULARY = 32128
# An id outside the vocabulary ends an answer, so no answer ends early and all ways do equal work
NEVER = VOCABULARY
BATCHES = (4, 16, 64)  # numbers of questions at a time; the best counts


@dataclass(frozen=True)
class Inputs:
    """Questions with the same number of passages: token ids and mask on the CPU, [passages,
    longest].
    """

    ids: torch.Tensor
    mask: torch.Tensor
    per_question: int

    @property
    def questions(self) -> int:
        return len(self.ids) // self.per_question

    def part(self, first: int, count: int) -> "Inputs":
        rows = slice(first * self.per_question, (first + count) * self.per_question)
        return Inputs(self.ids[rows], self.mask[rows], self.per_question)


@dataclass(frozen=True)
class Way:
    """A way of reading: `run(model, inputs, at_a_time, tokens, limits)` gives the answers' tokens.

    With `scores`, scores too.
    """

    name: str
    run: Callable[..., Any]
    precision: str = "bfloat16"
    attention: str = "sdpa"
    at_a_time: Sequence[int] = (0,)  # 0 for all
    answers: bool = True


def original(
    model: Any,
    inputs: Inputs,
    at_a_time: int,
    tokens: int,
    _: BatchLimits,
    *,
    length: int = LENGTH,
    drop: bool = False,
    scores: bool = False,
) -> list[Any]:
    """FiD's method.

    `length` 0 pads to the longest passage, `drop` drops the padding before the decoder.
    """
    answers: list[Any] = []
    config: Any = GenerationConfig(
        max_new_tokens=tokens,
        do_sample=False,
        use_cache=True,
        decoder_start_token_id=0,
        pad_token_id=0,
        output_logits=scores,
        return_dict_in_generate=True,
    )
    for first in range(0, inputs.questions, at_a_time):
        part = inputs.part(first, at_a_time)
        size = length or int(part.mask.sum(1).max())
        ids, mask = (
            pad(rows, (0, size - rows.shape[1])).to(model.device) for rows in (part.ids, part.mask)
        )
        hidden = model.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        if drop:
            hidden, mask = fuse_passages(hidden, mask, [part.per_question] * part.questions)
        else:
            hidden = hidden.view(part.questions, -1, hidden.shape[-1])
            mask = mask.view(part.questions, -1)
        encoded = BaseModelOutput(last_hidden_state=hidden)
        output = model.generate(
            encoder_outputs=encoded, attention_mask=mask, generation_config=config
        )
        generated = output.sequences[:, 1:]
        if scores:
            steps = (
                torch.stack(output.logits, 1)
                .log_softmax(-1)
                .gather(2, generated[..., None])[..., 0]
            )
            answers += zip(generated.tolist(), steps.sum(1).tolist(), strict=True)
        else:
            answers += generated.tolist()
    return answers


def ours(
    model: Any,
    data: Inputs,
    at_a_time: int,
    tokens: int,
    room: BatchLimits,
    *,
    cache: bool = True,
    scores: bool = False,
) -> list[Any]:
    """ifqa.reading.t5.fusion_in_decoder.generate_answers.

    Without `cache` it recomputes each step.
    """

    def generate(**inputs: Any) -> Any:
        inputs["generation_config"].use_cache = False
        del inputs["past_key_values"]
        return type(model).generate(model, **inputs)

    readings = []
    with ExitStack() as changes:
        if not cache:
            changes.enter_context(patch.object(model, "generate", generate))
        for first in range(0, data.questions, at_a_time or data.questions):
            part = data.part(first, at_a_time or data.questions)
            features = {"input_ids": part.ids, "attention_mask": part.mask}
            counts = [part.per_question] * part.questions
            readings += generate_answers(
                model, features, counts, max_answer_tokens=tokens + 1, limits=room
            )
    return [(reading.tokens, reading.score) if scores else reading.tokens for reading in readings]


def encoder_alone(
    model: Any, data: Inputs, at_a_time: int, tokens: int, room: BatchLimits
) -> list[Any]:
    features = {"input_ids": data.ids, "attention_mask": data.mask}
    encode_passages(model, features, [data.per_question] * data.questions, room.encoded)
    return []


FP32, BF16 = "the original: float32, padded to 250, eager attention", "the original in bfloat16"
FP32_BEST = f"{FP32}, questions together"
BF16_BEST = f"{BF16}, questions together"
OURS = "+ batches of like length by a budget of tokens: ours"
WAYS = [
    Way(FP32, original, "float32", "eager", (1,)),
    Way(FP32_BEST, original, "float32", "eager", BATCHES),
    Way(BF16, original, attention="eager", at_a_time=(1,)),
    Way(BF16_BEST, original, attention="eager", at_a_time=BATCHES),
    Way("+ SDPA", original, at_a_time=(1,)),
    Way("+ padded to the longest passage only", partial(original, length=0), at_a_time=(1,)),
    Way(
        "+ padding dropped before the decoder",
        partial(original, length=0, drop=True),
        at_a_time=(1,),
    ),
    Way("+ questions together", partial(original, length=0, drop=True), at_a_time=BATCHES),
    Way(OURS, ours),
    Way("ours, the encoder's part alone", encoder_alone, answers=False),
    Way("ours, one question at a time", ours, at_a_time=(1,)),
    Way("ours without a cache of keys and values", partial(ours, cache=False)),
    Way("ours in float32", ours, "float32"),
]


def check() -> None:
    """Assert that all ways give the same answers and log-probabilities, with a tiny model in
    float32.
    """
    model = network("tiny", torch.device("cpu"), 0).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 and "shared" not in name:
                weight.mul_(3.0)  # makes answers depend on the passages
    inputs = draw(5, 4, 0)
    first = None
    limits = BatchLimits(400, 1500)  # more than one batch of each kind
    for way in (way for way in WAYS if way.answers):
        model.set_attn_implementation(way.attention)
        for at_a_time in (0 if way.at_a_time == (0,) else 1, 2):
            with torch.inference_mode():
                answers = way.run(model, inputs, at_a_time, 6, limits, scores=True)
            first = first or answers
            assert [tokens for tokens, _ in answers] == [tokens for tokens, _ in first], (
                f"answers differ: {way.name}"
            )
            apart = max(
                abs(score - other) for (_, score), (_, other) in zip(answers, first, strict=True)
            )
            assert apart < 1e-4, f"scores differ by {apart}: {way.name}"
    assert first is not None
    kinds = len({tuple(tokens) for tokens, _ in first})
    print(
        f"{len(WAYS) - 1} ways of reading agree on {len(first)} "
        f"questions, {kinds} different answers"
    )


def network(shape: str, device: torch.device, seed: int) -> FusionInDecoder:
    """A random T5 of version 1 in float32, created on the device."""
    size, inner, layers, heads = SHAPES[shape]
    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=size,
        d_ff=inner,
        d_kv=64,
        num_layers=layers,
        num_heads=heads,
        decoder_start_token_id=0,
        pad_token_id=0,
    )
    gc.collect()
    torch.manual_seed(seed)
    with device:
        model = FusionInDecoder(config)
    model.config.eos_token_id = NEVER
    model.generation_config.eos_token_id = NEVER
    return model


def draw(questions: int, passages: int, seed: int) -> Inputs:
    """Questions of 25 to 40 tokens, with each passage a title of 4 to 14 and 100 words of about 124
    tokens.
    """
    chance = random.Random(seed)
    lengths = []
    for _ in range(questions):
        length = chance.randint(25, 40)
        for _ in range(passages):
            lengths.append(
                min(220, max(130, length + chance.randint(4, 14) + round(chance.gauss(124, 14))))
            )
    tokens = torch.randint(
        3, VOCABULARY, (sum(lengths),), generator=torch.Generator().manual_seed(seed)
    ).tolist()
    ends = torch.tensor(lengths).cumsum(0).tolist()
    features = pad_ids(
        [tokens[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    )
    return Inputs(features["input_ids"], features["attention_mask"], passages)


def flops(model: Any, data: Inputs, tokens: int) -> int:
    """FLOPs of reading, by the formula in `fid.py`.

    `tokens` of an answer, 0 for the encoder alone.
    """
    config = model.config
    size = config.d_model
    inner = config.num_heads * config.d_kv
    encoder, decoder = (
        sum(
            weight.numel()
            for name, weight in stack.block.named_parameters()
            if name.endswith("weight") and weight.dim() > 1 and "relative" not in name
        )
        for stack in (model.encoder, model.decoder)
    )
    total = 0
    for length in data.mask.sum(1).tolist():
        total += length * (2 * encoder + config.num_layers * 4 * length * inner)
        if tokens:
            total += length * config.num_decoder_layers * (4 * size * inner + 4 * inner * tokens)
    once = (
        2 * (decoder - config.num_decoder_layers * 2 * size * inner) + 2 * size * config.vocab_size
    )
    self_attention = config.num_decoder_layers * 2 * inner * tokens * (tokens + 1)
    return total + data.questions * (tokens * once + self_attention)
