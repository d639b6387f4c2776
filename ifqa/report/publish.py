"""`ifqa report`: writes RESULTS.md, RESULTS.jsonl, the HTML page, a README's table and a page for each experiment."""

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.report.browse import browse
from ifqa.report.curves import recall_curve, recall_svg, reliability_curve, reliability_svg, risk_curve, risk_svg
from ifqa.report.page import write_page
from ifqa.report.pages import check_exported, export, is_page
from ifqa.report.pages import pages as row_pages
from ifqa.report.probes import losses_grid
from ifqa.report.records import RECORDS, read_records
from ifqa.report.results import Result, gather, updated
from ifqa.report.table import grids, in_readme, markdown, readme_table
from ifqa.scoring.declared import declared, joined
from ifqa.scoring.summary import Sureness, partial
from ifqa.storage.artifacts import lock
from ifqa.storage.files import create, json_line, write

RESULTS = Path("experiments/RESULTS.md")
PAGE = Path("experiments/report.html")
BEGIN, END = "<!-- written by ifqa report -->", "<!-- until here -->"
#: The first mark may name the experiments of the table: `<!-- written by ifqa report: sample sample-hybrid -->`.
_BLOCK = re.compile(r"(<!-- written by ifqa report(?:: ([^>]*?))? -->).*?(<!-- until here -->)", re.DOTALL)


def publish(
    into: Path | None, shown: Sequence[str], check: bool, pages: Path | None = None, limited: bool = False
) -> Iterator[Path]:
    """Write the results of all experiments; yields each path after it is written.

    Args:
        into: a file in which the text between the marks `BEGIN` and `END` is replaced by the table of measured results.
        shown: experiments whose questions the HTML page shows; empty for all that are finished here.
        check: write nothing; raise an error if a file differs from what would be written, or an exported run or file of
            judgements has other content.
        pages: a folder for a page of each experiment, and the run and judgements of those that are finished here.
        limited: whether variants that `--limit` made are reported too; without it only those in `shown` are.

    Raises:
        IfqaError: `into` has no marks; RESULTS.md or a page was not written by this command; a record was changed; another
            report is being written; or with `check` a file is stale.
    """
    chosen = [load_experiment(name).name for name in shown]
    with nullcontext() if check else lock(RESULTS.parent):
        recorded = read_records()
        results = [one for one in gather(recorded) if limited or one.experiment.name in chosen or not _is_limited(one)]
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
            texts[into] = _replaced(into, results)
        if pages:
            for name, text in row_pages(results).items():
                path = pages / name
                if path.exists() and not is_page(name, _text(path)):
                    raise IfqaError(f"{path} was not written by ifqa report; move it elsewhere, or name another folder")
                texts[path] = text
        if RESULTS.exists() and not _text(RESULTS).startswith("# Results\n\nWritten by `ifqa report`"):
            raise IfqaError(f"{RESULTS} was not written by ifqa report; move it elsewhere, and report again")
        if check:
            for path, text in texts.items():
                if not path.exists() or _text(path) != text:
                    raise IfqaError(
                        f"{path} is stale; write it again: ifqa report{_options(shown, into, pages, limited)}"
                    )
            if pages:
                check_exported(results, pages)
            return
        here = [one for one in here if not chosen or one.experiment.name in chosen]
        figures = [*_figures(here), *_figures_of_confidence(here)]
        probes = losses_grid(one.experiment for one in here)
        write_page(PAGE, [*tables, *probes], figures, browse([one.experiment for one in here]), _about(here))
        yield PAGE
        if pages:
            yield from export(results, pages)
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with create(path.resolve()) as handle:  # write through a link
                write(handle, text.encode())
            yield path


def _is_limited(result: Result) -> bool:
    """Whether a flag made the experiment ask only the first questions; a limit in a file is the experiment's own."""
    return bool(result.experiment.limit) and result.experiment.variant


def _text(path: Path) -> str:
    """A file's text with its line endings unchanged."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise IfqaError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from error


def _options(shown: Sequence[str], into: Path | None, pages: Path | None, limited: bool) -> str:
    options = [*shown, *(["--into", into] if into else ()), *(["--pages", pages] if pages else ())]
    return "".join(f" {one}" for one in [*options, *(["--limited"] if limited else ())])


def _replaced(path: Path, results: Sequence[Result]) -> str:
    """A file's text with a new table between the marks; its line endings are kept.

    Raises:
        IfqaError: the file does not have each mark once, or a mark names an experiment that was not measured.
    """
    text = _text(path) if path.exists() else ""
    blocks = _BLOCK.findall(text)
    if len(blocks) != 1 or text.count(END) != 1:
        raise IfqaError(f"{path}: wanted the lines {BEGIN!r} and {END!r} once each, between which the table goes")
    [(begin, named, end)] = blocks
    chosen = named.split()
    if missing := set(chosen) - {one.experiment.name for one in in_readme(results)}:
        raise IfqaError(
            f"{path}: its mark names experiments that were not measured: {', '.join(sorted(missing))}; wanted experiments "
            "with scores of their whole split, and no variants"
        )
    table = readme_table([one for one in results if not chosen or one.experiment.name in chosen])
    block = f"{begin}\n\n{table}\n{end}"
    block = block.replace("\n", "\r\n") if "\r\n" in text else block
    return _BLOCK.sub(lambda _: block, text)


def _figures(results: Sequence[Result]) -> Iterator[str]:
    """A figure for each set of runs over the same split and passages: only these can be compared in recall."""
    together: dict[str, list[Result]] = {}
    for one in results:
        if one.experiment.corpus and one.scores and not partial(one.scores):
            passages = f"{one.made['passages']:,} passages of {one.experiment.corpus}"
            together.setdefault(f"{one.experiment.benchmark} {one.experiment.split}, {passages}", []).append(one)
    for over, several in together.items():
        by = joined(
            declared(one.experiment.benchmark, one.experiment.measures, split=one.experiment.split) for one in several
        )
        for measure in (one for one in by.rankings if one.tables):
            measured = [
                recall_curve(one.experiment.name, one.scores["measures"], measure.name) for one in several if one.scores
            ]
            if curves := [curve for curve in measured if curve]:
                title = measure.title or measure.name
                yield recall_svg(f"{title[:1].upper()}{title[1:]} at K, {over}", curves)


def _figures_of_confidence(results: Sequence[Result]) -> Iterator[str]:
    """For each split whose readers give confidences: the risk-coverage curves, and the reliability diagram."""
    together: dict[str, list[tuple[str, Sureness]]] = {}
    for one in results:
        if one.scores and "sureness" in one.scores and not partial(one.scores):
            over = f"{one.experiment.benchmark} {one.experiment.split}"
            together.setdefault(over, []).append((one.experiment.name, one.scores["sureness"]))
    for over, several in together.items():
        yield risk_svg(f"Risk at coverage, {over}", [risk_curve(*one) for one in several])
        yield reliability_svg(f"EM at confidence, {over}", [reliability_curve(*one) for one in several])


def _about(results: Sequence[Result]) -> str:
    if not results:
        return "No experiment has been completed in this folder."
    days, machines = ({one.made[key] for one in results} for key in ("at", "hardware"))
    first, last = min(days)[:10], max(days)[:10]
    when = f"on {first}" if first == last else f"between {first} and {last}"
    count = f"{len(results)} experiment{'s' * (len(results) > 1)}"
    return f"{count}, run {when}. Hardware: {'; '.join(sorted(machines))}."
