"""Arguments and options that several verbs of the command line take, and what they change of an experiment."""

from typing import Annotated, Any

import typer

from ifqa.errors import IfqaError

CorpusName = Annotated[str, typer.Argument(help="Corpus: a file indexes/NAME.toml.")]
ExperimentName = Annotated[str, typer.Option("--experiment", "-e", help="Experiment to work on.")]
K = Annotated[int | None, typer.Option("--k", help="Passages to retrieve for each question.")]
RetrieverName = Annotated[str | None, typer.Option("--retriever", help="Retriever: a name, or my_module:Class.")]
ReaderName = Annotated[str | None, typer.Option("--reader", help="Reader: a name, or my_module:Class.")]
CheckpointName = Annotated[
    str | None, typer.Option("--checkpoint", help="Weights of the reader: a folder, or a model of the hub.")
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Prompt of the reader 'llm': a file prompts/NAME.toml.")]
Model = Annotated[str | None, typer.Option("--model", help="Language model that is asked.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", min=0, help="US dollars this run may cost; 0: no cap.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=0, help="Tokens this run may take; 0: no cap.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Only the first N questions; scores say PARTIAL.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting: retriever.k1=1.2, reader.passages=10. Repeatable.")
]

_FLAGS = {  # what of an experiment a flag changes
    "k": "k", "limit": "limit", "retriever": "retriever", "reader": "reader", "passages": "reader.passages",
    "checkpoint": "reader.checkpoint", "prompt": "reader.prompt", "model": "llm.model", "max_cost": "llm.max_cost",
    "max_tokens": "llm.max_total_tokens",
}  # fmt: skip


def changed_experiment(experiment: str, settings: list[str] | None, **flags: Any) -> Any:
    """An experiment as the flags of a verb change it."""
    from ifqa.config.experiment import load_experiment
    from ifqa.config.variants import override

    return override(load_experiment(experiment), changes_of_flags(settings, **flags))


def changes_of_flags(settings: list[str] | None, **flags: Any) -> dict[str, Any]:
    """What flags change of an experiment; a flag that is not one of an experiment's settings is passed over."""
    changes = {_FLAGS[name]: value for name, value in flags.items() if name in _FLAGS and value is not None}
    told = settings_of_flags(settings)
    if twice := sorted(changes.keys() & told.keys()):
        raise IfqaError(
            f"{twice[0]} is given twice: {changes[twice[0]]} by a flag of its own, {told[twice[0]]} by --set"
        )
    return changes | told


def settings_of_flags(pairs: list[str] | None) -> dict[str, Any]:
    """`KEY=VALUE` flags as settings: a value is read as TOML, or is the text itself."""
    import tomllib

    changes: dict[str, Any] = {}
    for pair in pairs or []:
        key, found, value = pair.partition("=")
        if not found or not key:
            raise IfqaError(f"--set wants KEY=VALUE, found {pair!r}")
        try:
            changes[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            changes[key] = value
    return changes
