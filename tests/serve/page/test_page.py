"""The page to ask on, in a real browser, against a server that gives the answers of its
documentation.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
import quoted_answers

import ifqa.serve
from ifqa.report.html_page import COLOURS
from ifqa.serve.schemas import AnswerForm

pytestmark = pytest.mark.slow

FOLDER = Path(ifqa.serve.__file__).parent / "page"
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
NASTY = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
ABOUT: dict[str, Any] = {
    "name": "sample",
    "corpus": {"name": "sample", "passages": 1426},
    "retriever": "bm25",
    "passages_read": 2,
    "k": 20,
    "reader": {
        "name": "extractive",
        "model": "",
        "streams": False,
        "abstains_below": 0.23,
        "answerable_threshold": 0.18,
    },
    "examples": ["If plain, who?", "If computed, when?"],
    "limits": {"question_characters": 300},
}
# Each rocket is two of JavaScript's characters
TEXT = "🚀🚀 Some words. He lost the seat to Jim Lovell. More words."
LOVELL = {
    "id": "1-0",
    "title": "Apollo 11",
    "text": TEXT,
    "pieces": [TEXT[:35], "Jim Lovell", TEXT[45:]],
}
OTHER = {"id": "2-0", "title": "Gemini", "text": "Another.", "pieces": ["Another."]}
HOW: dict[str, Any] = {
    "passage_id": "1-0",
    "sentence": [15, 46],
    "span": [35, 45],
    "calculation": None,
}
HOW["pieces"] = ["He lost the seat to ", "Jim Lovell", "."]
TERMS = [
    {"text": "1849", "value": "1849", "source": "passage", "start": 0, "end": 4},
    {"text": "ten years", "value": "10", "source": "question", "start": 21, "end": 30},
]
SUM = {
    "result": "1859",
    "rule": "plus",
    "terms": TERMS,
    "line": "1859 = 1849 (passage) + 10 (question)",
}
PLAIN: dict[str, Any] = {
    "id": "ask/1",
    "outcome": "answered",
    "answer": "Jim Lovell",
    "confidence": 0.61,
    "answerable": 0.9,
    "candidate": "",
    "factual": "Neil Armstrong",
    "error": "",
    "how": HOW,
    "evidence": [LOVELL, OTHER],
    "seconds": 0.21,
}
OTHERS: dict[str, dict[str, Any]] = {
    "computed": {"answer": "1859", "factual": "", "how": HOW | {"calculation": SUM}},
    "abstained": {
        "outcome": "abstained",
        "answer": "",
        "candidate": "Gustave Eiffel",
        "confidence": 0.27,
        "answerable": 0.07,
        "abstention": "they are unlikely to have it",
    },
    "unsure": {
        "outcome": "abstained",
        "answer": "",
        "candidate": "Gustave Eiffel",
        "confidence": 0.12,
    },
    "foreign": {
        "outcome": "abstained",
        "answer": "",
        "confidence": None,
        "how": None,
        "factual": "",
        "note": f"Trained on {NASTY}.",
    },
    "failed": {
        "outcome": "failed",
        "answer": "",
        "confidence": None,
        "how": None,
        "error": "the reader found nothing",
    },
    "bare": {"factual": ""},
    "simple": {"supposed": None},
    "nasty": {
        "answer": NASTY,
        "factual": NASTY,
        "how": HOW | {"passage_id": NASTY, "pieces": [NASTY, NASTY, NASTY]},
        "evidence": [
            {"id": NASTY, "title": NASTY, "text": NASTY, "pieces": [NASTY, NASTY, NASTY]},
            LOVELL,
        ],
    },
}


def quoting(make):
    """An answer of a language model, as the server sends it, without its question."""
    file: Any = SimpleNamespace(is_pdf=False)
    files = dict.fromkeys(["manuals/mill.pdf", "notes/engine.md"], file)
    form = json.loads(AnswerForm.of(make(), 0.2, files).model_dump_json())
    return {key: form[key] for key in form if key not in ("question", "supposed")}


OTHERS |= {kind: quoting(make) for kind, make in quoted_answers.KINDS.items()}
RTL = "\N{RIGHT-TO-LEFT OVERRIDE}fdp.exe"
FOLDER_STATE = {
    "name": "my documents",
    "files": 49,
    "passages": 210,
    "updating": False,
    "changed": 0,
    "updated": None,
    "problem": "",
    "left_out": [
        {"file": "scan.pdf", "reason": "no text", "hint": "run ocrmypdf"},
        {"file": NASTY + RTL, "reason": NASTY, "hint": ""},
    ],
}
PLACE = {"text": f"notes & emails/Board {NASTY}.pdf, p. 4", "url": "/documents/a%20b"}
PLACE["original"] = "/documents/a%20b/original#page=4"
OF_FOLDER = LOVELL | {"id": "notes%20#1:page=4", "title": "Board.pdf › Votes", "source": PLACE}


class Server(ThreadingHTTPServer):
    """Answers by the question's first word.

    `released` lets a half-written answer end, `left` is set once a client went away.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.released = threading.Event()
        self.left = threading.Event()
        self.tokens: list[str] = []
        self.folder: dict[str, Any] | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args):
        pass

    def give(self, status, content, kind="application/json", **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Security-Policy": POLICY,
            **headers,
        }.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        name = self.path.partition("?")[0].removeprefix("/static").strip("/") or "index.html"
        if self.path == "/v1/about":
            folder = self.server.folder
            of_folder = (
                {"documents": folder | {"left_out": 2}, "examples": []}
                if folder
                else {"documents": None}
            )
            self.give(200, ABOUT | of_folder)
        elif self.path == "/v1/documents":
            self.give(200, self.server.folder)
        else:
            place = COLOURS.parent if name == COLOURS.name else FOLDER
            self.give(200, (place / name).read_bytes(), KINDS[name.rpartition(".")[2]])

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/session":
            self.server.tokens.append(request["token"])
            self.give(204, b"")
        elif self.path == "/v1/retrieve":
            passages = [
                LOVELL | {"rank": 1, "score": 12.93},
                OTHER | {"rank": 2, "score": 3.5, "title": NASTY},
            ]
            self.give(200, {"rankings": [{"question": request["question"], "passages": passages}]})
        elif self.path == "/v1/why":
            without = {
                "passage": LOVELL,
                "sentence": "",
                "answer": "Jim Lovell",
                "confidence": 0.5,
                "same": True,
            }
            cut = without | {"sentence": NASTY, "answer": "", "confidence": None, "same": False}
            self.give(200, {"answers": [{"ablations": [without, cut]}]})
        else:
            self.answer(request["question"])

    def answer(self, question):
        kind = question.removeprefix("If ").partition(",")[0]
        problem = {
            "title": "x",
            "detail": f"the queue is full with 256 questions {NASTY}",
            "request_id": "3f1c",
        }
        if kind == "full":
            return self.give(
                503, problem | {"status": 503}, "application/problem+json", **{"Retry-After": "4"}
            )
        if kind == "secret" and not self.server.tokens:
            return self.give(401, problem | {"status": 401}, "application/problem+json")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.event("waiting", {"ahead": 3 if kind == "half" else 0})
        self.event("reading", {})
        if kind == "half":
            for at, text in (
                (0, "Wrong at first"),
                (0, "🚀 So his "),
                (9, "backup, "),
                (17, NASTY),
            ):
                self.event("text", {"at": at, "text": text})
            while not self.server.released.wait(0.05):
                try:
                    self.wfile.write(b": ping\n\n")
                except OSError:
                    return self.server.left.set()
        if kind != "broken":
            supposed = {
                "text": f"If {kind}",
                "pieces": ["", f"If {kind}", question.removeprefix(f"If {kind}")],
            }
            answer = PLAIN | {"question": question, "supposed": supposed} | OTHERS.get(kind, {})
            if self.server.folder:
                evidence = [OF_FOLDER, OTHER | {"source": None}]
                answer |= {"evidence": evidence, "how": HOW | {"passage_id": OF_FOLDER["id"]}}
            self.event("answer", answer)
        return None

    def event(self, name, data):
        self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())


