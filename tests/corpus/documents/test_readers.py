"""Every kind of document: its text, headings, pages and lines.

Broken and hostile files are unreadable with a reason.
"""

import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixed_documents import HANDBOOK, archive, docx, epub, pdf, runs

from ifqa.corpus.documents import archive as archives
from ifqa.corpus.documents import mail, markdown_files, readers, worker
from ifqa.corpus.documents import pdf as pdf_reader
from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile, decode_text
from ifqa.corpus.documents.html import html_runs
from ifqa.corpus.documents.readers import READERS
from ifqa.corpus.documents.source import Documents
from ifqa.corpus.sentences import LONGEST_WORD

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def texts(suffix, content):
    return " ".join(text for _, _, text in runs(suffix, content))


def word(body, packing=zipfile.ZIP_DEFLATED, encoding="utf-8", before="", **parts):
    """A Word document of a body, and of other parts such as footnotes."""
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?>{before}<w:document {WORD}>{body}</w:document>'
    )
    more = {
        f"word/{name}.xml": f"<w:{name} {WORD}>{part}</w:{name}>" for name, part in parts.items()
    }
    return archive({"word/document.xml": text.encode(encoding)} | more, packing)


def paragraph(text, more=""):
    return f"<w:p><w:r><w:t>{text}</w:t>{more}</w:r></w:p>"


def test_markdown_is_read_as_headings_without_markup():
    text = (
        "---\ntitle: x\n---\n# One *two*\n\nSee [the map](a.html) and **`this`**.\n<!-- "
        "not\nthis -->\n## Three\n```\n# code\n```\nFour\n====\n"
    )
    assert runs(".md", text) == [
        (4, 1, "One two"),
        (6, 0, "See the map and this."),
        (9, 2, "Three"),
        (11, 0, "# code"),
        (13, 1, "Four"),
    ]


@pytest.mark.parametrize(
    "settings",
    [
        "title: x",
        "# a comment\ntitle: Mill: a story\ntags:\n- a\n- b\n\nlinks: [\n  c\n]",
        '"last modified": x\nog:title: y\nmore: >\n  text\n{{ template }}',
    ],
)
def test_front_matter_of_markdown_is_not_read(settings):
    assert texts(".md", f"---\n{settings}\n---\n\nText.\n") == "Text."


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nTom closes the sluice.\n\n---\n\nContact: 555.\n",
        "---\nTom closes the sluice.\n\n---\n\nContact: 555.\n",
        "---\n# Tom closes the sluice.\n\n- Contact: 555.\n\n---\n",
        "---\n- Tom closes the sluice.\n- Contact: 555.\n---\n",
        "---\nTom closes the sluice. Contact: 555.\n",
    ],
)
def test_text_between_rules_of_markdown_is_read(text):
    assert texts(".md", text) == "Tom closes the sluice. Contact: 555."


@given(st.text("-\nab: #.", max_size=30))
def test_no_word_below_a_rule_of_markdown_is_lost_without_a_key(text):
    bare = text.replace(":", "")
    read = "".join(texts(".md", f"---\n{bare}").split())
    assert all(read.count(letter) == bare.count(letter) for letter in "ab")


def test_a_row_of_a_markdown_table_is_a_sentence():
    assert runs(".md", "| a | b |\n|---|---|\n| 1 | 2 |\n") == [(3, 0, "a: 1; b: 2.")]


