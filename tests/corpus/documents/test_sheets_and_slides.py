"""Workbooks, presentations, OpenDocument, notebooks, JSON and text without an ending.

Broken and hostile ones.
"""

import io
import json
import zipfile

import pytest
from mixed_documents import archive, runs
from opened_sources import documents

from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile
from ifqa.corpus.documents.readers import READERS

SHOW = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{"drawing" if name == "draw" else name}:1.0"'
    for name in ("text", "table", "draw", "presentation", "office")
)


def shape(kind, *paragraphs):
    holder = f"<p:nvSpPr><p:nvPr>{f'<p:ph type={kind!r}/>' if kind else ''}</p:nvPr></p:nvSpPr>"
    text = "".join(f"<a:p><a:r><a:t>{paragraph}</a:t></a:r></a:p>" for paragraph in paragraphs)
    return f"<p:sp>{holder}<p:txBody>{text}</p:txBody></p:sp>"


def presentation(*slides, more=()):
    """Slides whose files are in the opposite order.

    `more` are (slide, kind of the part, its content).
    """
    name = "ppt/slides/slide{}.xml".format
    wrap = f'<p:{{0}} xmlns:p="{SHOW}" xmlns:a="{DRAWING}" xmlns:r="{TYPES}">{{1}}</p:{{0}}>'.format
    link = f'<Relationship Id="r{{}}" Type="{TYPES}/{{}}" Target="{{}}"/>'.format
    order = [len(slides) - n for n in range(len(slides))]
    files = {name(n): wrap("sld", slide) for n, slide in zip(order, slides, strict=True)}
    files["ppt/presentation.xml"] = wrap(
        "presentation", "".join(f'<p:sldId r:id="r{n}"/>' for n in order)
    )
    targets = "".join(link(n, "slide", f"slides/slide{n}.xml") for n in order)
    files["ppt/_rels/presentation.xml.rels"] = f"<Relationships>{targets}</Relationships>"
    for slide, kind, content in more:
        files[f"ppt/{kind}/{kind}1.xml"] = wrap("x", content)
        target = link(1, kind, f"../{kind}/{kind}1.xml")
        files[f"ppt/slides/_rels/slide{order[slide - 1]}.xml.rels"] = (
            f"<Relationships>{target}</Relationships>"
        )
    return archive(files)


def test_a_presentation_is_read_slide_by_slide_with_its_title_first():
    table = "<a:tbl><a:tr><a:tc><a:p><a:r><a:t>a</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>b</a:t></a:r></a:p></a:tc></a:tr></a:tbl>"
    notes = ("notesSlide", shape("body", "Say hello.") + shape("sldNum", "1"))
    diagram = ("diagramData", "<a:p><a:r><a:t>Gate</a:t></a:r></a:p>")
    slides = (
        shape("", "Grinds", "rye") + shape("title", "The mill"),
        f"<p:grpSp>{shape('', 'Untitled')}</p:grpSp>{table}",
    )
    assert runs(".pptx", presentation(*slides, more=[(1, *notes), (2, *diagram)])) == [
        (1, 1, "The mill"),
        (1, 0, "Grinds."),
        (1, 0, "rye."),
        (1, 0, "Say hello."),
        (2, 1, "Untitled"),
        (2, 0, "a: b."),
        (2, 0, "Gate."),
    ]