@pytest.fixture
def server():
    with Server() as web_server:
        threading.Thread(target=web_server.serve_forever, args=(0.01,), daemon=True).start()
        yield web_server
        web_server.released.set()
        web_server.shutdown()


@pytest.fixture
def page(chromium, server):
    """Open the page, asking a question if one is given."""

    def opened(question="", **how):
        chromium.open(server.url + (f"?q={quote(question)}" if question else ""), **how)
        return chromium

    return opened


def until(chromium, expression):
    """Wait until a JavaScript expression is true, and give its value."""
    loop = (
        f"const look = () => {{ const found = ({expression}); if (found) done(found); "
        f"else setTimeout(look, 10); }};"
    )
    return chromium.value(f"new Promise(done => {{ {loop} look(); }})")


def text(chromium, place):
    return until(chromium, f"document.querySelector({json.dumps(place)})?.innerText")


def every(chromium, place):
    return chromium.value(f"[...document.querySelectorAll('{place}')].map(one => one.textContent)")


def follow_example(chromium):
    """Click the first example, and wait for its answer."""
    until(chromium, "document.querySelector('#examples a')")
    chromium.value("document.querySelector('#examples a').click()")
    until(chromium, "document.querySelector('.big')?.innerText")


def check_undisturbed(chromium, server):
    """The page complains of nothing, and asks its own server alone."""
    assert chromium.complaints == []
    assert all(request.startswith(server.url) for request in chromium.requests)


