"""Rich Text Format: encodings, destinations, tables, lists, marks, and HTML that is wrapped in it."""

import pytest
from mixed_documents import runs, text_runs

from ifqa.corpus.documents.decoding import Unread, UnreadableFile
from ifqa.corpus.documents.readers import READERS

FONTS = r"{\fonttbl{\f0 Times;}{\f1\fcharset204 Times Cyr;}{\f2\fcharset2 Symbol;}{\f3\fcharset2 Wingdings;}{\f4\fcharset128 Mincho;}}"


def rtf(body, before=r"\ansi\ansicpg1252\deff0"):
    return rf"{{\rtf1{before}{FONTS}{body}}}".encode("latin-1")


def texts(body, **options):
    return [text for _, _, text in runs(".rtf", rtf(body, **options))]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (r"caf\'e9 \'80 5\par", "café € 5"),
        (r"{\f1 \'cc\'e8\'ef} ok\par", "Мип ok"),
        (r"{\f2 \'61\'62} decay\par", "αβ decay"),
        (r"{\f3 \'61\'62}bullet\par", "bullet"),
        (r"{\f4 \'83e\'83X\'83\'67}\par", "テスト"),
        (r"\u8211?\u8220\'93x\uc0\u8221\par", "–“x”"),
        (r"\u-10179?\u-8704?\par", "😀"),
        (r"{\f2\u-3999?} ray\par", "α ray"),
        (r"a\emdash b\~c\_d\-e \{f\} \\ g\par", "a—b c-de {f} \\ g"),
        (r"{\upr{plain}{\*\ud{\u322?\u243?d\u378?}}}\par", "łódź"),
        (r"{\pict\bin5 }{\\x} shown\par", "shown"),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt the map}}\par", "the map"),
        (r"{\header Running head\par}{\info{\title T}}Body\par", "Body"),
        (r"{\*\unknown not this}{\*\bkmkstart x}Body\par", "Body"),
        (r"now {\v hidden }{\strike struck }{\deleted gone }shown\par", "now shown"),
        (r"\v hidden \plain shown\par", "shown"),
        (r"6 \'d7 10{\super 24} kg of H{\sub 2}O\par", "6 × 10^24 kg of H2O"),
        (r"The mill.{\super 3} It\par", "The mill. 3 It"),
    ],
)
def test_text_is_read_as_it_is_shown(body, shown):
    assert texts(body) == [shown]


def test_a_code_page_of_the_macintosh_is_known():
    assert texts(r"caf\'8e\par", before=r"\mac") == ["café"]


def test_paragraphs_are_counted_with_empty_ones():
    assert runs(".rtf", rtf(r"One\par\par Three\par")) == [(1, 0, "One"), (3, 0, "Three")]


def test_a_heading_has_the_level_of_its_paragraph_or_style():
    styles = (
        r"{\stylesheet{\s1 heading 1;}{\s2\outlinelevel1 Mine;}{\s3\sbasedon2 Below;}{\s4 Title;}}"
    )
    body = styles + (
        r"\pard\s1 A\par\pard\s2 B\par\pard\s3 C\par\pard\s4 D\par"
        r"\pard\outlinelevel3 E\par\pard F\par"
    )
    assert [level for _, level, _ in runs(".rtf", rtf(body))] == [1, 2, 2, 1, 4, 0]


def test_a_note_follows_its_paragraph():
    body = r"The mill{\super\chftn{\footnote\pard\plain A note.}} stands.\par Next.\par"
    assert runs(".rtf", rtf(body)) == [
        (1, 0, "The mill stands."),
        (1, 0, "A note."),
        (2, 0, "Next."),
    ]


def test_a_text_box_follows_its_paragraph():
    body = r"A{\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt In the box\par}}{\shprslt old}} b.\par"
    assert texts(body) == ["A b.", "In the box"]


ROW = r"\trowd\cellx1000\cellx2000\pard\intbl "


def test_a_row_has_the_names_of_its_columns():
    body = (
        ROW + r"Item\cell Price\cell\row" + ROW + r"Lamp\cell 30\cell\row"
        rf"{ROW}Chair\cell\cell\row\pard After.\par"
    )
    assert runs(".rtf", rtf(body)) == [
        (2, 0, "Item: Lamp; Price: 30."),
        (3, 0, "Item: Chair."),
        (4, 0, "After."),
    ]


def test_a_cell_as_wide_as_two_counts_for_both_columns():
    body = (
        r"\trowd\trhdr\cellx1000\cellx2000\cellx3000\intbl Item\cell Old\cell New\cell\row"
        r"\trowd\cellx1000\cellx3000\intbl Lamp\cell 30\cell\row\pard"
    )
    assert texts(body) == ["Item: Lamp; Old: 30; New: 30."]


def test_a_cell_merged_with_the_one_above_counts_for_its_row():
    edges = r"\clvmgf\cellx1000\cellx2000"
    below = r"\clvmrg\cellx1000\cellx2000"
    body = (
        r"\trowd\trhdr\cellx1000\cellx2000\intbl Mill\cell Year\cell\row"
        rf"\trowd{edges}\intbl Aldbrook\cell 1901\cell\row"
        rf"\trowd{below}\intbl\cell 1950\cell\row\pard"
    )
    assert texts(body) == ["Mill: Aldbrook; Year: 1901.", "Mill: Aldbrook; Year: 1950."]


def test_a_table_whose_rows_all_repeat_keeps_its_rows():
    row = r"\trowd\trhdr\cellx1000\cellx2000\intbl {}\cell {}\cell\row"
    body = "".join(row.format(*cells) for cells in [("Item", "Price"), ("Lamp", 30), ("Bed", 9)])
    assert texts(body + r"\pard") == ["Item: Lamp; Price: 30.", "Item: Bed; Price: 9."]


def items(body):
    return [(run.item, run.text.strip()) for run in text_runs(".rtf", rtf(body))]


def test_the_number_of_an_item_is_kept():
    assert items(r"{\listtext 5.4\tab}Force Majeure\par") == [(True, "5.4 Force Majeure")]


def test_the_bullet_of_an_item_is_left_out():
    body = r"{\listtext\f2\'b7\tab}Lamp\par{\pntext o\tab}Chair\par\bullet\tab Bed\par"
    assert items(body) == [(True, "Lamp"), (True, "Chair"), (True, "Bed")]


def test_hidden_pieces_are_told():
    parts = list(READERS[".rtf"][1](rtf(r"a{\v b}{\v c} d{\deleted e}\par"), ()))
    assert parts[-1] == Unread("hidden or deleted piece", 2)


def test_html_that_outlook_wrapped_is_read_as_html():
    body = (
        r"{\*\htmltag64 <h1>}Plan{\*\htmltag72 </h1>}\htmlrtf {\b \htmlrtf0 {\*\htmltag64 <p>}"
        r"A {\*\htmltag84 &lt;}b\htmlrtf }\htmlrtf0 {\*\htmltag72 </p>}"
    )
    assert runs(".rtf", rtf(body, before=r"\ansi\fromhtml1")) == [(1, 1, "Plan"), (1, 0, "A <b")]


def test_groups_that_are_nested_too_deeply_are_unreadable():
    with pytest.raises(UnreadableFile, match="nested more than"):
        list(READERS[".rtf"][1](rtf("{" * 20_000), ()))


def test_a_file_without_its_start_is_unreadable():
    with pytest.raises(UnreadableFile, match="Word 97"):
        list(READERS[".rtf"][1](b"\0\1\2", ()))