@pytest.mark.parametrize(
    ("suffix", "content", "shown"),
    [
        (".md", "Run `pyenv install <version>` now.", "Run pyenv install <version> now."),
        (".md", r"Five \* six \_is\_ thirty&nbsp;or so.", "Five * six _is_ thirty or so."),
        (
            ".md",
            "Write to <kevin@example.org> or see <https://example.org/a>.",
            "Write to kevin@example.org or see https://example.org/a.",
        ),
        (".md", "A note.[^1]\n\n[^1]: It has vanished.", "A note. [1] [1]: It has vanished."),
        (
            ".md",
            "<p align=center>\n<b>Bold</b> claim\n</p>\n\nMore<br>text.",
            "Bold claim More text.",
        ),
        (".md", "> * quoted\n>   twice", "quoted twice"),
        (".md", "![A mill](mill.png) by *Ruth*", "A mill by Ruth"),
        # Too deep
        (
            ".md",
            f"Above.\n\n{'> ' * 40}near\n\nBetween.\n\n{'> ' * 200}far\n\nBelow.",
            "Above. near Between. Below.",
        ),
        (
            ".rst",
            "It needs |name| and |other|.\n\n.. |name| replace:: Python 3.10\n",
            "It needs Python 3.10 and |other|.",
        ),
        (
            ".html",
            "<h2>Safety</h2><p>&nbsp;<a>The sluice</a> is closed.</p>",
            "Safety The sluice is closed.",
        ),
        (
            ".html",
            "<div>Teaser</div><main><header><h1>T</h1></header><p>Body</p></main><div>More</div>",
            "T Body",
        ),
        (".html", "<nav>menu <p>Text.", "menu Text."),  # without an end it is no menu
        (".html", "<aside>Related</aside><p>Body.</p>", "Body."),
        (".html", "<section><p>Body.</p><aside>A box.</aside></section>", "Body. A box."),
        (".html", '<p>Body.</p><aside epub:type="footnote">A note.</aside>', "Body. A note."),
        (".html", '<p>Body.</p><aside role="doc-endnote">A note.</aside>', "Body. A note."),
        (
            ".pdf",
            pdf([["Schr\xa8oder wrote it.", "Garc\xb4ia fa\xb8cade"]]),
            "Schröder wrote it. García façade",
        ),
        (
            ".pdf",
            pdf([["a Debian-based system", "and a Debian-", "based one"]]),
            "a Debian-based system and a Debian-based one",
        ),
        (".pdf", pdf([["interna-", "tional"]]), "international"),
        (".pdf", pdf([["a well-", "known thing, wellknown"]]), "a wellknown thing, wellknown"),
        (".pdf", pdf([["Haupt-", "und Neben-", "straße"]]), "Haupt- und Nebenstraße"),
        # Two lines are not glued
        (".html", "<div>Notiz<nav>Menu</nav>über<br>Stra&shy;ße</div>", "Notiz über Straße"),
        (".html", "<div>Stra<script>1</script>ße</div>", "Straße"),
        (".md", "Notiz<br/>über</td><td>Stra<b>ße</b>", "Notiz über Straße"),
        (
            ".docx",
            word(paragraph("Notiz", "<w:br/><w:t>über</w:t><w:ptab/><w:t>Straße</w:t>")),
            "Notiz über Straße",
        ),
        (
            ".docx",
            word(f"<w:p><w:r><w:pict>{paragraph('Notiz')}</w:pict><w:t>über</w:t></w:r></w:p>"),
            "Notiz über",
        ),
        (".docx", word(paragraph("E", "<w:noBreakHyphen/><w:t>Mail</w:t>")), "E-Mail"),
    ],
)
def test_the_visible_text_is_read(suffix, content, shown):
    assert texts(suffix, content) == shown


def test_rst_is_read_as_headings_without_markup():
    text = (
        "Top\n===\n\nInner\n-----\n\n.. note:: Mind :ref:`the step <step>`.\n.. image:: "
        "x.png\n\n``code`` `here <http://x>`_.\n"
    )
    assert runs(".rst", text) == [
        (1, 1, "Top"),
        (4, 2, "Inner"),
        (7, 0, "Mind the step."),
        (10, 0, "code here."),
    ]


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        (":prop_tgt:`FOLDER` it.", "FOLDER it."),
        (":doc:`Usage <usage>` and :doc:`more<usage>`.", "Usage and more."),
        (
            ":var:`CMAKE_<LANG>_FLAGS` or :var:`CMAKE_<LANG>`.",
            "CMAKE_<LANG>_FLAGS or CMAKE_<LANG>.",
        ),
        (":ref:`The <LANG> flag <flag of a language>`.", "The <LANG> flag."),
    ],
)
def test_a_role_of_rst_shows_its_text_without_its_target(markup, shown):
    assert texts(".rst", markup) == shown


