"""The command line: each verb turns its arguments into a call.

Results go to stdout, progress to stderr.

Exit codes: 0 success; 1 a score is off, all requests failed, or a bug; 2 a user's error; 130
stopped; 141 stdout closed.
"""

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import Argument, Exit, Option
from typer.core import TyperGroup
from typer.main import get_command

from ifqa.cli import options
from ifqa.cli.ask import ask, calibrate
from ifqa.cli.data import data
from ifqa.cli.options import CorpusName, Engine, ExperimentName, Json, Processes, Quiet, Repeated
from ifqa.cli.process import print_error, run_each, run_process
from ifqa.cli.publish import publish
from ifqa.cli.setup import doctor, init, notebooks
from ifqa.cli.stats import stats
from ifqa.cli.train import train
from ifqa.errors import ConfigError, IfqaError, unknown_name
from ifqa.progress import is_quiet, show_messages
from ifqa.version import __version__

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run
    from ifqa.report.score_table import ScoreTable
    from ifqa.report.table import Table
    from ifqa.workers.pool import Workers

logger = logging.getLogger(__name__)

_Timeout = Annotated[
    float, Option(min=1, max=3600, help="Maximum number of seconds for an answer.")
]
_Force = Annotated[bool, Option("--force", help="Overwrite an existing file.")]

_PANELS = _ASK, _RUN, _DATA, _LOOK = (
    "Ask and serve",
    "Run an experiment",
    "Prepare data, train",
    "Look",
)


class Verbs(TyperGroup):
    """The verbs.

    Their help fits on one screen, because its text names the options instead of a panel.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        commands: Mapping[str, Any] = self.commands
        return sorted(commands, key=lambda name: _PANELS.index(commands[name].rich_help_panel))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for option in self.get_params(ctx):
            option.hidden = True  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


app = typer.Typer(
    cls=Verbs,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(rich_help_panel=_ASK)(ask)
app.command(rich_help_panel=_ASK)(calibrate)


@app.command(rich_help_panel=_RUN)
def passages(
    corpus: CorpusName, workers: Processes = None, engine: Engine = None, json: Json = False
) -> None:
    """Build a corpus's passages from its sources."""
    from ifqa.config.corpus import load_corpus
    from ifqa.pipeline import stages

    _print_artifact(
        stages.build_passages(load_corpus(corpus, engine=engine, workers=workers)), json
    )


@app.command(rich_help_panel=_RUN)
def index(
    corpus: CorpusName,
    name: Annotated[str | None, Option("--index", help="Build only this index.")] = None,
    workers: Processes = None,
    engine: Engine = None,
    export: Annotated[
        Path | None,
        Option(help="Also pack passages and indexes into this file, for other machines."),
    ] = None,
    archive: Annotated[
        Path | None, Option("--from", help="Build nothing, but unpack a file that --export wrote.")
    ] = None,
    json: Json = False,
) -> None:
    """Build a corpus's indexes, and its passages if they are missing."""
    from ifqa.config.corpus import load_corpus
    from ifqa.pipeline import stages
    from ifqa.pipeline.export import export_corpus, import_corpus, refuse_export
    from ifqa.workers.pool import Workers

    if archive is not None:
        if export or name or engine or workers is not None:
            raise ConfigError("--from builds nothing; give it no other option")
        _print_artifact(import_corpus(archive, corpus), json)
        return
    loaded = load_corpus(corpus, engine=engine, workers=workers)
    if not loaded.indexes:
        raise ConfigError(
            f"corpus {corpus} has no [index.NAME] to build; its passages: ifqa passages {corpus}"
        )
    if export is not None:
        refuse_export(loaded, export)  # before hours of work
    stages.build_passages(loaded)
    chosen = None if engine is None and workers is None else Workers(loaded.workers, loaded.engine)
    parts = list(loaded.indexes) if name is None else [name]
    for part in parts:
        _print_artifact(stages.build_index(loaded, part, chosen), json)
    if export is not None:
        _print_artifact(export_corpus(loaded, parts, export), json)


@app.command(rich_help_panel=_RUN)
@options.with_workers
@options.with_run("retrieve")
def retrieve(run: "Run", workers: "Workers", json: Json = False) -> None:
    """Rank passages for an experiment's questions."""
    from ifqa.pipeline import stages

    raise Exit(_print_artifact(stages.retrieve(run, None, workers), json))


