"""Progress on stderr: a line for each thing done, a bar with ETA for whatever takes more than two seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def say(message: str) -> None:
    """One line on stderr."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def bar(label: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """A function to call with each bit of work done; the bar shows itself only after two seconds."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    display = Progress(*columns, console=Console(stderr=True))
    task = display.add_task(label, total=total)
    shown_at = time.monotonic() + 2

    def advance(amount: float = 1) -> None:
        display.advance(task, amount)
        if not display.live.is_started and time.monotonic() > shown_at:
            display.start()

    try:
        yield advance
    finally:
        if display.live.is_started:
            display.stop()
