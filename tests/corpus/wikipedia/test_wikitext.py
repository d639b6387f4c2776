"""Wikitext to text: the exact text of each construct."""

import time
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ifqa.corpus.wikipedia.wikitext import GAP, Profile, remove_gaps, remove_lists, to_text

# wikitext, its text in the profile "release", and that in the profile "ifqa" where it differs
CONSTRUCTS = {
    "link with label": ("the [[Paris|French capital]].", "the French capital."),
    "link with trailing letters": ("two [[dog]]s and [[cat|kitten]]s", "two dogs and kittens"),
    "link without a label": ("a [[Mercury (planet)|]] b", "a b"),
    "link whose label was a template": ("near [[Oslo|{{flag|Oslo}}]].", "near ."),
    "link with a colon in its title": (
        "saw [[Alien: Covenant]] twice",
        "saw Alien: Covenant twice",
    ),
    "link with brackets in its label": (
        "a [[quotation|[sic] quotation]] here",
        "a [sic] quotation here",
    ),
    "shown category with label": (
        "see [[:Category:Cities|the cities]] and [[:Datei:A.jpg|a]]",
        "see the cities and a",
    ),
    "file by an alias, with blanks": (
        "[[ tập_tin :A.jpg|nhỏ|x]]It is [[bild:B.png]]red.",
        "It is red.",
    ),
    "title that begins like a file": (
        "saw [[Filar: the film]] and [[Bilder]]",
        "saw Filar: the film and Bilder",
    ),
    "other language": ("text\n[[fr:Ville]]\n[[zh-min-nan:Siâⁿ-chhī]]", "text"),
    "interwiki with label": ("a [[wikt:city|city]]", "a city"),
    "file in lower case": ("[[image:A.jpg|a [sic] caption]]It is red.", "It is red."),
    "file in a file's caption": (
        "[[File:A.jpg|left [[File:B.jpg|x [[c]]]] right]]It is red.",
        "It is red.",
    ),
    "external link": ("[http://a.org the site] and [https://b.org]", "the site and "),
    "external link without protocol": (
        "[//a.org the [[big|site]]] and [mailto:a@b.org mail]",
        "the site and mail",
    ),
    "square brackets": ("he [the king] said [...] so", "he [the king] said [...] so"),
    "italics": ("read ''Emma'' twice", 'read "Emma" twice'),
    "bold italics": ("'''''Emma''''' is a novel", "Emma is a novel"),
    "bold in italics": ("''a '''b''''' c", '"a b" c'),
    "bold italics, bold ends first": ("'''''a''' b'' c", '"a b" c'),
    "italics already in quotes": ("read \"''Emma''\" and ''\"Ivan\"''", 'read "Emma" and "Ivan"'),
    "possessive of italics": ("''Iliad'''s description", '"Iliad"\'s description'),
    "possessive beside bold": ("'''A''' of ''Iliad'''s b\n'''c'''", 'A of "Iliad"\'s b\nc'),
    "elision before italics": ("in L'''Emma'' again", 'in L\'"Emma" again'),
    "quote before italics": ("'''Emma'' is a novel", '\'"Emma" is a novel'),
    "three quotes around a dropped template": (
        "'''T''' ('''{{no such thing}}''') ''b",
        'T () "b',
        'T "b',
    ),
    "three quotes alone": ("a '''b\n''c''", 'a b\n"c"'),
    "apostrophes": ("the dogs' tails, rock 'n' roll", "the dogs' tails, rock 'n' roll"),
    "nested templates": ("a {{b|{{c|{{d|{{e|{{f|{{g}}}}}}}}}}}} h", "a h"),
    "templates nested 200 deep": ("a " + "{{small|" * 200 + "b" + "}}" * 200 + " c", "a c"),
    "200 unclosed templates": ("a {{small|" * 200 + "b {{small|c}} d", "a small|" * 200 + "b d"),
    "template with single braces": ("a {{math|{x} + {y} }} b", "a b"),
    "parameter": ("a {{{1|default}}} b {{x|{{{2|}}}}} c", "a b c"),
    "parser function": ("a {{#if:x|{{y}}|z}} b", "a b"),
    "infobox": (
        "{{Infobox city\n| name = Paris\n| map = {{map}}\n}}\n'''Paris''' is a city.",
        "Paris is a city.",
    ),
    "magic word": ("__NOTOC__\ntext __FORCETOC__", "text"),
    "table": (
        'before\n{| class="wikitable" style="x"\n! h\n|-\n| [[a]] || b\n|}\nafter',
        "before\nafter",
    ),
    "indented table": ("before\n:{|\n| a\n|}\nafter", "before\nafter"),
    "unclosed table": ("before\n{|\n! a\n| b\n== Next ==\nafter", "before\nNext.\nafter"),
    "table closed by a template": ("before\n{{start}}\n|-\n| b\n{{end}}\nafter", "before\nafter"),
    "HTML table": (
        "before <table><tr><td>a<table><tr><td>b</table></td></tr></table> after",
        "before after",
    ),
    "heading": ("intro\n== History ==\ntext", "intro\nHistory.\ntext"),
    "heading that ends a sentence": (
        "== Why? ==\na\n==In the U.S.==\nb",
        "Why?\na\nIn the U.S.\nb",
    ),
    "heading with markup": (
        "== ''Emma'' and [[Jane Austen|Austen]]{{x}} ==\na",
        '"Emma" and Austen.\na',
    ),
    "heading over a heading": ("== A ==\n=== B ===\ntext", "A.\nB.\ntext"),
    "heading without text": ("== A ==\n== B ==\ntext\n=== C ===\n== D ==", "B.\ntext"),
    "heading over a list": ("== A ==\ntext\n== See also ==\n* [[b]]\n* [[c]]", "A.\ntext"),
    "lists": ("These are:\n* a\n** b\n# c\n; d\n: e\n:: f\nend", "These are:\nend"),
    "paragraph that looks like a list": ("'''*NSYNC''' is a band", "*NSYNC is a band"),
    "HTML list": ("a\n<ul><li>b</li><li><ol><li>c</ol></ul>\nd", "a\nd"),
    "reference": ('a<ref>b [[c]] {{d}}</ref> e<ref name="f/g"/>.', "a e."),
    "reference with tags in it": ("a<ref name=b>c <i>d</i> <!-- e --></ref> f", "a f"),
    "reference over lines": ("a<ref>\n* b\n* c\n</ref> d<REF>e</REF>", "a d"),
    "unclosed reference": ("a<ref>b", "ab"),
    "comment": ("a <!-- b\n== c == {{ -->d", "a d"),
    "unclosed comment": ("a <!-- b", "a"),
    "comment around a reference": ("a <!-- <ref>b --> c <ref>d</ref>", "a c"),
    "nowiki": ("<nowiki>[[a]] ''b'' {{c}} <ref></nowiki>", "[[a]] ''b'' {{c}} <ref>"),
    "comments beside nowiki": ("a <nowiki>b</nowiki> <!-- <nowiki>c</nowiki> -->d <!-- e", "a b d"),
    "comment in nowiki": ("a <nowiki><!--</nowiki> b", "a <!-- b"),
    "empty nowiki": ("L<nowiki/>'''été'''", "Lété"),
    "formulas": (
        r"<math>\{x\}</math>, <math>y</math> and <math>\{x\}</math>",
        "formula_1, formula_2 and formula_1",
    ),
    "code listing": (
        "a\n<syntaxhighlight lang=c>int x[2][3];</syntaxhighlight>\n<pre>y</pre>\nb",
        "a\nb",
    ),
    "gallery": ("a\n<gallery>\nFile:A.jpg|b\n</gallery>\nc", "a\nc"),
    "less than": ("if a < b and c > d then 1 <2", "if a < b and c > d then 1 <2"),
    "entities": (
        "AT&amp;T&nbsp;&ndash; 5&#160;&#x3C;&lt; R&B &nosuch;",
        "AT&T – 5 << R&B &nosuch;",
    ),
    "blanks": ("a   b\u00a0 c\n   d\t\n\n\n\ne", "a b c\nd\ne"),
    "line without a word": ("a\n()\n,\nb", "a\nb"),
    "marks without a partner": ("a {{ b }} }} c [[ d ]] ]] e |} {| [[", "a c d e"),
    "apostrophe by template": ("in ''[[GQ]]''{{'}}s list", 'in "GQ"s list'),
    "bar by template": ("{{small|a {{!}} b}} [[c{{!}}d]] x", "cd x"),
    "table by template": ("a\n{{{!}}\n{{!}} b\n{{!}}}\nc", "a\nb\nc"),
    "as of at the start": (
        "It is. {{as of|2015}}, it was.\n{{As of|2016}} too",
        "It is. , it was.\ntoo",
        "It is. it was.\ntoo",
    ),
    "as of within": (
        "Since then, {{as of|2015}}, [[it]] {{asof|2016|since=y}} was",
        "Since then, , it was",
        "Since then, it was",
    ),
    "gap in brackets": (
        "Rand ({{IPA|x}} {{IPA|y}}; born; {{x}}) said",
        "Rand ( ; born; ) said",
        "Rand (born) said",
    ),
    "brackets of a gap": (
        "the aardvark ({{IPA|x}}), a mammal",
        "the aardvark (), a mammal",
        "the aardvark, a mammal",
    ),
    "gap before a comma": ("a {{x}}, b{{y}}, {{z}}, c {{w}}.", "a , b, , c .", "a , b, c ."),
    "italics of a gap": ("a ''{{x}}'' b", "a ' b", "a b"),
    "gap and a full stop": ("a. {{x}}. b... {{x}} c", "a. . b... c", "a. b... c"),
    "gap of an amount": (
        "(equivalent to ${{inflation|US|5}} in 2015)",
        "(equivalent to $ in 2015)",
        "(equivalent to in 2015)",
    ),
    "amount before a gap": ("it cost 5€{{x}} and $5{{x}}", "it cost 5€ and $5"),
    "gaps in a row": ("a {{u}}, {{u}}, {{u}} and {{u}}.", "a , , and .", "a ."),
    "gaps between words": ("a{{u}} and {{u}} b, {{u}}.", "a and b, .", "a and b."),
    "brackets by the author": ("main() and (; x) , y", "main() and (; x) , y"),
    "list under headings": ("== A ==\n=== B ===\n* [[c]]\n== D ==\n* {{x}}", ""),
    "formula with a group": ("<math>x^{n+1}</math> <chem>H2O</chem>", "formula_1 formula_2"),
    "raised numbers": (
        "10<sup>6</sup> 10<sup>&minus;3</sup> km<sup>2</sup>",
        "106 10−3 km2",
        "10^6 10^−3 km2",
    ),
    "raised after lowered": ("SO<sub>4</sub><sup>2−</sup>", "SO42−", "SO4^2−"),
    "fraction by tags": ("1<sup>1</sup>/<sub>2</sub> cups", "11/2 cups", "1 1/2 cups"),
    "raised letters": ("the 5<sup>th</sup> 2<sup>''n''</sup>", 'the 5th 2"n"', 'the 5th 2^"n"'),
}


