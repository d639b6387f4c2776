"""Progress on stderr: bars with ETA for work of more than half a second, and the messages of the
package's logger.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from threading import Event, Thread
from typing import TYPE_CHECKING, Literal

from ifqa.formatting import printable_line

if TYPE_CHECKING:
    from rich.progress import Progress, Task

#: Gets the name of the file being read, the work done within the running task, and which worker
#: runs it.
Report = Callable[[str, float, object], None]

_DELAY = 0.5  # seconds of work before its bar appears
# Seconds between lines where there is no terminal; the first pauses are shorter
_LONGEST_PAUSE = 60

_quiet = False
_reports: list[Report] = []  # of the bars that are shown, the newest last; in a worker, of the pool


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


def report(name: str, done: float = 0, worker: object = None) -> None:
    """Tell the newest bar which file a task is at, and how much of the task is done.

    Without a bar, do nothing.
    """
    if _reports:
        _reports[-1](name, done, worker)


def send_reports(send: Report) -> None:
    """Send this process's reports to another process, which shows the bar."""
    _reports.append(send)


@contextmanager
def bar(  # noqa: PLR0915
    label: str, total: float | None, unit: Literal["", "bytes"] = ""
) -> Iterator[Callable[[float], None]]:
    """Show a progress bar of `total` (None: unknown).

    Call the yielded function with the work done since the last call.

    After half a second the bar shows amount, rate and ETA, and what `report` tells of the work
    within a task. If stderr is not a terminal, it prints lines instead: every few seconds at first,
    then once a minute. The unit "bytes" shows kB and MB.
    """
    display = _display()
    ended = Event()
    started = time.monotonic()
    task_id = display.add_task(
        printable_line(label), total=total, visible=False, unit=unit, state=""
    )
    [task] = [task for task in display.tasks if task.id == task_id]
    display.update(task_id, state=_state(task))
    within: dict[object, float] = {}  # worker -> the work done in its task
    finished, name = 0.0, ""

    def show() -> None:
        completed = max(task.completed, finished + sum(within.values()))  # a bar never goes back
        display.update(task_id, completed=completed)
        display.update(task_id, state=_state(task))

    def advance(amount_done: float = 1) -> None:
        nonlocal finished
        finished += amount_done
        within.clear()
        show()

    def show_report(file: str, done: float, worker: object) -> None:
        nonlocal name
        name = printable_line(file)
        within[worker] = done
        with suppress(KeyError):  # the bar has ended in another thread
            display.update(task_id, description=f"reading {name.rpartition('/')[2]}")
            show()

    def watch() -> None:
        if display.console.is_interactive and not ended.wait(_DELAY):
            with suppress(OSError):
                display.update(task_id, visible=True)
                display.start()
        elif not display.console.is_interactive:
            while not ended.wait(min(_LONGEST_PAUSE, max(1, time.monotonic() - started))):
                remaining = (
                    f", about {timedelta(seconds=int(task.time_remaining))} to go"
                    if task.time_remaining
                    else ""
                )
                write_line(f"{label}: {_state(task)}{remaining}{name and f', reading {name}'}")

    watcher = Thread(target=watch, daemon=True)
    if not _quiet:
        _reports.append(show_report)
        watcher.start()
    try:
        yield advance
    finally:
        if show_report in _reports:
            _reports.remove(show_report)
        ended.set()
        if watcher.is_alive():
            watcher.join()
        display.remove_task(task_id)
        if display.live.is_started and not display.tasks:
            with suppress(OSError):
                display.stop()


@cache
def _display() -> "Progress":
    """The bars of this process, below each other; they vanish when their work ends."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    label = TextColumn(
        "{task.description}", markup=False, table_column=Column(ratio=3, no_wrap=True)
    )
    width = BarColumn(bar_width=None, table_column=Column(ratio=2))
    columns = (
        label,
        width,
        TextColumn("{task.fields[state]}", markup=False),
        TimeRemainingColumn(compact=True),
    )
    return Progress(*columns, console=Console(stderr=True), expand=True, transient=True)


def _state(task: "Task") -> str:
    from rich.filesize import decimal

    def amount(count: float) -> str:
        return decimal(int(count)) if task.fields["unit"] == "bytes" else f"{count:,.0f}"

    of = "" if task.total is None else f" of {amount(task.total)}"
    return f"{amount(task.completed)}{of}" + (
        f", {amount(task.speed)}/s" if task.speed and task.speed >= 1 else ""
    )
