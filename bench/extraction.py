"""Compares ifqa's text of files with two independent readers per kind: sentences that it loses or
adds.

Usage: python bench/extraction.py FOLDER [--show N]

FOLDER holds a folder for each kind (`md`, `html`, `docx` and the other keys of READERS) with files
of that kind. `--gather` fills it with installed files: Debian's /usr/share/doc and the packages of
this environment. A row of a table counts as a sentence. It needs pandoc and pdftotext (Debian:
pandoc, poppler-utils), and `pip install beautifulsoup4 docutils ebooklib mail-parser markdown
nbformat odfpy pandas pdfminer.six python-calamine python-docx python-pptx`.
bench/extraction_tables.py compares tables and lists.
"""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.readers import read_request

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

MAX_FILES = 60  # of a kind
MIN_WORDS = 4  # of a sentence that counts


def pandoc(kind: str) -> Callable[[Path], str]:
    def read(path: Path) -> str:
        """The text of pandoc's HTML, with a line for each paragraph and cell."""
        return str(pandoc_soup(kind, path).get_text())

    return read


def pandoc_soup(kind: str, path: Path) -> "BeautifulSoup":
    """Pandoc's HTML, without the numbers of notes."""
    from bs4 import BeautifulSoup

    command = ["pandoc", "--from", kind, "--to", "html", "--wrap", "none", str(path)]
    html = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    soup = BeautifulSoup(html, "html.parser")
    for number in soup.select(".footnote-ref, .footnote-back"):
        number.decompose()
    for line_break in soup("br"):
        line_break.replace_with("\n")
    return soup


def beautiful_soup(path: Path) -> str:
    return from_html(path.read_bytes())


def from_html(page: str | bytes) -> str:
    return str(main_part(page).get_text("\n"))


def main_part(page: str | bytes) -> "BeautifulSoup | Tag":
    """A page, or its <main>, without menus, forms and the like."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(page, "html.parser")
    for element in soup(
        "nav header footer aside form button script style template noscript".split()
    ):
        element.decompose()
    return soup.find("main") or soup


def python_docx(path: Path) -> str:
    from docx import Document

    document = Document(str(path))
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *cells])


def python_pptx(path: Path) -> str:
    from pptx import Presentation

    texts = list[str]()
    waiting = list[Any]()
    for slide in Presentation(str(path)).slides:
        waiting += slide.shapes
        texts += [slide.notes_slide.notes_text_frame.text] if slide.has_notes_slide else []
    for shape in waiting:
        waiting += shape.shapes if shape.shape_type == 6 else []  # a group
        texts += [shape.text_frame.text] if shape.has_text_frame else []
        texts += (
            [cell.text for row in shape.table.rows for cell in row.cells] if shape.has_table else []
        )
    return "\n".join(texts).replace("\v", " ")


def odfpy(path: Path) -> str:
    from odf import teletype, text

    body = odf_body(path)
    return "\n".join(
        teletype.extractText(part)
        for kind in (text.P, text.H)
        for part in body.getElementsByType(kind)
    )


def odf_body(path: Path) -> Any:
    """The body of an OpenDocument file; odfpy prints the parts of a file that it cannot parse."""
    from odf.opendocument import load

    with redirect_stdout(None):
        return load(str(path)).body


def calamine(path: Path) -> str:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(str(path))
    sheets = [book.get_sheet_by_name(name).to_python() for name in book.sheet_names]
    return "\n".join(
        " ".join(str(cell).split()) for sheet in sheets for row in sheet for cell in row
    )


def mail_parser(path: Path) -> str:
    from mailparser import parse_from_file

    mail = parse_from_file(str(path))
    unquoted = re.sub(r"(?m)^[> ]+", "", "\n".join(mail.text_plain))
    return unquoted or "\n".join(from_html(page) for page in mail.text_html)


def notebook(path: Path) -> str:
    """The cells of nbformat, without outputs; Markdown by Python-Markdown."""
    import nbformat

    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(
        from_markdown(cell.source) if cell.cell_type == "markdown" else cell.source
        for cell in cells
    )


def python_markdown(path: Path) -> str:
    return from_markdown(path.read_text(errors="replace"))


def from_markdown(text: str) -> str:
    """Python-Markdown's HTML, read by BeautifulSoup."""
    return str(markdown_soup(text).get_text(" "))


