"""Wikitext to text: one construct a case, with the exact text expected."""

import re
import time
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.wikipedia.wikitext import Profile, to_text

# wikitext, and its text in the profile "release"; IN_IFQA has the text of the profile "ifqa" where it differs
CONSTRUCTS = {
    # links
    "link": ("born in [[Paris]].", "born in Paris."),
    "link with label": ("the [[Paris|French capital]].", "the French capital."),
    "link with trailing letters": ("two [[dog]]s and [[cat|kitten]]s", "two dogs and kittens"),
    "link without a label": ("a [[Mercury (planet)|]] b", "a b"),
    "link whose label was a template": ("near [[Oslo|{{flag|Oslo}}]].", "near ."),
    "link whose label was an unknown template": ("near [[Oslo|{{no such thing}}]].", "near ."),
    "link with a colon in its title": ("saw [[Alien: Covenant]] twice", "saw Alien: Covenant twice"),
    "link to a section": ("see [[Paris#History|its history]]", "see its history"),
    "link with brackets in its label": ("a [[quotation|[sic] quotation]] here", "a [sic] quotation here"),
    "shown category": ("see [[:Category:Cities]]", "see Category:Cities"),
    "shown category with label": ("see [[:Category:Cities|the cities]] and [[:Datei:A.jpg|a]]", "see the cities and a"),
    "file in German": ("[[Datei:A.jpg|mini|Ein Haus]]It is red.", "It is red."),
    "file by an alias, with blanks": ("[[ tập_tin :A.jpg|nhỏ|x]]It is [[bild:B.png]]red.", "It is red."),
    "category in Russian": ("text\n[[Категория:Города|x]]", "text"),
    "title that begins like a file": ("saw [[Filar: the film]] and [[Bilder]]", "saw Filar: the film and Bilder"),
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
    "possessive of italics": ("''Iliad'''s description", '"Iliad"\'s description'),
    "possessive beside bold": ("'''A''' of ''Iliad'''s b\n'''c'''", 'A of "Iliad"\'s b\nc'),
    "elision before italics": ("in L'''Emma'' again", 'in L\'"Emma" again'),
    "quote before italics": ("'''Emma'' is a novel", '\'"Emma" is a novel'),
    "three quotes around a dropped template": ("'''T''' ('''{{no such thing}}''') ''b", 'T () "b'),
    "three quotes alone": ("a '''b\n''c''", 'a b\n"c"'),
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
    "text after a table": ("{|\n| a\n|} after", "after"),
    "unclosed table": ("before\n{|\n! a\n| b\n== Next ==\nafter", "before\nNext.\nafter"),
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
    "unclosed reference": ("a<ref>b", "ab"),
    "comment": ("a <!-- b\n== c == {{ -->d", "a d"),
    "unclosed comment": ("a <!-- b", "a"),
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
    # dropped templates and what stands around them
    "template in a link": ("near [[Oslo|{{nowrap|the city}}]]", "near"),
    "language": ("Rome ({{lang-it|Roma}}) is", "Rome () is"),
    "date": ("built {{start date|1999|5|1}}.", "built ."),
    "text without a break": ("at {{nowrap|5 km}} of", "at of"),
    "value": ("mass {{val|5.1|0.3|e=6|u=kg}} is", "mass is"),
    "possessive by template": ("in ''GQ''{{'s}} list", 'in "GQ" list'),
    "apostrophe by template": ("in ''[[GQ]]''{{'}}s list", 'in "GQ"s list'),
    "link in a template": ("a {{nowrap|[[b|c]] d}} e", "a e"),
    "equals sign in a template's link": ("{{small|[[E=mc|the formula]]}} x", "x"),
    "templates in templates": ("{{small|({{circa|{{formatnum:1066}}}})}} x", "x"),
    "template on many lines": ("a {{nowrap\n| b\n}} c", "a c"),
    "bar by template": ("{{small|a {{!}} b}} [[c{{!}}d]] x", "cd x"),
    "equals sign by template": ("{{small|1 + 1 {{=}} 2}} x", "x"),
    "table by template": ("a\n{{{!}}\n{{!}} b\n{{!}}}\nc", "a\nb\nc"),
    "template in an infobox": ("{{Infobox\n| a = {{convert|1|m}}\n}}\nb", "b"),
    "template in a table": ("a\n{|\n| {{convert|1|m}}\n|}\nb", "a\nb"),
    "template in a reference": ("a<ref>{{convert|1|m}}</ref>", "a"),
    "unknown template": ("a {{no such thing|1}} b", "a b"),
    "formula in a template": ("{{small|<math>x = 1</math>}} y", "y"),
    "fraction after a number": ("1{{frac|1|2}} miles", "1 miles"),
    "quotation": ("a\n{{quote|b\n\nc|[[D]]}}\ne", "a\ne"),
    "list in a template": ("a\n{{plainlist|\n* b\n* c}}\nd", "a\nd"),
    "list between templates": ("a\n{{div col}}\n* b\n{{div col end}}\nc", "a\nc"),
    "as of at the start": ("It is. {{as of|2015}}, it was.\n{{As of|2016}} too", "It is. , it was.\ntoo"),
    "as of within": ("Since then, {{as of|2015}}, [[it]] {{asof|2016|since=y}} was", "Since then, , it was"),
    "gap in brackets": ("Rand ({{IPA|x}} {{IPA|y}}; born; {{x}}) said", "Rand ( ; born; ) said"),
    "brackets of a gap": ("the aardvark ({{IPA|x}}), a mammal", "the aardvark (), a mammal"),
    "gap before a comma": ("a {{x}}, b{{y}}, {{z}}, c {{w}}.", "a , b, , c ."),
    "italics of a gap": ("a ''{{x}}'' b", "a ' b"),
    "gap at the start of a list line": ("* {{x}}, b", ""),
    "gap and a full stop": ("a. {{x}}. b... {{x}} c", "a. . b... c"),
    "gap of an amount": ("(equivalent to ${{inflation|US|5}} in 2015)", "(equivalent to $ in 2015)"),
    "amount before a gap": ("it cost 5€{{x}} and $5{{x}}", "it cost 5€ and $5"),
    "amount alone in brackets": ("a (US${{inflation|US|5}}) b", "a (US$) b"),
    "gaps in a row": ("a {{u}}, {{u}}, {{u}} and {{u}}.", "a , , and ."),
    "gaps in a row at the end": ("a {{u}}, {{u}}", "a ,"),
    "gaps between words": ("a{{u}} and {{u}} b, {{u}}.", "a and b, ."),
    "brackets by the author": ("main() and (; x) , y", "main() and (; x) , y"),
    "list under headings": ("== A ==\n=== B ===\n* [[c]]\n== D ==\n* {{x}}", ""),
    "list marks of all kinds": ("*#:; a\n#b", ""),
    "definition list in HTML": ("<dl><dt>a</dt><dd>b</dd></dl>", ""),
    "table in an HTML list": ("<ul><li>a<table><tr><td>b</td></tr></table></ul> c", "c"),
    "two letters before a colon, with label": ("the [[wp:Title|pillars]] x [[fr:Ville]]", "the x"),
    "formula that is text": ("<math>x^{2} + y_1 < [3]</math>", "formula_1"),
    "formula with a group": ("<math>x^{n+1}</math> <chem>H2O</chem>", "formula_1 formula_2"),
    "raised numbers": ("10<sup>6</sup> 10<sup>&minus;3</sup> km<sup>2</sup>", "106 10−3 km2"),
    "raised after lowered": ("SO<sub>4</sub><sup>2−</sup>", "SO42−"),
    "charge by template": ("{{chem|Si|4|4-}} {{chem2|SO4(2-)}} x", "x"),
    "fraction by tags": ("1<sup>1</sup>/<sub>2</sub> cups", "11/2 cups"),
    "formula with a digit after a group": ("<math>10^{6}5 x_{1}2</math>", "formula_1"),
    "raised letters": ("the 5<sup>th</sup> 2<sup>''n''</sup>", 'the 5th 2"n"'),
}


