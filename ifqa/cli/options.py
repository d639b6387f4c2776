"""Arguments and options that several verbs of the command line share, and how they change an experiment."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from ifqa.config.flags import FLAGS, TYPES, Commands
from ifqa.errors import IfqaError
from ifqa.formatting import CONTROLS, printable_line
from ifqa.progress import hide_progress

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run


def complete_names(folder: str) -> Callable[[str], list[str]]:
    """A shell completion for names of files in "experiments" or "indexes"."""

    def complete(prefix: str) -> list[str]:
        from ifqa.storage.resources import list_resources

        return [name for name in sorted(list_resources(folder, ".toml")) if name.startswith(prefix)]

    return complete


CorpusName = Annotated[
    str, typer.Argument(help="Corpus: a file indexes/NAME.toml.", autocompletion=complete_names("indexes"))
]
ExperimentName = Annotated[
    str, typer.Argument(help="Experiment: a file experiments/NAME.toml.", autocompletion=complete_names("experiments"))
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on stderr.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
Processes = Annotated[int | None, typer.Option("--workers", min=0, help="Processes to work with; 0: all cores.")]
Engine = Annotated[str | None, typer.Option("--engine", help="local, or ray for a cluster.")]
Splits = Annotated[
    list[str] | None,
    typer.Option("--split", help="Also look at the gold passages of this split: full-dev. Repeatable."),
]
OfBenchmark = Annotated[str, typer.Option("--benchmark", help="Benchmark of the questions.")]
_SET = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting: reader.passages=10, llm.model=gpt-4.1-mini. Repeatable."),
]
Docs = Annotated[Path | None, typer.Option("--docs", help="A folder of documents, or a file, to search instead.")]
_DOCS: dict[str, object] = {
    "docs": Docs,
    "include": Annotated[
        list[str] | None, typer.Option("--include", help="With --docs: only files of this pattern. Repeatable.")
    ],
    "exclude": Annotated[
        list[str] | None, typer.Option("--exclude", help="With --docs: no files of this pattern. Repeatable.")
    ],
}
Values = dict[str, Any]  # options by name; typer has converted the values as their annotations say
Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def with_options(options: Mapping[str, object], arguments: Callable[[Values], dict[str, object]]) -> Decorator:
    """A decorator that gives a verb several options, and makes some of its arguments from them.

    Args:
        options: name -> annotation, or (annotation, default); the default is else None.
        arguments: a function from the options' values, by name, to the arguments of the verb that have no annotation of typer.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def decorated(**rest: object) -> None:
            values = {name: rest.pop(name) for name in options}
            verb(**rest, **arguments(values))

        every = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for parameter in signature(verb).parameters.values()
            if get_origin(parameter.annotation) is Annotated
        ]
        for name, option in options.items():
            annotation, default = option if isinstance(option, tuple) else (option, None)
            every.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
        decorated.__signature__ = Signature(every)  # type: ignore[attr-defined]
        decorated.__annotations__ = {
            parameter.name: parameter.annotation for parameter in every
        }  # which typer evaluates
        return decorated

    return decorate


def with_changes(command: Commands) -> Decorator:
    """A decorator that gives a verb its flags and --set; the verb gets the changed settings as the argument `changes`."""
    return with_options(_flags(command), lambda values: {"changes": _changes(values)})


def with_run(command: Commands) -> Decorator:
    """A decorator as `with_changes`, with the name of an experiment; the verb gets its run as the argument `run`."""
    options = {"experiment": (ExperimentName, "sample"), **_flags(command)}
    return with_options(options, lambda values: {"run": changed_run(values.pop("experiment"), _changes(values))})


