"""Plain text and reStructuredText as runs of lines, with their headings and without their markup."""

import re
from collections.abc import Iterator, Sequence

from ifqa.corpus.documents.text import Run, lines_of

_BULLET = re.compile(r"\s*(?:[-*+•‣]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+")
_RULE = re.compile(r"\s*([=\-~^\"'`#*+.:_<>])\1{2,}\s*")
_LINE = {"txt": "=-~", "rst": "=-~^\"'`#*+.:_<>"}
_NEVER_LONGER = 200  # characters of a heading

_TABLE_RULE = re.compile(r"(?=[^|]*\|)[\s|:+=-]*|\s*\+[-=+]+\+\s*")
_DIRECTIVE = re.compile(r"\s*\.\.\s+([\w:-]+)::\s*(.*)")
_REPLACE = re.compile(r"\.\. \|([^|]{1,100})\| replace:: (.*)")
_SUBSTITUTED = re.compile(r"\|([^|]{1,100})\|")
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


def read_rst(text: str) -> Iterator[Run]:
    """The lines of reStructuredText. Of directives, notes and the like keep their text; roles keep what they show."""
    lines = lines_of(text)
    if shown := {found[1]: found[2] for line in lines if (found := _REPLACE.match(line))}:
        lines = [_SUBSTITUTED.sub(lambda found: shown.get(found[1], found[0]), line) for line in lines]
    yield from _runs(lines, "rst")


def _runs(lines: Sequence[str], kind: str) -> Iterator[Run]:
    opens, levels = True, list[str]()
    skip = -1  # the rule below a heading
    options = False  # below a directive
    for number, line in enumerate(lines, start=1):
        if number == skip:
            continue
        if not line.strip():
            opens, options = True, False
            continue
        if rule := _rule_below(lines, number, kind):
            levels += [rule] * (rule not in levels)
            yield Run(_shown(line, kind), number, True, levels.index(rule) + 1)
            opens, skip = True, number + 1
            continue
        if _RULE.fullmatch(line) or (kind == "rst" and _TABLE_RULE.fullmatch(line)):
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
            yield Run(shown, number, opens or bool(_BULLET.match(line)))
            opens = False


def _rule_below(lines: Sequence[str], number: int, kind: str) -> str:
    """The character of the rule below a line, numbered from 1, if it makes the line a heading; else empty."""
    line, below = lines[number - 1], lines[number] if number < len(lines) else ""
    rule = _RULE.fullmatch(below)
    if rule is None or rule[1] not in _LINE[kind] or len(line) > _NEVER_LONGER or _RULE.fullmatch(line):
        return ""
    is_alone = number < 2 or not lines[number - 2].strip() or _RULE.fullmatch(lines[number - 2])
    fits = len(below.strip()) >= len(line.strip()) - 1
    return rule[1] if is_alone and fits and not _BULLET.match(line) else ""


def _shown(line: str, kind: str) -> str:
    """What a reader of the line sees."""
    if kind == "txt":
        return line.strip()
    if "`" in line or "*" in line:  # else there is no markup
        for pattern, shown in _RST:
            line = pattern.sub(shown, line)
    return (
        _BULLET.sub("", line, count=1).strip()
        if _BULLET.match(line) and not line.strip()[:1].isalnum()
        else line.strip()
    )