def test_html_is_read_in_whole_words_without_its_menus():
    page = (
        "<nav>menu</nav><header>top</header>\n<h1>A\n<i>b</i></h1><p>H<sub>2</sub>O &amp; "
        "ice<br>x</p><script>1<2</script><footer>end</footer>"
    )
    assert runs(".html", page) == [(2, 1, "A b"), (3, 0, "H2O & ice"), (3, 0, "x")]


@pytest.fixture(scope="module")
def handbook_lines():
    outline = [("Welcome", 0), ("The wheel", 1), ("Safety", 2), ("Flour", 3)]
    return runs(".pdf", pdf(HANDBOOK, outline))


def test_a_pdf_has_the_headings_of_its_outline(handbook_lines):
    wanted = [(1, "1 Welcome"), (2, "2 The wheel"), (3, "3 Safety"), (4, "4 Flour")]
    assert [(place, text) for place, level, text in handbook_lines if level] == wanted


def test_a_line_of_a_pdf_has_its_page(handbook_lines):
    text = "If the brake fails, the sluice is closed by Tom Ferris, who keeps the only"
    assert (3, 0, text) in handbook_lines


def test_the_running_head_of_every_page_is_dropped(handbook_lines):
    assert "Mill handbook" not in {text for _, _, text in handbook_lines}


@pytest.mark.parametrize(
    ("entry", "line", "heading"),
    [
        # Over two lines
        (("The sluice and its keeper", 0), "It is closed by Tom.", "2.3 The sluice and its keeper"),
        (
            ("2.3 The sluice and its keeper", 0),
            "It is closed by Tom.",
            "2.3 The sluice and its keeper",
        ),
        (("2.4 3.5 inch nails", 0), "They hold it.", "3.5 inch nails"),  # not a section number
        (("The race", 0, 3), "It is closed by Tom.", ""),  # not on the page
    ],
)
def test_a_heading_of_the_outline_is_found_on_its_page(entry, line, heading):
    page = (
        "The wheel is of oak.|2.3 The sluice|and its keeper|It is closed by Tom.|3.5 inch "
        "nails|They hold it."
    ).split("|")
    # of each line of text
    above = ""
    headings: dict[str, str] = {}
    for _, level, text in runs(".pdf", pdf([page], [entry])):
        above = text if level else above
        headings |= {} if level else {text: above}
    assert (headings[line], headings["The wheel is of oak."]) == (heading, "")


def test_lines_around_the_text_of_a_pdf_are_dropped():
    body = [
        [f"{letter}{more} of the page." for letter in "uvwxyz"]
        for more in ("an", "en", "in", "on", "un", "at")
    ]
    chapters = ["2. The wheel"] * 3 + ["3. The sluice"] * 3
    numerals = "ii iii iv v vi vii".split()
    pages = [[chapter, "", *body[n], f"page {numerals[n]}"] for n, chapter in enumerate(chapters)]
    contents = [
        "Contents",
        "1 Welcome . . . . . . . 1",
        "2 The wheel . . . . . . 2",
        "3 Safety . . . . . . . . 3",
    ]
    assert texts(".pdf", pdf([contents, *pages])) == " ".join(
        line for lines in body for line in lines
    )


def test_the_text_around_a_table_of_contents_is_kept():
    entries = [
        "Contents",
        "1 Welcome 1",
        *(f"1.{n} The wheel . . . . . . {n}" for n in range(1, 6)),
        "2 Safety 9",
    ]
    page = [
        "The mill by Tom Ferris",
        "It may be copied",
        "without a fee.",
        *entries,
        "Nora Pike keeps it.",
    ]
    shown = (
        "The mill by Tom Ferris It may be copied without a fee. Contents Nora Pike keeps it. "
        "The wheel is of oak."
    )
    assert texts(".pdf", pdf([page, ["The wheel is of oak."]])) == shown


