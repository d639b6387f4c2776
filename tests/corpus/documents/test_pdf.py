"""PDF files: running heads, forms, columns, tables and marks by their places on the page."""

import itertools
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import pdf

from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile, clean_text
from ifqa.corpus.documents.pdf import read_pdf
from ifqa.corpus.documents.pdf_layout import Span, order_rows

FONTS = {"F1": "Helvetica", "F2": "Courier"}
BODY = ["The wheel is of oak.", "It has 36 buckets.", "Ruth Hallam built it.", "It turns."]


@dataclass
class Drawing:
    """The text, rules and fields of a page of 612 by 842 points."""

    content: str = ""
    fields: list = field(default_factory=list)
    rotation: int = 0
    size: tuple = (612, 842)

    def write(self, x, y, text, size=11, font="F1"):
        escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        self.content += f"BT /{font} {size} Tf {x} {y} Td ({escaped}) Tj ET\n"
        return self

    def draw(self, content):
        self.content += content
        return self

    def rule(self, x, y, right, top):
        self.content += f"{x} {y} m {right} {top} l S\n"
        return self

    def fill(self, box, entries):
        rectangle = " ".join(map(str, box))
        self.fields.append(
            f"<< /Type /Annot /Subtype /Widget /F 4 /Rect [{rectangle}] {entries} >>"
        )
        return self


def save(*drawings, xfa=False):
    """A PDF of drawings."""
    objects = ["", ""]
    fonts = ""
    for name, font in FONTS.items():
        objects.append(
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{font} /Encoding /WinAnsiEncoding >>"
        )
        fonts += f"/{name} {len(objects)} 0 R "
    kids = list[str]()
    fields = list[str]()
    for drawing in drawings:
        content = drawing.content.encode("cp1252").decode("cp1252")
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        stream = len(objects)
        annotations = list[str]()
        for entries in drawing.fields:
            objects.append(entries)
            annotations.append(f"{len(objects)} 0 R")
        width, height = drawing.size
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] "
            f"/Rotate {drawing.rotation} /Contents {stream} 0 R /Annots [{' '.join(annotations)}] "
            f"/Resources << /Font << {fonts} >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
        fields += annotations
    form = f"/AcroForm << /Fields [{' '.join(fields)}] {'/XFA (x)' if xfa else ''} >>"
    objects[0] = (
        f"<< /Type /Catalog /Pages 2 0 R {form if fields or xfa else ''} {'/NeedsRendering true' if xfa else ''} >>"
    )
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
    written = "%PDF-1.5\n"
    places = list[int]()
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    written += f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{written.index('xref')}\n%%EOF"
    return (written + trailer).encode("cp1252")


def texts(content):
    return [clean_text(run.text) for run in read_pdf(content) if isinstance(run, TextRun)]


def unread(content):
    return {part.what: part.count for part in read_pdf(content) if isinstance(part, Unread)}


def lines(*written, top=780, size=11, pitch=16, x=60):
    drawing = Drawing()
    for number, text in enumerate(written):
        if text:
            drawing.write(x, top - pitch * number, text, size)
    return drawing


def with_head(head, count, foot=""):
    """Pages of a text below a head and above a foot, both apart; {n} is the page's number."""
    return pdf(
        [
            [head.format(n=n), "", *(f"{line} ({n})" for line in BODY), "", foot.format(n=n)]
            for n in range(1, count + 1)
        ]
    )


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        ("{n}", 0),
        ("Page {n} of 6", 0),
        ("- {n} -", 0),
        ("Annual report | {n}", 0),
        ("Annual report", 1),  # on the first page, as a letter's head
        ("Invoice number {n}", 6),
        ("Room: {n}", 6),
        ("Room 10{n}", 6),
        ("{n}. The wheel", 6),
    ],
)
def test_a_number_is_a_running_head_if_it_is_that_of_the_page_alone(head, kept):
    found = texts(with_head(head, 6))
    assert sum(head.format(n=n) in found for n in range(1, 7)) == (
        kept if "{" in head else 6 * kept
    )
    assert sum(text == head for text in found) == (kept if "{" not in head else 0)


