"""Sentences that ifqa loses or adds, against two independent readers of each kind of file.

Usage: python bench/extraction.py FOLDER [--show N]

FOLDER holds a folder for each kind (`md`, `html`, `docx`, `epub`, `rst`, `csv`, `txt`, `pdf`) with files of that kind.
`--gather` fills it from what is installed: Debian's /usr/share/doc and the packages of this environment. A row of a table
counts as a sentence. Needs pandoc and pdftotext (Debian: pandoc, poppler-utils), and
`pip install beautifulsoup4 docutils ebooklib markdown pandas pdfminer.six python-docx`.
"""

import argparse
import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from unicodedata import normalize

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.readers import read_request

PER_KIND = 20
LEAST = 4  # words of a sentence that counts


def pandoc(kind: str) -> Callable[[Path], str]:
    def read(path: Path) -> str:
        """Its HTML, in which a paragraph, a cell of a table and the like is a line; without the numbers of notes."""
        from bs4 import BeautifulSoup

        command = ["pandoc", "--from", kind, "--to", "html", "--wrap", "none", str(path)]
        soup = BeautifulSoup(subprocess.run(command, capture_output=True, text=True, check=True).stdout, "html.parser")
        for number in soup.select(".footnote-ref, .footnote-back"):
            number.decompose()
        for line_break in soup("br"):
            line_break.replace_with("\n")
        return soup.get_text()

    return read


def beautiful_soup(path: Path) -> str:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(path.read_bytes(), "html.parser")
    for element in soup(
        ["nav", "header", "footer", "aside", "form", "button", "script", "style", "template", "noscript"]
    ):
        element.decompose()
    return (soup.find("main") or soup).get_text("\n")


def python_docx(path: Path) -> str:
    from docx import Document

    document = Document(str(path))
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *cells])


def python_markdown(path: Path) -> str:
    """Python-Markdown's HTML, read by BeautifulSoup."""
    from bs4 import BeautifulSoup
    from markdown import markdown

    html = markdown(path.read_text(errors="replace"), extensions=["tables", "fenced_code", "footnotes"])
    return BeautifulSoup(html, "html.parser").get_text(" ")


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
    return subprocess.run(["pdftotext", str(path), "-"], capture_output=True, text=True, check=True).stdout


def pdfminer(path: Path) -> str:
    from pdfminer.high_level import extract_text

    return str(extract_text(path))


def ebooklib(path: Path) -> str:
    """Its documents in the order of the spine, read by BeautifulSoup."""
    from bs4 import BeautifulSoup
    from ebooklib.epub import EpubNav, read_epub

    book = read_epub(str(path), {"ignore_ncx": True})
    parts = [book.get_item_with_id(name) for name, _ in book.spine]
    soups = [BeautifulSoup(part.content, "html.parser") for part in parts if part and not isinstance(part, EpubNav)]
    return "\n".join(element.get_text("\n") for soup in soups for element in soup.find_all("body"))


def rows(table: Iterable[Sequence[str]]) -> str:
    """A table with a row as a sentence: "name value name value ..." without the title, which is the row's heading."""
    names, *below = ([cell.strip() for cell in row] for row in table)
    columns = [name or f"column {place}" for place, name in enumerate(names, start=1)]
    pairs = (zip(columns, row, strict=False) for row in below)
    return "\n".join(
        words(" ".join(f"{name} {cell}" for name, cell in row if cell and name.lower() != "title")) for row in pairs
    )


def separator(path: Path) -> str:
    return csv.Sniffer().sniff(path.read_text(errors="replace")[:20_000], ",;\t|").delimiter


def module_csv(path: Path) -> str:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as handle:
        return rows(csv.reader(handle, delimiter=separator(path)))


def pandas(path: Path) -> str:
    from pandas import read_csv

    table = read_csv(
        path, sep=separator(path), header=None, dtype=str, keep_default_na=False, encoding_errors="replace"
    )
    return rows(table.itertuples(index=False))


def plain(path: Path) -> str:
    return path.read_text(errors="replace")


