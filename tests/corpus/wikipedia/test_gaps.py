"""Gaps of dropped templates are closed, and other text is unchanged."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ifqa.corpus.wikipedia.cleanup import GAP, without_gaps
from ifqa.corpus.wikipedia.wikitext import to_text

# wikitext as on real pages (x is any template), and its text in "ifqa"
GAPS = {
    "in a row": ("In 1990, {{x}} long, {{x}}, {{x}}.", "In 1990, long."),
    "in brackets": ("a ({{x}}, {{x}}, z) b", "a (z) b"),
    "all of the brackets": ("Asia ({{x}}) is", "Asia is"),
    "in italics in brackets": ("unique (''{{x}}'') and", "unique and"),
    "before the dates": ("Einstein ({{x}}; {{x}}; 14 March 1879) was", "Einstein (14 March 1879) was"),
    "on both sides of a dash": ("Anna Berg ({{x}} – {{x}}) was", "Anna Berg was"),
    "after an abbreviation in brackets": ("the Institute (ANSI, {{x}}) is", "the Institute (ANSI) is"),
    "at the start of a sentence": ("It is so. {{x}}, Angola had one.", "It is so. Angola had one."),
    "after an abbreviation": ("bees, wasps, etc.{{x}}, are", "bees, wasps, etc., are"),
    "after a label": ('Greek: {{x}}, "Apollo"; Doric: {{x}}; Aeolic: {{x}}.', 'Greek: "Apollo"; Doric; Aeolic.'),
    "a missing value": ("at a depth of {{x}}. It fell below {{x}}, and", "at a depth of . It fell below , and"),
}
SOUP = st.text(" ,;:.()'-$€abc", max_size=12)


@pytest.mark.parametrize(("wikitext", "text"), GAPS.values(), ids=GAPS)
def test_gaps_are_closed(wikitext: str, text: str) -> None:
    assert to_text(wikitext) == text


@given(SOUP)
@example("main() { f(, , 1); } ( ) ,, :-) .. ;)")
def test_text_without_dropped_templates_is_unchanged(text: str) -> None:
    assert without_gaps(text) == text
    assert to_text(f"a {text}") == to_text(f"a {text}", "release")


@given(SOUP, SOUP)
def test_text_that_touches_no_gap_is_unchanged(before: str, after: str) -> None:
    assert without_gaps(f"{before} a {GAP} b {after}") == f"{before} a  b {after}"


@given(st.text(f" ,;:.()'$a{GAP}", max_size=20))
def test_no_gap_is_left_and_closing_again_changes_nothing(text: str) -> None:
    closed = without_gaps(text)
    assert GAP not in closed
    assert without_gaps(closed) == closed


@pytest.mark.parametrize(
    "piece", [",", f",{GAP}", f", {GAP} ", f"({GAP},", f"{GAP} and ", f"''{GAP}", f":{GAP};", f"${GAP}"]
)
def test_a_long_page_of_gaps_takes_far_less_than_quadratic_time(piece: str) -> None:
    began = time.process_time()
    without_gaps(piece * (100_000 // len(piece)))
    assert time.process_time() - began < 2