def test_rows_of_numbers_at_the_edge_of_pages_are_kept():
    pages = [
        [f"{n} {n + 1} {n + 2}", *(f"line {word} {n} of text" for word in "abcdef")]
        for n in range(9)
    ]
    assert "7 8 9" in texts(".pdf", pdf(pages[:3] + [["x"]] * 7 + pages[7:] + [["y"]] * 7))


def test_only_a_section_number_makes_a_numbered_line_a_heading():
    numbered = runs(".pdf", pdf([["2.1 The wheel", "It is of oak and has", "36 Buckets of iron."]]))
    assert [level for _, level, _ in numbered] == [2, 0, 0]


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    [
        (".pdf", b"%PDF-1.4 no", "not a complete PDF"),
        (".pdf", pdf([[], []]), "no text on its 2 pages: if they were scanned"),
        (".docx", b"PK no", "not a complete zip archive"),
        (".docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 EncryptedPackage", "it needs a password"),
        (
            ".docx",
            word(paragraph("x"), zipfile.ZIP_BZIP2),
            "is packed by another method than a document's",
        ),
        (
            ".docx",
            word(paragraph("x"), zipfile.ZIP_LZMA),
            "is packed by another method than a document's",
        ),
        (
            ".docx",
            word(paragraph("x"), before='<!DOCTYPE x [<!ENTITY b "c">]>'),
            "declares a document type",
        ),
        (
            ".docx",
            word(paragraph("x"), before='<!DOCTYPE x [<!ENTITY b "c">]>', encoding="utf-16"),
            "declares a document type",
        ),
        (".txt", b"a\0b", "null bytes"),
        (".jsonl", b"[1]\n", "line 1: wanted a JSON object, found list"),
        (".jsonl", b"{\n", "line 1 is not JSON"),
    ],
)
def test_a_broken_document_is_unreadable_with_a_reason(suffix, content, reason):
    with pytest.raises(UnreadableFile, match=reason):
        runs(suffix, content)


def test_a_word_document_has_headings_by_the_names_of_their_styles():
    lease = docx([("berschrift1", "Lease"), ("Standard", "The tenant.")], [("room", "size")])
    assert runs(".docx", lease) == [(1, 1, "Lease"), (2, 0, "The tenant."), (3, 0, "room: size.")]


def test_notes_of_a_word_document_follow_their_reference():
    first = paragraph("The mill stands.", '<w:footnoteReference w:id="2"/>')
    second = paragraph("It turns.", '<w:endnoteReference w:id="1"/>')
    notes = f'<w:footnote w:id="2">{paragraph("Since 1901.")}</w:footnote>'
    ends = f'<w:endnote w:id="1">{paragraph("By water.")}</w:endnote>'
    assert runs(".docx", word(first + second, footnotes=notes, endnotes=ends)) == [
        (1, 0, "The mill stands."),
        (1, 0, "Since 1901."),
        (2, 0, "It turns."),
        (2, 0, "By water."),
    ]


def test_nested_tables_of_a_word_document_are_read_once():
    inner = f"<w:tbl><w:tr><w:tc>{paragraph('inner')}</w:tc></w:tr></w:tbl>"
    row = f"<w:tr><w:tc>{paragraph('first')}</w:tc><w:tc>{paragraph('second')}{inner}</w:tc></w:tr>"
    assert texts(".docx", word(f"<w:tbl>{row}</w:tbl>")) == "first: second. inner."


def test_a_book_has_each_document_once_in_the_order_of_its_spine():
    book = epub(["<h1>One</h1><p>First.</p>", "<p>Second.</p>"])
    assert runs(".epub", book) == [(1, 1, "One"), (1, 0, "First."), (2, 0, "Second.")]
    names = ["a.xhtml", "a.xhtml#o1", "b.xhtml#o1", "b.xhtml#o2"]  # anchors in its documents
    items = "".join(f'<item id="{name}" href="{name}" media-type="text/html"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    files = {
        "META-INF/container.xml": '<container><rootfile full-path="book.opf"/></container>',
        "book.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
        "a.xhtml": "<p>First.</p>",
        "b.xhtml": "<p>Second.</p>",
    }
    assert runs(".epub", archive(files)) == [(1, 0, "First."), (3, 0, "Second.")]


