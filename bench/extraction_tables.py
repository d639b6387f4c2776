"""Compares what ifqa's text makes of tables and lists with what other readers find in the files.

Usage: python bench/extraction_tables.py FOLDER [--show N] [--kinds md,html]

FOLDER is that of bench/extraction.py, which gathers it and says what must be installed. It may also
have the folders `xls` and `ods`. PDF files need `pip install pdfplumber`. --show prints some of
what is missed.

The first table has the *cells that have their column's name*. A cell counts if another reader finds
it below a header, in the second column or a later one. Its column must have a name, and its row
must have another text. It is found if a sentence of ours has the row's first cell and, further on,
the column's name directly before the cell. If the first cell is empty, name and cell are enough.
A column called "title" does not count, because ifqa makes headings of it in files of tables.

A header is what the format marks: rows of HTML's <thead> or <th>, the repeated rows of a Word
table, the first row of a slide's table, the header rows of OpenDocument. Other tables, and sheets,
have one if it is plain: all cells of the first row are different texts without digits, and some
column below has nothing but numbers. Pandoc takes the first row of most Word tables for a header,
so they need a plain one there. The first 200 rows of a table count.

The second table has the *items apart*. An item of a list counts by its first paragraph. It is found
if in our text a line break or the end of a sentence stands before and after it; its number may
stand before it. Items without a letter or digit do not count, nor headings, nor items in tables and
notes, nor on web pages the lists of nothing but links, which are menus.
"""

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from extraction import (
    MAX_FILES,
    ebooklib_soups,
    main_part,
    markdown_soup,
    odf_body,
    ours,
    pandoc_soup,
    separator,
    words,
)

from ifqa.corpus.sentences import split_sentences

if TYPE_CHECKING:
    from bs4 import Tag

MAX_ROWS = 200  # of a table
MAX_HEADER = 3  # rows; where more are marked, the mark means nothing
SHEETS = 20  # of a workbook
KEY = 6  # letters by which an item is looked up
_BLOCKS = "p div ul ol dl table pre blockquote h1 h2 h3 h4 h5 h6".split()
_NUMBER = re.compile(r"[^\w\s]{0,3}\s?\d[\d\s.,:/'’–-]*(?:[a-zA-Z%°€$£]{1,3}\.?)?[^\w\s]{0,2}")
_LABEL = re.compile(r"\s*(?:[(\[]?(?:[^\W_]{1,5}[.)\]])+|\d+(?:\.\d+)*)\s")
_END = re.compile(r"\n|(?<=[.!?])[\"”’')\]]*\s")
#: Stands for a number or date of a workbook, which may be written in any format.
_ANY_NUMBER = "\0"

Rows = Sequence[Sequence[str]]


class Table(NamedTuple):
    names: Sequence[str]
    rows: Rows


@dataclass
class Found:
    """What a reader finds in a file."""

    tables: list[Table] = field(default_factory=list)
    items: list[str] = field(default_factory=list)


Finder = Callable[[Path], Found]


# The readers of HTML, and those that write it


def from_soup(soup: "Tag", has_marks: bool = True) -> Found:
    """The tables and items of HTML; unless it `has_marks`, a header must be plain."""
    for note in soup.select(".footnotes, .footnote, [role=doc-noteref], nav"):
        note.decompose()
    tables = [table for table in soup("table") if not table.find("table")]
    items = [first_paragraph(item) for item in soup("li") if not item.find_parent("table")]
    return Found([table for element in tables for table in html_table(element, has_marks)], items)


def html_table(element: "Tag", has_marks: bool) -> list[Table]:
    lines = element("tr")
    header = len(list(takewhile(is_header_row, lines))) if has_marks else 0
    if has_marks and not header:
        return []
    return table_of(html_grid(lines), header)


def is_header_row(line: "Tag") -> bool:
    return bool(line.find_parent("thead")) or (len(line("th")) > 1 and not line("td"))


def html_grid(lines: Sequence["Tag"]) -> Rows:
    """The cells of each row; one that is merged is repeated in each place that it covers."""
    grid = [dict[int, str]() for _ in lines]
    for number, line in enumerate(lines):
        place = 0
        for cell in line(["td", "th"]):
            while place in grid[number]:
                place += 1
            text = " ".join(cell.get_text(" ").split())
            for row in grid[number : number + span_of(cell, "rowspan")]:
                row |= dict.fromkeys(range(place, place + span_of(cell, "colspan")), text)
    width = max((max(row, default=-1) + 1 for row in grid), default=0)
    return [[row.get(place, "") for place in range(width)] for row in grid]