@app.command(rich_help_panel=_RUN)
@options.with_workers
@options.with_run("read")
def read(run: "Run", workers: "Workers", json: Json = False) -> None:
    """Answer an experiment's questions from their ranked passages."""
    from ifqa.pipeline import stages

    raise Exit(_print_artifact(stages.read(run, None, workers), json))


@app.command(rich_help_panel=_RUN)
@options.with_run("score")
def score(run: "Run", json: Json = False) -> None:
    """Score an experiment's rankings and answers over all questions."""
    from ifqa.pipeline import stages

    raise Exit(_print_scores(run, stages.score(run), json))


@app.command(rich_help_panel=_RUN, cls=options.SweepCommand)
@options.with_workers
@options.with_sweep("read")
def run(
    values: dict[str, list[object]],
    seeds: int,
    workers: "Workers",
    experiments: Annotated[
        Repeated,
        Argument(
            help="Names of experiments.",
            show_default="sample",
            autocompletion=options.complete_experiments,
        ),
    ] = None,
    show: Annotated[
        int, Option(min=0, help="Also show N questions: right, wrong and unanswered ones in turn.")
    ] = 0,
    json: Json = False,
) -> None:
    """Run the unfinished stages of experiments; show scores.

    With several values of a flag, as in --k 5 10 --prompt a b, it runs every combination and shows
    one table. With --seeds N it runs each combination N times.
    """
    rows = options.sweep_rows(experiments or ["sample"], values, seeds)
    from ifqa.pipeline import stages
    from ifqa.pipeline.run import Run
    from ifqa.pipeline.session import Session
    from ifqa.report.console import show_examples

    session = Session()  # shared, so that a cap holds for all experiments together
    is_sweep = options.is_sweep(rows)
    if is_sweep and show:
        raise ConfigError(f"--show {show} is for one value of each flag; leave it out")
    runs = [Run(experiment) for row in rows for experiment in row.variation.experiments]

    finished: set[str] = set()

    def run_one(run: "Run") -> int:
        folder = stages.run(run, session, workers)
        finished.add(run.experiment.name)
        if is_sweep:
            return _exit_code(run, folder)
        if show and run.experiment.reader and not json:
            show_examples(run, folder, show)
        return _print_scores(run, folder, json)

    code = run_each(runs, run_one, [run.experiment.name for run in runs])
    whole = [
        row
        for row in rows
        if all(experiment.name in finished for experiment in row.variation.experiments)
    ]
    if is_sweep and whole:
        from ifqa.report.score_table import make_score_table

        _print_table(make_score_table(whole), "", json)
    raise Exit(code)


@app.command(rich_help_panel=_RUN)
@options.with_workers
@options.with_run("read")
def probe(run: "Run", workers: "Workers", json: Json = False) -> None:
    """Test whether a reader uses the supposition and the passages.

    It reads a finished experiment's questions again: without the supposition, with another
    question's supposition, and with another question's passages. It shows the loss in each measure.
    """
    from rich.console import Console

    from ifqa.pipeline.probe import probe as probe_all
    from ifqa.report.result_tables import show_losses

    losses = probe_all(run, workers)
    if json:
        shown = [asdict(loss) for loss in losses]
        options.print_json({"experiment": run.experiment.name, "losses": shown})
    else:
        show_losses(losses, Console(highlight=False))


@app.command(rich_help_panel=_RUN, cls=options.SweepCommand)
@options.with_sweep("read")
def check(
    names: Annotated[
        list[str],
        Argument(
            help="Names of experiments or corpora.", autocompletion=options.complete_experiments
        ),
    ],
    values: dict[str, list[object]],
    seeds: int,
    engine: Engine = None,
    json: Json = False,
) -> None:
    """Dry run: check settings and files; estimate time and cost.

    It also lists what is missing, and estimates disk and memory. With --engine ray it lists what
    each node of the cluster lacks. With several values of a flag, or --seeds, it checks every run
    of the sweep and adds up the cost.
    """
    from ifqa.config.sweep import sweep_changes
    from ifqa.pipeline.check import Finding, Work, findings_json, total_work
    from ifqa.pipeline.check import check as check_all
    from ifqa.pipeline.session import Session

    tasks = [(name, changes) for name in names for changes in sweep_changes(values, seeds)]
    shared: set[str] = set()
    session = Session()
    work: list[Work] = []

    def check_one(task: tuple[str, dict[str, object]]) -> int:
        name, changes = task
        findings: list[Finding] = []
        problem: IfqaError | None = None
        try:
            for finding in check_all(name, changes, engine=engine, shared=shared, session=session):
                findings.append(finding)
                if not json:
                    options.print_line(finding)  # at once, because sampling a dump takes a while
        except IfqaError as error:
            problem = error
        if json:
            options.print_json(findings_json(name, findings, str(problem or "")))
            if problem:  # it is in the JSON already
                return print_error(f"{name}: {problem}" if len(tasks) > 1 else str(problem))
        work.extend(finding for finding in findings if isinstance(finding, Work))
        if problem:
            raise problem
        return 0

    code = run_each(tasks, check_one, [name for name, _ in tasks])
    if len(tasks) > 1 and (total := total_work(work, len(tasks))):
        options.print_json(findings_json("all", [total], "")) if json else options.print_line(total)
    raise Exit(code)


