"""Plain text, Markdown, reStructuredText and notebooks: tables, lists and marks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import Unread
from ifqa.corpus.documents.numerals import read_number, write_number
from ifqa.corpus.documents.readers import READERS


def sentences(suffix, content):
    """The lines of the passages of a document."""
    unit, reader = READERS[suffix]
    parts = reader(content.encode(), ())
    texts = (part for part in parts if not isinstance(part, Unread))
    passages = chunk_document(f"a{suffix}", texts, unit, 10_000)
    return [line for passage in passages for line in passage.text.split("\n")]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("* Ann Boll\n* Bo Carr (chair)\n* Cy Dent", ["Ann Boll.", "Bo Carr (chair).", "Cy Dent."]),
        ("1. One\n2. Two\n3. Three", ["1. One.", "2. Two.", "3. Three."]),
        ("1. One\n1. Two\n1. Three", ["1. One.", "2. Two.", "3. Three."]),
        ("3) One\n5) Two", ["3. One.", "5. Two."]),
        ("0. Zero\n1. One", ["0. Zero.", "1. One."]),
        ("- a\n  - b\n  - c\n- d", ["a.", "b.", "c.", "d."]),
        ("1. One\n\n   More of it.\n2. Two", ["1. One.", "More of it.", "2. Two."]),
        ("- [x] Done\n- [ ] Open", ["[x] Done.", "[ ] Open."]),
        ("Intro:\n\n- a\n\nEnd.", ["Intro:", "a.", "End."]),
        ("2\\. Not a list", ["2. Not a list"]),
        (
            "| Item | Old | New |\n|---|---|---|\n| Lamp | | 30 |\n| Chair | 99 | |",
            ["Item: Lamp; New: 30.", "Item: Chair; Old: 99."],
        ),
        ("| a | b |\n|---|---|\n| `x \\| y` | 2 |", ["a: x | y; b: 2."]),
        ("| Members |\n|---|\n| Ann |\n| Bob |", ["Members: Ann.", "Members: Bob."]),
        ("| | |\n|---|---|\n| Chair | Nora |\n| Deputy | Tom |", ["Chair: Nora.", "Deputy: Tom."]),
        (
            "| a | b |\n|---|---|\n| ~~Tom~~ Nora | <del>1</del>2 |",
            ["a: Nora; b: 2."],
        ),
        (
            "<table>\n<tr><th>a</th><th>b</th></tr>\n\n<tr><td>1</td><td>2</td></tr>\n\n</table>",
            ["a: 1; b: 2."],
        ),
        ("The chair is ~~Tom~~ Nora.", ["The chair is Nora."]),
        ("The mill[^2] turns.\n\n[^2]: Smith", ["The mill [2] turns. [2]: Smith"]),
        ("A.[^a]\n\n[^a]: Of oak.\n[^b]: Of elm.", ["A. [a] [a]: Of oak. [b]: Of elm."]),
        ("```\nx[^1]\n[^1]: y\n```", ["x[^1] [^1]: y"]),
        ("6 × 10<sup>24</sup> kg, H<sub>2</sub>O", ["6 × 10^24 kg, H2O"]),
        ("6 × 10^24^ kg, H~2~O", ["6 × 10^24 kg, H2O"]),
        ("2^10 is 1024, ~5 and ~6", ["2^10 is 1024, ~5 and ~6"]),
        ("so $x^2$ and $$a_1 ^ b$$", ["so $x^2$ and $$a_1 ^ b$$"]),
        ("<details>\n<summary>Who?</summary>\n\nNora.\n\n</details>", ["Who? Nora."]),
        ("<div style='display:none'>\n\nTom\n\n</div>\n\nNora", ["Nora"]),
        ("<del>\n\nTom\n\nNora", ["Tom Nora"]),  # without an end
        ("<s>Tom Nora", ["Tom Nora"]),
        ("Use <kbd>Ctrl</kbd>+<kbd>C</kbd>", ["Use Ctrl+C"]),
    ],
)
def test_markdown_is_read_with_its_lists_tables_and_marks(content, shown):
    assert sentences(".md", content) == shown


def test_a_heading_between_items_ends_a_list():
    assert runs(".md", "1. a\n\n# B\n\n1. c") == [(1, 0, "1. a"), (3, 1, "B"), (5, 0, "1. c")]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (
            "+------+-----+-----+\n| Item | Old | New |\n+======+=====+=====+\n| Lamp |     | 30  |\n"
            "+------+-----+-----+\n| Arm- | 99  |     |\n| chair|     |     |\n+------+-----+-----+",
            ["Item: Lamp; New: 30.", "Item: Arm- chair; Old: 99."],
        ),
        (
            "+-------+------+---+\n| State | City | n |\n+=======+======+===+\n| Alaska| Nome | 3 |\n"
            "+       +------+---+\n|       | Juneau   |\n+-------+----------+",
            ["State: Alaska; City: Nome; n: 3.", "State: Alaska; City: Juneau; n: Juneau."],
        ),
        (
            "=====  =====  ===\nItem   Old    New\n=====  =====  ===\nLamp          30\nChair  99\n"
            "       or 98\n=====  =====  ===\n\nEnd.",
            ["Item: Lamp; New: 30.", "Item: Chair; Old: 99 or 98.", "End."],
        ),
        (
            "===  ===  ====\n  Inputs  Out\n--------  ----\nA    B    A*B\n===  ===  ====\n1    2    2\n"
            "3    4    12\n===  ===  ====",
            ["Inputs A: 1; Inputs B: 2; Out A*B: 2.", "Inputs A: 3; Inputs B: 4; Out A*B: 12."],
        ),
        (
            ".. list-table:: Prices\n   :header-rows: 1\n   :widths: 1 2\n\n   * - Item\n     - Cost\n"
            "   * - Lamp\n     - 30\n       or 40\n   * -\n     - 50\n\nEnd.",
            ["Prices", "Item: Lamp; Cost: 30 or 40.", "Cost: 50.", "End."],
        ),
        (
            '.. csv-table:: Prices\n   :header: "Item", "Cost"\n\n   "Lamp, old", 30\n   Chair,\n\nEnd.',
            ["Prices", "Item: Lamp, old; Cost: 30.", "Item: Chair.", "End."],
        ),
        (
            ".. table:: Prices\n\n   ====  ====\n   Item  Cost\n   ====  ====\n   Lamp  30\n   ====  ====\n",
            ["Prices", "Item: Lamp; Cost: 30."],
        ),
        (
            "====  =====\nItem  Mass\n====  =====\nA     10\\ :sup:`24`\nB     [1]_\n====  =====",
            ["Item: A; Mass: 10^24.", "Item: B; Mass: [1]."],
        ),
        ("* Ann\n* Bo\n  Carr\n\n- Cy", ["Ann.", "Bo Carr.", "Cy."]),
        ("#. One\n#. Two\n\n3. Three\n#. Four", ["1. One.", "2. Two.", "3. Three.", "4. Four."]),
        ("(a) One\n(b) Two\n\nI. Three\n#. Four", ["(a) One.", "(b) Two.", "I. Three.", "II. Four."]),
        ("chair\n   Nora Pike\n   of Leeds\ndeputy\n   Tom", ["chair: Nora Pike of Leeds.", "deputy: Tom."]),
        (":Author: Nora Pike\n:Version: 2", ["Author: Nora Pike.", "Version: 2."]),
        ("H\\ :sub:`2`\\ O is 10\\ :sup:`24`", ["H2O is 10^24"]),
        ("The mill [#f]_ turns.\n\n.. [#f] Since 1901.", ["The mill [#f] turns. [#f] Since 1901."]),
        (".. a comment\n   of two lines\n\nText.", ["Text."]),
        ("..\n   comment\n\nText.", ["Text."]),
        ("Code::\n\n   * x = *y*\n\nEnd.", ["Code: * x = *y* End."]),
        (".. raw:: html\n\n   <p>a <b>b</b></p>\n\n.. raw:: latex\n\n   \\x\n\nEnd.", ["a b End."]),
    ],
)  # fmt: skip
def test_rst_is_read_with_its_lists_tables_and_marks(content, shown):
    assert sentences(".rst", content) == shown


def test_the_place_of_a_row_of_rst_is_its_line():
    table = "Above.\n\n====  ====\nItem  Cost\n====  ====\nLamp  30\nBed   40\n====  ===="
    assert [place for place, _, _ in runs(".rst", table)] == [1, 6, 7]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("Present:\n- Ann Boll\n- Bo Carr\n\nEnd.", ["Present:", "- Ann Boll.", "- Bo Carr.", "End."]),
        ("1. One\n2. Two\n   more\n3. Three", ["1. One.", "2. Two more.", "3. Three."]),
        ("It is in chapter\n12. The next is in 13.", ["It is in chapter 12. The next is in 13."]),
        ("a) One\nb) Two", ["a) One.", "b) Two."]),
        ("ill. Nora\nwas", ["ill. Nora was"]),
    ],
)  # fmt: skip
def test_items_of_plain_text_are_apart(content, shown):
    assert sentences(".txt", content) == shown


def test_markdown_of_a_notebook_has_lists():
    cell = {"cell_type": "markdown", "source": ["1. One\n", "2. Two"]}
    assert sentences(".ipynb", json.dumps({"cells": [cell]})) == ["1. One.", "2. Two."]


@given(st.integers(1, 3999), st.sampled_from("1iI"))
def test_a_number_that_is_written_is_read_again(number, style):
    text = write_number(number, style)
    read = read_number(text)
    assert read in ((style, number), ("aA"[style == "I"], read[1]))


@given(st.text('|+-=*: .ab1\n\t"`[]_\\', max_size=200), st.sampled_from([".md", ".rst", ".txt"]))
def test_any_text_is_read(content, suffix):
    assert all(place > 0 for place, _, _ in runs(suffix, content))
