"""The commands of WIQA, `ifqa stats wiqa` and `ifqa data wiqa`, as functions whose parameters are
the commands' options.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ifqa.benchmarks.downloads import fetch_files
from ifqa.companions.wiqa import counts
from ifqa.companions.wiqa.question_generation import SAMPLE, write_questions
from ifqa.errors import ConfigError
from ifqa.protocols import Benchmark, Counts

_Repeated = list[str] | None


def counting(benchmark: Benchmark) -> Callable[..., Counts]:
    """What `ifqa stats wiqa` counts: by default the files in the benchmark's folder."""
    folder = str(benchmark.folder)

    def count(
        sources: Annotated[
            _Repeated, Argument(help=f"Files, a folder, or {SAMPLE}.", show_default=folder)
        ] = None,
        graphs: Annotated[
            Path | None,
            Option(help="File of graphs; each label is checked against its path in the graph."),
        ] = None,
    ) -> Counts:
        """Count WIQA's topics, paragraphs, graphs and questions by split, and show the paper's
        Table 1 beside them.
        """
        counted = counts.measure(sources or [folder], graphs)
        table = counts.table(counted, published=sources != [SAMPLE])
        return Counts([table], {"splits": counted, "paper": counts.PUBLISHED})

    return count


def fetching(benchmark: Benchmark) -> Callable[..., Iterable[str]]:
    """What `ifqa data wiqa` does: fetches the release, or makes questions beside it."""

    def fetch(
        source: Annotated[
            Path | None,
            Option(
                "--from",
                help="Take the files from this folder instead of downloading them.",
                metavar="FOLDER",
            ),
        ] = None,
        graphs: Annotated[
            _Repeated,
            Option(
                "--questions-from",
                metavar="GRAPHS",
                help=f"File of influence graphs, or {SAMPLE}, to make questions from. Repeatable.",
            ),
        ] = None,
        seed: Annotated[
            int | None, Option(min=0, help="Seed for making the questions.", show_default="0")
        ] = None,
    ) -> Iterable[str]:
        """Fetch WIQA, or make questions from influence graphs.

        The new questions go to data/wiqa/made-train.jsonl, made-dev.jsonl and
        made-test.jsonl.
        """
        if graphs and source:
            raise ConfigError("found --questions-from and --from; wanted one of them")
        if seed is not None and not graphs:
            raise ConfigError("--seed is for --questions-from; leave it out")
        if not graphs:
            return fetch_files(benchmark, source)
        return write_questions(benchmark.folder.parents[1], graphs, seed or 0)

    return fetch