def test_lines_that_are_alike_on_each_page_are_text_unless_they_stand_apart():
    pages = [[f"Invoice number 100{n}", "Mill Lane 4", f"Total due: {n}5 euros"] for n in range(6)]
    assert texts(pdf(pages)) == [line for page in pages for line in page]


def test_a_larger_line_that_is_repeated_is_a_title():
    pages = [lines("", "", *(f"{line} {n}" for line in BODY)) for n in range(4)]
    for page in pages:
        page.write(60, 780, "The wheel", 20)
    assert texts(save(*pages)).count("The wheel") == 4


def test_the_number_of_dropped_lines_is_told():
    assert unread(with_head("Annual report", 6, "{n}")) == {"running-head line": 5 + 6}


def test_dropped_lines_of_a_table_of_contents_are_told():
    contents = ["Contents", *(f"{n} Welcome . . . . . . . {n}" for n in range(1, 5))]
    assert unread(pdf([contents, BODY])) == {"contents line": 5}


def test_a_file_of_nothing_but_running_heads_has_text():
    assert texts(pdf([["This page is left blank."]] * 4)) == ["This page is left blank."]


def test_a_scan_with_page_numbers_has_no_text():
    with pytest.raises(UnreadableFile, match="no text on its 3 pages"):
        texts(pdf([["1"], ["2"], ["3"]]))


PICTURE = "q 400 0 0 400 100 200 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x20 EI Q\n"


def test_pages_without_text_are_told():
    scans = [Drawing(PICTURE), lines("3").draw(PICTURE)]
    assert unread(save(lines(*BODY), *scans)) == {"page without text": 2, "running-head line": 1}


def test_a_page_of_letters_drawn_as_shapes_is_told():
    shapes = "".join(f"{60 + n} 700 m {61 + n} 710 l {62 + n} 700 l f\n" for n in range(60))
    assert unread(save(lines(*BODY), Drawing(shapes))) == {"page without text": 1}


def test_an_empty_page_is_not_told():
    framed = Drawing().rule(60, 60, 500, 60).rule(60, 780, 500, 780)
    assert unread(save(lines(*BODY), Drawing(), framed)) == {}


TEXT_FIELD = "/FT /Tx /T (t) /V (Mara Lund)"


def test_the_value_of_a_field_is_read_after_its_label_on_the_left():
    page = lines("Name of the tenant:").fill((200, 775, 400, 795), TEXT_FIELD)
    assert texts(save(page)) == ["Name of the tenant: Mara Lund"]


def test_the_value_of_a_field_is_read_after_its_label_above():
    page = lines("Tenant", "", "It begins in May.").fill((60, 760, 400, 775), TEXT_FIELD)
    assert texts(save(page)) == ["Tenant: Mara Lund", "It begins in May."]


def test_the_value_of_a_field_within_a_sentence_is_read_at_its_place():
    page = lines("I, ____________, rent the barn.").fill((72, 777, 135, 792), TEXT_FIELD)
    assert texts(save(page)) == ["I, Mara Lund, rent the barn."]


def test_a_field_without_a_label_has_its_own_name():
    named = TEXT_FIELD + " /TU (Tenant)"
    page = lines("It begins in May.").fill((60, 500, 400, 520), named)
    assert texts(save(page)) == ["It begins in May.", "Tenant: Mara Lund"]


def test_a_file_of_nothing_but_the_values_of_fields_has_text():
    assert texts(save(Drawing().fill((60, 500, 400, 520), TEXT_FIELD))) == ["Mara Lund"]


def test_the_choice_of_a_list_is_read():
    chosen = "/FT /Ch /Ff 131072 /T (c) /Opt [(Barn) (Mill)] /V (Mill) /I [1]"
    assert texts(save(lines("House:").fill((120, 775, 200, 795), chosen))) == ["House: Mill"]


def box_to_tick(state):
    return f"/FT /Btn /T (b) /AS /{state} /AP << /N << /Yes 1 0 R /Off 1 0 R >> >>"


