"""Decoding of RAG: a beam search over mixtures of passages, then the best answer by its likelihood over all passages."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from ifqa.errors import IfqaError
from ifqa.models.batches import Features
from ifqa.reading.t5.answer import Budget, Reading, budget, encode, in_groups
from ifqa.reading.t5.marginal import log_likelihoods, log_priors, mixed, posteriors
from ifqa.reading.t5.passages import Mode

if TYPE_CHECKING:
    from ifqa.reading.t5.model import FusionInDecoder

Decoding = Literal["thorough", "fast"]
_TOGETHER = 1024  # most positions whose probabilities of the whole vocabulary are kept at a time


@dataclass(frozen=True)
class Hypothesis:
    """An answer that the beam search ended: its token ids, with `</s>` unless it is cut off, and their log-probability."""

    tokens: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class Mixture:
    """How passages are marginalised.

    Attributes:
        mode: "sequence" or "token" (see `ifqa.reading.t5.marginal.log_likelihoods`).
        decoding: of "sequence": "thorough" computes each hypothesis's probability from every passage; "fast" takes it as 0 from
            the passages whose beam lacks it (Lewis et al. 2020, section 2.5).
        temperature: what retrieval scores are divided by.
    """

    mode: Mode = "sequence"
    decoding: Decoding = "thorough"
    temperature: float = 1.0


def read(
    model: "FusionInDecoder", features: Features, counts: Sequence[int], *, scores: Sequence[float], mixture: Mixture,
    max_answer_tokens: int, beams: int = 1, room: Budget | None = None,
) -> list[Reading]:  # fmt: skip
    """Answers to questions, in their order; batching changes no answer.

    A reading's `score` is log p(y|x), over the passages' mixture; "fast" leaves terms out of it. Its `passage_scores` are the
    passages' `posteriors`.

    Args:
        model, features, counts, max_answer_tokens, room: as `ifqa.reading.t5.answer.read` takes them.
        scores: of the retriever, of all passages of all questions, in order.
        mixture: how passages are marginalised.
        beams: hypotheses of each passage's beam, or in mode "token" of each question's.

    Raises:
        IfqaError: a single question does not fit into the memory.
    """
    room = room or budget(model, beams)
    priors = log_priors(torch.tensor(list(scores), dtype=torch.float32), counts, mixture.temperature)
    make = partial(_read, model, mixture, max_answer_tokens, beams, room)
    together = max(1, _TOGETHER // (beams * max(counts, default=1)))
    return in_groups(model, features | {"priors": priors}, counts, room, make, together)


def _read(
    model: "FusionInDecoder", mixture: Mixture, most: int, beams: int, room: Budget, features: Features, counts: Sequence[int]
) -> list[Reading]:  # fmt: skip
    priors = features["priors"].to(model.device)
    passages = {key: value for key, value in features.items() if key != "priors"}
    alone = [1] * len(priors)
    states, mask, _ = encode(model, passages, alone, room.encoded)
    if mixture.mode == "token":
        found = beam_search(model, states, mask, counts, priors, beams, most)
    else:
        found = beam_search(model, states, mask, alone, torch.zeros_like(priors), beams, most)
    readings, start = [], 0
    for number, count in enumerate(counts):
        own = slice(start, start + count)
        scored = partial(token_scores, model, states[own], mask[own], room=room)
        if mixture.mode == "token":
            best = found[number][0].tokens
            shares = posteriors(scored([best])[:, 0], priors[own], "token")
            readings.append(Reading(list(best), found[number][0].score, shares.tolist()))
        else:
            readings.append(_of_sequence(found[own], priors[own], mixture, scored))
        start += count
    return readings


def _of_sequence(beams: Sequence[Sequence[Hypothesis]], priors: Tensor, mixture: Mixture, scored: Any) -> Reading:
    """The best of the hypotheses in all beams of a question's passages, by its likelihood over the passages."""
    answers = list(dict.fromkeys(one.tokens for beam in beams for one in beam))
    if mixture.decoding == "thorough":
        found = scored(answers)
    else:  # [passages, answers, 1]
        places = {tokens: place for place, tokens in enumerate(answers)}
        found = priors.new_full((len(beams), len(answers), 1), -torch.inf)
        for passage, beam in enumerate(beams):
            for one in beam:
                found[passage, places[one.tokens]] = one.score
    totals = log_likelihoods(found, priors, [len(beams)], "sequence")[0]
    best = int(totals.argmax())
    return Reading(list(answers[best]), float(totals[best]), posteriors(found[:, best], priors, "sequence").tolist())


