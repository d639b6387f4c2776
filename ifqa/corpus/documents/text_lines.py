"""Finds the headings and the numbered items among lines of text."""

import re
from collections.abc import Sequence

from ifqa.corpus.documents.numerals import read_number, write_number

RULE = re.compile(r"\s*([=\-~^\"'`#*+.:_<>])\1{2,}\s*")
BULLET = re.compile(r"\s*[-*+•‣▪◦–]\s+")
_ENUMERATOR = re.compile(r"(\s*)(\(?)(#|\d{1,3}|[a-zA-Z]|[ivxlcIVXLC]{2,8})([.)])\s+")
_LONGEST_HEADING = 200  # characters
_DEEPEST = 50  # lists within one another


def rule_below(lines: Sequence[str], number: int, rules: str) -> str:
    """The character of the rule below line `number` (from 1) if the line is a heading.

    Else empty. `rules` are the characters of rules.
    """
    line = lines[number - 1]
    below = lines[number] if number < len(lines) else ""
    rule = RULE.fullmatch(below)
    if (
        rule is None
        or rule[1] not in rules
        or len(line) > _LONGEST_HEADING
        or RULE.fullmatch(line)
        or not line.strip()
    ):
        return ""
    is_alone = number < 2 or not lines[number - 2].strip() or RULE.fullmatch(lines[number - 2])
    fits = len(below.strip()) >= len(line.strip()) - 1
    is_item = BULLET.match(line) or _ENUMERATOR.match(line)
    return rule[1] if is_alone and fits and not is_item else ""


class Enumerations:
    """The numbered lists around a line, by their indents."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str, int]] = []  # indent, style and last number of each

    def read(self, line: str, starts: bool) -> tuple[str, str]:
        """The number of an item and the text after it; empty if the line is none.

        `starts` is whether the line begins a paragraph. Within one, "12." begins an item only after
        "11." or as the first number, because a sentence may break before a number.
        """
        match = _ENUMERATOR.match(line)
        indent = len(line) - len(line.lstrip())
        while self._open and self._open[-1][0] > indent:
            self._open.pop()
        last = self._open[-1] if self._open and self._open[-1][0] == indent else None
        if match is None:
            if last and starts:
                self._open.pop()
            return "", ""
        style, number = _parse(match[3], last)
        if match[3] != "#" and not match[3].isdecimal() and write_number(number, style) != match[3]:
            return "", ""  # a word, such as "ill."
        follows = last is not None and (last[1], last[2] + 1) == (style, number)
        is_first = number == 1 and style == "1"
        if not (starts or follows or is_first):
            return "", ""
        if last:
            self._open.pop()
        if len(self._open) < _DEEPEST:
            self._open.append((indent, style, number))
        shown = write_number(number, style) if match[3] == "#" else match[3]
        return f"{match[2]}{shown}{match[4]}", line[match.end() :]


def _parse(text: str, last: tuple[int, str, int] | None) -> tuple[str, int]:
    """Style and number of an enumerator; "#" follows the last one."""
    if text == "#":
        return (last[1], last[2] + 1) if last else ("1", 1)
    if last and write_number(last[2] + 1, last[1]) == text:
        return last[1], last[2] + 1
    return read_number(text)
