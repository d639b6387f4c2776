"""Progress on stderr: a line for each thing done, a bar with ETA for whatever takes more than two seconds."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Literal

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_quiet = False


def be_quiet(quiet: bool) -> None:
    """Show no progress in this process from now on, or show it again; errors are not progress."""
    global _quiet
    _quiet = quiet


def say(message: str) -> None:
    """One line on stderr."""
    if not _quiet:
        print(printable(message), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """A text without the control characters by which what comes from outside could steer a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def counted(count: float, one: str, several: str = "") -> str:
    """How many there are of something: "1 page", "2,000 pages"; `several` where its plural is not `one` and an s."""
    number = f"{count:,.0f}"
    return f"{number} {one if number == '1' else several or one + 's'}"


def duration(seconds: float) -> str:
    """A length of time in one unit: "90 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def bar(label: str, total: float | None, unit: Literal["", "bytes"] = "") -> Iterator[Callable[[float], None]]:
    """A function to call with each bit of work done; shows amount, rate and ETA, but only after two seconds.

    Where stderr is no terminal but a log, a line every minute says the same.
    """
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    def amount(count: float) -> str:
        return decimal(int(count)) if unit == "bytes" else f"{count:,.0f}"

    class Amount(ProgressColumn):
        def render(self, task: Task) -> Text:
            of = "" if task.total is None else f" of {amount(task.total)}"
            rate = f", {amount(task.speed)}/s" if task.speed and task.speed >= 1 else ""
            return Text(f"{amount(task.completed)}{of}{rate}")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        Amount(Column(no_wrap=True)),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    display = Progress(*columns, console=Console(stderr=True), expand=True)
    number = display.add_task(label, total=total)
    started = time.monotonic()
    next_line = started + 60

    def advance(done: float = 1) -> None:
        nonlocal next_line
        if _quiet:
            return
        display.advance(number, done)
        now = time.monotonic()
        if display.console.is_terminal:
            if not display.live.is_started and now > started + 2:
                display.start()
        elif now > next_line:
            next_line = now + 60
            task = display.tasks[0]
            left = f", about {timedelta(seconds=int(task.time_remaining))} to go" if task.time_remaining else ""
            say(f"{label}: {columns[2].render(task)}{left}")

    try:
        yield advance
    finally:
        if display.live.is_started:
            display.stop()