def test_the_page_says_where_answers_come_from(page):
    chromium = page()
    until(chromium, "document.querySelector('#examples a')")
    assert text(chromium, "#about").endswith("Answers come from 1,426 passages of sample.")


def test_an_example_is_answered(page, server):
    chromium = page()
    follow_example(chromium)
    parts = {
        ".big": "Jim Lovell",
        "mark.supposed": "If plain",
        ".sure": "61% sure",
        ".fact": "Neil Armstrong",
        ".sentence": "He lost the seat to Jim Lovell.",
        "#said": "Answer: Jim Lovell, 61% sure.",
    }
    assert {place: text(chromium, place) for place in parts} == parts
    assert text(chromium, ".imagined").startswith("If it had been so")
    check_undisturbed(chromium, server)


def test_an_answer_shows_its_ranking(page, server):
    chromium = page()
    follow_example(chromium)
    chromium.value("[...document.querySelectorAll('.part > details')].at(-1).open = true")
    assert text(chromium, ".ranking summary").split("\n") == ["1", "Apollo 11 · read", "12.9"]
    assert chromium.value("document.querySelectorAll('.ranking img').length") == 0
    check_undisturbed(chromium, server)


def test_an_answer_shows_what_it_becomes_without_a_passage(page, server):
    chromium = page()
    follow_example(chromium)
    chromium.value("[...document.querySelectorAll('.part > details')].at(-2).open = true")
    until(chromium, "document.querySelector('.ablations li')")
    lines = ["Without Apollo 11", "the same answer · 50%", f"Without “{NASTY}”", "no answer"]
    assert every(chromium, ".ablations span") == lines
    check_undisturbed(chromium, server)


def test_the_address_of_an_answer_asks_again(page, server):
    chromium = page()
    follow_example(chromium)
    address = chromium.value("location.href")
    assert address == f"{server.url}?q=If%20plain%2C%20who%3F"
    chromium.open(address)
    assert text(chromium, ".big") == "Jim Lovell"
    chromium.value("document.querySelector('.asked button').click()")
    assert chromium.value("document.querySelector('#question').value") == "If plain, who?"


def test_a_sum_is_shown_with_its_terms(page):
    chromium = page("If computed, when?")
    assert text(chromium, ".big") == "1859"
    sum_of = [
        "",
        "1849",
        "in the passage",
        "+",
        "10",
        "“ten years” in the question",
        "=",
        "1859",
        "",
    ]
    assert every(chromium, ".sum span") == sum_of


HEADINGS = {
    "If plain, who?": ["If it had been so", "In fact", "Source"],
    "If bare, who?": ["If it had been so", "In fact"],
    "If simple, who?": ["Answer", "Source"],
    "If abstained, who?": ["Answer", "What was read"],
    "If failed, who?": ["Answer", "What was read"],
}


