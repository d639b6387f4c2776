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
from old_office import compound, message, word

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import Unread
from ifqa.corpus.documents.readers import READERS

pytestmark = pytest.mark.slow

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
    "lines from.mbox": lambda n: "From a 10:00:00\nSubject: x\n" + "\nFrom a 10:00:00" * n,
    "lengths.mbox": lambda n: "From a 10:00:00\nFrom: x\nContent-Length: 9\n\nx\n\n" * (n // 10),
    "attached.eml": lambda n: (
        "Content-Type: multipart/mixed; boundary=b\n\n"
        + "--b\nContent-Type: text/plain; name=a.txt\n\nx\n" * (n // 10)
    ),
    "alternatives.eml": lambda n: (
        "Content-Type: multipart/alternative; boundary=b\n\n"
        + "--b\nContent-Type: text/html\n\n<p>x\n--b\n\nhtml\n" * (n // 10)
    ),
    "flowed.eml": lambda n: "Content-Type: text/plain; format=flowed\n\n" + "> x \n" * n,
    "events.ics": lambda n: "BEGIN:VCALENDAR\n" + "BEGIN:VEVENT\nSUMMARY:x\n y\n" * n,
    "nested.html": lambda n: "<div>" * n + "The lamp.",
    "rows.html": lambda n: "<table>" + "<tr><td rowspan=65534 colspan=9>a<td>b" * (n // 20),
    "tables.html": lambda n: "<table><tr><td>a" * (n // 4),
    "lists.html": lambda n: "<ol reversed><li>a" * (n // 4),
    "menus.html": lambda n: "<nav><p>a<div role=search><form>b" * (n // 4),
    "marks.html": lambda n: "<sup>a<math><mfrac>b</sub>" * (n // 4),
    "grid.rst": lambda n: "+--+--+\n|  a  |\n" * (n // 8),
    "rules.rst": lambda n: "== ==\na  b\n" * n,
    "items.txt": lambda n: "".join(f"{' ' * (row % 7)}{row % 99}. x\n" for row in range(n)),
    "groups.tex": lambda n: "{\\emph{a" * n,
    "formulas.tex": lambda n: "$a \\( b \\begin{equation}" * (n // 4),
    "cells.tex": lambda n: "\\begin{tabular}{l}" + "a & b \\\\\n" * (n // 4) + "\\end{tabular}",
    "cells.adoc": lambda n: "|===\n" + ".9999+|a\n|b\n" * (n // 10) + "|===\n",
    "items.org": lambda n: "- a :: *b\n| c |\n" * (n // 8),
    "keys.yaml": lambda n: "".join(f"k{row}: [a, {{b: c}}]\n" for row in range(n // 8)),
    "keys.toml": lambda n: "".join(f"k{row} = [1,\n 2]\n" for row in range(n // 4)),
    "keys.ini": lambda n: "[a]\nb = c\n  d\n" * n,
    "captions.srt": lambda n: "00:01,000 --> 00:02,000\n- <i>a\n\n" * n,
    "paragraphs.rtf": lambda n: (
        "{\\rtf1" + "{\\pard\\b Lamp {\\v x}\\'e9\\u8211?\\par}" * (n // 10) + "}"
    ),
    "rows.rtf": lambda n: (
        "{\\rtf1" + "\\trowd\\cellx9\\cellx99\\intbl a\\cell b\\cell\\row" * (n // 10) + "}"
    ),
    "notes.rtf": lambda n: "{\\rtf1 a" + "{\\footnote b\\par}" * (n // 10) + "}",
    "pages.mht": lambda n: "MIME-Version: 1.0\nContent-Type: text/html\n\n" + "<p>Lamp" * n,
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
    "glued.html": lambda: "a<b>" * 400_000,
    "heading of many lines.html": lambda: "<h1>" + "a\n" * 400_000,
    "quotes.html": lambda: "<a b='<a b=\"" * 100_000,
    "open values.html": lambda: '<a b="<a " ' * 100_000,
    "cells.html": lambda: "<table><tr>" + "<td colspan=1000000 rowspan=1000000>a" * 100_000,
    "rows of merged cells.html": lambda: (
        "<table><tr>" + "<td rowspan=65534>a" * 1000 + "<tr>" * 100_000
    ),
    "struck.html": lambda: "<s>a<del>b" * 100_000,
    "tables.html": lambda: "<table><tr><td>a" * 100_000,
    "dollars.tex": lambda: "$a\n\n" * 100_000 + "\\( " * 300_000,
    "brackets.yaml": lambda: "[" * 1_000_000,
    "keys.toml": lambda: "a" + ".a" * 500_000 + " = 1",
    "strings.toml": lambda: 'a = """' + '\\"""' * 300_000,
    "marks.org": lambda: " *a =b ~c" * 100_000,
    "marks.adoc": lambda: " *a _b #c" * 100_000,
    "marks.md": lambda: "<sup>^a~b[^c " * 5_000,
    "bars of a grid.rst": lambda: "+-" * 100_000 + "+\n" + "|a" * 100_000,
    "dashes.eml": lambda: "Subject: x\n\n" + "-" * 1_000_000 + "\n\nThe lamp.",
    "parameters.eml": lambda: (
        "Content-Type: multipart/mixed; boundary=b\n\n"
        + f'--b\nContent-Type: text/plain;"{";" * 1_900}\n\nx\n' * 500
    ),
    "quotes.ics": lambda: "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nA" + ';B="' * 500_000,
    "zone.ics": lambda: (
        f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nDTSTART;TZID={'a' * 1_000_000}:20260501T230000"
    ),
    "pieces.doc": lambda: word("\x13x\x14Lamp\x15\x07\r" * 10_000),
    "fields.doc": lambda: word("\x13" * 200_000 + "Lamp" + "\x15" * 200_000 + "The end.\r"),
    "parts.msg": lambda: compound(
        message(
            {"0037": "Lamp"},
            parts={
                f"__recip_version1.0_#{n:08x}": message({"3001": "Bo"}, header=8)
                for n in range(4_000)
            },
        )
    ),
    "groups.rtf": lambda: "{\\rtf1 a" + "{\\footnote " * 9_000 + "\\'e9" * 400_000,
    "lines.pdf": lambda: pdf(
        [["The sluice.", *["a" * 32_000] * 8, *["A word " + ". " * 15_000 + "z"] * 8]]
    ),
    "headings.pdf": lambda: pdf(
        [[f"line {n}" for n in range(2_000)]], [(f"heading {n}", 0, 1) for n in range(2_000)]
    ),
}


def chunks(name, content):
    unit, reader = READERS["." + name.rpartition(".")[2]]
    parts = reader(content if isinstance(content, bytes) else content.encode(), ())
    texts = (part for part in parts if not isinstance(part, Unread))
    return chunk_document(name, texts, unit)


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
