"""The command line: arguments to one call each. The result goes to stdout, progress to stderr.

Exit codes: 0 fine, 1 a score outside its tolerance, 2 the user's error in one line. Anything else is a bug.
"""

import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from ifqa import __version__
from ifqa.cli import others
from ifqa.cli.options import CorpusName, ExperimentName, changed_experiment, changing
from ifqa.errors import IfqaError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # click's, which typer carries inside since 0.29

STOPPED = 130  # what a shell gives for Ctrl-C

app = typer.Typer(
    help="Open-domain counterfactual question answering: dump -> passages -> index -> retrieve -> read -> score.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
@changing("passages", "retriever", "reader", "checkpoint", "prompt", "model", "max_cost", "max_tokens")
def ask(
    question: Annotated[str, typer.Argument(help='A counterfactual question: "If ..., ...?"')],
    changes: dict[str, Any],
    experiment: ExperimentName = "sample",
) -> None:
    """Answer one question: the answer, and the passages that say what is so in fact."""
    chosen = changed_experiment(experiment, changes)
    from ifqa.pipeline import stages
    from ifqa.report.screen import show_answer

    show_answer(question, stages.ask(chosen, question))


@app.command()
def passages(
    corpus: CorpusName,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="Processes to work with; 0: all cores.")
    ] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="local, or ray for a cluster.")] = None,
) -> None:
    """Build a corpus's passages from its sources."""
    from ifqa.config.corpus import load_corpus
    from ifqa.pipeline import stages

    print(stages.build_passages(load_corpus(corpus, engine=engine, workers=workers)))


@app.command()
def index(
    corpus: CorpusName,
    name: Annotated[str | None, typer.Option("--index", help="Only this one of its indexes.")] = None,
) -> None:
    """Build a corpus's indexes, and its passages first if they are not there."""
    from ifqa.config.corpus import load_corpus
    from ifqa.pipeline import stages

    loaded = load_corpus(corpus)
    if not loaded.indexes:
        raise IfqaError(f"corpus {corpus} has no [index.NAME] to build; its passages: ifqa passages {corpus}")
    stages.build_passages(loaded)
    for one in loaded.indexes if name is None else [name]:
        print(stages.build_index(loaded, one))


@app.command()
@changing("k", "retriever", "model", "max_cost", "max_tokens", "limit")
def retrieve(changes: dict[str, Any], experiment: ExperimentName = "sample") -> None:
    """Rank passages for an experiment's questions."""
    chosen = changed_experiment(experiment, changes)
    from ifqa.pipeline import stages

    print(stages.retrieve(chosen))


@app.command()
@changing("k", "retriever", "reader", "checkpoint", "prompt", "model", "max_cost", "max_tokens", "limit")
def read(changes: dict[str, Any], experiment: ExperimentName = "sample") -> None:
    """Answer an experiment's questions from their ranked passages."""
    chosen = changed_experiment(experiment, changes)
    from ifqa.pipeline import stages

    print(stages.read(chosen))


@app.command()
@changing("k", "retriever", "reader", "checkpoint", "prompt", "model", "limit")
def score(changes: dict[str, Any], experiment: ExperimentName = "sample") -> None:
    """Score an experiment's rankings and answers over all of its questions."""
    chosen = changed_experiment(experiment, changes)
    from ifqa.pipeline import stages
    from ifqa.report.screen import show_scores

    raise typer.Exit(show_scores(chosen, stages.score(chosen)))


@app.command()
@changing("k", "retriever", "reader", "checkpoint", "prompt", "model", "max_cost", "max_tokens", "limit")
def run(
    changes: dict[str, Any],
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments: files experiments/NAME.toml. [default: sample]")
    ] = None,
    show: Annotated[
        int, typer.Option("--show", min=0, help="Also show the first N questions with answer and evidence.")
    ] = 0,
) -> None:
    """Run every stage of experiments that is not done, and show their scores."""
    chosen = [changed_experiment(name, changes) for name in experiments or ["sample"]]
    from ifqa.pipeline import stages
    from ifqa.report.screen import show_examples, show_scores

    def run_one(experiment: Any) -> int:
        folder = stages.run(experiment)
        if show and experiment.reader:
            show_examples(experiment, show)
        return show_scores(experiment, folder)

    raise typer.Exit(_each(chosen, run_one, [one.name for one in chosen]))


@app.command()
@changing("k", "retriever", "reader", "checkpoint", "prompt", "model", "max_cost", "max_tokens", "limit")
def check(names: Annotated[list[str], typer.Argument(help="Experiments or corpora.")], changes: dict[str, Any]) -> None:
    """Everything but the work: names, settings, files, and what it will take in disk, memory, time and money."""
    from ifqa.pipeline.check import check as check_all

    def check_one(name: str) -> int:
        for line in check_all(name, changes):
            print(line)
        return 0

    raise typer.Exit(_each(names, check_one, names))


for name, verb in others.MORE.items():
    app.command(name)(verb)
app.add_typer(others.train, name="train")
app.add_typer(others.stats, name="stats")


def _each(several: Sequence[Any], do: Callable[[Any], int], names: Sequence[str]) -> int:
    """The highest exit code; of several, what fails with one does not keep the others from their turn."""
    code = 0
    for one, name in zip(several, names, strict=True):
        try:
            code = max(code, do(one))
        except (IfqaError, OSError) as error:
            if len(several) == 1:
                raise
            code = _complain(f"{name}: {_in_words(error)}")
    return code


def _in_words(error: IfqaError | OSError) -> str:
    """What is wrong, or what the system refuses: a folder where a file is wanted, no permission, a read-only disk."""
    if isinstance(error, IfqaError):
        return str(error)
    if error.errno is None:  # a library's own, and so a bug
        raise error
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ifqa {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Open-domain counterfactual question answering: dump -> passages -> index -> retrieve -> read -> score."""


def main() -> None:
    """Run the command line; the user's errors are one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a pipe on Windows is not UTF-8: better a "?" than no answer
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        code = _complain(error.format_message())  # type: ignore[attr-defined]
    except (IfqaError, OSError) as error:
        code = _complain(_in_words(error))
    except (typer.Abort, KeyboardInterrupt):
        code = STOPPED
    if code == STOPPED:  # typer itself makes this of a Ctrl-C
        print("stopped; what is finished is kept, the same command goes on from there", file=sys.stderr)
    sys.exit(code)


def _complain(message: str) -> int:
    print(f"ifqa: {' '.join(message.split())}", file=sys.stderr)
    return 2