@pytest.mark.parametrize("name", CONSTRUCTS)
@pytest.mark.parametrize("profile", get_args(Profile))
def test_construct(name: str, profile: Profile) -> None:
    wikitext, *texts = CONSTRUCTS[name]
    assert to_text(wikitext, profile).strip() == texts[-1 if profile == "ifqa" else 0].strip()


# wikitext, and its text in "ifqa": gaps of dropped templates (x is any template), and lines that
# begin with `:` or `;`
GAPS = {
    "in a row": ("In 1990, {{x}} long, {{x}}, {{x}}.", "In 1990, long."),
    "in italics in brackets": ("unique (''{{x}}'') and", "unique and"),
    "before the dates": (
        "Einstein ({{x}}; {{x}}; 14 March 1879) was",
        "Einstein (14 March 1879) was",
    ),
    "on both sides of a dash": ("Anna Berg ({{x}} – {{x}}) was", "Anna Berg was"),
    "at the start of a sentence": ("It is so. {{x}}, Angola had one.", "It is so. Angola had one."),
    "after an abbreviation": ("bees, wasps, etc.{{x}}, are", "bees, wasps, etc., are"),
    "after a label": (
        'Greek: {{x}}, "Apollo"; Doric: {{x}}; Aeolic: {{x}}.',
        'Greek: "Apollo"; Doric; Aeolic.',
    ),
    "a missing value": (
        "at a depth of {{x}}. It fell below {{x}}, and",
        "at a depth of . It fell below , and",
    ),
}
PROSE = {
    "quotation": (
        'He said:\n:"It was moving to Mayberry in 1974."',
        'He said:\n"It was moving to Mayberry in 1974."',
    ),
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
    "bold line over text": (
        "It says.\n:'''Article 113'''\n1. They vote.",
        "It says.\nArticle 113.\n1. They vote.",
    ),
    "sentence of its own": ("It ends.\n::A new one begins.", "It ends.\nA new one begins."),
    "terms with definitions": (
        "x\n;Recursion\n: It calls itself.",
        "x\nRecursion.\nIt calls itself.",
    ),
    "term over text": ("x\n; The [[end]]:\nIt ended.", "x\nThe end.\nIt ended."),
    "term and definition in one line": (
        "x\n; Factors: What one changes.",
        "x\nFactors: What one changes.",
    ),
    "prose with a formula": (
        "x\n:for all <math>n</math> it is so.",
        "x\nfor all formula_1 it is so.",
    ),
    "prose after a file": ("It is\n[[File:A.jpg|b]]\n:the end of it", "It is\nthe end of it"),
}

