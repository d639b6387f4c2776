"""RAG's likelihood of an answer, marginalised over passages, and the network that learns by it (Lewis et al. 2020, section 2.1).

A passage's probability p(z|x) is the softmax of the retrieval scores, divided by a temperature, over the passages of its
question. The network gives log p(y_i|x,z,y_1..i-1), from each passage alone.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from ifqa.reading.t5.model import FusionInDecoder
from ifqa.reading.t5.passages import Mode

IGNORED = -100  # a label that is padding


def log_priors(scores: Tensor, counts: Sequence[int], temperature: Tensor | float = 1.0) -> Tensor:
    """The log-probabilities log p(z|x) of all passages of all questions, in order, from their scores; both are [passages]."""
    return torch.cat([several.log_softmax(0) for several in torch.split(scores.float() / temperature, list(counts))])


def mixed(log_probabilities: Tensor, priors: Tensor, counts: Sequence[int]) -> Tensor:
    """The mean over each question's passages, weighted by the priors, of probabilities.

    Args:
        log_probabilities: [passages, ...].
        priors: log p(z|x), [passages].
        counts: passages of each question.

    Returns:
        Logarithms of the means, [questions, ...].
    """
    weighted = log_probabilities + priors.view(-1, *[1] * (log_probabilities.dim() - 1))
    if len(set(counts)) == 1:  # a single operation; a beam search has a group for each passage
        return weighted.view(-1, counts[0], *weighted.shape[1:]).logsumexp(1)
    return torch.stack([several.logsumexp(0) for several in torch.split(weighted, list(counts))])


def log_likelihoods(tokens: Tensor, priors: Tensor, counts: Sequence[int], mode: Mode) -> Tensor:
    """The log-likelihood log p(y|x) of an answer to each question.

    "sequence": one passage is drawn for the whole answer, sum_z p(z|x) prod_i p(y_i|x,z,y_1..i-1). "token": a passage is drawn
    for each token, prod_i sum_z p(z|x) p(y_i|x,z,y_1..i-1).

    Args:
        tokens: log p(y_i|x,z,y_1..i-1) of the answer's tokens, 0 at padding, [passages, tokens] or
            [passages, answers, tokens].
        priors, counts: as `mixed` takes them.
        mode: "sequence" or "token".

    Returns:
        [questions] or [questions, answers].
    """
    if mode == "sequence":
        return mixed(tokens.sum(-1), priors, counts)
    return mixed(tokens, priors, counts).sum(-1)


def posteriors(tokens: Tensor, priors: Tensor, mode: Mode) -> Tensor:
    """How much each passage of one question gave to its answer, [passages]; the sum is 1.

    "sequence": p(z|x,y). "token": the share of the answer's tokens that were drawn from the passage, the mean over tokens of
    p(z|x,y_1..i).

    Args:
        tokens: log p(y_i|x,z,y_1..i-1) of the answer's tokens, without padding, [passages, tokens].
        priors: log p(z|x), [passages].
        mode: "sequence" or "token".
    """
    if mode == "sequence":
        return (tokens.sum(1) + priors).softmax(0)
    return (tokens + priors[:, None]).softmax(0).mean(1)


class Marginal(FusionInDecoder):
    """A T5 in training for RAG: its loss is the negative log-likelihood of the answers, and it learns the temperature too.

    `micro_batch` passages go through encoder and decoder at once; with `recompute` only their tokens' log-probabilities are kept
    for the gradients.

    Attributes:
        mode: "sequence" or "token".
        log_temperature: logarithm of the temperature, a parameter of one number.
    """

    mode: Mode
    log_temperature: torch.nn.Parameter

    def forward(  # type: ignore[override]  # its loss has scores, and no weights
        self, passage_ids: Tensor | None = None, passage_mask: Tensor | None = None, counts: Tensor | None = None,
        encoder_outputs: Any = None, attention_mask: Tensor | None = None, labels: Tensor | None = None,
        scores: Tensor | None = None, **inputs: Any,
    ) -> Any:  # fmt: skip
        """An output with a loss: the mean over questions of -log p(y|x). Without passages: T5's own outputs.

        Args:
            passage_ids, passage_mask, counts: as `FusionInDecoder.forward` takes them.
            encoder_outputs, attention_mask, inputs: T5's, given instead of passages.
            labels: token ids of the answers, padded with -100, [questions, tokens].
            scores: of the retriever, of all passages, [passages].
        """
        if passage_ids is None:
            return super().forward(
                encoder_outputs=encoder_outputs, attention_mask=attention_mask, labels=labels, **inputs
            )
        assert passage_mask is not None
        assert counts is not None
        assert labels is not None
        assert scores is not None
        several = counts.tolist()
        size = self.micro_batch or len(passage_ids)
        targets = labels.repeat_interleave(counts, 0)
        batches = zip(*(torch.split(one, size) for one in (passage_ids, passage_mask, targets)), strict=True)
        tokens = torch.cat([self._kept(*batch) for batch in batches])
        priors = log_priors(scores, several, self.log_temperature.exp())
        losses = -log_likelihoods(tokens, priors, several, self.mode)
        return Seq2SeqLMOutput(loss=losses.mean())

    def _kept(self, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        if self.recompute and self.training:
            made: Tensor = checkpoint(self._tokens, ids, mask, labels, use_reentrant=False)
            return made
        return self._tokens(ids, mask, labels)

    def _tokens(self, ids: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """Log-probabilities log p(y_i|x,z,y_1..i-1), 0 at padding, [passages, tokens]."""
        hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        encoded: Any = BaseModelOutput(last_hidden_state=hidden)
        inputs = self._shift_right(labels)
        made = super().forward(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=inputs)
        return -F.cross_entropy(made.logits.float().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")


def as_marginal(model: FusionInDecoder, mode: Mode, temperature: float) -> Marginal:
    """The same network, to be trained for RAG from this temperature."""
    made: Any = model
    made.__class__ = Marginal
    made.mode = mode
    made.log_temperature = torch.nn.Parameter(torch.tensor(float(temperature)).log())
    return made  # type: ignore[no-any-return]


def as_t5(model: Marginal) -> float:
    """Make the network a plain T5 again, whose files any reader of T5 takes; returns the temperature that it learnt."""
    temperature = float(model.log_temperature.detach().exp())
    made: Any = model
    del made.log_temperature
    made.__class__ = FusionInDecoder
    return temperature
