"""Arguments and options that the verbs share, and the run of an experiment that they describe."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer
from typer import Argument, Option
from typer.core import TyperCommand, TyperGroup

from ifqa.config.flags import FLAGS, ONE_VALUE, TYPES, Commands
from ifqa.errors import ConfigError
from ifqa.formatting import CONTROLS, printable_line
from ifqa.progress import hide_progress

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run
    from ifqa.report.score_table import NamedRow


def complete_names(folder: str) -> Callable[[str], list[str]]:
    """A shell completion for names of files in "experiments" or "indexes"."""

    def complete(prefix: str) -> list[str]:
        from ifqa.storage.resources import list_resources

        return [name for name in sorted(list_resources(folder, ".toml")) if name.startswith(prefix)]

    return complete


complete_experiments = complete_names("experiments")
CorpusName = Annotated[
    str, Argument(help="A file indexes/NAME.toml.", autocompletion=complete_names("indexes"))
]
ExperimentName = Annotated[
    str, Argument(help="A file experiments/NAME.toml.", autocompletion=complete_experiments)
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress on stderr.")]
Json = Annotated[bool, Option("--json", help="Print the result as one line of JSON.")]
Processes = Annotated[
    int | None, Option("--workers", min=0, help="Number of worker processes; 0 for one per core.")
]
Engine = Annotated[str | None, Option(help="Where the work runs: local, or ray for a cluster.")]
Repeated = list[str] | None
OfBenchmark = Annotated[str, Option(help="Benchmark of the questions.")]
_SET = Annotated[
    Repeated, Option("--set", help="Change a setting, such as reader.passages=10. Repeatable.")
]
_SEEDS = Annotated[
    int | None,
    Option(
        min=1,
        help="Run once for each of N seeds, from --seed on; show mean and standard deviation.",
    ),
]
Docs = Annotated[
    list[Path] | None,
    Option(help="A folder of documents, or one file, to search instead of a corpus. Repeatable."),
]
_DOCS: dict[str, object] = {
    "docs": Docs,
    "include": Annotated[
        Repeated, Option(help="With --docs: read only files that match this pattern. Repeatable.")
    ],
    "exclude": Annotated[
        Repeated, Option(help="With --docs: skip files that match this pattern. Repeatable.")
    ],
    "max_mb": Annotated[
        float | None,
        Option(help="With --docs: skip files of more megabytes than this; 50 by default."),
    ],
    "ocr": (
        Annotated[bool, Option("--ocr", help="With --docs: read scanned PDF files with ocrmypdf.")],
        False,
    ),
}
Values = dict[str, Any]  # option -> its value, converted by typer
Verb = Callable[..., None]
Decorator = Callable[[Verb], Verb]


def with_options(
    options: Mapping[str, object], arguments: Callable[[Values], dict[str, object]]
) -> Decorator:
    """A decorator that adds options to a verb, and computes arguments of the verb from them.

    `options` maps a name to an annotation, or to (annotation, default); without a default, it is
    None. `arguments` computes those arguments of the verb that have no typer annotation, from the
    options' values.
    """

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def decorated(**rest: object) -> None:
            values = {name: rest.pop(name) for name in options}
            verb(**rest, **arguments(values))

        parameters = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for parameter in signature(verb).parameters.values()
            if get_origin(parameter.annotation) is Annotated
        ]
        for name, option in options.items():
            annotation, default = option if isinstance(option, tuple) else (option, None)
            parameters.append(
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )
        decorated.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        # Read by typer
        decorated.__annotations__ = {
            parameter.name: parameter.annotation for parameter in parameters
        }
        return decorated

    return decorate


def options_of(function: Callable[..., object]) -> dict[str, object]:
    """The parameters of a plugin's function, for `with_options`: a flag for each with a default, an
    argument for each without, unless its annotation says otherwise.
    """
    options: dict[str, object] = {}
    for name, parameter in signature(function, eval_str=True).parameters.items():
        kind: Any = parameter.annotation
        if kind is parameter.empty:
            kind = str
        if get_origin(kind) is not Annotated:
            kind = Annotated[kind, Argument() if parameter.default is parameter.empty else Option()]
        options[name] = (kind, parameter.default)
    return options


def with_changes(command: Commands) -> Decorator:
    """A decorator that adds the flags and --set.

    The verb gets the changed settings as the argument `changes`.
    """
    return with_options(_flags(command), lambda values: {"changes": _changes(values)})


def with_sweep(command: Commands) -> Decorator:
    """A decorator that adds the flags, each of which may have several values, --seeds and --set.

    The verb gets the values of each changed setting as the argument `values`, and `seeds`, 0
    without it. For typer, its class is `SweepCommand`.
    """
    options = {**_flags(command, several=True), "seeds": _SEEDS}

    def arguments(values: Values) -> dict[str, object]:
        seeds = values.pop("seeds") or 0
        return {"values": _swept_values(values), "seeds": seeds}

    return with_options(options, arguments)


class SweepCommand(TyperCommand):
    """A command whose repeatable options also take several values after one flag: `--k 5 10`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        kinds: dict[str, type] = {}
        for parameter in self.params:
            if getattr(parameter, "multiple", False):
                kind = TYPES.get(parameter.name, str)
                kinds |= dict.fromkeys(parameter.opts, str if kind is str else float)
        return super().parse_args(ctx, repeat_flags(args, kinds))