def span_of(cell: "Tag", name: str) -> int:
    number = str(cell.get(name, "1")).strip()
    return min(max(int(number), 1), 1000) if number.isdecimal() else 1


def joined_names(header: Rows) -> list[str]:
    """The columns' names; where the header has several rows, the lowest that is filled."""
    return [next(filter(words, reversed(names)), "") for names in zip(*header, strict=True)]


def first_paragraph(item: Any) -> str:
    """The text of an item up to its second paragraph, or to a list or table within.

    It is empty if the item begins with a heading, a list or a table.
    """
    texts = list[str]()
    for part in item.children:
        is_block = getattr(part, "name", None) in _BLOCKS
        if is_block and any(map(words, texts)):
            break
        if is_block and part.name in ("p", "div", "blockquote"):
            return first_paragraph(part)
        if is_block:
            return ""
        texts.append(part.get_text())
    return "".join(texts)


def by_pandoc(kind: str) -> Finder:
    return lambda path: from_soup(pandoc_soup(kind, path), has_marks=kind != "docx")


def by_pandoc_html(path: Path) -> Found:
    return from_soup(without_menus(pandoc_soup("html", path)))


def by_pandoc_rst(path: Path) -> Found:
    soup = pandoc_soup("rst", path)
    for text in soup.select(".interpreted-text"):
        text.string = re.sub(r"\s<[^<>]*>$", "", text.get_text())
    return without_roles(from_soup(soup))


def by_beautiful_soup(path: Path) -> Found:
    return from_soup(without_menus(main_part(path.read_bytes())))


def without_menus(soup: "Tag") -> "Tag":
    """A page without the lists of nothing but links."""
    for items in soup(["ul", "ol"]):
        links = "".join(link.get_text() for link in items("a"))
        if words(links) and squeeze(links) == squeeze(items.get_text()):
            items.decompose()
    return soup


def by_python_markdown(path: Path) -> Found:
    return from_soup(markdown_soup(path.read_text(errors="replace")))


def by_ebooklib(path: Path) -> Found:
    parts = list(map(from_soup, ebooklib_soups(path)))
    return Found(
        [table for part in parts for table in part.tables],
        [item for part in parts for item in part.items],
    )


def by_docutils(path: Path) -> Found:
    from bs4 import BeautifulSoup
    from docutils.core import publish_string

    settings = {"report_level": 5, "halt_level": 6, "file_insertion_enabled": False}
    text = path.read_text(errors="replace")
    html = publish_string(text, writer="html5", settings_overrides=settings)
    soup = BeautifulSoup(html, "html.parser")
    for contents in soup.select(".contents, .topic"):
        contents.decompose()
    return without_roles(from_soup(soup))


def without_roles(found: Found) -> Found:
    """What was found, without the names and targets of Sphinx's roles, which others show."""
    tables = [
        Table(list(map(shown, table.names)), [list(map(shown, row)) for row in table.rows])
        for table in found.tables
    ]
    return Found(tables, list(map(shown, found.items)))


def shown(text: str) -> str:
    text = re.sub(r"(:[\w:+-]+:`[^`]+?)\s+<[^`<>]*>`", r"\1", text)
    return re.sub(r"(?<!\S):[a-z_:+-]+:(?=\S)", "", text)


# The readers of office suites


def by_python_docx(path: Path) -> Found:
    from docx import Document

    document = Document(str(path))
    tables = list[Table]()
    for table in document.tables:
        grid = [[cell.text for cell in row.cells] for row in table.rows]
        header = len(list(takewhile(is_docx_header, table.rows)))
        tables += table_of(grid, header if header <= MAX_HEADER else 0)
    return Found(tables, [part.text for part in document.paragraphs if is_docx_item(part)])


def is_docx_header(row: Any) -> bool:
    return bool(row._tr.xpath("./w:trPr/w:tblHeader"))


def is_docx_item(paragraph: Any) -> bool:
    """Whether a paragraph has a number or bullet, itself or by its style, and is no heading."""
    level = docx_property(paragraph, "w:outlineLvl/@w:val")
    is_heading = paragraph.style.name.startswith("Heading") or level in tuple("012345678")
    return not is_heading and docx_property(paragraph, "w:numPr/w:numId/@w:val") not in ("", "0")


