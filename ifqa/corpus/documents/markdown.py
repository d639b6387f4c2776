"""Markdown as runs of lines, by markdown-it-py: CommonMark with GitHub's tables and footnotes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ifqa.corpus.documents.text import Run, lines_of
from ifqa.corpus.documents.web import html_runs

if TYPE_CHECKING:
    from markdown_it.token import Token

DEEPEST = 100  # levels of lists and quotations; the text below is left out


def read_markdown(text: str) -> Iterator[Run]:
    """What a reader of Markdown sees, with its lines. Front matter, comments and links' addresses are left out."""
    from markdown_it import MarkdownIt

    lines = lines_of(text)
    if lines and lines[0].strip() == "---":  # front matter; a rule at its end is no heading's
        end = next((n for n, line in enumerate(lines[1:], start=1) if line.strip() in ("---", "...")), 0)
        lines[: end + 1] = [""] * (end + 1)
    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    found: dict[str, dict[str, dict[str, object]]] = {}
    tokens = parser.parse("\n".join(lines), found)
    # a footnote of a single word is read as the address of a link
    notes = [(label, note["map"]) for label, note in found.get("references", {}).items() if label.startswith("^")]
    runs = [*_runs(tokens), *(Run(lines[place[0]].strip(), place[0] + 1) for _, place in notes)]  # type: ignore[index]
    yield from sorted(runs, key=lambda run: run.place) if notes else runs


def _runs(tokens: Sequence["Token"]) -> Iterator[Run]:
    level, cells = 0, list[str]()
    in_row = False
    for token in tokens:
        first = token.map[0] + 1 if token.map else 1
        if token.type in ("heading_open", "heading_close"):
            level = int(token.tag[1:]) if token.type == "heading_open" else 0
        elif token.type in ("tr_open", "tr_close"):
            in_row = token.type == "tr_open"
            if in_row:
                cells, row = [], first
            elif any(cells):
                yield Run(f"{'; '.join(filter(None, cells))}.", row)
        elif token.type == "inline" and in_row:
            cells.append(" ".join(_lines(token.children or [])).strip())
        elif token.type == "inline" and level:
            yield Run(" ".join(_lines(token.children or [])), first, True, level)
        elif token.type == "inline":
            for number, line in enumerate(_lines(token.children or [])):
                yield Run(line, first + number, number == 0)
        elif token.type in ("fence", "code_block"):
            for number, line in enumerate(token.content.split("\n")):
                yield Run(line, first + number + (token.type == "fence"), number == 0)
        elif token.type == "html_block":
            for run in html_runs(token.content):
                yield replace(run, place=first + run.place - 1)


def _lines(tokens: Sequence["Token"]) -> list[str]:
    """The text of each line of a paragraph, as it is shown; an image is its description."""
    parts = [""]
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            parts.append("")
        elif token.type == "image":
            parts[-1] += " ".join(_lines(token.children or []))
        elif token.type == "html_inline":
            parts[-1] += " " if token.content[:3].lower() == "<br" else ""
        else:
            parts[-1] += token.content
    return parts
