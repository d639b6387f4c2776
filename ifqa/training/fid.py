"""Trains Fusion-in-Decoder (`ifqa.reading.fid`) with the trainer of `ifqa.training.t5`."""

from dataclasses import dataclass, replace
from pathlib import Path

from ifqa.reading.t5.passages import MAX_ANSWER, passage_inputs
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training import recipes, t5, t5_task
from ifqa.training.material import Gold, Material, training_passages
from ifqa.training.t5_task import NO_DEV, Dev, Task


@dataclass(frozen=True)
class Recipe(t5_task.Recipe):
    """All settings of a training, with those of `ifqa.training.t5_task.Recipe`.

    Attributes:
        gold: "retrieved": passages as they were retrieved; "included": if no gold passage is among them, the question's
            first gold passage replaces the last.
        micro_batch: passages that go through the encoder at once, 0 for all; it leaves the gradient the same except for
            dropout. With `recompute`, only the encoder's output of each micro-batch is kept.
    """

    model: str = "google/flan-t5-base"
    passages: Positive = 20
    gold: Gold = "retrieved"
    steps: Positive = 1000
    batch: Positive = 32
    learning_rate: NotNegative = 1e-4
    warmup: NotNegative = 0.1
    weight_decay: NotNegative = 0.01
    clip: NotNegative = 1.0
    max_tokens: Positive = 250
    evaluate_every: Positive = 100
    micro_batch: Natural = 16


RECIPES = {
    # FiD-large on Natural Questions: README:110-126, and src/options.py:20-31 for options the README does not name. FiD
    # trained on 64 GPUs with a question each and accumulated no gradients, so its steps are steps of the optimiser too
    "published": Recipe(
        model="google-t5/t5-large", passages=100, steps=15_000, batch=64, learning_rate=5e-5, warmup=1000,
        evaluate_every=500,
    ),
    "ifqa": Recipe(),
}  # fmt: skip


def resolve(recipe: str = "ifqa", **changes: object) -> Recipe:
    """A copy of a recipe with some settings changed.

    Raises:
        IfqaError: there is no such recipe, setting or device, or a value is out of range.
    """
    chosen = t5.checked(recipes.changed(RECIPES, recipe, changes))
    return replace(chosen, evaluate_every=min(chosen.evaluate_every, chosen.steps))


def train(
    material: Material,
    folder: Path,
    *,
    dev: Dev = NO_DEV,
    recipe: str = "ifqa",
    **changes: object,
) -> None:
    """Train, and write a checkpoint for reader 'fid': a T5's files, its tokenizer and a `manifest.json`.

    In each pass over the questions, the target of a question is one of its answers, drawn anew (FiD src/data.py:30-36). An
    interrupted training resumes from its newest checkpoint and ends in the same weights.

    Args:
        material: questions without answers are left out.
        folder: the checkpoint is written here.
        dev: questions and rankings; the checkpoint with the best exact match on them is kept. Without any, the last is kept.
        recipe: "ifqa", this project's settings, not tuned; or "published", those of FiD-large.
        changes: settings that differ from the recipe's (see `Recipe`).

    Raises:
        IfqaError: nothing to train on, a setting out of range, `folder` holds another training, or the model was trained on
            another family.
    """
    t5.run(task(resolve(recipe, **changes)), material, folder, dev, recipe)


def refuse(material: Material, folder: Path, *, recipe: str = "ifqa", **changes: object) -> None:
    """Raise the errors of `train` that need no rankings, before passages are retrieved; the arguments are those of `train`."""
    t5.refuse(task(resolve(recipe, **changes)), material)


def task(chosen: Recipe) -> Task:
    """What a network learns with a recipe that `resolve` gave."""
    return Task(
        reader="fid",
        about="training Fusion-in-Decoder",
        chosen=chosen,
        training_passages=lambda question, ranking: training_passages(question, ranking, chosen.passages, chosen.gold),
        texts=lambda question, some: passage_inputs(question.text, some[: chosen.passages], chosen.titles),
        targets=lambda question: [answer for answer in question.answers if answer.strip()],
        max_target=None,
        max_answer=MAX_ANSWER,
        answer=str,
        by_token=False,
        micro_batch=chosen.micro_batch,
        too_large=(
            f"{chosen.passages} passages, {chosen.micro_batch or 'all'} at a time, do not fit into the memory of "
            f"{chosen.device}; resume with --set device_batch=1 --set micro_batch=4 --set recompute=true, or fewer passages"
        ),
    )
