"""Word documents: tables, numbered items, marks, what is not current, and parts beside the text."""

import pytest
from mixed_documents import archive, runs
from office_documents import (
    STRICT,
    cell,
    chart_part,
    item,
    level,
    numbering,
    paragraph,
    relations,
    row,
    run,
    table,
    word_document,
    word_parts,
)

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import HIDDEN, Unread, UnreadableFile
from ifqa.corpus.documents.readers import READERS

BOLD = "<w:b/>"


def texts(body, **parts):
    return [text for *_, text in runs(".docx", word_document(body, **parts))]


def parts_of(content):
    return list(READERS[".docx"][1](content, ()))


def unread(content):
    return [part for part in parts_of(content) if isinstance(part, Unread)]


def test_an_empty_cell_keeps_its_place():
    rows = row("Item", "Old price", "New price"), row("Lamp", "", "30"), row("Chair", "99", "120")
    assert texts(table(*rows)) == [
        "Item: Lamp; New price: 30.",
        "Item: Chair; Old price: 99; New price: 120.",
    ]


def test_a_cell_that_spans_columns_counts_for_each():
    rows = (
        row("Item", "2024", "2025"),
        row("Lamp", cell("40", '<w:gridSpan w:val="2"/>')),
        row("Chair", "7", "9"),
    )
    assert texts(table(*rows))[0] == "Item: Lamp; 2024: 40; 2025: 40."


def test_equal_cells_are_no_merged_one():
    rows = row("Task", "Mon", "Tue"), row("Clean", "yes", "no"), row("no", "no", "no")
    assert texts(table(*rows))[1] == "Task: no; Mon: no; Tue: no."


def test_equal_cells_in_the_first_row_are_no_title():
    bold = [cell(paragraph(run(text, BOLD))) for text in ("no", "no")]
    assert texts(table(row(*bold), row("x", "5"), row("y", "6")))[0] == "no: x; no (2): 5."


def test_a_cell_that_spans_rows_counts_for_each():
    rows = (
        row("Region", "Town", "People"),
        row(cell("North", '<w:vMerge w:val="restart"/>'), "Alta", "5"),
        row(cell("", "<w:vMerge/>"), "Bodo", "6"),
    )
    assert texts(table(*rows))[1] == "Region: North; Town: Bodo; People: 6."


def test_a_row_that_begins_later_keeps_its_columns():
    rows = (
        row("Item", "Old", "New"),
        row("Lamp", "1", "2"),
        row("5", "6", properties='<w:gridBefore w:val="1"/>'),
    )
    assert texts(table(*rows))[1] == "Old: 5; New: 6."


def test_a_column_that_no_row_uses_is_none():
    wide = '<w:gridSpan w:val="2"/>'
    rows = row("Deputy", cell("Nora Pike", wide)), row("Owner", cell("Tom Ferris", wide))
    assert texts(table(*rows)) == ["Deputy: Nora Pike.", "Owner: Tom Ferris."]


def test_a_row_that_word_repeats_on_each_page_is_the_header():
    rows = row("a", "b", properties="<w:tblHeader/>"), row("c", "d"), row("e", "f")
    assert texts(table(*rows)) == ["a: c; b: d.", "a: e; b: f."]


def test_a_bold_row_above_plain_ones_is_the_header():
    bold = [cell(paragraph(run(text, BOLD))) for text in ("a", "b")]
    assert texts(table(row(*bold), row("c", "d"), row("e", "f")))[0] == "a: c; b: d."


def test_a_title_over_the_whole_table_is_no_header():
    title = row(cell(paragraph(run("Costs", BOLD)), '<w:gridSpan w:val="2"/>'))
    bold = [cell(paragraph(run(text, BOLD))) for text in ("a", "b")]
    assert texts(table(title, row(*bold), row("c", "d"), row("e", "f")))[:2] == [
        "Costs.",
        "a: c; b: d.",
    ]


def test_the_names_of_columns_without_values_are_read():
    bold = [cell(paragraph(run(text, BOLD))) for text in ("Name", "Date", "Signature")]
    assert texts(table(row(*bold), row("", "", ""), row("", "", ""))) == ["Name; Date; Signature."]


def test_the_paragraphs_of_a_cell_are_set_apart():
    people = cell(paragraph("Nora Pike") + paragraph("Tom Ferris"))
    assert texts(table(row("Staff", people))) == ["Staff: Nora Pike, Tom Ferris."]


