"""Reading a document takes linear time: the number of executed lines of Python is proportional to
its bytes.

This does not count work within a line (a pattern, a copy). In LONG_DOCUMENTS, quadratic time would
exceed a minute.
"""

import sys
import time

import pytest
from mixed_documents import pdf
from office_documents import (
    item,
    level,
    numbering,
    open_document,
    paragraph,
    presentation,
    row,
    run,
    shape,
    table,
    word_document,
)

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.readers import READERS

PROSE = "The keeper lit the lamp at nine and wrote it down.\n"
DOCUMENTS = {
    "prose.txt": lambda n: PROSE * n,
    "headings.md": lambda n: "# x\n" * n,
    "bars.md": lambda n: "|" * n,
    "headings.rst": lambda n: "x\n===\n\n" * n,
    "endless quotes.csv": lambda n: 'x","""y\n' * n,
    "wide.csv": lambda n: f'name,what\n1,"{PROSE * n}"\n',
    "keys.jsonl": lambda n: "".join(f'{{"{"key" * 50}": {row}}}\n' for row in range(n)),
    "keys.json": lambda n: "{" + ",".join(f'"{row}": [1, "x"]' for row in range(n)) + "}",
    "quotes.mbox": lambda n: f"From a 10:00:00\nSubject: x\n\n{PROSE}> {PROSE}\n" * (n // 10),
    "nested.html": lambda n: "<div>" * n + "The lamp.",
}
OPEN_ROW = (
    "<table:table-row><table:table-cell table:number-columns-repeated='16384'><text:p>x</text:p>"
    "</table:table-cell></table:table-row>"
)
CONTINUED = "<w:tc><w:tcPr><w:gridSpan w:val='63'/><w:vMerge/></w:tcPr><w:p/></w:tc>"
DELETED_END = "<w:rPr><w:del/></w:rPr>"
DOCUMENTS |= {
    "items.docx": lambda n: word_document(
        item("x") * n, numbering=numbering(level(0, "lowerRoman", "%1"))
    ),
    "rows.docx": lambda n: word_document(table(row("a", "b", "c") * (n // 8))),
    "merged rows.docx": lambda n: word_document(
        table(row("word " * 50, "b"), f"<w:tr>{CONTINUED}</w:tr>" * (n // 50))
    ),
    "styles.docx": lambda n: word_document(
        paragraph("x", f'<w:pStyle w:val="s{n}"/>') * n,
        styles="".join(
            f'<w:style w:styleId="s{number}"><w:basedOn w:val="s{number - 1}"/></w:style>'
            for number in range(n, 0, -1)
        ),
    ),
    "ends.docx": lambda n: word_document(paragraph("x", DELETED_END) * n + paragraph("y")),
    "boxes.docx": lambda n: word_document(
        paragraph((run("x") + f"<w:r><w:pict>{paragraph('y')}</w:pict></w:r>") * n)
    ),
    "fields.docx": lambda n: word_document(
        paragraph('<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * n) + paragraph(run("x") * n)
    ),
    "levels.docx": lambda n: word_document(
        item("x") * n,
        numbering=numbering(*(level(place, "decimal", "%1") for place in range(n))),
    ),
    "numbers.pptx": lambda n: presentation(
        shape(
            *[
                '<a:p><a:pPr><a:buAutoNum type="romanLcPeriod"/></a:pPr><a:r><a:t>x</a:t></a:r></a:p>'
            ]
            * n
        )
    ),
    "repeated.odt": lambda n: open_document(f"<table:table>{OPEN_ROW * (n // 100)}</table:table>"),
    "lists.odt": lambda n: open_document(
        "<text:list><text:list-item><text:p>x</text:p></text:list-item></text:list>" * n
    ),
    "headings.odt": lambda n: open_document('<text:h text:outline-level="999999">x</text:h>' * n),
}
LONG_DOCUMENTS = {
    "bars.rst": lambda: "|" * 400_000 + "x",
    "stray quotes.csv": lambda: '"a"b\n' * 150_000,
    "short rows.csv": lambda: "c," * 150_000 + "\n" + "a\n" * 150_000,
    "glued.html": lambda: "a<b>" * 1_000_000,
    "heading of many lines.html": lambda: "<h1>" + "a\n" * 1_000_000,
    "lines.pdf": lambda: pdf(
        [["The sluice.", *["a" * 32_000] * 8, *["A word " + ". " * 15_000 + "z"] * 8]]
    ),
    "headings.pdf": lambda: pdf(
        [[f"line {n}" for n in range(2_000)]], [(f"heading {n}", 0, 1) for n in range(2_000)]
    ),
}


def chunks(name, content):
    unit, reader = READERS["." + name.rpartition(".")[2]]
    return chunk_document(
        name, reader(content if isinstance(content, bytes) else content.encode(), ()), unit
    )


def executed_lines(name, content):
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()  # that of coverage
    sys.settrace(trace)
    try:
        list(chunks(name, content))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", DOCUMENTS)
def test_twice_the_bytes_are_twice_the_work(name):
    once, twice = (executed_lines(name, DOCUMENTS[name](n)) for n in (2_000, 4_000))
    assert twice < 2.3 * once


@pytest.mark.parametrize("name", LONG_DOCUMENTS)
def test_a_long_document_is_read_in_seconds(name):
    content = LONG_DOCUMENTS[name]()
    start = time.process_time()
    assert any(chunks(name, content))
    assert time.process_time() - start < 15
