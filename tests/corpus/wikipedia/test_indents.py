"""Lines that begin with `:` or `;`: each kind as on real pages, kept if it is prose, else dropped."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.wikipedia.cleanup import without_lists
from ifqa.corpus.wikipedia.wikitext import to_text

PROSE = {
    "quotation": ('He said:\n:"It was moving to Mayberry in 1974."', 'He said:\n"It was moving to Mayberry in 1974."'),
    "quotation without a stop": ('It ends. Then:\n\n:"as it was"\nx', 'It ends. Then:\n"as it was"\nx'),
    "enumeration": (
        "60 members, of whom:\n:(a) 14 shall be elected\n:(b) 8 shall be elected",
        "60 members, of whom:\n(a) 14 shall be elected\n(b) 8 shall be elected",
    ),
    "enumeration of a law, with and without full stops": (
        "It says.\n:(a) The court decides.\n:(b) the clerk\n:(c) The parties pay.\n:(d) the rest",
        "It says.\n(a) The court decides.\n(b) the clerk\n(c) The parties pay.\n(d) the rest",
    ),
    "paragraph below a list": (
        "It ends:\n* One of them.\n\n:A new paragraph begins.\n\n:-It goes on.",
        "It ends:\nA new paragraph begins.\n-It goes on.",
    ),
    "article of a law": (
        "It says:\n\n:'''Article 67.''' (1) They vote.\n:(2) Two days must elapse.",
        "It says:\nArticle 67. (1) They vote.\n(2) Two days must elapse.",
    ),
    "bold line over text": ("It says.\n:'''Article 113'''\n1. They vote.", "It says.\nArticle 113.\n1. They vote."),
    "verse": (
        "He writes\n:''I saw the Master,''\n:''Amid the family''",
        'He writes\n"I saw the Master,"\n"Amid the family"',
    ),
    "sentence of its own": ("It ends.\n::A new one begins.", "It ends.\nA new one begins."),
    "end of a sentence": ("It is\n:the end of it\nand more", "It is\nthe end of it\nand more"),
    "terms with definitions": ("x\n;Recursion\n: It calls itself.", "x\nRecursion.\nIt calls itself."),
    "term over text": ("x\n; The [[end]]:\nIt ended.", "x\nThe end.\nIt ended."),
    "term and definition in one line": ("x\n; Factors: What one changes.", "x\nFactors: What one changes."),
    "prose with a formula": ("x\n:for all <math>n</math> it is so.", "x\nfor all formula_1 it is so."),
    "prose after a file": ("It is\n[[File:A.jpg|b]]\n:the end of it", "It is\nthe end of it"),
}

NO_PROSE = {
    "note": "It ends.\n:''See also: [[History of it]].''",
    "note at the start of the page": ":''Hierdie artikel handel oor die eiland.''\nIt ends.",
    "note at the start of a section": "== A ==\n: ''These books are the ones on [[it]].''\nIt ends.",
    "note without italics": "It ends.\n:Main article: [[History of it]].",
    "note that names another article": "It ends.\n:For the other one, see [[It (film)]].",
    "formula": "It ends with:\n:<math>x</math>\n:<math>y</math>.",
    "equation": "It ends with\n:2 CH4 + 3 O2 → 2 CO + 4 H2O",
    "equation of words": "It ends with\n:RCH=CH2 + H2 → RCH2CH3(R = alkyl)",
    "code": "It ends with\n:{ a[i] = 'n'; }",
    "items of a list": "It ends:\n:* One of them.\n:# Another of them.",
    "continued list item": "It ends:\n* One of them.\n:This item goes on.\n::And on.",
    "talk": "It ends,\n:I do not think so. --[[User:X|X]] 12:03, 3 May 2005\n:Nor do I. 12:04, 3 May 2005 (UTC)",
    "table of contents": "== Contents ==\n:1 The beginning\n::1.1 The very beginning\n:2 The end",
    "terms over lists": "It ends.\n;Books\n* A book.\n;Films\n* A film.\n[[Category:A]]",
    "term over nothing": "It ends.\n;Notes\n[[Category:A]]",
    "no word": "It ends:\n: 36\n:+ →",
    "marks alone": "It ends:\n:\n;\n::",
}


@pytest.mark.parametrize(("wikitext", "text"), PROSE.values(), ids=PROSE)
def test_indented_prose_is_kept(wikitext: str, text: str) -> None:
    assert to_text(wikitext) == text


@pytest.mark.parametrize("wikitext", NO_PROSE.values(), ids=NO_PROSE)
def test_other_indented_lines_are_dropped_as_in_the_release(wikitext: str) -> None:
    assert to_text(wikitext) == to_text(wikitext, "release")


@pytest.mark.parametrize("wikitext", [*NO_PROSE.values(), *(wikitext for wikitext, _ in PROSE.values())])
def test_the_release_drops_all_indented_lines(wikitext: str) -> None:
    unindented = "\n".join(line for line in wikitext.split("\n") if line[:1] not in (":", ";", "*"))
    assert to_text(wikitext, "release") == to_text(unindented, "release")


LINES = st.lists(st.sampled_from(["", "Words end.", "Words go on", "== A ==", "* item", "[[File:A.jpg]]"]), max_size=9)


@given(LINES)
def test_pages_without_indented_lines_are_equal_in_ifqa_and_release(lines: list[str]) -> None:
    assert to_text("\n".join(lines)) == to_text("\n".join(lines), "release")


@given(st.lists(st.text("ab:;*# .='\"[", max_size=9), max_size=9))
def test_lines_without_a_mark_are_kept_in_order(lines: list[str]) -> None:
    kept = iter(without_lists("\n" + "\n".join(lines), prose=True).split("\n"))
    assert all(line in kept for line in lines if line[:1] not in (":", ";", "*", "#"))


@pytest.mark.parametrize("line", ["\n:a b", "\n;a", "\n:for see ", '\n:"', "\n: redirects", "\n:'''a"])
def test_a_long_page_of_indented_lines_ends_in_seconds(line: str) -> None:
    began = time.process_time()
    to_text('"' * 100_000 + line * 10_000 + "\n:" + line[2:] * 10_000)
    assert time.process_time() - began < 5
