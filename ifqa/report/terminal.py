"""Text from outside, made safe for the screen: no markup and no control characters."""

from collections.abc import Callable, Sequence
from io import StringIO

from rich.console import Console
from rich.markup import escape

from ifqa.progress import printable


def plain(text: str) -> str:
    """Text for the screen: its markup is escaped and its control characters are replaced."""
    return escape(printable(text))


def drawn(show: Callable[[Console], None]) -> str:
    """What `show` prints on a console of 100 columns, as plain text."""
    file = StringIO()
    show(Console(file=file, width=100, highlight=False))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def mark_parts(parts: Sequence[str], styled: bool = True) -> str:
    """Text in pieces for the screen, as `plain`, with every second piece marked.

    The mark is bold and green, or, where nothing can be styled (a pipe, a file), square brackets.
    """
    if not styled:
        return plain("".join(f"[{part}]" if n % 2 else part for n, part in enumerate(parts)))
    return "".join(f"[bold green]{plain(part)}[/bold green]" if n % 2 else plain(part) for n, part in enumerate(parts))
