"""Progress on stderr: bars with ETA for work of more than half a second, and the messages of the
package's logger.
"""

import logging
import sys
import time
from collections import deque
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
_LINE_SECONDS = 60  # between lines where there is no terminal
_RATE_LINES = 5  # the rate in a line is that since so many lines before
_SETTLED_SECONDS = 1  # after which a resumed task has passed what was done before

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
    within a task. If stderr is not a terminal, it prints a line a minute instead, with the rate of
    the last minutes. What is done in the first second does not count for that rate: a resumed task
    passes what it finds done. The unit "bytes" shows kB and MB.
    """
    display = _display()
    ended = Event()
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
            ended.wait(_SETTLED_SECONDS)
            seen = deque([(time.monotonic(), task.completed)], maxlen=_RATE_LINES)
            while not ended.wait(_LINE_SECONDS):
                now = (time.monotonic(), task.completed)
                pace = _pace(task, seen[0], now)
                seen.append(now)
                write_line(f"{label}: {_amounts(task)}{pace}{name and f', reading {name}'}")

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
    speed = f", {_amount(task, task.speed)}/s" if task.speed and task.speed >= 1 else ""
    return _amounts(task) + speed


def _amounts(task: "Task") -> str:
    of = "" if task.total is None else f" of {_amount(task, task.total)}"
    return f"{_amount(task, task.completed)}{of}"


def _amount(task: "Task", count: float) -> str:
    from rich.filesize import decimal

    return decimal(int(count)) if task.fields["unit"] == "bytes" else f"{count:,.0f}"


def _pace(task: "Task", before: tuple[float, float], now: tuple[float, float]) -> str:
    """The rate between two moments, each with the work done by then, and the time to go.

    Empty if nothing was done.
    """
    seconds = now[0] - before[0]
    rate = (now[1] - before[1]) / seconds if seconds > 0 else 0.0
    if rate <= 0:
        return ""
    pace = f", {_amount(task, rate)}/s" if rate >= 1 else f", {60 * rate:,.1f}/min"
    if task.total is None:
        return pace
    left = timedelta(seconds=int(max(task.total - now[1], 0) / rate))
    return f"{pace}, about {left} to go"
