"""Finds the end of an HTML element that is skipped, even if its end tag is left out."""

from collections.abc import Set
from dataclasses import dataclass

#: Elements that end a paragraph.
BLOCKS = frozenset(
    "p div ul ol dl table h1 h2 h3 h4 h5 h6 pre hr form section article aside header footer "
    "main nav blockquote address details fieldset figure".split()
)
# What ends an element without an end tag: the start of one of `siblings`, or the end of a container
_SIBLINGS: dict[str, Set[str]] = {
    "li": {"li"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "td": {"td", "th", "tr", "thead", "tbody", "tfoot"},
    "th": {"td", "th", "tr", "thead", "tbody", "tfoot"},
    "tr": {"tr", "thead", "tbody", "tfoot"},
    "thead": {"thead", "tbody", "tfoot"},
    "tbody": {"thead", "tbody", "tfoot"},
    "tfoot": {"thead", "tbody", "tfoot"},
    "option": {"option", "optgroup"},
    "optgroup": {"optgroup"},
    "rp": {"rb", "rt", "rp"},
    "p": BLOCKS,
}
_TABLE = frozenset(("table",))
_CONTAINERS: dict[str, Set[str]] = {
    "li": frozenset(("ul", "ol", "menu")),
    **dict.fromkeys(("dt", "dd"), frozenset(("dl",))),
    **dict.fromkeys(("td", "th", "tr", "thead", "tbody", "tfoot"), _TABLE),
    **dict.fromkeys(("option", "optgroup"), frozenset(("select",))),
    "rp": frozenset(("ruby",)),
    "p": frozenset("div td th li section article main body blockquote form".split()),
}


@dataclass(slots=True)
class Skipped:
    """The element that is not read, as long as it is open."""

    name: str
    depth: int = 1  # open elements of its name, or of its containers

    def passes(self, kind: str, name: str) -> bool:
        """Whether a tag is within the element, or ends it; sets `depth` to 0 at the end."""
        if kind not in ("start", "end"):
            return True
        if self.name in _SIBLINGS:
            return self._passes_optional(kind, name)
        if name == self.name:
            self.depth += 1 if kind == "start" else -1
        return True

    def _passes_optional(self, kind: str, name: str) -> bool:
        """As `passes`, for an element whose end tag may be left out."""
        containers = _CONTAINERS[self.name]
        is_outer = self.depth == 1
        if kind == "start":
            if is_outer and name in _SIBLINGS[self.name]:
                self.depth = 0
                return False
            self.depth += name in containers
            return True
        if is_outer and name == self.name:
            self.depth = 0
        elif name in containers:
            self.depth -= 1
            return self.depth > 0
        return True

    @property
    def needs_end(self) -> bool:
        """Whether the element ends with its end tag alone."""
        return self.name not in _SIBLINGS
