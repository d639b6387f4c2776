"""Pages without a script: the text of a document, and the API's description."""

import json
import re
import shlex
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from ifqa.corpus.documents.chunking import encoded_name, parse_locator
from ifqa.corpus.documents.indexed_file import IndexedFile
from ifqa.formatting import printable_line
from ifqa.serve.schemas import SourceForm

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_AROUND = 2_000  # passages of a long document to show before and after the cited passage
_PAGE = (Path(__file__).parent / "page/plain.html").read_text(encoding="utf-8")


def document_page(file: IndexedFile, passage_id: str) -> str:
    """The text of a document, a section for each passage; the cited passage is marked."""
    passages, sections = file.passages(), []
    cited = next((n for n, passage in enumerate(passages) if passage.id == passage_id), 0)
    shown = passages[max(cited - _AROUND, 0) : cited + _AROUND + 1]
    for passage in shown:
        locator, (_, _, headings) = parse_locator(passage.id), passage.title.partition(" › ")
        place = [locator.place] if locator else []
        heading, text, here = escape(" · ".join([*place, headings] if headings else place)), escape(passage.text), ""
        if passage.id == passage_id:  # without a script, and without #here in the address, `autofocus` scrolls to it
            text, here = f"<mark>{text}</mark>", ' id="here" tabindex="-1" autofocus'
        sections.append(f'<section{here}><h2 dir="auto">{heading}</h2><p dir="auto">{text}</p></section>')
    source = SourceForm.of(passage_id, [encoded_name(passage_id)])
    original = escape(source.original if source else "")
    verb = "Open" if file.name.lower().endswith(".pdf") else "Download"
    part = "" if shown == passages else " Only a part of this long document is shown."
    lead = f"The text that answers are read from, without pictures and layout.{part}"
    sections.insert(0, f'<p class="lead">{lead} <a href="{original}">{verb} the original</a></p>')
    return _PAGE.format(title=escape(printable_line(file.name)), body="\n".join(sections))


def api_page(schema: Mapping[str, Any], command: list[str], address: str) -> str:
    """The API's description, from its OpenAPI schema; `command` and `address` open the example commands."""
    objects = schema["components"]["schemas"]
    parts = [
        '<p class="lead">For programs: <a href="/openapi.json">openapi.json</a>. Errors are <a href="#Problem">problems</a>.</p>'
    ]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            example, lines = [*command, address + path], [_prose(operation["description"])]
            for parameter in operation.get("parameters", ()):
                lines.append(
                    f"Parameter <code>{parameter['name']}</code>: {_type(parameter['schema'])}, percent-encoded"
                )
            if "requestBody" in operation:
                form = operation["requestBody"]["content"]["application/json"]["schema"]
                body = objects[form["$ref"].rpartition("/")[2]].get("examples", [{"token": "TOKEN"}])[0]
                example += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
                lines.append(f"Request: {_type(form)}")
            for kind, content in operation["responses"].get("200", {}).get("content", {}).items():
                lines.append(f"Response: {_type(content.get('schema', {}))}, {escape(kind)}")
            texts = "".join(f"<p>{line}</p>" for line in lines)
            title = f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
            parts.append(f"<section>{title}{texts}<pre>{escape(shlex.join(example))}</pre></section>")
    for name, shape in objects.items():
        rows = [
            f"<tr><th scope=row>{field}</th><td>{_type(facts)}</td><td>{_prose(facts.get('description', ''))}</td></tr>"
            for field, facts in shape.get("properties", {}).items()
        ]
        about = _prose(shape.get("description", ""))
        parts.append(f'<section id="{name}"><h2>{name}</h2><p>{about}</p><table>{"".join(rows)}</table></section>')
    return _PAGE.format(title="API", body="\n".join(parts))


def _prose(text: str) -> str:
    """A description as HTML; what stands between backticks is code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def _type(field: Mapping[str, Any]) -> str:
    """A field's type in words, with a link to the object."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    if choices := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(dict.fromkeys(map(_type, choices)))
    if "items" in field:
        return f"list of {_type(field['items'])}"
    return escape(" or ".join(map(json.dumps, field["enum"])) if "enum" in field else field.get("type", "text"))
