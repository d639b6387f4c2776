"""Workbooks: cells as their sheets show them, and what is not read.

Broken and hostile ones.
"""

import io
import re
import time
import zipfile
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_documents import archive, runs
from openpyxl import Workbook
from openpyxl.comments import Comment
from openpyxl.styles import Font

from ifqa.corpus.documents import archive as archives
from ifqa.corpus.documents.chunking import chunk_document, parse_locator
from ifqa.corpus.documents.decoding import Unread, UnreadableFile
from ifqa.corpus.documents.readers import READERS, read_request


def workbook(**sheets):
    book = Workbook()
    book.remove(book.active)
    for name, cells in sheets.items():
        sheet = book.create_sheet(name.replace("_", " "))
        for place, value in cells.items():
            sheet[place] = value
    book.save(content := io.BytesIO())
    return content.getvalue()


def workbook_of_costs():
    head = {"A1": "Costs 2026", "A3": "part", "B3": "price", "C3": "due"}
    return workbook(
        May_1=head | {"A4": "brake", "B4": 0.1 + 0.2, "C4": date(2026, 5, 3), "B5": "=B4*2"},
        Empty={},
    )


def test_a_workbook_is_read_sheet_by_sheet_as_values_below_their_headers():
    assert runs(".xlsx", workbook_of_costs()) == [
        (1, 1, "May 1"),
        (1, 0, "Costs 2026."),
        (4, 0, "part: brake; price: 0.3; due: 2026-05-03."),
    ]


def test_the_id_of_a_passage_of_a_workbook_locates_its_rows():
    read = READERS[".xlsx"][1](workbook_of_costs(), ())
    parts = [part for part in read if not isinstance(part, Unread)]
    *_, passage = chunk_document("a.xlsx", parts, "row")
    assert passage.id == "a.xlsx#0:sheet=May%201,row=1-4"
    assert str(parse_locator(passage.id)) == "a.xlsx, sheet May 1, rows 1-4"


def test_a_row_over_groups_of_columns_is_before_their_names():
    grouped = workbook(
        S={
            "A1": "From",
            "D1": "To",
            **{f"{c}2": f"n{c}" for c in "ABCDE"},
            **{f"{c}3": n for n, c in enumerate("ABCDE")},
        }
    )
    wanted = "From nA: 0; From nB: 1; From nC: 2; To nD: 3; To nE: 4."
    assert runs(".xlsx", grouped)[-1] == (3, 0, wanted)


def test_a_million_empty_rows_take_seconds():
    start = time.process_time()
    assert runs(".xlsx", workbook(S={"A1": "a", "XFD1048576": "far"}))[-1] == (
        1048576,
        0,
        "far.",
    )
    assert time.process_time() - start < 30


def test_a_workbook_that_unpacks_to_too_much_is_refused(monkeypatch):
    content = workbook(S={"A1": "a", "A2": "b"})
    monkeypatch.setattr(archives, "LARGEST", 1_000)
    with pytest.raises(UnreadableFile, match="it unpacks to more than 1,000 bytes"):
        runs(".xlsx", content)


def test_an_archive_without_a_workbook_is_refused():
    with pytest.raises(UnreadableFile, match="no workbook of Excel"):
        runs(".xlsx", archive({"a.xml": "x"}))


def test_a_workbook_that_declares_entities_is_refused():
    content = workbook(S={"A1": "a", "A2": "b"})
    entities = '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    with pytest.raises(UnreadableFile, match="no workbook of Excel"):
        runs(".xlsx", archive(files | {"xl/worksheets/sheet1.xml": entities}))


def saved(book):
    book.save(content := io.BytesIO())
    return content.getvalue()


def told(content, suffix=".xlsx"):
    """What is left unread in a workbook, with its number."""
    parts = READERS[suffix][1](content, ())
    return {part.what: part.count for part in parts if isinstance(part, Unread)}


def sheet_of_towns():
    book = Workbook()
    for row in (("Town", "Share", "Age"), ("Alta", 0.125, 3), ("Bodo", 0.25, 4), ("Hamar", 0.5, 5)):
        book.active.append(row)
    return book


def test_a_cell_is_read_as_the_sheet_shows_it():
    book = Workbook()
    book.active.append(["Item", "Share", "Hours", "Zip"])
    book.active.append(["Lamp", 0.125, timedelta(hours=26, minutes=30), 1234])
    for place, code in (("B2", "0.0%"), ("C2", "[h]:mm"), ("D2", "00000")):
        book.active[place].number_format = code
    assert (
        runs(".xlsx", saved(book))[-1][2] == "Item: Lamp; Share: 12.5%; Hours: 26:30; Zip: 01234."
    )


