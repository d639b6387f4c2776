"""`ifqa report`: RESULTS.md, what it was made from, a README's table, and the page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.experiment import load_experiment
from ifqa.files import create, json_line, write
from ifqa.report.browse import browse
from ifqa.report.curves import recall_curve, recall_svg
from ifqa.report.page import write_page
from ifqa.report.results import RECORDS, Result, gather, records
from ifqa.report.table import grids, markdown, readme_table

RESULTS = Path("experiments/RESULTS.md")
PAGE = Path("experiments/report.html")
BEGIN, END = "<!-- written by ifqa report -->", "<!-- until here -->"


def publish(into: Path | None, shown: Sequence[str], check: bool) -> Iterator[Path]:
    """Write the results of all experiments; the paths, when they are written.

    Args:
        into: also a file whose text between the marks of `BEGIN` and `END` is to be the table of what was measured.
        shown: experiments to read question by question on the page; empty for all that are finished here.
        check: write nothing; refuse if a file is not what would be written.

    Raises:
        IfqaError: an experiment is wrong, `into` has no marks, RESULTS.md is somebody else's, or with `check` something is stale.
    """
    chosen = [load_experiment(name).name for name in shown]
    results = gather()
    if missing := [name for name in chosen if not any(one.here and one.experiment.name == name for one in results)]:
        raise IfqaError(f"{missing[0]} is not finished here; finish it first: ifqa run {missing[0]}")
    tables = grids(results)
    texts = {RECORDS: b"".join(map(json_line, records(results))).decode(), RESULTS: markdown(tables)}
    if into:
        texts[into] = _replaced(into, readme_table(results))
    if RESULTS.exists() and not RESULTS.read_text(encoding="utf-8").startswith("# Results\n\nWritten by `ifqa report`"):
        raise IfqaError(f"{RESULTS} was not written by ifqa report; move it elsewhere, and report again")
    if check:
        for path, text in texts.items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                raise IfqaError(f"{path} is stale; write it again: ifqa report{f' --into {into}' if into else ''}")
        return
    here = [one for one in results if one.here and (not chosen or one.experiment.name in chosen)]
    write_page(PAGE, tables, list(_figures(here)), browse([one.experiment for one in here]), _about(here))
    yield PAGE
    for path, text in texts.items():
        with create(path) as handle:
            write(handle, text.encode())
        yield path


def _replaced(path: Path, table: str) -> str:
    """A file's text with another table between the marks."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise IfqaError(
            f"{path}: wanted the lines {BEGIN!r} and {END!r}, between which the table goes; found no such pair"
        )
    return f"{before}{begin}\n\n{table}\n{end}{after}"


def _figures(results: Sequence[Result]) -> Iterator[str]:
    """Recall@K of the retrievers over the same passages, for each split: over others it would be another measure."""
    together: dict[str, list[Result]] = {}
    for one in results:
        if one.experiment.corpus:
            passages = f"{one.made['passages']:,} passages of {one.experiment.corpus}"
            together.setdefault(f"{one.experiment.benchmark} {one.experiment.split}, {passages}", []).append(one)
    for over, several in together.items():
        measured = [recall_curve(one.experiment.name, (one.scores or {})["measures"]) for one in several]
        if curves := [curve for curve in measured if curve]:
            yield recall_svg(f"Gold recall at K, {over}", curves)


def _about(results: Sequence[Result]) -> str:
    if not results:
        return "No experiment is finished here."
    days, machines = ({one.made[key] for one in results} for key in ("at", "hardware"))
    first, last = min(days)[:10], max(days)[:10]
    when = f"on {first}" if first == last else f"between {first} and {last}"
    count = f"{len(results)} experiment{'s' * (len(results) > 1)}"
    return f"{count}, run {when}. Hardware: {'; '.join(sorted(machines))}."
