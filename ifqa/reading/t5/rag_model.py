"""RAG on T5: answer likelihoods marginalised over passages, training that maximises them, and decoding (Lewis et al. 2020).

A passage's probability p(z|x) is the softmax of the retrieval scores, divided by a temperature, over the passages of its
question. The network gives log p(y_i|x,z,y_1..i-1), from each passage alone. One passage is drawn for the whole answer
(RAG-Sequence, section 2.1). Each passage has a beam search of its own, and the answer is the hypothesis that is likeliest over
all passages ("thorough decoding", section 2.5).
"""

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

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

_TOGETHER = 1024  # maximum number of positions whose probabilities over the whole vocabulary are held at once


def log_priors(scores: Tensor, counts: Sequence[int], temperature: Tensor | float = 1.0) -> Tensor:
    """The log-probabilities log p(z|x) of all questions' passages, in order, from their scores; both [passages]."""
    return torch.cat([part.log_softmax(0) for part in torch.split(scores.float() / temperature, list(counts))])


def marginalize(log_probabilities: Tensor, priors: Tensor, counts: Sequence[int]) -> Tensor:
    """The log, [questions, ...], of probabilities averaged over each question's passages with the priors as weights.

    `log_probabilities` is [passages, ...]; `priors` is log p(z|x), [passages]; `counts` is the number of passages of each
    question.
    """
    weighted = log_probabilities + priors.view(-1, *[1] * (log_probabilities.dim() - 1))
    return torch.stack([part.logsumexp(0) for part in torch.split(weighted, list(counts))])


def log_likelihoods(tokens: Tensor, priors: Tensor, counts: Sequence[int]) -> Tensor:
    """The log-likelihood of an answer to each question, log sum_z p(z|x) prod_i p(y_i|x,z,y_1..i-1), [questions, ...].

    `tokens` are log p(y_i|x,z,y_1..i-1) of the answer's tokens, 0 at padding, [passages, tokens] or [passages, answers, tokens].
    """
    return marginalize(tokens.sum(-1), priors, counts)