def repeat_flags(arguments: Sequence[str], kinds: Mapping[str, type]) -> list[str]:
    """The arguments with the flag before each of its values: `--k 5 10` as `--k 5 --k 10`.

    `kinds` has the type of each flag's values, float or str. A word after a value is another value,
    unless it names an experiment, or is no number where the flag wants one.
    """
    repeated: list[str] = []
    flag = ""  # whose values may follow
    values = 0  # of the flag so far
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*repeated, *arguments[number:]]
        is_flag = argument.startswith("-") and not _is_number(argument)
        if is_flag:
            name, equals, _ = argument.partition("=")
            flag = name if name in kinds else ""
            values = 1 if equals else 0
        elif flag and values and not _is_another_value(argument, kinds[flag]):
            flag = ""
        elif flag:
            repeated += [flag] if values else []
            values += 1
        repeated.append(argument)
    return repeated


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_another_value(text: str, kind: type) -> bool:
    from ifqa.storage.resources import find_resource

    if kind is float:
        return _is_number(text)
    name = text.removeprefix("experiments/").removesuffix(".toml")
    files = (f"experiments/{name}.toml", f"experiments/{name}/experiment.toml")
    return not any(map(find_resource, files))


def sweep_rows(
    experiments: Sequence[str], values: Mapping[str, Sequence[object]], seeds: int
) -> list["NamedRow"]:
    """The rows of a sweep over experiments, each named by its experiment and by what varies."""
    from ifqa.config.experiment import load_experiment
    from ifqa.config.sweep import sweep
    from ifqa.report.score_table import NamedRow

    rows = []
    for name in dict.fromkeys(experiments):
        experiment = load_experiment(name)
        for variation in sweep(experiment, values, seeds):
            label = variation.label or variation.experiments[0].display_name
            if variation.label and len(experiments) > 1:
                label = f"{experiment.display_name}, {label}"
            elif seeds and not variation.label:
                label = experiment.display_name
            rows.append(NamedRow(label, variation, name))
    return rows


def is_sweep(rows: Sequence["NamedRow"]) -> bool:
    """Whether rows are those of a sweep, and not each an experiment of its own."""
    return any(row.variation.label or row.variation.seeds for row in rows)


