"""Presentations of PowerPoint: hidden slides, tables, numbered paragraphs, marks and charts."""

import pytest
from mixed_documents import runs, text_runs
from office_documents import OFFICE_NAMES, chart_part, presentation, shape

from ifqa.corpus.documents.decoding import HIDDEN, Unread
from ifqa.corpus.documents.readers import READERS

TITLE = shape("Rye", kind="title")


def texts(*slides, **parts):
    return [text for *_, text in runs(".pptx", presentation(*slides, **parts))]


def paragraph(text, properties="", look=""):
    return (
        f"<a:p><a:pPr{properties.partition('|')[0]}>{properties.partition('|')[2]}</a:pPr>"
        f"<a:r><a:rPr{look}/><a:t>{text}</a:t></a:r></a:p>"
    )


def numbered(text, style="arabicPeriod", start="", level=0):
    return paragraph(text, f' lvl="{level}"|<a:buAutoNum type="{style}"{start}/>')


def cell(text, attributes="", look=""):
    return f"<a:tc{attributes}><a:txBody>{paragraph(text, look=look)}</a:txBody></a:tc>"


def table(*rows):
    inner = "".join(f"<a:tr>{''.join(row)}</a:tr>" for row in rows)
    return f"<p:graphicFrame><a:tbl>{inner}</a:tbl></p:graphicFrame>"


def test_a_hidden_slide_is_not_read():
    hidden = f'<p:sld {OFFICE_NAMES} show="0">{shape("Draft")}</p:sld>'
    content = presentation(TITLE, hidden, shape("Last"))
    assert runs(".pptx", content) == [(1, 1, "Rye"), (3, 1, "Last")]


def test_a_hidden_slide_is_told():
    hidden = f'<p:sld {OFFICE_NAMES} show="0">{shape("Draft")}</p:sld>'
    parts = list(READERS[".pptx"][1](presentation(TITLE, hidden), ()))
    assert [part for part in parts if isinstance(part, Unread)] == [Unread("hidden slide")]


def test_a_hidden_shape_is_not_read():
    assert texts(TITLE + shape("Draft", hidden=' hidden="1"')) == ["Rye"]


def test_an_empty_cell_of_a_table_keeps_its_place():
    rows = [("Item", "Old", "New"), ("Lamp", "", "30"), ("Chair", "99", "120")]
    cells = [[cell(text) for text in row] for row in rows]
    assert texts(TITLE + table(*cells))[1:] == [
        "Item: Lamp; New: 30.",
        "Item: Chair; Old: 99; New: 120.",
    ]


def test_merged_cells_of_a_table_count_for_all_that_they_cover():
    rows = (
        [cell("Region"), cell("2024"), cell("2025")],
        [cell("North", ' rowSpan="2"'), cell("4", ' gridSpan="2"'), cell("", ' hMerge="1"')],
        [cell("", ' vMerge="1"'), cell("7"), cell("9")],
    )
    assert texts(TITLE + table(*rows))[1:] == [
        "Region: North; 2024: 4; 2025: 4.",
        "Region: North; 2024: 7; 2025: 9.",
    ]


def test_a_slide_that_begins_with_a_table_has_its_number_as_heading():
    assert texts(table([cell("a"), cell("1")], [cell("b"), cell("2")]))[0] == "Slide 1"


def test_paragraphs_have_their_automatic_numbers():
    body = shape(numbered("Open"), numbered("left", "alphaLcParenR", level=1), numbered("Close"))
    assert texts(TITLE + body)[1:] == ["1. Open.", "a) left.", "2. Close."]


def test_automatic_numbers_begin_where_they_are_told_to():
    body = shape(numbered("Open", "romanUcPeriod", ' startAt="4"'))
    assert texts(TITLE + body)[1] == "IV. Open."


def test_automatic_numbers_begin_again_after_plain_text():
    body = shape(numbered("Open"), "Text.", numbered("Close"))
    assert texts(TITLE + body)[1:] == ["1. Open.", "Text.", "1. Close."]


def test_bulleted_paragraphs_are_items():
    content = presentation(TITLE + shape(paragraph("Ann", '|<a:buChar char="x"/>')))
    parts = text_runs(".pptx", content)
    assert [part.item for part in parts] == [False, True]


@pytest.mark.parametrize(("shift", "shown"), [("30000", "10^24."), ("0", "1024.")])
def test_raised_text_is_an_exponent(shift, shown):
    look = f' baseline="{shift}"'
    runs_of_text = f"<a:p><a:r><a:t>10</a:t></a:r><a:r><a:rPr{look}/><a:t>24</a:t></a:r></a:p>"
    assert texts(TITLE + shape(runs_of_text))[1] == shown


def test_struck_text_is_left_out():
    struck = (
        '<a:p><a:r><a:rPr strike="sngStrike"/><a:t>40</a:t></a:r><a:r><a:t>55</a:t></a:r></a:p>'
    )
    assert texts(TITLE + shape(struck))[1] == "55."


def test_struck_text_is_told():
    struck = '<a:p><a:r><a:rPr strike="dblStrike"/><a:t>40</a:t></a:r></a:p>'
    parts = list(READERS[".pptx"][1](presentation(TITLE + shape(struck)), ()))
    assert parts[-1] == Unread(HIDDEN)


def test_a_chart_is_read_as_a_table():
    frame = '<p:graphicFrame><c:chart r:id="c"/></p:graphicFrame>'
    parts = {"ppt/charts/chart1.xml": chart_part(["North", "South"], Rye=[0.25, 0.5])}
    links = [("c", "chart", "../charts/chart1.xml")]
    assert texts(TITLE + frame, links=links, more=parts)[1:] == [
        "Shares.",
        "North; Rye: 25.0%.",
        "South; Rye: 50.0%.",
    ]


def test_a_diagram_is_read_once():
    frame = '<p:graphicFrame><dgm:relIds xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" r:dm="d"/></p:graphicFrame>'
    part = f"<x {OFFICE_NAMES}><a:p><a:r><a:t>Gate</a:t></a:r></a:p></x>"
    links = [("d", "diagramData", "../diagrams/data1.xml")]
    more = {"ppt/diagrams/data1.xml": part}
    assert texts(TITLE + frame, links=links, more=more) == ["Rye", "Gate."]


@pytest.mark.parametrize("suffix", [".pptm", ".ppsx", ".ppsm", ".potx", ".potm"])
def test_shows_are_read_as_presentations(suffix):
    assert runs(suffix, presentation(TITLE)) == [(1, 1, "Rye")]
