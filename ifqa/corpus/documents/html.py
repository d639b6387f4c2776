"""Extracts the text of an HTML page without menus, headers, footers, forms and scripts, in linear
time.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import replace
from html import unescape

from ifqa.corpus.documents.decoding import TextRun, decode_text

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
_CHARSET = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?([\w.:-]{2,40})", re.I)
_HEADING = re.compile(r"h([1-6])")


def read_html(content: bytes) -> list[TextRun]:
    """The text of an HTML file in its declared encoding."""
    declared = _CHARSET.search(content[:2000])
    return html_runs(decode_text(content, declared[1].decode("ascii") if declared else ""))


def html_runs(text: str) -> list[TextRun]:
    """The text of HTML, with headings and lines: of its `main` element if it has one, else without
    the menus.
    """
    runs, unclosed = _parse(text, _SKIPPED, True)
    if unclosed:  # its end tag is missing, so it contains the rest of the page
        runs, _ = _parse(text, _SKIPPED - {unclosed}, False)
    within = [run for run, main in runs if main]
    return within if any(not run.level for run in within) else [run for run, _ in runs]


def _parse(text: str, skipped: Set[str], roles: bool) -> tuple[list[tuple[TextRun, bool]], str]:  # noqa: C901, PLR0912
    """The runs, each with whether it is in `main`.

    And the name of a skipped element without an end tag, or empty.
    """
    # the runs, and the text of each
    runs = list[tuple[TextRun, bool]]()
    pieces = list[list[str]]()
    skipping: list[str] = []  # the skipped element, and nested elements of the same name
    line = 1
    level = 0
    main = 0
    article = 0
    opens, glued = True, False
    for kind, content, attributes in _tokenize(text):
        if kind == "text" and not skipping:
            parts = [unescape(part) for part in content.split("\n")]
            for number, part in enumerate(parts):
                if glued and not number:  # "H<sub>2</sub>O" is one word
                    pieces[-1].append(part)
                elif part.strip() and level and not opens and runs and runs[-1][0].level == level:
                    pieces[-1] += [" ", part]  # a heading is one run, even over several lines
                    runs[-1] = runs[-1][0], main > 0
                elif part.strip():
                    runs.append((TextRun("", line + number, opens, level), main > 0))
                    pieces.append([part])
                    opens = False
            glued = bool(parts[-1].strip()) or (glued and len(parts) == 1)
        elif skipping:
            if kind == "start" and content == skipping[0]:
                skipping.append(content)
            if kind == "end" and content == skipping[0]:
                skipping.pop()
        elif kind == "start" and _is_skipped(content, attributes, skipped, roles, article):
            skipping = [content]
            glued = glued and (content in INLINE or content in _UNSEEN)
        elif kind != "raw":
            step = 1 if kind == "start" else -1
            main = max(
                0,
                main
                + step * (content == "main" or (kind == "start" and _role(attributes) == "main")),
            )
            article = max(0, article + step * (content in ("main", "article", "section")))
            if heading := _HEADING.fullmatch(content):
                level = int(heading[1]) if kind == "start" else 0
            if content not in INLINE:
                glued = False
                opens = opens or content not in ("td", "th", "br")
        line += attributes.count("\n") + (content.count("\n") if kind in ("text", "raw") else 0)
    joined = [
        (replace(run, text="".join(parts)), within)
        for (run, within), parts in zip(runs, pieces, strict=True)
    ]
    return joined, next(iter(skipping), "")


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
