"""`ifqa stats`: counts for a benchmark's questions, causal questions, their annotations, and
WIQA.
"""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from ifqa.cli.options import Json, OfBenchmark, Repeated, print_json, show_help

stats = Typer(
    help="Show counts for a benchmark or a set of questions.",
    invoke_without_command=True,
    callback=show_help,
)


@stats.command("questions")
def stats_questions(
    benchmark: OfBenchmark = "ifqa",
    splits: Annotated[
        Repeated,
        Option("--split", help="A split, such as full-dev. Repeatable.", show_default="all"),
    ] = None,
    json: Json = False,
) -> None:
    """Count a benchmark's questions by length, kind of answer and question word, and the questions
    that splits share.

    For IfQA, the tables also show the paper's values.
    """
    from ifqa.report.stats import questions, show_tables

    counts = questions.measure(benchmark, splits or ())
    print_json(counts) if json else show_tables(questions.tables(counts))


@stats.command("causal")
def stats_causal(
    source: Annotated[
        str,
        Argument(
            help="A file (.jsonl, .json, .parquet, .csv, .tsv, .txt, .gz) or BENCHMARK[:SPLIT]."
        ),
    ],
    rules: Annotated[
        Repeated, Option(help="Rules: notebook, table3 or fixed. Repeatable.", show_default="all")
    ] = None,
    dataset: Annotated[
        str, Option(help="Also show the paper's values for this dataset, such as hotpotqa.")
    ] = "",
    json: Json = False,
) -> None:
    """Count causal questions by the rules of Webis-CausalQA.

    For labelled questions, also the rules' precision and recall.
    """
    from ifqa.report.stats import causal, show_tables

    counts = causal.measure(source, rules or (), dataset)
    print_json(causal.stats_json(counts)) if json else show_tables(causal.tables(counts))


@stats.command("causal-corpus")
def stats_causal_corpus(json: Json = False) -> None:
    """Count the causal questions and words of data/causalqa by dataset and split, beside the
    paper's tables.
    """
    from ifqa.report.stats import causal, show_tables

    counts = causal.measure_corpus(Path("data/causalqa"))
    print_json(causal.corpus_json(counts)) if json else show_tables(causal.corpus_tables(counts))


@stats.command("typology")
def stats_typology(
    file: Annotated[
        Path | None, Argument(help="File of annotations: id, semantic, pragmatic.")
    ] = None,
    questions: Annotated[
        Path | None, Option(help="Texts for the rule-based labeller: dataset, id, question.")
    ] = None,
    json: Json = False,
) -> None:
    """Count annotations by the typology of causal questions, and judge the rule-based labeller by
    them.
    """
    from ifqa.report.stats import causal_typology, show_tables

    counts = causal_typology.measure(file, questions)
    print_json(causal_typology.stats_json(counts)) if json else show_tables(
        causal_typology.tables(counts)
    )


@stats.command("wiqa")
def stats_wiqa(
    sources: Annotated[
        Repeated, Argument(help="Files, a folder, or sample-wiqa.", show_default="data/wiqa")
    ] = None,
    graphs: Annotated[
        Path | None, Option(help="File of graphs, to check each label against its path.")
    ] = None,
    json: Json = False,
) -> None:
    """Count WIQA's topics, paragraphs, graphs and questions by split, beside the paper's Table
    1.
    """
    from ifqa.report.stats import show_tables, wiqa

    counts = wiqa.measure(sources or ["data/wiqa"], graphs)
    if json:
        print_json({"splits": counts, "paper": wiqa.PUBLISHED})
    else:
        show_tables(wiqa.tables(counts, published=sources != ["sample-wiqa"]))
