"""The command line: each verb turns its arguments into one call. Results go to stdout, progress to stderr.

Exit codes: 0 success, 1 a score outside its tolerance, 2 the user's error, in one line, 130 stopped, 141 nobody reads the
output. Any other exit is a bug.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from ifqa.cli import others
from ifqa.cli.ask import ask
from ifqa.cli.options import (
    CorpusName,
    Engine,
    Json,
    Processes,
    Quiet,
    changed_run,
    changing,
    complete_experiment,
    on_run,
    print_json,
    print_line,
    quietly,
    refuse_broken_text,
    show_help,
    with_workers,
)
from ifqa.cli.process import each, run_process
from ifqa.cli.stats import stats
from ifqa.cli.train import train
from ifqa.errors import IfqaError
from ifqa.progress import be_quiet
from ifqa.version import __version__

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run
    from ifqa.workers.tasks import Workers

app = typer.Typer(
    help="Open-domain counterfactual question answering: dump -> passages -> index -> retrieve -> read -> score.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command()(ask)


@app.command()
def passages(corpus: CorpusName, workers: Processes = None, engine: Engine = None, json: Json = False) -> None:
    """Build a corpus's passages from its sources."""
    from ifqa.config.corpus import load_corpus
    from ifqa.pipeline import stages

    _show_artifact(stages.build_passages(load_corpus(corpus, engine=engine, workers=workers)), json)


@app.command()
def index(
    corpus: CorpusName,
    name: Annotated[str | None, typer.Option("--index", help="Only this one of its indexes.")] = None,
    json: Json = False,
) -> None:
    """Build a corpus's indexes, and its passages first if they are not there."""
    from ifqa.config.corpus import load_corpus
    from ifqa.pipeline import stages

    loaded = load_corpus(corpus)
    if not loaded.indexes:
        raise IfqaError(f"corpus {corpus} has no [index.NAME] to build; its passages: ifqa passages {corpus}")
    stages.build_passages(loaded)
    for part in loaded.indexes if name is None else [name]:
        _show_artifact(stages.build_index(loaded, part), json)


@app.command()
@with_workers
@on_run("retrieve")
def retrieve(run: "Run", workers: "Workers", json: Json = False) -> None:
    """Rank passages for an experiment's questions."""
    from ifqa.pipeline import stages

    raise typer.Exit(_show_artifact(stages.retrieve(run, None, workers), json))


@app.command()
@with_workers
@on_run("read")
def read(run: "Run", workers: "Workers", json: Json = False) -> None:
    """Answer an experiment's questions from their ranked passages."""
    from ifqa.pipeline import stages

    raise typer.Exit(_show_artifact(stages.read(run, None, workers), json))


@app.command()
@on_run("score")
def score(run: "Run", json: Json = False) -> None:
    """Score an experiment's rankings and answers over all of its questions."""
    from ifqa.pipeline import stages

    raise typer.Exit(_show(run, stages.score(run), json))


@app.command()
@with_workers
@changing("read")
def run(
    changes: dict[str, object],
    workers: "Workers",
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments: files experiments/NAME.toml. [default: sample]", autocompletion=complete_experiment
        ),
    ] = None,
    show: Annotated[
        int,
        typer.Option(
            "--show",
            min=0,
            help="Also show N questions with answer and evidence: in turn a right, a wrong and an unanswered one.",
        ),
    ] = 0,
    json: Json = False,
) -> None:
    """Run every stage of experiments that is not done, and show the scores."""
    chosen = [changed_run(name, changes) for name in experiments or ["sample"]]
    from ifqa.pipeline import stages
    from ifqa.pipeline.system import Session
    from ifqa.report.console import show_examples

    session = Session()  # one session, so that a cap holds for all experiments together

    def run_one(run: "Run") -> int:
        folder = stages.run(run, session, workers)
        if show and run.experiment.reader and not json:
            show_examples(run, folder, show)
        return _show(run, folder, json)

    raise typer.Exit(each(chosen, run_one, [run.experiment.name for run in chosen]))


@app.command()
@with_workers
@on_run("read")
def probe(run: "Run", workers: "Workers", json: Json = False) -> None:
    """Read a finished experiment's questions again with another supposition or other passages, and show what is lost."""
    from rich.console import Console

    from ifqa.pipeline.probe import probe as probe_all
    from ifqa.report.result_tables import losses_table

    name, losses = run.experiment.name, probe_all(run, None, workers)
    if json:
        print_json({"experiment": name, "losses": [asdict(loss) for loss in losses]})
    else:
        losses_table({name: losses}).show(Console(highlight=False))


@app.command()
@changing("read")
def check(
    names: Annotated[list[str], typer.Argument(help="Experiments or corpora.", autocompletion=complete_experiment)],
    changes: dict[str, object],
    verify: Annotated[bool, typer.Option("--verify", help="Also hash every file of the results.")] = False,
    json: Json = False,
) -> None:
    """Dry run: list what is needed and missing, check settings, and estimate disk, memory, time and cost."""
    from ifqa.pipeline.check import Finding, as_json, line_of
    from ifqa.pipeline.check import check as check_all

    def check_one(name: str) -> int:
        findings: list[Finding] = []
        problem: IfqaError | None = None
        try:
            for finding in check_all(name, changes, verify):
                findings.append(finding)
                if not json:
                    print_line(line_of(finding))  # each as it comes: with a dump they take a while
        except IfqaError as error:
            problem = error
        if json:
            print_json(as_json(name, findings, str(problem or "")))
        if problem:
            raise problem
        return 0

    raise typer.Exit(each(names, check_one, names))


for name, verb in others.MORE.items():
    app.command(name)(verb)
app.add_typer(train, name="train")
app.add_typer(stats, name="stats")
for group in (app, stats):
    for command in group.registered_commands:
        if command.callback:
            command.callback = quietly(command.callback)


def _show_artifact(folder: Path, json: bool) -> int:
    """Print the folder of a stage's artifact; as JSON, also the `record` of its manifest. Gives the exit code."""
    from ifqa.report.console import all_failed
    from ifqa.storage.artifacts import read_manifest

    manifest = read_manifest(folder)
    record = {**manifest["record"]} if manifest else {}
    if json:
        print_json({"folder": str(folder), "record": record})
    else:
        print_line(folder)
    return int(all_failed(record))


def _show(run: "Run", folder: Path, json: bool) -> int:
    """Print an experiment's scores, as tables or as JSON; gives the exit code."""
    from ifqa.report.console import exit_code, scores_json, show_scores
    from ifqa.scoring.score_files import read_scores

    if not json:
        return show_scores(run, folder)
    scores = read_scores(folder)
    print_json(scores_json(run.experiment, folder, scores))
    return exit_code(run.experiment, scores)


def _version(wanted: bool) -> None:
    if wanted:
        from ifqa.storage.resources import commit

        print(f"ifqa {__version__}" + (f" ({commit()})" if commit() else ""))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_version, is_eager=True, help="Show the version, and in a checkout the commit."
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Open-domain counterfactual question answering: dump -> passages -> index -> retrieve -> read -> score."""
    be_quiet(quiet)
    show_help(context)


@cache
def parser() -> Callable[..., Any]:
    """What reads the arguments and calls a verb, built once in a process: typer builds it anew for each call of `app`."""
    return get_command(app)


def main() -> None:
    """Run the command line; the user's errors are one line on stderr and exit code 2."""

    def command() -> int:
        refuse_broken_text(sys.argv[1:])
        return int(parser()(standalone_mode=False) or 0)

    run_process(command)
