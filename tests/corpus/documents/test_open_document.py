"""OpenDocument: tables, numbered items and headings, marks, what is hidden, and flat files."""

import pytest
from mixed_documents import archive, runs, text_runs
from office_documents import OPEN_NAMES, open_document

from ifqa.corpus.documents.decoding import HIDDEN, Unread, UnreadableFile
from ifqa.corpus.documents.readers import READERS

MATH = "http://www.w3.org/1998/Math/MathML"


def texts(body, **parts):
    return [text for *_, text in runs(".odt", open_document(body, **parts))]


def unread(suffix, content):
    return [part for part in READERS[suffix][1](content, ()) if isinstance(part, Unread)]


def paragraph(text):
    return f"<text:p>{text}</text:p>"


def cell(text="", attributes=""):
    inner = text if text.startswith("<") or not text else paragraph(text)
    return f"<table:table-cell{attributes}>{inner}</table:table-cell>"


def covered(attributes=""):
    return f"<table:covered-table-cell{attributes}/>"


def row(*cells, attributes=""):
    inner = "".join(each if each.startswith("<") else cell(each) for each in cells)
    return f"<table:table-row{attributes}>{inner}</table:table-row>"


def table(*rows):
    return f"<table:table>{''.join(rows)}</table:table>"


def test_an_empty_cell_keeps_its_place():
    rows = row("Item", "Old", "New"), row("Lamp", "", "30"), row("Chair", "99", "120")
    assert texts(table(*rows))[0] == "Item: Lamp; New: 30."


def test_repeated_empty_cells_keep_their_place():
    empty = cell("", ' table:number-columns-repeated="2"')
    rows = row("Item", "a", "b", "c"), row("Lamp", empty, "30"), row("Chair", "1", "2", "3")
    assert texts(table(*rows))[0] == "Item: Lamp; c: 30."


def test_merged_cells_count_for_all_that_they_cover():
    rows = (
        row("Region", "2024", "2025"),
        row(
            cell("North", ' table:number-rows-spanned="2"'),
            cell("4", ' table:number-columns-spanned="2"'),
            covered(),
        ),
        row(covered(), "7", "9"),
    )
    assert texts(table(*rows)) == [
        "Region: North; 2024: 4; 2025: 4.",
        "Region: North; 2024: 7; 2025: 9.",
    ]


@pytest.mark.parametrize("filled", ["", "x"])
def test_thousands_of_repeated_cells_stay_few(filled):
    wide = cell(filled, ' table:number-columns-repeated="999999999"')
    assert len("".join(texts(table(row("a", wide) * 3)))) < 20_000


def test_declared_header_rows_name_the_columns():
    header = f"<table:table-header-rows>{row('a', 'b')}</table:table-header-rows>"
    assert texts(table(header, row("c", "d"), row("e", "f"))) == ["a: c; b: d.", "a: e; b: f."]


def test_a_hidden_row_is_told():
    content = open_document(
        table(row("a", "1"), row("b", "2", attributes=' table:visibility="collapse"'))
    )
    assert unread(".odt", content) == [Unread("hidden row")]


def numbers(*levels):
    inner = "".join(
        f'<text:list-level-style-number text:level="{place}" {attributes}/>'
        for place, attributes in enumerate(levels, start=1)
    )
    return f'<text:list-style style:name="L">{inner}</text:list-style>'


LEVELS = numbers(
    'style:num-format="1" style:num-suffix="."',
    'style:num-format="1" text:display-levels="2"',
    'style:num-format="a" style:num-prefix="(" style:num-suffix=")"',
)


def item(*contents, attributes=""):
    inner = "".join(each if each.startswith("<") else paragraph(each) for each in contents)
    return f"<text:list-item{attributes}>{inner}</text:list-item>"


def items(*entries, attributes=' text:style-name="L"'):
    return f"<text:list{attributes}>{''.join(entries)}</text:list>"


def test_items_have_their_automatic_numbers():
    inner = items(item("due monthly", items(item("in cash"), attributes="")), attributes="")
    body = items(item("Rent", inner), item("Repairs"))
    assert texts(body, styles=LEVELS) == ["1. Rent", "1.1 due monthly", "(a) in cash", "2. Repairs"]


def test_later_paragraphs_of_an_item_have_no_number():
    assert texts(items(item("Rent", "More.")), styles=LEVELS) == ["1. Rent", "More."]


