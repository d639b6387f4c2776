"""The HTML page: texts from outside stay text, nothing is fetched, and the browser shows every
question.
"""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scored_experiments import benchmark, ctxs, scored

from ifqa.config.experiment import load_experiment
from ifqa.protocols import Requirement
from ifqa.report import html_page as module
from ifqa.report.html_page import Section, json_text, render_page
from ifqa.report.question_browser import browser_data
from ifqa.report.results_log import Entry
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
                "o": f"later{hostile}",
                "n": f"unsure{hostile}",
                "q": f"By nobody{hostile}",
                "v": f"nowhere{hostile}",
                "u": 1,
                "d": f"changed{hostile}",
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


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A page with a table, a figure, and a question."""
    figure = curves_svg("Recall", [Curve("x", ((1, 5.0, 4.0, 6.0),))], RECALL)
    folder = tmp_path_factory.mktemp("full")
    return Parsed(written(folder, [grid(("a", "1", "OK"))], [figure], tiny()))


def test_the_policy_lets_only_the_pages_own_code_run(full):
    policy = next(attrs["content"] for _, attrs in full.elements if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        hashed = base64.b64encode(hashlib.sha256(full.texts[tag][-1].encode()).digest()).decode()
        assert f"{directive} 'sha256-{hashed}'" in policy


def test_a_page_has_one_script_of_code(full):
    scripts = [attrs for tag, attrs in full.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]


def test_no_element_fetches_a_file(full):
    assert {tag for tag, _ in full.elements}.isdisjoint(
        {"link", "img", "iframe", "object", "base", "form"}
    )


def test_no_attribute_holds_code(full):
    names = {name for _, attrs in full.elements for name in attrs}
    assert not [name for name in names if name.startswith("on") or name in ("src", "style")]


def test_a_page_links_only_to_its_own_places(full):
    assert all(attrs["href"].startswith("#") for _, attrs in full.elements if "href" in attrs)


def test_the_code_of_a_page_fetches_nothing():
    code = re.compile(
        r"url\(|@import|https?:|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|</"
    )
    for name in (module.COLOURS.name, "page.css", "page.js"):
        assert not code.search(Path(module.__file__).with_name(name).read_text(encoding="utf-8"))


def test_a_page_without_questions_has_no_script(tmp_path):
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


json_data = st.recursive(
    st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(json_data)
@example("half a pair \ud800")
def test_json_in_a_page_is_the_same_data(data):
    assert json.loads(json_text(data).encode()) == data


@given(json_data)
@example("half a pair \ud800")
def test_json_in_a_page_ends_no_script(data):
    assert not set("<>&\u2028\u2029") & set(json_text(data))


@pytest.fixture(scope="module")
def table_page(tmp_path_factory):
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
    return written(
        tmp_path_factory.mktemp("table"),
        [Table("Scores", "", ("experiment", "EM", "verdict", "EM, hard"), tuple(rows))],
    )


def test_a_verdict_has_its_kind(table_page):
    parsed = Parsed(table_page)
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


def test_a_score_has_a_small_interval(table_page):
    text = table_page.read_text()
    assert "<b>41.6</b> <small>[38.0, 45.1] of 221</small>" in text
    assert "<b>EM 7.0</b> <small>[1, 9]</small>" in text
    assert ">12 of [3]</td>" in text


def test_what_was_not_run_is_folded(table_page):
    parsed = Parsed(table_page)
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


def classes_of(path, cells):
    rows = [("x", cell) for cell in cells]
    parsed = Parsed(written(path, [grid(*rows, columns=("name", "value"))]))
    return {attrs.get("class") for tag, attrs in parsed.elements if tag == "td"}


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["-3.4", "12.0 of 222", "82.9 / 89.9 / 93.3", "not run", "", "-"], "number"),
        (["2026-11-21"], "short"),
        (["12 passages", "3"], "short"),
    ],
)
def test_a_column_has_the_class_of_its_cells(tmp_path, cells, kind):
    assert classes_of(tmp_path, cells) == {kind}


def test_odd_cells_take_no_time(tmp_path):
    odd = ["1" * 100_000 + "x", " of 9" * 20_000]
    assert classes_of(tmp_path, odd) == {None}


def summary_page(tmp_path):
    tables = [grid(title=title) for title in ("Table 3, few", "Table 3: few", "表")]
    top = grid(("ifqa", "45.6", "OK"), title="Summary", note=NASTY)
    return written(tmp_path, tables, summary=top, legend={NASTY: NASTY}, served=True)


def test_the_contents_lead_to_each_table(tmp_path):
    parsed = Parsed(summary_page(tmp_path))
    links = [attrs["href"] for tag, attrs in parsed.elements if tag == "a"]
    assert links == ["/", "/results", "#table-table-3-few", "#table-table-3-few-2", "#table-x"]
    assert [f"#{attrs['id']}" for tag, attrs in parsed.elements if tag == "section"] == [
        "#summary",
        *links[2:],
    ]


def test_the_summary_stands_on_top(tmp_path):
    text = summary_page(tmp_path).read_text()
    assert text.index("Summary</h2>") < text.index("<summary>Legend") < text.index("few</h2>")


def test_the_legend_shows_texts_as_they_are(tmp_path):
    parsed = Parsed(summary_page(tmp_path))
    assert NASTY in parsed.texts["dt"]
    assert NASTY in parsed.texts["dd"]


def page_with_undone():
    undone = grid(("b", "", "not run: needs a key"), title="Undone")
    done = grid(("a", "1", "OK"), title="Done")
    return render_page([Section(undone, done=False), Section(done)], {})


def test_what_was_not_run_ends_the_page():
    text = page_with_undone()
    done = text.index(">Done</h2>")
    not_run = text.index(">Not run</h2>")
    assert done < not_run < text.index("<summary>Undone</summary>")


def test_the_contents_leave_out_what_was_not_run():
    assert 'href="#table-undone"' not in page_with_undone()


def test_a_page_that_is_not_served_links_to_no_server():
    assert 'href="/"' not in page_with_undone()


# The tests below run in a real browser.


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page of three experiments over 45 questions, hostile texts in the first of them."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        texts = [f"If mill {n} had not burnt, who would own it?" for n in range(44)]
        nasty = f"If so {NASTY}, who?"
        records: list[dict[str, object]] = [
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
        browsed: Any = browser_data(experiments)
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


def show_all(chromium):
    while not chromium.value("document.getElementById('more').hidden"):
        chromium.value("document.getElementById('more').click()")


def test_the_page_shows_twenty_questions_at_a_time(chromium, report):
    chromium.open(report)
    assert status(chromium) == "45 questions, the first 20 below."
    for count in (20, 40, 45):
        assert len(cards(chromium)) == count
        chromium.value("document.getElementById('more').click()")
    assert chromium.value("document.getElementById('more').hidden")


def test_the_page_opens_without_errors(chromium, report):
    chromium.open(report)
    show_all(chromium)
    unfold(chromium)
    assert chromium.complaints == []


def test_the_page_fetches_nothing(chromium, report):
    chromium.open(report)
    show_all(chromium)
    unfold(chromium)
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


def test_questions_are_searched(chromium, report):
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
    assert chromium.complaints == []


def test_questions_are_filtered(chromium, report):
    chromium.open(report)
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
    assert chromium.complaints == []


def test_questions_are_sorted(chromium, report):
    chromium.open(report)
    choose(chromium, "sort", "apart")
    first = [card.removeprefix("ifqa/full-dev/") for card in cards(chromium)[:8]]
    # Of equal ones the order of the file
    assert first == [NASTY_WORD, "2", "3", "4", "6", "7", "8", "10"]
    assert chromium.complaints == []


def test_the_address_keeps_what_was_chosen(chromium, report):
    chromium.open(report)
    choose(chromium, "show", "all")
    choose(chromium, "sort", "apart")
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


def open_card(chromium, report):
    chromium.open(report, "#q=ifqa/full-dev/2", width=400)


def test_a_card_fits_a_narrow_window(chromium, report):
    open_card(chromium, report)
    assert chromium.value("document.scrollingElement.scrollWidth") <= 400


def test_a_card_shows_answers(chromium, report):
    open_card(chromium, report)
    rows = chromium.value(
        "[...document.querySelectorAll('.card tbody tr')].map(row => [...row.cells].map(cell "
        "=> cell.textContent))"
    )
    assert rows == [
        ["A alpha", "Bob", "0", "0", "1"],
        ["B beta", "Zoë Lee", "1", "1", "1"],
        [f"C {NASTY}", LONG_WORD, "0", "0", "–"],
    ]


@pytest.fixture
def quoting(chromium, tmp_path):
    """The notes below an answer of a language model whose hostile quote is missing."""
    chromium.open(written(tmp_path, browsed=tiny(NASTY)))
    yield chromium.value("[...document.querySelectorAll('.said small')].map(one => one.innerText)")
    assert chromium.value("typeof window.hacked") == "undefined"
    assert chromium.complaints == []


def test_a_card_says_what_became_of_a_quote(chromium, quoting):
    doubt = chromium.value("document.querySelector('.said small.doubt').textContent")
    assert doubt == f"quote: “By nobody{NASTY}” (nowhere{NASTY})"


def test_a_card_says_what_the_supposition_changes(quoting):
    assert any(note.startswith("change: changed") for note in quoting)


def test_a_card_says_why_a_model_abstained(quoting):
    assert any(note.startswith("abstained: unsure") for note in quoting)


def test_a_card_says_who_found_a_sentence(quoting):
    assert any("(later" in note for note in quoting)


def test_a_card_shows_its_passages(chromium, report):
    open_card(chromium, report)
    unfold(chromium)
    assert chromium.value("[...document.querySelectorAll('.passage.covers .text')].length") == 3


def test_a_passage_shows_its_ranks(chromium, report):
    open_card(chromium, report)
    unfold(chromium)
    assert chromium.value("document.querySelector('.source').textContent").startswith(
        "Brae2-1goldA (alpha) at rank 1"
    )


def test_a_card_marks_its_clause(chromium, report):
    open_card(chromium, report)
    assert (
        chromium.value("document.querySelector('h3 mark.supposed').textContent")
        == "If mill 1 had not burnt"
    )


def test_what_is_here_is_not_asked_for(tmp_path, monkeypatch):
    """RESULTS.md lists the same on every machine; the page is of this machine."""
    monkeypatch.chdir(tmp_path)
    experiment = load_experiment("sample-smollm2-closed-book")
    entries = [Entry(experiment, needs=("SmolLM2 (ifqa data smollm2)",))]
    assert "needs SmolLM2" in module.render_report(entries)
    monkeypatch.setattr(module, "requirements", lambda run: [Requirement("SmolLM2")])
    page = module.render_report(entries)
    assert "needs SmolLM2" not in page
    assert "not run" in page
