"""Lists in a document's passage that a question asks for as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.models.places import minilm_folder
from ifqa.reading.span.network import encode_pair
from ifqa.reading.span.reader import explain
from ifqa.reading.span.whole_lists import (
    find_whole_lists,
    join_items,
    list_of,
)

OFFICERS = (
    "Year: 2021; Name: Anna Berg; Office: Chair.\n"
    "Year: 2022; Name: Nora Pike; Office: Chair.\n"
    "Year: 2022; Name: Tom Ferris; Office: Treasurer.\n"
    "Year: 2023; Name: Nora Pike; Office: Chair."
)
MINUTES = "Minutes of May. Present: Nora Pike, Tom Ferris (chair) and Ida Moe. Apologies: Per Dahl."
NEEDED = "These are needed for the regatta:\ntwo ropes.\na new buoy;\nsix life jackets."


def lists(question, text):
    """The lists that a question may ask for, as texts."""
    return [[text[start:end] for start, end in items] for items in find_whole_lists(question, text)]


def whole(question, text, answer):
    """The list that the first place of `answer` in a text belongs to, as one answer."""
    start = text.index(answer)
    items = list_of((start, start + len(answer)), find_whole_lists(question, text), text)
    return items and join_items([text[start:end] for start, end in items])


def test_a_column_in_the_rows_of_a_year():
    question = "Who were the officers in 2022?"
    assert whole(question, OFFICERS, "Nora Pike") == "Nora Pike and Tom Ferris"


def test_a_column_in_the_rows_with_a_cell():
    question = "In which years would Nora Pike have been in office?"
    assert whole(question, OFFICERS, "2022") == "2022 and 2023"


def test_a_condition_of_the_main_clause_is_the_one_that_counts():
    question = "If it had been founded in 2021, who were the officers in 2022?"
    assert whole(question, OFFICERS, "Tom Ferris") == "Nora Pike and Tom Ferris"


def test_a_condition_in_the_supposition():
    question = "If it had been the year 2022, who would have been the officers?"
    assert whole(question, OFFICERS, "Tom Ferris") == "Nora Pike and Tom Ferris"


def test_a_cell_of_a_row_that_the_question_does_not_speak_of():
    assert whole("Who were the officers in 2022?", OFFICERS, "Anna Berg") is None


def test_a_named_column_without_a_condition():
    question = "Which offices are there?"
    assert whole(question, OFFICERS, "Chair") == "Chair and Treasurer"


def test_a_column_that_the_question_does_not_speak_of():
    assert lists("Which ropes are there?", OFFICERS) == []


def test_a_question_that_compares_gets_no_column():
    assert lists("Which officers were elected after 2021?", OFFICERS) == []


def test_a_column_whose_name_ends_otherwise_in_the_plural():
    text = "Country: Norway; Town: Oslo.\nCountry: Sweden; Town: Lund."
    assert whole("Which countries are there?", text, "Sweden") == "Norway and Sweden"


def test_an_answer_with_the_name_of_its_column():
    question = "Who were the officers in 2022?"
    assert whole(question, OFFICERS, "Name: Tom Ferris") == "Nora Pike and Tom Ferris"


def test_an_enumeration_after_a_label():
    question = "Who was present in May?"
    assert whole(question, MINUTES, "Tom Ferris") == "Nora Pike, Tom Ferris and Ida Moe"


def test_one_that_the_supposition_names_is_left_out():
    question = "If Tom Ferris had been ill, who would have been present?"
    assert whole(question, MINUTES, "Ida Moe") == "Nora Pike and Ida Moe"


def test_one_that_the_supposition_names_by_the_last_name_is_left_out():
    question = "If Ferris had been ill, who would have been present?"
    assert whole(question, MINUTES, "Ida Moe") == "Nora Pike and Ida Moe"


def test_a_name_in_another_spelling_is_left_out():
    text = "Systems: x86, Loongson-3 and SPARC."
    assert whole("If the Loongson 3 had failed, which systems would it run on?", text, "x86") == (
        "x86 and SPARC"
    )


def test_one_that_the_question_excepts_is_left_out():
    question = "Who were present besides Ida Moe?"
    assert whole(question, MINUTES, "Nora Pike") == "Nora Pike and Tom Ferris"


def test_a_negated_question_gets_no_list():
    assert lists("Which officers were not present?", MINUTES) == []


@pytest.mark.parametrize(("count", "found"), [("three", True), ("two", False)])
def test_as_many_items_as_the_question_says(count, found):
    assert bool(lists(f"Which {count} members were present?", MINUTES)) == found


@pytest.mark.parametrize(
    ("sentence", "items"),
    [
        (
            "A version, credited to Ann Lee, Bo Ek, and Cy Orr, was posted in May.",
            ["Ann Lee", "Bo Ek", "Cy Orr"],
        ),
        (
            "It was written by Ann Lee (code, tests), Bo Ek (texts) and Cy Orr (art).",
            ["Ann Lee", "Bo Ek", "Cy Orr"],
        ),
        (
            "The committee (Ann Lee, Bo Ek and Cy Orr) was small.",
            ["Ann Lee", "Bo Ek", "Cy Orr"],
        ),
        (
            "It was written by Ann Lee (code and text), Bo Ek (art) and Cy Orr.",
            ["Ann Lee", "Bo Ek", "Cy Orr"],
        ),
        (
            "Present were Dr. Ann Lee, Mr. Bo Ek and Mrs. Cy Orr.",
            ["Dr. Ann Lee", "Mr. Bo Ek", "Mrs. Cy Orr"],
        ),
        ("Trains leave at 10:30, 11:30 and 12:30.", ["10:30", "11:30", "12:30"]),
        ("It compares C, C++ and C# with Java.", ["C", "C++", "C#"]),
        ("It is sold in Italy, the Netherlands and Spain.", ["Italy", "the Netherlands", "Spain"]),
        (
            "They met Ludwig van Beethoven, Cy Orr and Bo Ek.",
            ["Ludwig van Beethoven", "Cy Orr", "Bo Ek"],
        ),
        ("The rates are 16Khz, 22.05Khz and 24Khz.", ["16Khz", "22.05Khz", "24Khz"]),
        ("One needs ropes, buoys and oars.", ["ropes", "buoys", "oars"]),
        ("Thanks to Ann Lee and Bo Ek for help.", ["Ann Lee", "Bo Ek"]),
        (
            "It covers Old Irish, Manx, Welsh and Breton.",
            ["Old Irish", "Manx", "Welsh", "Breton"],
        ),
    ],
)
def test_an_enumeration_in_a_sentence(sentence, items):
    assert lists("Which things are these?", sentence) == [items]


@pytest.mark.parametrize(
    "sentence",
    [
        "The mill grinds rye and the bakery in Marlow bakes.",
        "Texts: by Ann Lee and also sent to Bo Ek.",
        "Thanks: Ann Lee, for starting it.",
        "Author: Lee, Ann.",
        "Maintainer: Ann Lee, Bo Ek, ann@example.org.",
        "In 1920, Ann Lee and Bo Ek founded the club.",
        "Bo Ek went to Oslo and Ann Lee wrote the letter.",
        "Thanks to Ann Lee, for starting the club and finding members.",
    ],
)
def test_no_enumeration(sentence):
    assert lists("Which things are these?", sentence) == []


def test_items_below_one_another():
    question = "Which things are needed?"
    answer = "two ropes, a new buoy and six life jackets"
    assert whole(question, NEEDED, "a new buoy") == answer


def test_a_paragraph_below_a_list_is_no_item():
    text = f"{NEEDED}\nAll of it has to be there on the evening before the regatta."
    answer = "two ropes, a new buoy and six life jackets"
    assert whole("Which things are needed?", text, "a new buoy") == answer


def test_items_with_numbers_are_a_list_of_their_own():
    text = f"{NEEDED}\n1. Come early.\n2. Bring food."
    assert whole("Which rules are there?", text, "Bring food") == "Come early and Bring food"


def test_the_lines_of_a_form_are_no_items():
    form = "A form.\nName: Ann Lee.\nTown: Marlow."
    assert lists("Which towns are there?", form) == [["Name", "Town"]]


def test_terms_that_lines_explain():
    text = "The lists are:\nclub-news: announcements of the club.\nclub-talk: everything else."
    assert whole("Which lists are there?", text, "club-news") == "club-news and club-talk"


def test_a_part_of_an_item_is_no_item():
    text = "Needed are:\na new buoy of the red kind.\ntwo ropes."
    assert whole("Which things are needed?", text, "buoy") is None


def test_items_with_commas_are_joined_by_semicolons():
    assert join_items(["ropes, red", "a buoy"]) == "ropes, red; a buoy"


@given(st.text(alphabet="Ab1 ,;:.\n()-", max_size=60))
def test_items_are_different_texts_of_the_passage(text):
    text = f"Present: A, b and 1.\n{text}"
    for items in find_whole_lists("Which things are these?", text):
        texts = [text[start:end] for start, end in items]
        assert len(set(texts)) == len(items) > 1
        assert all(part.strip() for part in texts)


@given(st.text(alphabet="Ab1 ,;:.\n()-", max_size=60))
def test_each_item_belongs_to_a_list(text):
    found = find_whole_lists("Which things are these?", text)
    for items in found:
        assert all(list_of(item, found, text) for item in items)


@pytest.fixture
def pair():
    return encode_pair(minilm_folder(), "Who was present in May?", MINUTES, as_written=True)


def first_item(pair):
    """The tokens of "Nora Pike"."""
    start = MINUTES.index("Nora Pike")
    tokens = [
        number
        for number, (left, right) in enumerate(pair.offsets)
        if start <= left and right <= start + len("Nora Pike")
    ]
    return pair.start + tokens[0], pair.start + tokens[-1]


def test_a_candidate_in_a_document_is_the_whole_list(pair):
    assert pair.span_text(*first_item(pair)) == "Nora Pike, Tom Ferris and Ida Moe"


def test_a_candidate_of_another_passage_is_a_span():
    pair = encode_pair(minilm_folder(), "Who was present in May?", MINUTES)
    assert pair.span_text(*first_item(pair)) == "Nora Pike"


def test_the_explanation_of_a_list_has_its_items(pair):
    how = explain(pair, "p", "Nora Pike, Tom Ferris and Ida Moe", first_item(pair))
    assert how.pieces(MINUTES, sentence=True)[1::2] == ["Nora Pike", "Tom Ferris", "Ida Moe"]
