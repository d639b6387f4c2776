"""Tables of any format: which rows are a header, and what each row says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.rows import Row
from ifqa.corpus.documents.table_headers import cell_kind, find_header, first_rows
from ifqa.corpus.documents.tables import column_names, table_runs


def texts(table, **settings):
    """The sentences of a table's rows; its cells are parted by commas, its rows by line breaks."""
    rows = enumerate((line.split(",") for line in table.split("\n")), start=1)
    return [run.text for run in table_runs(rows, **settings)]


def test_each_value_has_the_name_of_its_column():
    assert texts("name,works since\nTom Ferris,1998\nNora Pike,2004") == [
        "name: Tom Ferris; works since: 1998.",
        "name: Nora Pike; works since: 2004.",
    ]


def test_an_empty_cell_keeps_its_place():
    assert texts("Item,Old price,New price\nLamp,,30\nChair,99,120")[0] == (
        "Item: Lamp; New price: 30."
    )


def test_a_number_over_numbers_is_no_name():
    assert texts("Lamp,Oslo,3\nChair,Bergen,4") == ["Lamp; Oslo; 3.", "Chair; Bergen; 4."]


def test_a_value_that_stands_again_below_is_no_name():
    assert texts("Lamp,Oslo,red\nChair,Bergen,blue\nDesk,Oslo,green")[0] == "Lamp; Oslo; red."


def test_two_columns_without_a_header_are_keys_with_their_values():
    assert texts("Owner,Tom Ferris\nDeputy,Nora Pike\nFounded,1903") == [
        "Owner: Tom Ferris.",
        "Deputy: Nora Pike.",
        "Founded: 1903.",
    ]


def test_keys_over_numbers_are_no_header():
    assert texts("Name,Mill\nFounded,1903\nCapacity,40\nStaff,12")[0] == "Name: Mill."


def test_keys_of_a_form_have_the_value_beside_them():
    form = "Name:,Nora Pike,Date:,3 May\nRole:,deputy,Place:,Oslo"
    assert texts(form) == ["Name: Nora Pike; Date: 3 May.", "Role: deputy; Place: Oslo."]


def test_years_are_names_of_columns():
    assert texts("State,2019,2020\nAlaska,5,6\nAlabama,1,2")[0] == (
        "State: Alaska; 2019: 5; 2020: 6."
    )


def test_the_first_column_may_have_no_name():
    assert texts(",Price\nLamp,30\nChair,99") == ["Lamp; Price: 30.", "Chair; Price: 99."]


def test_a_table_of_one_row_is_text():
    assert texts("Lamp,30,red") == ["Lamp; 30; red."]


def test_one_cell_is_its_text():
    assert texts("All prices exclude VAT of 25 percent.") == [
        "All prices exclude VAT of 25 percent."
    ]


def test_rows_above_the_header_are_text():
    assert texts("Mills of Norway\nname,year\nOld,1901\nNew,1950") == [
        "Mills of Norway.",
        "name: Old; year: 1901.",
        "name: New; year: 1950.",
    ]


def test_keys_above_a_table_are_apart_from_it():
    table = "Updated,2024-05-30\n\nCountry,Code,1960,1961\nAruba,ABW,1,2"
    assert texts(table) == ["Updated: 2024-05-30.", "Country: Aruba; Code: ABW; 1960: 1; 1961: 2."]


def test_names_of_groups_are_before_those_of_their_columns():
    table = ",2019,,2020,\nState,Men,Women,Men,Women\nAlaska,5,6,7,8\nAlabama,1,2,3,4"
    assert texts(table)[0] == (
        "State: Alaska; 2019 Men: 5; 2019 Women: 6; 2020 Men: 7; 2020 Women: 8."
    )


def test_a_second_table_has_a_header_of_its_own():
    tables = "Item,Price\nLamp,30\n\nName,Role,Since\nTom,chair,1998\nNora,deputy,2004"
    assert texts(tables)[1:] == [
        "Name: Tom; Role: chair; Since: 1998.",
        "Name: Nora; Role: deputy; Since: 2004.",
    ]


