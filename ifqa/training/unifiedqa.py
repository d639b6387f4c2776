"""Trains UnifiedQA (`ifqa.reading.unifiedqa`) as CausalQA did, with the trainer of `ifqa.training.t5`.

Line numbers are those of finetuning/train_unifiedqa.py in webis-de/coling22-benchmark-for-causal-question-answering at
fc72cfd8743d.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from ifqa.reading.t5.checkpoint import DEFAULT
from ifqa.reading.unifiedqa import MAX_ANSWER, first_answer, input_text
from ifqa.records import Question
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training import recipes, t5, t5_task
from ifqa.training.material import Material
from ifqa.training.t5_task import NO_DEV, Dev, Task

LARGE = 50_000  # questions from which a training takes the longer of the published numbers of steps
STEPS, SHORT = (
    60_000,
    6_000,
)  # as the paper says (Bondarenko et al., COLING 2022); the code's default is the shorter (16)


@dataclass(frozen=True)
class Recipe(t5_task.Recipe):
    """CausalQA's settings (9-27, 68-76), with those of `ifqa.training.t5_task.Recipe`; the rest are transformers' defaults.

    Attributes:
        steps: 0 for the published number: 60,000, or 6,000 with less than 50,000 questions.
        max_target: most tokens of a target, which is all answers of a question, joined by tabs (47-49).
    """

    model: str = DEFAULT["unifiedqa"]
    passages: Positive = 20
    steps: Natural = 0
    batch: Positive = 2
    learning_rate: NotNegative = 5e-5
    warmup: NotNegative = 0.0
    weight_decay: NotNegative = 0.0
    clip: NotNegative = 1.0
    max_tokens: Positive = 2048
    max_target: Positive = 100
    evaluate_every: Positive = 1000
    seed: Natural = 42
    device_batch: Positive = 2
    recompute: bool = False


def resolve(**changes: object) -> Recipe:
    """CausalQA's settings with some changed.

    Raises:
        IfqaError: there is no such setting or device, or a value is out of range.
    """
    return t5.checked(recipes.changed({"published": Recipe()}, "published", changes))


def train(material: Material, folder: Path, *, dev: Dev = NO_DEV, **changes: object) -> None:
    """Train, and write a checkpoint for reader 'unifiedqa': a T5's files, its tokenizer and a `manifest.json`.

    The input is `ifqa.reading.unifiedqa.input_text`, the target all answers of a question, joined by tabs. The loss is the mean
    over the tokens of a step's targets. An interrupted training resumes from its newest checkpoint and ends in the same
    weights.

    Args:
        material: questions without answers are left out.
        folder: the checkpoint is written here.
        dev: questions and rankings; the checkpoint with the best exact match on them is kept. Without any, the last is kept, as
            CausalQA did (73).
        changes: settings that differ from CausalQA's (see `Recipe`).

    Raises:
        IfqaError: nothing to train on, a setting out of range, `folder` holds another training, or the model was trained on
            another family.
    """
    chosen = resolve(**changes)
    count = sum(1 for question in material.questions if targets(question))
    steps = chosen.steps or published_steps(count)
    chosen = replace(chosen, steps=steps, evaluate_every=min(chosen.evaluate_every, steps))
    t5.run(task(chosen), material, folder, dev, "published")


def refuse(material: Material, folder: Path, **changes: object) -> None:
    """Raise the errors of `train` that need no rankings, before passages are retrieved; the arguments are those of `train`."""
    t5.refuse(task(resolve(**changes)), material)


def published_steps(questions: int) -> int:
    """The steps of a training on this many questions."""
    return SHORT if questions < LARGE else STEPS


def task(chosen: Recipe) -> Task:
    """What a network learns with these settings."""
    return Task(
        reader="unifiedqa",
        about="training UnifiedQA",
        chosen=chosen,
        training_passages=lambda question, ranking: ranking[: chosen.passages],
        texts=lambda question, some: [input_text(question, some[: chosen.passages], chosen.titles)],
        targets=targets,
        max_target=chosen.max_target,
        max_answer=MAX_ANSWER,
        answer=first_answer,
        by_token=True,
        micro_batch=0,
        too_large=(
            f"{chosen.device_batch} questions of {chosen.max_tokens} tokens at a time do not fit into the memory of "
            f"{chosen.device}; resume with --set device_batch=1 --set recompute=true"
        ),
    )


def targets(question: Question) -> list[str]:
    """The one target of a question, all its answers joined by tabs; none for a question without answers."""
    answers = [answer for answer in question.answers if answer.strip()]
    return ["\t".join(answers)] if answers else []
