"""Progress on stderr: bars with ETA for work of more than two seconds, and the messages of the package's logger."""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Literal

#: Characters that could steer a terminal or hide in it: C0 but tab and newline, DEL and C1; zero-width ones; the marks that
#: reverse the order of text; line and paragraph separators; half surrogate pairs; tags. The joiners U+200C and U+200D are
#: part of words in Persian and Hindi, and stay.
CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)

_quiet = False


class StderrHandler(logging.Handler):
    """Prints a message as one line on stderr. A stderr that is closed, or whose disk is full, does not end the work."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message of a record."""
        write_line(record.getMessage())


def write_line(message: str) -> None:
    """Print one line on the stderr of this moment."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(printable_line(message), file=sys.stderr, flush=True)


def show_messages(quiet: bool = False) -> None:
    """Print the messages of the logger `ifqa` on stderr, as the command line does; if `quiet`, only warnings, and no bars.

    A program that imports `ifqa` configures the logger itself.
    """
    global _quiet
    _quiet = quiet
    package = logging.getLogger("ifqa")
    if not any(isinstance(handler, StderrHandler) for handler in package.handlers):
        package.addHandler(StderrHandler())
    package.setLevel(logging.WARNING if quiet else logging.INFO)


def hide_progress() -> None:
    """Hide bars, and all messages but warnings, in this process."""
    global _quiet
    _quiet = True
    logging.getLogger("ifqa").setLevel(logging.WARNING)


def is_quiet() -> bool:
    """Whether progress is hidden in this process."""
    return _quiet


def printable(text: str) -> str:
    """The text with U+FFFD for each of `CONTROLS`: text from outside cannot steer a terminal; it may have several lines."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def printable_line(text: str) -> str:
    """As `printable`, in one line: a name or a title from outside cannot begin a line of its own."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def pluralize(count: float, one: str, several: str = "") -> str:
    """A count with its noun: "1 page", "2,000 pages"; `several` is the plural if it is not `one` and an s."""
    number = f"{count:,.0f}"
    return f"{number} {one if number == '1' else several or one + 's'}"


def duration(seconds: float) -> str:
    """A duration in one unit: "90 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def bar(label: str, total: float | None, unit: Literal["", "bytes"] = "") -> Iterator[Callable[[float], None]]:
    """A progress bar: call the function it gives with the work done since the last call.

    After two seconds the bar shows amount, rate and ETA. If stderr is no terminal, a line a minute shows them instead.

    Args:
        label: what is being done.
        total: the whole work, in the same unit; None if it is unknown.
        unit: "bytes" shows amounts as kB and MB.
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
    number = display.add_task(printable_line(label), total=total, state="")
    started = time.monotonic()
    next_line = started + 60

    def advance(done: float = 1) -> None:
        nonlocal next_line
        if _quiet:
            return
        display.advance(number, done)
        task, now = display.tasks[0], time.monotonic()
        if display.console.is_terminal:
            display.update(number, state=state(task))
            if not display.live.is_started and now > started + 2:
                with suppress(OSError):
                    display.start()
        elif now > next_line:
            next_line = now + 60
            left = f", about {timedelta(seconds=int(task.time_remaining))} to go" if task.time_remaining else ""
            write_line(f"{label}: {state(task)}{left}")

    try:
        yield advance
    finally:
        if display.live.is_started:
            with suppress(OSError):
                display.stop()
