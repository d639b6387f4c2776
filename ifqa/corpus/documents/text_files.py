"""Reads plain text as lines, and Jupyter notebooks, whose cells are Markdown or code."""

import json
from collections.abc import Iterator
from dataclasses import replace

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, split_lines
from ifqa.corpus.documents.markdown_files import markdown_runs
from ifqa.corpus.documents.text_lines import BULLET, RULE, Enumerations, rule_below

_RULES = "=-~"  # below a heading
# Limits on a notebook's output: its lines, and the characters of a line
_OUTPUT_LINES, _OUTPUT_LINE = 20, 300


def read_text(text: str) -> Iterator[TextRun]:
    """The lines of plain text; a line above a rule of `===` or `---` is a heading.

    A line with a bullet or a number begins an item.
    """
    lines = split_lines(text)
    levels = list[str]()  # the rules of the headings so far
    numbers = Enumerations()
    skip = -1  # the rule below a heading
    opens = True
    for number, line in enumerate(lines, start=1):
        if number == skip:
            continue
        if not line.strip() or RULE.fullmatch(line):
            opens = True
        elif rule := rule_below(lines, number, _RULES):
            if rule not in levels:
                levels.append(rule)
            yield TextRun(line.strip(), number, True, levels.index(rule) + 1)
            opens = True
            skip = number + 1
        else:
            label, _ = numbers.read(line, opens)
            is_item = bool(label or BULLET.match(line))
            yield TextRun(line.strip(), number, opens or is_item, item=is_item)
            opens = False


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