IN_IFQA = {
    "three quotes around a dropped template": 'T "b',
    "template that leaves a gap": "Kaine (born 1958)",
    "raised numbers": "10^6 10^−3 km2",
    "raised after lowered": "SO4^2−",
    "fraction by tags": "1 1/2 cups",
    "raised letters": 'the 5th 2^"n"',
    "as of at the start": "It is. it was.\ntoo",
    "as of within": "Since then, it was",
    "language": "Rome is",
    "gap in brackets": "Rand (born) said",
    "brackets of a gap": "the aardvark, a mammal",
    "gap before a comma": "a , b, c .",
    "italics of a gap": "a b",
    "gap and a full stop": "a. b... c",
    "gap of an amount": "(equivalent to in 2015)",
    "amount alone in brackets": "a b",
    "gaps in a row": "a .",
    "gaps in a row at the end": "a",
    "gaps between words": "a and b.",
}


@pytest.mark.parametrize("name", CONSTRUCTS)
@pytest.mark.parametrize("profile", get_args(Profile))
def test_construct(name: str, profile: Profile) -> None:
    wikitext, text = CONSTRUCTS[name]
    if profile == "ifqa":
        text = IN_IFQA.get(name, text)
    assert to_text(wikitext, profile).strip() == text.strip()


WORDS = st.lists(st.sampled_from(["alpha", "beta", "Gamma", "1984", "é", "(x)", "U.S.,"]), min_size=1, max_size=4).map(
    " ".join
)


def wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(" ".join),
        st.builds("{{{{t|x={}}}}}".format, inner),
        st.builds("{{{{small|{}}}}}".format, inner),
        st.builds("{{{{lang-fr|{}}}}}".format, inner),
        st.builds("{{{{convert|{}|km|mi}}}}".format, inner),
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


MARKUP = re.compile(r"\{\{|\}\}|\[\[|\]\]|<ref|\{\||\|-|''|style=|File:|&nbsp;|&amp;|<!--|==|[\x01-\x03]")


@given(st.recursive(WORDS, wrapped, max_leaves=20), st.sampled_from(get_args(Profile)))
def test_no_markup_is_left_of_balanced_markup(wikitext: str, profile: Profile) -> None:
    assert not MARKUP.search(to_text(wikitext, profile))


@given(st.lists(WORDS, min_size=1, max_size=6), st.sampled_from(get_args(Profile)))
def test_plain_paragraphs_are_unchanged(paragraphs: list[str], profile: Profile) -> None:
    assert to_text("\n\n".join(paragraphs), profile) == "\n".join(paragraphs)


@given(st.lists(WORDS, max_size=4), st.sampled_from(["small|{}", "convert|{}|km", "lang-fr|{}", "x|y={}"]))
def test_ifqa_drops_all_text_of_a_template(words: list[str], template: str) -> None:
    inner = "".join(f"{{{{{template.format(word)}}}}}" for word in words)
    assert to_text(f"before {{{{nowrap|{inner}}}}} after").split() == ["before", "after"]


MARKS = (
    "{{ }} {{{ [[ ]] [ ] {| |} |- | < > /> <ref <ref> </ref> <!-- --> <nowiki> </nowiki> <math> </math> <table>".split()
)
MARKS += "'' ''' ''''' == * : & &# &lt; [[File: [[fr: [http:// __ __TOC__ \" a ( ) , ; <sup> <li>".split()
MARKS += "{{small| {{convert|1| {{frac| {{quote| {{!}} {{=}} {{x}}".split()
MARKS += ["\n", " ", "\x00", "\ud800", "\x01", "\x02", "\x03"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(MARKS)).map("".join)))
def test_no_page_raises(wikitext: str) -> None:
    for profile in get_args(Profile):
        assert isinstance(to_text(wikitext, profile), str)


@given(st.data())
def test_no_page_with_a_piece_removed_or_inserted_raises(data: st.DataObject) -> None:
    page = "\n".join(wikitext for wikitext, _ in CONSTRUCTS.values())
    start = data.draw(st.integers(0, len(page)))
    end = data.draw(st.integers(start, min(len(page), start + 40)))
    for profile in get_args(Profile):
        assert len(to_text(page[:start] + data.draw(st.sampled_from(MARKS)) + page[end:], profile)) < len(page)


@pytest.mark.parametrize("profile", get_args(Profile))
@pytest.mark.parametrize("mark", [*MARKS, "[[a [b] ", "{{a|{b}", "[[a|", "''\"", "&a", "\n{|\n| ", "( {{x}},", "{{e}}"])
def test_a_long_page_of_one_mark_takes_far_less_than_quadratic_time(mark: str, profile: Profile) -> None:
    def seconds(length: int) -> float:
        begun = time.process_time()
        to_text(mark * (length // len(mark)), profile)
        return time.process_time() - begun

    once = max(min(seconds(15_000) for _ in range(2)), 0.005)
    assert any(seconds(120_000) < 30 * once for _ in range(3))


def test_templates_nested_hundreds_deep_are_dropped() -> None:
    assert to_text("a " + "{{small|" * 200 + "b" + "}}" * 200 + " c") == "a c"
    assert to_text("a {{small|" * 200 + "b {{small|c}} d").endswith("b d")  # never closed
