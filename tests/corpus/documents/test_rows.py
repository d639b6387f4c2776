"""Rows as sentences, and long rows as several that begin with the row's name."""

from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import TextRun
from ifqa.corpus.documents.rows import row_pieces, row_text
from ifqa.corpus.sentences import sentence_span, split_sentences

LONG = [("Town", "Alta"), *((f"share {n}", f"{n} of a hundred") for n in range(12))]


def rows(*cells):
    return [TextRun(row_text(row), place, row=tuple(row)) for place, row in enumerate(cells, 1)]


def test_a_row_is_a_sentence():
    assert row_text([("Item", "Lamp"), ("", "red"), ("Price", "30")]) == (
        "Item: Lamp; red; Price: 30."
    )


def test_a_row_with_sentences_in_a_cell_is_one_sentence():
    text = row_text([("Rule", "Close it. Then wait."), ("Who", "Tom")])
    assert split_sentences(text) == [text]


def test_a_row_that_fits_is_whole():
    assert list(row_pieces(LONG, 100)) == [row_text(LONG)]


def test_each_piece_of_a_long_row_begins_with_its_name():
    pieces = list(row_pieces(LONG, 20))
    assert len(pieces) > 1
    assert all(piece.startswith("Town: Alta; ") for piece in pieces)


def test_a_row_is_named_by_its_first_text():
    pieces = list(row_pieces([("Rank", "1"), *LONG], 20))
    assert pieces[0].startswith("Rank: 1; Town: Alta; ")
    assert pieces[1].startswith("Town: Alta; ")


def test_a_long_cell_has_its_column_in_each_piece():
    pieces = list(row_pieces([("Rule", "Fire"), ("Text", "word " * 90)], 30))
    assert len(pieces) > 2
    assert all("Text: word" in piece for piece in pieces)


def test_a_name_without_spaces_is_shortened_too():
    pieces = list(row_pieces([("年", "川の歴史" * 30), ("出来事", "水門を閉めた。" * 60)], 100))
    assert len(pieces) > 2
    assert all(piece.startswith(f"年: {'川の歴史' * 6} …; 出来事: ") for piece in pieces[1:])


def test_no_passage_begins_within_a_row():
    cells = [
        [("Town", f"Town {n}"), *((f"column {m}", "some words here") for m in range(6))]
        for n in range(30)
    ]
    passages = list(chunk_document("t.csv", rows(*cells), "line"))
    assert len(passages) > 5
    assert all(passage.text.startswith("Town: Town ") for passage in passages)


def test_the_evidence_in_a_row_is_the_row():
    [passage] = chunk_document("t.csv", rows([("a", "x"), ("b", "1")], [("a", "y")]), "line")
    at = passage.text.index("1")
    start, end = sentence_span(passage.text, at, at + 1)
    assert passage.text[start:end] == "a: x; b: 1."


def test_text_after_a_table_is_apart():
    runs = [*rows([("a", "x")]), TextRun("after it", 2)]
    [passage] = chunk_document("t.md", runs, "line")
    assert split_sentences(passage.text) == ["a: x.\n", "after it"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "name", "a b"]), st.text("ab 1.", min_size=1).filter(str.split)
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(4, 40),
)
def test_every_word_of_a_row_is_in_a_piece(row, longest):
    said = " ".join(row_pieces(row, longest))
    assert all(word in said for _, value in row for word in value.split())


def test_each_piece_of_a_long_cell_begins_with_the_number_before_it():
    events = " ".join(f"w{n}" for n in range(150))
    pieces = list(row_pieces([("Year", "1990"), ("Events", events)], 100))
    assert [piece.partition(" w")[0] for piece in pieces] == ["Year: 1990; Events:"] * 2
