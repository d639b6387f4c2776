"""A folder of documents behind the server: sources in words with links, their text, their files,
and those left out.
"""

import io
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pytest
from blocking_reader import FACT
from mixed_documents import pdf
from serving_system import TOKEN, client, on_loopback, small, until

from ifqa.corpus.documents.indexed_file import IndexedFile
from ifqa.serve import html, limits
from ifqa.serve.security import Guard

HOSTILE = "</mark><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
#: It calls a script and asks for an address when it is opened.
HOSTILE_PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(this.getURL\\('http://127.0.0.1:9/a'\\);)/Next<</S/URI/URI(http://127.0.0.1:9/b)>>>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 52>>stream
BT /F 12 Tf 20 100 Td (The mill of Bo is old.) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
"""
HINT = "save as .docx: soffice --headless --convert-to docx FILE"
UNCHANGED = {"updating": False, "changed": 0, "updated": "", "problem": ""}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked=1"><text>A mill</text></svg>'
LINES = [
    f"Wheel number {number} is greased by the crew in the first week of the year."
    for number in range(9)
]


@pytest.fixture
def docs(tmp_path):
    """A folder whose first passage begins on page 1 of a PDF and has the answer on page 2."""
    folder = tmp_path / "my documents"
    (folder / "b c").mkdir(parents=True)
    (folder / "a & b.pdf").write_bytes(pdf([["The mill.", *LINES[:2]], [FACT, "The end."]]))
    (folder / "b c/notes #1.md").write_text(
        "# Rye\n\nRye is ground on Monday.\n" + "\n# Oats\n\nOats are next.\n" * 30
    )
    (folder / "c.html").write_text(
        f"<h1>Oats</h1><p>{HOSTILE.replace('<', '&lt;')}</p><script>window.hacked=1</script>"
    )
    (folder / "d.pdf").write_bytes(HOSTILE_PDF)
    (folder / "e.svg.html").write_text(f"<p>Barley.</p>{SVG}")
    (folder / "old.wps").write_bytes(b"\xd0\xcf\x11\xe0")
    return folder


@pytest.fixture
def system(tmp_path, docs):
    """An experiment over the folder."""
    experiment = small(tmp_path)
    Path(tmp_path, "indexes/few.toml").write_text(
        f'[[passages.sources]]\nformat = "documents"\npath = "{docs}"\n'
    )
    return experiment


@pytest.fixture
def web(system):
    with client(system) as web_client:
        yield web_client


def test_sources_are_told_in_words_with_links(web):
    [answer] = web.post("/v1/ask", json={"question": "If not, who?"}).json()["answers"]
    source = answer["evidence"][0]["source"]
    url = "/documents/a%2520%26%2520b.pdf%230%3Apage%3D1%2C2%40148"
    assert source == {"text": "a & b.pdf, p. 2", "url": url, "original": f"{url}/original#page=2"}
    ranking = web.post("/v1/retrieve", json={"question": "x", "k": 5}).json()["rankings"][0][
        "passages"
    ]
    assert [passage["source"]["text"] for passage in ranking] == [
        "a & b.pdf, pp. 1-2",
        "c.html, line 1",
        "d.pdf, p. 1",
        "e.svg.html, line 1",
        "b c/notes #1.md, lines 1-3",
    ]
    assert ranking[4]["source"]["original"].endswith(
        "/documents/b%2520c/notes%2520%25231.md%230%3Aline%3D1-3/original"
    )


def test_the_folder_is_named_instead_of_the_experiments_collection(web):
    about = web.get("/v1/about").json()
    assert (about["about"], about["examples"]) == ("The documents of my documents.", [])
    assert about["documents"] == {
        "name": "my documents",
        "files": 5,
        "passages": 35,
        "left_out": 1,
        "updating": False,
    }


@pytest.fixture
def served(system):
    """The address of a server, which decodes a path once, as a test client does not."""
    with on_loopback(system) as (service, address):
        ids = [passage.id for passage in service.system.retrieve(["x"], 99)[0].passages]
        yield address, {passage_id.partition("#")[0]: passage_id for passage_id in ids}


def fetch(address, headers=None, method="GET"):
    """Status, headers and text or bytes."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, headers=headers or {}, method=method)
        ) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def test_a_file_is_shown_as_escaped_text_with_the_passage_marked(served):
    address, ids = served
    status, headers, body = fetch(f"{address}/documents/{quote(ids['c.html'])}")
    policy = headers["Content-Security-Policy"]
    assert (status, headers.get_content_type()) == (200, "text/html")
    assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self';")
    assert "script" not in policy
    assert b"<script" not in body
    assert b'<section id="here"' in body
    assert b"<mark>Oats. &lt;/mark&gt;&lt;script&gt;" in body


