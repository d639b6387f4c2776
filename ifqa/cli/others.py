"""The other verbs of the command line: list, screen, convert, compare, report, serve and mcp."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ifqa.cli.data import data
from ifqa.cli.doctor import doctor
from ifqa.cli.init import init
from ifqa.cli.options import (
    CorpusName,
    ExperimentName,
    Json,
    OfBenchmark,
    Processes,
    Splits,
    print_json,
    print_line,
    searching,
)
from ifqa.errors import IfqaError
from ifqa.progress import is_quiet, say

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run

_Timeout = Annotated[float, typer.Option("--timeout", min=1, max=3600, help="Seconds that an answer may take.")]


def list_all(json: Json = False) -> None:
    """List experiments, corpora, benchmarks, retrievers, readers, language models and prompts."""
    from ifqa.report.console import list_json, show_list

    print_json(list_json()) if json else show_list()


def screen(
    corpus: CorpusName,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", help="Also write tasks to annotate: .json (Label Studio, with its interface as .xml) or .csv."
        ),
    ] = None,
    number: Annotated[
        int, typer.Option(min=1, help="Passages to write questions about, drawn from those kept.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    splits: Splits = None,
    benchmark: OfBenchmark = "ifqa",
    show: Annotated[
        int, typer.Option(min=0, help="Show this many passages that are kept, and as many that are not.")
    ] = 0,
    workers: Processes = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the tasks if they are there.")] = False,
    json: Json = False,
) -> None:
    """Pick passages that counterfactual questions can be written about, as the IfQA paper did, and write tasks to annotate.

    A passage is kept if a sentence of it tells a cause ("lead to", "cause", "because", "due to", "originally", "initially") in
    the past tense. `ifqa convert TASKS --to FILE --format verification` makes tasks for the second and third worker from the
    questions that were written, and `ifqa convert VOTES --to FILE --format file` a benchmark from those that the votes keep.
    """
    from ifqa.config.corpus import load_corpus
    from ifqa.formats.annotations import refuse_existing
    from ifqa.pipeline.screen import screen_corpus, screen_gold, write_annotation
    from ifqa.plugins import open_benchmark
    from ifqa.report.console import screened_json, show_screened

    if to:
        refuse_existing(to, force)
    source = open_benchmark(benchmark) if splits else None
    gold = {split: screen_gold(source.questions(split)) for split in splits or () if source}
    drawn = screen_corpus(load_corpus(corpus), max(number, show), show, seed, workers or 0)
    print_json(screened_json(drawn, gold, show)) if json else show_screened(corpus, drawn, gold, show)
    if to:
        drawn.kept = drawn.kept[:number]
        files = write_annotation(drawn, to, force)
        say(f"{len(drawn.kept):,} passages to annotate: {', '.join(map(str, files))}")


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="An experiment, a benchmark's split (ifqa:full-dev), or a file: ctxs JSON, questions, annotated tasks."
        ),
    ],
    to: Annotated[Path, typer.Option("--to", help="File: .json (ctxs), .trec, .qrels, .tsv (topics), .jsonl (file).")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="Else: ctxs, trec, qrels, topics, squad, file (questions of your own), verification.",
        ),
    ] = "",
    k: Annotated[int | None, typer.Option("--k", help="Only the first K passages of each question.")] = None,
    benchmark: Annotated[str, typer.Option(help="For a TREC run that becomes ctxs: its benchmark.")] = "ifqa",
    split: Annotated[str | None, typer.Option(help="For a TREC run that becomes ctxs: its split.")] = None,
    scores: Annotated[str, typer.Option(help="run, or reader: its scores of the passages it read.")] = "run",
    corpus: Annotated[str, typer.Option(help="For a TREC run that becomes ctxs: its corpus.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
) -> None:
    """Write runs, questions and judgements for other tools, and annotated tasks as a benchmark or to be verified."""
    from ifqa.pipeline.convert import convert as convert_file

    print_line(convert_file(source, to, k, benchmark, split, force, scores, form, corpus))


def compare(
    first: Annotated[str, typer.Argument(help="A scored experiment.")],
    others: Annotated[
        list[str],
        typer.Argument(help="Another, or several, scored on the same questions, or with --common on some of them."),
    ],
    measure: Annotated[
        str,
        typer.Option(
            help="Measure by which questions differ most (none: the benchmark's headline); of several experiments, the "
            "only one shown (none: all)."
        ),
    ] = "",
    show: Annotated[
        int | None,
        typer.Option(min=0, help="Show this many of those questions. Of two experiments 10, of several none."),
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Compare over the questions that both have, if they differ in others.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two experiments, or several with the first: a paired test, and the questions on which two differ most."""
    from rich.console import Console

    from ifqa.config.experiment import load_experiment
    from ifqa.report.compare import comparison, comparisons

    if len(others) > 1 and show:
        raise IfqaError(f"--show {show} is for two experiments; found {len(others) + 1}")
    a, *rest = (load_experiment(name) for name in (first, *others))
    compared = (
        comparisons(a, rest, measure, common)
        if len(rest) > 1
        else comparison(a, rest[0], measure, 10 if show is None else show, common)
    )
    print_json(compared.to_dict()) if json else compared.show(Console(highlight=False))


def report(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments to show question by question on the page; none: all that are finished here."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--into", help="Also put the table of results into this file, a README.md.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail if a written file is stale.")] = False,
    limited: Annotated[
        bool, typer.Option("--limited", help="Also report variants that --limit made; else only those named.")
    ] = False,
) -> None:
    """Report all results beside published ones: experiments/RESULTS.md, and a page with curves and every question."""
    from ifqa.report.publish import publish

    for path in publish(into, experiments or [], check, limited):
        print_line(path)


@searching(ExperimentName)
def serve(
    run: "Run",
    changed: list[str],
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any free one.")] = 8017,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the token; else IFQA_TOKEN of the environment.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="A name by which others call this machine. Repeatable.")
    ] = None,
    queue: Annotated[int, typer.Option("--queue", help="Questions that may wait; further ones get 503.")] = 256,
    timeout: _Timeout = 60.0,
) -> None:
    """Serve a page to ask on, the results, a JSON API and MCP tools, on this machine alone."""
    from ifqa.serve.limits import Limits
    from ifqa.serve.security import make_guard
    from ifqa.serve.server import cap_cost
    from ifqa.serve.server import serve as serve_all

    guard = make_guard(host, token_file, allow_host or ())
    serve_all(cap_cost(run.experiment, changed), host, port, guard, Limits(queue, timeout), is_quiet())


@searching(ExperimentName)
def mcp(run: "Run", changed: list[str], timeout: _Timeout = 60.0) -> None:
    """Serve the MCP tools ask, retrieve and get_passage over stdin and stdout, for an assistant that starts this command."""
    from ifqa.serve.limits import Limits
    from ifqa.serve.server import cap_cost, serve_tools

    serve_tools(cap_cost(run.experiment, changed), Limits(seconds=timeout), is_quiet())


MORE: dict[str, Callable[..., None]] = {
    "init": init,
    "list": list_all,
    "doctor": doctor,
    "data": data,
    "screen": screen,
    "convert": convert,
    "compare": compare,
    "report": report,
    "serve": serve,
    "mcp": mcp,
}