@pytest.mark.parametrize("question", HEADINGS)
def test_what_is_in_fact_so_is_told_only_where_something_is_supposed(page, question):
    chromium = page(question)
    until(chromium, "document.querySelector('.big')?.innerText")
    assert every(chromium, "#answer h3") == HEADINGS[question]


@pytest.mark.parametrize("question", HEADINGS)
def test_the_sentence_is_shown_once(page, question):
    chromium = page(question)
    until(chromium, "document.querySelector('.big')?.innerText")
    shown = chromium.value("document.querySelector('#answer').textContent")
    assert shown.count("He lost the seat to Jim Lovell.") == 1


def test_an_empty_question_gets_advice(page):
    chromium = page()
    until(chromium, "document.activeElement.id === 'question'")
    chromium.press("Enter")
    assert text(chromium, "#hint").startswith("Type a question first, such as: If Ann had left")
    assert chromium.value("document.querySelector('#answer').hidden")


def test_an_address_without_a_question_gets_advice(page, server):
    chromium = page(" ")
    until(chromium, "document.activeElement.id === 'question'")
    assert text(chromium, "#hint").startswith("Type a question first, such as: If Ann had left")


PICTURES = [
    {"page": 4, "text": PLACE["text"], "url": "/static/icon.svg"},
    {"page": 5, "text": f"Board {NASTY}.pdf, p. 5", "url": "/static/icon.svg?2"},
]


@pytest.fixture
def pictured(page, server, monkeypatch):
    """The page of an answer from a PDF whose sentence goes over two pages."""
    monkeypatch.setitem(HOW, "pictures", PICTURES)
    monkeypatch.setitem(PLAIN, "how", HOW)
    server.folder = FOLDER_STATE
    chromium = page("If plain, who?")
    until(chromium, "document.querySelector('.page img')")
    return chromium


def test_the_pages_of_the_sentence_are_shown_below_a_source_in_a_pdf(pictured):
    images = "[...document.querySelectorAll('.passage .page img')]"
    assert pictured.value(f"{images}.map(one => [one.loading, one.getAttribute('src')])") == [
        ["lazy", "/static/icon.svg"],
        ["lazy", "/static/icon.svg?2"],
    ]
    assert pictured.value(f"{images}[1].alt") == (
        f"Page 5 as it looks, with the sentence marked: Board {NASTY}.pdf, p. 5"
    )
    links = "[...document.querySelectorAll('.page')].map(one => one.getAttribute('href'))"
    assert pictured.value(links) == [
        "/documents/a%20b/original#page=4",
        "/documents/a%20b/original#page=5",
    ]
    assert pictured.complaints == []


def test_a_page_that_cannot_be_drawn_leaves_no_broken_picture(pictured):
    pictured.value("document.querySelector('.page img').src = '/static/none.svg'")
    until(pictured, "document.querySelectorAll('.page').length === 1")


def test_an_abstention_is_explained(page):
    chromium = page("If abstained, who?")
    assert text(chromium, ".abstained .big") == "No answer found in these passages"
    assert text(chromium, ".candidate") == "The best candidate is Gustave Eiffel"
    assert (
        text(chromium, ".abstained .why")
        == "That a passage has the answer is 7% likely; below 18%, none is given."
    )


def test_an_unsure_reader_says_so_above_its_candidate(page):
    chromium = page("If unsure, who?")
    assert text(chromium, ".abstained .big") == "Not sure enough of an answer"
    assert text(chromium, ".candidate") == "The best candidate is Gustave Eiffel"
    assert text(chromium, ".abstained .why") == "Below 23%, no answer is given."


def test_a_question_of_another_kind_has_a_note(page):
    chromium = page("If foreign, who?")
    assert text(chromium, ".abstained .big") == "No answer"
    assert text(chromium, "[role=note]") == f"Trained on {NASTY}."


