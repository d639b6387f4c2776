"""RAG on T5: decoding with answer likelihoods marginalised over passages (Lewis et al. 2020).

A passage's probability p(z|x) is the softmax of the retrieval scores, divided by a temperature,
over the passages of its question. The network gives log p(y_i|x,z,y_1..i-1), from each passage
alone. One passage is drawn for the whole answer (RAG-Sequence, section 2.1). Each passage has a
beam search of its own, and the answer is the hypothesis that is likeliest over all passages
("thorough decoding", section 2.5).
"""

import copy
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from ifqa.errors import IfqaError
from ifqa.models.devices import Features
from ifqa.reading.t5.checkpoint import pad_ids
from ifqa.reading.t5.fusion_in_decoder import (
    NAN_ERROR,
    BatchLimits,
    FusionInDecoder,
    GeneratedAnswer,
    batch_limits,
    decode,
    encode_passages,
    generate_in_batches,
)

# Maximum number of positions whose probabilities over the whole vocabulary are held at once
_TOGETHER = 1024


def log_priors(scores: Tensor, counts: Sequence[int], temperature: float) -> Tensor:
    """The log-probabilities log p(z|x) of all questions' passages, in order, from their scores.

    Both [passages].
    """
    return torch.cat(
        [part.log_softmax(0) for part in torch.split(scores / temperature, list(counts))]
    )


def generate_rag_answers(
    model: FusionInDecoder,
    features: Features,
    counts: Sequence[int],
    *,
    scores: Sequence[float],
    temperature: float,
    max_answer_tokens: int,
    beams: int = 1,
    limits: BatchLimits | None = None,
) -> list[GeneratedAnswer]:
    """Answers to questions, in their order; batching changes no answer.

    Arguments as in `fusion_in_decoder.generate_answers`.

    `scores` are the retriever's scores of all questions' passages, in order. `beams` is the number
    of hypotheses kept for each passage. An answer's `score` is log p(y|x); its `passage_scores` are
    p(z|x,y), whose sum is 1.
    """
    limits = limits or batch_limits(model, beams)
    priors = log_priors(torch.tensor(list(scores), dtype=torch.float32), counts, temperature)
    generate = partial(_generate_batch, model, max_answer_tokens, beams, limits)
    together = max(1, _TOGETHER // (beams * max(counts, default=1)))
    return generate_in_batches(
        model, features | {"priors": priors}, counts, limits, generate, together
    )


def _generate_batch(
    model: FusionInDecoder,
    most: int,
    beams: int,
    limits: BatchLimits,
    features: Features,
    counts: Sequence[int],
) -> list[GeneratedAnswer]:
    priors = features.pop("priors").to(model.device)
    states, mask, _ = encode_passages(model, features, [1] * len(priors), limits.encoded)
    hypotheses = beam_search(model, states, mask, beams, most)
    generated = []
    start = 0
    for count in counts:
        rows = slice(start, start + count)
        start += count
        answers = list(dict.fromkeys(answer for beam in hypotheses[rows] for answer in beam))
        scores = token_scores(model, states[rows], mask[rows], answers, limits)
        # Log sum_z p(z|x) prod_i p(y_i|x,z,y_1..i-1)
        totals = (scores.sum(-1) + priors[rows, None]).logsumexp(0)
        if totals.isnan().any():
            raise IfqaError(NAN_ERROR)
        best = int(totals.argmax())
        shares = (scores[:, best].sum(1) + priors[rows]).softmax(0)
        generated.append(GeneratedAnswer(list(answers[best]), float(totals[best]), shares.tolist()))
    return generated


def beam_search(
    model: FusionInDecoder, states: Tensor, mask: Tensor, beams: int, most: int
) -> list[list[tuple[int, ...]]]:
    """Up to `beams` hypotheses of each passage.

    A hypothesis ends with `</s>`, or is cut off before `most` tokens.

    Lengths are not normalised. `states` and `mask` are the passages', [passages, tokens, ...].
    """
    lengths_as_they_are = {"length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}
    _, tokens, lengths = decode(
        model, states, mask, most, beams, num_return_sequences=beams, **lengths_as_they_are
    )
    answers = [
        tuple(ids[:length]) for ids, length in zip(tokens.tolist(), lengths.tolist(), strict=True)
    ]
    return [answers[first : first + beams] for first in range(0, len(answers), beams)]


def token_scores(
    model: FusionInDecoder,
    states: Tensor,
    mask: Tensor,
    answers: Sequence[Sequence[int]],
    limits: BatchLimits,
) -> Tensor:
    """Log-probabilities log p(y_i|x,z,y_1..i-1) of answers from each passage, [passages, answers,
    tokens], 0 at padding.

    `states` and `mask` are the passages', [passages, tokens, ...]; `limits` bounds how many answers
    are scored at a time.
    """
    longest = max(map(len, answers))
    padded = pad_ids(answers)
    ids = padded["input_ids"].to(states.device)
    unpadded = padded["attention_mask"].to(states.device)
    first, cache = _first_step(model, states, mask)
    scores = []
    at_once = min(limits.decoded // mask.numel(), _TOGETHER // (len(states) * longest))
    for batch in torch.split(ids, max(1, at_once)):
        known = copy.deepcopy(cache)  # the passages' keys and values are computed once
        known.batch_repeat_interleave(len(batch))
        rows = batch.repeat(len(states), 1)  # [passages x answers, tokens]
        logs = first.repeat_interleave(len(batch), 0)[:, None]
        if longest > 1:
            logs = torch.cat(
                [logs, _step(model, rows[:, :-1], mask.repeat_interleave(len(batch), 0), known)], 1
            )
        scores.append(
            logs.gather(2, rows[..., None])[..., 0].view(len(states), len(batch), longest)
        )
    return torch.cat(scores, 1).masked_fill(~unpadded, 0.0)


def _first_step(
    model: FusionInDecoder, states: Tensor, mask: Tensor
) -> tuple[Tensor, EncoderDecoderCache]:
    """Log-probabilities of the first token from each passage, [passages, vocabulary], and the
    decoder's cache.
    """
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    start = torch.full((len(states), 1), model.config.decoder_start_token_id, device=states.device)
    return _step(model, start, mask, cache, states)[:, 0], cache


def _step(
    model: FusionInDecoder,
    ids: Tensor,
    mask: Tensor,
    cache: EncoderDecoderCache,
    states: Tensor | None = None,
) -> Tensor:
    """Float32 log-probabilities after each token, [rows, tokens, vocabulary].

    Only an empty cache needs the hidden `states`.
    """
    if states is None:
        # The keys and values of the encoder states are in the cache; T5 needs only a tensor of the
        # states' shape.
        states = torch.empty(1, 1, 1, dtype=model.dtype, device=ids.device).expand(
            *mask.shape, model.config.d_model
        )
    encoded = BaseModelOutput(last_hidden_state=states)
    outputs = model(
        encoder_outputs=encoded,
        attention_mask=mask,
        decoder_input_ids=ids,
        past_key_values=cache,
        use_cache=True,
    )
    logs: Tensor = outputs.logits.float().log_softmax(-1)
    return logs