def test_a_list_begins_again():
    body = items(item("One")) + paragraph("Between.") + items(item("One"))
    assert texts(body, styles=LEVELS)[-1] == "1. One"


@pytest.mark.parametrize(
    "attributes",
    [
        ' text:style-name="L" text:continue-numbering="true"',
        ' text:style-name="L" text:continue-list="first"',
    ],
)
def test_a_list_may_continue_an_earlier_one(attributes):
    first = items(item("One"), attributes=' text:style-name="L" xml:id="first"')
    body = first + paragraph("Between.") + items(item("Two"), attributes=attributes)
    assert texts(body, styles=LEVELS)[-1] == "2. Two"


def test_an_item_may_set_its_number():
    body = items(item("x", attributes=' text:start-value="5"'), item("y"))
    assert texts(body, styles=LEVELS) == ["5. x", "6. y"]


def test_bulleted_items_are_apart():
    bullets = '<text:list-style style:name="L"><text:list-level-style-bullet text:level="1"/></text:list-style>'
    content = open_document(items(item("Ann Boll"), item("Bo Carr")), bullets)
    parts = text_runs(".odt", content)
    assert [(part.text, part.item) for part in parts] == [("Ann Boll", True), ("Bo Carr", True)]


OUTLINE = (
    '<text:outline-style><text:outline-level-style text:level="1" style:num-format="1"/>'
    '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>'
    "</text:outline-style>"
)


def heading(text, level, more=""):
    return f'<text:h text:outline-level="{level}"{more}>{text}</text:h>'


def test_headings_have_the_numbers_of_the_outline():
    body = heading("Rent", 1) + heading("General", 1) + heading("Force Majeure", 2)
    assert runs(".odt", open_document(body, common=OUTLINE))[-1] == (3, 2, "2.1 Force Majeure")


def test_a_heading_may_have_no_number():
    body = heading("Rent", 1, ' text:is-list-header="true"')
    assert texts(body, common=OUTLINE) == ["Rent"]


def look(attributes):
    return (
        '<style:style style:name="T" style:family="text">'
        f"<style:text-properties {attributes}/></style:style>"
    )


def span(text):
    return f'<text:span text:style-name="T">{text}</text:span>'


@pytest.mark.parametrize(
    ("position", "shown"),
    [("super 58%", "10^24"), ("33% 58%", "10^24"), ("sub 58%", "10_24"), ("0% 100%", "1024")],
)
def test_raised_text_is_an_exponent(position, shown):
    style = look(f'style:text-position="{position}"')
    assert texts(paragraph(f"10{span('24')}"), styles=style) == [shown]


@pytest.mark.parametrize(
    "attributes",
    [
        'style:text-line-through-style="solid"',
        'style:text-line-through-type="double"',
        'text:display="none"',
    ],
)
def test_struck_or_hidden_text_is_left_out(attributes):
    body = paragraph(f"{span('Ivo Brandt ')}Nora Pike")
    assert texts(body, styles=look(attributes)) == ["Nora Pike"]


@pytest.mark.parametrize("position", ["none", "solid"])
def test_a_style_inherits_a_line_through_text(position):
    style = look("").replace("<style:style ", '<style:style style:parent-style-name="base" ')
    base = look(f'style:text-line-through-style="{position}"').replace('"T"', '"base"')
    shown = ["Ivo"] if position == "none" else []
    assert texts(paragraph(span("Ivo")), styles=style, common=base) == shown


def test_a_hidden_section_is_told():
    content = open_document(f'<text:section text:display="none">{paragraph("x")}</text:section>')
    assert unread(".odt", content) == [Unread("hidden section")]


def test_struck_text_is_told():
    content = open_document(paragraph(span("x")), look('style:text-line-through-style="solid"'))
    assert unread(".odt", content) == [Unread(HIDDEN)]


def test_a_hidden_paragraph_is_left_out():
    hidden = paragraph('<text:hidden-paragraph text:is-hidden="true"/>Draft')
    assert texts(hidden + paragraph("Kept")) == ["Kept"]


def test_a_prompt_is_left_out():
    assert texts(paragraph("Name: <text:placeholder>&lt;Click&gt;</text:placeholder>")) == ["Name:"]