def original(served, docs, name):
    """The headers of a file, after what holds of all files."""
    address, ids = served
    status, headers, body = fetch(f"{address}/documents/{quote(ids[name])}/original")
    assert status == 200
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert body == (docs / name.replace("%20", " ")).read_bytes()
    return headers


def test_a_pdf_opens_sandboxed(served, docs):
    headers = original(served, docs, "a%20&%20b.pdf")
    assert headers["Content-Type"] == "application/pdf"
    assert headers["Content-Disposition"] == "inline; filename*=UTF-8''a%20%26%20b.pdf"


def test_a_file_other_than_a_pdf_is_downloaded(served, docs):
    headers = original(served, docs, "c.html")
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''c.html"


def test_a_head_request_has_the_headers_without_the_body(served):
    address, ids = served
    for path in (
        f"documents/{quote(ids['c.html'])}/original",
        f"documents/{quote(ids['c.html'])}",
        "v1/about",
        "",
    ):
        replies = [fetch(f"{address}/{path}", method=method) for method in ("GET", "HEAD")]
        lengths = [headers["Content-Length"] for _, headers, _ in replies]
        assert [status for status, _, _ in replies] == [200, 200], path
        assert lengths[0] == lengths[1] == str(len(replies[0][2]))
        assert replies[1][2] == b""


def test_a_file_that_grows_while_it_is_sent_ends_where_it_did(served, docs, monkeypatch):
    address, ids = served
    text = (docs / "c.html").read_bytes()
    monkeypatch.setattr(IndexedFile, "open", lambda _: io.BytesIO(text + b"more"))
    assert fetch(f"{address}/documents/{quote(ids['c.html'])}/original")[::2] == (200, text)


@pytest.fixture
def hostile_name(system, docs):
    """The address of a file whose name has hostile bytes."""
    (docs / "\udcff\n\x1b\N{RIGHT-TO-LEFT OVERRIDE}fdp.txt").write_text("Millet is sown.")
    with on_loopback(system) as (service, address):
        ids = [passage.id for passage in service.system.retrieve(["x"], 99)[0].passages]
        [url] = [
            f"{address}/documents/{quote(passage_id)}"
            for passage_id in ids
            if passage_id.startswith("%FF")
        ]
        yield url


def test_a_name_with_hostile_bytes_is_utf_8_in_the_headers(hostile_name):
    _, headers, _ = fetch(f"{hostile_name}/original")
    assert (
        headers["Content-Disposition"]
        == "attachment; filename*=UTF-8''%EF%BF%BD%20%EF%BF%BD%EF%BF%BDfdp.txt"
    )


def test_a_name_with_hostile_bytes_is_plain_on_the_page(hostile_name):
    _, _, page = fetch(hostile_name)
    assert "<h1>\ufffd \ufffd\ufffdfdp.txt</h1>" in page.decode()


def test_only_files_of_the_index_are_given(served, tmp_path):
    address, _ = served
    (tmp_path / "secret.txt").write_text("secret")
    unknown = [
        "../secret.txt#0:line=1",
        "..%2fsecret.txt#0:line=1",
        "c.html",
        "c.html#9:line=1",
        "old.wps#0:line=1",
        "/etc/passwd",
        "x" * 6000,
    ]
    for passage_id in unknown:
        for path in (
            quote(passage_id),
            quote(passage_id, safe=""),
            quote(f"{passage_id}/original"),
        ):
            assert fetch(f"{address}/documents/{path}")[0] == 404, path


def test_a_file_that_changed_is_not_given(served, docs):
    address, ids = served
    page = docs / "c.html"
    modified = page.stat()
    text = page.read_bytes()
    for changed in (text[:-1] + b"!", text + b"!"):
        page.write_bytes(changed)
        os.utime(page, ns=(modified.st_atime_ns, modified.st_mtime_ns))
        status, _, body = fetch(f"{address}/documents/{quote(ids['c.html'])}/original")
        assert status == 409
        assert b"c.html has changed since it was indexed" in body