app.command(rich_help_panel=_DATA)(options.with_changes("draft")(init))
# Its help would not fit on the screen; docs/models.md has it
app.command(rich_help_panel=_DATA, hidden=True)(publish)
app.command(rich_help_panel=_LOOK)(notebooks)


@app.command("list", rich_help_panel=_LOOK)
def list_names(
    kind: Annotated[
        str,
        Argument(help="List only this kind, with descriptions: experiments, corpora, readers ..."),
    ] = "",
    json: Json = False,
) -> None:
    """List experiments, corpora, benchmarks, plugins and prompts."""
    from ifqa.cli.listing import list_kind, show_list

    options.print_json(list_kind(kind)) if json else show_list(kind)


@app.command(rich_help_panel=_LOOK)
def runs(
    words: Annotated[
        Repeated,
        Argument(help="Show only runs with all of these words, such as a split or a model."),
    ] = None,
    count: Annotated[int, Option("--count", "-n", min=1, help="Show at most N runs.")] = 30,
    json: Json = False,
) -> None:
    """List finished runs with their scores, newest first."""
    from ifqa.report.finished_runs import finished_runs, runs_table

    found = finished_runs(words or [])
    if json:
        options.print_json({"runs": [run.to_dict() for run in found[:count]]})
        return
    if found:
        _show_table(runs_table(found[:count]))
    about = f" with {' '.join(words)}" if words else ""
    if not found:
        options.print_line(f"no finished run here{about}")
    elif len(found) > count:
        options.print_line(f"{len(found) - count} more: ifqa runs --count {len(found)}")


app.command(rich_help_panel=_LOOK)(doctor)


@app.command(rich_help_panel=_DATA)
def convert(
    source: Annotated[
        str,
        Argument(
            help="An experiment, a split (ifqa:full-dev), or questions as JSON, CSV or parquet."
        ),
    ],
    to: Annotated[
        Path,
        Option(
            help="File to write, in the format of its suffix: .json (ctxs of DPR and FiD), .trec, "
            ".qrels, .tsv (topics), .jsonl (a file of questions). Without a suffix it is a folder "
            "for Hugging Face datasets."
        ),
    ],
    k: Annotated[
        int | None, Option(help="Write only the first K passages of each question.")
    ] = None,
    corpus: Annotated[
        str,
        Option(help="For .qrels: judge all passages of this corpus instead of the retrieved ones."),
    ] = "",
    force: _Force = False,
) -> None:
    """Write runs, questions and qrels in other tools' formats."""
    from ifqa.pipeline.convert import convert as convert_file

    options.print_line(convert_file(source, to, k, force, corpus))


@app.command(rich_help_panel=_DATA, hidden=True)  # for $(ifqa tasks): docs/scoring.md
def tasks() -> None:
    """Print the folder of ifqa's tasks for lm-eval (--include_path).

    inspect finds ifqa's tasks by itself: inspect eval ifqa/questions.
    """
    from ifqa.storage.resources import PACKAGE

    print(PACKAGE / "tasks")