def test_a_repeated_header_is_no_row():
    assert texts("Item,Price\nLamp,30\n\nItem,Price\nChair,99") == [
        "Item: Lamp; Price: 30.",
        "Item: Chair; Price: 99.",
    ]


def test_rows_below_an_empty_one_keep_the_names():
    assert texts("Item,Price\nLamp,30\n\nChair,99")[1] == "Item: Chair; Price: 99."


def test_a_note_below_a_table_is_text():
    assert texts("Item,Price\nLamp,30\n\nPrices exclude VAT.")[1] == "Prices exclude VAT."


def test_a_number_alone_in_its_row_keeps_the_name_of_its_column():
    assert texts("Number,Item\n1,Lamp\n2\n3,Chair")[1] == "Number: 2."


def test_tables_beside_each_other_are_apart():
    tables = "Item,Price,,Name,Role\nLamp,30,,Tom,chair\nChair,99,,Nora,deputy"
    assert texts(tables)[2:] == ["Name: Tom; Role: chair.", "Name: Nora; Role: deputy."]


def test_an_empty_column_does_not_part_a_table_of_numbers():
    table = "Town,Inhabitants,,2019,2020\nAlta,30,,40,4\nBodo,99,,88,5"
    assert texts(table)[0] == "Town: Alta; Inhabitants: 30; 2019: 40; 2020: 4."


#: The cells of a row, and the columns into which the cell to their left is merged.
Merged = tuple[list[str], list[int]]


def merged_texts(*rows):
    """The sentences of rows of cells with the columns into which the cell to their left is merged."""
    numbered = (Row(place, cells, set(merged)) for place, (cells, merged) in enumerate(rows))
    return [run.text for run in table_runs(numbered)]


def test_a_cell_merged_over_the_whole_width_is_one():
    rows: tuple[Merged, ...] = (
        (["Item", "Price"], []),
        (["Lamps", "Lamps"], [1]),
        (["Desk lamp", "30"], []),
    )
    assert merged_texts(*rows, (["Wall lamp", "20"], [])) == [
        "Lamps.",
        "Item: Desk lamp; Price: 30.",
        "Item: Wall lamp; Price: 20.",
    ]


def test_equal_cells_are_no_merged_one():
    assert texts("sms,email,post\nyes,no,yes\nno,no,no")[1] == "sms: no; email: no; post: no."


def test_equal_cells_without_names_are_each_said():
    assert texts("Ann,yes,yes,no\nBob,yes,no,no\nCid,no,no,yes")[0] == "Ann; yes; yes; no."


def test_a_cell_merged_over_some_columns_has_the_names_of_all():
    rows: tuple[Merged, ...] = (
        (["Item", "2023", "2024"], []),
        (["Lamp", "40", "40"], [2]),
        (["Bed", "7", "9"], []),
    )
    assert merged_texts(*rows)[0] == "Item: Lamp; 2023: 40; 2024: 40."


def test_a_merged_name_of_a_group_is_no_title():
    rows: tuple[Merged, ...] = (
        (["", "2024", "2024"], [2]),
        (["Town", "Men", "Women"], []),
        (["Alta", "5", "6"], []),
    )
    assert (
        merged_texts(*rows, (["Bodo", "7", "8"], []))[0]
        == "Town: Alta; 2024 Men: 5; 2024 Women: 6."
    )


def test_a_declared_header_is_taken():
    assert texts("Ann,Bo\nCy,Dee", header=1) == ["Ann: Cy; Bo: Dee."]


def test_an_empty_row_may_stand_below_a_declared_header():
    table = "Item,Note\n,\nLamp,Red\n,\nChair,Old"
    assert texts(table, header=1) == ["Item: Lamp; Note: Red.", "Item: Chair; Note: Old."]


def test_a_table_that_declares_no_header_has_none():
    assert texts("Item,Price\nLamp,30\nChair,99", header=0)[0] == "Item: Price."