def test_a_failure_is_shown_with_its_error(page):
    chromium = page()
    until(chromium, "document.activeElement.id === 'question'")
    chromium.type("If failed, who?")
    chromium.press("Enter")
    assert text(chromium, ".failed .error") == "the reader found nothing"


def answered(page, kind, **how):
    """The page of a language model's answer of a kind."""
    chromium = page(f"If {kind}, who?", **how)
    until(chromium, "document.querySelector('.big')?.innerText")
    return chromium


def test_a_quote_that_was_found_is_the_evidence(page, server):
    chromium = answered(page, "exact")
    assert text(chromium, ".sentence").startswith(quoted_answers.SENTENCE)
    assert text(chromium, ".passage .source") == "manuals/mill.pdf, p. 4"
    told = "Quoted by the model; found in the passage that the model names."
    assert text(chromium, ".origin") == told
    assert every(chromium, ".doubt") == []
    check_undisturbed(chromium, server)


def test_a_quote_from_another_passage_is_said_to_be(page):
    chromium = answered(page, "other_passage")
    told = "Quoted by the model; found, but not in the passage that the model names."
    assert text(chromium, ".origin") == told


def test_each_part_of_a_stitched_quote_is_marked(page, server):
    chromium = answered(page, "stitched")
    assert text(chromium, ".doubt b") == "The model’s quote is stitched from several places"
    assert every(chromium, "mark.stitched") == [
        "Its saw was driven by a wheel of oak1",
        "An engine of six horses stood behind the mill2",
    ]
    assert every(chromium, ".passage .source")[::2] == [
        "manuals/mill.pdf, p. 4",
        "notes/engine.md, line 7",
    ]
    check_undisturbed(chromium, server)


def test_a_stitched_quote_is_not_one_sentence(page):
    assert every(answered(page, "stitched"), ".sentence") == []


def test_the_parts_of_a_stitched_quote_are_told_to_screen_readers(page):
    chromium = answered(page, "stitched_in_one_passage")
    hidden = every(chromium, ".passage .visually-hidden")
    assert hidden[0] == " (part 1 of 2 of the quote:) "
    assert hidden[2] == " (part 2 of 2 of the quote:) "
    assert text(chromium, "#said").endswith("The model’s quote is stitched from several places.")


def test_a_missing_quote_is_no_evidence(page, server):
    chromium = answered(page, "missing")
    title = "The model’s quote is not in these passages: do not take it for evidence"
    assert text(chromium, ".doubt.missing b") == title
    assert text(chromium, ".doubt blockquote") == f"“{quoted_answers.INVENTED}”"
    assert quoted_answers.INVENTED not in "".join(every(chromium, ".passage"))
    assert every(chromium, "#answer h3")[-1] == "What was read"
    check_undisturbed(chromium, server)


def test_a_missing_quote_is_told_to_screen_readers(page):
    said = text(answered(page, "missing"), "#said")
    assert said.endswith("The model’s quote is not in these passages.")


def test_an_empty_quote_is_said(page):
    assert text(answered(page, "empty"), ".doubt") == "The model quotes nothing"


def test_a_sentence_found_afterwards_is_said_to_be(page):
    chromium = answered(page, "found_afterwards")
    assert text(chromium, ".sentence").startswith("An engine of six horses stood behind the mill.")
    told = "Found afterwards for the model’s answer: the model did not quote it."
    assert every(chromium, ".origin") == [told]


def test_what_the_supposition_changes_is_told_as_the_models_words(page):
    told = text(answered(page, "exact"), ".change")
    assert told == f"What changes, says the model: {quoted_answers.CHANGE}"


def test_an_abstention_of_the_model_says_why(page):
    chromium = answered(page, "not_said")
    assert text(chromium, ".abstained .why") == "The model says that they do not have it."
    assert text(chromium, ".candidate") == "The best candidate is a horse"


def test_an_abstention_without_a_guess_says_why(page):
    chromium = answered(page, "not_said_without_a_guess")
    assert text(chromium, ".abstained .big") == "No answer found in these passages"
    assert text(chromium, ".abstained .why") == "The model says that they do not have it."
    assert chromium.value("document.querySelector('.candidate')") is None