def markdown_soup(text: str) -> "BeautifulSoup":
    from bs4 import BeautifulSoup
    from markdown import markdown

    html = markdown(text, extensions=["tables", "fenced_code", "footnotes"])
    return BeautifulSoup(html, "html.parser")


def docutils_text(path: Path) -> str:
    from docutils import nodes
    from docutils.core import publish_doctree

    settings = {"report_level": 5, "halt_level": 6, "file_insertion_enabled": False}
    tree = publish_doctree(path.read_text(errors="replace"), settings_overrides=settings)
    unseen = (nodes.system_message, nodes.comment, nodes.substitution_definition)
    for node in [node for kind in unseen for node in tree.findall(kind)]:
        node.parent.remove(node)
    return tree.astext()


def pdftotext(path: Path) -> str:
    return subprocess.run(
        ["pdftotext", str(path), "-"], capture_output=True, text=True, check=True
    ).stdout


def pdfminer(path: Path) -> str:
    from pdfminer.high_level import extract_text

    return str(extract_text(path))


def ebooklib(path: Path) -> str:
    """The documents in the order of the spine, read by BeautifulSoup."""
    bodies = (element for soup in ebooklib_soups(path) for element in soup.find_all("body"))
    return "\n".join(body.get_text("\n") for body in bodies)


def ebooklib_soups(path: Path) -> "list[BeautifulSoup]":
    from bs4 import BeautifulSoup
    from ebooklib.epub import EpubNav, read_epub

    book = read_epub(str(path), {"ignore_ncx": True})
    parts = [book.get_item_with_id(name) for name, _ in book.spine]
    return [
        BeautifulSoup(part.content, "html.parser")
        for part in parts
        if part and not isinstance(part, EpubNav)
    ]


def rows(table: Iterable[Sequence[str]]) -> str:
    """A table with a row as a sentence: "name cell name cell ..." without the title, which is the
    row's heading.
    """
    names, *below = ([cell.strip() for cell in row] for row in table)
    columns = [name or f"column {place}" for place, name in enumerate(names, start=1)]
    pairs = (zip(columns, row, strict=False) for row in below)
    texts = (
        " ".join(f"{name} {cell}" for name, cell in row if cell and name.lower() != "title")
        for row in pairs
    )
    return "\n".join(map(words, texts))


def separator(path: Path) -> str:
    return csv.Sniffer().sniff(path.read_text(errors="replace")[:20_000], ",;\t|").delimiter


def module_csv(path: Path) -> str:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as handle:
        return rows(csv.reader(handle, delimiter=separator(path)))


def pandas(path: Path) -> str:
    from pandas import read_csv

    options = {"header": None, "dtype": str, "keep_default_na": False, "encoding_errors": "replace"}
    return rows(read_csv(path, sep=separator(path), **options).itertuples(index=False))


def plain(path: Path) -> str:
    return path.read_text(errors="replace")


READERS: dict[str, dict[str, Callable[[Path], str]]] = {
    "md": {"pandoc": pandoc("gfm+footnotes"), "Python-Markdown": python_markdown},
    "html": {"pandoc": pandoc("html"), "BeautifulSoup": beautiful_soup},
    "docx": {"pandoc": pandoc("docx"), "python-docx": python_docx},
    "odt": {"odfpy": odfpy},
    "odp": {"odfpy": odfpy},
    "pptx": {"python-pptx": python_pptx},
    "xlsx": {"calamine": calamine},
    "ipynb": {"nbformat": notebook},
    "eml": {"mail-parser": mail_parser},
    "epub": {"pandoc": pandoc("epub"), "EbookLib": ebooklib},
    "rst": {"pandoc": pandoc("rst"), "docutils": docutils_text},
    "csv": {"the module csv": module_csv, "pandas": pandas},
    "txt": {"its bytes": plain},
    "pdf": {"pdftotext": pdftotext, "pdfminer": pdfminer},
}