def test_a_sentence_over_two_paragraphs_of_a_cell_is_one():
    note = cell(paragraph("The mill") + paragraph("stands still."))
    assert texts(table(row("Note", note))) == ["Note: The mill stands still."]


def test_a_frame_of_one_cell_is_read_as_paragraphs():
    framed = cell(paragraph("First.") + paragraph("Second."))
    assert texts(table(row(framed))) == ["First.", "Second."]


def test_the_rows_of_a_nested_table_follow_its_row():
    inner = table(row("Key", "Value"), row("a", "1"))
    outer = table(row("x", cell(paragraph("y") + inner + "<w:p/>")), row("z", "w"))
    assert texts(outer) == ["x: y.", "Key: a; Value: 1.", "z: w."]


def test_rows_are_counted_as_outermost_paragraphs():
    body = paragraph("One.") + table(row("a", "1"), row("b", "2")) + paragraph("Two.")
    assert [place for place, *_ in runs(".docx", word_document(body))] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "look", ["<w:vanish/>", "<w:strike/>", "<w:dstrike/>", '<w:rStyle w:val="gone"/>']
)
def test_hidden_or_struck_text_is_left_out(look):
    style = '<w:style w:styleId="gone"><w:rPr><w:strike/></w:rPr></w:style>'
    body = paragraph(run("Chair: ") + run("Ivo Brandt", look) + run("Nora Pike"))
    assert texts(body, styles=style) == ["Chair: Nora Pike"]


def test_a_run_may_undo_the_strike_of_its_style():
    style = '<w:style w:styleId="gone"><w:rPr><w:strike/></w:rPr></w:style>'
    look = '<w:rStyle w:val="gone"/><w:strike w:val="0"/>'
    assert texts(paragraph(run("kept", look)), styles=style) == ["kept"]


@pytest.mark.parametrize("change", ["del", "moveFrom"])
def test_deleted_or_moved_text_is_left_out(change):
    body = f"<w:p><w:{change}>{run('40')}</w:{change}><w:ins>{run('55')}</w:ins></w:p>"
    assert texts(body) == ["55"]


@pytest.mark.parametrize(
    "body",
    [
        paragraph(run("x", "<w:vanish/>")),
        f"<w:p><w:del>{run('x')}</w:del></w:p>",
        table(row("a"), row("x", properties="<w:del/>")),
    ],
)
def test_hidden_or_deleted_text_is_told(body):
    assert unread(word_document(paragraph("Kept.") + body)) == [Unread(HIDDEN)]


def test_a_comment_is_told():
    content = word_document(paragraph("Kept."), comments=f"<w:comment>{paragraph('x')}</w:comment>")
    assert unread(content) == [Unread("comment")]


def test_a_deleted_row_is_left_out():
    rows = row("a", "1"), row("b", "2", properties="<w:del/>"), row("c", "3")
    assert texts(table(*rows)) == ["a: 1.", "c: 3."]


def test_a_hidden_row_is_told():
    content = word_document(table(row("a", "1"), row("b", "2", properties="<w:hidden/>")))
    assert unread(content) == [Unread("hidden row")]


def test_a_paragraph_goes_on_where_its_end_is_deleted():
    first = paragraph("The sluice is ", "<w:rPr><w:del/></w:rPr>")
    assert texts(first + paragraph("closed.")) == ["The sluice is closed."]


def test_the_code_of_a_field_is_not_shown():
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
    code = "<w:r><w:instrText>IF </w:instrText></w:r>" + run("inner")
    body = f"<w:p>{mark('begin')}{code}{mark('separate')}{run('shown')}{mark('end')}{run(' after')}</w:p>"
    assert texts(body) == ["shown after"]


def test_a_field_without_an_end_does_not_hide_later_paragraphs():
    broken = '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r></w:p>'
    assert texts(broken + paragraph("Later.")) == ["Later."]


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("<w:checkBox><w:checked/></w:checkBox>", "☒"),
        ('<w:checkBox><w:checked w:val="0"/></w:checkBox>', "☐"),
        (
            '<w:ddList><w:result w:val="1"/><w:listEntry w:val="rye"/><w:listEntry w:val="oats"/></w:ddList>',
            "oats",
        ),
    ],
)
def test_the_values_of_form_fields_are_read(form, shown):
    begin = f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{form}</w:ffData></w:fldChar></w:r>'
    body = f'<w:p>{begin}<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
    assert texts(body) == [shown]


