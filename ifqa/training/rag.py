"""Trains RAG (`ifqa.reading.rag`) by the marginal likelihood of the answers, with the trainer of `ifqa.training.t5`.

Lewis et al. (2020, section 2.4) train the generator and the question encoder together, and keep the passages' index fixed. Here
the retriever is fixed, and what is learnt of it is the temperature of its scores' softmax: a parameter of the network, with a
learning rate of its own, by the same likelihood and at the same time.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from ifqa.reading.t5.passages import Mode
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training import fid, recipes, t5
from ifqa.training.material import Material
from ifqa.training.t5_task import NO_DEV, Dev, Scores, Task

if TYPE_CHECKING:
    from ifqa.reading.t5.answer import Reading
    from ifqa.reading.t5.model import FusionInDecoder


@dataclass(frozen=True)
class Recipe(fid.Recipe):
    """All settings of a training, with those of `ifqa.training.fid.Recipe`; not tuned.

    Attributes:
        mode: which likelihood is maximised: "sequence" or "token" (see `ifqa.reading.t5.marginal.log_likelihoods`).
        passages: the paper retrieves 5 or 10 in training (section 3).
        gold: "retrieved": passages as they were retrieved; "included": if no gold passage is among them, the question's
            first gold passage replaces the last, and gets its score.
        temperature: the temperature that the training starts from; 0 for the mean standard deviation of a question's scores, so
            that the start does not depend on the unit of the retriever's scores.
        temperature_rate: learning rate of the temperature's logarithm; 0 keeps the temperature.
        micro_batch: passages that go through the network at once, 0 for all; it leaves the gradient the same except for
            dropout. With `recompute`, only the log-probabilities of the answer's tokens are kept of each micro-batch.
    """

    mode: Mode = "sequence"
    passages: Positive = 10
    temperature: NotNegative = 0.0
    temperature_rate: NotNegative = 0.01
    micro_batch: Natural = 10


def resolve(**changes: object) -> Recipe:
    """The settings with some changed.

    Raises:
        IfqaError: there is no such setting or device, or a value is out of range.
    """
    chosen = t5.checked(recipes.changed({"ifqa": Recipe()}, "ifqa", changes))
    return replace(chosen, evaluate_every=min(chosen.evaluate_every, chosen.steps))


def train(material: Material, folder: Path, *, dev: Dev = NO_DEV, **changes: object) -> None:
    """Train, and write a checkpoint for reader 'rag': a T5's files, its tokenizer and a `manifest.json`.

    The manifest's `rag` holds the mode and the learnt temperature. In each pass over the questions, the target of a question is
    one of its answers, drawn anew. The loss is the mean over questions of -log p(y|x). An interrupted training resumes from its
    newest checkpoint and ends in the same weights.

    Args:
        material: with scores; questions without answers are left out.
        folder: the checkpoint is written here.
        dev: the checkpoint with the best exact match on these questions, answered greedily, is kept. Without any, the last is
            kept.
        changes: settings that differ from `Recipe`'s.

    Raises:
        IfqaError: nothing to train on, a setting out of range, `folder` holds another training, or the model was trained on
            another family.
    """
    t5.run(task(resolve(**changes)), material, folder, dev, "ifqa")


def refuse(material: Material, folder: Path, **changes: object) -> None:
    """Raise the errors of `train` that need no rankings, before passages are retrieved; the arguments are those of `train`."""
    t5.refuse(task(resolve(**changes)), material)


def task(chosen: Recipe) -> Task:
    """What a network learns with these settings."""

    def network(model: "FusionInDecoder", scores: Scores) -> "FusionInDecoder":
        from ifqa.reading.t5.marginal import as_marginal

        return as_marginal(model, chosen.mode, chosen.temperature or spread(scores, chosen.passages))

    def decode(model: Any, features: Any, counts: list[int], scores: list[float], most: int) -> "list[Reading]":
        from ifqa.reading.t5.mixture import Mixture, read

        mixture = Mixture(chosen.mode, temperature=float(model.log_temperature.detach().exp()))
        return read(model, features, counts, scores=scores, mixture=mixture, max_answer_tokens=most)

    def finished(model: Any) -> dict[str, object]:
        from ifqa.reading.t5.marginal import as_t5

        return {"rag": {"mode": chosen.mode, "temperature": as_t5(model)}}

    return replace(
        fid.task(chosen),
        reader="rag",
        about=f"training RAG-{chosen.mode.capitalize()}",
        too_large=(
            f"{chosen.passages} passages, {chosen.micro_batch or 'all'} at a time, do not fit into the memory of "
            f"{chosen.device}; resume with --set device_batch=1 --set micro_batch=2 --set recompute=true, or fewer passages"
        ),
        network=network,
        scored=True,
        rates={"log_temperature": chosen.temperature_rate},
        decode=decode,
        finished=finished,
    )


def spread(scores: Scores, passages: int) -> float:
    """The mean standard deviation of a question's scores, over questions with two passages or more; 1 if all are equal."""
    found = [pstdev(several[:passages]) for several in scores if len(several[:passages]) > 1]
    return (fmean(found) if found else 0.0) or 1.0