def test_ticked_boxes_are_read_before_their_labels():
    page = lines("Smoker:").write(140, 780, "yes").write(240, 780, "no")
    page.fill((120, 778, 132, 790), box_to_tick("Off"))
    page.fill((220, 778, 232, 790), box_to_tick("Yes"))
    assert texts(save(page)) == ["Smoker: [ ] yes [x] no"]


def test_boxes_of_a_form_that_was_not_filled_in_are_not_read():
    page = lines("Smoker", x=80).fill((60, 778, 72, 790), box_to_tick("Off"))
    assert texts(save(page)) == ["Smoker"]


@pytest.mark.parametrize("entries", ["/FT /Tx /T (t) /F 2 /V (secret)", "/FT /Tx /Ff 8192 /T (t)"])
def test_a_hidden_field_is_not_read(entries):
    page = lines("Name:")
    page.fields.append(
        f"<< /Type /Annot /Subtype /Widget /Rect [100 775 200 795] {entries} /V (secret) >>"
    )
    assert texts(save(page)) == ["Name:"]


def test_a_text_that_was_typed_onto_a_page_is_read():
    page = lines("Name:")
    page.fields.append(
        "<< /Type /Annot /Subtype /FreeText /Rect [100 775 200 795] /Contents (Mara Lund) >>"
    )
    assert texts(save(page)) == ["Name: Mara Lund"]


LEFT = [f"The keeper lit the lamp {n} and wrote" for n in range(8)]
RIGHT = [f"Boats and nets number {n} were on the quay" for n in range(8)]


def test_columns_that_are_drawn_line_by_line_are_read_one_after_the_other():
    page = Drawing()
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        page.write(60, 700 - 14 * number, left).write(320, 700 - 14 * number, right)
    assert texts(save(page)) == LEFT + RIGHT


PROSE = [
    "The mill at Aldbrook grinds rye for the",
    "bakery in Marlow. If the brake fails, the",
    "sluice is closed by Tom Ferris. His deputy",
    "is Nora Pike, who lives beside the mill",
    "pond and keeps the books of the company.",
]


def drawn(order, x=72, text=PROSE, page=None):
    """A page with a column of lines that are drawn in an order, given by their numbers."""
    page = page or Drawing()
    for number in order:
        page.write(x, 700 - 14 * number, text[number])
    return page


@pytest.mark.parametrize("order", [(4, 3, 2, 1, 0), (0, 1, 3, 4, 2), (1, 2, 4, 3, 0)])
def test_lines_of_a_column_are_read_from_the_top(order):
    assert texts(save(drawn(order))) == PROSE


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_three_lines_are_read_from_the_top_in_any_order(order):
    assert texts(save(drawn(order))) == PROSE[:3]


def test_columns_that_are_drawn_from_the_bottom_are_read_from_the_top():
    right = [f"{line.upper()}" for line in PROSE]
    page = drawn((4, 3, 2, 1, 0))
    assert texts(save(drawn((4, 3, 2, 1, 0), 400, right, page))) == PROSE + right


def test_a_line_far_from_those_before_it_stays_in_its_place():
    rows = [("File", "Description"), *((f"part {n}", f"the part {n} of all") for n in range(5))]
    page = Drawing().write(300, 40, "Page seven of this file is here")
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            page.write(120 + 210 * place, 700 - 16 * number, cell)
    page.write(330, 560, "is below the table")
    assert texts(save(page))[1] == "File: part 0; Description: the part 0 of all."


def test_labels_of_a_drawing_stay_in_the_order_of_the_file():
    page = lines(*PROSE)
    for number in range(6):
        page.write(80, 400 + 14 * number, f"{number}0")
    assert texts(save(page))[5:] == ["00", "10", "20", "30", "40", "50"]


ROWS = st.builds(
    lambda left, bottom, width: [
        Span("some words of text", 0, left, bottom, left + width, bottom + 11)
    ],
    st.integers(0, 500),
    st.integers(0, 800),
    st.integers(-50, 300),
)


@given(st.lists(ROWS, max_size=12))
def test_no_line_is_lost_by_putting_lines_in_order(rows):
    assert sorted(map(id, order_rows(rows))) == sorted(map(id, rows))


