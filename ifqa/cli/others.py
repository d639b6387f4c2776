"""The other verbs of the command line: list, doctor, clean, data, convert, compare, report, train and stats."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import CorpusName, Given, Json, print_json, print_line, settings_of_flags, with_options
from ifqa.cli.process import in_words
from ifqa.errors import IfqaError


def show_help(context: typer.Context) -> None:
    """Show the help of a group of verbs if no verb is given; this is no error."""
    if context.invoked_subcommand is None:
        print(context.get_help())


train = typer.Typer(
    help="Train a model; weights and manifest go to a folder.",
    invoke_without_command=True,
    callback=show_help,
)
stats = typer.Typer(help="Statistics of a corpus or a benchmark.", invoke_without_command=True, callback=show_help)


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
    graphs: Annotated[
        list[str] | None,
        typer.Option(
            "--questions-from",
            metavar="GRAPHS",
            help="For wiqa: make questions from this file of influence graphs, or sample-wiqa. Repeatable.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="For wiqa's made questions: seed of their draws. [default: 0]")
    ] = None,
) -> None:
    """Fetch a benchmark from its publisher, or take it from a folder, and verify it by SHA-256; or make wiqa's questions.

    With --questions-from nothing is fetched: data/wiqa/made-train.jsonl, made-dev.jsonl and made-test.jsonl are written.
    """
    from ifqa.benchmarks.downloads import fetch
    from ifqa.benchmarks.wiqa.made import make
    from ifqa.plugins import open_benchmark

    if graphs and benchmark == "wiqa" and source is None:
        lines = make(Path(), graphs, seed or 0)
    elif graphs or seed is not None:
        raise IfqaError(
            "--questions-from and --seed make questions: ifqa data wiqa --questions-from GRAPHS, without --from"
        )
    else:
        lines = fetch(open_benchmark(benchmark), source)
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


Figure = Annotated[Path | None, typer.Option(help="Also draw the statistics: a file .svg, .png or .pdf.")]


def _training(folder: str, corpus: str = "ifqa-gold-train") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator with the options of every training; the verb gets them as `given`, for `ifqa.pipeline.train.train`."""
    options = {
        "benchmark": (Annotated[str, typer.Option(help="Benchmark to train on.")], "ifqa"),
        "split": (Annotated[str, typer.Option(help="Its training split.")], "full-train"),
        "corpus": (
            Annotated[str, typer.Option(help="Corpus whose BM25 index the training passages come from.")],
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
            list[str] | None, typer.Option("--set", help="Change a setting, as epochs=3. Repeatable.")
        ],
    }
    return with_options(options, lambda given: {"given": given | {"settings": settings_of_flags(given["settings"])}})


@train.command("extractive")
@_training("models/extractive")
def train_extractive(given: Given) -> None:
    """Train the span reader: an adapter and heads on all-MiniLM-L6-v2."""
    _train("extractive", given)


@train.command("rerank")
@_training("models/rerank")
def train_rerank(given: Given) -> None:
    """Train the reranker: a cross-encoder, as an adapter on all-MiniLM-L6-v2."""
    _train("rerank", given)


@train.command("dense")
@_training("models/dense")
def train_dense(
    given: Given,
    recipe: Annotated[
        str, typer.Option(help="small (one encoder, fits a CPU) or dpr (as published; needs a GPU).")
    ] = "small",
) -> None:
    """Train a dense retriever with in-batch negatives and hard negatives from BM25."""
    _train("dense", given, recipe)


@train.command("fid")
@_training("models/fid", corpus="ifqa-gold")
def train_fid(
    given: Given,
    recipe: Annotated[str, typer.Option(help="ifqa (one GPU; not tuned) or published (FiD-large's).")] = "ifqa",
    dev: Annotated[
        str, typer.Option(help="Split of the same family that chooses the best checkpoint; '' for none.")
    ] = "full-dev",
    experiment: Annotated[str, typer.Option("--experiment", "-e", help="Take this experiment's retriever.")] = "",
) -> None:
    """Train Fusion-in-Decoder, a T5, on retrieved passages; torchrun -m ifqa for several GPUs."""
    _train("fid", given | {"dev": dev, "experiment": experiment}, recipe)


def _train(what: str, given: Given, recipe: str = "") -> None:
    from ifqa.pipeline.train import train as make

    settings = ({"recipe": recipe} if recipe else {}) | given.pop("settings")
    print_line(make(what, **given, settings=settings))


@stats.command("passages")
def stats_passages(
    corpus: CorpusName,
    splits: Annotated[
        list[str] | None,
        typer.Option("--split", help="Also look for the gold passages of this split: full-dev. Repeatable."),
    ] = None,
    benchmark: Annotated[str, typer.Option(help="Benchmark of the splits.")] = "ifqa",
    figure: Figure = None,
    json: Json = False,
    workers: Annotated[int, typer.Option(min=0, help="Processes to work with; 0: all cores.")] = 0,
) -> None:
    """Count a corpus's pages, passages and words, their lengths, and the gold passages of a benchmark in it."""
    from ifqa.config.corpus import load_corpus
    from ifqa.plugins import open_benchmark
    from ifqa.report.stats import passages as report

    _check_written(figure)
    gold = {split: open_benchmark(benchmark).questions(split) for split in splits or []}
    stats = report.measure(load_corpus(corpus), gold, workers)
    print_json(report.stats_json(stats)) if json else report.show(corpus, stats)
    if figure:
        report.draw(stats, figure)


@stats.command("questions")
def stats_questions(
    benchmark: Annotated[str, typer.Option(help="Benchmark of the questions.")] = "ifqa",
    splits: Annotated[
        list[str] | None,
        typer.Option("--split", help="A split: full-dev. Repeatable; none: all that are there."),
    ] = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Count lengths, kinds of answers, question words, and questions that splits share, beside the paper's values."""
    from ifqa.report.stats import questions as report

    _check_written(figure)
    measured = report.measure(benchmark, splits or ())
    print_json(report.stats_json(measured)) if json else report.show(measured)
    if figure:
        report.draw(measured, figure)


@stats.command("wiqa")
def stats_wiqa(
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="Files of questions, a folder of them, or sample-wiqa. [default: data/wiqa]"),
    ] = None,
    graphs: Annotated[Path | None, typer.Option(help="File of graphs: hold each label against its path.")] = None,
    json: Json = False,
) -> None:
    """Count WIQA's topics, paragraphs, graphs and questions by split, beside the paper's Table 1."""
    from ifqa.report.stats import wiqa as report

    found = report.measure(sources or ["data/wiqa"], graphs)
    print_json(report.stats_json(found)) if json else report.show(found, published=sources != ["sample-wiqa"])


def _check_written(figure: Path | None) -> None:
    from ifqa.report.figures import check_figure

    if figure:
        check_figure(figure)
        if figure.is_dir() or not figure.parent.is_dir():
            raise IfqaError(f"{figure} cannot be written: it is a folder, or its folder does not exist")


MORE: dict[str, Callable[..., None]] = {
    "list": list_all,
    "doctor": doctor,
    "clean": clean,
    "data": data,
    "convert": convert,
    "compare": compare,
    "report": report,
}
