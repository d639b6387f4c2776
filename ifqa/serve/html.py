"""The pages without a script: a document's text, and an error."""

from html import escape
from pathlib import Path

from ifqa.corpus.documents.chunking import encoded_name, parse_locator
from ifqa.corpus.documents.indexed_file import IndexedFile
from ifqa.formatting import printable_line
from ifqa.serve.schemas import SourceForm

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
#: Status of a refusal that a browser gets as a page -> its title.
SHOWN = {
    404: "There is no such page",
    405: "There is no such page",
    409: "This file has changed",
}
_AROUND = 2_000  # passages of a long document to show before and after the cited passage
_PAGE = (Path(__file__).parent / "page/plain.html").read_text(encoding="utf-8")


def document_page(file: IndexedFile, passage_id: str) -> str:
    """The text of a document, a section for each passage; the cited passage is marked."""
    passages = file.passages()
    sections = []
    cited = next((n for n, passage in enumerate(passages) if passage.id == passage_id), 0)
    shown = passages[max(cited - _AROUND, 0) : cited + _AROUND + 1]
    for passage in shown:
        locator = parse_locator(passage.id)
        (_, _, headings) = passage.title.partition(" › ")
        place = [locator.place] if locator else []
        heading = escape(" · ".join([*place, headings] if headings else place))
        text = escape(passage.text)
        here = ""
        # Without a script, and without #here in the address, `autofocus` scrolls to it
        if passage.id == passage_id:
            text = f"<mark>{text}</mark>"
            here = ' id="here" tabindex="-1" autofocus'
        sections.append(
            f'<section{here}><h2 dir="auto">{heading}</h2><p dir="auto">{text}</p></section>'
        )
    source = SourceForm.of(passage_id, [encoded_name(passage_id)])
    original = escape(source.original if source else "")
    verb = "Open" if file.is_pdf else "Download"
    part = "" if shown == passages else " Only a part of this long document is shown."
    lead = f"The text that answers are read from, without pictures and layout.{part}"
    sections.insert(0, f'<p class="lead">{lead} <a href="{original}">{verb} the original</a></p>')
    return _PAGE.format(title=escape(printable_line(file.name)), body="\n".join(sections))


def problem_page(status: int, detail: str) -> str:
    """The page of a refused request, for somebody who followed a link or typed an address."""
    is_bare = detail in ("Not Found", "Method Not Allowed")
    told = "" if is_bare else f'<p class="lead" dir="auto">{escape(printable_line(detail))}</p>'
    body = f'{told}<p class="lead"><a href="/">Ask a question</a></p>'
    return _PAGE.format(title=SHOWN[status], body=body)