def test_the_column_title_is_the_heading_of_its_row():
    rows = [(1, ["title", "year"]), (2, ["Elm", "1901"]), (3, ["Oak", ""])]
    runs = list(table_runs(rows))
    assert [(run.place, run.level, run.text) for run in runs] == [
        (2, 1, "Elm"),
        (2, 0, "year: 1901."),
        (3, 1, "Oak"),
    ]


def test_a_row_without_a_title_is_not_below_that_of_another():
    rows = [(1, ["id", "title", "year"]), (2, ["1", "Elm", "1901"]), (3, ["2", "", "1950"])]
    assert [run.outside for run in table_runs(rows)] == [0, 0, 1]


def test_the_column_title_of_a_documents_table_is_a_column():
    rows = [(1, ["title", "year"]), (2, ["Elm", "1901"]), (3, ["Oak", "1950"])]
    assert [run.text for run in table_runs(rows, has_titles=False)] == [
        "title: Elm; year: 1901.",
        "title: Oak; year: 1950.",
    ]


def test_columns_can_be_chosen():
    assert texts("a,b,c\n1,2,3", columns=("b", "c")) == ["b: 2; c: 3."]


def test_a_missing_column_is_named():
    with pytest.raises(UnreadableFile, match="no column 'z'; found 'a', 'b'"):
        texts("a,b\n1,2", columns=("z",))


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ([["value", "value", ""]], ["value", "value (2)", "column 3"]),
        ([["", "x"]], ["", "x"]),
        ([["Name:", "Age"]], ["Name", "Age"]),
        ([["", "2019", ""], ["State", "Men", "Women"]], ["State", "2019 Men", "2019 Women"]),
    ],
)
def test_columns_have_different_names(header, names):
    assert column_names(header) == names


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("", "empty"),
        ("12", "number"),
        ("-1,234.50", "number"),
        ("$5", "number"),
        ("12.5%", "number"),
        ("2024-03-14", "number"),
        ("14:05", "number"),
        ("40 kg", "number"),
        ("Room 12", "mixed"),
        ("Lamp", "text"),
        ("n/a", "empty"),
        ("–", "empty"),
    ],
)
def test_dates_times_amounts_are_numbers(cell, kind):
    assert cell_kind(cell) == kind


@given(st.lists(st.lists(st.sampled_from(["", "a", "b c", "12", "x1"]), max_size=5), max_size=8))
def test_no_cell_is_lost_but_those_of_headers(cells):
    rows = list(enumerate(cells, start=1))
    runs = list(table_runs(rows, header=0))
    said = " ".join(run.text for run in runs)
    assert all(cell in said for row in cells for cell in row)


@given(st.lists(st.lists(st.sampled_from(["", "a", "b", "1"]), max_size=4), max_size=6))
def test_a_header_leaves_a_row(cells):
    rows = first_rows([Row(0, row) for row in cells if any(row)])
    assert find_header(rows) < max(len(cells), 1)


def test_a_table_of_nothing_but_a_declared_header_is_not_lost():
    assert texts("Item,Price\nLamp,30\nChair,99", header=3)[0] == "Item: Lamp; Price: 30."


def test_notes_in_several_cells_above_a_header_are_text():
    notes = "I like,to write,notes\nat the,top,of sheets"
    table = "Name,Age,Born\nTom,69,1947\nNora,60,1956\nIda,90,1926"
    assert texts(f"{notes}\n{table}")[:3] == [
        "I like; to write; notes.",
        "at the; top; of sheets.",
        "Name: Tom; Age: 69; Born: 1947.",
    ]


def test_a_merged_text_in_a_row_without_names_is_said_once():
    assert merged_texts((["Notes", "Notes", "Source", "Source"], [1, 3])) == ["Notes; Source."]


@pytest.mark.parametrize("missing", ["", "n/a", "N/A", "-", "–", "TBD", "n. a.", "retired", None])
def test_a_row_without_its_number_is_no_header(missing):
    row = ["Ann Lee", "Sales", *([] if missing is None else [missing])]
    below = ["Bob Ray,IT,204", "Cid Poe,IT,205", "Dan Moe,Law,206"]
    table = "\n".join(["employee,department,phone extension", ",".join(row), *below])
    assert texts(table)[1] == "employee: Bob Ray; department: IT; phone extension: 204."


