"""Text from outside, made safe for the terminal, for Markdown, and for a script element of a page."""

import json
import re
from collections.abc import Callable, Sequence
from io import StringIO

from rich.console import Console
from rich.markup import escape

from ifqa.progress import printable

_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def plain(text: str) -> str:
    """Text for the terminal: its markup is escaped and its control characters are replaced."""
    return escape(printable(text))


def mark_parts(parts: Sequence[str], styled: bool = True) -> str:
    """Text in pieces for the terminal, as `plain`, with every second piece marked.

    The mark is bold and green, or, where nothing can be styled (a pipe, a file), square brackets.
    """
    if not styled:
        return plain("".join(f"[{part}]" if n % 2 else part for n, part in enumerate(parts)))
    return "".join(f"[bold green]{plain(part)}[/bold green]" if n % 2 else plain(part) for n, part in enumerate(parts))


def plain_cell(text: str) -> str:
    """Text on one line as Markdown that shows it literally: it makes no cell, link, image or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")
    text = " ".join(re.sub(r"\](?=[(\[:])", r"]\\", text).split())  # [text](url), [text][name], [name]: url
    return printable(text)  # the file may be read in a terminal


def json_text(value: object) -> str:
    """JSON that is safe in a `script` element: nothing in it ends the element, and lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def drawn(show: Callable[[Console], None]) -> str:
    """What `show` prints on a console of 100 columns, as plain text."""
    file = StringIO()
    show(Console(file=file, width=100, highlight=False))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