def docx_property(paragraph: Any, path: str) -> str:
    """A property of a paragraph, or of the nearest style that has it."""
    found = paragraph._p.xpath(f"./w:pPr/{path}")
    style = paragraph.style
    while style is not None and not found:
        found = style.element.xpath(f"./w:pPr/{path}")
        style = style.base_style
    return str(found[0]) if found else ""


def by_python_pptx(path: Path) -> Found:
    from pptx import Presentation

    shapes = [shape for slide in Presentation(str(path)).slides for shape in slide.shapes]
    for shape in shapes:
        shapes += shape.shapes if shape.shape_type == 6 else []  # a group
    tables = list[Table]()
    for table in (shape.table for shape in shapes if shape.has_table):
        grid = [[pptx_text(cell) for cell in row.cells] for row in table.rows]
        tables += table_of(grid, int(table.first_row))
    bodies = [shape.text_frame for shape in shapes if is_pptx_body(shape)]
    paragraphs = (paragraph for body in bodies for paragraph in body.paragraphs)
    items = [part.text for part in paragraphs if not part._p.xpath("./a:pPr/a:buNone")]
    return Found(tables, [item.replace("\v", " ") for item in items])


def pptx_text(cell: Any) -> str:
    return str(cell.text).replace("\v", " ")


def is_pptx_body(shape: Any) -> bool:
    """Whether a shape is the content of a slide: several paragraphs, which have bullets."""
    if not shape.is_placeholder or not shape.has_text_frame:
        return False
    is_body = shape.placeholder_format.type in (2, 7)  # BODY and OBJECT
    return is_body and len(shape.text_frame.paragraphs) > 1


def by_odfpy(path: Path) -> Found:
    from odf import table, text

    body = odf_body(path)
    tables = list[Table]()
    for element in body.getElementsByType(table.Table):
        lines = element.getElementsByType(table.TableRow)
        grid = [odf_row(line) for line in lines]
        header = len([line for line in lines if "header-rows" in line.parentNode.qname[1]])
        tables += table_of(grid, header if header <= MAX_HEADER else 0)
    contents = (
        filter(is_element, item.childNodes) for item in body.getElementsByType(text.ListItem)
    )
    firsts = (next(content, None) for content in contents)
    paragraphs = [first for first in firsts if first and first.qname[1] == "p"]
    return Found(tables, [odf_text(part) for part in paragraphs if not is_in_cell(part)])


def odf_row(line: Any) -> list[str]:
    """The cells of a row; those with a picture or formula are empty."""
    from odf import namespaces

    cells = list[str]()
    for cell in filter(is_element, line.childNodes):
        repeated = cell.getAttrNS(namespaces.TABLENS, "number-columns-repeated")
        has_picture = any(part.qname[1] == "frame" for part in descendants(cell))
        text = "" if has_picture else odf_text(cell)
        cells += [text] * min(int(repeated or 1), 100)
    return cells


def descendants(element: Any) -> Iterator[Any]:
    for part in filter(is_element, element.childNodes):
        yield part
        yield from descendants(part)


def is_element(node: Any) -> bool:
    return bool(node.nodeType == node.ELEMENT_NODE)


def odf_text(element: Any) -> str:
    """The text of an element, without its notes and comments."""
    if not is_element(element):
        return str(element.data)
    name = element.qname[1]
    if name in ("note", "annotation", "tracked-changes"):
        return ""
    if name in ("s", "tab", "line-break"):
        return " "
    inner = "".join(map(odf_text, element.childNodes))
    return f"{inner} " if name in ("p", "h") else inner


def is_in_cell(element: Any) -> bool:
    while element is not None and element.qname[1] != "table-cell":
        element = element.parentNode
    return element is not None


# The readers of tables alone


def by_calamine(path: Path) -> Found:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(str(path))
    found = Found()
    for name in book.sheet_names[:SHEETS]:
        sheet = book.get_sheet_by_name(name).to_python(skip_empty_area=True, nrows=MAX_ROWS + 1)
        grid = [list(map(sheet_cell, row)) for row in sheet]
        typed = [[cell if isinstance(cell, str) else "1" for cell in row] for row in sheet]
        if has_plain_header(typed):
            found.tables.append(Table(grid[0], grid[1:]))
    return found