class MarginalT5(FusionInDecoder):
    """A T5 in training for RAG: its loss is the answers' negative log-likelihood, and it learns the log of the temperature."""

    log_temperature: torch.nn.Parameter

    def forward(self, passage_ids: Tensor | None = None, encoder_outputs: Any = None, **inputs: Any) -> Any:
        """An output with a loss, the mean over questions of -log p(y|x); without passages, T5's own outputs.

        Arguments are those of `FusionInDecoder.forward`, and `scores`: the retriever's score of each passage, [passages].
        """
        if passage_ids is None:
            return super().forward(encoder_outputs=encoder_outputs, **inputs)
        counts, labels = inputs["counts"], inputs["labels"]
        tokens = self._tokens(passage_ids, inputs["passage_mask"], labels.repeat_interleave(counts, 0))
        priors = log_priors(inputs["scores"], counts.tolist(), self.log_temperature.exp())
        return Seq2SeqLMOutput(loss=-log_likelihoods(tokens, priors, counts.tolist()).mean())

    def _tokens(self, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """Log-probabilities log p(y_i|x,z,y_1..i-1), 0 at padding, [passages, tokens]."""
        encoded = BaseModelOutput(last_hidden_state=self.encode(ids, mask))
        inputs = self._shift_right(labels)
        outputs = super().forward(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=inputs)
        return -F.cross_entropy(outputs.logits.float().transpose(1, 2), labels, reduction="none")


def convert_to_marginal(model: FusionInDecoder, temperature: float) -> MarginalT5:
    """Turn the network into one that trains for RAG, starting at this temperature."""
    model.__class__ = MarginalT5
    assert isinstance(model, MarginalT5)
    model.log_temperature = torch.nn.Parameter(torch.tensor(float(temperature)).log())
    return model


def restore_t5(model: FusionInDecoder) -> float:
    """Turn the network back into a plain T5, which any T5 reader can load; returns the learned temperature."""
    temperature = float(model.log_temperature.detach().exp())
    del model.log_temperature
    model.__class__ = FusionInDecoder
    return temperature


def generate_rag_answers(
    model: FusionInDecoder, features: Features, counts: Sequence[int], *, scores: Sequence[float], temperature: float,
    max_answer_tokens: int, beams: int = 1, limits: BatchLimits | None = None,
) -> list[GeneratedAnswer]:  # fmt: skip
    """Answers to questions, in their order; batching changes no answer. Arguments as in `fusion_in_decoder.generate_answers`.

    `scores` are the retriever's scores of all questions' passages, in order. `beams` is the number of hypotheses kept for each
    passage. An answer's `score` is log p(y|x); its `passage_scores` are p(z|x,y), whose sum is 1.
    """
    limits = limits or batch_limits(model, beams)
    priors = log_priors(torch.tensor(list(scores), dtype=torch.float32), counts, temperature)
    generate = partial(_generate_batch, model, max_answer_tokens, beams, limits)
    together = max(1, _TOGETHER // (beams * max(counts, default=1)))
    return generate_in_batches(model, features | {"priors": priors}, counts, limits, generate, together)


def _generate_batch(
    model: FusionInDecoder, most: int, beams: int, limits: BatchLimits, features: Features, counts: Sequence[int]
) -> list[GeneratedAnswer]:
    priors = features.pop("priors").to(model.device)
    states, mask, _ = encode_passages(model, features, [1] * len(priors), limits.encoded)
    hypotheses = beam_search(model, states, mask, beams, most)
    generated, start = [], 0
    for count in counts:
        rows = slice(start, start + count)
        start += count
        answers = list(dict.fromkeys(answer for beam in hypotheses[rows] for answer in beam))
        scores = token_scores(model, states[rows], mask[rows], answers, limits)
        totals = log_likelihoods(scores, priors[rows], [count])[0]
        if totals.isnan().any():
            raise IfqaError(NAN_ERROR)
        best = int(totals.argmax())
        shares = (scores[:, best].sum(1) + priors[rows]).softmax(0)
        generated.append(GeneratedAnswer(list(answers[best]), float(totals[best]), shares.tolist()))
    return generated


def beam_search(
    model: FusionInDecoder, states: Tensor, mask: Tensor, beams: int, most: int
) -> list[list[tuple[int, ...]]]:
    """Up to `beams` hypotheses of each passage; a hypothesis ends with `</s>`, or is cut off before `most` tokens.

    Lengths are not normalised. `states` and `mask` are the passages', [passages, tokens, ...].
    """
    lengths_as_they_are = {"length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}
    _, tokens, lengths = decode(model, states, mask, most, beams, num_return_sequences=beams, **lengths_as_they_are)
    answers = [tuple(ids[:length]) for ids, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]
    return [answers[first : first + beams] for first in range(0, len(answers), beams)]


def token_scores(
    model: FusionInDecoder, states: Tensor, mask: Tensor, answers: Sequence[Sequence[int]], limits: BatchLimits
) -> Tensor:
    """Log-probabilities log p(y_i|x,z,y_1..i-1) of answers from each passage, [passages, answers, tokens], 0 at padding.

    `states` and `mask` are the passages', [passages, tokens, ...]; `limits` bounds how many answers are scored at a time.
    """
    longest = max(map(len, answers))
    padded = pad_ids(answers)
    ids, unpadded = padded["input_ids"].to(states.device), padded["attention_mask"].to(states.device)
    first, cache = _first_step(model, states, mask)
    scores = []
    at_once = min(limits.decoded // mask.numel(), _TOGETHER // (len(states) * longest))
    for batch in torch.split(ids, max(1, at_once)):
        known = copy.deepcopy(cache)  # the passages' keys and values are computed once
        known.batch_repeat_interleave(len(batch))
        rows = batch.repeat(len(states), 1)  # [passages x answers, tokens]
        logs = first.repeat_interleave(len(batch), 0)[:, None]
        if longest > 1:
            logs = torch.cat([logs, _step(model, rows[:, :-1], mask.repeat_interleave(len(batch), 0), known)], 1)
        scores.append(logs.gather(2, rows[..., None])[..., 0].view(len(states), len(batch), longest))
    return torch.cat(scores, 1).masked_fill(~unpadded, 0.0)


def _first_step(model: FusionInDecoder, states: Tensor, mask: Tensor) -> tuple[Tensor, EncoderDecoderCache]:
    """Log-probabilities of the first token from each passage, [passages, vocabulary], and the decoder's cache."""
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    start = torch.full((len(states), 1), model.config.decoder_start_token_id, device=states.device)
    return _step(model, start, mask, cache, states)[:, 0], cache


def _step(
    model: FusionInDecoder, ids: Tensor, mask: Tensor, cache: EncoderDecoderCache, states: Tensor | None = None
) -> Tensor:
    """Float32 log-probabilities after each token, [rows, tokens, vocabulary]; only an empty cache needs the hidden `states`."""
    if states is None:
        # The keys and values of the encoder states are in the cache; T5 needs only a tensor of the states' shape.
        states = torch.empty(1, 1, 1, dtype=model.dtype, device=ids.device).expand(*mask.shape, model.config.d_model)
    encoded = BaseModelOutput(last_hidden_state=states)
    outputs = model(
        encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=ids, past_key_values=cache, use_cache=True
    )
    logs: Tensor = outputs.logits.float().log_softmax(-1)
    return logs
