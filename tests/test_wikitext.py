"""Wikitext to text: one construct a test, with the exact text expected."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.wikipedia.wikitext import to_text

CONSTRUCTS = {
    # links
    "link": ("born in [[Paris]].", "born in Paris."),
    "link with label": ("the [[Paris|French capital]].", "the French capital."),
    "link with trailing letters": ("two [[dog]]s and [[cat|kitten]]s", "two dogs and kittens"),
    "pipe trick": ("[[Mercury (planet)|]], [[Boston, Massachusetts|]]", "Mercury, Boston"),
    "link whose label was a template": ("near [[Oslo|{{flag|Oslo}}]].", "near Oslo."),
    "link with a colon in its title": ("saw [[Alien: Covenant]] twice", "saw Alien: Covenant twice"),
    "link to a section": ("see [[Paris#History|its history]]", "see its history"),
    "link with brackets in its label": ("a [[quotation|[sic] quotation]] here", "a [sic] quotation here"),
    "shown category": ("see [[:Category:Cities]]", "see Category:Cities"),
    "category": ("text\n[[Category:Cities]]\n[[Category:Living people|]]", "text"),
    "other language": ("text\n[[fr:Ville]]\n[[zh-min-nan:Siâⁿ-chhī]]", "text"),
    "interwiki with label": ("a [[wikt:city|city]]", "a city"),
    "file": ("[[File:A.jpg|thumb|A [[red]] house, see [http://a.org b]]]It is red.", "It is red."),
    "file in lower case": ("[[image:A.jpg|a [sic] caption]]It is red.", "It is red."),
    "file in a file's caption": ("[[File:A.jpg|left [[File:B.jpg|x [[c]]]] right]]It is red.", "It is red."),
    "external link": ("[http://a.org the site] and [https://b.org]", "the site and "),
    "external link without protocol": ("[//a.org the [[big|site]]] and [mailto:a@b.org mail]", "the site and mail"),
    "bare address": ("at http://a.org now", "at http://a.org now"),
    "square brackets": ("he [the king] said [...] so", "he [the king] said [...] so"),
    # bold and italics
    "italics": ("read ''Emma'' twice", 'read "Emma" twice'),
    "bold": ("'''Emma''' is a novel", "Emma is a novel"),
    "bold italics": ("'''''Emma''''' is a novel", "Emma is a novel"),
    "bold in italics": ("''a '''b''''' c", '"a b" c'),
    "bold italics, bold ends first": ("'''''a''' b'' c", '"a b" c'),
    "italics already in quotes": ("read \"''Emma''\" and ''\"Ivan\"''", 'read "Emma" and "Ivan"'),
    "apostrophes": ("the dogs' tails, rock 'n' roll", "the dogs' tails, rock 'n' roll"),
    "bold around a template": ("'''{{PAGENAME}}''' is a town", " is a town".strip()),
    # templates
    "template": ("It is {{convert|5|km|mi}} long.", "It is long."),
    "template that leaves a gap": ("Kaine ({{IPAc-en|k}}; born 1958)", "Kaine (; born 1958)"),
    "nested templates": ("a {{b|{{c|{{d|{{e|{{f|{{g}}}}}}}}}}}} h", "a h"),
    "template with single braces": ("a {{math|{x} + {y} }} b", "a b"),
    "parameter": ("a {{{1|default}}} b {{x|{{{2|}}}}} c", "a b c"),
    "parser function": ("a {{#if:x|{{y}}|z}} b", "a b"),
    "infobox": ("{{Infobox city\n| name = Paris\n| map = {{map}}\n}}\n'''Paris''' is a city.", "Paris is a city."),
    "magic word": ("__NOTOC__\ntext __FORCETOC__", "text"),
    # tables
    "table": ('before\n{| class="wikitable" style="x"\n! h\n|-\n| [[a]] || b\n|}\nafter', "before\nafter"),
    "nested table": ("before\n{|\n|\n{|\n| a\n|}\n| b\n|}\nafter", "before\nafter"),
    "indented table": ("before\n:{|\n| a\n|}\nafter", "before\nafter"),
    "text behind a table": ("{|\n| a\n|} after", "after"),
    "table that is never closed": ("before\n{|\n! a\n| b\n== Next ==\nafter", "before\nNext.\nafter"),
    "table closed by a template": ("before\n{{start}}\n|-\n| b\n{{end}}\nafter", "before\nafter"),
    "HTML table": ("before <table><tr><td>a<table><tr><td>b</table></td></tr></table> after", "before after"),
    # headings and lists
    "heading": ("intro\n== History ==\ntext", "intro\nHistory.\ntext"),
    "heading that ends a sentence": ("== Why? ==\na\n==In the U.S.==\nb", "Why?\na\nIn the U.S.\nb"),
    "heading with markup": ("== ''Emma'' and [[Jane Austen|Austen]]{{x}} ==\na", '"Emma" and Austen.\na'),
    "heading over a heading": ("== A ==\n=== B ===\ntext", "A.\nB.\ntext"),
    "heading without text": ("== A ==\n== B ==\ntext\n=== C ===\n== D ==", "B.\ntext"),
    "heading over a list": ("== A ==\ntext\n== See also ==\n* [[b]]\n* [[c]]", "A.\ntext"),
    "lists": ("These are:\n* a\n** b\n# c\n; d\n: e\n:: f\nend", "These are:\nend"),
    "paragraph that looks like a list": ("'''*NSYNC''' is a band", "*NSYNC is a band"),
    "HTML list": ("a\n<ul><li>b</li><li><ol><li>c</ol></ul>\nd", "a\nd"),
    "rule": ("a\n----\nb", "a\nb"),
    # tags
    "reference": ('a<ref>b [[c]] {{d}}</ref> e<ref name="f/g"/>.', "a e."),
    "reference with tags in it": ("a<ref name=b>c <i>d</i> <!-- e --></ref> f", "a f"),
    "reference over lines": ("a<ref>\n* b\n* c\n</ref> d<REF>e</REF>", "a d"),
    "references": ("a\n<references>\n<ref name=b>c</ref>\n</references>", "a"),
    "reference that is never closed": ("a<ref>b", "ab"),
    "comment": ("a <!-- b\n== c == {{ -->d", "a d"),
    "comment that is never closed": ("a <!-- b", "a"),
    "comment around a reference": ("a <!-- <ref>b --> c <ref>d</ref>", "a c"),
    "inline tags": ('x<sub>2</sub> <small>y</small> <span style="z">w</span> <code>v</code>', "x2 y w v"),
    "line break": ("a<br>b<br />c", "a b c"),
    "block tags": ('<div class="a">b</div><blockquote>c</blockquote>', "b c"),
    "nowiki": ("<nowiki>[[a]] ''b'' {{c}} <ref></nowiki>", "[[a]] ''b'' {{c}} <ref>"),
    "comment in nowiki": ("a <nowiki><!--</nowiki> b", "a <!-- b"),
    "empty nowiki": ("L<nowiki/>'''été'''", "Lété"),
    "formulas": (r"<math>\{x\}</math>, <math>y</math> and <math>\{x\}</math>", "formula_1, formula_2 and formula_1"),
    "code listing": ("a\n<syntaxhighlight lang=c>int x[2][3];</syntaxhighlight>\n<pre>y</pre>\nb", "a\nb"),
    "gallery": ("a\n<gallery>\nFile:A.jpg|b\n</gallery>\nc", "a\nc"),
    "less than": ("if a < b and c > d then 1 <2", "if a < b and c > d then 1 <2"),
    # characters
    "entities": ("AT&amp;T&nbsp;&ndash; 5&#160;&#x3C;&lt; R&B &nosuch;", "AT&T – 5 << R&B &nosuch;"),
    "blanks": ("a   b\u00a0 c\n   d\t\n\n\n\ne", "a b c\nd\ne"),
    "line without a word": ("a\n()\n,\nb", "a\nb"),
    "marks without a partner": ("a {{ b }} }} c [[ d ]] ]] e |} {| [[", "a c d e"),
    "redirect": ("#REDIRECT [[Paris]]", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("wikitext", "text"), CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_construct(wikitext: str, text: str) -> None:
    assert to_text(wikitext).strip() == text.strip()


WORDS = st.lists(st.sampled_from(["alpha", "beta", "Gamma", "1984", "é", "(x)", "U.S.,"]), min_size=1, max_size=4).map(
    " ".join
)


def wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(" ".join),
        st.builds("{{{{t|x={}}}}}".format, inner),
        st.builds("[[A|{}]]".format, WORDS),
        st.builds("[[File:A.jpg|thumb|{}]]".format, inner),
        st.builds("<ref name=a>{}</ref>".format, inner),
        st.builds("\n{{| style=b\n|-\n| {}\n|}}\n".format, inner),
        st.builds("''{}''".format, WORDS),
        st.builds("'''{}'''".format, WORDS),
        st.builds("\n== {} ==\n".format, WORDS),
        st.builds("\n* {}\n".format, WORDS),
        st.builds("<!-- {} -->".format, WORDS),
        st.builds('<span style="c">{}</span>'.format, inner),
        st.builds("{}&nbsp;&amp;amp".format, WORDS),
    )


@given(st.recursive(WORDS, wrapped, max_leaves=20))
def test_no_markup_is_left_of_balanced_markup(wikitext: str) -> None:
    assert not re.search(r"\{\{|\}\}|\[\[|\]\]|<ref|\{\||\|-|''|style=|File:|&nbsp;|&amp;|<!--|==", to_text(wikitext))


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_plain_paragraphs_are_left_as_they_are(paragraphs: list[str]) -> None:
    assert to_text("\n\n".join(paragraphs)) == "\n".join(paragraphs)


MARKS = [
    "{{",
    "}}",
    "{{{",
    "[[",
    "]]",
    "[",
    "]",
    "{|",
    "|}",
    "|-",
    "|",
    "\n",
    "<",
    ">",
    "/>",
    "<ref",
    "<ref>",
    "</ref>",
    "<!--",
]
MARKS += [
    "-->",
    "<nowiki>",
    "</nowiki>",
    "<math>",
    "</math>",
    "<table>",
    "''",
    "'''",
    "'''''",
    "==",
    "*",
    ":",
    "&",
    "&#",
    "&lt;",
]
MARKS += ["[[File:", "[[fr:", "[http://", "__", "__TOC__", '"', "a", "\x00", " ", "\ud800"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(MARKS)).map("".join)))
def test_whatever_the_page_nothing_raises(wikitext: str) -> None:
    to_text(wikitext)


@pytest.mark.parametrize("mark", [*MARKS, "[[a [b] ", "{{a|{b}", "[[a|", "''\"", "&a", "\n{|\n| "])
def test_a_long_page_of_one_mark_comes_to_an_end(mark: str) -> None:
    to_text(mark * (300_000 // len(mark)))  # quadratic work would not
