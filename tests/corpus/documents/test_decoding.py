"""The encodings of documents: labels as browsers read them, UTF-16 without a mark, and damaged
texts.
"""

import zipfile
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs

from ifqa.corpus.documents.decoding import (
    UnreadableFile,
    decode_as,
    decode_labelled,
    decode_markup,
    decode_text,
    is_binary,
    xml_source,
)

LAKE = "水面は静かだ。"


@pytest.mark.parametrize(
    ("label", "content", "expected"),
    [
        ("iso-8859-1", b"\x93blue\x94 \x96 30 \x80", "“blue” – 30 €"),
        ("ISO_8859-1:1987", b"\x80", "€"),
        ("latin1", b"\x81", "\x81"),
        ("iso-8859-9", b"\x80 \xfe", "€ ş"),
        ("ks_c_5601-1987", "똠방각하".encode("cp949"), "똠방각하"),
        ("tis-620", b"\x80\xa1", "€ก"),
        ("big5", "嘅".encode("big5hkscs"), "嘅"),
        ("gb2312", "镕€".encode("gb18030"), "镕€"),
        ("shift_jis", "①㈱".encode("cp932"), "①㈱"),
        ("euc-jp", b"\xad\xa1\xbf\xe5", "①水"),
        ("iso-2022-jp", b"\x1b$B-!?e\x1b(B x", "①水 x"),
        ("iso-2022-kr", "물".encode("iso2022_kr"), "물"),
        ("cp850", b"\x84", "ä"),
    ],
)
def test_a_label_is_read_as_browsers_do(label, content, expected):
    assert decode_as(content, label) == expected


@pytest.mark.parametrize(
    "label", ["utf-7", "utf-16", "cp037", "idna", "punycode", "base64", "unicode_escape"]
)
def test_an_encoding_that_does_not_extend_ascii_is_refused(label):
    assert decode_as(b"lamp", label) == ""


@pytest.mark.parametrize(
    "declaration",
    [
        '<meta charset="iso-8859-1">',
        '<meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-1">',
        '<?xml version="1.0" encoding="latin1"?>',
        "<!-- <meta charset=koi8-r> --><script charset=koi8-r></script><meta charset=l1>",
    ],
)
def test_markup_declares_its_encoding(declaration):
    page = f"{declaration}<p>The price of the lamp is 30 €."
    assert decode_markup(page.encode("cp1252")) == page


def test_a_byte_order_mark_is_stronger_than_a_declaration():
    page = "<meta charset=koi8-r><p>naïve"
    assert decode_markup(page.encode("utf-8-sig")) == page


def test_a_page_of_escapes_is_read_in_its_declared_encoding():
    page = f"<meta charset=iso-2022-jp><p>{LAKE}"
    assert decode_markup(page.encode("iso2022_jp")) == page


def test_the_pages_of_a_book_declare_their_encoding():
    book = BytesIO()
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("META-INF/container.xml", '<c><rootfile full-path="b.opf"/></c>')
        archive.writestr(
            "b.opf",
            '<?xml version="1.0" encoding="shift_jis"?><p><item id="水" href="a.html" '
            'media-type="text/html"/><itemref idref="水"/></p>'.encode("cp932"),
        )
        archive.writestr("a.html", "<meta charset=latin1><p>30 €".encode("cp1252"))
    assert runs(".epub", book.getvalue()) == [(1, 0, "30 €")]


def test_xml_that_the_parser_can_decode_is_left_to_it():
    content = b'<?xml version="1.0" encoding="UTF-8"?><a/>'
    assert xml_source(content) is content


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["The lamp.\r\nIt burns – 30 €.", f"{LAKE}\n" * 3, "一一 一\n二 x"]
)
def test_utf_16_needs_no_mark(order, text):
    assert decode_text(text.encode(order)) == text


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_a_text_in_utf_16_is_not_binary(order):
    assert not is_binary("The lamp.\n".encode(order))


def test_null_bytes_elsewhere_are_refused():
    with pytest.raises(UnreadableFile, match="it contains null bytes"):
        decode_text(b"a\0bc\0\x01\0\0\x02\0")


@pytest.mark.parametrize(
    ("label", "content", "expected"),
    [
        ("utf-16be", LAKE.encode("utf-16-be"), LAKE),
        ("utf-16", LAKE.encode("utf-16"), LAKE),
        ("utf-16", LAKE.encode("utf-16-le"), LAKE),
        ("utf-16", b"plain", "plain"),
        ("gb2312", "联通".encode("gb2312"), "联通"),
        ("iso-8859-1", "Grüße".encode(), "Grüße"),
        (
            "us-ascii",
            "The price is 30 € for each lamp.".encode("cp1252"),
            "The price is 30 € for each lamp.",
        ),
    ],
)
def test_a_label_outside_of_the_text_is_read(label, content, expected):
    assert decode_labelled(content, label) == expected


def test_a_damaged_character_changes_no_others():
    text = f"{LAKE}\n" * 20
    damaged = text.encode("cp932") + b"\x81"
    assert decode_text(damaged, "shift_jis") == f"{text}\ufffd"


@given(
    content=st.binary(max_size=60),
    label=st.sampled_from(["euc-jp", "iso-2022-jp", "gbk", "windows-1252"]),
)
def test_any_bytes_are_decoded_or_refused(content, label):
    assert isinstance(decode_as(content, label), str)
