"""Reads plain text, reStructuredText and Markdown (CommonMark with tables and strikethrough) as
lines, without markup.

It also reads Jupyter notebooks, whose cells are Markdown or code.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, split_lines
from ifqa.corpus.documents.markdown_files import markdown_runs

_BULLET = re.compile(r"\s*(?:[-*+•‣]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+")
_RULE = re.compile(r"\s*([=\-~^\"'`#*+.:_<>])\1{2,}\s*")
_LINE = {"txt": "=-~", "rst": "=-~^\"'`#*+.:_<>"}
_LONGEST_HEADING = 200  # characters
_TAG_NAME = re.compile(r"</?([a-zA-Z][\w-]*)")
# Limits on a notebook's output: its lines, and the characters of a line
_OUTPUT_LINES, _OUTPUT_LINE = 20, 300

_TABLE_RULE = re.compile(r"(?=[^|]*\|)[\s|:+=-]*|\s*\+[-=+]+\+\s*")
_DIRECTIVE = re.compile(r"\s*\.\.\s+([\w:-]+)::\s*(.*)")
_REPLACE = re.compile(r"\.\. \|([^|]{1,100})\| replace:: (.*)")
_SUBSTITUTED = re.compile(r"\|([^|]{1,100})\|")
_NOTES = set(
    (
        "note warning tip hint important caution attention danger error "
        "admonition topic rubric glossary"
    ).split()
)
_RST = [
    (re.compile(r":[a-zA-Z:+-]{1,40}:`([^`<>]{1,500}?)\s*(?:<[^`<>]{1,500}>)?`"), r"\1"),
    (re.compile(r"`([^`<>]{1,500}?)\s*<[^`<>]{1,2000}>`__?"), r"\1"),
    (re.compile(r"``([^`]{1,1000})``"), r"\1"),
    (re.compile(r"`([^`]{1,500})`_?_?"), r"\1"),
    (re.compile(r"(?<!\w)\*{1,2}(?=\S)([^*]{1,1000}?)(?<=\S)\*{1,2}(?!\w)"), r"\1"),
]


def read_text(text: str) -> Iterator[TextRun]:
    """The lines of plain text; a line above a rule of `===` or `---` is a heading."""
    yield from _runs(split_lines(text), "txt")


def read_rst(text: str) -> Iterator[TextRun]:
    """The lines of reStructuredText.

    Notes and similar directives keep their text; roles keep the text they show.
    """
    lines = split_lines(text)
    if substitutions := {match[1]: match[2] for line in lines if (match := _REPLACE.match(line))}:
        lines = [
            _SUBSTITUTED.sub(lambda match: substitutions.get(match[1], match[0]), line)
            for line in lines
        ]
    yield from _runs(lines, "rst")


def _runs(lines: Sequence[str], kind: str) -> Iterator[TextRun]:
    # rules of the headings so far; the rule below a heading
    levels = list[str]()
    skip = -1
    opens, options = True, False  # whether the line starts a paragraph, or is below a directive
    for number, line in enumerate(lines, start=1):
        if number == skip:
            continue
        if not line.strip():
            opens, options = True, False
            continue
        if rule := _rule_below(lines, number, kind):
            if rule not in levels:
                levels.append(rule)
            yield TextRun(_strip_markup(line, kind), number, True, levels.index(rule) + 1)
            opens = True
            skip = number + 1
            continue
        if _RULE.fullmatch(line) or (kind == "rst" and _TABLE_RULE.fullmatch(line)):
            opens = True
            continue
        if kind == "rst":
            if directive := _DIRECTIVE.match(line):
                opens, options = True, True
                line = directive[2] if directive[1].lower() in _NOTES else ""
            elif line.lstrip().startswith(".. ") or (options and re.match(r"\s+:[\w-]+:", line)):
                opens = True
                continue
        if text := _strip_markup(line, kind):
            yield TextRun(text, number, opens or bool(_BULLET.match(line)))
            opens = False


def _rule_below(lines: Sequence[str], number: int, kind: str) -> str:
    """The character of the rule below line `number` (from 1) if the line is a heading.

    Else empty.
    """
    line = lines[number - 1]
    below = lines[number] if number < len(lines) else ""
    rule = _RULE.fullmatch(below)
    if (
        rule is None
        or rule[1] not in _LINE[kind]
        or len(line) > _LONGEST_HEADING
        or _RULE.fullmatch(line)
    ):
        return ""
    is_alone = number < 2 or not lines[number - 2].strip() or _RULE.fullmatch(lines[number - 2])
    fits = len(below.strip()) >= len(line.strip()) - 1
    return rule[1] if is_alone and fits and not _BULLET.match(line) else ""


def _strip_markup(line: str, kind: str) -> str:
    if kind == "txt":
        return line.strip()
    if "`" in line or "*" in line:  # else there is no markup
        for pattern, replacement in _RST:
            line = pattern.sub(replacement, line)
    if _BULLET.match(line) and not line.strip()[:1].isalnum():
        line = _BULLET.sub("", line, count=1)
    return line.strip()


def read_notebook(text: str) -> Iterator[TextRun]:
    """The cells of a Jupyter notebook, counted from 1: Markdown, code, and the first lines of
    outputs that are text.
    """
    try:
        notebook = json.loads(text)
        # worksheets: notebook format 3 and earlier
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        for number, cell in enumerate(cells, start=1):
            source = _joined(cell.get("source", cell.get("input", "")))
            if cell["cell_type"] == "markdown":
                yield from (replace(run, place=number) for run in markdown_runs(source))
                continue
            level = int(cell["cell_type"] == "heading" and cell["level"])
            pieces = [split_lines(source)]
            for output in cell.get("outputs", ()):
                shown = output.get("text") or output.get("data", {}).get("text/plain", "")
                pieces.append(
                    [line[:_OUTPUT_LINE] for line in split_lines(_joined(shown))[:_OUTPUT_LINES]]
                )
            for lines in pieces:
                yield from (TextRun(line, number, not n, level) for n, line in enumerate(lines))
    except (ValueError, RecursionError, AttributeError, IndexError, KeyError, TypeError) as error:
        raise UnreadableFile(
            f"not a Jupyter notebook{f' ({error})' if isinstance(error, ValueError) else ''}"
        ) from error


def _joined(text: str | list[str]) -> str:
    return "".join(text)
