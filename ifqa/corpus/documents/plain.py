"""Plain text, Markdown and reStructuredText as runs of lines, with their headings and without their markup."""

import re
from collections.abc import Iterator, Sequence

from ifqa.corpus.documents.text import Run, lines_of

_BULLET = re.compile(r"\s*(?:[-*+•‣]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+")
_RULE = re.compile(r"\s*([=\-~^\"'`#*+.:_<>])\1{2,}\s*")
_LINE = {"txt": "=-~", "md": "=-", "rst": "=-~^\"'`#*+.:_<>"}
_NEVER_LONGER = 200  # characters of a heading

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_ATX = re.compile(r" {0,3}(#{1,6})\s+(\S.*?)[\s#]*$")
_TABLE_RULE = re.compile(r"[\s|:+=-]*\|[\s|:+=-]*|\s*\+[-=+]+\+\s*")
_MARKDOWN = [
    (re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}(?: \"[^\"]{0,500}\")?\)"), r"\1"),
    (re.compile(r"\[([^\[\]]{1,500})\]\[[^\[\]]{0,500}\]"), r"\1"),
    (re.compile(r"</?[a-zA-Z][^<>]{0,500}>"), " "),
    (re.compile(r"<(https?://[^<>\s]{1,2000})>"), r"\1"),
    (re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*]{1,1000}?)(?<=\S)\1(?![\w*])"), r"\2"),
    (re.compile(r"(?<![\w_])(_{1,3})(?=\S)([^_]{1,1000}?)(?<=\S)\1(?![\w_])"), r"\2"),
    (re.compile(r"(`{1,3})([^`]{1,1000})\1"), r"\2"),
]
_REFERENCE = re.compile(r" {0,3}\[[^\[\]]{1,500}\]:\s+\S+")

_DIRECTIVE = re.compile(r"\s*\.\.\s+([\w:-]+)::\s*(.*)")
_NOTES = frozenset(
    "note warning tip hint important caution attention danger error admonition topic rubric glossary".split()
)
_RST = [
    (re.compile(r":[a-zA-Z:+-]{1,40}:`([^`<>]{1,500}?)\s*(?:<[^`<>]{1,500}>)?`"), r"\1"),
    (re.compile(r"`([^`<>]{1,500}?)\s*<[^`<>]{1,2000}>`__?"), r"\1"),
    (re.compile(r"``([^`]{1,1000})``"), r"\1"),
    (re.compile(r"`([^`]{1,500})`_?_?"), r"\1"),
    (re.compile(r"(?<!\w)\*{1,2}(?=\S)([^*]{1,1000}?)(?<=\S)\*{1,2}(?!\w)"), r"\1"),
]


def read_text(text: str) -> Iterator[Run]:
    """The lines of a plain text; a line above a rule of `===` or `---` is a heading."""
    yield from _runs(lines_of(text), "txt")


def read_markdown(text: str) -> Iterator[Run]:
    """The lines of Markdown. Headings in a code block are none; front matter, comments and links' addresses are left out."""
    lines = lines_of(_without_comments(text))
    if lines and lines[0].strip() == "---":  # front matter; a rule at its end is no heading's
        end = next((n for n, line in enumerate(lines[1:], start=1) if line.strip() in ("---", "...")), 0)
        lines[: end + 1] = [""] * (end + 1)
    yield from _runs(lines, "md")


def read_rst(text: str) -> Iterator[Run]:
    """The lines of reStructuredText. Of directives, notes and the like keep their text; roles keep what they show."""
    yield from _runs(lines_of(text), "rst")


def _runs(lines: Sequence[str], kind: str) -> Iterator[Run]:
    opens, fence, levels = True, "", list[str]()
    skip = -1  # the rule below a heading
    options = False  # below a directive
    for number, line in enumerate(lines, start=1):
        if number == skip:
            continue
        if kind == "md" and (found := _FENCE.match(line)) and (not fence or found[1].startswith(fence)):
            fence, opens = "" if fence else found[1], True
            continue
        if not line.strip():
            opens, options = True, False
            continue
        if fence:
            yield Run(line, number, opens)
            opens = False
            continue
        if kind == "md" and (heading := _ATX.match(line)):
            yield Run(_shown(heading[2], kind), number, True, len(heading[1]))
            opens = True
            continue
        if rule := _rule_below(lines, number, kind):
            if kind == "md":
                level = 1 if rule == "=" else 2
            else:
                levels += [rule] * (rule not in levels)
                level = levels.index(rule) + 1
            yield Run(_shown(line, kind), number, True, level)
            opens, skip = True, number + 1
            continue
        if _RULE.fullmatch(line) or (kind != "txt" and _TABLE_RULE.fullmatch(line)):
            opens = True
            continue
        if kind == "rst":
            if found := _DIRECTIVE.match(line):
                opens, options = True, True
                line = found[2] if found[1].lower() in _NOTES else ""
            elif line.lstrip().startswith(".. ") or (options and re.match(r"\s+:[\w-]+:", line)):
                opens = True
                continue
        if shown := _shown(line, kind):
            yield Run(shown, number, opens or bool(_BULLET.match(line)) or (kind == "md" and "|" in line))
            opens = False


def _rule_below(lines: Sequence[str], number: int, kind: str) -> str:
    """The character of the rule below a line, numbered from 1, if it makes the line a heading; else empty."""
    line, below = lines[number - 1], lines[number] if number < len(lines) else ""
    rule = _RULE.fullmatch(below)
    if rule is None or rule[1] not in _LINE[kind] or len(line) > _NEVER_LONGER or _RULE.fullmatch(line):
        return ""
    is_alone = number < 2 or not lines[number - 2].strip() or _RULE.fullmatch(lines[number - 2])
    fits = kind == "md" or len(below.strip()) >= len(line.strip()) - 1
    return rule[1] if is_alone and fits and not _BULLET.match(line) else ""


def _shown(line: str, kind: str) -> str:
    """What a reader of the line sees."""
    if kind == "txt":
        return line.strip()
    if kind == "md" and _REFERENCE.match(line):
        return ""
    for pattern, shown in _MARKDOWN if kind == "md" else _RST:
        line = pattern.sub(shown, line)
    if kind == "md":
        line = re.sub(r"^\s*(?:>\s?)+", "", line)
        line = "; ".join(cell.strip() for cell in line.strip().strip("|").split("|")) + "." if "|" in line else line
    return (
        _BULLET.sub("", line, count=1).strip()
        if _BULLET.match(line) and not line.strip()[:1].isalnum()
        else line.strip()
    )


def _without_comments(text: str) -> str:
    """The text with only the line breaks of HTML comments; of several that do not end, only the first is searched for its end."""
    kept, place = [], 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept += [text[place:start], "\n" * text.count("\n", start, end)]
        place = end + 3
    return "".join([*kept, text[place:]])
