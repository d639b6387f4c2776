"""Tables in text files: separated values and JSON."""

import pytest
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


def test_quotes_without_an_end_lose_no_text():
    text = 'item,note\nthe 5" nail,x\n"y"z,2\n"open,3\nlast,4\n'
    assert texts(".csv", text) == [
        'item: the 5" nail; note: x.',
        "item: yz; note: 2.",
        "open,3 last,4.",
    ]


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