def test_the_prompt_of_an_empty_control_is_left_out():
    empty = f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{run('Click here')}</w:sdtContent></w:sdt>"
    filled = f"<w:sdt><w:sdtPr/><w:sdtContent>{run('Nora Pike')}</w:sdtContent></w:sdt>"
    assert texts(f"<w:p>{run('Name: ')}{empty}{filled}</w:p>") == ["Name: Nora Pike"]


def test_superscripts_are_exponents():
    body = paragraph(run("6×10") + run("24", '<w:vertAlign w:val="superscript"/>') + run(" kg"))
    assert texts(body) == ["6×10^24 kg"]


def test_a_character_style_may_lower_text():
    style = '<w:style w:styleId="low"><w:rPr><w:vertAlign w:val="subscript"/></w:rPr></w:style>'
    body = paragraph(run("CO") + run("2", '<w:rStyle w:val="low"/>'))
    assert texts(body, styles=style) == ["CO2"]


def test_ruby_stands_in_brackets_after_its_base():
    body = f"<w:p><w:r><w:ruby><w:rt>{run('とうきょう')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby></w:r></w:p>"
    assert texts(body) == ["東京(とうきょう)"]


@pytest.mark.parametrize(
    ("font", "code", "shown"),
    [
        ("Wingdings", "F0FC", "✓"),
        ("Symbol", "F061", "α"),
        ("Wingdings", "F021", ""),
        ("Arial", "00E9", "é"),
    ],
)
def test_symbols_are_read_where_unicode_has_them(font, code, shown):
    body = f'<w:p>{run("x")}<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r></w:p>'
    assert texts(body) == [f"x{shown}"]


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        (
            "<m:sSup><m:e><m:r><m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>24</m:t></m:r></m:sup></m:sSup>",
            "10^24",
        ),
        (
            "<m:sSub><m:e><m:r><m:t>a</m:t></m:r></m:e><m:sub><m:r><m:t>n</m:t></m:r></m:sub></m:sSub>",
            "a_n",
        ),
        (
            "<m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>",
            "(a+b)/2",
        ),
        (
            '<m:rad><m:radPr><m:degHide m:val="1"/></m:radPr><m:deg/><m:e><m:r><m:t>x</m:t></m:r></m:e></m:rad>',
            "√(x)",
        ),
    ],
)
def test_equations_are_written_as_text(formula, shown):
    assert texts(f"<w:p><m:oMath>{formula}</m:oMath></w:p>") == [shown]


def test_a_fraction_is_apart_from_the_number_before_it():
    half = "<m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
    assert texts(f"<w:p>{run('1')}<m:oMath>{half}</m:oMath>{run(' cups')}</w:p>") == ["1 1/2 cups"]


LEGAL = numbering(
    level(0, "decimal", "%1."), level(1, "decimal", "%1.%2"), level(2, "lowerLetter", "(%3)")
)


def test_items_have_their_automatic_numbers():
    body = item("Rent") + item("due monthly", place=1) + item("in cash", place=2) + item("Repairs")
    assert texts(body, numbering=LEGAL) == [
        "1. Rent",
        "1.1 due monthly",
        "(a) in cash",
        "2. Repairs",
    ]


def test_lower_levels_begin_again_after_a_higher_one():
    body = "".join(item("x", place=place) for place in (0, 1, 1, 0, 1))
    assert texts(body, numbering=LEGAL)[-1] == "2.1 x"


def test_items_are_apart():
    content = word_document(
        item("Ann Boll", 2) + item("Bo Carr", 2),
        numbering=numbering(
            level(0, "decimal", "%1."),
            more='<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val=""/></w:lvl></w:abstractNum>'
            '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>',
        ),
    )
    assert [part.item for part in parts_of(content)] == [True, True]


def test_a_list_goes_on_after_other_text():
    body = item("One") + paragraph("Between.") + item("Two")
    assert texts(body, numbering=LEGAL) == ["1. One", "Between.", "2. Two"]


def test_a_list_may_begin_again():
    again = '<w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
    body = item("One") + item("Two") + item("New", 2) + item("Next", 2)
    lists = numbering(level(0, "decimal", "%1)"), more=again)
    assert texts(body, numbering=lists) == ["1) One", "2) Two", "1) New", "2) Next"]


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("lowerLetter", "c"),
        ("upperLetter", "C"),
        ("lowerRoman", "iii"),
        ("upperRoman", "III"),
        ("decimalZero", "03"),
        ("ordinal", "3rd"),
        ("unheardOf", "3"),
    ],
)
def test_numbers_are_written_in_their_format(style, shown):
    body = item("x") * 3
    assert texts(body, numbering=numbering(level(0, style, "%1)")))[-1] == f"{shown}) x"


