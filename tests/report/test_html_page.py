"""The HTML page: texts from outside stay text, nothing is fetched, and the browser shows every
question.
"""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scored_experiments import benchmark, ctxs, scored

from ifqa.report import html_page as module
from ifqa.report.html_page import Section, json_text, render_page
from ifqa.report.question_browser import browser_data
from ifqa.report.svg import RECALL, Curve, curves_svg
from ifqa.report.table import Table

HOSTILE = (
    *(
        "<script>window.hacked=1</script>",
        '<img src=x onerror="window.hacked=1">',
        "</script><b onmouseover=window.hacked=1>",
    ),
    *("]]>", "<!--", "&lt;b&gt;&amp;", "\u2028\u2029", "${window.hacked=1}"),
)
NASTY = " ".join(HOSTILE)
NASTY_WORD = "<img/src=x/onerror=window.hacked=1></script><!--"
LONG_WORD = "w" * 300
MILL = "The mill at Brae was built by Ann Lee in 1850 and burnt down twice before the war ."
BRAE = ("2-1", "Brae", MILL)


class Parsed(HTMLParser):
    """The elements of a page, and the text directly in each kind."""

    def __init__(self, path):
        super().__init__()
        self.elements = []
        self.texts = {}
        self._open = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


def tiny(hostile=""):
    """The data of `browser_data` for one question, with a hostile text in every place."""
    question = {
        "id": f"b/dev/1{hostile}",
        "q": ["", f"If so{hostile}", ", who?"],
        "a": [f"Ann{hostile}"],
        "n": [0],
        "g": [f"Ann{hostile}"],
        "p": [
            {
                "i": f"1-1{hostile}",
                "t": f"Title{hostile}",
                "x": ["By ", "Ann", f" Lee{hostile}"],
                "g": 1,
            }
        ],
        "e": [
            {
                "x": 0,
                "a": f"Bob{hostile}",
                "f": f"Bert{hostile}",
                "r": f"cut{hostile}",
                "h": f"1 = 1{hostile}",
                "w": ["By ", f"Bob{hostile}", "."],
                "s": f"9%{hostile}",
                "b": f"Bill{hostile}",
                "m": [0.0],
                "p": [0],
                "g": 1,
            }
        ],
    }
    experiment = {
        "name": f"one{hostile}",
        "about": f"About{hostile}",
        "read": 1,
        "deep": 5,
        "answers": True,
    }
    split = {"name": f"b dev{hostile}", "experiments": [experiment], "questions": [question]}
    split["measures"] = [{"name": f"EM{hostile}", "digits": 0, "best": 1}]
    split["subsets"] = [{"name": f"hard{hostile}", "told": 1}]
    return {"splits": [split]}


def grid(*rows, title="Scores", note="", columns=("experiment", "EM", "verdict")):
    return Table(title, note, columns, rows)


def written(path, grids=(), figures=(), browsed=None, about="", **more):
    sections = [
        Section(table, tuple(figures))
        for table in grids or ([grid(("a", "1", "OK"))] if figures else [])
    ]
    text = render_page(sections, browsed or {"splits": []}, about, **more)
    (path / "report.html").write_text(text, encoding="utf-8")
    return path / "report.html"


