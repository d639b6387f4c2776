"""Exceptions for the user, each with a one-line message."""

import difflib
from collections.abc import Iterable

_MANY = 15  # names that fit into a message


class IfqaError(Exception):
    """The user's input is wrong.

    The one-line message says what was found, what was wanted and how to mend it.

    The command line prints it and exits with 2. Any other exception is a bug and keeps its
    traceback.

    Attributes:
        found: what was found, as the message has it; empty if it does not tell it apart.
        wanted: what was wanted, likewise.
        mend: how to mend it, likewise: a command, or a name to write in place of another.
    """

    def __init__(
        self, message: str = "", *, found: str = "", wanted: str = "", mend: str = ""
    ) -> None:
        super().__init__(message)
        self.found = found
        self.wanted = wanted
        self.mend = mend

    def parts(self) -> dict[str, str]:
        """The parts of the message that it tells apart, for JSON."""
        parts = {"found": self.found, "wanted": self.wanted, "mend": self.mend}
        return {name: part for name, part in parts.items() if part}


class ConfigError(IfqaError):
    """A setting, a flag or a configuration file is wrong."""


class MissingInput(IfqaError):
    """A file, a model, an index or an earlier stage is missing; the message says how to get it."""


class FormatError(IfqaError):
    """A file from the user does not have its format."""


class DamagedArtifact(IfqaError):
    """A file that ifqa wrote is damaged or was changed."""


class PluginError(IfqaError):
    """A plugin breaks the protocol of its role."""


class ServiceError(IfqaError):
    """A server cannot be reached, or refuses a request."""


class SchemaRefused(ServiceError):
    """A server does not take a JSON schema.

    Requests without one may succeed.
    """


class ToolsRefused(ServiceError):
    """A server does not take functions that a model may call.

    Requests without them may succeed.
    """


def unknown_name(what: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for an unknown name.

    It suggests the nearest known name, and lists all known names, or 5 of over 15.
    """
    known = sorted(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = f"known: {', '.join(known) or 'none'}"
    if len(known) > _MANY:
        nearest = difflib.get_close_matches(str(name), known, n=5, cutoff=0)
        listed = f"nearest of {len(known)}: {', '.join(nearest)}"
    return ConfigError(
        f"unknown {what} {name!r}; {hint}{listed}",
        found=str(name),
        wanted=listed,
        mend=close[0] if close else "",
    )