def test_legal_numbers_are_in_digits():
    lists = numbering(
        level(0, "upperRoman", "Article %1"), level(1, "decimal", "Section %1.%2", "<w:isLgl/>")
    )
    body = item("Rent") + item("Due", place=1)
    assert texts(body, numbering=lists) == ["Article I Rent", "Section 1.1 Due"]


def test_a_level_that_never_restarts_counts_on():
    lists = numbering(
        level(0, "decimal", "%1."), level(1, "decimal", "(%2)", '<w:lvlRestart w:val="0"/>')
    )
    body = "".join(item("x", place=place) for place in (0, 1, 0, 1))
    assert texts(body, numbering=lists)[-1] == "(2) x"


def test_a_style_may_number_its_paragraphs():
    style = (
        '<w:style w:styleId="base"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:styleId="own"><w:basedOn w:val="base"/></w:style>'
    )
    body = paragraph("Rent", '<w:pStyle w:val="own"/>')
    assert texts(body, styles=style, numbering=LEGAL) == ["1. Rent"]


def test_a_paragraph_may_leave_the_list_of_its_style():
    style = (
        '<w:style w:styleId="own"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    )
    none = '<w:numPr><w:numId w:val="0"/></w:numPr>'
    body = paragraph("Rent", f'<w:pStyle w:val="own"/>{none}')
    assert texts(body, styles=style, numbering=LEGAL) == ["Rent"]


def test_a_list_may_have_the_levels_of_a_style():
    linked = (
        '<w:abstractNum w:abstractNumId="5"><w:numStyleLink w:val="legal"/></w:abstractNum>'
        '<w:num w:numId="6"><w:abstractNumId w:val="5"/></w:num>'
    )
    style = (
        '<w:style w:type="numbering" w:styleId="legal"><w:pPr><w:numPr><w:numId w:val="1"/>'
        "</w:numPr></w:pPr></w:style>"
    )
    lists = numbering(level(0, "decimal", "§ %1"), more=linked)
    assert texts(item("Rent", 6), styles=style, numbering=lists) == ["§ 1 Rent"]


def test_the_number_of_a_heading_is_in_the_title_of_its_passage():
    styles = "".join(
        f'<w:style w:styleId="h{n}"><w:name w:val="heading {n}"/><w:pPr><w:numPr><w:ilvl w:val="{n - 1}"/>'
        f'<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        for n in (1, 2)
    )
    heading = '<w:pStyle w:val="h{}"/>'.format
    body = (
        paragraph("Rent", heading(1))
        + paragraph("General", heading(1))
        + paragraph("Force Majeure", heading(2))
        + paragraph("Neither party is liable.")
    )
    content = word_document(body, styles=styles, numbering=LEGAL)
    passage = list(chunk_document("lease.docx", parts_of(content), "paragraph"))[-1]
    assert passage.title == "lease.docx › 2. General › 2.1 Force Majeure"


def test_a_text_box_is_read_after_the_words_before_it():
    box = f"<w:r><w:pict><v:textbox><w:txbxContent>{paragraph('In a box.')}</w:txbxContent></v:textbox></w:pict></w:r>"
    assert texts(f"<w:p>{run('Text.')}{box}</w:p>") == ["Text.", "In a box."]


BOX = "<w:txbxContent>{}</w:txbxContent>".format


@pytest.mark.parametrize(
    ("choice", "fallback"),
    [
        (
            f"<w:drawing><wps:txbx>{BOX(paragraph('Boxed.'))}</wps:txbx></w:drawing>",
            f"<w:pict>{BOX(paragraph('Boxed.'))}</w:pict>",
        ),
        ("<w:drawing/>", f"<w:pict>{BOX(paragraph('Boxed.'))}</w:pict>"),
    ],
)
def test_one_of_two_alternatives_is_read(choice, fallback):
    both = f'<mc:AlternateContent><mc:Choice Requires="wps">{choice}</mc:Choice><mc:Fallback>{fallback}</mc:Fallback></mc:AlternateContent>'
    assert texts(f"<w:p><w:r>{both}</w:r></w:p>") == ["Boxed."]


def test_the_package_names_the_main_part():
    files = word_parts(paragraph("Read."))
    files["word/document2.xml"] = files.pop("word/document.xml")
    files["_rels/.rels"] = relations(("r1", "officeDocument", "/word/document2.xml"))
    assert runs(".docx", archive(files)) == [(1, 0, "Read.")]


def test_a_strict_file_is_read():
    files = word_parts(table(row("a", "1"), row("b", "2")))
    for usual, strict in STRICT.items():
        files = {name: part.replace(usual, strict) for name, part in files.items()}
    assert [text for *_, text in runs(".docx", archive(files))] == ["a: 1.", "b: 2."]


@pytest.mark.parametrize(
    ("name", "chunk"),
    [
        ("a.html", "<html><body><p>Other text.</p></body></html>"),
        ("a.txt", "Other text."),
        ("a.mht", "MIME-Version: 1.0\nContent-Type: text/html\n\n<p>Other text.</p>"),
        ("a.rtf", r"{\rtf1 Other text.\par}"),
        ("a.docx", word_document(paragraph("Other text."))),
    ],
)
def test_a_part_in_another_format_is_read(name, chunk):
    body = paragraph("Before.") + '<w:altChunk r:id="c"/>' + paragraph("After.")
    content = word_document(body, [("c", "aFChunk", name)], {f"word/{name}": chunk})
    assert runs(".docx", content) == [(1, 0, "Before."), (2, 0, "Other text."), (3, 0, "After.")]


def test_a_document_within_itself_ends():
    content = b""
    for _ in range(6):
        more = {"word/a.docx": content} if content else {}
        body = paragraph("Again.") + '<w:altChunk r:id="c"/>'
        content = word_document(body, [("c", "aFChunk", "a.docx")], more)
    assert len(runs(".docx", content)) == 4


def test_a_part_that_cannot_be_read_is_told():
    body = paragraph("Before.") + '<w:altChunk r:id="c"/>'
    content = word_document(body, [("c", "aFChunk", "a.bin")], {"word/a.bin": b"\x00\x01"})
    assert unread(content) == [Unread("part in another format")]


def with_header(body):
    header = f"<w:hdr xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'>{paragraph('Mill Ltd.')}</w:hdr>"
    return word_document(body, [("h", "header", "header1.xml")], {"word/header1.xml": header})


def test_a_running_head_is_told():
    assert unread(with_header(paragraph("Text."))) == [Unread("running head")]


def test_a_running_head_is_read_where_there_is_no_other_text():
    assert runs(".docx", with_header("<w:p/>")) == [(2, 0, "Mill Ltd.")]


def test_a_chart_is_read_as_a_table():
    drawing = '<w:p><w:r><w:drawing><c:chart r:id="c"/></w:drawing></w:r></w:p>'
    part = chart_part(["2024", "2025"], Rye=[0.25, 0.5], Oats=[0.75, 0.5])
    content = word_document(
        drawing, [("c", "chart", "charts/chart1.xml")], {"word/charts/chart1.xml": part}
    )
    assert [text for *_, text in runs(".docx", content)] == [
        "Shares",
        "2024; Rye: 25.0%; Oats: 75.0%.",
        "2025; Rye: 50.0%; Oats: 50.0%.",
    ]


def test_elements_nested_too_deeply_are_refused():
    deep = "<w:sdt>" * 5_000 + "</w:sdt>" * 5_000
    with pytest.raises(UnreadableFile, match="nested too deeply"):
        texts(deep)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"),
        ("<w:p><w:r><w:pict>", "</w:pict></w:r></w:p>"),
        ("<w:sdt>", "</w:sdt>"),
        ("<mc:AlternateContent><mc:Choice>", "</mc:Choice></mc:AlternateContent>"),
    ],
)
def test_elements_as_deep_as_allowed_are_read(opening, closing):
    count = 240 // opening.count("<")
    assert texts(opening * count + paragraph("Deep.") + closing * count) == ["Deep."]


def test_equations_as_deep_as_allowed_are_read():
    opening = "<m:sSup><m:e>" * 120
    closing = "</m:e></m:sSup>" * 120
    formula = f"<m:oMath>{opening}<m:r><m:t>x</m:t></m:r>{closing}</m:oMath>"
    assert texts(f"<w:p>{formula}</w:p>") == ["x"]


@pytest.mark.parametrize("suffix", [".docm", ".dotx", ".dotm"])
def test_templates_are_read_as_documents(suffix):
    assert runs(suffix, word_document(paragraph("Read."))) == [(1, 0, "Read.")]