def with_search(experiment: object) -> Decorator:
    """A decorator as `with_run`, with --docs; the verb gets the names of the changed settings, too, as `changed`."""

    def arguments(values: Values) -> dict[str, object]:
        name, docs, include, exclude = (values.pop(key) for key in ("experiment", *_DOCS))
        changes = _changes(values)
        if docs is not None and "corpus" in changes:
            raise IfqaError("--docs and --corpus are given; wanted one of them")
        if docs is None and (include or exclude):
            raise IfqaError("--include and --exclude are for --docs; wanted: --docs FOLDER --include PATTERN")
        run = changed_run(name, changes)
        if docs is not None:
            from ifqa.config.corpus import ensure_docs_corpus
            from ifqa.config.overrides import override

            corpus = ensure_docs_corpus(docs, run.experiment, include or (), exclude or ())
            run = type(run)(override(run.experiment, {"corpus": corpus}))
        return {"run": run, "changed": [*changes]}

    return with_options({"experiment": (experiment, "sample"), **_DOCS, **_flags("ask")}, arguments)


def _flags(command: Commands) -> dict[str, object]:
    """The annotations from which typer makes the flags of command, and --set."""
    flags: dict[str, object] = {
        name: Annotated[TYPES[name] | None, typer.Option(f"--{name.replace('_', '-')}", help=flag.help, min=flag.least)]
        for name, flag in FLAGS.items()
        if command in flag.commands
    }
    return flags | {"settings": _SET}


def _changes(values: Values) -> dict[str, object]:
    by_set = settings_of_flags(values.pop("settings"))
    changed = {FLAGS[name].setting: value for name, value in values.items() if value is not None}
    if twice := sorted(changed.keys() & by_set.keys()):
        raise IfqaError(f"{twice[0]} is given twice: {changed[twice[0]]} by a flag, {by_set[twice[0]]} by --set")
    return changed | by_set


def changed_run(name: str, changes: Mapping[str, object]) -> "Run":
    """The run of an experiment, changed by flags."""
    from ifqa.config.experiment import load_experiment
    from ifqa.config.overrides import override
    from ifqa.pipeline.run import Run

    return Run(override(load_experiment(name), changes))


def settings_of_flags(pairs: list[str] | None) -> dict[str, object]:
    """`KEY=VALUE` flags as settings. A value is read as TOML; if it is not TOML, it is a text."""
    import tomllib

    changes: dict[str, object] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise IfqaError(f"--set wants KEY=VALUE, found {pair!r}")
        try:
            changes[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            changes[key] = value
        except (ValueError, RecursionError) as error:  # 5,000 digits, or as many brackets
            raise IfqaError(
                f"--set {pair:.80}…: wanted a value in TOML, or a text; found a value that is too large"
            ) from error
    return changes


def with_workers(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options --workers and --engine; it gets them as the argument `workers`."""
    number = typer.Option("--workers", min=0, help="Processes that retrieve or read: 1 if not given; 0: one a core.")

    def chosen(values: Values) -> dict[str, object]:
        from ifqa.workers.pool import Workers

        number, engine = values["number"], values["engine"]
        return {"workers": Workers(int(engine == "local") if number is None else number, engine)}

    return with_options({"number": Annotated[int | None, number], "engine": (Engine, "local")}, chosen)(verb)


def with_quiet(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the option --quiet."""

    def apply_quiet(values: Values) -> dict[str, object]:
        if values["quiet"]:  # else --quiet before the verb holds
            hide_progress()
        return {}

    return with_options({"quiet": (Quiet, False)}, apply_quiet)(verb)


def show_help(context: typer.Context) -> None:
    """Show the help of a group of verbs if no verb is given; this is no error."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def refuse_broken_text(arguments: Sequence[str]) -> None:
    """Raise IfqaError for an argument that is not UTF-8: Python reads it as half a surrogate pair, which cannot be written."""
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise IfqaError(f"argument {number} is not valid UTF-8: {argument!a:.80}") from error


def print_line(text: object) -> None:
    """A name, a path or a message as one line on stdout, without characters that could steer a terminal."""
    print(printable_line(str(text)))


def print_json(result: object) -> None:
    """A result as one line of JSON on stdout; characters that could steer a terminal are escaped."""
    import json

    print(CONTROLS.sub(lambda control: json.dumps(control[0])[1:-1], json.dumps(result, ensure_ascii=False)))