def test_ruby_stands_in_brackets_after_its_base():
    ruby = "<text:ruby><text:ruby-base>東京</text:ruby-base><text:ruby-text>とうきょう</text:ruby-text></text:ruby>"
    assert texts(paragraph(ruby)) == ["東京(とうきょう)"]


def test_a_text_box_is_read_after_the_words_before_it():
    box = f"<draw:frame><draw:text-box>{paragraph('In a box.')}</draw:text-box></draw:frame>"
    assert texts(paragraph(f"Text.{box}")) == ["Text.", "In a box."]


def test_a_formula_is_written_as_text():
    math = f'<math xmlns="{MATH}"><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><msqrt><mi>y</mi></msqrt></math>'
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    more = {"Object 1/content.xml": math}
    assert texts(paragraph(f"Add {frame} up"), more=more) == ["Add x^2 + √(y) up"]


def test_a_formula_of_older_programs_names_its_document_type():
    declared = '<?xml version="1.0"?>\n<!DOCTYPE math PUBLIC "-//OpenOffice.org//DTD MathML 1.01//EN" "math.dtd">'
    math = f'{declared}<math xmlns="{MATH}"><mi>x</mi><mo>+</mo><mn>2</mn></math>'
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    more = {"Object 1/content.xml": math}
    assert texts(paragraph(f"Add {frame} up"), more=more) == ["Add x + 2 up"]


def test_a_chart_is_read_as_a_table():
    header = f"<table:table-header-rows>{row('', 'Rye')}</table:table-header-rows>"
    chart = (
        f"<office:document-content {OPEN_NAMES}><office:body><office:chart><chart:chart>"
        f"<chart:title>{paragraph('Shares')}</chart:title>{table(header, row('North', '25'), row('South', '50'))}"
        "</chart:chart></office:chart></office:body></office:document-content>"
    )
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    assert texts(paragraph(frame), more={"Object 1/content.xml": chart}) == [
        "Shares",
        "North; Rye: 25.",
        "South; Rye: 50.",
    ]


def test_an_encrypted_file_says_so():
    manifest = "<manifest><encryption-data/></manifest>"
    files = {"content.xml": b"\x8f\x01", "META-INF/manifest.xml": manifest}
    with pytest.raises(UnreadableFile, match="it needs a password"):
        runs(".odt", archive(files))


@pytest.mark.parametrize("suffix", [".fodt", ".fodp"])
def test_a_flat_file_is_read(suffix):
    body = f"<draw:page>{paragraph('Rye')}</draw:page>" if suffix == ".fodp" else heading("Rye", 1)
    flat = f"<?xml version='1.0'?><office:document {OPEN_NAMES}><office:body>{body}</office:body></office:document>"
    assert runs(suffix, flat) == [(1, 1, "Rye")]


def test_a_hidden_slide_is_told_instead_of_read():
    style = (
        '<style:style style:name="dp1" style:family="drawing-page"><style:drawing-page-properties '
        'presentation:visibility="hidden"/></style:style>'
    )
    body = f'<draw:page draw:style-name="dp1">{paragraph("Draft")}</draw:page>'
    body += f"<draw:page>{paragraph('Shown')}</draw:page>"
    content = open_document(body, style)
    assert runs(".odp", content) == [(2, 1, "Shown")]
    assert unread(".odp", content) == [Unread("hidden slide")]


def test_an_empty_placeholder_of_a_slide_is_left_out():
    prompt = f'<draw:frame presentation:placeholder="true">{paragraph("Click to add")}</draw:frame>'
    body = f"<draw:page>{prompt}{paragraph('Rye')}</draw:page>"
    assert runs(".odp", open_document(body)) == [(1, 1, "Rye")]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        (
            "<table:table><table:table-row><table:table-cell>",
            "</table:table-cell></table:table-row></table:table>",
        ),
        ("<text:list><text:list-item>", "</text:list-item></text:list>"),
        ("<text:section>", "</text:section>"),
    ],
)
def test_elements_as_deep_as_allowed_are_read(opening, closing):
    count = 240 // opening.count("<")
    assert texts(opening * count + paragraph("Deep.") + closing * count) == ["Deep."]


def test_spans_as_deep_as_allowed_are_read():
    assert texts(paragraph("<text:span>" * 240 + "Deep." + "</text:span>" * 240)) == ["Deep."]