def rename_rows(
    rows: Sequence["NamedRow"], pairs: Sequence[str]
) -> tuple[list["NamedRow"], dict[str, str]]:
    """The rows with the names of NAME=TEXT pairs, and column -> title for the other pairs.

    A name may have "=" itself: the longest that fits is taken. ConfigError for a pair without "=".
    """
    from ifqa.report.score_table import matching_rows

    titles: dict[str, str] = {}
    renamed = list(rows)
    for pair in pairs:
        parts = pair.split("=")
        if len(parts) < 2 or not parts[0] or not parts[-1]:
            raise ConfigError(f"--names wants NAME=TEXT, such as bm25=BM25; found {pair!r}")
        for count in range(len(parts) - 1, 0, -1):
            name = "=".join(parts[:count])
            text = "=".join(parts[count:])
            if numbers := matching_rows(rows, name):
                for number in numbers:
                    renamed[number] = renamed[number]._replace(name=text)
                break
        else:
            titles[parts[0]] = "=".join(parts[1:])
    return renamed, titles


def with_run(command: Commands) -> Decorator:
    """A decorator that adds an experiment, the flags and --set.

    The verb gets the changed run as the argument `run`.
    """
    options = {"experiment": (ExperimentName, "sample"), **_flags(command)}
    return with_options(
        options, lambda values: {"run": changed_run(values.pop("experiment"), _changes(values))}
    )


def with_search(experiment: object) -> Decorator:
    """Like `with_run`, but also adds --docs.

    The verb also gets the keys of the changed settings, as `changed`.
    """

    def arguments(values: Values) -> dict[str, object]:
        name, docs, include, exclude, max_mb, ocr = (
            values.pop(key) for key in ("experiment", *_DOCS)
        )
        changes = _changes(values)
        if docs and "corpus" in changes:
            raise ConfigError("--docs and --corpus are given; wanted one of them")
        if not docs and (include or exclude or ocr or max_mb is not None):
            raise ConfigError(
                "--include, --exclude, --ocr and --max-mb are for --docs; wanted: --docs FOLDER "
                "--include PATTERN"
            )
        if max_mb is not None and not 0 < max_mb < math.inf:
            raise ConfigError(f"--max-mb {max_mb:g}: wanted more than 0 megabytes")
        run = changed_run(name, changes)
        if docs:
            from ifqa.config.corpus import ensure_docs_corpus
            from ifqa.config.overrides import override

            corpus = ensure_docs_corpus(
                docs, run.experiment, include or (), exclude or (), ocr, max_mb
            )
            run = type(run)(override(run.experiment, {"corpus": corpus}))
        return {"run": run, "changed": [*changes]}

    return with_options({"experiment": (experiment, "sample"), **_DOCS, **_flags("ask")}, arguments)


def _flags(command: Commands, several: bool = False) -> dict[str, object]:
    """The annotations of a command's flags and of --set, for typer; `several`: a flag may have
    several values.
    """
    annotations: dict[str, object] = {}
    for name, flag in FLAGS.items():
        if command in flag.commands:
            option = Option(f"--{name.replace('_', '-')}", help=flag.help, min=flag.minimum)
            kind: Any = TYPES[name]
            if several and name not in ONE_VALUE:
                kind = list[kind]
            annotations[name] = Annotated[kind | None, option]
    return {**annotations, "settings": _SET}


def _changes(values: Values) -> dict[str, object]:
    by_set = settings_of_flags(values.pop("settings"))
    by_flag = {FLAGS[name].setting: value for name, value in values.items() if value is not None}
    _refuse_both(by_flag, by_set)
    return by_flag | by_set


def _swept_values(options: Values) -> dict[str, list[object]]:
    """Setting -> its values; a setting that --set names several times has several, too."""
    by_set: dict[str, list[object]] = {}
    for key, value in _parse_pairs(options.pop("settings")):
        by_set.setdefault(key, []).append(value)
    by_flag: dict[str, list[object]] = {}
    for name, value in options.items():
        if value is not None and value != []:
            by_flag[FLAGS[name].setting] = value if isinstance(value, list) else [value]
    _refuse_both(by_flag, by_set)
    values = by_flag | by_set
    for key, each in values.items():
        for number, value in enumerate(each):
            if value in each[:number]:
                raise ConfigError(f"{key}: the value {value} is given twice; wanted it once")
    return values