def book_with_parts(parts):
    """A book whose spine has a.xhtml, b.xhtml and c.xhtml."""
    names = ("a.xhtml", "b.xhtml", "c.xhtml")
    items = "".join(f'<item id="{name}" href="{name}" media-type="text/html"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    files = {
        "META-INF/container.xml": '<container><rootfile full-path="book.opf"/></container>',
        "book.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    return archive(files | parts)


def test_a_missing_part_of_a_book_is_told():
    book = book_with_parts({"a.xhtml": "<p>First.</p>", "c.xhtml": "<p>Third.</p>"})
    *read, missing = READERS[".epub"][1](book, ())
    assert [part.text for part in read if isinstance(part, TextRun)] == ["First.", "Third."]
    assert missing == Unread("missing part", 1)


def test_a_part_of_a_book_is_found_in_another_case():
    book = book_with_parts({"A.xhtml": "<p>First.</p>", "b.XHTML": "<p>Second.</p>"})
    assert runs(".epub", book) == [(1, 0, "First."), (2, 0, "Second.")]


def test_a_book_without_any_part_is_refused():
    with pytest.raises(UnreadableFile, match=r"there is no a\.xhtml in it"):
        runs(".epub", book_with_parts({}))


def test_a_pdf_with_too_much_text_is_refused(monkeypatch):
    monkeypatch.setattr(pdf_reader, "LARGEST_TEXT", 100)
    with pytest.raises(UnreadableFile, match="contains more than 100 characters"):
        runs(".pdf", pdf(HANDBOOK))


@pytest.mark.parametrize(
    ("limit", "parts"), [("LARGEST_PART", ["document"]), ("LARGEST", ["document", "styles"])]
)
def test_the_unpacked_size_of_an_archive_is_bounded(limit, parts, monkeypatch):
    text = f"<w:document {WORD}>{paragraph('A lamp.')}</w:document>".ljust(900)
    monkeypatch.setattr(archives, limit, 1000)
    assert runs(".docx", archive({"word/document.xml": text})) == [(1, 0, "A lamp.")]
    files = {f"word/{part}.xml": text + " " * 200 * (2 - len(parts)) for part in parts}
    with pytest.raises(UnreadableFile, match=r"in it unpacks to more than (1,000|100) bytes"):
        runs(".docx", archive(files))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8-sig", "naïve"),
        ("utf-16", "naïve"),
        ("cp1252", "Hélène a dit que c’est fini, et voilà."),
        (
            "cp1251",
            "Договор аренды. Арендатор обязан вносить плату до пятого числа каждого месяца.",
        ),
    ],
)
def test_encodings_are_detected(encoding, text):
    assert decode_text(text.encode(encoding)) == text
    text = "Größe, Maß, Öl, Übung, Äther, süß. " * 5
    # One damaged character changes no others
    assert decode_text(text.encode() + b"\xff") == f"{text}\ufffd"


@pytest.mark.parametrize("declared", ["utf-16-le", "cp037", "no-such"])
def test_a_wrong_declared_encoding_is_ignored(declared):
    page = f"<meta charset={declared}><p>Шлюз закрывает Том Феррис, ключ у него дома.</p>"
    page += " " * (len(page) % 2)
    assert texts(".html", page.encode("cp1251")) == "Шлюз закрывает Том Феррис, ключ у него дома."


@pytest.mark.parametrize("suffix", sorted(READERS))
@given(
    content=st.binary(max_size=200)
    | st.text("<>&#*_-=|`[]()!\n ab\"',{}:.\u2028\x1b", max_size=200).map(str.encode)
)
def test_any_bytes_are_read_or_unreadable(suffix, content):
    with suppress(UnreadableFile):
        assert all(place > 0 and "\x1b" not in text for place, _, text in runs(suffix, content))