READERS: dict[str, dict[str, Callable[[Path], str]]] = {
    "md": {"pandoc": pandoc("gfm+footnotes"), "Python-Markdown": python_markdown},
    "html": {"pandoc": pandoc("html"), "BeautifulSoup": beautiful_soup},
    "docx": {"pandoc": pandoc("docx"), "python-docx": python_docx},
    "epub": {"pandoc": pandoc("epub"), "EbookLib": ebooklib},
    "rst": {"pandoc": pandoc("rst"), "docutils": docutils_text},
    "csv": {"the module csv": module_csv, "pandas": pandas},
    "txt": {"its bytes": plain},
    "pdf": {"pdftotext": pdftotext, "pdfminer": pdfminer},
}


def words(text: str) -> str:
    """The letters and digits of a text, lower case and without accents, which PDF readers set apart from their letters."""
    plain_letters = re.sub(r"[\u02b0-\u036f]", "", normalize("NFKD", text.casefold()))
    return " ".join(re.findall(r"[^\W_]+", plain_letters))


def sentences(text: str) -> Iterator[str]:
    for piece in re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n", text):
        normal = words(piece)
        if len(normal.split()) >= LEAST:
            yield normal


def lost(from_: Iterable[str], in_: str) -> list[str]:
    squeezed = in_.replace(" ", "")
    return [sentence for sentence in from_ if sentence.replace(" ", "") not in squeezed]


@cache
def ours(path: Path) -> str:
    request = {"name": path.name, "suffix": path.suffix.lower(), "words": 10**9, "overlap": 0, "columns": []}
    import json

    _, lines = read_request(request, path.read_bytes())
    return "\n".join(json.loads(line)["contents"] for line in lines.splitlines())


def compare(folder: Path, show: int, kinds: list[str]) -> None:
    print("| kind | files | reader | its sentences | lost | recall | ours not in it |\n|---|---|---|---|---|---|---|")
    for kind, readers in ((kind, READERS[kind]) for kind in kinds):
        files = sorted(path for path in (folder / kind).glob("*") if path.is_file())[: PER_KIND * 3]
        for name, read in readers.items():
            total = gone = mine = added = count = 0
            examples = list[tuple[str, str]]()
            for path in files:
                try:
                    text, theirs = ours(path), read(path)
                except (UnreadableFile, subprocess.CalledProcessError, csv.Error, KeyError, ValueError) as error:
                    print(f"  {path}: {error}", file=sys.stderr)
                    continue
                count += 1
                reference, here = list(sentences(theirs)), list(sentences(text))
                missing = lost(reference, words(text))
                total, gone = total + len(reference), gone + len(missing)
                mine, added = mine + len(here), added + len(lost(here, words(theirs)))
                examples += [(path.name, sentence) for sentence in missing]
            recall = f"{1 - gone / total:.4f}" if total else ""
            print(
                f"| {kind} | {count} | {name} | {total:,} | {gone:,} | {recall} | {added:,} of {mine:,} |", flush=True
            )
            for path_name, sentence in examples[:: max(len(examples) // show, 1)][:show] if show else []:
                print(f"    {path_name}: {sentence[:150]}")


def gather(folder: Path) -> None:
    for kind in READERS:
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for distribution in distributions():
        about = distribution.metadata
        text = about.get_payload() or about.get("Description") or ""
        kind = {"text/markdown": "md", "text/x-rst": "rst"}.get(
            (about.get("Description-Content-Type") or "").split(";")[0]
        )
        if kind and len(text) > 1_500:
            (folder / kind / f"{about['Name']}.{kind}").write_text(text)
    places = [Path("/usr/share/doc"), *map(Path, sys.path)]
    for kind in READERS:
        have = len(list((folder / kind).iterdir()))
        for place in places:
            for path in place.rglob(f"*.{kind}") if place.is_dir() and have < 3 * PER_KIND else []:
                if have < 3 * PER_KIND and 1_500 < path.stat().st_size < 5_000_000:
                    shutil.copy(path, folder / kind / f"{have:02d}-{path.name}")
                    have += 1


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--gather", action="store_true")
    arguments.add_argument("--show", type=int, default=0)
    arguments.add_argument("--kinds", default=",".join(READERS))
    given = arguments.parse_args()
    if given.gather:
        gather(given.folder)
    compare(given.folder, given.show, given.kinds.split(","))
