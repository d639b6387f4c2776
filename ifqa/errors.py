"""The one exception meant for the user's eyes."""

import difflib
from collections.abc import Iterable


class IfqaError(Exception):
    """The user's input is wrong: one line saying what was found, what was wanted and how to mend it.

    The command line prints it and exits with 2. Everything else that is raised is a bug and keeps its traceback.
    """


def unknown(what: str, name: str, known: Iterable[str]) -> IfqaError:
    """An error for a name nobody knows, with the nearest known one and the list of all."""
    known = sorted(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return IfqaError(f"unknown {what} {name!r}; {hint}known: {', '.join(known) or 'none'}")
