"""`ifqa list` lists experiments, corpora and plugins on one screen; `ifqa list KIND` lists all names of a kind, one per line."""

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
    "needs": "missing files (ifqa check NAME lists them)",
    "broken": "broken (ifqa check NAME says why)",
}
_LINES = 3  # lines of the screen for each kind
_ANY_FILE = "any .csv or .jsonl"  # the splits of a benchmark that lists none, such as `file`


def list_kind(kind: str) -> dict[str, object]:
    """All names by kind, or those of one kind, for JSON; ConfigError for an unknown kind."""
    kinds = list_json()
    if kind and kind not in kinds:
        raise unknown_name("kind", kind, kinds)
    return {kind: kinds[kind]} if kind else kinds


def show_list(kind: str) -> None:
    """Print all names of a kind; without a kind, the first names of each kind."""
    kinds = list_kind(kind)
    for line in _lines_of_kind(kind, kinds[kind]) if kind else _overview(kinds, Console().width):
        print_line(line)


def _overview(kinds: Mapping[str, Any], width: int) -> Iterator[str]:
    for state, label in _STATES.items():
        names = [name for name, row in kinds["experiments"].items() if row["state"] == state]
        yield from _shortened(f"experiments, {label}", "experiments", names, width)
    for kind in kinds:
        if kind not in ("experiments", "variants"):
            yield from _shortened(kind, kind, list(kinds[kind]), width)
    yield "All of a kind, with descriptions: ifqa list experiments|corpora|benchmarks ..."


def _shortened(label: str, kind: str, names: Sequence[str], width: int) -> list[str]:
    """`label: name, name ...` on at most `_LINES` lines; the last line counts the omitted names."""
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
            splits = names[name]  # only --json lists parts of splits, such as "original-valid/paq"
            whole = [split for split in splits if split.partition("/")[0] not in splits or "/" not in split]
            yield f"{name}  {', '.join(whole) or _ANY_FILE}"
        else:
            yield f"{name}  {names[name]}" if kind == "corpora" else name
