"""HTML: tables, lists, marks, and what of a page is read.

A list of sentences is one for each row of a table, item of a list, or run of paragraphs.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import runs

from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import Unread, UnreadableFile
from ifqa.corpus.documents.html import html_runs, read_html
from ifqa.corpus.documents.html_tokens import tokenize


def sentences(page):
    """The lines of the passages of a page."""
    passages = chunk_document("a.html", html_runs(page), "line", 10_000)
    return [line for passage in passages for line in passage.text.split("\n")]


def text(page):
    return " ".join(sentences(page))


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (
            "<tr><th>Item<th>Old<th>New<tr><td>Lamp<td><td>30<tr><td>Chair<td>99<td>",
            ["Item: Lamp; New: 30.", "Item: Chair; Old: 99."],
        ),
        (
            "<thead><tr><td>Item</td><td>Price</td></tr></thead><tbody><tr><td>Lamp</td><td>new</td></tr></tbody>",
            ["Item: Lamp; Price: new."],
        ),
        (
            "<caption>Prices of 2024</caption><tr><th>Item</th><th>Price</th></tr><tr><td>Lamp</td><td>30</td></tr>",
            ["Prices of 2024", "Item: Lamp; Price: 30."],
        ),
        (
            "<tr><th colspan=2>Prices</th></tr><tr><th>Item<th>Cost</tr><tr><td>Lamp<td>30</tr>",
            ["Prices.", "Item: Lamp; Cost: 30."],
        ),
        (
            "<tr><th rowspan=2>State<th colspan=2>Premium</tr><tr><th>2022<th>2023</tr><tr><td>Alaska<td>5<td>6</tr>",
            ["State: Alaska; Premium 2022: 5; Premium 2023: 6."],
        ),
        (
            "<tr><th>State<th>City<th>Mills<tr><td rowspan=2>Alaska<td>Nome<td>3<tr><td>Juneau<td>4",
            ["State: Alaska; City: Nome; Mills: 3.", "State: Alaska; City: Juneau; Mills: 4."],
        ),
        (
            "<tr><th scope=row>Chair</th><td>Nora Pike</td></tr><tr><th scope=row>Deputy</th><td>Tom Ferris</td></tr>",
            ["Chair: Nora Pike.", "Deputy: Tom Ferris."],
        ),
        (
            "<tr><th>Ann</th><td>Marlow</td><td>baker</td></tr><tr><th>Bo</th><td>Leeds</td><td>smith</td></tr>",
            ["Ann; Marlow; baker.", "Bo; Leeds; smith."],
        ),
        (
            "<tr><td></td><th>2022</th><th>2023</th></tr><tr><th>Wheat</th><td>5</td><td>6</td></tr>",
            ["Wheat; 2022: 5; 2023: 6."],
        ),
        (
            "<tr><th>a<th>b<tr><td>1<td>2<tr><th>c<th>d<tr><td>3<td>4",
            ["a: 1; b: 2.", "c: 3; d: 4."],
        ),
        ("<tr><th>a<th>b<tr><td>1<td>2<tfoot><tr><th>a<th>b", ["a: 1; b: 2."]),
        ("<thead><tr><th><th></thead><tr><td>x y<td>1<tr><td>z<td>2", ["x y: 1.", "z: 2."]),
        (
            "<tr><th>Mill<th>Parts<tr><td>Elm<td><ul><li>wheel<li>sluice</ul><tr><td>Oak<td>wheel<br>and race",
            ["Mill: Elm; Parts: wheel, sluice.", "Mill: Oak; Parts: wheel and race."],
        ),
        (
            "<tr><th>Mill<th>Sizes<tr><td>Elm<td><table><tr><td>old<td>3<tr><td>new<td>4</table><tr><td>Oak<td>none",
            ["Mill: Elm; Sizes: old: 3. new: 4.", "Mill: Oak; Sizes: none."],
        ),
        (
            "<tr><td>employee<td>ext<td>floor<tr><td>Ann<td><td><tr><td>Bob<td>204<td>2"
            "<tr><td>Cid<td>205<td>3",
            [
                "employee: Ann.",
                "employee: Bob; ext: 204; floor: 2.",
                "employee: Cid; ext: 205; floor: 3.",
            ],
        ),
        (
            "<tr><th>Plan<th>Free<th>Pro<tr><td>SSO<td>No<td>Yes<tr><td>No<td>No<td>No",
            ["Plan: SSO; Free: No; Pro: Yes.", "Plan: No; Free: No; Pro: No."],
        ),
        (
            "<tr><th>Plan<th>Free<th>Pro<tr><td colspan=3>No<tr><td>SSO<td>No<td>Yes",
            ["No.", "Plan: SSO; Free: No; Pro: Yes."],
        ),
        ("<tr><th>Title<th>Year<tr><td>Elm<td>1901", ["Title: Elm; Year: 1901."]),
        ("<tr><td>Lamp<td>30<td>99", ["Lamp; 30; 99."]),
        ("<tr><td colspan=0>Lamp<td rowspan=x>30<tr><td>Chair<td>40", ["Lamp: 30.", "Chair: 40."]),
        (
            "<tr><th>Item<th>Cost<tr><td><del>Lamp</del>Lantern<td><s>30</s> 40<tr hidden><td>Chair<td>9<tr><td>Bed<td>7",
            ["Item: Lantern; Cost: 40.", "Item: Bed; Cost: 7."],
        ),
    ],
)
def test_a_row_of_a_table_is_a_sentence(table, rows):
    assert sentences(f"<table>{table}</table>") == rows


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (
            "<table><tr><td><h1>Mill</h1><p>It turns.</td><td>It is of oak.</td></tr></table>",
            "Mill. It turns. It is of oak.",
        ),
        (
            "<table role=presentation><tr><td>One<td>Two<tr><td>Three<td>Four</table>",
            "One Two Three Four",
        ),
        ("<table><tr><td><p>One thing.</p></table><p>More.", "One thing. More."),
        (
            "<table><tr><td>Left<td><table><tr><th>a<th>b<tr><td>1<td>2</table><tr><td>x<td>y</table>",
            "Left a: 1; b: 2. x y",
        ),
        ("<table><tr><td><pre>1\n2</pre><td><pre>if x:\n  y</pre></table>", "1 2 if x: y"),
        (f"<table><tr><td>{'word ' * 201}<td>x<tr><td>y<td>z</table>", f"{'word ' * 201}x y z"),
    ],
)
def test_a_table_that_lays_out_a_page_is_read_as_text(page, shown):
    assert text(page) == shown


def test_the_place_of_a_row_is_its_line():
    page = "<table>\n<tr><th>a\n<th>b\n<tr><td>1\n<td>2\n<tr><td>3<td>4</table>"
    assert [(place, shown) for place, _, shown in runs(".html", page)] == [
        (4, "a: 1; b: 2."),
        (6, "a: 3; b: 4."),
    ]


@pytest.mark.parametrize(
    ("page", "items"),
    [
        (
            "<ul><li>Ann Boll<li>Bo Carr (chair)</ul><p>End.",
            ["Ann Boll.", "Bo Carr (chair).", "End."],
        ),
        ("<ol><li>One<li>Two</ol>", ["1. One.", "2. Two."]),
        ("<ol start=3><li>One<li value=7>Two<li>Three</ol>", ["3. One.", "7. Two.", "8. Three."]),
        ("<ol reversed><li>One<li>Two<li>Three</ol>", ["3. One.", "2. Two.", "1. Three."]),
        ("<ol reversed start=5><li>One<li>Two</ol>", ["5. One.", "4. Two."]),
        ("<ol type=a start=26><li>One<li>Two</ol>", ["z. One.", "aa. Two."]),
        ("<ol type=A><li>One</ol><ol type=i start=4><li>Two</ol>", ["A. One.", "iv. Two."]),
        ('<ol style="list-style-type: upper-roman"><li>One<li>Two</ol>', ["I. One.", "II. Two."]),
        ('<ol style="list-style: none"><li>5.4 One</ol>', ["5.4 One."]),
        (
            "<ol><li>One<ol type=a><li>Two<li>Three</ol>more<li>Four</ol>",
            ["1. One.", "a. Two.", "b. Three.", "more", "2. Four."],
        ),
        ("<ol><li><ol type=a><li>One</ol></ol>", ["1. a. One."]),
        ("<ol><li><p>One.</p><p>Two.</p></li><li>Three</ol>", ["1. One.", "Two.", "2. Three."]),
        ("<ul><li>One,<li>two and<li>three.</ul>", ["One,", "two and.", "three."]),
        (
            "<ul><li><input type=checkbox checked> Done<li><input type=checkbox> Not</ul>",
            ["[x] Done.", "[ ] Not."],
        ),
        (
            "<dl><dt>Chair<dd>Nora Pike<dt>Deputy<dd><p>Tom Ferris</dl>",
            ["Chair: Nora Pike.", "Deputy: Tom Ferris."],
        ),
        ("<dl><dt>a<dt>b<dd>Both<dd>More</dl>", ["a, b: Both.", "a, b: More."]),
        ("<dl><dt>Who keeps it?<dd>Nora.</dl>", ["Who keeps it? Nora."]),
        ("<dl><div><dt>Chair:<dd>Nora</div></dl>", ["Chair: Nora."]),
        ("<dl><dt>Mills<dd><ul><li>Elm<li>Oak</ul></dl>", ["Mills:", "Elm.", "Oak."]),
        ("<li>One<li>Two", ["One.", "Two."]),
        ("<ol><li hidden>No<li>Two</ol>", ["1. Two."]),
        ("<ul><li style='display:none'>No<ul><li>no</ul><li>Yes</ul>", ["Yes."]),
    ],
)
def test_an_item_of_a_list_is_a_sentence(page, items):
    assert sentences(page) == items


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("6 × 10<sup>24</sup> kg of H<sub>2</sub>O", "6 × 10^24 kg of H2O"),
        ("1<sup>1</sup>/<sub>2</sub> cups", "1 1/2 cups"),
        ("in 1894<sup><a href='#n3'>[3]</a></sup>.", "in 1894 [3]."),
        ("a mill<a href='#n'><sup>2</sup></a> turns", "a mill 2 turns"),
        ("a mill<a role=doc-noteref href=#n>2</a> turns", "a mill 2 turns"),
        ("a mill<a epub:type='noteref' href='n.html#a'>2</a> turns", "a mill 2 turns"),
        ("a mill<sup class=footnote-ref>2</sup> turns", "a mill 2 turns"),
        ("see 10<sup><a href='#x'>a long remark here</a></sup>", "see 10a long remark here"),
        ("2<sup>n<sup>2</sup></sup>", "2n^2"),
        ("x<sup>2<p>next", "x2 next"),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp>字<rt>ji</ruby>", "漢(kan)字(ji)"),
        ("He said <q>no</q>.", "He said “no”."),
        ("<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math> of it", "a/b of it"),
        (
            "<math><semantics><mrow><msup><mi>x</mi><mn>24</mn></msup><mo>=</mo>"
            "<msub><mi>y</mi><mn>1</mn></msub></mrow><annotation>x^24=y_1</annotation></semantics></math>",
            "x^24 = y1",
        ),
        (
            "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><msqrt><mn>2</mn></msqrt></mfrac></math>",
            "(a + b)/(√(2))",
        ),
        ("<math><mi>a</mi><p>next", "a next"),
        ("The chair is <del>Tom</del><ins>Nora</ins>.", "The chair is Nora."),
        ("The <s>old</s> <strike>older</strike> chair", "The chair"),
        ("<p style='text-decoration: line-through'>Tom</p><p>Nora", "Nora"),
        ("<div style='display : none'>Tom<div>too</div></div>Nora", "Nora"),
        ("<span style='visibility:hidden'>Tom</span>Nora", "Nora"),
        ("<p hidden>Tom<p>Nora", "Nora"),
        ("<p class='nav hidden md:block' title='a hidden door'>Nora", "Nora"),
        ("<div hidden=until-found>Nora</div>", "Nora"),
        ("<s>Nora keeps it.<p>Tom", "Nora keeps it. Tom"),  # without an end
        ("<details><summary>Who?</summary>Nora</details>", "Who? Nora"),
        ("One<br>Two", "One Two"),
        ("Tom &amp; Nora &lt;b&gt; &#38;amp; &copy;", "Tom & Nora <b> &amp; ©"),
        ("<a title='a > b' href='x'>Nora</a>", "Nora"),
        ("<p data-x=\"<b>no</b>\" class='a'>Nora", "Nora"),
        ('<a href="x>Tom</a> and <a href="y">Nora</a>', "Tom and Nora"),
        ("<![if !mso]>Nora<![endif]><!--[if mso]>Tom<![endif]-->", "Nora"),
        ("<![CDATA[a < b & c]]>", "a < b & c"),
        ("<h2>Mills<a class=headerlink href='#mills'>¶</a></h2>Two.", "Mills. Two."),
        ("<span>[</span><a role=doc-backlink href='#r4'>4</a><span>]</span> Nora", "[4] Nora"),
        ("Nora <a role=doc-backlink href='#r4'>↩</a>", "Nora"),
        ("Nora <sup><a role=doc-backlink href='#r4'>↩</a></sup>", "Nora"),
        ("<h2><button>Opening hours</button></h2>Nine to five.", "Opening hours. Nine to five."),
    ],
)
def test_marks_are_written_plainly(page, shown):
    assert text(page) == shown


PAGE = "Boats over nine metres pay forty crowns a night"


@pytest.mark.parametrize(
    "page",
    [
        f"<form action=x><input type=hidden value=no><h1>T</h1><p>{PAGE}.</form>",
        f"<form><p>{PAGE}.<button>Go</button><select><option>no</select></form>",
        f"<form><p>{PAGE}.</p>",
        f"<p>{PAGE}.</p><form>Search: <input name=q><button>Go</button></form>",
        f"<header><p>{PAGE}.</p></header>",
        f"<footer>{PAGE}.</footer>",
        f"<aside>{PAGE}.</aside>",
        f"<nav><ul><li>{PAGE}.</ul></nav>",
        f"<h1>T</h1><div role=navigation><div><p>{PAGE}.</div></div>",
        f"<noscript>{PAGE}. " + "It is a rule. " * 5 + "</noscript>",
        f"<div><template shadowrootmode=open><p>{PAGE}.</p></template></div>",
        f"<template><p>No.</p></template><p>{PAGE}.",
        f"<svg><style>.a</style><title>no</title><text x=1>{PAGE}.</text></svg>",
        f"<svg><foreignObject><p>{PAGE}.</p></foreignObject></svg>",
        f"<svg><path d='M0'><p>{PAGE}.",
        f'<iframe srcdoc="<p>{PAGE}.</p>"></iframe>',
        f"<iframe srcdoc='&lt;p class=&quot;a&quot;&gt;{PAGE}.'></iframe>",
        f"<div role=navigation><div>Home</div></div><p>{PAGE}.",
        f"<nav><div hidden>no</nav></div><p>{PAGE}.",
        f"<video>Get a browser</video><canvas>no</canvas><p>{PAGE}.",
        f"<dialog>Cookies?</dialog><p>{PAGE}.",
    ],
)
def test_the_text_of_the_page_is_found(page):
    shown = text(page)
    assert f"{PAGE}." in shown
    assert not any(word in shown.split() for word in ("no", "No.", "Home", "Go", "Cookies?"))


def test_the_values_of_a_filled_form_are_read():
    form = (
        "<form><p>The lease of the mill at Marlow is for nine years.</p>"
        "<label>Tenant</label> <input value='Nora Pike'><br>Rent: <input type=number value=40>"
        "<input type=password value=secret><input type=hidden value=token>"
        "<p>Note <textarea>Paid &amp; done</textarea>"
        "<p>Town <select><option>Leeds<option selected>Marlow</select>"
        "<p><input type=radio checked> yearly <input type=radio> monthly</form>"
    )
    shown = text(form)
    assert "Tenant: Nora Pike Rent: 40" in shown
    assert "Note Paid & done Town: Marlow [x] yearly [ ] monthly" in shown
    assert "secret" not in shown
    assert "token" not in shown


def test_a_page_that_needs_javascript_has_no_text():
    assert html_runs("<noscript>You need to enable JavaScript.</noscript><div id=root></div>") == []


def test_a_page_of_frames_is_unreadable_with_its_files():
    page = (
        b"<frameset cols=2><frame src=nav.html><frame src='main.html'><noframes>Get one.</noframes>"
    )
    with pytest.raises(UnreadableFile, match=r"in other files: nav\.html, main\.html"):
        list(read_html(page))


def test_struck_parts_are_told():
    page = b"<p hidden>a<p>Nora <s>Tom</s> <del>Bo</del><script>x</script>"
    assert list(read_html(page))[-1] == Unread("struck or hidden part", 3)


@pytest.mark.parametrize(
    ("columns", "rows"), [("1000000", "1000000"), ("1000", "2"), ("1", "65534"), ("-5", "")]
)
def test_merged_cells_of_any_size_take_bounded_memory(columns, rows):
    cell = f"<td colspan='{columns}' rowspan='{rows}'>x"
    page = "<table>" + f"<tr>{cell * 20}" * 50 + "</table>"
    assert sum(len(run.text) for run in html_runs(page)) < 40 * len(page)


@given(st.text("<>&/='\"!-[] \nabptdhrul", max_size=300))
def test_tokens_have_every_line_of_the_page(page):
    pieces = [piece for token in tokenize(page) for piece in token]
    assert sum(piece.count("\n") for piece in pieces) == page.count("\n")


PIECES = (
    "table tr td th thead caption ul ol li dl dt dd p h2 sup sub rt ruby q math mfrac mi svg text "
    "nav form header main a del option select details"
).split()


@given(st.lists(st.sampled_from([*PIECES, *(f"/{name}" for name in PIECES), "word"]), max_size=60))
def test_tags_in_any_order_lose_no_text_without_an_end(tags):
    page = " ".join("word" if tag == "word" else f"<{tag}>" for tag in tags)
    assert all(run.place == 1 for run in html_runs(page))
