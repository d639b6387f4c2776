"""RAG on T5: answer likelihoods marginalised over passages, training that maximises them, and decoding (Lewis et al. 2020).

A passage's probability p(z|x) is the softmax of the retrieval scores, divided by a temperature, over the passages of its
question. The network gives log p(y_i|x,z,y_1..i-1), from each passage alone (section 2.1). Mode "token" decodes with one beam
search over the mixture; mode "sequence" with one per passage, and takes the answer that is likeliest over all passages.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from ifqa.errors import IfqaError
from ifqa.models.devices import Features
from ifqa.reading.t5.checkpoint import Mode, pad_ids
from ifqa.reading.t5.model import (
    NAN_ERROR,
    BatchLimits,
    FusionInDecoder,
    GeneratedAnswer,
    batch_limits,
    encode_passages,
    generate_in_batches,
)

_TOGETHER = 1024  # maximum number of positions whose probabilities over the whole vocabulary are held at once
# Token ids, ending in `</s>` unless the hypothesis was cut off, and their log-probability.
_Hypothesis = tuple[tuple[int, ...], float]


def log_priors(scores: Tensor, counts: Sequence[int], temperature: Tensor | float = 1.0) -> Tensor:
    """The log-probabilities log p(z|x) of all questions' passages, in order, from their scores; both [passages]."""
    return torch.cat([part.log_softmax(0) for part in torch.split(scores.float() / temperature, list(counts))])


def marginalize(log_probabilities: Tensor, priors: Tensor, counts: Sequence[int]) -> Tensor:
    """The log, [questions, ...], of probabilities averaged over each question's passages with the priors as weights.

    `log_probabilities` is [passages, ...]; `priors` is log p(z|x), [passages]; `counts` is the number of passages of each
    question.
    """
    weighted = log_probabilities + priors.view(-1, *[1] * (log_probabilities.dim() - 1))
    # One operation suffices; this matters in a beam search, where every passage may be a group of its own.
    if len(set(counts)) == 1:
        return weighted.view(-1, counts[0], *weighted.shape[1:]).logsumexp(1)
    return torch.stack([part.logsumexp(0) for part in torch.split(weighted, list(counts))])


def log_likelihoods(tokens: Tensor, priors: Tensor, counts: Sequence[int], mode: Mode) -> Tensor:
    """The log-likelihood log p(y|x) of an answer to each question, [questions] or [questions, answers].

    "sequence": one passage is drawn for the whole answer, sum_z p(z|x) prod_i p(y_i|x,z,y_1..i-1). "token": a passage is drawn
    for each token, prod_i sum_z p(z|x) p(y_i|x,z,y_1..i-1). `tokens` are log p(y_i|x,z,y_1..i-1) of the answer's tokens, 0 at
    padding, [passages, tokens] or [passages, answers, tokens].
    """
    if mode == "sequence":
        return marginalize(tokens.sum(-1), priors, counts)
    return marginalize(tokens, priors, counts).sum(-1)


def posteriors(tokens: Tensor, priors: Tensor, mode: Mode) -> Tensor:
    """Each passage's share in its question's answer, [passages]; the sum is 1.

    "sequence": p(z|x,y). "token": the share of the answer's tokens drawn from the passage, the mean over tokens of
    p(z|x,y_1..i). `tokens` are log p(y_i|x,z,y_1..i-1) of the answer's tokens, without padding, [passages, tokens].
    """
    if mode == "sequence":
        return (tokens.sum(1) + priors).softmax(0)
    return (tokens + priors[:, None]).softmax(0).mean(1)