def test_a_file_that_something_else_replaced_is_not_given(served, docs, tmp_path):
    address, ids = served
    page = docs / "c.html"
    page.rename(tmp_path / "copy")
    page.symlink_to(tmp_path / "copy")
    assert fetch(f"{address}/documents/{quote(ids['c.html'])}/original")[0] == 409
    page.unlink()
    os.mkfifo(page)
    assert fetch(f"{address}/documents/{quote(ids['c.html'])}/original")[0] == 409


def test_of_a_file_in_a_linked_folder_the_indexed_text_alone_is_given(served, docs, tmp_path):
    address, ids = served
    (docs / "b c").rename(tmp_path / "moved")
    (docs / "b c").symlink_to(tmp_path / "moved")
    notes = quote(ids["b%20c/notes%20%231.md"])
    assert fetch(f"{address}/documents/{notes}/original")[0] == 409
    assert b"Rye is ground on Monday." in fetch(f"{address}/documents/{notes}")[2]


def test_files_left_out_are_listed_with_what_would_help(web, docs):
    listed = web.get("/v1/documents").json()
    reason = "no kind of document that is read (.wps)"
    assert listed.pop("left_out") == [{"file": "old.wps", "reason": reason, "hint": HINT}]
    assert listed == {"name": "my documents", "files": 5, "passages": 35, **UNCHANGED}


def test_another_corpus_has_no_documents(tmp_path):
    with client(small(tmp_path)) as web:
        assert web.get("/v1/documents").status_code == web.get("/documents/p/1").status_code == 404
        assert web.get("/v1/about").json()["documents"] is None


GUARDED_PATHS = [
    "/v1/documents",
    "/documents/c.html%230:line=1",
    "/documents/c.html%230:line=1/original",
]


@pytest.fixture
def guarded(system):
    with client(system, Guard(token=TOKEN)) as web_client:
        yield web_client


def test_documents_want_the_token(guarded):
    for path in GUARDED_PATHS:
        assert guarded.get(path).status_code == 401


def test_a_browser_without_the_token_is_sent_to_the_page(guarded):
    for path in GUARDED_PATHS:
        sent = guarded.get(path, headers={"accept": "text/html,*/*"}, follow_redirects=False)
        assert sent.status_code == 303
        assert sent.headers["location"] == "/"
        assert sent.content == b""


