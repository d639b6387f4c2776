"""`ifqa screen`: passages for people to write counterfactual questions about."""

from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import CorpusName, Json, print_json
from ifqa.progress import say


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
    splits: Annotated[
        list[str] | None,
        typer.Option("--split", help="Also screen the gold passages of this split: full-train. Repeatable."),
    ] = None,
    benchmark: Annotated[str, typer.Option(help="Benchmark of the splits.")] = "ifqa",
    show: Annotated[
        int, typer.Option(min=0, help="Show this many passages that are kept, and as many that are not.")
    ] = 0,
    workers: Annotated[int, typer.Option(min=0, help="Processes to work with; 0: all cores.")] = 0,
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
    drawn = screen_corpus(load_corpus(corpus), max(number, show), show, seed, workers)
    print_json(screened_json(drawn, gold, show)) if json else show_screened(corpus, drawn, gold, show)
    if to:
        drawn.kept = drawn.kept[:number]
        files = write_annotation(drawn, to, force)
        say(f"{len(drawn.kept):,} passages to annotate: {', '.join(map(str, files))}")
