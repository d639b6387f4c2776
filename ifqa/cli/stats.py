"""`ifqa stats`: counts of a corpus, of a benchmark's questions, of causal questions, and of WIQA's."""

from pathlib import Path
from typing import Annotated

import typer

from ifqa.cli.options import CorpusName, Json, OfBenchmark, Processes, Splits, print_json, show_help

stats = typer.Typer(
    help="Count a corpus, a benchmark or a file of questions.", invoke_without_command=True, callback=show_help
)


@stats.command("passages")
def stats_passages(
    corpus: CorpusName,
    splits: Splits = None,
    benchmark: OfBenchmark = "ifqa",
    json: Json = False,
    workers: Processes = None,
) -> None:
    """Count a corpus's passages and words, their lengths, and the gold passages of a benchmark in it."""
    from ifqa.config.corpus import load_corpus
    from ifqa.plugins import open_benchmark
    from ifqa.report.stats import passages, show_tables

    gold = {split: open_benchmark(benchmark).questions(split) for split in splits or []}
    counts = passages.measure(load_corpus(corpus), gold, workers or 0)
    print_json(passages.stats_json(counts)) if json else show_tables(passages.tables(corpus, counts))


@stats.command("questions")
def stats_questions(
    benchmark: OfBenchmark = "ifqa",
    splits: Annotated[
        list[str] | None,
        typer.Option("--split", help="A split: full-dev. Repeatable; none: all that are there."),
    ] = None,
    json: Json = False,
) -> None:
    """Count lengths, kinds of answers, question words, and questions that splits share, beside the paper's values."""
    from ifqa.report.stats import questions, show_tables

    counts = questions.measure(benchmark, splits or ())
    print_json(counts) if json else show_tables(questions.tables(counts))


@stats.command("causal")
def stats_causal(
    source: Annotated[
        str,
        typer.Argument(
            help="A file of questions (.jsonl, .json, .csv, .tsv, .txt, packed or not), or BENCHMARK[:SPLIT]."
        ),
    ],
    rules: Annotated[
        list[str] | None,
        typer.Option("--rules", help="Rules to count: notebook, table3 or fixed. Repeatable; none: all three."),
    ] = None,
    dataset: Annotated[
        str, typer.Option(help="The paper's dataset that the questions come from: hotpotqa; shows its values beside.")
    ] = "",
    json: Json = False,
) -> None:
    """Count causal questions by the rules of Webis-CausalQA; precision and recall where questions are labelled."""
    from ifqa.report.stats import causal, show_tables

    counts = causal.measure(source, rules or (), dataset)
    print_json(causal.stats_json(counts)) if json else show_tables(causal.tables(counts))


@stats.command("causal-corpus")
def stats_causal_corpus(json: Json = False) -> None:
    """Count data/causalqa by dataset and split: questions, causal ones, words; beside the paper's Tables 1, 2 and 4."""
    from ifqa.report.stats import causal, show_tables

    counts = causal.measure_corpus(Path("data/causalqa"))
    print_json(causal.corpus_json(counts)) if json else show_tables(causal.corpus_tables(counts))


@stats.command("typology")
def stats_typology(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Annotations of one or two annotators: id, semantic, pragmatic; dataset."),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="The questions' texts: dataset, id, question. Judges the rule-based labeller.")
    ] = None,
    json: Json = False,
) -> None:
    """Count annotations by the typology of causal questions, with the agreement of two annotators."""
    from ifqa.report.stats import show_tables, typology

    counts = typology.measure(files or [], questions)
    print_json(typology.stats_json(counts)) if json else show_tables(typology.tables(counts))


@stats.command("wiqa")
def stats_wiqa(
    sources: Annotated[
        list[str] | None,
        typer.Argument(help="Files of questions, a folder of them, or sample-wiqa.", show_default="data/wiqa"),
    ] = None,
    graphs: Annotated[Path | None, typer.Option(help="File of graphs: hold each label against its path.")] = None,
    json: Json = False,
) -> None:
    """Count WIQA's topics, paragraphs, graphs and questions by split, beside the paper's Table 1."""
    from ifqa.report.stats import show_tables, wiqa

    counts = wiqa.measure(sources or ["data/wiqa"], graphs)
    if json:
        print_json({"splits": counts, "paper": wiqa.PUBLISHED})
    else:
        show_tables(wiqa.tables(counts, published=sources != ["sample-wiqa"]))