def test_in_a_browser_nothing_of_a_document_runs(served, chromium):
    address, ids = served
    chromium.open(f"{address}/documents/{quote(ids['c.html'])}", height=300, dark=True)
    assert chromium.value("window.hacked === undefined && document.images.length === 0")
    assert chromium.value("document.getElementById('here').innerText.includes('<script>')")
    assert chromium.value("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 24)"
    assert chromium.complaints == []


def test_in_a_browser_the_passage_of_a_document_is_in_view(served, chromium):
    address, ids = served
    chromium.open(f"{address}/documents/{quote(ids['b%20c/notes%20%231.md'])}", height=300)
    # The browser scrolls some time after it loaded the page
    until(lambda: chromium.value("scrollY > 1000"))
    until(
        lambda: (
            0 <= chromium.value("document.getElementById('here').getBoundingClientRect().top") < 300
        )
    )


def open_in_viewer(chromium, file):
    chromium.open(file, "#page=2")
    until(lambda: chromium.value("1") and "chrome-extension:" in str(chromium.requests))


def test_in_a_browser_nothing_of_a_pdf_runs(served, chromium):
    address, ids = served
    for name in ("a%20&%20b.pdf", "d.pdf"):
        file = f"{address}/documents/{quote(ids[name])}/original"
        open_in_viewer(chromium, file)
        assert chromium.value("document.contentType") == "application/pdf"
        assert chromium.value("location.href") == f"{file}#page=2"
        assert not [url for url in chromium.requests if "127.0.0.1:9/" in url]


def test_a_browser_stays_where_it_was_when_a_file_is_downloaded(served, chromium):
    address, ids = served
    file = f"{address}/documents/{quote(ids['d.pdf'])}/original"
    open_in_viewer(chromium, file)
    for name in ("c.html", "e.svg.html"):
        chromium.send("Page.navigate", url=f"{address}/documents/{quote(ids[name])}/original")
        assert chromium.value("location.href") == f"{file}#page=2"


def test_a_new_file_left_out_is_listed_after_the_update(web, docs):
    (docs / "scan.pdf").write_bytes(pdf([[], []]))
    until(lambda: (folder := web.get("/v1/documents").json())["updated"] and not folder["updating"])
    folder = web.get("/v1/documents").json()
    assert (folder["changed"], folder["left_out"][0]["file"]) == (1, "scan.pdf")
    assert (
        folder["left_out"][0]["hint"]
        == "a scan without text: ocrmypdf IN OUT adds it, or start with --ocr"
    )


def test_of_a_long_document_the_part_around_the_passage_is_shown(served, monkeypatch):
    address, ids = served
    notes = f"{address}/documents/{quote(ids['b%20c/notes%20%231.md'])}"
    assert fetch(notes)[2].count(b"<section") == 31
    monkeypatch.setattr(html, "_AROUND", 3)
    body = fetch(notes)[2]
    assert (body.count(b"<section"), b"Only a part of this long document is shown." in body) == (
        4,
        True,
    )


@pytest.fixture
def picture(served):
    """The address of the page of an answer's sentence."""
    address, _ = served
    request = urllib.request.Request(
        f"{address}/v1/ask", b'{"question": "If not, who?"}', {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        [answer] = json.load(reply)["answers"]
    [form] = answer["how"]["pictures"]
    assert (form["page"], form["text"]) == (2, "a & b.pdf, p. 2")
    return f"{address}{form['url']}"


def test_the_page_of_a_sentence_is_given_as_a_picture_to_keep(picture):
    status, headers, body = fetch(picture)
    assert (status, headers["Content-Type"]) == (200, "image/png")
    assert body.startswith(b"\x89PNG")
    assert headers["Cache-Control"] == "private, max-age=86400, immutable"
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"


def test_only_pages_of_the_sentence_are_drawn(picture):
    for old, new, status in (
        ("/pages/2", "/pages/1", 404),
        ("/pages/2", "/pages/9", 404),
        ("a%2520%26%2520b.pdf", "c.html", 404),
        ("start=", "start=-", 422),
        ("&of=", "&of=x", 422),
    ):
        assert old in picture
        assert fetch(picture.replace(old, new))[0] == status, new


def test_a_page_of_a_file_that_changed_is_not_drawn(picture, docs):
    assert fetch(picture.partition("&of=")[0] + "&of=" + "0" * 16)[0] == 409
    with open(docs / "a & b.pdf", "ab") as handle:
        handle.write(b"\n")
    assert fetch(picture)[0] == 409


def test_pictures_beyond_the_limit_are_refused(picture, monkeypatch):
    monkeypatch.setattr(limits, "MAX_DRAWING", 0)
    status, headers, _ = fetch(picture)
    assert (status, headers["Retry-After"]) == (503, "5")


def test_pictures_want_the_token(guarded):
    query = "start=0&end=9&of=0123456789abcdef"
    assert guarded.get(f"/documents/c.html%230:line=1/pages/1.png?{query}").status_code == 401


BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_an_unknown_address_is_a_page_in_a_browser(web):
    reply = web.get("/nothing<b>", headers=BROWSER)
    assert (reply.status_code, reply.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "<h1>There is no such page</h1>" in reply.text
    assert '<a href="/">Ask a question</a>' in reply.text
    assert "<b>" not in reply.text


def test_an_unknown_document_is_a_page_that_says_so_in_a_browser(web):
    reply = web.get("/documents/<b>%230:line=1", headers=BROWSER)
    assert reply.status_code == 404
    assert "no document has a passage &#x27;&lt;b&gt;#0:line=1&#x27;" in reply.text


def test_an_unknown_address_is_a_problem_for_a_program(web):
    for headers in ({}, {"accept": "*/*"}, {"accept": "application/json"}):
        reply = web.get("/nothing", headers=headers)
        assert reply.headers["Content-Type"] == "application/problem+json"
        assert reply.json()["detail"] == "Not Found"


def test_sources_of_two_folders_lead_to_their_own_files(tmp_path):
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.md").write_text(f"The {name} mill. {FACT}")
    experiment = small(tmp_path)
    sections = [
        f'[[passages.sources]]\nformat = "documents"\npath = "{tmp_path / name}"\n'
        f'prefix = "{name}"\n'
        for name in ("left", "right")
    ]
    (tmp_path / "indexes/few.toml").write_text("".join(sections))
    with client(experiment) as web:
        [ranking] = web.post("/v1/retrieve", json={"question": "x", "k": 2}).json()["rankings"]
        sources = {
            passage["source"]["text"]: passage["source"]["original"]
            for passage in ranking["passages"]
        }
        assert [*sources] == ["left/notes.md, line 1", "right/notes.md, line 1"]
        for name, address in zip(("left", "right"), sources.values(), strict=True):
            assert web.get(address).text == f"The {name} mill. {FACT}"
