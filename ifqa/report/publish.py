"""`ifqa report`: writes RESULTS.md, RESULTS.jsonl, the HTML page and a README's table."""

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from ifqa.config.experiment import load_experiment
from ifqa.errors import ConfigError, FormatError, MissingInput
from ifqa.report.html_page import render_report
from ifqa.report.result_tables import (
    reader_tables,
    readme_table,
    result_tables,
    results_markdown,
    select_for_readme,
)
from ifqa.report.results_log import RECORDS, Entry, gather_entries, read_records, update_records
from ifqa.storage.artifacts import lock
from ifqa.storage.files import atomic_write, json_line, write_bytes

RESULTS = Path("experiments/RESULTS.md")
PAGE = Path("experiments/report.html")
BEGIN, END = "<!-- written by ifqa report -->", "<!-- until here -->"
#: The first mark may name the experiments of the table: `<!-- written by ifqa report: sample
#: sample-hybrid -->`.
_BLOCK = re.compile(
    r"(<!-- written by ifqa report(?:: ([^>]*?))? -->).*?(<!-- until here -->)", re.DOTALL
)


def publish(into: Path | None, shown: Sequence[str], check: bool) -> Iterator[Path]:
    """Write the scores of all experiments; yields each path after it is written.

    `into` is a file whose text between the marks `BEGIN` and `END` becomes the table of measured
    scores. The page shows the questions of the experiments `shown`, or of all finished ones if that
    is empty; variants made by `--limit` or `--sample` are reported only if they are in `shown`.
    `check`: write nothing, and raise an error if a file differs.
    """
    chosen = [load_experiment(name).name for name in shown]
    with nullcontext() if check else lock(RESULTS.parent):
        records = read_records()
        experiments = ((entry, entry.experiment) for entry in gather_entries(records))
        # a limit or a sample in an experiment's file makes no variant
        entries = [
            entry
            for entry, each in experiments
            if not ((each.limit or each.sample) and each.variant) or each.name in chosen
        ]
        finished = {entry.experiment.name for entry in entries if entry.run}
        if missing := [name for name in chosen if name not in finished]:
            raise MissingInput(
                f"{missing[0]} is not finished here; finish it first: ifqa run {missing[0]}"
            )
        texts = {
            RECORDS: b"".join(map(json_line, update_records(records, entries))).decode(),
            RESULTS: results_markdown([*reader_tables(entries), *result_tables(entries)], entries),
        } | ({into: _replace_table(into, entries)} if into else {})
        if RESULTS.exists() and not _read_text(RESULTS).startswith(
            "# Results\n\nWritten by `ifqa report`"
        ):
            raise FormatError(
                f"{RESULTS} was not written by ifqa report; move it elsewhere, then report again"
            )
        if check:
            for path, text in texts.items():
                if not path.exists() or _read_text(path) != text:
                    options = [*shown, *(["--into", str(into)] if into else ())]
                    raise ConfigError(
                        f"{path} is stale; write it again: {' '.join(['ifqa report', *options])}"
                    )
            return
        texts[PAGE] = render_report(entries, chosen)
        for path in (PAGE, RECORDS, *(path for path in texts if path not in (PAGE, RECORDS))):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path.resolve()) as handle:  # write through a link
                write_bytes(handle, texts[path].encode("utf-8", "replace"))
            yield path


def _read_text(path: Path) -> str:
    """A file's text with its line endings unchanged."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from error


def _replace_table(path: Path, entries: Sequence[Entry]) -> str:
    """A file's text with a new table between the marks; its line endings are kept."""
    text = _read_text(path) if path.exists() else ""
    blocks = _BLOCK.findall(text)
    if len(blocks) != 1 or text.count(END) != 1:
        raise FormatError(
            f"{path}: wanted each of the lines {BEGIN!r} and {END!r} once; "
            "the table goes between them"
        )
    [(begin, names, end)] = blocks
    chosen = names.split()
    if missing := set(chosen) - {entry.experiment.name for entry in select_for_readme(entries)}:
        raise ConfigError(
            f"{path}: its mark names experiments that have no row: "
            f"{', '.join(sorted(missing))}; name experiments scored on "
            "their whole split, not variants"
        )
    table = readme_table(
        entry for entry in entries if not chosen or entry.experiment.name in chosen
    )
    block = f"{begin}\n\n{table}\n{end}"
    block = block.replace("\n", "\r\n") if "\r\n" in text else block
    return _BLOCK.sub(lambda _: block, text)
