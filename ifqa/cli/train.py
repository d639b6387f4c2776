"""The verbs of `ifqa train`, generated from the trainers' docstrings, settings and defaults."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option
from typer.main import get_command

from ifqa.cli.options import lazy_group, print_line, settings_of_flags, with_options, with_quiet
from ifqa.errors import ConfigError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from ifqa.protocols import Trainer

_NONE, _LAST = "'' for no split.", "without it, the last one is kept."
_CORPUS = "Corpus whose BM25 index the training passages come from."
_TEXTS = (
    "Take passages from this corpus's BM25 index; without it, take the texts that come with the "
    "questions."
)
_SEED = (
    "Seed for initialisation, the order of examples and random choices; the trainer has a default."
)
_SEEDS = (
    "Train once for each of N seeds, from --seed on. Weights go to FOLDER-SEED, or where --to has "
    "{seed}."
)
_HELP = "Train a model; weights and manifest go to a folder."


def _names() -> Mapping[str, str]:
    from ifqa.plugins import plugin_names

    return plugin_names("trainer")


train = lazy_group(
    _HELP, _names, lambda name: _verb(name) if name in _names() or ":" in name else None
)


def _verb(name: str) -> Any:
    from ifqa.plugins import load_plugin
    from ifqa.settings import setting_fields

    trainer = load_plugin("trainer", name)
    fields = setting_fields(trainer.Settings)
    folder = Path(trainer.folder or f"models/{name.rpartition(':')[2]}")
    flags = {setting: flag for setting, field in fields.items() if (flag := _flag(field))}

    def arguments(values: dict[str, Any]) -> dict[str, object]:
        settings = {key: values.pop(key) for key in [*flags, "recipe", "seed"] if key in values}
        settings = {key: value for key, value in settings.items() if value not in (None, [])}
        seeds = values.pop("seeds", None)
        if seeds is not None and seeds < 1:
            raise ConfigError(f"--seeds {seeds}: wanted a whole number from 1")
        values["settings"] = settings | settings_of_flags(values.pop("settings", None))
        if part := values.pop(trainer.part, ""):
            values |= {key: f"{values[key]}/{part}" for key in ("split", "dev") if values.get(key)}
            if values["folder"] == folder:
                values["folder"] = Path(f"{folder}-{part}")
        return {"runs": _seeded(values, seeds) if seeds else [values]}

    def verb(runs: Any) -> None:
        from ifqa.pipeline.train import train as run

        for values in runs:
            print_line(run(name, **values))

    app = typer.Typer(add_completion=False)
    options = flags | _options(
        trainer, folder, {key: fields[key] for key in fields if key not in flags}
    )
    summary = " ".join((trainer.__doc__ or "").partition("\n\n")[0].split())
    app.command(name, help=summary)(with_quiet(with_options(options, arguments)(verb)))
    return get_command(app)


def _seeded(values: dict[str, Any], seeds: int) -> list[dict[str, Any]]:
    """The arguments of a training for each of several seeds, each with a folder of its own."""
    from ifqa.config.sweep import SEED

    folder = str(values["folder"])
    pattern = folder if SEED in folder else f"{folder}-{SEED}"
    first = int(values["settings"].get("seed", 0))
    return [
        values
        | {
            "folder": Path(pattern.replace(SEED, str(seed))),
            "settings": values["settings"] | {"seed": seed},
        }
        for seed in range(first, first + seeds)
    ]


def _options(
    trainer: "type[Trainer]", folder: Path, settings: Mapping[str, "FieldInfo"]
) -> dict[str, object]:
    """The options other than the flags of single settings."""
    recipes = " or ".join(f"{name} ({recipe.about})" for name, recipe in trainer.recipes.items())
    part = (
        f"Train only on this part of the split; the weights go to {folder}-{trainer.part.upper()}."
    )
    dev = (
        "Split of the same family on which the best checkpoint is chosen; "
        f"{_NONE if trainer.dev else _LAST}"
    )
    by_set = {name: field.default for name, field in settings.items() if name != "seed"}
    example = next(
        (name for name, default in by_set.items() if type(default) in (int, float)), "NAME"
    )
    change = (
        f"Change a setting, such as {example}=3; the settings are {', '.join(by_set)}. Repeatable."
    )
    rows: list[tuple[object, str, Any, str, object, tuple[str, ...]]] = [
        (recipes, "recipe", str, f"{recipes}.", next(iter(trainer.recipes), ""), ()),
        (trainer.part, trainer.part, str, part, "", ()),
        (trainer.dev is not None, "dev", str, dev, trainer.dev, ()),
        (
            trainer.takes_experiment,
            "experiment",
            str,
            "Take the passages that this experiment retrieves.",
            "",
            ("--experiment", "-e"),
        ),
        (True, "benchmark", str, "Benchmark to train on.", trainer.benchmark, ()),
        (True, "split", str, "Split to train on.", trainer.split, ()),
        (
            trainer.corpus is not None,
            "corpus",
            str,
            _CORPUS if trainer.corpus else _TEXTS,
            trainer.corpus,
            (),
        ),
        (True, "folder", Path, "Folder for the weights and their manifest.", folder, ("--to",)),
        ("seed" in settings, "seed", int | None, _SEED, None, ()),
        ("seed" in settings, "seeds", int | None, _SEEDS, None, ()),
        (by_set, "settings", list[str] | None, change, None, ("--set",)),
    ]
    used = (row[1:] for row in rows if row[0])
    return {
        name: (Annotated[kind, Option(*flags, help=text)], default)
        for name, kind, text, default, flags in used
    }


def _flag(field: "FieldInfo") -> object:
    """The option of a setting that has its own flag; else None."""
    from ifqa.protocols import TrainerFlag

    if not any(isinstance(mark, TrainerFlag) for mark in field.metadata):
        return None
    text = " ".join((field.description or "").partition("\n\n")[0].split())
    if isinstance(field.default, tuple):
        return Annotated[list[str] | None, Option(help=f"{text} Repeatable.")], None
    return Annotated[str, Option(help=text)], field.default
