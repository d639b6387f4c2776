"""The verbs of `ifqa train`: one for each kind of model."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import Given, print_line, settings_of_flags, show_help, with_options

UNIFIEDQA = "models/unifiedqa"  # and models/unifiedqa-DATASET
DevSplit = Annotated[str, typer.Option(help="Split of the same family that chooses the best checkpoint; '' for none.")]
FromExperiment = Annotated[str, typer.Option("--experiment", "-e", help="Take this experiment's retriever.")]
train = typer.Typer(
    help="Train a model; weights and manifest go to a folder.",
    invoke_without_command=True,
    callback=show_help,
)


#: What `--set` takes: an example, and the names. They stand here because a trainer's module takes seconds to import.
SETTINGS = {
    "extractive": (
        "epochs=3",
        "encoder, reading, start, average, epochs, rank, learning_rate, negatives, batch, dropout, "
        "practice, weight_decay, reading_epochs, reading_rate, reading_batch, device, checkpoint_every",
    ),
    "calibration": (
        "folds=3",
        "folds, passages, without_gold, false_abstentions, average, start, encoder, device",
    ),
    "rerank": (
        "epochs=3",
        "start, epochs, rank, learning_rate, negatives, pool, batch, weight_decay, device, checkpoint_every",
    ),
    "dense": (
        "epochs=3",
        "model, two_encoders, scale, epochs, batch, negatives, pool, shuffle_positives, learning_rate, "
        "warmup, weight_decay, clip, max_tokens, micro_batch, device, checkpoint_every",
    ),
    "fid": (
        "steps=500",
        "model, passages, gold, steps, batch, device_batch, micro_batch, recompute, learning_rate, "
        "warmup, weight_decay, clip, max_tokens, titles, evaluate_every, device",
    ),
    "rag": (
        "steps=500",
        "model, passages, gold, steps, batch, device_batch, micro_batch, recompute, learning_rate, "
        "warmup, weight_decay, clip, max_tokens, titles, temperature, temperature_rate, evaluate_every, "
        "device",
    ),
    "unifiedqa": (
        "steps=500",
        "model, passages, steps, batch, device_batch, recompute, learning_rate, warmup, weight_decay, "
        "clip, max_tokens, max_target, titles, evaluate_every, device",
    ),
    "llm": (
        "epochs=3",
        "prompt, passages, alone, epochs, rank, learning_rate, batch, device_batch, beta, max_tokens, "
        "device, checkpoint_every",
    ),
    "adaboost": (
        "rounds=50",
        "rounds, depth, least",
    ),
    "decomp-attn": (
        "epochs=3",
        "epochs, batch, learning_rate, hidden, dropout, augment, symmetry, transitivity, device, checkpoint_every",
    ),
    "choice": (
        "epochs=3",
        "encoder, paragraph, explanation, epochs, batch, learning_rate, warmup, weight_decay, max_tokens, "
        "augment, symmetry, transitivity, device, checkpoint_every",
    ),
}


def _training(
    what: str, folder: str, corpus: str | None = "ifqa-gold-train", benchmark: str = "ifqa", split: str = "full-train"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator with the options of every training; the verb gets them as `given`, for `ifqa.pipeline.train.train`.

    Without a `corpus` the training passages are the texts that come with the questions; with None there is no option for it.
    """
    options: dict[str, object] = {
        "benchmark": (Annotated[str, typer.Option(help="Benchmark to train on.")], benchmark),
        "split": (Annotated[str, typer.Option(help="Its training split.")], split),
        "corpus": (
            Annotated[str, typer.Option(help="Corpus whose BM25 index the training passages come from.")]
            if corpus
            else Annotated[
                str, typer.Option(help="Take passages from this corpus's BM25 index; none: the questions' own texts.")
            ],
            corpus,
        ),
        "folder": (
            Annotated[Path, typer.Option("--to", help="Folder for the weights and their manifest.")],
            Path(folder),
        ),
        "seed": Annotated[
            int | None, typer.Option(help="Seed of initialisation, order and draws; else the training's default.")
        ],
        "settings": Annotated[
            list[str] | None,
            typer.Option("--set", help=f"Change a setting, as {SETTINGS[what][0]}: {SETTINGS[what][1]}. Repeatable."),
        ],
    }
    if corpus is None:
        del options["corpus"]

    def arguments(given: Given) -> dict[str, object]:
        return {"given": {"corpus": ""} | given | {"settings": settings_of_flags(given["settings"])}}

    return with_options(options, arguments)


@train.command("extractive")
@_training("extractive", "models/extractive")
def train_extractive(
    given: Given,
    reading: Annotated[
        list[Path] | None,
        typer.Option(
            help="Reading questions to train on first: SQuAD's .json, or rows (.jsonl, .json) with question, context and "
            "answers, packed or not. Repeatable."
        ),
    ] = None,
) -> None:
    """Train the span reader on all-MiniLM-L6-v2, or on another encoder: --set encoder=all-mpnet-base-v2."""
    given["settings"] |= {"reading": [str(path) for path in reading]} if reading else {}
    _train("extractive", given)


