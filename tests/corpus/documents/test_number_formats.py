"""Cells as a spreadsheet shows them. The wanted texts are Excel's."""

from datetime import date, datetime, time, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.documents.number_formats import format_value

MOMENT = datetime(2024, 3, 14, 15, 7, 9)


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.125, "0.0%", "12.5%"),
        (1234567.5, '#,##0.00 "EUR"', "1,234,567.50 EUR"),
        (1234, "00000", "01234"),
        (1234567, "#,##0,", "1,235"),
        (1234567, '#,##0.0,,"M"', "1.2M"),
        (45600000, "0.0,,", "45.6"),
        (1234567, "$#,##0.00,,", "$1.23"),
        (1234, '0.00,"k"', "1.23k"),
        (45678, "#,##0,.0", "45.7"),
        (-3.5, "#,##0.00_);(#,##0.00)", "(3.50)"),
        (-3.5, "0.0", "-3.5"),
        (5, '"$"#,##0_);[Red]("$"#,##0)', "$5"),
        (3, "[$€-407] #,##0.00", "€ 3.00"),
        (0, '0;-0;"none"', "none"),
        (0, '_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)', "-"),
        (1.5, "# ?/?", "1 1/2"),
        (0.3, "# ?/8", "2/8"),
        (1.25, "# ??/16", "1 4/16"),
        (0.97, "# ?/8", "1"),
        (12345, "0.00E+00", "1.23E+04"),
        (5, "000-00-0000", "000-00-0005"),
        (5551234567, "[<=9999999]###\\-####;\\(###\\)\\ ###\\-####", "(555) 123-4567"),
        (12, '0" km"', "12 km"),
        (78, ";;;", ""),
        (-3, "General;-General", "-3"),
    ],
)
def test_a_number_is_shown_by_its_format(value, code, shown):
    assert format_value(value, code) == shown


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (timedelta(days=1, seconds=9000), "[h]:mm", "26:30"),
        (time(9, 5), "hh:mm", "09:05"),
        (MOMENT, "d-mmm-yy", "14-Mar-24"),
        (MOMENT, "h:mm AM/PM", "3:07 PM"),
        (MOMENT, "[$-409]mmmm d\\, yyyy;@", "March 14, 2024"),
        (MOMENT, "mm-dd-yy", "2024-03-14"),
        (date(2024, 3, 14), "General", "2024-03-14"),
        (timedelta(hours=30), "General", "30:00:00"),
    ],
)
def test_a_moment_is_shown_by_its_format(value, code, shown):
    assert format_value(value, code) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1e12, "1000000000000"),
        (0.1 + 0.2, "0.3"),
        (True, "TRUE"),
        ("0123", "0123"),
        (None, ""),
    ],
)
def test_a_value_without_a_format_keeps_its_digits(value, shown):
    assert format_value(value, "General") == shown


@given(st.floats(-1e15, 1e15), st.text('0#?.,%E+-/;"[]@ hmsdy_*\\GA', max_size=12))
def test_any_code_gives_a_text(value, code):
    assert isinstance(format_value(value, code), str)


@given(st.datetimes(), st.text('0#.hmsdy[]:/; "AMP\\_*', max_size=12))
def test_any_code_of_a_date_gives_a_text(value, code):
    assert isinstance(format_value(value, code), str)


@given(st.decimals(0, 10**12, places=2), st.integers(1, 3))
def test_a_comma_after_the_decimals_divides_by_a_thousand(value, commas):
    assert format_value(value, "0.00" + "," * commas) == format_value(value / 1000**commas, "0.00")


@given(st.fractions(0, 1, max_denominator=999), st.integers(2, 99))
def test_a_named_denominator_is_the_nearest_one(value, denominator):
    shown = format_value(float(value), f"# ??/{denominator}")
    assert abs(Fraction(shown) - value) <= Fraction(1, 2 * denominator) + Fraction(1, 10**9)


@given(st.decimals(-(10**9), 10**9, places=2))
def test_two_decimals_are_those_of_python(value):
    assert format_value(value, "#,##0.00") == f"{value:,.2f}".replace("-0.00", "0.00")