NO_PROSE = {
    "note": "It ends.\n:''See also: [[History of it]].''",
    "note at the start of the page": ":''Hierdie artikel handel oor die eiland.''\nIt ends.",
    "note that names another article": "It ends.\n:For the other one, see [[It (film)]].",
    "formula": "It ends with:\n:<math>x</math>\n:<math>y</math>.",
    "equation of words": "It ends with\n:RCH=CH2 + H2 → RCH2CH3(R = alkyl)",
    "code": "It ends with\n:{ a[i] = 'n'; }",
    "continued list item": "It ends:\n* One of them.\n:This item goes on.\n::And on.",
    "talk": (
        "It ends,\n:I do not think so. --[[User:X|X]] 12:03, 3 May 2005\n:Nor do I. "
        "12:04, 3 May 2005 (UTC)"
    ),
    "table of contents": "== Contents ==\n:1 The beginning\n::1.1 The very beginning\n:2 The end",
    "terms over lists": "It ends.\n;Books\n* A book.\n;Films\n* A film.\n[[Category:A]]",
    "term over nothing": "It ends.\n;Notes\n[[Category:A]]",
    "no word": "It ends:\n: 36\n:+ →",
}


@pytest.mark.parametrize(
    ("wikitext", "text"), [*GAPS.values(), *PROSE.values()], ids=[*GAPS, *PROSE]
)
def test_only_prose_is_left_of_wikitext(wikitext: str, text: str) -> None:
    assert to_text(wikitext) == text


