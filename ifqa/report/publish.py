"""`ifqa report`: RESULTS.md, what it was made from, a README's table, and the page."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.report.browse import browse
from ifqa.report.curves import recall_curve, recall_svg
from ifqa.report.page import write_page
from ifqa.report.results import RECORDS, Result, gather, read_records, updated
from ifqa.report.table import grids, markdown, readme_table
from ifqa.scoring.declared import declared, joined
from ifqa.scoring.summary import partial
from ifqa.storage.artifacts import lock
from ifqa.storage.files import create, json_line, write

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
        IfqaError: `into` has no marks, RESULTS.md is somebody else's, a record was changed, another report is being written,
            or with `check` something is stale.
    """
    chosen = [load_experiment(name).name for name in shown]
    with nullcontext() if check else lock(RESULTS.parent):
        recorded = read_records()
        results = gather(recorded)
        here = [one for one in results if one.here]
        for name in chosen:
            if not any(one.experiment.name == name for one in here):
                raise IfqaError(f"{name} is not finished here; finish it first: ifqa run {name}")
        tables = grids(results)
        texts = {
            RECORDS: b"".join(map(json_line, updated(recorded, results))).decode(),
            RESULTS: markdown(tables, results),
        }
        if into:
            texts[into] = _replaced(into, readme_table(results))
        if RESULTS.exists() and not _text(RESULTS).startswith("# Results\n\nWritten by `ifqa report`"):
            raise IfqaError(f"{RESULTS} was not written by ifqa report; move it elsewhere, and report again")
        if check:
            for path, text in texts.items():
                if not path.exists() or _text(path) != text:
                    raise IfqaError(f"{path} is stale; write it again: ifqa report{f' --into {into}' if into else ''}")
            return
        here = [one for one in here if not chosen or one.experiment.name in chosen]
        write_page(PAGE, tables, list(_figures(here)), browse([one.experiment for one in here]), _about(here))
        yield PAGE
        for path, text in texts.items():
            with create(path.resolve()) as handle:  # a link stays one
                write(handle, text.encode())
            yield path


def _text(path: Path) -> str:
    """A file's text, its ends of lines as they are."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise IfqaError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from error


def _replaced(path: Path, table: str) -> str:
    """A file's text with another table between the marks, its ends of lines kept."""
    text = _text(path) if path.exists() else ""
    if (text.count(BEGIN), text.count(END)) != (1, 1) or text.index(END) < text.index(BEGIN):
        raise IfqaError(f"{path}: wanted the lines {BEGIN!r} and {END!r} once each, between which the table goes")
    before, rest = text.split(BEGIN)
    block = f"{BEGIN}\n\n{table}\n{END}"
    return before + (block.replace("\n", "\r\n") if "\r\n" in text else block) + rest.split(END)[1]


def _figures(results: Sequence[Result]) -> Iterator[str]:
    """The retrievers of a whole split over the same passages, over others it would be another measure: a curve each."""
    together: dict[str, list[Result]] = {}
    for one in results:
        if one.experiment.corpus and one.scores and not partial(one.scores):
            passages = f"{one.made['passages']:,} passages of {one.experiment.corpus}"
            together.setdefault(f"{one.experiment.benchmark} {one.experiment.split}, {passages}", []).append(one)
    for over, several in together.items():
        by = joined(declared(one.experiment.benchmark, one.experiment.measures) for one in several)
        for measure in (one for one in by.rankings if one.tables):
            measured = [
                recall_curve(one.experiment.name, one.scores["measures"], measure.name) for one in several if one.scores
            ]
            if curves := [curve for curve in measured if curve]:
                title = measure.title or measure.name
                yield recall_svg(f"{title[:1].upper()}{title[1:]} at K, {over}", curves)


def _about(results: Sequence[Result]) -> str:
    if not results:
        return "No experiment is finished here."
    days, machines = ({one.made[key] for one in results} for key in ("at", "hardware"))
    first, last = min(days)[:10], max(days)[:10]
    when = f"on {first}" if first == last else f"between {first} and {last}"
    count = f"{len(results)} experiment{'s' * (len(results) > 1)}"
    return f"{count}, run {when}. Hardware: {'; '.join(sorted(machines))}."