@pytest.mark.parametrize("part", ["<!--", "<a ", "<", "<nav>", "</", "<script>", "<h1>", "&"])
def test_hostile_html_takes_time_linear_in_its_length(part):
    html_runs(part * 100_000)  # quadratic time would be minutes


def test_the_docs_state_the_limits():
    table = Path(__file__).parents[3].joinpath("docs/own-documents.md").read_text(encoding="utf-8")
    limits = {
        "bytes of a file": (
            f"{Documents.Settings.model_fields['max_mb'].default:g} MB "
            "(`--max-mb`, or `max_mb` in the corpus file)"
        ),
        "seconds to read a file": f"{worker.SECONDS:g}",
        "memory to read a file": f"{worker.MEMORY / 1e9:.1f} GB of address space; macOS and Windows do not enforce it",
        (
            "one part of a document of Word, PowerPoint or OpenDocument, or of an `.epub`, unpacked"
        ): f"{archives.LARGEST_PART / 1e6:.1f} MB",
        "all unpacked parts, also of an `.xlsx`": f"{archives.LARGEST / 1e6:.0f} MB",
        "text of a PDF": f"{pdf_reader.LARGEST_TEXT / 1e6:.0f} million characters",
        "attached documents of a mail or mailbox that are read": f"{mail.MOST_ATTACHED:,}",
        "messages within one another": f"{mail.DEEPEST}",
        "depth of lists and quotations in Markdown": f"{markdown_files.DEEPEST}",
        "characters of a word": f"{LONGEST_WORD:,}",
    }
    assert all(f"| {limit} | {amount} |" in table for limit, amount in limits.items())


def test_a_long_table_tells_its_share_before_its_first_passage(monkeypatch):
    shares: list[float] = []
    told = []

    def passage_line(*_):
        told.append(len(shares))
        return b"{}\n"

    monkeypatch.setattr(readers, "tell_share", shares.append)
    monkeypatch.setattr(readers, "passage_line", passage_line)
    rows = "name,town\n" + "Ole,Nordvik\n" * 500
    readers.read_request(
        {"name": "a.csv", "suffix": ".csv", "columns": [], "words": 100, "overlap": 0},
        rows.encode(),
    )
    assert told[0] == len(shares) == 500
    assert shares == sorted(shares)


def passages_of(name, content):
    """The texts of a file's passages, and what was left unread."""
    request = {"name": name, "suffix": Path(name).suffix, "words": 100, "overlap": 0, "columns": ()}
    facts, lines = readers.read_request(request, content.encode())
    return [json.loads(line)["contents"] for line in lines.splitlines()], facts["unread"]


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("a.txt", "Ann Lee is 31. Key: {} ends.", "Ann Lee is 31. Key: {}… ends."),
        ("a.json", '[{{"name": "Ann", "photo": "{}"}}]', "name: Ann; photo: {}…."),
        ("a.md", "# {}", "{}…."),
    ],
)
def test_an_overlong_word_is_cut_with_a_note(name, content, shown):
    texts, told = passages_of(name, content.format("A" * 1_000_000))
    assert texts == [shown.format("A" * 100)]
    assert told == "1 overlong word"


def test_a_word_of_the_longest_length_is_kept():
    word = "A" * LONGEST_WORD
    assert passages_of("a.txt", f"{word} {word}") == ([f"{word} {word}"], "")


def test_a_text_without_spaces_is_no_overlong_word():
    assert passages_of("a.txt", "安妮" * 2_000)[1] == ""


@given(st.lists(st.integers(1, 5_000), max_size=5))
def test_no_word_of_a_passage_is_overlong(lengths):
    text = " ".join("a" * length for length in lengths)
    texts, told = passages_of("a.txt", f"x {text}")
    assert all(len(word) <= LONGEST_WORD for text in texts for word in text.split())
    cut = sum(length > LONGEST_WORD for length in lengths)
    assert told == (f"{cut} overlong word{'s' * (cut > 1)}" if cut else "")
