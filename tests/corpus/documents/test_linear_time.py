"""Reading a document takes linear time: the number of executed lines of Python is proportional to
its bytes.

This does not count work within a line (a pattern, a copy). In LONG_DOCUMENTS, quadratic time would
exceed a minute.
"""

import sys
import time

import pytest
from mixed_documents import pdf
from old_office import compound, message, word

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import Unread
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
    "paragraphs.rtf": lambda n: (
        "{\\rtf1" + "{\\pard\\b Lamp {\\v x}\\'e9\\u8211?\\par}" * (n // 10) + "}"
    ),
    "rows.rtf": lambda n: (
        "{\\rtf1" + "\\trowd\\cellx9\\cellx99\\intbl a\\cell b\\cell\\row" * (n // 10) + "}"
    ),
    "notes.rtf": lambda n: "{\\rtf1 a" + "{\\footnote b\\par}" * (n // 10) + "}",
    "pages.mht": lambda n: "MIME-Version: 1.0\nContent-Type: text/html\n\n" + "<p>Lamp" * n,
}
LONG_DOCUMENTS = {
    "bars.rst": lambda: "|" * 400_000 + "x",
    "stray quotes.csv": lambda: '"a"b\n' * 150_000,
    "short rows.csv": lambda: "c," * 150_000 + "\n" + "a\n" * 150_000,
    "glued.html": lambda: "a<b>" * 1_000_000,
    "heading of many lines.html": lambda: "<h1>" + "a\n" * 1_000_000,
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
    return chunk_document(name, (part for part in parts if not isinstance(part, Unread)), unit)


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