def test_only_the_pages_own_script_and_style_may_run_and_nothing_is_fetched(tmp_path):
    figure = curves_svg("Recall", [Curve("x", ((1, 5.0, 4.0, 6.0),))], RECALL)
    parsed = Parsed(written(tmp_path, [grid(("a", "1", "OK"))], [figure], tiny()))
    policy = next(attrs["content"] for _, attrs in parsed.elements if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        hashed = base64.b64encode(hashlib.sha256(parsed.texts[tag][-1].encode()).digest()).decode()
        assert f"{directive} 'sha256-{hashed}'" in policy
    scripts = [attrs for tag, attrs in parsed.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert {tag for tag, _ in parsed.elements}.isdisjoint(
        {"link", "img", "iframe", "object", "base", "form"}
    )
    names = {name for _, attrs in parsed.elements for name in attrs}
    assert not [name for name in names if name.startswith("on") or name in ("src", "style")]
    assert all(attrs["href"].startswith("#") for _, attrs in parsed.elements if "href" in attrs)
    code = re.compile(
        r"url\(|@import|https?:|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|</"
    )
    for name in (module.COLOURS.name, "page.css", "page.js"):
        assert not code.search(Path(module.__file__).with_name(name).read_text(encoding="utf-8"))
    plain = Parsed(written(tmp_path, [grid(("a", "1", "OK"))]))
    assert {tag for tag, _ in plain.elements}.isdisjoint({"script", "noscript"}), (
        "there are no questions"
    )


def test_texts_of_tables_are_text(tmp_path):
    table = grid((NASTY, NASTY, NASTY), title=NASTY, note=NASTY, columns=(NASTY,) * 3)
    parsed = Parsed(written(tmp_path, [table], about=NASTY))
    assert {tag for tag, _ in parsed.elements}.isdisjoint({"script", "img", "b"})
    assert parsed.texts["td"] == [NASTY, NASTY]
    assert parsed.texts["h1"] == ["Results"]


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
@example("half a pair \ud800")
def test_json_in_a_page_is_the_same_data_and_ends_no_script(data):
    text = json_text(data)
    assert json.loads(text.encode()) == data
    assert not set("<>&\u2028\u2029") & set(text)


def test_a_table_has_its_verdicts_scores_and_what_was_not_run_folded(tmp_path):
    rows = [
        ("a", "41.6 [38.0, 45.1] of 221", "OK", "EM 7.0 [1, 9]"),
        ("b", "", "not run: needs a GPU", ""),
    ]
    rows += [
        ("c", "12 of [3]", "near; PARTIAL: 3 questions", ""),
        ("official", "1", "off", "offline-1"),
    ]
    rows += [
        ("d", "1", "model retired", "3"),
        ("f", "1", "another test set", "3"),
        ("e", "", "not run", ""),
    ]
    path = written(
        tmp_path, [Table("Scores", "", ("experiment", "EM", "verdict", "EM, hard"), tuple(rows))]
    )
    text = path.read_text()
    parsed = Parsed(path)
    kinds = [
        attrs["class"].removeprefix("verdict ") for tag, attrs in parsed.elements if tag == "span"
    ]
    assert kinds == ["ok", "near", "off", "absent", "absent", "absent", "absent"]
    assert parsed.texts["span"] == [
        "OK",
        "near",
        "off",
        "model retired",
        "another test set",
        "not run",
        "not run",
    ]
    assert "<b>41.6</b> <small>[38.0, 45.1] of 221</small>" in text
    assert "<b>EM 7.0</b> <small>[1, 9]</small>" in text
    assert ">12 of [3]</td>" in text
    assert parsed.texts["summary"] == ["Legend", "2 not run"]
    columns = ["experiment", "EM", "verdict", "EM, hard"]
    assert parsed.texts["th"] == [
        *columns,
        "a",
        "c",
        "official",
        "d",
        "f",
        "experiment",
        "verdict",
        "b",
        "e",
    ]


def test_columns_of_numbers_stand_at_the_right_and_odd_cells_take_no_time(tmp_path):
    numbers = ["-3.4", "12.0 of 222", "82.9 / 89.9 / 93.3", "not run", "", "-"]
    odd = ["1" * 100_000 + "x", " of 9" * 20_000]
    for cells, kind in (
        (numbers, "number"),
        (["2026-11-21"], "short"),
        (["12 passages", "3"], "short"),
        (odd, None),
    ):
        parsed = Parsed(
            written(tmp_path, [grid(*(("x", cell) for cell in cells), columns=("name", "value"))])
        )
        assert {attrs.get("class") for tag, attrs in parsed.elements if tag == "td"} == {kind}


def test_the_summary_stands_on_top_the_contents_lead_to_each_table_and_what_was_not_run_ends_it(
    tmp_path,
):
    tables = [grid(title=title) for title in ("Table 3, few", "Table 3: few", "表")]
    top = grid(("ifqa", "45.6", "OK"), title="Summary", note=NASTY)
    path = written(tmp_path, tables, summary=top, legend={NASTY: NASTY}, served=True)
    text = path.read_text()
    parsed = Parsed(path)
    links = [attrs["href"] for tag, attrs in parsed.elements if tag == "a"]
    assert links == ["/", "/results", "#table-table-3-few", "#table-table-3-few-2", "#table-x"]
    assert [f"#{attrs['id']}" for tag, attrs in parsed.elements if tag == "section"] == [
        "#summary",
        *links[2:],
    ]
    assert text.index("Summary</h2>") < text.index("<summary>Legend") < text.index("few</h2>")
    assert NASTY in parsed.texts["dt"]
    assert NASTY in parsed.texts["dd"]
    undone = grid(("b", "", "not run: needs a key"), title="Undone")
    text = render_page(
        [Section(undone, done=False), Section(grid(("a", "1", "OK"), title="Done"))], {}
    )
    assert (
        text.index(">Done</h2>")
        < text.index(">Not run</h2>")
        < text.index("<summary>Undone</summary>")
    )
    assert 'href="#table-undone"' not in text
    assert 'href="/"' not in text


# The tests below run in a real browser.


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page of three experiments over 45 questions, hostile texts in the first of them."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        texts = [f"If mill {n} had not burnt, who would own it?" for n in range(44)]
        nasty = f"If so {NASTY}, who?"
        records = [
            {
                "idx": NASTY_WORD,
                "question": nasty,
                "answers": [NASTY],
                "context": [f"{MILL} {NASTY} {LONG_WORD}"],
            }
        ]
        for n, text in enumerate(texts):
            answer = "1850" if n % 4 == 0 else "Zoë Lee"
            records.append({"idx": n + 1, "question": text, "answers": [answer], "context": [MILL]})
        benchmark(*records)
        retrieved = ctxs(
            "found.json",
            (
                nasty,
                [("1-1", NASTY, f"A text {NASTY} of it."), (NASTY_WORD, LONG_WORD, "Nothing.")],
            ),
            *(
                (text, [BRAE if n % 2 else ("2-2", "", "Nothing of use.")])
                for n, text in enumerate(texts)
            ),
        )
        names = [NASTY_WORD, *range(1, 45)]
        experiments = [
            scored("alpha", retrieved, {names[n]: "Bob" if n else NASTY for n in range(45)}),
            scored(
                "beta",
                'name = "gold"',
                {names[n]: "Zoë Lee" if n < 11 else "never" for n in range(45)},
            ),
            scored("gamma", "", {names[n]: LONG_WORD for n in range(45)}),
        ]
        browsed = browser_data(experiments)
    browsed["splits"][0]["experiments"][2]["name"] = NASTY
    browsed["splits"].append(tiny(NASTY)["splits"][0])
    rows = [(f"experiment-{n} {NASTY}", "41.6 [38.0, 45.1]", "off") for n in range(3)]
    columns = tuple(f"column number {n}" for n in range(30))
    wide = Table("Wide", NASTY, columns, (("experiment", *["41.6 [38.0, 45.1]"] * 29),))
    figure = curves_svg(
        NASTY, [Curve(NASTY, ((1, 50.0, 45.0, 55.0), (5, 60.0, 55.0, 65.0)))], RECALL
    )
    return written(folder, [grid(*rows), wide], [figure], browsed, about=NASTY)


def cards(chromium):
    return chromium.value(
        "[...document.querySelectorAll('.card')].map(card => card.querySelector('a').textContent)"
    )


def status(chromium):
    return chromium.value("document.getElementById('status').textContent")


def search(chromium, text):
    chromium.value("document.activeElement.blur()")
    chromium.press("/")  # what stood there is selected, and goes
    chromium.type(text)


def choose(chromium, tool, value):
    chromium.value(
        f"(tool => {{ tool.value = {json.dumps(value)}; tool.dispatchEvent(new Event('change')) }})"
        f"(document.getElementById('{tool}'))"
    )


def unfold(chromium):
    """Open everything that is folded; the page fills it at its next turn."""
    chromium.value("document.querySelectorAll('details').forEach(one => { one.open = true })")
    chromium.value("new Promise(done => setTimeout(done, 50))")


def test_the_page_opens_without_errors_fetches_nothing_and_shows_twenty_at_a_time(chromium, report):
    chromium.open(report)
    assert status(chromium) == "45 questions, the first 20 below."
    for count in (20, 40, 45):
        assert len(cards(chromium)) == count
        chromium.value("document.getElementById('more').click()")
    assert chromium.value("document.getElementById('more').hidden")
    unfold(chromium)
    assert chromium.complaints == []
    assert chromium.requests == [report.resolve().as_uri()]


@pytest.mark.parametrize(
    "fragment", ["", "#split=b%20dev" + "".join(f"%{byte:02x}" for byte in f"{NASTY}".encode())]
)
def test_texts_that_look_like_code_are_shown_as_text(chromium, report, fragment):
    chromium.open(report, fragment)
    unfold(chromium)
    places = (
        "h3|.wanted b|.said|.source b|.source code|.text|th[scope=row]|.about|h2 + .scroll + .note"
    )
    for place in places.split("|"):
        texts = chromium.value(
            f"[...document.querySelectorAll('{place}')].map(one => one.textContent)"
        )
        assert any(code in text for text in texts for code in (*HOSTILE, NASTY_WORD)), place
    code = "main img, main script, main b[onmouseover], title ~ script"
    assert chromium.value(f"document.querySelectorAll('{code}').length") == 0
    assert chromium.value("typeof window.hacked") == "undefined"
    assert chromium.complaints == []


def test_even_a_mistake_in_escaping_runs_nothing(chromium, tmp_path):
    mistake = (
        f"<svg>{HOSTILE[0]}</svg>{HOSTILE[1]}<p onclick='window.hacked=1' "
        "style='color:red'>here</p>"
    )
    chromium.open(written(tmp_path, [], [mistake], tiny()))
    chromium.value("document.querySelector('p[onclick]').click()")
    assert chromium.value("typeof window.hacked") == "undefined"
    assert len(cards(chromium)) == 1
    assert any("Content Security Policy" in complaint for complaint in chromium.complaints)
    assert [url for url in chromium.requests if not url.endswith("report.html")] == []


def test_questions_are_searched_filtered_and_sorted_and_the_address_keeps_it(chromium, report):
    chromium.open(report)
    matches = {
        "17 MILL": ["17", "18"],
        "zoe 17 mill": ["18"],
        "window.hacked": [NASTY_WORD],
        "none such": [],
        "": None,
    }
    for words, names in matches.items():
        search(chromium, words)
        assert names is None or cards(chromium) == [f"ifqa/full-dev/{name}" for name in names]
    wanted = {
        "in:numeric": 11,
        "in:other": 34,
        "differ": 8,
        "right": 0,
        "wrong": 37,
        "not:alpha": 23,
        "not:beta": 0,
        "all": 45,
    }
    for value, count in wanted.items():
        choose(chromium, "show", value)
        assert int(re.sub(r"\D.*", "", status(chromium)) or 0) == count, value
    choose(chromium, "sort", "apart")
    first = [card.removeprefix("ifqa/full-dev/") for card in cards(chromium)[:8]]
    # Of equal ones the order of the file
    assert first == [NASTY_WORD, "2", "3", "4", "6", "7", "8", "10"]
    search(chromium, "mill 4")
    chromium.value(
        "new Promise(done => { const look = () => /mill/.test(location.hash) ? done() : "
        "setTimeout(look, 9); look() })"
    )
    before = cards(chromium)
    address = chromium.value("location.hash")
    chromium.open(report, address)
    assert cards(chromium) == before != []
    assert chromium.complaints == []


def test_a_card_shows_answers_ranks_and_passages(chromium, report):
    chromium.open(report, "#q=ifqa/full-dev/2", width=400)
    assert chromium.value("document.scrollingElement.scrollWidth") <= 400
    rows = chromium.value(
        "[...document.querySelectorAll('.card tbody tr')].map(row => [...row.cells].map(cell "
        "=> cell.textContent))"
    )
    assert rows == [
        ["A alpha", "Bob", "0", "0", "1"],
        ["B beta", "Zoë Lee", "1", "1", "1"],
        [f"C {NASTY}", LONG_WORD, "0", "0", "–"],
    ]
    unfold(chromium)
    assert chromium.value("[...document.querySelectorAll('.passage.covers .text')].length") == 3
    assert chromium.value("document.querySelector('.source').textContent").startswith(
        "Brae2-1goldA (alpha) at rank 1"
    )
    assert (
        chromium.value("document.querySelector('h3 mark.supposed').textContent")
        == "If mill 1 had not burnt"
    )
