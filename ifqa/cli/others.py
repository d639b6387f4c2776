"""The other verbs of the command line: list, doctor, clean, data, convert, compare and report."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import Json, print_json, print_line
from ifqa.cli.process import in_words
from ifqa.errors import IfqaError


def list_all(json: Json = False) -> None:
    """List experiments, corpora, benchmarks, retrievers, readers, language models and prompts."""
    from ifqa.report.screen import list_json, show_list

    print_json(list_json()) if json else show_list()


def doctor(json: Json = False) -> None:
    """Show the installation: Python, Java, torch, models; and whether they work together."""
    from ifqa.cli.doctor import examine

    lines, problems = examine()
    verdict = "not ready; see below" if problems else "ready: BM25, dense retrieval and the default reader can run here"
    if json:
        print_json({"lines": lines, "problems": problems, "ready": not problems})
    else:
        for line in (*lines, f"verdict: {verdict}"):
            print_line(line)
    if problems:
        raise IfqaError("; ".join(problems))


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Remove the folders; else they are only listed.")] = False,
    json: Json = False,
) -> None:
    """List the folders that flags and limits made, experiments/NAME+KEY=VALUE/; with --yes, remove them."""
    from ifqa.pipeline.clean import remove, variants
    from ifqa.report.screen import show_variants

    found, failed = variants(), []
    for place, one in enumerate(found if yes else ()):
        try:
            found[place] = remove(one)
        except (IfqaError, OSError) as error:
            failed.append(in_words(error))
            found[place] = replace(one, kept=failed[-1])
    if json:
        gone = [{"removed": yes and not one.kept} for one in found]
        print_json([asdict(one) | {"folder": str(one.folder)} | more for one, more in zip(found, gone, strict=True)])
    else:
        show_variants(found, removed=yes)
    if failed:
        raise IfqaError("; ".join(failed))


def data(
    benchmark: Annotated[str, typer.Argument(help="Benchmark to fetch.")] = "ifqa",
    source: Annotated[Path | None, typer.Option("--from", help="Take the files from this folder; no network.")] = None,
) -> None:
    """Fetch a benchmark from its publisher, or take it from a folder, and verify it by SHA-256."""
    from ifqa.benchmarks.downloads import fetch
    from ifqa.plugins import open_benchmark

    for line in fetch(open_benchmark(benchmark), source):
        print_line(line)


def convert(
    source: Annotated[
        str, typer.Argument(help="An experiment, a benchmark's split (ifqa:full-dev), or a file: ctxs JSON, questions.")
    ],
    to: Annotated[
        Path, typer.Option("--to", help="File: .json (ctxs), .trec, .qrels, .tsv (topics), .jsonl (lm-eval).")
    ],
    form: Annotated[
        str, typer.Option("--format", help="Else: ctxs, trec, qrels, topics, lm-eval, squad, ifqa (the release's).")
    ] = "",
    k: Annotated[int | None, typer.Option("--k", help="Only the first K passages of each question.")] = None,
    benchmark: Annotated[str, typer.Option(help="Benchmark of a ctxs file's questions.")] = "ifqa",
    split: Annotated[str | None, typer.Option(help="Its split; none: the ids in the file.")] = None,
    scores: Annotated[str, typer.Option(help="run, or reader: its scores of the passages it read.")] = "run",
    corpus: Annotated[str, typer.Option(help="For qrels: judge all passages of this corpus, not a run's.")] = "",
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements of the questions; relevant passages (of --corpus) become gold.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
) -> None:
    """Write runs, questions and judgements for other tools: ctxs, TREC, qrels, topics, SQuAD, lm-eval, the release's."""
    from ifqa.pipeline.convert import convert as convert_file

    print_line(convert_file(source, to, k, benchmark, split, force, scores, form, corpus, qrels))


def compare(
    first: Annotated[str, typer.Argument(help="A scored experiment.")],
    second: Annotated[str, typer.Argument(help="Another, scored on the same questions.")],
    measure: Annotated[
        str, typer.Option(help="Measure by which questions differ most; none: the benchmark's headline.")
    ] = "",
    show: Annotated[int, typer.Option(min=0, help="Show this many of those questions.")] = 10,
    json: Json = False,
) -> None:
    """Compare two experiments: a paired test, and the questions on which they differ most."""
    from rich.console import Console

    from ifqa.config.experiment import load_experiment
    from ifqa.report.compare import comparison

    both = load_experiment(first), load_experiment(second)
    compared = comparison(*both, measure, show)
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
    pages: Annotated[
        Path | None,
        typer.Option("--pages", help="Also write a page for each experiment, its run and judgements, here."),
    ] = None,
) -> None:
    """Report all results beside published ones: experiments/RESULTS.md, and a page with curves and every question."""
    from ifqa.report.publish import publish

    for path in publish(into, experiments or [], check, pages):
        print_line(path)


MORE: dict[str, Callable[..., None]] = {
    "list": list_all,
    "doctor": doctor,
    "clean": clean,
    "data": data,
    "convert": convert,
    "compare": compare,
    "report": report,
}
