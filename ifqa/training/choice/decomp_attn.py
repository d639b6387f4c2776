"""Training the reader 'decomp-attn' (`ifqa.reading.choice.decomp_attn`): all but MiniLM's embeddings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ifqa.models.hub import NAME, WEIGHTS_SHA256
from ifqa.reading.choice.decomp_attn import WEIGHTS, network, tokens
from ifqa.reading.choice.offered import plain
from ifqa.settings import Natural, NotNegative, Positive, checked
from ifqa.storage.files import create, write
from ifqa.training import resume
from ifqa.training.choice.answered import classes_of, usable
from ifqa.training.choice.trainer import Plan, Task, fit
from ifqa.training.material import Material

if TYPE_CHECKING:
    from torch import Tensor


@checked("training setting", given=["material", "folder"])
def train(
    material: Material,
    folder: Path,
    *,
    seed: Natural = 0,
    epochs: Positive = 5,
    batch: Positive = 32,
    learning_rate: NotNegative = 1e-3,
    hidden: Positive = 200,
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2,
    augment: bool = False,
    symmetry: NotNegative = 0.0,
    transitivity: NotNegative = 0.0,
    device: str = "auto",
    checkpoint_every: Positive = 200,
) -> None:
    """Train, and write `model.safetensors` and a `manifest.json`. An interrupted training resumes to the same weights.

    Args:
        material: questions without choices or without an answer are left out.
        folder: the weights are written here.
        seed: for initialisation, order, dropout and draws.
        epochs, batch, learning_rate: passes over the questions, questions a step, and AdamW's first rate, which falls to 0.
            (Parikh et al. 2016 have Adagrad at 0.05, which did not learn from a few thousand questions.)
        hidden, dropout: size of the layers, and share of features dropped before each, as in that paper's section 5.1.
        augment, symmetry, transitivity: training on consistency, see `ifqa.training.choice.trainer`; Asai and Hajishirzi (2020)
            have true, 0.5 and 0.1.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; uses bfloat16 if the device multiplies in it.
        checkpoint_every: steps between checkpoints.

    Raises:
        IfqaError: nothing to train on or to learn, a setting out of range, or `folder` holds another training.
    """
    from safetensors.torch import save
    from transformers import set_seed

    material = usable(material)
    classes = classes_of(material.questions)
    settings = {"seed": seed, "epochs": epochs, "batch": batch, "learning_rate": learning_rate, "hidden": hidden,
                "dropout": dropout, "augment": augment, "symmetry": symmetry, "transitivity": transitivity}  # fmt: skip
    inputs = {
        "reader": "decomp-attn",
        "family": material.family,
        "sources": material.sources,
        "settings": settings,
        "classes": classes,
        "questions": resume.identity(material.questions, material.rankings),
        "encoder": {"name": NAME, "sha256": WEIGHTS_SHA256},
    }
    if not resume.begin(folder, inputs):
        return
    plan = Plan(
        seed=seed, epochs=epochs, batch=batch, learning_rate=learning_rate, warmup=0.0, weight_decay=0.0,
        augment=augment, symmetry=symmetry, transitivity=transitivity,
        checkpoint_every=checkpoint_every,
    )  # fmt: skip
    task = Task(
        about="training decomposable attention",
        encode=lambda question, _: tokens(question.text),
        collate=_collated,
        logits=lambda model, read: model(read["change"], read["effect"]),
        place=lambda question, place: classes.index(plain(question.choices[place])),
    )
    set_seed(seed)
    model = network(settings, len(classes))
    made = fit(model, task, material, plan, folder, device)
    with create(folder / WEIGHTS) as handle:
        write(
            handle, save({name: one.cpu().contiguous() for name, one in model.state_dict().items()}, {"format": "pt"})
        )
    resume.finish(folder, inputs, made, [WEIGHTS])


def _collated(pairs: Sequence[Any]) -> dict[str, "Tensor"]:
    from ifqa.reading.choice.alignment import padded

    changes, effects = zip(*pairs, strict=True)
    return {"change": padded(changes), "effect": padded(effects)}
