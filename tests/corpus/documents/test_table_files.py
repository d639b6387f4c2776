"""Tables in text files: separated values and JSON."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs

from ifqa.corpus.documents.decoding import UnreadableFile


def texts(suffix, text):
    return [text for _, _, text in runs(suffix, text)]


def test_the_separator_is_found():
    assert texts(".csv", 'name;note\n"one\ntwo";so, so\nthree, four, five;6\n') == [
        "name: one two; note: so, so.",
        "name: three, four, five; note: 6.",
    ]


def test_a_row_has_the_line_on_which_it_begins():
    assert [place for place, _, _ in runs(".csv", 'a,b\n"one\ntwo",1\nthree,2\n')] == [2, 4]


def test_a_cell_beyond_the_last_name_is_named_by_its_place():
    assert texts(".csv", "a,b\n1,2,3,4\n5,6,7,8\n")[0] == "a: 1; b: 2; column 3: 3; column 4: 4."


def test_a_space_may_be_before_a_quoted_cell():
    text = '"item", "price", "note"\n"Lamp", 2.99, "oil, or gas"\n"Nail", 1.49, "iron\nor steel"\n'
    assert texts(".csv", text) == [
        "item: Lamp; price: 2.99; note: oil, or gas.",
        "item: Nail; price: 1.49; note: iron or steel.",
    ]


def test_a_mark_after_a_space_that_has_no_end_is_text():
    text = 'item, size\nnail, "5\nlamp, 7\nwheel, 30\nbeam, 90\n'
    assert texts(".csv", text) == [
        'item: nail; size: "5.',
        "item: lamp; size: 7.",
        "item: wheel; size: 30.",
        "item: beam; size: 90.",
    ]


def test_a_mark_without_an_end_joins_no_rows():
    text = 'item,note\nthe 5" nail,1\n"y"z,2\n"open,3\nlast,4\n'
    assert texts(".csv", text) == [
        'item: the 5" nail; note: 1.',
        "item: yz; note: 2.",
        'item: "open; note: 3.',
        "item: last; note: 4.",
    ]


def test_a_mark_at_the_start_of_a_cell_of_a_tsv_joins_no_rows():
    text = 'time\tuser\ttext\n1\tann\t"hello\n2\tbob\tbye\n3\tcid\tsee "you"\n4\tdan\tends"\n'
    assert texts(".tsv", text) == [
        'time: 1; user: ann; text: "hello.',
        "time: 2; user: bob; text: bye.",
        'time: 3; user: cid; text: see "you".',
        'time: 4; user: dan; text: ends".',
    ]


def test_a_quoted_cell_of_a_tsv_may_have_several_lines():
    text = 'name\tnote\tage\nAnn\t"one\n\n ""two"""\t31\r\nBob\tthree\t32\r\n'
    assert texts(".tsv", text)[0] == 'name: Ann; note: one "two"; age: 31.'


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Lamp;1,50;2,30\nChair;2,50;4,10\nDesk;3,50;9,99\n", "Lamp; 1,50; 2,30."),
        ("1,5;2,5\n3,5;4,5\n", "1,5; 2,5."),
        (
            "Datum;Betrag, EUR;Saldo, EUR\n01.02.;1,50;2,30\n02.02.;2,50;4,10\n",
            "Datum: 01.02.; Betrag, EUR: 1,50; Saldo, EUR: 2,30.",
        ),
        (
            "Name, full;Town, state;N\nLee, Ann;Oslo, NO;1\nRay, Bob;Rome, IT;2\n",
            "Name, full: Lee, Ann; Town, state: Oslo, NO; N: 1.",
        ),
        ("a\tb\tc\nx\t1,5\t2,5\ny\t3,5\t4,5\n", "a: x; b: 1,5; c: 2,5."),
    ],
)
def test_commas_of_numbers_part_no_cells(text, first):
    assert texts(".csv", text)[0] == first


def test_commas_between_numbers_part_cells_if_nothing_else_does():
    assert texts(".csv", "1,2,3\n4,5,6\n") == ["1; 2; 3.", "4; 5; 6."]


CELLS = st.lists(st.text('ab"1 \n;', max_size=6), min_size=3, max_size=3)


@given(st.lists(CELLS, min_size=1, max_size=8), st.sampled_from([".csv", ".tsv"]))
def test_a_table_that_was_written_with_quotes_loses_no_cell(rows, suffix):
    content = io.StringIO()
    separator = "," if suffix == ".csv" else "\t"
    csv.writer(content, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(rows)
    shown = " ".join(texts(suffix, content.getvalue()))
    for row in rows:
        assert all(" ".join(cell.split()).rstrip(".") in shown for cell in row if cell.strip())


def test_tabs_part_the_cells_of_a_tsv():
    assert texts(".tsv", "name\ttown\nAnn, B.\tOslo\n") == ["name: Ann, B.; town: Oslo."]


def test_objects_are_rows():
    text = '[\n{"title": "Elm",\n "year": 1901},\n{"title": "Oak", "year": null}]'
    assert runs(".json", text) == [(2, 1, "Elm"), (2, 0, "year: 1901."), (4, 1, "Oak")]


def test_an_object_of_one_value_has_its_key():
    assert runs(".jsonl", '{"capital": "Oslo"}\n') == [(1, 0, "capital: Oslo.")]


def test_json_lines_are_rows():
    assert runs(".jsonl", '{"a": "x", "b": ["y", 2]}\n') == [(1, 0, "a: x; b: y, 2.")]


def test_other_json_is_keys_with_their_values():
    text = (
        '{"server": {"port":\n 80, "on": true, "no": null}, "names": ["a",\n"b: '
        '\\"c\\" {"], "deep": [{"x": "y."}]}'
    )
    assert runs(".json", text) == [
        (2, 0, "server › port: 80."),
        (2, 0, "server › on: true."),
        (2, 0, "names: a."),
        (3, 0, 'names: b: "c" {.'),
        (3, 0, "deep › x: y."),
    ]


def test_a_value_alone_is_a_sentence():
    assert runs(".json", '"alone"') == [(1, 0, "alone.")]


@pytest.mark.parametrize(
    ("suffix", "text"), [(".json", '[{"a": 1}]'), (".jsonl", '{"a": 1}'), (".csv", "a,b\n1,2\n")]
)
def test_a_missing_column_is_named(suffix, text):
    with pytest.raises(UnreadableFile, match="no column 'c'; found 'a'"):
        runs(suffix, text, ("c",))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [("[" * 100_000, "nested too deeply$"), ("{", "not JSON"), ("[1 2]", "not JSON")],
)
def test_broken_json_is_refused(broken, reason):
    with pytest.raises(UnreadableFile, match=reason):
        runs(".json", broken)
