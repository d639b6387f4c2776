"""The other verbs of the command line: init, list, doctor, clean, data, screen, convert, compare and report."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.data import data
from ifqa.cli.making import screen
from ifqa.cli.options import Docs, Json, print_json, print_line
from ifqa.cli.process import in_words
from ifqa.cli.serving import mcp, serve
from ifqa.errors import IfqaError
from ifqa.progress import say


def init(
    name: Annotated[
        str, typer.Argument(help="Name of the new experiment, of its corpus and of the folder with its files.")
    ] = "mine",
    docs: Docs = None,
) -> None:
    """Write a corpus, an experiment, articles and questions to start from, with comments; no file is overwritten.

    With --docs the corpus is that of your documents, and no articles are written.
    """
    from ifqa.cli.init import start

    for path in start(name, docs):
        print_line(path)
    if docs is None:
        say(f"try it: ifqa run {name} --show 3; then put your own articles and questions into the folder {name}")
    else:
        say(f"put your questions into {name}/questions.csv, then: ifqa run {name} --show 3")


def list_all(json: Json = False) -> None:
    """List experiments, corpora, benchmarks, retrievers, readers, language models and prompts."""
    from ifqa.report.console import list_json, show_list

    print_json(list_json()) if json else show_list()


def doctor(json: Json = False) -> None:
    """Show the installation: Python, Java, torch, models; and whether they work together."""
    from ifqa.cli.doctor import examine, lines

    found = examine()
    if json:
        print_json(found)
    else:
        for line in lines(found):
            print_line(line)
    if found["problems"]:
        raise IfqaError("; ".join(found["problems"]))


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Remove the folders; else they are only listed.")] = False,
    json: Json = False,
) -> None:
    """List the folders that flags and limits made, experiments/NAME+KEY=VALUE/; with --yes, remove them."""
    from ifqa.pipeline.clean import remove, variants
    from ifqa.report.console import show_variants

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


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="An experiment, a benchmark's split (ifqa:full-dev), or a file: ctxs JSON, questions, annotated tasks."
        ),
    ],
    to: Annotated[
        Path, typer.Option("--to", help="File: .json (ctxs), .trec, .qrels, .tsv (topics), .jsonl (lm-eval).")
    ],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="Else: ctxs, trec, qrels, topics, lm-eval, squad, ifqa (the release's), file (questions of your own), "
            "verification.",
        ),
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
    """Write runs, questions and judgements for other tools, and annotated tasks as a benchmark or to be verified."""
    from ifqa.pipeline.convert import convert as convert_file

    print_line(convert_file(source, to, k, benchmark, split, force, scores, form, corpus, qrels))


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
        typer.Option(
            min=0,
            help="Show this many of those questions, with the ranks of their gold passages. Of two experiments 10, of "
            "several none.",
        ),
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


MORE: dict[str, Callable[..., None]] = {
    "init": init,
    "list": list_all,
    "doctor": doctor,
    "clean": clean,
    "data": data,
    "screen": screen,
    "convert": convert,
    "compare": compare,
    "report": report,
    "serve": serve,
    "mcp": mcp,
}
