"""JSON read piece by piece: the values of the json module, and errors with their line."""

import io
import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.storage import json_stream
from ifqa.storage.json_stream import JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False) | st.text("ab\"\\{[]}:,é\n😀"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab"{', max_size=3), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def stream(text, **options):
    return JsonStream(Path("x.json"), io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def walk(cursor, expected):
    """The document read member by member at every depth, with the structure of `expected`."""
    if isinstance(expected, dict):
        return {key: walk(cursor, expected[key]) for key in cursor.members()}
    if isinstance(expected, list):
        return [walk(cursor, expected[place]) for place, _ in enumerate(cursor.elements())]
    return cursor.value()


@given(VALUES, st.sampled_from([None, 1]), st.integers(1, 40))
def test_a_document_in_small_pieces_is_what_json_loads_gives(expected, indent, piece):
    text = json.dumps(expected, indent=indent, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK", piece)
        assert stream(text).value() == walk(stream(text), expected) == expected


@given(st.text('{}[]":,0a \n', max_size=12))
def test_any_text_is_read_as_json_reads_it_or_refused(text):
    try:
        expected = json.loads(text)
    except ValueError:
        with suppress(IfqaError):  # text after the value is not read
            stream(text).value()
    else:
        assert walk(stream(text), expected) == expected


def test_the_line_is_that_of_the_value():
    cursor = stream('{\n"a": [1,\n2,\n\n3],\n"b": [x]}')
    lines = []
    with pytest.raises(IfqaError, match=r"^x.json:6: not JSON \(Expecting value\)"):
        for _ in cursor.members():
            for _ in cursor.elements():
                cursor.value()
                lines.append(cursor.line)
    assert lines == [2, 3, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.json:1: the JSON ends too early"),
        ("[1 2]", "wanted ',', found '2'"),
        ('{"a" 1}', "wanted ':', found '1'"),
        ("{1: 2}", "wanted '\"', found '1'"),
        ("[" * 200_000, "not readable as JSON"),
        (b'["\xff"]', "x.json:1: not UTF-8"),
    ],
)
def test_an_error_names_the_line(text, message):
    cursor = stream(text)
    with pytest.raises(IfqaError, match=re.escape(message)):
        for _ in cursor.members() if b"{" in cursor._handle.getvalue()[:1] else cursor.elements():
            cursor.value()


def test_a_value_that_would_fill_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(json_stream, "_CHUNK", 64)
    assert stream('["' + "a" * 900 + '"]', longest=1000).value() == ["a" * 900]
    with pytest.raises(IfqaError, match="or a value of more than 1,000 characters"):
        stream('["' + "a" * 5000 + '"]', longest=1000).value()
