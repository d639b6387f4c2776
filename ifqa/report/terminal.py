"""Text from outside on the screen: nothing in it is obeyed."""

import re

from rich.markup import escape

from ifqa.progress import printable


def plain(text: str) -> str:
    """Text for the screen: nothing in it is taken as markup, and no control character reaches the terminal."""
    return escape(printable(text))


def mark(text: str, answer: str) -> str:
    """The text for the screen, nothing in it taken as markup, with the answer in bold wherever it stands as words."""
    if not answer.strip():
        return plain(text)
    parts = re.split(rf"(?i)(?<!\w)({re.escape(answer)})(?!\w)", text)
    return "".join(f"[bold green]{plain(part)}[/bold green]" if n % 2 else plain(part) for n, part in enumerate(parts))