def _refuse_both(by_flag: Mapping[str, object], by_set: Mapping[str, object]) -> None:
    """Refuse a setting that both a flag and --set give."""
    if common := sorted(by_flag.keys() & by_set.keys()):
        raise ConfigError(
            f"{common[0]} is given twice: {by_flag[common[0]]} by a flag, "
            f"{by_set[common[0]]} by --set"
        )


def changed_run(name: str, changes: Mapping[str, object]) -> "Run":
    """The run of an experiment with changed settings."""
    from ifqa.config.experiment import load_experiment
    from ifqa.config.overrides import override
    from ifqa.pipeline.run import Run

    return Run(override(load_experiment(name), changes))


def settings_of_flags(pairs: list[str] | None) -> dict[str, object]:
    """Parse KEY=VALUE pairs; of a key given twice, the last value counts."""
    return dict(_parse_pairs(pairs))


def _parse_pairs(pairs: list[str] | None) -> list[tuple[str, object]]:
    """The keys and values of KEY=VALUE pairs; a value is TOML, or text if it is not TOML."""
    import tomllib

    changes: list[tuple[str, object]] = []
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set wants KEY=VALUE, found {pair!r}")
        try:
            changes.append((key, tomllib.loads(f"value = {value}")["value"]))
        except tomllib.TOMLDecodeError:
            changes.append((key, value))
        except (ValueError, RecursionError) as error:  # thousands of digits or of brackets
            raise ConfigError(
                f"--set {pair:.80}…: wanted TOML or a text; found a value that is too large"
            ) from error
    return changes


def with_workers(verb: Verb) -> Verb:
    """Add the options --workers and --engine; the verb gets them as the argument `workers`."""
    number = Option(
        "--workers",
        min=0,
        help="Processes that retrieve or read; 1 by default, 0 for one per core.",
    )

    def arguments(values: Values) -> dict[str, object]:
        from ifqa.workers.pool import Workers

        number = values["number"]
        engine = values["engine"]
        return {"workers": Workers(int(engine == "local") if number is None else number, engine)}

    return with_options(
        {"number": Annotated[int | None, number], "engine": (Engine, "local")}, arguments
    )(verb)


def with_quiet(verb: Verb) -> Verb:
    """Add the option --quiet."""

    def arguments(values: Values) -> dict[str, object]:
        if values["quiet"]:  # otherwise, a --quiet before the verb still holds
            hide_progress()
        return {}

    return with_options({"quiet": (Quiet, False)}, arguments)(verb)


def lazy_group(
    text: str, names: Callable[[], Iterable[str]], command: Callable[[str], Any]
) -> typer.Typer:
    """A group that makes its commands on demand, so that other verbs import nothing of theirs.

    Its help lists `names`.
    """

    class Group(TyperGroup):
        @property
        def commands(self) -> dict[str, Any]:
            return {name: command(name) for name in names()}

        @commands.setter
        def commands(self, _: object) -> None:
            """Ignore typer's own commands; there are none."""

        def get_command(self, _: object, cmd_name: str) -> Any:
            return command(cmd_name)

    return typer.Typer(help=text, cls=Group, invoke_without_command=True, callback=show_help)


def show_help(context: typer.Context) -> None:
    """Show a group's help if no verb is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def refuse_broken_text(arguments: Sequence[str]) -> None:
    """Refuse an argument that is not UTF-8: Python reads it with lone surrogates, which cannot be
    written.
    """
    for number, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"argument {number} is not valid UTF-8: {argument!a:.80}") from error


def print_line(text: object) -> None:
    """Print one line on stdout, without characters that could steer a terminal."""
    print(printable_line(str(text)))


def print_json(content: object) -> None:
    """Print one line of JSON on stdout; characters that could steer a terminal are escaped."""
    import json

    print(
        CONTROLS.sub(
            lambda control: json.dumps(control[0])[1:-1], json.dumps(content, ensure_ascii=False)
        )
    )