def without(content, *names):
    """An archive without some of its files."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        return archive({name: packed.read(name) for name in packed.namelist() if name not in names})


def test_a_missing_slide_is_told():
    content = presentation(shape("title", "The mill"), shape("title", "The weir"))
    broken = without(content, "ppt/slides/slide2.xml")
    read, missing = READERS[".pptx"][1](broken, ())
    assert isinstance(read, TextRun)
    assert read.text == "The weir"
    assert missing == Unread("missing slide", 1)


def test_a_presentation_without_any_slide_is_refused():
    content = presentation(shape("title", "The mill"))
    with pytest.raises(UnreadableFile, match="its slides are missing"):
        runs(".pptx", without(content, "ppt/slides/slide1.xml"))


def test_an_archive_without_a_presentation_is_refused():
    with pytest.raises(UnreadableFile, match=r"no ppt/presentation\.xml"):
        runs(".pptx", archive({"a": ""}))


def opened(body):
    return archive(
        {
            "content.xml": (
                "<office:document-content "
                f"{NAMES}><office:body>{body}</office:body></office:document-content>"
            )
        }
    )


def test_a_text_of_opendocument_is_read_paragraph_by_paragraph():
    body = """<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:table-of-content><text:p>Mill 3</text:p></text:table-of-content>
    <text:h text:outline-level="2">The<text:tab/>mill</text:h>
    <text:p>H<text:span>2</text:span>O<text:s text:c="3"/>flows<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Fast.</text:p></text:note-body></text:note>
    by<text:line-break/>night.</text:p>
    <table:table><table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell><table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table>"""
    assert runs(".odt", opened(body)) == [
        (1, 2, "The mill"),
        (2, 0, "H2O flows by night."),
        (2, 0, "Fast."),
        (3, 0, "a b: c."),
    ]


def test_slides_of_opendocument_are_read_with_their_titles_first():
    body = """<draw:page><draw:frame><draw:text-box><text:p>Rye</text:p></draw:text-box></draw:frame>
    <draw:frame presentation:class="title"><text:p>Mill</text:p></draw:frame><draw:frame presentation:class="footer"><text:p>7</text:p></draw:frame>
    <presentation:notes><text:p>Say it.</text:p></presentation:notes></draw:page><draw:page><text:p>Untitled</text:p></draw:page>"""
    assert runs(".odp", opened(body)) == [
        (1, 1, "Mill"),
        (1, 0, "Rye."),
        (1, 0, "Say it."),
        (2, 1, "Untitled"),
    ]


def read_notebook():
    outputs = [
        {"text": [f"line {n}\n" for n in range(99)]},
        {"data": {"text/plain": "42", "image/png": "xxx"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Fit\n", "See *below*."]},
        {"cell_type": "code", "source": "x = 1\ny = 2", "outputs": outputs},
    ]
    return runs(".ipynb", json.dumps({"cells": cells}))


def test_the_cells_of_a_notebook_are_read_in_order():
    wanted = [(1, 1, "Fit"), (1, 0, "See below."), (2, 0, "x = 1"), (2, 0, "y = 2")]
    assert read_notebook()[:4] == wanted


def test_outputs_of_a_notebook_are_shortened():
    shown = [text for *_, text in read_notebook()[4:]]
    assert shown == [*(f"line {n}" for n in range(20)), "42"]


def test_a_notebook_of_the_old_format_is_read():
    assert runs(
        ".ipynb",
        '{"worksheets": [{"cells": [{"cell_type": "heading", "level": 2, "source": "Old"}]}]}',
    ) == [(1, 2, "Old")]


@pytest.mark.parametrize(
    "broken",
    ["[1]", '{"cells": [1]}', '{"cells": [{"cell_type": "code", "source": [1]}]}', "{}", "["],
)
def test_a_broken_notebook_is_refused(broken):
    with pytest.raises(UnreadableFile, match=r"not a Jupyter notebook($| \(Expecting)"):
        runs(".ipynb", broken)


def test_a_text_file_without_an_ending_is_a_document(tmp_path):
    (tmp_path / "LICENSE").write_text("You may copy it.")
    (read,) = documents(str(tmp_path)).scanned
    assert read.name == "LICENSE"
    assert read.kind == ""


def test_a_program_without_an_ending_is_no_document(tmp_path):
    (tmp_path / "LICENSE").write_text("You may copy it.")
    (tmp_path / "tool").write_bytes(b"\x7fELF\0\1")
    _, skipped = documents(str(tmp_path)).scanned
    assert skipped.kind == "other"
    assert skipped.reason == "no kind of document that is read (no ending)"


def test_text_without_an_ending_is_read():
    assert runs("", "You may copy it.") == [(1, 0, "You may copy it.")]


def test_control_characters_in_a_file_without_an_ending_are_refused():
    with pytest.raises(UnreadableFile, match="control characters"):
        runs("", b"#!/bin/sh\n" * 1_000 + b"\x03")
