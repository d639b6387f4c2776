"""Progress on stderr: bars with ETA for work of more than two seconds, and the messages of the package's logger."""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Literal

from ifqa.formatting import printable_line

_quiet = False


class StderrHandler(logging.Handler):
    """Prints each message as one line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        write_line(record.getMessage())


def write_line(message: str) -> None:
    """Print one line on the current stderr; a closed stderr or a full disk is ignored."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(printable_line(message), file=sys.stderr, flush=True)


def show_messages(quiet: bool = False) -> None:
    """Print the messages of the logger `ifqa` on stderr; if `quiet`, only warnings, and no bars.

    The command line calls this. A program that imports `ifqa` configures the logger itself.
    """
    global _quiet
    _quiet = quiet
    package = logging.getLogger("ifqa")
    if not any(isinstance(handler, StderrHandler) for handler in package.handlers):
        package.addHandler(StderrHandler())
    package.setLevel(logging.WARNING if quiet else logging.INFO)


def hide_progress() -> None:
    """Hide bars and all messages except warnings."""
    global _quiet
    _quiet = True
    logging.getLogger("ifqa").setLevel(logging.WARNING)


def is_quiet() -> bool:
    return _quiet


@contextmanager
def bar(label: str, total: float | None, unit: Literal["", "bytes"] = "") -> Iterator[Callable[[float], None]]:
    """Show a progress bar of `total` (None: unknown); call the yielded function with the work done since the last call.

    After two seconds the bar shows amount, rate and ETA. If stderr is not a terminal, it prints them once a minute instead. The
    unit "bytes" shows amounts as kB and MB.
    """
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    def amount(count: float) -> str:
        return decimal(int(count)) if unit == "bytes" else f"{count:,.0f}"

    def state(task: Task) -> str:
        of = "" if task.total is None else f" of {amount(task.total)}"
        return f"{amount(task.completed)}{of}" + (f", {amount(task.speed)}/s" if task.speed and task.speed >= 1 else "")

    texts = (TextColumn("{task.description}", markup=False), TextColumn("{task.fields[state]}", markup=False))
    columns = (texts[0], BarColumn(bar_width=None), texts[1], TimeElapsedColumn(), TimeRemainingColumn())
    display = Progress(*columns, console=Console(stderr=True), expand=True)
    task_id = display.add_task(printable_line(label), total=total, state="")
    started = time.monotonic()
    next_line = started + 60

    def advance(amount_done: float = 1) -> None:
        nonlocal next_line
        if _quiet:
            return
        display.advance(task_id, amount_done)
        task, now = display.tasks[0], time.monotonic()
        if display.console.is_terminal:
            display.update(task_id, state=state(task))
            if not display.live.is_started and now > started + 2:
                with suppress(OSError):
                    display.start()
        elif now > next_line:
            next_line = now + 60
            remaining = f", about {timedelta(seconds=int(task.time_remaining))} to go" if task.time_remaining else ""
            write_line(f"{label}: {state(task)}{remaining}")

    try:
        yield advance
    finally:
        if display.live.is_started:
            with suppress(OSError):
                display.stop()
