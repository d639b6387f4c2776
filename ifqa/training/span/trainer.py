"""Training the extractive reader (`ifqa.reading.span.reader`): reading questions first, then counterfactual questions."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.formats.questions import read_questions
from ifqa.models.encoders import Found, find_encoder
from ifqa.models.hub import NAME
from ifqa.progress import say
from ifqa.protocols import Place
from ifqa.reading.span.weights import encoder_of, identity_of, load_average, manifest_of
from ifqa.records import Question
from ifqa.settings import Natural, NotNegative, Positive, checked
from ifqa.storage.files import sha256
from ifqa.training import resume
from ifqa.training.material import Material
from ifqa.training.span.examples import Example, batches
from ifqa.training.span.fitting import Schedule
from ifqa.training.span.phase import begin, finished, network, trained
from ifqa.training.span.practice import practice_questions

READING = "reading"  # the folder of the first phase, in that of the training
SEEDS = "seeds"  # that of the trainings that are averaged
#: The heads' rate in the first phase, times the encoder's, whose weights need smaller steps than fresh heads.
_HEADS = 5.0
_WORDS = 190  # of a reading question's context; more do not fit the reader


@checked("training setting", given=["material", "folder", "progress"])
def train(
    material: Material,
    folder: Path,
    *,
    encoder: Place = NAME,
    reading: Sequence[Place] = (),
    start: Place = "",
    seed: Natural = 0,
    average: Positive = 1,
    epochs: Positive = 4,
    rank: Positive = 64,
    learning_rate: NotNegative = 5e-4,
    negatives: Natural = 1,
    batch: Positive = 8,
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1,
    practice: Natural = 2,
    weight_decay: NotNegative = 0.01,
    reading_epochs: Positive = 2,
    reading_rate: NotNegative = 1.5e-4,
    reading_batch: Positive = 16,
    device: str = "cpu",
    checkpoint_every: Positive = 100,
    progress: Callable[[str], None] = say,
) -> dict[str, Any]:
    """Train, and write `adapter.safetensors`, `heads.safetensors` and `manifest.json` (see `ifqa.reading.span.weights`).

    An interrupted training resumes from the checkpoint in `folder` and ends in the same weights: all draws depend only on
    the seed and the number of the step. The checkpoint is removed after the manifest is written.

    Args:
        material: questions are left out if no gold passage contains the answer or a span near it, and the answer cannot be
            computed. Negatives are drawn from the rankings. The rankings should hold passages of the same kind as the
            gold passages, as BM25 over the gold passages of all training questions gives, or the network learns to tell
            the two kinds apart. A question's own gold passages and passages that contain an answer are no negatives.
        encoder: what is trained: "all-MiniLM-L6-v2", "all-mpnet-base-v2", or a folder with a BERT or an MPNet
            (`ifqa.models.encoders`).
        reading: files of reading questions, as `ifqa.formats.questions.read_questions` reads them, each with its passage and
            its answer in it. They are trained on before the questions of `material`, with all weights of the encoder's layers,
            and the result is kept in the folder `reading` in `folder`, from which another training can start.
        start: a folder that such a training wrote, to start from instead.
        average: trainings after the reading questions, each with the next seed, whose weights are averaged (Wortsman et al. 2022,
            "Model soups"). They lie in the folder `seeds` until the last is done.
        practice: practice questions per training passage (`ifqa.training.span.practice`), trained on once before the real ones.
        seed, epochs, rank, learning_rate, negatives, batch, dropout, weight_decay: seed of all draws, passes over the data,
            rank of what is stored, highest rate of AdamW (reached after a tenth of the steps, then linear to 0), negatives per
            question in each pass, questions per step, share of features dropped, AdamW's decay.
        reading_epochs, reading_rate, reading_batch: the same of the reading questions. The heads' rate is five times as high.
        device: "cpu" or "cuda". The bundled weights were trained on a CPU that multiplies in bfloat16; on other hardware
            the last digits differ, and so do a few answers.
        checkpoint_every: steps between checkpoints.
        progress: called with a line at each checkpoint; a progress bar is shown on stderr as well.

    Returns:
        The manifest.

    Raises:
        IfqaError: nothing to train on, a setting out of range, a file of reading questions is missing or has another layout,
            `start` was trained on another split family or encoder, an average has no start, the encoder is not here and cannot be
            fetched, or `folder` holds another training, finished or not.
    """
    _refuse(material, folder, reading, start, average, encoder)
    questions, rankings = material.questions, material.rankings
    own = find_encoder(encoder)
    examples = [Example(own.folder, question, ranking) for question, ranking in zip(questions, rankings, strict=True)]
    examples = [example for example in examples if example.has_target]
    if reading:
        start = str(folder / READING)
        _read(
            [Path(one) for one in reading], Path(start), own, device, checkpoint_every, progress,
            {"seed": seed, "epochs": reading_epochs, "learning_rate": reading_rate, "batch": reading_batch,
             "dropout": dropout, "weight_decay": weight_decay, "rank": rank},
        )  # fmt: skip
    before = manifest_of(Path(start)) if start else {}
    each: dict[str, Any] = {
        "epochs": epochs, "rank": rank, "learning_rate": learning_rate, "negatives": negatives, "batch": batch,
        "dropout": dropout, "practice": practice, "weight_decay": weight_decay,
    }  # fmt: skip
    inputs = {
        "reader": "extractive",
        "encoder": own.identity,
        "family": material.family,
        "sources": material.sources,
        "settings": {"seed": seed, "average": average, **each},
        "questions": resume.identity(questions, rankings),
    } | ({"start": {"sha256": identity_of(Path(start)), "trained": before}} if start else {})
    if not begin(folder, inputs, progress):
        return manifest_of(folder)
    if average > 1:
        several = [folder / SEEDS / str(one) for one in range(seed, seed + average)]
        each |= {
            "encoder": encoder,
            "start": start,
            "device": device,
            "checkpoint_every": checkpoint_every,
            "progress": progress,
        }
        each_made = [train(material, one, seed=int(one.name), **each) for one in several]
        model = network(own, "", seed, dropout)
        load_average(model, several)
        manifest = finished(
            model, folder, inputs, {key: each_made[0][key] for key in ("examples", "steps", "precision")}
        )
        for one in several:
            shutil.rmtree(one)
        return manifest
    texts = list(dict.fromkeys(text for question in questions for text in question.gold_passages))
    made_up = practice_questions(texts, seed, practice) if practice else ()
    warm_up = [Example(own.folder, question) for question in made_up]
    rounds = [[example for example in warm_up if example.has_target], *[examples] * epochs]
    model = network(own, start, seed, dropout)
    model.encoder.add_adapters(rank, torch.Generator().manual_seed(seed))
    plan = Schedule(
        seed,
        sum(-(-len(some) // batch) for some in rounds),
        learning_rate,
        1.0,
        weight_decay,
        negatives,
        checkpoint_every,
    )
    progress(f"{len(examples)} of {len(questions)} questions have a target; {plan.steps} steps")
    groups = chain.from_iterable(
        batches(some, batch, f"{seed} {number}", _length) for number, some in enumerate(rounds)
    )
    return trained(model, groups, lambda one: one, plan, folder, inputs, device, progress, {"examples": len(examples)})


def refuse(
    material: Material, folder: Path, *, reading: Sequence[Place] = (), start: Place = "", average: int = 1,
    encoder: Place = NAME, **_: object,
) -> None:  # fmt: skip
    """Raise the errors of `train` that need no rankings, before passages are retrieved; the arguments are those of `train`."""
    _refuse(material, folder, reading, start, average, encoder)
    _reading_questions([Path(one) for one in reading])


def _refuse(
    material: Material, folder: Path, reading: Sequence[Place], start: Place, average: int, encoder: Place
) -> None:
    if reading and start:
        raise IfqaError("wanted reading questions or a start, found both; a start has read its questions already")
    if average > 1 and not (reading or start):
        raise IfqaError(
            f"average = {average}: wanted a common start of what is averaged; name --reading FILE or --set start=FOLDER"
        )
    own = find_encoder(encoder)
    if not any(Example(own.folder, question).has_target for question in material.questions):
        raise IfqaError(
            f"none of {len(material.questions)} training questions has its answer in a gold passage; wanted annotated questions"
        )
    resume.refuse_strangers(folder)
    if start:
        family, _ = manifest_of(Path(start))["family"], identity_of(Path(start))
        if family not in ("", material.family):
            raise IfqaError(
                f"{start} was trained on {family}; wanted a start that was not, or was on {material.family}"
            )
        encoder_of(Path(start), encoder)


def _reading_questions(files: Sequence[Path]) -> tuple[list[Question], int]:
    """The questions of files whose passages fit the reader, and how many there are in all; none without files."""
    several = [one for path in files for one in read_questions(path)]
    asked = [
        one for one in several if one.gold_passages and all(len(text.split()) <= _WORDS for text in one.gold_passages)
    ]
    if files and not asked:
        raise IfqaError(
            f"{files[0]}: none of {len(several)} reading questions has a passage of at most {_WORDS} words; wanted rows with "
            "question, context and answers"
        )
    return asked, len(several)


def _read(
    files: Sequence[Path], folder: Path, own: Found, device: str, checkpoint_every: int, progress: Callable[[str], None],
    chosen: dict[str, Any],
) -> None:  # fmt: skip
    """The first phase: train all weights of the encoder's layers on reading questions."""
    asked, count = _reading_questions(files)
    progress(f"{len(asked):,} of {count:,} reading questions have a passage of at most {_WORDS} words")
    inputs = {
        "reader": "extractive",
        "encoder": own.identity,
        "family": "",
        "sources": {path.name: sha256(path) for path in files},
        "rows": _counted(asked, "source"),
        "licences": _counted(asked, "licence"),
        "settings": chosen,
    }
    if not begin(folder, inputs, progress):
        return
    model = network(own, "", chosen["seed"], chosen["dropout"])
    model.encoder.train_layers()
    size, seed = chosen["batch"], chosen["seed"]
    plan = Schedule(
        seed, chosen["epochs"] * -(-len(asked) // size), chosen["learning_rate"], _HEADS, chosen["weight_decay"], 0,
        checkpoint_every,
    )  # fmt: skip
    groups = chain.from_iterable(
        batches(asked, size, f"{seed} reading {number}", _characters) for number in range(chosen["epochs"])
    )
    trained(
        model, groups, partial(Example, own.folder), plan, folder, inputs, device, progress, {"examples": len(asked)}
    )


def _length(example: Example) -> int:
    return example.length


def _characters(question: Question) -> int:
    return len(question.text) + max(map(len, question.gold_passages))


def _counted(questions: Sequence[Question], label: str) -> dict[str, int]:
    """The number of questions of each value of a label."""
    return dict(sorted(Counter(one.label(label) or "not named" for one in questions).items()))
