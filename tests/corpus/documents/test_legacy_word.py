"""Documents of Word 97 to 2003: text, fields, tables, lists, notes, and other files called .doc."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import docx, runs, text_runs
from old_office import (
    BOX_TEXTS,
    FONTS,
    LIST_USES,
    LISTS,
    NOTE_TEXTS,
    NOTES,
    SHAPES,
    STYLES,
    compound,
    properties,
    word,
)

from ifqa.corpus.documents.decoding import Unread, UnreadableFile
from ifqa.corpus.documents.readers import READERS

PLAIN = b"\0\0"  # the number of a paragraph's style
IN_TABLE = PLAIN + properties((0x2416, b"\1"))


def texts(content):
    return [text for _, _, text in runs(".doc", content)]


def marked(text, start, end, *pairs):
    return texts(word(text, [(start, end, properties(*pairs))]))


def row_end(*edges, flags=()):
    """The properties of the end of a row with the edges of its cells."""
    cells = b"".join(struct.pack("<H18x", flag) for flag in flags)
    table = bytes([len(edges) - 1]) + struct.pack(f"<{len(edges)}h", *edges) + cells
    size = struct.pack("<H", len(table) + 1)
    return IN_TABLE + properties((0x2417, b"\1"), (0xD608, size + table))


def test_paragraphs_are_counted_with_empty_ones():
    assert runs(".doc", word("One\r\rThree\r")) == [(1, 0, "One"), (3, 0, "Three")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Page \x13 PAGE \x14 12\x15 of it\r", "Page 12 of it"),
        ("A\x13 TOC \x13 x \x15 y\x14z\x15\r", "Az"),
        ("A\x13 never ended\r", "A never ended"),
        ("Co\x1fop\x1eer\x0bate\x01\r", "Coop-er ate"),
        ("Łódź 😀 ok\r", "Łódź 😀 ok"),
    ],
)
def test_special_characters_are_resolved(text, shown):
    assert texts(word(text)) == [shown]


@pytest.mark.parametrize("number", [0x083C, 0x0800, 0x0837, 0x2A53])
def test_hidden_text_is_left_out(number):
    assert marked("not this but that\r", 0, 9, (number, b"\1")) == ["but that"]


def test_text_that_is_the_opposite_of_its_hidden_style_is_read():
    styles = struct.pack("<HHH", 4, 1, 10) + style(0xFFE, 0xFFF, characters=[(0x083C, b"\1")])
    shown = properties((0x083C, b"\x81"))
    content = word("not this but that\r", [(9, 18, shown)], tables={STYLES: styles})
    assert texts(content) == ["but that"]


def test_hidden_pieces_are_told():
    content = word("not this but that\r", [(0, 9, properties((0x0800, b"\1")))])
    assert list(READERS[".doc"][1](content, ()))[-1] == Unread("hidden or deleted piece", 1)


def test_a_superscript_is_an_exponent():
    assert marked("6 x 1024 kg\r", 6, 8, (0x2A48, b"\1")) == ["6 x 10^24 kg"]


def test_a_sign_of_the_font_symbol_is_its_character():
    font = struct.pack("<HH", 1, 0) + bytes([53]) + b"\0" * 39 + "Symbol\0".encode("utf-16-le")
    sign = (0x6A09, struct.pack("<HH", 0, 0xF06D))
    content = word("5(m\r", [(1, 2, properties(sign))], tables={FONTS: font})
    assert texts(content) == ["5μm"]


def test_a_heading_has_the_level_of_its_paragraph():
    content = word("A\rB\r", paragraphs={0: PLAIN + properties((0x2640, b"\1"))})
    assert runs(".doc", content) == [(1, 2, "A"), (2, 0, "B")]


def style(built_in, base, *pairs, characters=()):
    body = struct.pack("<HHHHH", built_in, 1 | base << 4, 1, 0, 0) + struct.pack("<HH", 0, 0)
    formats = PLAIN + properties(*pairs)
    for part in (formats, properties(*characters)):
        body += struct.pack("<H", len(part)) + part + b"\0" * (len(part) % 2)
    return struct.pack("<H", len(body)) + body


def test_a_heading_has_the_level_of_its_style():
    styles = struct.pack("<HHH", 4, 3, 10)
    styles += style(2, 0xFFF) + style(0xFFE, 0) + style(0xFFE, 0xFFF, (0x2640, b"\4"))
    numbers = {n: struct.pack("<H", n) for n in range(3)}
    content = word("A\rB\rC\r", paragraphs=numbers, tables={STYLES: styles})
    assert [level for _, level, _ in runs(".doc", content)] == [2, 2, 5]


def test_a_row_has_the_names_of_its_columns():
    end = row_end(0, 1000, 2000)
    cells = [IN_TABLE, IN_TABLE, end] * 3
    content = word(
        "Item\x07Price\x07\x07Lamp\x0730\x07\x07Chair\x07\x07\x07After\r",
        paragraphs=dict(enumerate(cells)),
    )
    assert runs(".doc", content) == [
        (2, 0, "Item: Lamp; Price: 30."),
        (3, 0, "Item: Chair."),
        (4, 0, "After"),
    ]


def test_a_cell_as_wide_as_two_counts_for_both_columns():
    formats = [
        *[IN_TABLE] * 3,
        row_end(0, 1000, 2000, 3000),
        *[IN_TABLE] * 2,
        row_end(0, 1000, 3000),
    ]
    content = word(
        "Item\x07Old\x07New\x07\x07Lamp\x0730\x07\x07", paragraphs=dict(enumerate(formats))
    )
    assert texts(content) == ["Item: Lamp; Old: 30; New: 30."]


def test_a_cell_merged_with_the_one_above_counts_for_its_row():
    two = [IN_TABLE, IN_TABLE]
    formats = [
        *[*two, row_end(0, 1000, 2000)],
        *[*two, row_end(0, 1000, 2000, flags=(0x60, 0))],
        *[*two, row_end(0, 1000, 2000, flags=(0x20, 0))],
    ]
    content = word(
        "Mill\x07Year\x07\x07Aldbrook\x071901\x07\x07\x071950\x07\x07",
        paragraphs=dict(enumerate(formats)),
    )
    assert texts(content) == ["Mill: Aldbrook; Year: 1901.", "Mill: Aldbrook; Year: 1950."]


def level(kind, template, start=1):
    text = struct.pack("<H", len(template)) + template.encode("utf-16-le")
    return struct.pack("<iBB22x", start, kind, 0) + text


def listed(*levels):
    """The tables of one list, of whose levels the others are bullets."""
    whole = [*levels, *[level(23, "•")] * (9 - len(levels))]
    lists = struct.pack("<HiI18xBB", 1, 7, 0, 0, 0) + b"".join(whole)
    return {LIST_USES: struct.pack("<IiQBBHI", 1, 7, 0, 0, 0, 0, 0), LISTS: lists}


def item(depth):
    return PLAIN + properties((0x460B, b"\1\0"), (0x260A, bytes([depth])))


def test_numbers_of_items_are_counted():
    content = word(
        "A\rB\rC\rD\rE\r",
        paragraphs=dict(enumerate([item(0), item(1), item(1), item(0), item(2)])),
        tables=listed(level(0, "\0."), level(2, "\0.\1")),
    )
    assert texts(content) == ["1. A", "1.i B", "1.ii C", "2. D", "E"]


def test_a_deleted_item_is_not_counted():
    content = word(
        "A\rB\rC\r",
        [(2, 4, properties((0x0800, b"\1")))],
        dict.fromkeys(range(3), item(0)),
        listed(level(0, "\0.")),
    )
    assert texts(content) == ["1. A", "2. C"]


def test_items_are_told_apart_from_paragraphs():
    content = word("A\rB\r", paragraphs={0: item(0)}, tables=listed(level(0, "\0)")))
    assert [run.item for run in text_runs(".doc", content)] == [True, False]


@pytest.mark.parametrize(
    ("kind", "written"), [(0, "2"), (1, "II"), (3, "B"), (22, "02"), (99, "2")]
)
def test_numbers_are_written_as_the_list_says(kind, written):
    content = word("A\rB\r", (), dict.fromkeys(range(2), item(0)), listed(level(kind, "\0)")))
    assert texts(content)[1] == f"{written}) B"


def test_a_footnote_follows_its_paragraph():
    tables = {
        NOTES: struct.pack("<IIH", 8, 99, 0),
        NOTE_TEXTS: struct.pack("<III", 0, 9, 10),
    }
    content = word("The mill\x02 stands.\rNext.\r", tables=tables, notes="\x02 A note\r\r")
    assert runs(".doc", content) == [
        (1, 0, "The mill stands."),
        (1, 0, "A note"),
        (2, 0, "Next."),
    ]


def test_a_password_is_told():
    with pytest.raises(UnreadableFile, match="it needs a password"):
        list(READERS[".doc"][1](word("x\r", flags=0x100), ()))


def test_an_older_version_is_told():
    with pytest.raises(UnreadableFile, match="before 97"):
        list(READERS[".doc"][1](word("x\r", version=0x65), ()))


def test_another_compound_file_is_unreadable():
    with pytest.raises(UnreadableFile, match="no stream WordDocument"):
        list(READERS[".doc"][1](compound({"Book": b"x"}), ()))


@pytest.mark.parametrize("suffix", [".doc", ".rtf", ".dot"])
@pytest.mark.parametrize(
    "content",
    [
        word("The mill.\r"),
        rb"{\rtf1 The mill.\par}",
        docx([("", "The mill.")]),
        b"<html><body><p>The mill.</p></body></html>",
        b"MIME-Version: 1.0\nContent-Type: text/html\n\n<p>The mill.</p>",
        b"The mill.",
    ],
    ids=["word", "rtf", "docx", "html", "mht", "text"],
)
def test_the_bytes_decide_about_the_format(suffix, content):
    assert runs(suffix, content) == [(1, 0, "The mill.")]


FILE = word(
    "Item\x07Price\x07\x07Lamp\x0730\x07\x07A\x13 B \x14C\x15\r",
    [(1, 3, properties((0x2A48, b"\1")))],
    dict(enumerate([IN_TABLE, IN_TABLE, row_end(0, 1000, 2000)] * 2)) | {6: item(0)},
    listed(level(0, "\0.")) | {SHAPES: b"\0" * 34, BOX_TEXTS: b"\0" * 30},
)


@given(
    changes=st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(0, 255)), max_size=20),
    length=st.integers(0, len(FILE)),
)
def test_a_damaged_document_is_read_or_unreadable(changes, length):
    content = bytearray(FILE)
    for place, byte in changes:
        content[place] = byte
    with suppress(UnreadableFile):
        assert all(place > 0 for place, _, _ in runs(".doc", bytes(content[:length])))
