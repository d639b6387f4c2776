"""`ifqa report`: writes RESULTS.md, RESULTS.jsonl, the HTML page, a README's table and a page for each experiment."""

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.report.experiment_pages import check_exported, export, is_page
from ifqa.report.experiment_pages import pages as row_pages
from ifqa.report.leaderboard import readers
from ifqa.report.overview import page_of
from ifqa.report.result_tables import in_readme, readme_table, result_tables, results_markdown
from ifqa.report.results import Result, gather, updated
from ifqa.report.results_log import RECORDS, read_records
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
        tables = [*readers(results), *result_tables(results)]
        texts = {
            RECORDS: b"".join(map(json_line, updated(recorded, results))).decode(),
            RESULTS: results_markdown(tables, results),
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
        with create(PAGE) as handle:
            write(handle, page_of(results, chosen).encode("utf-8", "replace"))
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
