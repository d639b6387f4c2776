"""30 documents of mixed kinds, and what cannot be read, made below a folder.

And what the readers make of a document.
"""

import io
import json
import zipfile

from ifqa.corpus.documents.decoding import TextRun, Unread, clean_text
from ifqa.corpus.documents.readers import READERS

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MENU = '<nav><ul><li><a href="/">Home</a></li><li>Products of the menu</li></ul></nav>'


def pdf(pages, outline=()):
    """A PDF in plain syntax: a list of lines for each page, and (title, page from 0) for each entry
    of its outline.

    A third value of an entry is the line, from 0, that it points to; without it, it points to the
    page. An empty line leaves a gap, as between a running head and the text.
    """
    objects = [
        "",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    first = len(objects) + 1
    for number, lines in enumerate(pages):
        shown = "".join(f"({_escaped(line)}) Tj 0 -16 Td " for line in lines)
        stream = f"BT /F1 11 Tf 60 780 Td {shown}ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 842] /Contents "
            f"{first + 2 * number + 1} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream.encode('cp1252'))} >>\nstream\n{stream}\nendstream")
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>"
    root = len(objects) + 1
    for number, (title, page, *line) in enumerate(outline):
        view = f"/XYZ 60 {791 - 16 * line[0]} 0" if line else "/Fit"
        beside = f" /Prev {root + number} 0 R" if number else ""
        beside += f" /Next {root + number + 2} 0 R" if number + 1 < len(outline) else ""
        if not number:
            ends = f"/First {root + 1} 0 R /Last {root + len(outline)} 0 R"
            objects.append(f"<< /Type /Outlines {ends} /Count {len(outline)} >>")
        place = f"/Parent {root} 0 R /Dest [{first + 2 * page} 0 R {view}]"
        objects.append(f"<< /Title ({_escaped(title)}) {place}{beside} >>")
    objects[0] = (
        "<< /Type /Catalog /Pages 2 0 R" + (f" /Outlines {root} 0 R" if outline else "") + " >>"
    )
    content = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size "
        f"{len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    )
    return content + end.encode()


def _escaped(text):
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def text_runs(suffix, content):
    """The runs of a document, without what is left unread."""
    content = content if isinstance(content, bytes) else content.encode()
    return [part for part in READERS[suffix][1](content, ()) if isinstance(part, TextRun)]


def runs(suffix, content, columns=()):
    """(place, level, text) of each run that a document is read as."""
    content = content if isinstance(content, bytes) else content.encode()
    parts = READERS[suffix][1](content, columns)
    cleaned = (
        (part.place, part.level, clean_text(part.text))
        for part in parts
        if not isinstance(part, Unread)
    )
    return [run for run in cleaned if run[2]]


def archive(files, packing=zipfile.ZIP_DEFLATED):
    """The bytes of a zip archive."""
    with zipfile.ZipFile(content := io.BytesIO(), "w", packing) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return content.getvalue()


def docx(paragraphs, rows=()):
    """A Word document of (style id, text) and of rows of a table.

    The ids are those of a German Word.
    """
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    cells = "".join(f"<w:tr>{''.join(map(cell.format, row))}</w:tr>" for row in rows)
    styles = (
        '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style><w:style '
        'w:styleId="Standard"><w:name w:val="Normal"/></w:style>'
    )
    text = (
        f'<w:document xmlns:w="{WORD}"><w:body>{body}<w:tbl>{cells}</w:tbl></w:body></w:document>'
    )
    return archive(
        {
            "word/document.xml": text,
            "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>',
        }
    )


def epub(chapters):
    """A book whose chapters are HTML."""
    entry = '<item id="c{0}" href="text/chapter%20{0}.xhtml" media-type="application/xhtml+xml"/>'
    items, spine = (
        "".join(map(template.format, range(len(chapters))))
        for template in (entry, '<itemref idref="c{}"/>')
    )
    files = {
        "META-INF/container.xml": (
            "<container "
            'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
            'full-path="OEBPS/book.opf"/></rootfiles></container>'
        ),
        "OEBPS/book.opf": (
            "<package "
            f'xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
        ),
    }
    for number, chapter in enumerate(chapters):
        text = f"<html><head><script src='x.js'/></head><body>{chapter}</body></html>"
        files[f"OEBPS/text/chapter {number}.xhtml"] = text
    return archive(files)


def filler(topic, count=10):
    """Lines about nothing that is asked."""
    line = "The {} is looked at by the crew in week {}, and a note is kept in the green book."
    return [line.format(topic, n) for n in range(1, count + 1)]


