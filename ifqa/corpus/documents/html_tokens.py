"""Splits HTML into tags and texts, in linear time, even if the HTML is malformed."""

import re
from collections.abc import Iterable, Iterator, Set
from html import unescape

#: ("start" or "end", name, attributes); ("text", text, ""); ("plain", text without references, "");
#: or ("raw", text, "") for comments, scripts and the like, which are not shown.
Token = tuple[str, str, str]

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
#: Elements whose end tag may be left out.
OPTIONAL_END = frozenset("p li dt dd td th tr thead tbody tfoot option optgroup rt rp".split())
_TAG = re.compile(r"<(?:(!--)|(!\[)|([/?!]?)([a-zA-Z][^\s<>/]{0,40}))")
_SIMPLE_END = re.compile(r"[^<>]*>")
_STOP = re.compile(r"[<>]|=\s*([\"'])")
_ATTRIBUTE = re.compile(
    r"([^\s\"'<>/=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>]+)))?", re.ASCII
)
_SHADOW = re.compile(r"\bshadowroot", re.I)
_RAW = {
    name: re.compile(rf"</{name}\b", re.I)
    for name in ("script", "style", "textarea", "title", "template", "iframe")
}


def tokenize(text: str) -> Iterator[Token]:
    """The tags and texts of HTML, in order; together they are the whole text."""
    shown = 0  # where the text after the last tag begins
    position = 0
    scanned = 0  # below it, no tag with a "<" or ">" in its values ends
    closed = {"-->": True, "]]>": True}  # whether there may be an end of a comment
    while tag := _TAG.search(text, position):
        if tag[1] or tag[2] == "![":
            end, token = _marked_section(text, tag, closed)
        else:
            end, scanned = _end_of_tag(text, tag.end(), scanned)
            token = _tag_token(tag, text[tag.end() : end - 1])
        if end < 0:  # no tag
            position = tag.start() + 1
            continue
        if tag.start() > shown:
            yield "text", text[shown : tag.start()], ""
        yield token
        position = end
        if _has_raw_text(token):
            end_tag = _RAW[token[1]].search(text, position)
            end = end_tag.start() if end_tag else len(text)
            yield "text" if token[1] == "textarea" else "raw", text[position:end], ""
            position = end
        shown = position
    if text[shown:]:
        yield "text", text[shown:], ""


def _has_raw_text(token: Token) -> bool:
    """Whether a tag begins an element whose text has no tags; <script/> is empty, in XHTML."""
    kind, name, attributes = token
    if kind != "start" or name not in _RAW or is_self_closing(attributes):
        return False
    return name != "template" or not _SHADOW.search(attributes)


def _tag_token(tag: re.Match[str], attributes: str) -> Token:
    if tag[3] in ("?", "!"):
        return "raw", attributes, ""
    return "end" if tag[3] else "start", tag[4].lower(), attributes


def _marked_section(text: str, tag: re.Match[str], closed: dict[str, bool]) -> tuple[int, Token]:
    """End and token of a comment, a CDATA section, or a condition of Word: <![if !mso]>."""
    is_data = text.startswith("[CDATA[", tag.end() - 1)
    if not tag[1] and not is_data:
        end = text.find(">", tag.end(), tag.end() + 100) + 1
        return end or -1, ("raw", text[tag.start() : end], "")
    mark = "]]>" if is_data else "-->"
    found = text.find(mark, tag.end()) if closed[mark] else -1
    closed[mark] = found >= 0  # if one has no end, later ones have none either
    if is_data:
        end = found + 3 if closed[mark] else len(text)
        return end, ("plain", text[tag.end() + 6 : end - 3 if closed[mark] else end], "")
    end = found + 3 if closed[mark] else tag.end()
    return end, ("raw", text[tag.start() : end], "")


def _end_of_tag(text: str, start: int, scanned: int) -> tuple[int, int]:
    """Where a tag ends whose name ends at `start`, or -1; and where later tags may be scanned from.

    A value in quotation marks may contain "<" and ">".
    """
    simple = _SIMPLE_END.match(text, start)
    if simple:
        attributes = simple[0]
        if not (attributes.count('"') % 2 or attributes.count("'") % 2):
            return simple.end(), scanned
    if start >= scanned:
        end, scanned = _end_of_quoted(text, start)
        if end > 0:
            return end, scanned
    return simple.end() if simple else -1, scanned


def _end_of_quoted(text: str, position: int) -> tuple[int, int]:
    """As `_end_of_tag`, for values in quotation marks.

    A quotation mark ends a value only before a space, "/" or ">", so that a missing one costs
    little.
    """
    while stop := _STOP.search(text, position):
        if stop[0] == ">":
            return stop.end(), 0
        if stop[0] == "<":
            return -1, stop.start()
        close = text.find(stop[1], stop.end())
        is_end = close >= 0 and text[close + 1 : close + 2] in (" ", "\n", "\r", "\t", "/", ">")
        position = close + 1 if is_end else stop.end()
    return -1, len(text)


def is_self_closing(attributes: str) -> bool:
    return attributes.rstrip().endswith("/")


def parse_attributes(text: str) -> dict[str, str]:
    """The attributes of a tag by their names in lower case; "" is the value of one without any."""
    found = dict[str, str]()
    for name, *values in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), unescape("".join(values)))
    return found


def find_unclosed(tokens: Iterable[Token]) -> Set[int]:
    """The numbers, from 1, of the start tags without an end tag that their element needs."""
    open_tags = dict[str, list[int]]()
    number = 0
    for kind, name, attributes in tokens:
        if kind == "start":
            number += 1
            if name not in VOID and name not in OPTIONAL_END and not is_self_closing(attributes):
                open_tags.setdefault(name, []).append(number)
        elif kind == "end" and open_tags.get(name):
            open_tags[name].pop()
    return {number for numbers in open_tags.values() for number in numbers}