def test_a_merged_cell_counts_for_all_that_it_covers():
    book = Workbook()
    for row in (("Region", "Town"), ("North", "Alta"), ("", "Bodo"), ("South", "Oslo")):
        book.active.append(row)
    book.active.merge_cells("A2:A3")
    assert (3, 0, "Region: North; Town: Bodo.") in runs(".xlsx", saved(book))


def test_a_title_over_all_columns_is_read_once():
    book = Workbook()
    for row in (("Prices of 2026", ""), ("Item", "Price"), ("Lamp", 30), ("Chair", 99)):
        book.active.append(row)
    book.active.merge_cells("A1:B1")
    assert [text for _, _, text in runs(".xlsx", saved(book))][1:3] == [
        "Prices of 2026.",
        "Item: Lamp; Price: 30.",
    ]


def test_a_hidden_row_is_not_read():
    book = sheet_of_towns()
    book.active.row_dimensions[3].hidden = True
    assert not any("Bodo" in text for _, _, text in runs(".xlsx", saved(book)))


def sheet_with_hidden_rows(rows, hidden, merged=()):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    for number in hidden:
        book.active.row_dimensions[number].hidden = True
    for area in merged:
        book.active.merge_cells(area)
    return [text for _, _, text in runs(".xlsx", saved(book))]


STAFF = [["Dept", "Name", "Pay"], ["Sales", "Ann", 1], ["IT", "Bob", 2], ["IT", "Cid", 3]]
STAFF += [["Law", "Dan", 4]]


@given(st.sets(st.integers(2, 5), max_size=3))
@settings(max_examples=15, deadline=None)
def test_a_sheet_with_hidden_rows_is_read_as_one_without_them(hidden):
    shown = [row for number, row in enumerate(STAFF, start=1) if number not in hidden]
    assert sheet_with_hidden_rows(STAFF, hidden) == sheet_with_hidden_rows(shown, ())


def test_a_cell_that_is_merged_from_a_hidden_row_on_is_shown():
    rows = [STAFF[0], ["Sales", "Ann", 1], ["", "Bob", 2], ["", "Cid", 3], ["IT", "Dan", 4]]
    assert sheet_with_hidden_rows(rows, [2], ["A2:A4"])[1:] == [
        "Dept: Sales; Name: Bob; Pay: 2.",
        "Dept: Sales; Name: Cid; Pay: 3.",
        "Dept: IT; Name: Dan; Pay: 4.",
    ]


def test_a_title_that_is_merged_from_a_hidden_column_on_is_read_once():
    book = Workbook()
    for row in (("Prices", "", ""), ("No", "Item", "Price"), (1, "Lamp", 30), (2, "Chair", 99)):
        book.active.append(row)
    book.active.merge_cells("A1:C1")
    book.active.column_dimensions["A"].hidden = True
    assert [text for _, _, text in runs(".xlsx", saved(book))][1:] == [
        "Prices.",
        "Item: Lamp; Price: 30.",
        "Item: Chair; Price: 99.",
    ]


def test_equal_cells_are_no_merged_one():
    rows = [["Task", "Mon", "Tue"], ["Clean", "yes", "no"], ["no", "no", "no"]]
    assert sheet_with_hidden_rows(rows, ())[-1] == "Task: no; Mon: no; Tue: no."


def test_a_row_without_a_title_stands_below_its_sheet_alone():
    content = workbook(
        S={"A1": "Name", "B1": "Title", "C1": "Pay", "A2": "Ann", "B2": "Head", "C2": 1}
        | {"A3": "Bob", "C3": 2}
    )
    parts = [part for part in READERS[".xlsx"][1](content, ()) if not isinstance(part, Unread)]
    titles = [passage.title for passage in chunk_document("a.xlsx", parts, "row")]
    assert titles == ["a.xlsx › S › Head", "a.xlsx › S"]


def test_dates_are_names_of_columns():
    rows = [["Item", date(2024, 1, 1), date(2024, 2, 1)], ["Lamp", 1, 2], ["Chair", 4, 5]]
    assert sheet_with_hidden_rows(rows, ())[1] == "Item: Lamp; 2024-01-01: 1; 2024-02-01: 2."


def test_a_row_that_a_filter_hides_is_read():
    book = sheet_of_towns()
    book.active.auto_filter.ref = "A1:C4"
    book.active.auto_filter.add_filter_column(0, ["Alta"])
    book.active.row_dimensions[3].hidden = True
    assert any("Bodo" in text for _, _, text in runs(".xlsx", saved(book)))