class MarginalT5(FusionInDecoder):
    """A T5 in training for RAG: its loss is the answers' negative log-likelihood, and it learns the log of the temperature."""

    mode: Mode
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
        return Seq2SeqLMOutput(loss=-log_likelihoods(tokens, priors, counts.tolist(), self.mode).mean())

    def _tokens(self, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """Log-probabilities log p(y_i|x,z,y_1..i-1), 0 at padding, [passages, tokens]."""
        encoded = BaseModelOutput(last_hidden_state=self.encode(ids, mask))
        inputs = self._shift_right(labels)
        outputs = super().forward(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=inputs)
        return -F.cross_entropy(outputs.logits.float().transpose(1, 2), labels, reduction="none")


def convert_to_marginal(model: FusionInDecoder, mode: Mode, temperature: float) -> MarginalT5:
    """Turn the network into one that trains for RAG, starting at this temperature."""
    model.__class__ = MarginalT5
    assert isinstance(model, MarginalT5)
    model.mode = mode
    model.log_temperature = torch.nn.Parameter(torch.tensor(float(temperature)).log())
    return model


def restore_t5(model: FusionInDecoder) -> float:
    """Turn the network back into a plain T5, which any T5 reader can load; returns the learned temperature."""
    temperature = float(model.log_temperature.detach().exp())
    del model.log_temperature
    model.__class__ = FusionInDecoder
    return temperature


@dataclass(frozen=True)
class Mixture:
    """How passages are marginalised.

    In mode "sequence", "thorough" decoding computes each hypothesis's probability from every passage; "fast" sets it to 0 for
    passages whose beam lacks the hypothesis (Lewis et al. 2020, section 2.5).
    """

    mode: Mode = "sequence"
    decoding: Literal["thorough", "fast"] = "thorough"
    temperature: float = 1.0  # divides the retrieval scores


def generate_rag_answers(
    model: FusionInDecoder, features: Features, counts: Sequence[int], *, scores: Sequence[float], mixture: Mixture,
    max_answer_tokens: int, beams: int = 1, limits: BatchLimits | None = None,
) -> list[GeneratedAnswer]:  # fmt: skip
    """Answers to questions, in their order; batching changes no answer. Arguments as in `ifqa.reading.t5.model.generate_answers`.

    `scores` are the retriever's scores of all questions' passages, in order. `beams` is the number of hypotheses kept for each
    passage, or in mode "token" for each question. An answer's `score` is log p(y|x), from which "fast" omits terms; its
    `passage_scores` are `posteriors`.
    """
    limits = limits or batch_limits(model, beams)
    priors = log_priors(torch.tensor(list(scores), dtype=torch.float32), counts, mixture.temperature)
    generate = partial(_generate_batch, model, mixture, max_answer_tokens, beams, limits)
    together = max(1, _TOGETHER // (beams * max(counts, default=1)))
    return generate_in_batches(model, features | {"priors": priors}, counts, limits, generate, together)


def _generate_batch(
    model: FusionInDecoder, mixture: Mixture, most: int, beams: int, limits: BatchLimits, features: Features,
    counts: Sequence[int],
) -> list[GeneratedAnswer]:  # fmt: skip
    priors = features.pop("priors").to(model.device)
    alone, by_token = [1] * len(priors), mixture.mode == "token"
    states, mask, _ = encode_passages(model, features, alone, limits.encoded)
    groups, weights = (counts, priors) if by_token else (alone, torch.zeros_like(priors))
    hypotheses = beam_search(model, states, mask, groups, weights, beams, most)
    generated, start = [], 0
    for number, count in enumerate(counts):
        rows = slice(start, start + count)
        start += count
        passage_beams = [hypotheses[number][:1]] if by_token else hypotheses[rows]
        answers = list(dict.fromkeys(tokens for beam in passage_beams for tokens, _ in beam))
        if mixture.decoding == "fast" and not by_token:
            scores = priors.new_full((count, len(answers), 1), -torch.inf)
            for passage, beam in enumerate(passage_beams):
                for tokens, score in beam:
                    scores[passage, answers.index(tokens)] = score
        else:
            scores = token_scores(model, states[rows], mask[rows], answers, limits)
        totals = log_likelihoods(scores, priors[rows], [count], mixture.mode)[0]
        best = int(totals.argmax())
        score = passage_beams[0][0][1] if by_token else float(totals[best])
        shares = posteriors(scores[:, best], priors[rows], mixture.mode)
        generated.append(GeneratedAnswer(list(answers[best]), score, shares.tolist()))
    return generated


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


def beam_search(
    model: FusionInDecoder, states: Tensor, mask: Tensor, counts: Sequence[int], priors: Tensor, beams: int, most: int
) -> list[list[_Hypothesis]]:
    """Up to `beams` answers of each group of passages, best first, from the mixture of its passages.

    The next token's probability is the mean over the group's passages, weighted by the priors; with one passage per group, this
    is T5's own beam search. A hypothesis ends with `</s>`, or is cut off at `most` tokens. As in transformers, `</s>` counts only
    among the `beams` best continuations. Lengths are not normalised: the search ends when no live hypothesis can still displace
    one of the best ended ones. `states` and `mask` are the passages'; `counts` and `priors` as in `marginalize`.
    """
    groups, device = len(counts), states.device
    owners = torch.repeat_interleave(torch.arange(groups), torch.tensor(counts)).to(device)
    ends = torch.tensor(model.config.eos_token_id, device=device)
    step, cache = _first_step(model, states, mask)
    cache.batch_repeat_interleave(beams)  # rows are passages x beams
    mask = mask.repeat_interleave(beams, 0)
    live = torch.full((groups, beams), -torch.inf, device=device)
    live[:, 0] = 0.0  # all beams start from one hypothesis
    tokens = torch.zeros(groups, beams, 0, dtype=torch.long, device=device)
    step = step[:, None].expand(-1, beams, -1)  # [passages, beams, vocabulary]
    ended: list[list[_Hypothesis]] = [[] for _ in counts]

    def keep(ids: Tensor, scores: Tensor, chosen: Tensor) -> None:
        """Add the chosen hypotheses, a mask [groups, hypotheses], to the best of each group; ties keep their order."""
        rows = zip(ended, ids.tolist(), scores.tolist(), (chosen & (scores > -torch.inf)).tolist(), strict=True)
        for best, answers, logs, mask_row in rows:
            best += [(tuple(answer), log) for answer, log, kept in zip(answers, logs, mask_row, strict=True) if kept]
            best.sort(key=lambda hypothesis: -hypothesis[1])
            del best[beams:]

    for length in range(1, most):
        following = live[..., None] + marginalize(step, priors, counts)
        best = following.flatten(1).topk(min(2 * beams, following[0].numel()))
        if best.values.isnan().any():
            raise IfqaError(NAN_ERROR)
        sources, ids = best.indices // following.shape[2], best.indices % following.shape[2]
        stops = torch.isin(ids, ends)
        tokens = torch.cat([tokens.gather(1, sources[..., None].expand(-1, -1, length - 1)), ids[..., None]], 2)
        keep(tokens[:, :beams], best.values[:, :beams], stops[:, :beams])
        live, places = best.values.masked_fill(stops, -torch.inf).topk(beams)
        sources, tokens = sources.gather(1, places), tokens.gather(1, places[..., None].expand(-1, -1, length))
        least = [best_ended[-1][1] if len(best_ended) == beams else -torch.inf for best_ended in ended]
        if length == most - 1 or all(top <= low for top, low in zip(live[:, 0].tolist(), least, strict=True)):
            keep(tokens, live, torch.ones_like(live, dtype=torch.bool))  # cut off
            break
        rows = sources[owners] + beams * torch.arange(len(owners), device=device)[:, None]
        cache.self_attention_cache.reorder_cache(rows.flatten())
        step = _step(model, tokens[owners, :, -1].reshape(-1, 1), mask, cache).view(len(owners), beams, -1)
    return ended


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