HANDBOOK = [
    [
        "Mill handbook",
        "",
        "1 Welcome",
        "This handbook is for the staff of the water mill at Aldbrook.",
        *filler("gate"),
        "",
        "1",
    ],
    [
        "Mill handbook",
        "",
        "2 The wheel",
        "The wheel was built by the carpenter Ruth Hallam in 1871.",
        "It is an overshot wheel of oak with 36 buckets.",
        *filler("wheel"),
        "",
        "2",
    ],
    [
        "Mill handbook",
        "",
        "3 Safety",
        "If the brake fails, the sluice is closed by Tom Ferris, who keeps the only",
        "key to the sluice house.",
        *filler("brake"),
        "",
        "3",
    ],
    [
        "Mill handbook",
        "",
        "4 Flour",
        "The mill grinds 240 kilograms of rye a day for the bakery in Marlow.",
        *filler("stone"),
        "",
        "4",
    ],
]
REPORT = [
    ["Annual report", "The society spent 5,200 pounds on the roof in 1998.", *filler("roof")],
    [
        "Annual report",
        "The treasurer was Ada Lindqvist, and her deputy was Peter Moss.",
        *filler("ledger"),
    ],
    ["Annual report", "The concert in the barn drew 310 guests.", *filler("barn")],
]


def make(top):
    """Write the documents, and beside them what is left out: hidden, linked, looping, broken and
    empty.
    """
    for folder in ("manuals", "notes", "web", ".git", "books"):
        (top / folder).mkdir(parents=True, exist_ok=True)
    (top / "manuals/handbook.pdf").write_bytes(
        pdf(HANDBOOK, [("Welcome", 0), ("The wheel", 1), ("Safety", 2), ("Flour", 3)])
    )
    (top / "manuals/annual report.pdf").write_bytes(pdf(REPORT))
    (top / "manuals/scanned.pdf").write_bytes(pdf([[], []]))
    (top / "manuals/broken.pdf").write_bytes(b"%PDF-1.4\nnot really")
    (top / "web/ferry.html").write_text(
        "<html><head><title>Ferry</title><style>p "
        f"{{}}</style></head><body>{MENU}<header>Banner</header><h1>The ferry</h1>"
        "<p>The ferry to Skarv Island leaves from <b>Pier</b> 4 at nine.</p><p>Its captain "
        "is Ingrid Voss.</p>"
        "<script>alert('x')</script><footer>Imprint of the footer</footer></body></html>"
    )
    (top / "web/bees.htm").write_bytes(
        (
            '<meta charset="iso-8859-1"><h1>Bienen</h1><p>Die Imkerin '
            "Jörg-Müller hält 14 Völker.</p>"
        ).encode("latin-1")
    )
    (top / "notes/garden.md").write_text(
        "---\ntitle: Garden\n---\n# Garden\n\nThe garden lies behind the house.\n\n## "
        "Roses\n\nThe roses were planted by "
        "[Lena Okafor](https://example.org/lena) in **1954**.\n\n```\n# no heading\n```\n\n| "
        "tree | year |\n|---|---|\n| elm | 1901 |\n"
    )
    (top / "notes/telescope.rst").write_text(
        "Telescope\n=========\n\n.. note:: The mirror was ground by *Noor "
        "Haddad*.\n\nUse\n---\n\nAsk :ref:`the warden <warden>` for the key.\n"
    )
    (top / "notes/french.txt").write_text(
        "Le château fut dessiné par l'architecte Hélène Dufrêne.\n", "latin-1"
    )
    (top / "notes/empty.txt").write_text("")
    lease = ["The tenant of the barn is Olga Brandt.", "The rent is 900 pounds."]
    texts = [("berschrift1", "Lease"), *(("Standard", text) for text in lease)]
    (top / "manuals/lease.docx").write_bytes(
        docx(texts, [("room", "size"), ("loft", "40 square metres")])
    )
    chapters = (
        "<h1>One</h1><p>The ship Halcyon sailed from Bergen.</p>",
        "<h1>Two</h1><p>Its cook was Mattias Rehn.</p>",
    )
    (top / "books/voyage.epub").write_bytes(epub(chapters))
    (top / "stars.csv").write_text(
        "title,constellation,found by\nMira,Cetus,David "
        "Fabricius\nAlgol,Perseus,Geminiano Montanari\n"
    )
    tools = [{"name": "adze", "use": "hewing beams"}, {"name": "auger", "use": "boring holes"}]
    (top / "tools.jsonl").write_text("".join(json.dumps(tool) + "\n" for tool in tools))
    for number in range(16):
        keeper = f"The keeper of lamp {number} is Keeper{number} Quill."
        lines = [f"Watch {number}.", *filler(f"lamp {number}", 6), keeper]
        (top / f"notes/log{number:02d}.txt").write_text("\n".join(lines) + "\n")
    (top / ".git/config").write_text("hidden")
    (top / "notes/.secret.txt").write_text("hidden")
    (top / "notes/linked.txt").symlink_to("garden.md")
    (top / "notes/loop").symlink_to("..")
    (top / "picture.jpg").write_bytes(b"\xff\xd8")
    return top
