"""Extracts the text of an HTML page without menus, headers, footers, forms and scripts, in linear
time.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import replace
from html import unescape

from ifqa.corpus.documents.decoding import TextRun, decode_markup

_SKIPPED = set(
    (
        "nav header footer aside form button select template svg iframe "
        "object script style noscript"
    ).split()
)
_MENUS = frozenset("navigation banner contentinfo search menu menubar".split())
_UNSEEN = frozenset(("script", "style", "template"))  # elements without a box, within a word
_RAW = {
    name: re.compile(rf"</{name}\b", re.I)
    for name in ("script", "style", "textarea", "title", "template")
}
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
INLINE = frozenset(
    "a abbr b bdi bdo cite code data del dfn em font i img ins kbd label mark q s samp small "
    "span strong sub sup time tt u var"
    " wbr".split()
)
#: A tag must end before the next "<", so each character is scanned once.
_TAG = re.compile(r"<(?:(!--)|([/?!]?)([a-zA-Z][^\s<>/]{0,40})([^<>]*)>)")
_ROLE = re.compile(r"\brole\s*=\s*[\"']?([a-z]+)", re.I)
_HIDDEN = re.compile(r"(?:^|\s)(?:hidden(?=[\s=/]|$)|aria-hidden\s*=\s*[\"']?true)", re.I)
_NOTE = re.compile(r"(?:foot|end|rear)note|\brole\s*=\s*[\"']?note", re.I)
_HEADING = re.compile(r"h([1-6])")


def read_html(content: bytes) -> list[TextRun]:
    """The text of an HTML file in its declared encoding."""
    return html_runs(decode_markup(content))


def html_runs(text: str) -> list[TextRun]:
    """The text of HTML, with headings and lines: of its `main` element if it has one, else without
    the menus.
    """
    runs, unclosed = _parse(text, _SKIPPED, True)
    if unclosed:  # its end tag is missing, so it contains the rest of the page
        runs, _ = _parse(text, _SKIPPED - {unclosed}, False)
    within = [run for run, main in runs if main]
    return within if any(not run.level for run in within) else [run for run, _ in runs]


def _parse(text: str, skipped: Set[str], roles: bool) -> tuple[list[tuple[TextRun, bool]], str]:
    """The runs, each with whether it is in `main`.

    And the name of a skipped element without an end tag, or empty.
    """
    page = _Page(skipped, roles)
    for kind, content, attributes in _tokenize(text):
        if page.skipping:
            page.pass_over(kind, content)
        elif kind == "text":
            page.add_text(content)
        elif kind != "raw":
            page.add_tag(kind == "start", content, attributes)
        page.line += attributes.count("\n")
        if kind in ("text", "raw"):
            page.line += content.count("\n")
    return page.runs(), next(iter(page.skipping), "")


class _Page:
    """The text of a page, as its tags and texts are added in order."""

    def __init__(self, skipped: Set[str], roles: bool) -> None:
        self.line = 1
        self.skipping: list[str] = []  # the skipped element, and nested elements of the same name
        self._skipped = skipped
        self._roles = roles
        self._runs: list[tuple[TextRun, bool]] = []
        self._pieces: list[list[str]] = []  # the text of each run
        self._level = 0  # of the open heading
        self._main = 0  # open elements `main`
        self._article = 0  # open elements of the page's own content
        self._opens = True  # whether the next text begins a block
        self._glued = False  # whether the next text goes on within a word: "H<sub>2</sub>O"

    def runs(self) -> list[tuple[TextRun, bool]]:
        pairs = zip(self._runs, self._pieces, strict=True)
        return [(replace(run, text="".join(parts)), within) for (run, within), parts in pairs]

    def pass_over(self, kind: str, content: str) -> None:
        """Take a tag within a skipped element, which may end it."""
        if content != self.skipping[0]:
            return
        if kind == "start":
            self.skipping.append(content)
        elif kind == "end":
            self.skipping.pop()

    def add_text(self, content: str) -> None:
        parts = [unescape(part) for part in content.split("\n")]
        for number, part in enumerate(parts):
            if self._glued and not number:
                self._pieces[-1].append(part)
            elif part.strip():
                self._add_line(part, self.line + number)
        goes_on = self._glued and len(parts) == 1
        self._glued = bool(parts[-1].strip()) or goes_on

    def _add_line(self, text: str, line: int) -> None:
        """Add a line to the open heading, which is one run, or as a run of its own."""
        is_in_main = self._main > 0
        if self._level and not self._opens and self._runs:
            run, _ = self._runs[-1]
            if run.level == self._level:
                self._pieces[-1] += [" ", text]
                self._runs[-1] = run, is_in_main
                return
        self._runs.append((TextRun("", line, self._opens, self._level), is_in_main))
        self._pieces.append([text])
        self._opens = False

    def add_tag(self, is_start: bool, name: str, attributes: str) -> None:
        if is_start and _is_skipped(name, attributes, self._skipped, self._roles, self._article):
            self.skipping = [name]
            self._glued = self._glued and (name in INLINE or name in _UNSEEN)
            return
        step = 1 if is_start else -1
        if name == "main" or (is_start and _role(attributes) == "main"):
            self._main = max(0, self._main + step)
        if name in ("main", "article", "section"):
            self._article = max(0, self._article + step)
        if heading := _HEADING.fullmatch(name):
            self._level = int(heading[1]) if is_start else 0
        if name not in INLINE:
            self._glued = False
            self._opens = self._opens or name not in ("td", "th", "br")


def _is_skipped(name: str, attributes: str, skipped: Set[str], roles: bool, article: int) -> bool:
    if (
        name in _VOID
        or attributes.rstrip().endswith("/")
        or (name == "aside" and _NOTE.search(attributes))
    ):
        return False
    if article and name in ("header", "footer", "aside"):  # an article's own heading or box
        return False
    return name in skipped or (
        roles and (_role(attributes) in _MENUS or bool(_HIDDEN.search(attributes)))
    )


def _role(attributes: str) -> str:
    match = _ROLE.search(attributes)
    return match[1].lower() if match else ""


def _tokenize(text: str) -> Iterator[tuple[str, str, str]]:
    """("text", text, ""), ("start" or "end", name, attributes), or ("raw", text, "") for comments,
    scripts and the like.
    """
    position, comments = 0, True
    while tag := _TAG.search(text, position):
        if tag.start() > position:
            yield "text", text[position : tag.start()], ""
        position = tag.end()
        if tag[1]:
            end = text.find("-->", position) if comments else -1
            comments = end >= 0  # if one comment has no end, later ones have none either
            end = end + 3 if comments else position
            yield "raw", text[tag.start() : end], ""
            position = end
        elif tag[2] in ("?", "!"):
            yield "raw", tag[0], ""
        else:
            name = tag[3].lower()
            yield "end" if tag[2] else "start", name, tag[4]
            # <script/> is an element of XHTML
            if not tag[2] and name in _RAW and not tag[4].rstrip().endswith("/"):
                end_tag = _RAW[name].search(text, position)
                end = end_tag.start() if end_tag else len(text)
                yield "raw", text[position:end], ""
                position = end
    if text[position:]:
        yield "text", text[position:], ""