def test_several_rows_without_their_numbers_are_no_header():
    table = "Name,Role,Left in\nAnn,Deputy,\nBob,Owner,\nCid,Miller,1998\nDan,Clerk,2001"
    assert texts(table)[1:3] == [
        "Name: Bob; Role: Owner.",
        "Name: Cid; Role: Miller; Left in: 1998.",
    ]


def test_a_row_without_its_number_below_an_empty_one_is_no_header():
    table = "name,city,age\nAnn,Oslo,30\n\nBob,Rome,n/a\nCid,Bern,44\nDan,Paris,45"
    assert texts(table)[1:3] == [
        "name: Bob; city: Rome; age: n/a.",
        "name: Cid; city: Bern; age: 44.",
    ]


def test_a_first_row_without_its_number_is_no_header_of_a_table_without_one():
    assert texts("Ann,Oslo,n/a\nBob,Rome,31\nCid,Bern,44")[0] == "Ann; Oslo; n/a."


@pytest.mark.parametrize(
    ("header", "first"),
    [
        ("item,2024-01-01,2024-02-01", "item: lamp; 2024-01-01: 1; 2024-02-01: 2."),
        ("item,31.01.2024,28.02.2024", "item: lamp; 31.01.2024: 1; 28.02.2024: 2."),
        ("item,1/2024,2/2024", "item: lamp; 1/2024: 1; 2/2024: 2."),
    ],
)
def test_dates_over_other_values_are_names_of_columns(header, first):
    assert texts(f"{header}\nlamp,1,2\nchair,4,5")[0] == first


def test_dates_over_dates_are_no_names():
    assert texts("Ann,2024-01-01,2024-02-01\nBob,2023-04-05,2023-06-07")[0] == (
        "Ann; 2024-01-01; 2024-02-01."
    )


@pytest.mark.parametrize(
    ("table", "first"),
    [
        ("size,10,20,30\nlamp,1,2,3\nchair,3,4,6", "size: lamp; 10: 1; 20: 2; 30: 3."),
        (",10,50,90\nlamp,1,2,3\nchair,3,4,6", "lamp; 10: 1; 50: 2; 90: 3."),
        (
            "Room,8:00,9:00,10:00\nA,Ann,Bob,Ann\nB,,Cid,Bob",
            "Room: A; 8:00: Ann; 9:00: Bob; 10:00: Ann.",
        ),
        ("x,5,10,15,20\nlamp,1,2,3,9\nbed,3,4,6,9", "x: lamp; 5: 1; 10: 2; 15: 3; 20: 9."),
    ],
)
def test_numbers_that_go_up_are_names_of_columns(table, first):
    assert texts(table)[0] == first


def test_numbers_that_go_up_by_chance_are_no_names():
    assert texts("Ann,3,4,5\nBob,1,4,2\nCid,2,2,3")[0] == "Ann; 3; 4; 5."


def test_numbers_in_each_row_of_a_series_are_no_names():
    assert texts("lamp,1,2,3,4\nbed,5,6,7,8\nchair,9,10,11,12")[0] == "lamp; 1; 2; 3; 4."


def test_units_below_the_names_join_them():
    assert texts("name,height,weight\n,cm,kg\nAnn,170,60\nBob,180,80") == [
        "name: Ann; height cm: 170; weight kg: 60.",
        "name: Bob; height cm: 180; weight kg: 80.",
    ]


def test_a_text_below_the_name_of_a_column_of_texts_is_no_unit():
    assert texts("name,city,age\n,Oslo,\nAnn,Rome,33\nBob,Bern,44")[0] == "city: Oslo."


@pytest.mark.parametrize(
    "table",
    ["name,city,age\n\nAnn,Oslo,30\nBob,Rome,33", "name,city,job\n\nAnn,Oslo,cook\nBob,Rome,nurse"],
)
def test_an_empty_row_may_stand_below_a_header(table):
    assert texts(table) == texts(table.replace("\n\n", "\n"))


