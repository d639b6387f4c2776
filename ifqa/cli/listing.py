"""`ifqa list`: what there is to name, on one screen; `ifqa list KIND`: everything of a kind, a line each."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from ifqa.cli.options import print_line
from ifqa.errors import unknown_name
from ifqa.report.console import list_json

_STATES = {
    "scored": "scored here",
    "ready": "ready to run",
    "needs": "missing something (ifqa check NAME says what)",
    "broken": "broken (ifqa check NAME says why)",
}
_LINES = 3  # of the screen, for each kind
_ANY_FILE = "any .csv or .jsonl"  # the splits of a benchmark that lists none, such as `file`


def list_kind(kind: str) -> dict[str, object]:
    """All names by kind, as JSON data; or those of one kind. IfqaError for an unknown kind."""
    kinds = list_json()
    if kind and kind not in kinds:
        raise unknown_name("kind", kind, kinds)
    return {kind: kinds[kind]} if kind else kinds


def show_list(kind: str) -> None:
    """Print everything of a kind; without a kind, the first names of each, on one screen."""
    kinds = list_kind(kind)
    width = Console().width
    for line in _lines_of_kind(kind, kinds[kind]) if kind else _overview(kinds, width):
        print_line(line)


def _overview(kinds: Mapping[str, Any], width: int) -> Iterator[str]:
    for state, label in _STATES.items():
        names = [name for name, row in kinds["experiments"].items() if row["state"] == state]
        yield from _shortened(f"experiments, {label}", "experiments", names, width)
    for kind in kinds:
        if kind not in ("experiments", "variants"):
            yield from _shortened(kind, kind, list(kinds[kind]), width)
    yield f"All of a kind, with descriptions: ifqa list {'|'.join(('experiments', 'corpora', 'benchmarks'))} ..."


def _shortened(label: str, kind: str, names: Sequence[str], width: int) -> list[str]:
    """`label: name, name ...` on at most `_LINES` lines, the last of which says how many names it leaves out."""
    for count in range(len(names), 0, -1):
        rest = f", ... {len(names) - count} more: ifqa list {kind}" if count < len(names) else ""
        text = f"{label}: {', '.join(names[:count])}{rest}"
        lines = textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
        if len(lines) <= _LINES:
            return lines
    return [f"{label}: {len(names)}; ifqa list {kind}"] if names else []


def _lines_of_kind(kind: str, names: Any) -> Iterator[str]:
    for name in names:
        if kind == "experiments":
            row = names[name]
            needs = f": {', '.join(row['needs'])}" if row["needs"] else ""
            yield f"{name}  [{row['state']}{needs}]  {row['about']}"
        elif kind == "benchmarks":
            splits = names[name]  # a part of a split, such as "original-valid/paq", is listed by --json alone
            whole = [split for split in splits if split.partition("/")[0] not in splits or "/" not in split]
            yield f"{name}  {', '.join(whole) or _ANY_FILE}"
        else:
            yield f"{name}  {names[name]}" if kind == "corpora" else name