def token_scores(
    model: "FusionInDecoder", states: Tensor, mask: Tensor, answers: Sequence[Sequence[int]], room: Budget
) -> Tensor:
    """Log-probabilities log p(y_i|x,z,y_1..i-1) of several answers from each passage, [passages, answers, tokens].

    They are 0 after an answer's end.

    Args:
        model: on its device.
        states: hidden states of the passages, [passages, tokens, d_model].
        mask: False at padding, [passages, tokens].
        answers: token ids of each answer.
        room: decides how many answers are scored at a time.
    """
    longest = max(map(len, answers))
    ids = torch.tensor([[*one, *[0] * (longest - len(one))] for one in answers], device=states.device)
    there = torch.tensor([[n < len(one) for n in range(longest)] for one in answers], device=states.device)
    first, cache = _first_step(model, states, mask)
    made = []
    several = min(room.decoded // mask.numel(), _TOGETHER // (len(states) * longest))
    for some in torch.split(ids, max(1, several)):
        known = copy.deepcopy(cache)  # the passages' keys and values are computed once
        known.batch_repeat_interleave(len(some))
        rows = some.repeat(len(states), 1)  # [passages x answers, tokens]
        logs = first.repeat_interleave(len(some), 0)[:, None]
        if longest > 1:
            logs = torch.cat([logs, _step(model, rows[:, :-1], mask.repeat_interleave(len(some), 0), known)], 1)
        made.append(logs.gather(2, rows[..., None])[..., 0].view(len(states), len(some), longest))
    return torch.cat(made, 1).masked_fill(~there, 0.0)


def beam_search(
    model: "FusionInDecoder", states: Tensor, mask: Tensor, counts: Sequence[int], priors: Tensor, beams: int, most: int
) -> list[list[Hypothesis]]:
    """The answers of the highest probability that a beam search finds, of the mixture of each group's passages.

    The next token's probability is the mean over the group's passages, weighted by the priors. With one passage a group this is
    T5's own beam search. A hypothesis ends with `</s>`, or is cut off at `most` tokens. As in transformers, `</s>` counts only
    among the `beams` best continuations. No length is preferred: the search ends when no hypothesis that goes on can come among
    the `beams` best of those that ended.

    Args:
        model: on its device.
        states: hidden states of the passages, [passages, tokens, d_model].
        mask: False at padding, [passages, tokens].
        counts: passages of each group.
        priors: log p(z|x) of the passages, [passages].
        beams: hypotheses that are kept, 1 for greedy decoding.
        most: most tokens of an answer, including the token that starts decoding.

    Returns:
        Up to `beams` hypotheses for each group, best first.

    Raises:
        IfqaError: a probability is no number.
    """
    groups, device = len(counts), states.device
    owners = torch.repeat_interleave(torch.arange(groups), torch.tensor(counts)).to(device)
    ends = torch.tensor(model.config.eos_token_id, device=device)
    step, cache = _first_step(model, states, mask)
    cache.batch_repeat_interleave(beams)  # rows are passages x beams
    mask = mask.repeat_interleave(beams, 0)
    live = torch.full((groups, beams), -torch.inf, device=device)
    live[:, 0] = 0.0  # the beams are one hypothesis at first
    tokens = torch.zeros(groups, beams, 0, dtype=torch.long, device=device)
    step = step[:, None].expand(-1, beams, -1)  # [passages, beams, vocabulary]
    ended: list[list[Hypothesis]] = [[] for _ in counts]
    for length in range(1, most):
        following = live[..., None] + mixed(step, priors, counts)
        best = following.flatten(1).topk(min(2 * beams, following[0].numel()))
        if best.values.isnan().any():
            raise IfqaError("the reader's probabilities are no numbers (NaN): its checkpoint's weights are damaged")
        sources, ids = best.indices // following.shape[2], best.indices % following.shape[2]
        stops = torch.isin(ids, ends)
        tokens = torch.cat([tokens.gather(1, sources[..., None].expand(-1, -1, length - 1)), ids[..., None]], 2)
        _keep(ended, tokens[:, :beams], best.values[:, :beams], stops[:, :beams], beams)
        live, places = best.values.masked_fill(stops, -torch.inf).topk(beams)
        sources, tokens = (
            sources.gather(1, places),
            tokens.gather(1, places[..., None].expand(-1, -1, length)),
        )
        least = [own[beams - 1].score if len(own) >= beams else -torch.inf for own in ended]
        if length == most - 1 or all(top <= low for top, low in zip(live[:, 0].tolist(), least, strict=True)):
            break
        rows = sources[owners] + beams * torch.arange(len(owners), device=device)[:, None]
        cache.self_attention_cache.reorder_cache(rows.flatten())
        step = _step(model, tokens[owners, :, -1].reshape(-1, 1), mask, cache).view(len(owners), beams, -1)
    else:
        return ended
    _keep(ended, tokens, live, torch.ones_like(live, dtype=torch.bool), beams)  # those that are cut off
    return ended


def _keep(ended: list[list[Hypothesis]], tokens: Tensor, scores: Tensor, chosen: Tensor, beams: int) -> None:
    """Add the chosen hypotheses, [groups, some], to the best `beams` of each group; equal ones stay in the order they came."""
    rows = zip(ended, tokens.tolist(), scores.tolist(), (chosen & (scores > -torch.inf)).tolist(), strict=True)
    for own, several, logs, those in rows:
        if any(those):
            own += [Hypothesis(tuple(ids), log) for ids, log, one in zip(several, logs, those, strict=True) if one]
            own.sort(key=lambda one: -one.score)
            del own[beams:]


def _first_step(model: "FusionInDecoder", states: Tensor, mask: Tensor) -> tuple[Tensor, EncoderDecoderCache]:
    """Log-probabilities of the first token from each passage, [passages, vocabulary], and the decoder's cache."""
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    start = torch.full((len(states), 1), model.config.decoder_start_token_id, device=states.device)
    return _step(model, start, mask, cache, states)[:, 0], cache


def _step(
    model: "FusionInDecoder", ids: Tensor, mask: Tensor, cache: EncoderDecoderCache, states: Tensor | None = None
) -> Tensor:
    """Log-probabilities after each token, float32, [rows, tokens, vocabulary]; the tokens follow those in the cache.

    `states` are the passages' hidden states at the first step. Later their keys and values are in the cache, and only their shape
    is asked for.
    """
    if states is None:
        states = torch.empty(1, 1, 1, dtype=model.dtype, device=ids.device).expand(*mask.shape, model.config.d_model)
    encoded: Any = BaseModelOutput(last_hidden_state=states)
    made = model(
        encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=ids, past_key_values=cache, use_cache=True
    )
    logs: Tensor = made.logits.float().log_softmax(-1)
    return logs