def test_an_answer_that_was_not_calibrated_has_no_percentage(page):
    chromium = answered(page, "uncalibrated")
    told = text(chromium, ".uncalibrated")
    assert told.startswith("Not calibrated for gpt-4o-mini with the prompt grounded")
    command = "ifqa train calibration --reader llm --experiment NAME"
    assert text(chromium, ".uncalibrated code") == command
    assert "%" not in text(chromium, ".imagined")


@pytest.mark.parametrize("width", [1280, 400])
def test_a_hostile_quote_stays_text(page, width):
    chromium = answered(page, "hostile", width=width)
    for place in ".doubt blockquote|.change|.uncalibrated".split("|"):
        assert "<script>window.hacked=1</script>" in text(chromium, place), place
    assert chromium.value("document.querySelectorAll('main img, main script').length") == 0
    assert chromium.value("typeof window.hacked") == "undefined"
    assert chromium.value("document.scrollingElement.scrollWidth") <= width
    assert chromium.complaints == []


def test_the_steps_of_a_model_can_be_unfolded(page):
    chromium = answered(page, "hostile")
    assert "2 steps before the answer" in every(chromium, "summary")
    steps = chromium.value("document.querySelector('.steps').textContent")
    assert steps.startswith("searched “<script>window.hacked=1</script>")
    assert "\u202e" not in steps


def test_a_quote_cannot_turn_the_direction_of_its_letters(page):
    chromium = answered(page, "hostile")
    assert "\ufffd" in text(chromium, ".doubt blockquote")
    assert "\u202e" not in text(chromium, ".doubt blockquote")


def test_a_streamed_text_is_said_to_be_unchecked(page):
    chromium = page("If half, who?")
    assert wait_for_draft(chromium)
    assert text(chromium, ".imagined h3") == "The model is writing; nothing is checked yet"


def wait_for_draft(chromium):
    return until(chromium, "document.querySelector('.draft')?.textContent.includes('<img')")


def test_a_streamed_answer_is_shown_while_it_is_written(page):
    chromium = page("If half, who?")
    assert wait_for_draft(chromium)
    assert (
        chromium.value("document.querySelector('.draft').textContent")
        == f"🚀 So his backup, {NASTY}"
    )
    assert chromium.value("typeof window.hacked") == "undefined"


def test_a_streamed_answer_can_be_stopped(page, server):
    chromium = page("If half, who?")
    assert wait_for_draft(chromium)
    chromium.value("document.querySelector('#stop').click()")
    assert server.left.wait(20)
    assert chromium.value("document.querySelector('#problem').innerText") == ""


def test_a_complete_answer_replaces_what_was_streamed(page, server):
    server.released.set()
    chromium = page("If half, who?")
    assert text(chromium, ".big") == "Jim Lovell"
    assert chromium.value("document.querySelector('.draft')") is None
    assert chromium.value("typeof window.hacked") == "undefined"


def test_a_full_queue_is_said_plainly(page):
    chromium = page("If full, who?")
    assert text(chromium, ".trouble b") == "The queue is full"
    assert NASTY in text(chromium, ".trouble p")
    assert text(chromium, ".trouble small") == "Request 3f1c"
    assert re.fullmatch(r"Ask again in [34] s", text(chromium, ".trouble button"))


def test_a_broken_connection_is_said_plainly(page):
    chromium = page("If broken, who?")
    assert text(chromium, ".trouble p") == "The connection broke before the answer came."
    assert chromium.value("document.querySelector('#question').value") == "If broken, who?"


def test_a_server_with_a_token_asks_for_it_once(page, server):
    chromium = page("If secret, who?")
    until(chromium, "!document.querySelector('#session').hidden")
    chromium.value("document.querySelector('#token').value = 'opensesame'")
    chromium.value("document.querySelector('#session').requestSubmit()")
    assert text(chromium, ".big") == "Jim Lovell"
    assert server.tokens == ["opensesame"]
    assert chromium.value("document.querySelector('#session').hidden")
    assert "opensesame" not in chromium.value(
        "document.documentElement.outerHTML + location.href + document.cookie"
    )