def sheet_cell(cell: Any) -> str:
    return cell if isinstance(cell, str) else _ANY_NUMBER


def by_csv(path: Path) -> Found:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252")
    lines = StringIO(text, newline="")
    return Found(table_of(list(csv.reader(lines, delimiter=separator(path))), 0))


def by_pdfplumber(path: Path) -> Found:
    import pdfplumber

    found = Found()
    with pdfplumber.open(path) as document:
        for page in document.pages[:100]:
            for grid in page.extract_tables():
                found.tables += table_of([[cell or "" for cell in row] for row in grid], 0)
    return found


def table_of(grid: Rows, header: int) -> list[Table]:
    """The table, if the format declares a number of rows above the data, or the first is plain."""
    header = header or int(has_plain_header(grid))
    if not 0 < header < len(grid):
        return []
    width = max(map(len, grid))
    full = [[*row, *[""] * (width - len(row))] for row in grid]
    names = joined_names(full[:header])
    return [Table(names, full[header:])] if len(set(names)) > 1 else []


def has_plain_header(grid: Rows) -> bool:
    """Whether the first row has different texts without digits, over a column of numbers."""
    if len(grid) < 2 or len(grid[0]) < 2:
        return False
    names = list(map(words, grid[0]))
    if not all(names) or len(set(names)) < len(names) or re.search(r"\d", "".join(names)):
        return False
    columns = ([row[n] for row in grid[1:] if n < len(row) and row[n]] for n in range(len(names)))
    return any(column and all(map(is_number, column)) for column in columns)


def is_number(cell: str) -> bool:
    return bool(_NUMBER.fullmatch(cell.strip()[:60]))


FINDERS: dict[str, dict[str, Finder]] = {
    "md": {"pandoc": by_pandoc("gfm+footnotes"), "Python-Markdown": by_python_markdown},
    "rst": {"pandoc": by_pandoc_rst, "docutils": by_docutils},
    "html": {"pandoc": by_pandoc_html, "BeautifulSoup": by_beautiful_soup},
    "epub": {"pandoc": by_pandoc("epub"), "EbookLib": by_ebooklib},
    "docx": {"pandoc": by_pandoc("docx"), "python-docx": by_python_docx},
    "odt": {"pandoc": by_pandoc("odt"), "odfpy": by_odfpy},
    "pptx": {"python-pptx": by_python_pptx},
    "odp": {"odfpy": by_odfpy},
    "xlsx": {"calamine": by_calamine},
    "xls": {"calamine": by_calamine},
    "ods": {"calamine": by_calamine},
    "csv": {"the module csv": by_csv},
    "pdf": {"pdfplumber": by_pdfplumber},
}


# What of it is in our text


@dataclass
class Score:
    """How many cells or items of a kind's files count, and those that are missed."""

    files: int = 0  # with any
    count: int = 0
    missed: list[str] = field(default_factory=list)

    def add(self, path: Path, count: int, missed: Iterable[str]) -> None:
        self.files += count > 0
        self.count += count
        self.missed += [f"{path.name}: {' '.join(text.split())}" for text in missed]

    def line(self, kind: str, reader: str) -> str:
        found = self.count - len(self.missed)
        numbers = f"{self.count:,} | {found:,} | {found / self.count:.1%}"
        return f"| {kind} | {self.files} | {reader} | {numbers} |"


@cache
def our_sentences(path: Path) -> list[str]:
    """The words of each sentence, between spaces."""
    return [f" {words(sentence)} " for sentence in split_sentences(ours(path))]


def count_cells(path: Path, tables: Iterable[Table]) -> tuple[int, list[str]]:
    """How many cells of tables count, and those without their column's name."""
    count = 0
    missed = list[str]()
    for table in tables:
        names = unique_names(table.names)
        for row in table.rows[:MAX_ROWS]:
            first, pairs = counted_cells(names, list(map(cell_words, row)))
            rests = rests_after(first, our_sentences(path)) if pairs else []
            count += len(pairs)
            missed += [
                f"{first} ... {name}: {cell}".replace(_ANY_NUMBER, "9")
                for name, cell in pairs
                if not has_named(name, cell, rests)
            ]
    return count, missed


