"""Trains RAG (`ifqa.reading.rag`) by the marginal likelihood of the answers, with the trainer of `ifqa.training.t5`.

Lewis et al. (2020, section 2.4) train the generator and the question encoder together, and keep the passages' index fixed. Here
the retriever is fixed, and what is learnt of it is the temperature of its scores' softmax: a parameter of the network, with a
learning rate of its own, by the same likelihood and at the same time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from ifqa.protocols import Flag
from ifqa.reading.t5.base_reader import Mode
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training.fid import Fid

if TYPE_CHECKING:
    from ifqa.reading.t5.generation import Reading
    from ifqa.reading.t5.model import FusionInDecoder


@dataclass(kw_only=True)
class Rag(Fid):
    """Train RAG: a T5, and the temperature of the retrieval scores, by the marginal likelihood of the answers.

    The manifest's `rag` holds the mode and the learnt temperature. The loss is the mean over questions of -log p(y|x). Dev
    questions are answered greedily. The settings are not tuned.

    Attributes:
        mode: which likelihood is maximised: "sequence" or "token" (see `ifqa.reading.t5.rag_model.log_likelihoods`).
        passages: the paper retrieves 5 or 10 in training (section 3). An included gold passage gets the score of the last.
        temperature: the temperature that the training starts from; 0 for the mean standard deviation of a question's scores, so
            that the start does not depend on the unit of the retriever's scores.
        temperature_rate: learning rate of the temperature's logarithm; 0 keeps the temperature.
        micro_batch: passages that go through the network at once, 0 for all; it leaves the gradient the same except for
            dropout. With `recompute`, only the log-probabilities of the answer's tokens are kept of each micro-batch.
    """

    recipes: ClassVar = {}
    recipe = "ifqa"
    reader = "rag"
    scored = True

    mode: Annotated[Mode, Flag("sequence (a passage for the whole answer) or token (one for each of its tokens).")] = (
        "sequence"
    )
    passages: Positive = 10
    temperature: NotNegative = 0.0
    temperature_rate: NotNegative = 0.01
    micro_batch: Natural = 10

    def network(self, model: "FusionInDecoder", scores: Sequence[Sequence[float]]) -> "FusionInDecoder":
        """The network with a temperature."""
        from ifqa.reading.t5.rag_model import as_marginal

        return as_marginal(model, self.mode, self.temperature or spread(scores, self.passages))

    def rates(self) -> Mapping[str, float]:
        """That of the temperature."""
        return {"log_temperature": self.temperature_rate}

    def decode(self, model: Any, features: Any, counts: list[int], scores: list[float]) -> "list[Reading]":
        """By the marginal likelihood, at the temperature so far."""
        from ifqa.reading.t5.rag_model import Mixture, read

        mixture = Mixture(self.mode, temperature=float(model.log_temperature.detach().exp()))
        return read(model, features, counts, scores=scores, mixture=mixture, max_answer_tokens=self.max_answer)

    def finished(self, model: Any) -> dict[str, object]:
        """The mode and the learnt temperature."""
        from ifqa.reading.t5.rag_model import as_t5

        return {"rag": {"mode": self.mode, "temperature": as_t5(model)}}


def spread(scores: Sequence[Sequence[float]], passages: int) -> float:
    """The mean standard deviation of a question's scores, over questions with two passages or more; 1 if all are equal."""
    spreads = [pstdev(row[:passages]) for row in scores if len(row[:passages]) > 1]
    return (fmean(spreads) if spreads else 0.0) or 1.0