@app.command(rich_help_panel=_RUN)
def compare(
    first: Annotated[
        str,
        Argument(help="A scored experiment; with --fail-if-worse, also a copy of a score folder."),
    ],
    others: Annotated[
        list[str], Argument(help="Other experiments, scored on the same questions; see --common.")
    ],
    measure: Annotated[
        str,
        Option(
            help="With two experiments: the measure of the questions to show, by default the "
            "headline. With more experiments: compare only this measure."
        ),
    ] = "",
    show: Annotated[
        int | None,
        Option(
            min=0,
            help="With two experiments: show the N questions that differ most.",
            show_default="10",
        ),
    ] = None,
    common: Annotated[
        bool, Option("--common", help="Compare only over the questions that all experiments share.")
    ] = False,
    fail_if_worse: Annotated[
        bool,
        Option(
            "--fail-if-worse",
            help="Exit with 1 if the second experiment scores significantly lower in any measure, "
            "or in --measure.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Compare experiments with the first by paired tests.

    With two experiments, it also shows the questions on which they differ most. With
    --fail-if-worse it is a regression gate: it fails only if a measure got significantly worse. It
    refuses to compare scores whose questions, labels or corpus changed in between.
    """
    from rich.console import Console

    from ifqa.config.experiment import load_experiment
    from ifqa.report.compare import compare_pair, compare_to_first

    if fail_if_worse:
        _gate(first, others, measure, show, common, json)
    if len(others) > 1 and show:
        raise ConfigError(f"--show {show} is for two experiments; found {len(others) + 1}")
    a, b, *more = (load_experiment(name) for name in (first, *others))
    count = 10 if show is None else show
    deltas = (
        compare_to_first(a, [b, *more], measure, common)
        if more
        else compare_pair(a, b, measure, count, common)
    )
    options.print_json(deltas.to_dict()) if json else deltas.show(Console(highlight=False))


@app.command(rich_help_panel=_LOOK, cls=options.SweepCommand)
@options.with_sweep("read")
def table(
    experiments: Annotated[
        list[str],
        Argument(help="Finished experiments.", autocompletion=options.complete_experiments),
    ],
    values: dict[str, list[object]],
    seeds: int,
    style: Annotated[
        str,
        Option("--format", help="latex, csv or markdown. By default, a table for the terminal."),
    ] = "",
    columns: Annotated[
        Repeated, Option(help="Scores to show, such as EM gold_any@20 numeric.EM.")
    ] = None,
    names: Annotated[
        Repeated,
        Option(help="NAME=TEXT: show a row or column under another name, as in bm25=BM25."),
    ] = None,
    against: Annotated[
        str, Option(help="Mark the scores that differ significantly from this row's.")
    ] = "",
    intervals: Annotated[
        bool, Option("--intervals", help="With --against: also show the 95% intervals.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the scores of finished experiments as a table for a paper.

    The best score of a column is bold. As for `ifqa run`, flags with several values, or --seeds,
    stand for all runs of a sweep.
    """
    from ifqa.report.score_table import make_score_table

    if style not in ("", "latex", "csv", "markdown"):
        raise unknown_name("format", style, ["latex", "csv", "markdown"])
    rows = options.sweep_rows(experiments, values, seeds)
    rows, titles = options.rename_rows(rows, names or [])
    shown = True if intervals else None
    _print_table(make_score_table(rows, columns or [], against, shown, titles), style, json)


def _gate(
    first: str, others: list[str], measure: str, show: int | None, common: bool, json: bool
) -> NoReturn:
    """Exit with 1 if the second system is worse, else with 0."""
    from rich.console import Console

    from ifqa.config.experiment import load_experiment
    from ifqa.report.gate import check_gate

    if len(others) > 1 or common:
        problem = "--common" if common else f"{len(others) + 1} experiments"
        raise ConfigError(
            f"--fail-if-worse is for two experiments over the same questions; found {problem}"
        )
    earlier = (
        Path(first)
        if "/" in first or (Path(first) / "manifest.json").is_file()
        else load_experiment(first)
    )
    gate = check_gate(earlier, load_experiment(others[0]), measure)
    if json:
        options.print_json(gate.to_dict())
    else:
        gate.show(Console(highlight=False), 10 if show is None else show)
    raise Exit(int(bool(gate.failed)))


@app.command(rich_help_panel=_RUN)
def report(
    experiments: Annotated[
        Repeated,
        Argument(help="Experiments whose questions the page shows.", show_default="all finished"),
    ] = None,
    into: Annotated[
        Path | None, Option(help="Also write the table of results into this README.md.")
    ] = None,
    check: Annotated[
        bool, Option("--check", help="Write nothing; fail if a written file is out of date.")
    ] = False,
    json: Json = False,
) -> None:
    """Write all results beside published ones, as tables and a page.

    It writes the tables to experiments/RESULTS.md, and a page with curves and every question to
    experiments/report.html. --json prints all recorded scores.
    """
    from ifqa.report.publish import publish
    from ifqa.report.results_log import read_records

    files = list(publish(into, experiments or [], check))
    if json:
        scores = {
            name: {**record["scores"], "made": record["made"]}
            for name, record in read_records().items()
        }
        options.print_json({"files": list(map(str, files)), "experiments": scores})
    for path in [] if json else files:
        options.print_line(path)


@app.command(rich_help_panel=_ASK)
@options.with_search(ExperimentName)
def serve(
    run: "Run",
    changed: list[str],
    host: Annotated[
        str, Option(help="Address to listen on; any address but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")
    ] = 8017,
    token_file: Annotated[
        Path | None,
        Option(help="File with the token. By default it is in the variable IFQA_TOKEN."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, Option(help="Host name by which clients reach this machine. Repeatable.")
    ] = None,
    queue: Annotated[
        int, Option(help="Maximum number of waiting questions; others get 503.")
    ] = 256,
    timeout: _Timeout = 60.0,
) -> None:
    """Serve a web page, a JSON API and MCP tools on this machine.

    The page answers questions and shows the results.
    """
    from ifqa.serve.limits import Limits, cap_cost
    from ifqa.serve.security import make_guard

    guard = make_guard(host, token_file, allow_host or ())
    from ifqa.serve.server import serve as serve_all

    serve_all(
        cap_cost(run.experiment, changed), host, port, guard, Limits(queue, timeout), is_quiet()
    )


@app.command(rich_help_panel=_ASK)
@options.with_search(ExperimentName)
def mcp(run: "Run", changed: list[str], timeout: _Timeout = 60.0) -> None:
    """Serve MCP tools over stdin and stdout, for an assistant.

    The tools are ask, retrieve and get_passage. The assistant starts this command.
    """
    from ifqa.serve.limits import Limits, cap_cost
    from ifqa.serve.server import serve_tools

    serve_tools(cap_cost(run.experiment, changed), Limits(seconds=timeout), is_quiet())


app.add_typer(data, name="data", rich_help_panel=_DATA)
app.add_typer(train, name="train", rich_help_panel=_DATA)
app.add_typer(stats, name="stats", rich_help_panel=_LOOK)
for command in app.registered_commands:
    if command.callback:
        command.callback = options.with_quiet(command.callback)


def _print_artifact(folder: Path, json: bool) -> int:
    """Print a stage's folder; as JSON, also the `record` of its manifest. Returns the exit code."""
    from ifqa.report.console import all_failed
    from ifqa.storage.artifacts import read_manifest

    manifest = read_manifest(folder)
    record = {**manifest["record"]} if manifest else {}
    if json:
        options.print_json({"folder": str(folder), "record": record})
    else:
        options.print_line(folder)
    return int(all_failed(record))


def _exit_code(run: "Run", folder: Path) -> int:
    from ifqa.report.console import exit_code
    from ifqa.report.scores import read_content

    return exit_code(run.experiment, read_content(run.experiment, folder))


def _print_table(table: "ScoreTable", style: str, json: bool) -> None:
    """Print a table of scores in a format: latex, csv, markdown, or "" for the terminal."""
    if json:
        options.print_json(table.to_dict())
    elif style == "latex":
        print(table.latex(), end="")
    elif style == "csv":
        print(table.csv(), end="")
    elif style == "markdown":
        print(table.markdown(), end="")
    else:
        _show_table(table.table())


def _show_table(table: "Table") -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200  # a table in a pipe or a file is not cut
    table.show(Console(highlight=False, width=width), gap=2)


def _print_scores(run: "Run", folder: Path, json: bool) -> int:
    """Print an experiment's scores; returns the exit code."""
    from ifqa.report.console import exit_code, scores_json, show_scores
    from ifqa.report.scores import read_content

    if not json:
        return show_scores(run, folder)
    scores = read_content(run.experiment, folder)
    options.print_json(scores_json(run, folder, scores))
    return exit_code(run.experiment, scores)


def _version(shown: bool) -> None:
    if shown:
        from ifqa.storage.resources import git_commit

        print(f"ifqa {__version__}" + (f" ({git_commit()})" if git_commit() else ""))
        raise Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        Option(
            "--version",
            "-V",
            callback=_version,
            is_eager=True,
            help="Show the version and the commit.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Answer counterfactual questions. `ifqa VERB --help` explains a verb.

    Options: --version, --quiet, --install-completion, --show-completion, --help.
    """
    show_messages(quiet)
    options.show_help(context)


@cache
def parser() -> Callable[..., Any]:
    """The parser of all verbs, built once: typer would build it again for each call of `app`."""
    return get_command(app)


def main() -> None:
    """Run the command line; a user's error is one line on stderr and exit code 2."""

    def command() -> int:
        options.refuse_broken_text(sys.argv[1:])
        return int(parser()(standalone_mode=False) or 0)

    run_process(command)