@given(st.lists(ROWS, max_size=12))
def test_lines_from_right_to_left_stay_in_the_order_of_the_file(rows):
    turned = [
        [replace(span, left=span.right, right=span.left) for span in row]
        for row in rows
        if row[0].right > row[0].left
    ]
    assert order_rows(turned) == turned


def test_a_heading_over_both_columns_is_read_before_them():
    page = lines("A heading over both of the columns of the gazette of the island", top=730)
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        page.write(60, 700 - 14 * number, left).write(320, 700 - 14 * number, right)
    assert texts(save(page))[1:] == LEFT + RIGHT


PRICES = [["Item", "Old", "New"], ["Lamp", "", "120"], ["Chair", "99", "30"], ["Desk", "12", "14"]]
SENTENCES = ["Item: Lamp; New: 120.", "Item: Chair; Old: 99; New: 30."]
SENTENCES += ["Item: Desk; Old: 12; New: 14."]


def table(rows, drawing=None, top=700, places=(60, 160, 260), pitch=18):
    drawing = drawing or Drawing()
    for number, row in enumerate(rows):
        for x, cell in zip(places, row, strict=True):
            if cell:
                drawing.write(x, top - pitch * number, cell)
    return drawing


def grid(drawing, heights, places):
    for y in heights:
        drawing.rule(places[0], y, places[-1], y)
    for x in places:
        drawing.rule(x, heights[-1], x, heights[0])
    return drawing


def test_aligned_cells_are_the_rows_of_a_table():
    assert texts(save(table(PRICES))) == SENTENCES


def test_a_row_without_its_number_is_no_header():
    rows = [["Item", "Place", "Price"], ["Lamp", "hall", ""], ["Bed", "loft", "80"]]
    rows += [["Chair", "hall", "30"], ["Desk", "loft", "50"]]
    assert texts(save(table(rows)))[:2] == [
        "Item: Lamp; Place: hall.",
        "Item: Bed; Place: loft; Price: 80.",
    ]


def test_equal_cells_are_no_merged_one():
    rows = [["Item", "1990", "1991"], ["Lamp", "12", "14"], ["none", "none", "none"]]
    assert texts(save(table(rows)))[1] == "Item: none; 1990: none; 1991: none."


def test_a_table_on_a_rotated_page_is_read():
    page = Drawing(rotation=90)
    for number, row in enumerate(PRICES):
        for y, cell in zip((60, 160, 260), row, strict=True):
            x = 100 + 18 * number
            page.content += f"BT /F1 11 Tf 0 1 -1 0 {x} {y} Tm ({cell}) Tj ET\n" if cell else ""
    assert texts(save(page)) == SENTENCES


def test_a_cell_of_two_lines_between_rules_is_one_cell():
    page = table(
        [["Item", "Price"], ["Desk lamp with", "12"], ["a long arm", ""]], None, 700, (65, 165)
    )
    page = table([["Chair", "30"]], page, 640, (65, 165))
    assert texts(save(grid(page, (715, 695, 658, 630), (60, 160, 240)))) == [
        "Item: Desk lamp with a long arm; Price: 12.",
        "Item: Chair; Price: 30.",
    ]


def test_a_cell_over_two_columns_counts_for_both():
    rows = [["Item", "1990", "1991"], ["Lamp", "12", "14"], ["Chair", "30", "31"]]
    page = table(rows, None, 700)
    page.write(60, 646, "Desk").write(165, 646, "the same price in both")
    found = texts(save(grid(page, (715, 695, 677, 659, 640), (55, 155, 255, 355))))
    assert found[-1] == "Item: Desk; 1990: the same price in both; 1991: the same price in both."


@pytest.mark.parametrize("repeated", [True, False])
def test_a_table_goes_on_over_a_page_with_the_names_of_its_columns(repeated):
    below = [["Bed", "80", "85"], ["Stool", "9", "8"], ["Shelf", "40", "41"]]
    second = table(PRICES[:1] + below if repeated else below)
    assert texts(save(table(PRICES), second))[-3:] == [
        "Item: Bed; Old: 80; New: 85.",
        "Item: Stool; Old: 9; New: 8.",
        "Item: Shelf; Old: 40; New: 41.",
    ]