def words(text: str) -> str:
    """The lower-case letters and digits of a text, without accents, which PDF readers separate from
    their letters.
    """
    plain_letters = re.sub(r"[\u02b0-\u036f]", "", normalize("NFKD", text.casefold()))
    return " ".join(re.findall(r"[^\W_]+", plain_letters))


def sentences(text: str) -> Iterator[str]:
    for piece in re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n", text):
        normal = words(piece)
        if len(normal.split()) >= MIN_WORDS:
            yield normal


def missing_sentences(sentences: Iterable[str], text: str) -> list[str]:
    squeezed = text.replace(" ", "")
    return [sentence for sentence in sentences if sentence.replace(" ", "") not in squeezed]


@cache
def ours(path: Path) -> str:
    request = {
        "name": path.name,
        "suffix": path.suffix.lower(),
        "words": 10**9,
        "overlap": 0,
        "columns": [],
    }
    _, lines = read_request(request, path.read_bytes())
    return "\n".join(json.loads(line)["contents"] for line in lines.splitlines())


def compare(folder: Path, show: int, kinds: list[str]) -> None:
    print(
        "| kind | files | reader | its sentences | lost | recall | ours not in it "
        "|\n|---|---|---|---|---|---|---|"
    )
    for kind, readers in ((kind, READERS[kind]) for kind in kinds):
        files = sorted(path for path in (folder / kind).glob("*") if path.is_file())[:MAX_FILES]
        for name, read in readers.items():
            total = our_total = added = count = 0
            lost = list[tuple[str, str]]()
            for path in files:
                try:
                    text = ours(path)
                    their_text = read(path)
                except (
                    UnreadableFile,
                    subprocess.CalledProcessError,
                    csv.Error,
                    KeyError,
                    ValueError,
                ) as error:
                    print(f"  {path}: {error}", file=sys.stderr)
                    continue
                count += 1
                reference = list(sentences(their_text))
                our_sentences = list(sentences(text))
                lost += [
                    (path.name, sentence) for sentence in missing_sentences(reference, words(text))
                ]
                total = total + len(reference)
                our_total = our_total + len(our_sentences)
                added += len(missing_sentences(our_sentences, words(their_text)))
            recall = f"{1 - len(lost) / total:.4f}" if total else ""
            cells = f"{total:,} | {len(lost):,} | {recall} | {added:,} of {our_total:,}"
            print(f"| {kind} | {count} | {name} | {cells} |", flush=True)
            for path_name, sentence in lost[:: max(len(lost) // show, 1)][:show] if show else []:
                print(f"    {path_name}: {sentence[:150]}")


def gather(folder: Path) -> None:
    for kind in READERS:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for distribution in distributions():
        metadata = distribution.metadata
        text = metadata.get_payload() or metadata.get("Description") or ""
        content_type = (metadata.get("Description-Content-Type") or "").split(";")[0]
        kind = {"text/markdown": "md", "text/x-rst": "rst"}.get(content_type)
        if kind and len(text) > 1_500:
            (folder / kind / f"{metadata['Name']}.{kind}").write_text(text)
    places = [Path("/usr/share/doc"), *map(Path, sys.path)]
    for kind in READERS:
        count = len(list((folder / kind).iterdir()))
        for place in places:
            for path in place.rglob(f"*.{kind}") if place.is_dir() and count < MAX_FILES else []:
                if count < MAX_FILES and 1_500 < path.stat().st_size < 5_000_000:
                    shutil.copy(path, folder / kind / f"{count:02d}-{path.name}")
                    count += 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gather", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(READERS))
    arguments = parser.parse_args()
    if arguments.gather:
        gather(arguments.folder)
    compare(arguments.folder, arguments.show, arguments.kinds.split(","))
