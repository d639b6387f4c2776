"""`ifqa list` lists experiments, corpora and plugins on one screen.

`ifqa list KIND` lists all names of a kind with descriptions, one per line.
"""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from ifqa.cli.options import print_line
from ifqa.errors import unknown_name
from ifqa.report.console import describe_names, list_json

_STATES = {
    "scored": "scored here",
    "ready": "ready to run",
    "needs": "missing files (ifqa check NAME lists them)",
    "plugin": "with a plugin of your own (ifqa check NAME loads it)",
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
    """`label (count): name, name ...` on at most `_LINES` lines for each kind."""
    experiments = kinds["experiments"].items()
    rows = [
        (f"experiments, {_STATES[key]}", [name for name, row in experiments if row["state"] == key])
        for key in _STATES
    ]
    rows += [(kind, list(kinds[kind])) for kind in kinds if kind not in ("experiments", "variants")]
    for label, names in rows:
        text = f"{label} ({len(names)}): {', '.join(names)}"
        more = f" ... all: ifqa list {label.partition(',')[0]}"
        if names:
            yield from textwrap.wrap(
                text,
                max(width, 40),
                subsequent_indent="  ",
                break_on_hyphens=False,
                max_lines=_LINES,
                placeholder=more,
            )
    yield "All of a kind, with descriptions: ifqa list experiments|corpora|benchmarks ..."


def _lines_of_kind(kind: str, names: Any) -> Iterator[str]:
    abouts = describe_names(kind, names)
    for name in names:
        if kind == "experiments":
            row = names[name]
            needs = f": {', '.join(row['needs'])}" if row["needs"] else ""
            yield f"{name}  [{row['state']}{needs}]  {row['about']}"
        elif kind == "benchmarks":
            splits = names[name]  # only --json lists parts of splits, such as "original-valid/paq"
            whole = [
                split
                for split in splits
                if split.partition("/")[0] not in splits or "/" not in split
            ]
            yield f"{name}  [{', '.join(whole) or _ANY_FILE}]  {abouts[name]}".rstrip()
        else:
            yield f"{name}  {abouts[name]}".rstrip()