def test_text_below_a_table_begins_a_paragraph():
    page = table(PRICES).write(60, 560, "That is all.")
    runs = [run for run in read_pdf(save(page)) if isinstance(run, TextRun)]
    assert (runs[-1].text, runs[-1].opens) == ("That is all.", True)


@pytest.mark.parametrize(
    "rows",
    [
        [["-", "The wheel"], ["-", "The race"], ["-", "The sluice"]],  # a list
        [["1.", "The wheel"], ["2.", "The race"], ["3.", "The sluice"]],
        [["1 Welcome", ". . . . . . 1"], ["2 Wheel", ". . . . . . 2"], ["3 Race", ". . . . . 3"]],
        [["7", "begin"], ["8", "end"], ["9", "next"]],  # a program
        [["The wheel", "of oak"], ["It turns", "slowly"]],  # two rows
    ],
)
def test_what_may_be_no_table_is_read_as_lines(rows):
    runs = read_pdf(save(table(rows, None, 700, (60, 130))))
    assert not any(run.row for run in runs if isinstance(run, TextRun))


def test_code_with_comments_in_a_column_is_no_table():
    page = Drawing()
    for number, (code, comment) in enumerate(
        [("x = 1", "# width"), ("y = 22", "# Height"), ("Wide = y", "# more")]
    ):
        page.write(60, 700 - 14 * number, code, font="F2")
        page.write(160, 700 - 14 * number, comment, font="F2")
    assert texts(save(page)) == ["x = 1 # width", "y = 22 # Height", "Wide = y # more"]


@pytest.mark.parametrize(
    ("before", "mark", "rise", "after", "text"),
    [
        ("It weighs 10", "24", 4, " kg.", "It weighs 10^24 kg."),
        ("The room has 24 m", "2", 4, " or so.", "The room has 24 m2 or so."),
        ("It is H", "2", -2, "O and more.", "It is H2O and more."),
        ("The mill", "3", 4, " burned.", "The mill 3 burned."),
        ("It stood for years.", "12", 4, " Then", "It stood for years. 12 Then"),
        ("On the 24", "th", 4, " of May", "On the 24th of May"),
        ("In room 10", "24", 0, " it is", "In room 1024 it is"),
    ],
)
def test_superscripts_are_told_from_digits(before, mark, rise, after, text):
    content = f"BT /F1 11 Tf 60 700 Td ({before}) Tj /F1 7 Tf {rise} Ts ({mark}) Tj "
    content += f"/F1 11 Tf 0 Ts ({after}) Tj ET"
    assert texts(save(Drawing(content))) == [text]


@pytest.mark.parametrize(
    ("written", "items"),
    [
        (["It has:", "- a wheel", "of oak", "- a race"], [False, True, False, True]),
        (["It has:", "(a) a wheel", "(b) a race"], [False, True, True]),
        (["It ended.", "5.4 force majeure frees", "both parties."], [False, True, False]),
        (["It was sold for", "12. It was new."], [False, False]),
    ],
)
def test_a_bullet_or_a_number_opens_an_item(written, items):
    runs = [run for run in read_pdf(pdf([written])) if isinstance(run, TextRun)]
    assert [run.item for run in runs] == items


def test_a_form_of_xml_is_named():
    with pytest.raises(UnreadableFile, match="a form of XML"):
        texts(save(lines("Please wait..."), xfa=True))


@given(
    st.lists(
        st.tuples(
            st.integers(-50, 700),
            st.integers(-50, 900),
            st.text("ab1 .-:|", min_size=1, max_size=12),
            st.sampled_from([7, 11, 20]),
        ),
        max_size=30,
    )
)
def test_text_anywhere_on_a_page_is_read(pieces):
    page = Drawing()
    for x, y, text, size in pieces:
        page.write(x, y, text, size)
    try:
        found = "".join(texts(save(page)))
    except UnreadableFile:
        return
    assert found or not any(text.strip() for _, _, text, _ in pieces)
