"""Pictures of the pages of a PDF, with a sentence marked."""

import struct
import zlib
from itertools import pairwise

import pytest
from mixed_documents import pdf

from ifqa.corpus.documents import page_picture
from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.page_picture import PagePart, draw_page, draw_request, page_parts
from ifqa.records import Passage

PAGES = [["The mill is old.", "The sluice is closed by Tom"], ["Ferris in the evening. The end."]]
SENTENCE = "The sluice is closed by Tom Ferris in the evening."
PASSAGE = Passage("a.pdf#0:page=1,2@45", "a.pdf", f"The mill is old. {SENTENCE} The end.")


def pixels(picture):
    """The rows of RGB pixels of a PNG without filters."""
    width, height = struct.unpack(">II", picture[16:24])
    at = picture.index(b"IDAT")
    (size,) = struct.unpack(">I", picture[at - 4 : at])
    rows = zlib.decompress(picture[at + 4 : at + 4 + size])
    stride = 3 * width + 1
    return [rows[row * stride + 1 : (row + 1) * stride] for row in range(height)]


def marked_rows(picture):
    """The spans of rows, from and to, that have marked pixels."""
    yellow = [b"\xff\xef\x6b" in row for row in pixels(picture)]
    changes = [row for row, pair in enumerate(pairwise(yellow), 1) if pair[0] != pair[1]]
    return list(zip(changes[::2], changes[1::2], strict=True))


def drawn(content, page, text, before=""):
    """A page that is drawn in this process."""
    _, picture = draw_request({"page": page, "text": text, "before": before}, content)
    return picture


def test_a_sentence_over_two_pages_has_a_part_on_each():
    start = PASSAGE.text.index(SENTENCE)
    assert list(page_parts(PASSAGE, start, start + len(SENTENCE))) == [
        PagePart(1, "The mill is old. ", "The sluice is closed by Tom "),
        PagePart(2, "", "Ferris in the evening."),
    ]


@pytest.mark.parametrize(("start", "end"), [(0, 0), (9, 3), (10_000, 20_000)])
def test_a_span_outside_the_passage_has_no_part(start, end):
    assert list(page_parts(PASSAGE, start, end)) == []


def test_a_passage_without_pages_has_no_part():
    assert list(page_parts(Passage("a.md#0:line=1", "a.md", "The mill."), 0, 9)) == []
    assert list(page_parts(Passage("17", "Mill", "The mill."), 0, 9)) == []


def test_the_sentence_alone_is_marked():
    picture = draw_page(pdf(PAGES), PagePart(1, "The mill is old. ", "The sluice is closed by Tom"))
    [(top, bottom)] = marked_rows(picture)
    assert 10 < bottom - top < 40


def test_a_sentence_over_two_lines_is_marked_on_both():
    picture = drawn(pdf([["The sluice is closed", "by Tom Ferris."]]), 1, "closed by Tom Ferris.")
    assert len(marked_rows(picture)) in (1, 2)  # the marks of two lines may touch


def test_a_word_that_was_split_over_two_lines_is_found():
    picture = drawn(pdf([["It is closed in the eve-", "ning by Tom."]]), 1, "the evening by Tom.")
    assert marked_rows(picture)


def test_the_words_after_others_are_marked_where_they_stand_twice():
    content = pdf([["Rye is ground.", "Oats are dried.", "x", "Then rye is ground."]])
    [(first, _)] = marked_rows(drawn(content, 1, "rye is ground."))
    [(second, _)] = marked_rows(drawn(content, 1, "rye is ground.", "Oats are dried. x Then "))
    assert first < second


def test_the_parts_of_a_sentence_around_another_line_are_marked():
    content = pdf([["The sluice is closed by Tom", "A running head", "Ferris in the evening."]])
    assert len(marked_rows(drawn(content, 1, SENTENCE))) == 2


def test_a_page_without_the_sentence_is_drawn_without_a_mark():
    assert marked_rows(drawn(pdf(PAGES), 1, "Oats are dried in the tower.")) == []


def test_a_picture_is_bounded_in_pixels_and_bytes(monkeypatch):
    content = pdf(PAGES)
    wide = content.replace(b"[0 0 612 842]", b"[0 0 9000 9000]")
    assert len(pixels(drawn(wide, 1, SENTENCE))) <= 1_000
    monkeypatch.setattr(page_picture, "_BYTES", 5_000)
    assert len(drawn(content, 1, SENTENCE)) <= 5_000


@pytest.mark.parametrize(
    ("content", "page", "reason"),
    [
        (b"no PDF", 1, "cannot be drawn"),
        (pdf(PAGES), 3, "it has no page 3"),
        (pdf(PAGES), 0, "it has no page 0"),
    ],
)
def test_what_cannot_be_drawn_is_said(content, page, reason):
    with pytest.raises(UnreadableFile, match=reason):
        draw_page(content, PagePart(page, "", SENTENCE))


def test_a_sentence_over_two_columns_is_marked_in_both():
    content = pdf([["Oats are dried.", "The sluice is", "closed by Tom.", "The end."]])
    content = content.replace(b"0 -16 Td (closed", b"270 9 Td (closed")  # to the right, and up
    rows = pixels(drawn(content, 1, "The sluice is closed by Tom."))
    halves = [(row[: len(row) // 2], row[len(row) // 2 :]) for row in rows]
    assert any(b"\xff\xef\x6b" in left for left, _ in halves)
    assert any(b"\xff\xef\x6b" in right for _, right in halves)