def test_markup_stays_text_also_on_a_telephone(page):
    chromium = page("If nasty, who?", width=400)
    assert text(chromium, ".big") == NASTY
    chromium.value("document.querySelectorAll('details').forEach(one => { one.open = true })")
    for place in ".fact|.passage h4|.source|.passage p|#said".split("|"):
        assert NASTY in text(chromium, place), place
    assert chromium.value("document.querySelectorAll('main img, main script').length") == 0
    assert chromium.value("typeof window.hacked") == "undefined"
    assert chromium.value("document.scrollingElement.scrollWidth") <= 400
    assert chromium.complaints == []


def asked(chromium, question):
    """Ask by keyboard, and wait for the answer."""
    until(
        chromium,
        "document.activeElement.id === 'question' && !document.querySelector('#question').value",
    )
    chromium.type(question)
    chromium.press("Enter")
    until(chromium, f"document.querySelector('.asked h2')?.innerText === {json.dumps(question)}")


@pytest.fixture(params=[1280, 400])
def folder_page(request, page, server):
    """The page of a folder, wide or on a telephone."""
    server.folder = FOLDER_STATE
    width = request.param
    chromium = page(width=width, dark=width == 400)
    until(chromium, "!document.querySelector('#folder').hidden")
    yield chromium
    assert "%20" not in chromium.value("document.body.innerText")
    assert chromium.value("document.querySelectorAll('main img').length") == 0
    assert chromium.value("document.scrollingElement.scrollWidth") <= width
    assert chromium.complaints == []


def test_a_folder_is_named(folder_page):
    assert text(folder_page, "#about").endswith("Answers come from 49 files in my documents.")
    assert folder_page.value(
        "document.querySelector('#results').hidden && document.querySelector('#examples').hidden"
    )
    assert text(folder_page, "nav").split() == ["Ask"]


def test_files_of_a_folder_that_were_left_out_are_listed(folder_page):
    assert text(folder_page, "#left-out summary") == "2 files were left out"
    folder_page.value("document.querySelector('#left-out summary').click()")
    assert every(folder_page, "#left-out li") == [
        "scan.pdf: no text; run ocrmypdf",
        f"{NASTY}\ufffdfdp.exe: {NASTY}",
    ]


def test_each_source_of_a_folder_is_a_link_in_words(folder_page):
    folder_page.value("document.querySelector('#left-out summary').click()")
    asked(folder_page, "If plain, who?")
    assert text(folder_page, ".passage h4").split("\n")[0].startswith("Votes")
    links = (
        "[...document.querySelectorAll('.passage:first-of-type h4 a')].map(one => "
        "[one.innerText, one.getAttribute('href')])"
    )
    both = [[PLACE["text"], PLACE["url"]], ["original", PLACE["original"]]]
    assert folder_page.value(links) == both
    assert folder_page.value("document.querySelector('#hint').offsetHeight") < 30


def test_a_change_of_the_folder_is_told_until_it_is_indexed(page, server):
    server.folder = FOLDER_STATE | {"updating": True, "changed": 3}
    chromium = page("If plain, who?")
    until(chromium, "document.querySelector('#updates').innerText === 'updating: 3 files changed'")
    server.folder = FOLDER_STATE | {"updated": "2026-11-25T14:02:00+00:00", "files": 50}
    assert until(
        chromium, r"/^updated at \d\d:02$/.test(document.querySelector('#updates').innerText)"
    )
    assert until(chromium, "document.querySelector('#about').textContent.includes('50 files')")
    server.folder = FOLDER_STATE | {"problem": "the disk is full", "files": 50}
    chromium.value("document.dispatchEvent(new Event('visibilitychange'))")
    assert until(chromium, "document.querySelector('#updates').innerText === 'the disk is full'")


@pytest.fixture
def new_session(page):
    """The page in a session without questions."""
    page().value("sessionStorage.clear()")
    return page()


