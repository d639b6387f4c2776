"""IfqaError, the exception whose message is for the user; and the error for an unknown name."""

import difflib
from collections.abc import Iterable

_MANY = 15  # names that still fit into a message


class IfqaError(Exception):
    """The user's input is wrong: one line saying what was found, what was wanted and how to mend it.

    The command line prints it and exits with 2. Any other exception is a bug and keeps its traceback.
    """


def unknown_name(what: str, name: str, known: Iterable[str]) -> IfqaError:
    """The error for an unknown name: it shows the nearest known name, and all known names; the nearest five of over 15."""
    known = sorted(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    if len(known) > _MANY:
        nearest = difflib.get_close_matches(str(name), known, n=5, cutoff=0)
        return IfqaError(f"unknown {what} {name!r}; {hint}nearest of {len(known)}: {', '.join(nearest)}")
    return IfqaError(f"unknown {what} {name!r}; {hint}known: {', '.join(known) or 'none'}")