def counted_cells(names: Sequence[str], cells: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """The first cell of a row, and the names and texts of its cells that count.

    None do if the row has one text, such as a title of rows.
    """
    columns = [pair for pair in zip(names, cells, strict=False) if pair[0] != "title"]
    if len(set(filter(None, cells))) < 2 or not columns:
        return "", []
    return columns[0][1], [(name, cell) for name, cell in columns[1:] if name and cell]


def unique_names(names: Sequence[str]) -> list[str]:
    """The names' words; the second "a" is "a 2"."""
    seen = Counter[str]()
    unique = list[str]()
    for name in map(words, names):
        seen[name] += 1
        unique.append(f"{name} {seen[name]}" if name and seen[name] > 1 else name)
    return unique


def cell_words(cell: str) -> str:
    return cell if cell == _ANY_NUMBER else words(cell)


def rests_after(first: str, sentences: Iterable[str]) -> list[str]:
    """What stands behind a row's first cell in each sentence that has it.

    A number of a workbook may be written in any format, so it is not looked for.
    """
    if first in ("", _ANY_NUMBER):
        return list(sentences)
    parts = (sentence.partition(f" {first} ") for sentence in sentences)
    return [f" {rest}" for _, found, rest in parts if found]


def has_named(name: str, cell: str, rests: Iterable[str]) -> bool:
    if cell != _ANY_NUMBER:
        return any(f" {name} {cell} " in rest for rest in rests)
    with_number = re.compile(rf" {re.escape(name)} (?:\w*\d|true |false )")
    return any(map(with_number.search, rests))


class Squeezed:
    """Our text without its spaces, and where its lines and sentences begin and end in it."""

    def __init__(self, text: str) -> None:
        starts = set[int]()
        self._ends = set[int]()
        parts = list[str]()
        size = 0
        for unit in _END.split(text):
            starts.add(size)
            if label := _LABEL.match(unit):
                starts.add(size + len(squeeze(label[0])))
            parts.append(squeeze(unit))
            size += len(parts[-1])
            self._ends.add(size)
        self._text = "".join(parts)
        self._starts = defaultdict[str, list[int]](list)  # by the first letter or letters
        for start in starts:
            for length in range(1, KEY + 1):
                self._starts[self._text[start : start + length]].append(start)

    def has_apart(self, item: str) -> bool:
        return any(
            start + len(item) in self._ends and self._text.startswith(item, start)
            for start in self._starts.get(item[:KEY], ())
        )


def squeeze(text: str) -> str:
    return words(text).replace(" ", "")


@cache
def our_squeezed(path: Path) -> Squeezed:
    return Squeezed(ours(path))


def count_items(path: Path, items: Iterable[str]) -> tuple[int, list[str]]:
    """How many items count, and those that are not apart."""
    counted = [item for item in items if words(item)]
    squeezed = our_squeezed(path)
    return len(counted), [item for item in counted if not squeezed.has_apart(squeeze(item))]


def compare(folder: Path, show: int, kinds: Iterable[str]) -> None:
    cells_of = dict[tuple[str, str], Score]()
    items_of = dict[tuple[str, str], Score]()
    for kind in kinds:
        files = sorted(path for path in (folder / kind).glob("*") if path.is_file())[:MAX_FILES]
        for reader, find in FINDERS[kind].items():
            cells = cells_of[kind, reader] = Score()
            items = items_of[kind, reader] = Score()
            for path in files:
                try:
                    ours(path)
                    found = find(path)
                except Exception as error:  # noqa: BLE001  whatever a reader says of a file that it rejects
                    print(f"  {reader}: {path}: {error!r:.200}", file=sys.stderr)
                    continue
                cells.add(path, *count_cells(path, found.tables))
                items.add(path, *count_items(path, found.items))
    print_scores("cells | with their column's name", cells_of, show)
    print_scores("items | apart", items_of, show)


def print_scores(columns: str, scores: dict[tuple[str, str], Score], show: int) -> None:
    print(f"\n| kind | files | reader | {columns} | share |\n|---|---|---|---|---|---|")
    for (kind, reader), score in scores.items():
        if not score.count:
            continue
        print(score.line(kind, reader))
        step = max(len(score.missed) // max(show, 1), 1)
        for text in score.missed[::step][:show]:
            print(f"    {text[:200]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(FINDERS))
    arguments = parser.parse_args()
    compare(arguments.folder, arguments.show, arguments.kinds.split(","))