def test_a_hidden_column_is_not_read():
    book = sheet_of_towns()
    book.active.column_dimensions["B"].hidden = True
    assert runs(".xlsx", saved(book))[1][2] == "Town: Alta; Age: 3."


def test_a_hidden_sheet_is_not_read():
    book = sheet_of_towns()
    book.create_sheet("Old").append(["secret"])
    book["Old"].sheet_state = "hidden"
    assert not any("secret" in text for _, _, text in runs(".xlsx", saved(book)))


def test_hidden_parts_are_told():
    book = sheet_of_towns()
    book.active.row_dimensions[3].hidden = True
    book.active.column_dimensions["B"].hidden = True
    book.create_sheet("Old").sheet_state = "veryHidden"
    assert told(saved(book)) == {"hidden row": 1, "hidden column": 1, "hidden sheet": 1}


def test_a_formula_that_was_never_computed_is_told():
    assert told(workbook(S={"A1": 1, "B1": "=A1*2", "C1": "=B1"})) == {
        "formula without a saved value": 2
    }


def changed(content, change, part="xl/worksheets/sheet1.xml"):
    """A workbook whose `part` is what `change` makes of it."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    return archive(files | {part: change(files[part].decode())})


@pytest.mark.parametrize(
    ("cell", "count"),
    [
        ('<c r="B1" t="str"><f>A1</f><v></v></c>', 0),
        ('<c r="B1" t="str"><f>A1</f><v/></c>', 0),
        ('<c r="B1" t="str"><f>A1</f></c>', 1),
        ('<c r="B1"><f>A1</f><v></v></c>', 1),
        ('<c r="B1"><f>A1</f><v>5</v></c>', 0),
    ],
)
def test_an_empty_text_is_a_saved_value(cell, count):
    content = workbook(S={"A1": 1, "B1": "x"})
    formula = changed(content, lambda sheet: re.sub(r'<c r="B1".*?</c>', cell, sheet))
    assert told(formula).get("formula without a saved value", 0) == count


def test_the_numbers_of_what_is_left_out_are_words():
    content = workbook(S={"A1": 1, "B1": "=A1*2", "C1": "=B1"})
    request = {"name": "a.xlsx", "suffix": ".xlsx", "words": 100, "overlap": 0, "columns": ()}
    assert read_request(request, content)[0]["unread"] == "2 formulas without a saved value"


def test_comments_are_told():
    book = sheet_of_towns()
    for place in ("A1", "B2"):
        book.active[place].comment = Comment("Is this right?", "Nora")
    assert told(saved(book)) == {"comment": 2}


SHAPE = "<xdr:sp><xdr:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></xdr:txBody></xdr:sp>"


def test_text_boxes_are_told():
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(io.BytesIO(saved(sheet_of_towns()))) as packed:
        files: dict[str, bytes | str] = {name: packed.read(name) for name in packed.namelist()}
    files["xl/worksheets/_rels/sheet1.xml.rels"] = (
        f'<Relationships><Relationship Id="r" Type="{relations}/drawing" '
        'Target="../drawings/drawing1.xml"/></Relationships>'
    )
    files["xl/drawings/drawing1.xml"] = (
        f'<xdr:wsDr xmlns:xdr="{drawing}/spreadsheetDrawing" xmlns:a="{drawing}/main">'
        f"<xdr:twoCellAnchor>{SHAPE.format('The rate is 7.')}</xdr:twoCellAnchor>"
        f"<xdr:twoCellAnchor>{SHAPE.format('')}</xdr:twoCellAnchor></xdr:wsDr>"
    )
    assert told(archive(files)) == {"text box": 1}


def test_a_broken_drawing_of_a_sheet_is_not_needed():
    book = sheet_of_towns()
    book.active["A1"].comment = Comment("Is this right?", "Nora")
    content = changed(saved(book), lambda _: "<broken", "xl/comments/comment1.xml")
    assert runs(".xlsx", content)[1][2] == "Town: Alta; Share: 0.125; Age: 3."


def test_a_struck_cell_is_not_read():
    book = sheet_of_towns()
    book.active["C2"].font = Font(strike=True)
    assert runs(".xlsx", saved(book))[1][2] == "Town: Alta; Share: 0.125."


def test_keys_have_their_values():
    content = workbook(
        S={"A1": "Owner", "B1": "Tom", "A2": "Deputy", "B2": "Nora", "A3": "Founded", "B3": 1903}
    )
    assert [text for _, _, text in runs(".xlsx", content)] == [
        "S",
        "Owner: Tom.",
        "Deputy: Nora.",
        "Founded: 1903.",
    ]


def ods(*rows):
    """A flat table of OpenDocument, with "" for an empty cell."""
    cells = "".join(
        f"<table:table-row>{''.join(map(ods_cell, row))}</table:table-row>" for row in rows
    )
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    body = f"<office:spreadsheet><table:table table:name='S'>{cells}</table:table></office:spreadsheet>"
    content = f"<office:document-content {names}><office:body>{body}</office:body></office:document-content>"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    parts = {"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": content}
    return archive(parts, zipfile.ZIP_STORED)


def ods_cell(text):
    if not text:
        return "<table:table-cell/>"
    if text.startswith("<"):
        return text
    return spanned(text, "")


def spanned(text, attributes):
    return (
        f'<table:table-cell {attributes} office:value-type="string"><text:p>{text}</text:p>'
        "</table:table-cell>"
    )


def test_a_sheet_of_opendocument_is_read():
    content = ods(("Item", "Old", "New"), ("Lamp", "", "red"), ("Chair", "blue", "red"))
    assert [text for _, _, text in runs(".ods", content)][1] == "Item: Lamp; New: red."


COVERED = "<table:covered-table-cell/>"


def test_a_merged_cell_of_opendocument_counts_for_all_that_it_covers():
    content = ods(
        ("Dept", "Name", "Pay"),
        (spanned("Sales", 'table:number-rows-spanned="2"'), "Ann", "1"),
        (COVERED, "Bob", "2"),
        ("IT", "Cid", "3"),
    )
    assert [text for _, _, text in runs(".ods", content)][1:] == [
        "Dept: Sales; Name: Ann; Pay: 1.",
        "Dept: Sales; Name: Bob; Pay: 2.",
        "Dept: IT; Name: Cid; Pay: 3.",
    ]


def test_repeated_cells_of_opendocument_keep_merged_cells_in_their_places():
    content = ods(
        ("Name", "Old", "New", "Year"),
        ("Ann", '<table:table-cell table:number-columns-repeated="2"/>', "1"),
        ("Bob", "x", "y", spanned("2024", 'table:number-rows-spanned="2"')),
        ("Cid", "x", "z", COVERED),
    )
    assert [text for _, _, text in runs(".ods", content)][1:] == [
        "Name: Ann; Year: 1.",
        "Name: Bob; Old: x; New: y; Year: 2024.",
        "Name: Cid; Old: x; New: z; Year: 2024.",
    ]


def test_a_duration_of_opendocument_is_told_in_hours():
    time_ = '<table:table-cell office:value-type="time" office:time-value="PT26H30M00S"/>'
    content = ods(("Item", "Hours", "N"), ("Lamp", time_, "1"), ("Chair", time_, "2"))
    assert runs(".ods", content)[1][2] == "Item: Lamp; Hours: 26:30:00; N: 1."


def test_comments_of_opendocument_are_told():
    note = "<office:annotation><text:p>Right?</text:p></office:annotation><text:p>Lamp</text:p>"
    cell = f'<table:table-cell office:value-type="string">{note}</table:table-cell>'
    assert told(ods(("Item", "N"), (cell, "1")), ".ods") == {"comment": 1}


@pytest.mark.parametrize("suffix", [".xls", ".xlsb", ".ods"])
def test_a_broken_older_workbook_is_refused(suffix):
    with pytest.raises(UnreadableFile, match=r"no workbook that can be read|not a complete zip"):
        runs(suffix, b"PK\x03\x04 broken" if suffix != ".xls" else b"\xd0\xcf\x11\xe0 broken")


def test_a_strict_workbook_is_read_as_a_usual_one():
    usual = saved(sheet_of_towns())
    with zipfile.ZipFile(io.BytesIO(usual)) as packed:
        files = {name: packed.read(name).decode() for name in packed.namelist()}
    strict = {
        name: re.sub(
            r"http://schemas\.openxmlformats\.org/(\w+)/2006/(main|relationships)\b",
            r"http://purl.oclc.org/ooxml/\1/\2",
            part,
        )
        for name, part in files.items()
        if name.endswith((".xml", ".rels"))
    }
    assert strict["xl/workbook.xml"] != files["xl/workbook.xml"]
    assert runs(".xlsx", archive(strict)) == runs(".xlsx", usual)