@train.command("calibration")
@_training("calibration", "models/extractive")
def train_calibration(given: Given) -> None:
    """Fit the span reader's confidence, on folds of its training questions; --to names its weights."""
    _train("calibration", given)


@train.command("rerank")
@_training("rerank", "models/rerank")
def train_rerank(given: Given) -> None:
    """Train the reranker: a cross-encoder, as an adapter on all-MiniLM-L6-v2."""
    _train("rerank", given)


@train.command("dense")
@_training("dense", "models/dense")
def train_dense(
    given: Given,
    recipe: Annotated[
        str, typer.Option(help="small (one encoder, fits a CPU) or dpr (as published; needs a GPU).")
    ] = "small",
) -> None:
    """Train a dense retriever with in-batch negatives and hard negatives from BM25."""
    _train("dense", given, recipe)


@train.command("fid")
@_training("fid", "models/fid", corpus="ifqa-gold")
def train_fid(
    given: Given,
    recipe: Annotated[str, typer.Option(help="ifqa (one GPU; not tuned) or published (FiD-large's).")] = "ifqa",
    dev: DevSplit = "full-dev",
    experiment: FromExperiment = "",
) -> None:
    """Train Fusion-in-Decoder, a T5, on retrieved passages; torchrun -m ifqa for several GPUs."""
    _train("fid", given | {"dev": dev, "experiment": experiment}, recipe)


@train.command("rag")
@_training("rag", "models/rag", corpus="ifqa-gold")
def train_rag(
    given: Given,
    mode: Annotated[
        str, typer.Option(help="sequence (a passage for the whole answer) or token (one for each of its tokens).")
    ] = "sequence",
    dev: DevSplit = "full-dev",
    experiment: FromExperiment = "",
) -> None:
    """Train RAG: a T5, and the temperature of the retrieval scores, by the marginal likelihood of the answers."""
    given["settings"] = {"mode": mode} | given["settings"]
    _train("rag", given | {"dev": dev, "experiment": experiment})


@train.command("unifiedqa")
@_training("unifiedqa", UNIFIEDQA, corpus="", benchmark="causalqa", split="original-train")
def train_unifiedqa(
    given: Given,
    dataset: Annotated[
        str,
        typer.Option(help="Only this part of the split, SPLIT/DATASET; its weights go to models/unifiedqa-DATASET."),
    ] = "",
    dev: Annotated[
        str, typer.Option(help="Split of the same family that chooses the best checkpoint; none: the last is kept.")
    ] = "",
    experiment: FromExperiment = "",
) -> None:
    """Train UnifiedQA, a T5 that reads question and context as one text, as CausalQA did; needs a GPU."""
    if dataset:
        given["split"] = f"{given['split']}/{dataset}"
        dev = f"{dev}/{dataset}" if dev else ""
        if given["folder"] == Path(UNIFIEDQA):
            given["folder"] = Path(f"{UNIFIEDQA}-{dataset}")
    _train("unifiedqa", given | {"dev": dev, "experiment": experiment})


@train.command("llm")
@_training("llm", "models/llm")
def train_llm(
    given: Given,
    method: Annotated[
        str, typer.Option(help="sft (learn the answers) or dpo (prefer them to those of the real world).")
    ] = "sft",
    model: Annotated[
        str, typer.Option(help="Model to tune: smollm2, a GGUF file, a folder, a hub's name, or an adapter's folder.")
    ] = "smollm2",
) -> None:
    """Tune a language model for the reader 'llm', as an adapter: --model FOLDER then reads with it."""
    given["settings"] = {"method": method, "model": model} | given["settings"]
    _train("llm", given)


@train.command("adaboost")
@_training("adaboost", "models/adaboost", corpus=None, benchmark="wiqa", split="train")
def train_adaboost(given: Given) -> None:
    """Train boosted trees over the words of change and effect, for questions of multiple choice."""
    _train("adaboost", given)


@train.command("decomp-attn")
@_training("decomp-attn", "models/decomp-attn", corpus=None, benchmark="wiqa", split="train")
def train_decomp_attn(given: Given) -> None:
    """Train decomposable attention on change and effect, for questions of multiple choice."""
    _train("decomp-attn", given)


@train.command("choice")
@_training("choice", "models/choice", corpus=None, benchmark="wiqa", split="train")
def train_choice(given: Given) -> None:
    """Train an encoder that scores each option of a question, with or without its paragraph."""
    _train("choice", given)


def _train(what: str, given: Given, recipe: str = "") -> None:
    from ifqa.pipeline.train import train as make

    settings = ({"recipe": recipe} if recipe else {}) | given.pop("settings")
    print_line(make(what, **given, settings=settings))
