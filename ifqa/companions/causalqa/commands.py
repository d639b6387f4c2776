"""The commands of CausalQA, `ifqa stats causal`, `causal-corpus` and `typology`, and `ifqa data
causalqa`, as functions whose parameters are the commands' options.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ifqa.companions.causalqa import counts, typology_counts
from ifqa.companions.causalqa.builder import build_causalqa
from ifqa.protocols import Benchmark, Counts


def countings(benchmark: Benchmark) -> Mapping[str, Callable[..., Counts]]:
    """Verb of `ifqa stats` -> what it counts."""

    def count_corpus() -> Counts:
        """Count the causal questions and words of data/causalqa by dataset and split, and show the
        paper's counts beside them.
        """
        facts = counts.measure_corpus(benchmark.folder)
        return Counts([*counts.corpus_tables(facts)], counts.corpus_json(facts))

    return {"causal": count_causal, "causal-corpus": count_corpus, "typology": count_typology}


def count_causal(
    source: Annotated[
        str,
        Argument(
            help="A file (.jsonl, .json, .parquet, .csv, .tsv, .txt, .gz) or BENCHMARK[:SPLIT]."
        ),
    ],
    rules: Annotated[
        list[str] | None,
        Option(
            help="Reading of the rules: notebook, table3 or fixed. Repeatable.", show_default="all"
        ),
    ] = None,
    dataset: Annotated[
        str, Option(help="Also show the paper's values for this dataset, such as hotpotqa.")
    ] = "",
) -> Counts:
    """Count causal questions by the rules of Webis-CausalQA.

    For labelled questions, it also shows the rules' precision and recall.
    """
    counted = counts.measure(source, rules or (), dataset)
    return Counts([*counts.tables(counted)], counts.stats_json(counted))


def count_typology(
    file: Annotated[
        Path | None,
        Argument(help="File of annotations, each with id, semantic and pragmatic."),
    ] = None,
    questions: Annotated[
        Path | None,
        Option(help="File of texts for the labeller, each with dataset, id and question."),
    ] = None,
) -> Counts:
    """Count annotations by the typology of causal questions, and compare the rule-based labeller
    with them.
    """
    counted = typology_counts.measure(file, questions)
    return Counts([*typology_counts.tables(counted)], typology_counts.stats_json(counted))


def fetching(benchmark: Benchmark) -> Callable[..., Iterable[str]]:
    """What `ifqa data causalqa` does: builds the benchmark's folder."""

    def build(
        source: Annotated[
            Path | None,
            Option(
                "--from",
                metavar="FOLDER",
                help="Folder with the authors' release and the folder eli5.",
            ),
        ] = None,
    ) -> Iterable[str]:
        """Build Webis-CausalQA from the authors' release.

        Without --from, the release is fetched. It has only the ids of ELI5's questions.
        So put ELI5's own file, train_eli5.jsonl or eli5-train-kilt.jsonl, into a folder
        eli5 beside the release.
        """
        return build_causalqa(benchmark.folder.parents[1], source)

    return build
