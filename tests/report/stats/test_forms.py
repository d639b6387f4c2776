"""The forms of an answer, each of which parses as the same value."""

import time
from datetime import date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.reading.span.numbers import find_numbers
from ifqa.report.stats.forms import forms
from ifqa.scoring.measures.normalize import normalize


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("5", {"five"}),
        ("five", {"5"}),
        ("Thirty seven", {"37", "thirty-seven", "thirty seven"}),
        ("100", {"one hundred", "a hundred"}),
        ("200", {"two hundred"}),
        ("10,000", {"10000", "ten thousand", "10 thousand"}),
        ("a thousand", {"1000", "1,000", "one thousand", "1 thousand"}),
        ("3.5 million", {"3500000", "3,500,000"}),
        ("3,000,000", {"3 million", "three million"}),
        ("1,234,567", {"1234567"}),
        ("three years", {"3 years"}),
        ("3 years", {"three years"}),
        ("27.6 miles", set()),
        ("2000 people", {"2,000 people", "two thousand people"}),
        ("25%", {"25 %", "25 percent", "25 per cent", "twenty-five percent"}),
        ("2.5 percent", {"2.5%"}),
        ("1st", {"first"}),
        ("twenty-first", {"21st", "twenty first"}),
        ("19th century", {"nineteenth century"}),
        ("Fourth", {"4th", "fourth"}),
        ("May 4, 1979", {"May 4 1979", "4 May 1979", "4 May, 1979", "4th of May 1979", "1979-05-04"}),
        ("1979-05-04", {"May 4, 1979"}),
        ("Sept. 9, 2001", {"September 9, 2001"}),
        ("15 April", {"April 15", "April 15th", "15th of April"}),
        ("November 1994", {"November, 1994"}),
    ],
)
def test_an_answer_has_its_other_forms(answer, wanted):
    found = forms(answer)
    assert found[0] == answer
    assert wanted <= set(found)
    if not wanted:
        assert found == (answer,)


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "Paris",
            "1984",
            "2000",
            "May",
            "Three Kings",
            "The Four Seasons",
            "World War II",
            "7 Up",
            "K2",
            "A",
            "",
            " ",
        ),
        *("February 30", "31 June 1999", "2001-13-01", "21th", "007", "one hundred and five", "two thirds", "1,23"),
        *("one or two", "10-20", "1990s", "2 million billion", "$5", "May 40", "45.50° N", "²", "٣"),
    ],
)
def test_what_is_no_number_and_no_date_stays_alone(answer):
    assert forms(answer) == (answer,)


def test_several_answers_are_refused():
    with pytest.raises(TypeError, match="one string"):
        forms(("5", "6"))


NUMBERS = st.one_of(
    st.integers(0, 120).map(str),
    st.integers(0, 10**16).map(str),
    st.integers(0, 10**16).map("{:,}".format),
    st.decimals(0, 10**7, places=3).map(str),
    st.sampled_from([*"one twelve thirty-one hundred a".split(), "a hundred", "six hundred", "twenty two"]),
    st.sampled_from(
        [*"1st 2nd 3rd 11th 21st 100th 99th third ninetieth hundredth".split(), "one hundredth", "forty first"]
    ),
)
UNITS = st.sampled_from("years,percent,%,per cent,thousand,million,hundred,th,miles,May,may,may 1999,of May,and,seconds,"
                        "degree murder,thousand years,million percent,Kings,trillion,first,one,point five".split(","))  # fmt: skip
ANSWERS = st.one_of(
    st.text(max_size=30),
    NUMBERS,
    st.builds("{} {}".format, NUMBERS, UNITS),
    st.builds("{}{}".format, NUMBERS, UNITS),
    st.dates().map("{:%B %d, %Y}".format),
    st.dates().map("{:%d %b %Y}".format),
    st.dates().map(str),
    st.dates().map("{:%B %d}".format),
    st.dates().map("{:%B %Y}".format),
)


@given(ANSWERS)
def test_forms_of_forms_are_not_new_and_the_answer_is_kept(answer):
    found = forms(answer)
    assert found[0] == answer
    assert len(set(found)) == len(found)
    assert {again for form in found for again in forms(form)} == set(found)


@given(ANSWERS)
def test_every_form_that_is_added_normalises_to_something(answer):
    assert all(normalize(form) for form in forms(answer)[1:])


@given(st.dates(min_value=date(1000, 1, 1)))
def test_every_form_of_a_date_is_the_same_day_to_another_parser(day):
    for form in forms(str(day)):
        plain = form.replace(",", "").replace(" of ", " ")
        for mark in ("st", "nd", "rd", "th"):
            plain = plain.replace(f"{mark} ", " ") if mark != "st" else plain.replace("1st ", "1 ")
        orders = [order for order in ("%Y-%m-%d", "%B %d %Y", "%d %B %Y") if _read(plain, order)]
        assert [_read(plain, order) for order in orders] == [day], form


def _read(text, order):
    try:
        return datetime.strptime(text, order).date()
    except ValueError:
        return None


@given(st.integers(0, 99))
def test_all_forms_of_a_small_number_have_the_same_value(number):
    for form in forms(str(number)):
        assert sum(found.value for found in find_numbers(form)) == number, form


@given(st.integers(1, 999), st.sampled_from([("thousand", 3), ("million", 6), ("billion", 9)]))
def test_a_round_number_is_written_with_its_scale_and_in_full(number, scale):
    name, zeros = scale
    assert {f"{number}{'0' * zeros}", f"{number * 10**zeros:,}"} <= set(forms(f"{number} {name}"))


RELEASE = Path(__file__).parents[3] / "data/ifqa"


@pytest.mark.skipif(not (RELEASE / "full_split/train.json").exists(), reason="the IfQA release is not here")
def test_the_forms_hold_for_every_answer_of_the_release(monkeypatch):
    from ifqa.benchmarks.ifqa import IfQA

    monkeypatch.chdir(RELEASE.parents[1])
    for question in IfQA().questions("full-train"):
        for answer in question.answers:
            found = forms(answer)
            assert {again for form in found for again in forms(form)} == set(found)


@pytest.mark.parametrize(
    "answer", ["a " * 50_000, "twenty one thousand " + "miles " * 50_000, "9" * 100_000, "nine " * 50_000]
)
def test_a_long_answer_is_read_in_no_time(answer):
    started = time.monotonic()
    assert forms(answer)[0] == answer
    assert time.monotonic() - started < 10


def test_the_longest_number_in_words_is_read_whole():
    assert "21000 miles" in forms("twenty one thousand miles")
    assert "900000000 miles" in forms("nine hundred million miles")