def test_the_session_keeps_its_answers(new_session):
    for question in ("If plain, who?", f"If nasty, {NASTY}", "If computed, when?"):
        asked(new_session, question)
    newest = ["If computed, when?", f"If nasty, {NASTY}", "If plain, who?"]
    assert every(new_session, "#history a") == newest
    new_session.value("document.querySelectorAll('#history a')[2].click()")
    until(new_session, "document.querySelector('.big').innerText === 'Jim Lovell'")
    assert new_session.value("location.search") == "?q=If%20plain%2C%20who%3F"
    new_session.value("history.back()")
    until(new_session, "document.querySelector('.big').innerText === '1859'")
    assert sum(request.endswith("/v1/ask") for request in new_session.requests) == 3
    assert new_session.complaints == []


def test_arrow_keys_bring_back_the_questions_of_the_session(new_session):
    newest = ["If computed, when?", f"If nasty, {NASTY}"]
    for question in reversed(newest):
        asked(new_session, question)
    new_session.value("document.querySelector('#question').focus()")
    for key, wanted in (
        ("ArrowUp", newest[0]),
        ("ArrowUp", newest[1]),
        ("ArrowDown", newest[0]),
        ("ArrowDown", ""),
    ):
        new_session.press(key)
        assert new_session.value("document.querySelector('#question').value") == wanted
    assert new_session.complaints == []


def test_the_focus_is_where_the_next_question_is_typed(page):
    chromium = page()
    chromium.value("sessionStorage.clear()")
    chromium = page()
    asked(chromium, "If plain, who?")
    for link in ("#history a", ".foot button:last-of-type"):
        chromium.value(f"document.querySelector('{link}').focus()")
        chromium.press("Enter")
        until(chromium, "!document.querySelector('#answer').hidden")
        assert chromium.value("document.activeElement.id") == "question"


def test_an_answer_is_copied(new_session, page, server):
    server.folder = FOLDER_STATE
    allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    new_session.send("Browser.grantPermissions", permissions=allowed, origin=server.url)
    chromium = page()
    asked(chromium, f"If nasty, {NASTY}")
    chromium.value(
        "[...document.querySelectorAll('.foot button')].find(one => one.innerText === "
        "'Copy').click()"
    )
    until(
        chromium,
        "[...document.querySelectorAll('.foot button')].some(one => one.innerText === 'Copied')",
    )
    lines = chromium.value("navigator.clipboard.readText()").split("\n")
    assert lines == [
        f"If nasty, {NASTY}",
        f"Answer: {NASTY} (61% sure)",
        f"In fact: {NASTY}",
        "Sentence: He lost the seat to Jim Lovell.",
        f"Source: {PLACE['text']}",
    ]
    assert chromium.complaints == []


def test_what_became_of_a_quote_is_copied(new_session, page, server):
    allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    new_session.send("Browser.grantPermissions", permissions=allowed, origin=server.url)
    chromium = answered(page, "found_afterwards")
    chromium.value(
        "[...document.querySelectorAll('.foot button')].find(one => one.innerText === "
        "'Copy').click()"
    )
    until(
        chromium,
        "[...document.querySelectorAll('.foot button')].some(one => one.innerText === 'Copied')",
    )
    lines = chromium.value("navigator.clipboard.readText()").split("\n")
    assert f"Quote: “{quoted_answers.INVENTED}” (not in these passages)" in lines
    sentence = "An engine of six horses stood behind the mill."
    assert f"Sentence (found afterwards): {sentence}" in lines


def test_the_session_is_exported(new_session, page, server, tmp_path):
    server.folder = FOLDER_STATE
    new_session.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    chromium = page()
    asked(chromium, f"If nasty, {NASTY}")
    chromium.value("document.querySelector('#export').click()")
    file = tmp_path / "answers.md"
    # The browser may have begun to write it
    while not (markdown := file.read_text() if file.exists() else ""):
        chromium.value("1")
    assert markdown.startswith("## If nasty, \\<img src=x")
    assert not re.search(r"(?<!\\)<", markdown)
    assert chromium.complaints == []


def test_nothing_of_the_page_is_inline():
    html = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|https?:", html)
    assert re.findall(r"<script[^>]*>(.*?)</script>", html) == [""]


def test_no_script_of_the_page_makes_markup_of_text():
    for path in FOLDER.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|https?:", path.read_text()
        )
