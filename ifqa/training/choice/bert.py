"""Training the reader 'choice' (`ifqa.reading.choice.bert`): all weights of an encoder, with one logit an option."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ifqa.errors import IfqaError
from ifqa.models.batches import BUDGET, batches
from ifqa.models.hub import NAME, identity_of
from ifqa.protocols import Place
from ifqa.reading.choice.encoder import Encoder, open_encoder, scheme_of
from ifqa.reading.choice.inputs import padded, sequences
from ifqa.reading.choice.trained import manifest_of
from ifqa.settings import Natural, NotNegative, Positive, Share, checked
from ifqa.training import resume
from ifqa.training.choice.answered import usable
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
    encoder: Place = NAME,
    paragraph: Literal["yes", "no"] = "yes",
    explanation: Literal["yes", "no"] = "no",
    epochs: Positive = 3,
    batch: Positive = 16,
    learning_rate: NotNegative = 5e-5,
    warmup: Share = 0.1,
    weight_decay: NotNegative = 0.01,
    max_tokens: Positive = 256,
    augment: bool = False,
    symmetry: NotNegative = 0.0,
    transitivity: NotNegative = 0.0,
    device: str = "auto",
    checkpoint_every: Positive = 200,
) -> None:
    """Train, and write the encoder's files, its tokenizer and a `manifest.json`.

    An interrupted training resumes to the same weights.

    Args:
        material: questions without choices or without an answer are left out; the rankings hold the paragraphs.
        folder: the model is written here.
        seed: for initialisation of the head, order, dropout and draws.
        encoder: a model of the hub, a folder, or a folder of `ifqa train choice` to train further.
        paragraph, explanation: what is read beside question and option, see `ifqa.reading.choice.bert`.
        epochs, batch: passes over the questions, and questions a step.
        learning_rate, warmup, weight_decay: AdamW's highest rate, the share of the steps before it, and its decay.
        max_tokens: most tokens of a sequence; the paragraph is cut first.
        augment, symmetry, transitivity: training on consistency, see `ifqa.training.choice.trainer`; Asai and Hajishirzi (2020)
            have true, 0.5 and 0.1, with RoBERTa-base at 2e-5 and 64 questions a step.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; uses bfloat16 if the device multiplies in it.
        checkpoint_every: steps between checkpoints.

    Raises:
        IfqaError: nothing to train on, a setting out of range, the encoder was trained on another split family, or `folder` holds
            another training.
    """
    from transformers import set_seed

    material = usable(material)
    start = manifest_of(encoder, "choice").family if (Path(encoder) / "manifest.json").exists() else ""
    if start not in ("", material.family):
        raise IfqaError(
            f"{encoder} was trained on {start} and may not be trained further on {material.family}; begin with another encoder"
        )
    settings = {"seed": seed, "paragraph": paragraph, "explanation": explanation, "epochs": epochs, "batch": batch,
                "learning_rate": learning_rate, "warmup": warmup, "weight_decay": weight_decay, "max_tokens": max_tokens,
                "augment": augment, "symmetry": symmetry, "transitivity": transitivity}  # fmt: skip
    inputs = {
        "reader": "choice",
        "family": material.family,
        "sources": material.sources,
        "settings": settings,
        "questions": resume.identity(material.questions, material.rankings),
        "start": {"name": encoder, "sha256": identity_of(encoder)},
    }
    if not resume.begin(folder, inputs):
        return
    set_seed(seed)  # the head is drawn when the encoder is opened
    opened = open_encoder(encoder, untrained=True)
    plan = Plan(
        seed=seed, epochs=epochs, batch=batch, learning_rate=learning_rate, warmup=warmup, weight_decay=weight_decay,
        augment=augment, symmetry=symmetry, transitivity=transitivity,
        checkpoint_every=checkpoint_every,
    )  # fmt: skip
    scheme = scheme_of(settings, opened.longest)
    task = Task(
        about="training the encoder",
        encode=lambda question, ranking: sequences(opened.tokenizer, question, ranking, scheme),
        collate=lambda several: _collated(several, opened),
        logits=_logits,
        place=lambda _, place: place,
    )
    made = fit(opened.model.train(), task, material, plan, folder, device)
    opened.model.save_pretrained(folder)
    opened.tokenizer.save_pretrained(folder)
    resume.finish(folder, inputs, made, ["model*.safetensors"])


def _collated(several: Sequence[Any], opened: Encoder) -> dict[str, "Tensor"]:
    """All options of all questions as sequences, and each question's number of options."""
    import torch

    pairs = [pair for options in several for pair in options]
    counts = torch.tensor([len(options) for options in several])
    return padded(pairs, opened.tokenizer.pad_token_id or 0, opened.types) | {"counts": counts}


def _logits(model: Any, read: dict[str, "Tensor"]) -> "Tensor":
    """Logits [questions, most options], -inf where a question has fewer.

    Sequences of similar length go through the network together: a step has long paragraphs and none side by side.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    features = {name: one for name, one in read.items() if name != "counts"}
    network, count = Encoder(model, None), len(read["input_ids"])
    pieces = [(rows, network.logits(some)) for rows, some in batches(features, count, BUDGET[model.device.type])]
    places = torch.tensor([row for rows, _ in pieces for row in rows])
    flat = torch.cat([logits for _, logits in pieces])[places.argsort().to(model.device)]
    return pad_sequence(
        list(torch.split_with_sizes(flat, read["counts"].tolist())), batch_first=True, padding_value=float("-inf")
    )
