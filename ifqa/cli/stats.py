"""`ifqa stats`: counts of any benchmark's questions, and the counts that a benchmark defines."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option
from typer.main import get_command

from ifqa.cli.options import (
    Json,
    OfBenchmark,
    Repeated,
    lazy_group,
    options_of,
    print_json,
    with_options,
    with_quiet,
)
from ifqa.errors import ConfigError

if TYPE_CHECKING:
    from ifqa.protocols import Counts


def _questions(
    benchmark: OfBenchmark = "ifqa",
    splits: Annotated[
        Repeated,
        Option("--split", help="A split, such as full-dev. Repeatable.", show_default="all"),
    ] = None,
    json: Json = False,
) -> None:
    """Count a benchmark's questions by length, kind of answer and question word.

    For IfQA, the tables also show the paper's values.
    """
    from ifqa.report.stats import questions, show_tables

    counts = questions.measure(benchmark, splits or ())
    print_json(counts) if json else show_tables(questions.tables(counts))


def _verb(count: "Callable[..., Counts]") -> Callable[..., None]:
    """The verb that prints the counts of a benchmark's function."""

    def arguments(values: dict[str, Any]) -> dict[str, object]:
        return {"json": values.pop("json"), "values": values}

    def verb(values: Any, json: Any) -> None:
        from ifqa.report.stats import counts_json, show_counts

        counts = count(**values)
        print_json(counts_json(counts)) if json else show_counts(counts)

    verb.__doc__ = count.__doc__
    return with_options({**options_of(count), "json": (Json, False)}, arguments)(verb)


@cache
def _own_verbs() -> Mapping[str, Callable[..., None]]:
    """Name -> verb: `questions`, and those of ifqa's own benchmarks."""
    from ifqa.plugins import open_benchmark, plugin_names

    verbs: dict[str, Callable[..., None]] = {"questions": _questions}
    for benchmark in plugin_names("benchmark"):
        counts = open_benchmark(benchmark).counts()
        verbs |= {name: _verb(count) for name, count in counts.items()}
    return verbs


def _verbs_of(benchmark: str) -> Mapping[str, Callable[..., None]]:
    """The verbs of a benchmark from outside; ConfigError if it has none."""
    from ifqa.plugins import open_benchmark

    counts = open_benchmark(benchmark).counts()
    if not counts:
        mend = f"give it a method counts, or run: ifqa stats questions --benchmark {benchmark}"
        raise ConfigError(f"benchmark {benchmark!r} counts nothing; {mend}")
    return {name: _verb(count) for name, count in counts.items()}


def _command(name: str) -> Any:
    """The command of a verb, or of a benchmark from outside, whose only verb it runs."""
    verbs = _verbs_of(name) if ":" in name else _own_verbs()
    if ":" not in name:
        if name not in verbs:
            return None
        verbs = {name: verbs[name]}
    app = typer.Typer(add_completion=False, no_args_is_help=True)
    for verb, function in verbs.items():
        app.command(verb)(with_quiet(function))
    return get_command(app)


stats = lazy_group("Show counts for a benchmark or a set of questions.", _own_verbs, _command)