@pytest.mark.parametrize("name", [*NO_PROSE, *PROSE])
def test_the_release_drops_all_indented_lines(name: str) -> None:
    wikitext = NO_PROSE[name] if name in NO_PROSE else PROSE[name][0]
    unindented = "\n".join(line for line in wikitext.split("\n") if line[:1] not in (":", ";", "*"))
    assert to_text(wikitext, "release") == to_text(unindented, "release")


@pytest.mark.parametrize("name", [name for name in NO_PROSE if name not in PROSE])
def test_the_default_drops_indented_lines_without_prose(name: str) -> None:
    assert to_text(NO_PROSE[name]) == to_text(NO_PROSE[name], "release")


@given(st.lists(st.text("ab:;*# .='\"[", max_size=9), max_size=9))
def test_lines_without_a_mark_are_kept_in_order(lines: list[str]) -> None:
    output = iter(remove_lists("\n" + "\n".join(lines), prose=True).split("\n"))
    assert all(line in output for line in lines if line[:1] not in (":", ";", "*", "#"))


SOUP = st.text(" ,;:.()'-$€abc", max_size=12)


@given(SOUP)
@example("main() { f(, , 1); } ( ) ,, :-) .. ;)")
def test_text_without_dropped_templates_is_unchanged(text: str) -> None:
    assert remove_gaps(text) == text
    assert to_text(f"a {text}") == to_text(f"a {text}", "release")


@given(SOUP, SOUP)
def test_text_apart_from_a_gap_is_unchanged(before: str, after: str) -> None:
    assert remove_gaps(f"{before} a {GAP} b {after}") == f"{before} a  b {after}"


GAPPED = st.text(f" ,;:.()'$a{GAP}", max_size=20)


@given(GAPPED)
def test_all_gaps_are_removed(text: str) -> None:
    assert GAP not in remove_gaps(text)


@given(GAPPED)
def test_a_second_removal_of_gaps_changes_nothing(text: str) -> None:
    output = remove_gaps(text)
    assert remove_gaps(output) == output


MARKS = (
    "{{ }} {{{ [[ ]] [ ] {| |} |- | < > /> <ref <ref> </ref> <!-- --> "
    "<nowiki> </nowiki> <math> </math>"
).split()
MARKS += (
    "<table> '' ''' ''''' == * : & &# &lt; [[File: [[fr: [http:// __ __TOC__ \" a ( ) , ; "
    "<sup> <li>"
).split()
MARKS += "{{small| {{convert|1| {{frac| {{quote| {{!}} {{=}} {{x}}".split()
PIECES = [
    "[[a [b] ",
    "{{a|{b}",
    "[[a|",
    "''\"",
    "&a",
    "\n{|\n| ",
    "( {{x}},",
    "{{e}}",
    ", {{x}} ",
    "{{x}} and ",
    "${{x}}",
    "\n:a b",
    "\n;a",
    '\n:"',
]
MARKS += ["\n", " ", "\x00", "\ud800", "\x01", "\x02", "\x03"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(MARKS)).map("".join)))
def test_no_page_raises(wikitext: str) -> None:
    for profile in get_args(Profile):
        assert isinstance(to_text(wikitext, profile), str)


@pytest.mark.parametrize("profile", get_args(Profile))
@pytest.mark.parametrize("mark", [*MARKS, *PIECES])
def test_a_long_page_of_one_mark_takes_far_less_than_quadratic_time(
    mark: str, profile: Profile
) -> None:
    def seconds(length: int) -> float:
        start = time.process_time()
        to_text(mark * (length // len(mark)), profile)
        return time.process_time() - start

    once = max(min(seconds(15_000) for _ in range(2)), 0.005)
    assert any(seconds(120_000) < 30 * once for _ in range(3))