def test_a_row_above_a_table_with_a_header_is_text():
    assert texts("Report,May,Oslo\n\nname,city,age\nAnn,Oslo,30\nBob,Rome,33")[:2] == [
        "Report; May; Oslo.",
        "name: Ann; city: Oslo; age: 30.",
    ]


def test_rows_with_an_empty_row_below_each_have_the_names():
    assert texts("name,city,job\n\nAnn,Oslo,cook\n\nBob,Rome,nurse") == [
        "name: Ann; city: Oslo; job: cook.",
        "name: Bob; city: Rome; job: nurse.",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        "Report of May\nGenerated 2024-01-01",
        "Buy milk\nCall Ann at 5pm\nFix 2 doors",
        "Source: Statistics Office\nUpdated 2023",
        "All amounts are in thousands of euros\nAs of 31 December 2023",
        "• Description\n• Options\n• Files",
    ],
)
def test_lines_of_one_column_are_all_text(lines):
    assert texts(lines) == [f"{line}." for line in lines.split("\n")]


def test_lines_below_a_table_are_all_text():
    table = "Name,City,Age\nAnn,Oslo,31\nBob,Rome,32"
    notes = "All amounts are in euros,,\nAs of 31 December 2023,,"
    assert texts(f"{table}\n\n{notes}")[2:] == [
        "All amounts are in euros.",
        "As of 31 December 2023.",
    ]


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        ("Prices in EUR\n10\n20", "Prices in EUR: 10."),
        ("Email\nann@x.org\nbob@x.org", "Email: ann@x.org."),
    ],
)
def test_the_name_of_one_column_is_said_with_each_value(lines, first):
    assert texts(lines)[0] == first


def test_a_declared_name_of_one_column_is_said_with_each_value():
    assert texts("Members\nAnn\nBob", header=1) == ["Members: Ann.", "Members: Bob."]


def test_a_chosen_column_has_its_name():
    assert texts("name,age,city\nAnn,31,Oslo\nBob,32,Rome", columns=("age",)) == [
        "age: 31.",
        "age: 32.",
    ]


def test_a_sentence_alone_in_its_row_has_no_name():
    text = "The mill grinds rye in winter."
    assert texts(f"id,text\n1,{text}\n2,Ask.", columns=("text",)) == [text, "text: Ask."]


def test_a_long_text_beside_an_empty_corner_is_no_name():
    text = "The wheel of the mill was set on a new shaft in 1901"
    assert texts(f",{text}\nNora Pike,see below") == [f"{text}.", "Nora Pike: see below."]


def test_columns_that_are_empty_at_the_end_do_not_count():
    assert texts("Owner,Tom Ferris,\nDeputy,Nora Pike,") == [
        "Owner: Tom Ferris.",
        "Deputy: Nora Pike.",
    ]


NAMES = st.sampled_from(["Ann", "Bob", "Cid", "Dan", "Eve"])
TOWNS = st.sampled_from(["Oslo", "Rome", "Bern", "Alta"])
MISSING = st.sampled_from(["", "n/a", "-"])


@given(
    st.lists(st.tuples(NAMES, TOWNS, MISSING), max_size=4),
    st.lists(st.tuples(NAMES, TOWNS, st.integers(10, 99)), min_size=3, max_size=8),
)
def test_missing_numbers_leave_the_names_to_all_rows(lacking, rest):
    rows = [
        ["who", "where", "how many"],
        *map(list, lacking),
        *([*row[:2], str(row[2])] for row in rest),
    ]
    runs = list(table_runs(enumerate(rows)))
    assert len(runs) == len(rows) - 1
    assert all(run.row[0][0] == "who" for run in runs)


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "1"]), min_size=3, max_size=3), min_size=1, max_size=6
    )
)
def test_each_cell_of_a_table_without_merged_ones_is_said(cells):
    said = [run.text for run in table_runs(enumerate(cells), header=0)]
    assert said == [f"{'; '.join(row)}." for row in cells]
