"""Reads what was filled into the fields of a PDF's form, at its place on the page."""

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ifqa.corpus.documents.pdf_characters import Box, Characters
from ifqa.corpus.documents.pdf_layout import Span

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_MOST_FIELDS = 5_000  # of a page
_MOST_CHARACTERS = 100_000  # of a value
_MOST_PAIRS = 1_000_000  # of a row and a field on a page, which take a second
_NEAR = 40.0  # points from a box to tick to its label
_ABOVE = 2.0  # heights of a label above its field
_TICKED = "[x]"
_BLANK = "_ "  # where a value is to be written
_NAME = re.compile(r"[^\W\d_]{3}[^\[\].]*")  # of a field; "f1_01[0]" tells nothing


@dataclass(frozen=True, slots=True)
class Field:
    """A field with what was filled in, on a page as it is shown."""

    value: str
    name: str
    box: Box
    is_tick: bool  # a check box or a radio button


@contextmanager
def open_form(document: "PdfDocument") -> Iterator[Any]:
    """PDFium's handle of a document's form, to be closed before the document; None without one.

    pypdfium2's own way prepares each page to be filled in, in a time that is quadratic in its
    fields.
    """
    from pypdfium2 import raw

    if document.get_formtype() == raw.FORMTYPE_NONE:
        yield None
        return
    settings = raw.FPDF_FORMFILLINFO(version=2)  # PDFium keeps its address
    form = raw.FPDFDOC_InitFormFillEnvironment(document, settings)
    try:
        yield form
    finally:
        if form:
            raw.FPDFDOC_ExitFormFillEnvironment(form)


def is_xfa(document: "PdfDocument") -> bool:
    """Whether a document is a form of XML, of which PDFium shows nothing."""
    from pypdfium2 import raw

    return bool(document.get_formtype() == raw.FORMTYPE_XFA_FULL)


def read_fields(form: Any, page: "PdfPage", characters: Characters) -> list[Field]:
    """The filled fields of a page, and the texts that were typed onto it, from the top.

    `form` is the handle of `open_form`.
    """
    from pypdfium2 import raw

    fields = list[Field]()
    for number in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MOST_FIELDS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, number)
        if not annotation:
            continue
        field = _read_annotation(raw, form, annotation, characters)
        raw.FPDFPage_CloseAnnot(annotation)
        if field and field.value.strip():
            fields.append(field)
    return sorted(fields, key=lambda field: (-round(field.box[3]), field.box[0]))


def _read_annotation(raw: Any, form: Any, annotation: Any, characters: Characters) -> Field | None:
    rectangle = raw.FS_RECTF()
    if raw.FPDFAnnot_GetFlags(annotation) & raw.FPDF_ANNOT_FLAG_HIDDEN:
        return None
    if not raw.FPDFAnnot_GetRect(annotation, rectangle):
        return None
    box = characters.turn((rectangle.left, rectangle.bottom, rectangle.right, rectangle.top))
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    if kind == raw.FPDF_ANNOT_FREETEXT:
        value = _string(lambda *room: raw.FPDFAnnot_GetStringValue(annotation, b"Contents", *room))
        return Field(value, "", box, False)
    if kind != raw.FPDF_ANNOT_WIDGET or not form:
        return None

    def text_of(get: Callable[..., int]) -> str:
        return _string(lambda *room: get(form, annotation, *room))

    name = text_of(raw.FPDFAnnot_GetFormFieldAlternateName)
    match = _NAME.search(text_of(raw.FPDFAnnot_GetFormFieldName).rpartition(".")[2])
    name = name or (match[0] if match else "")
    type_ = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if type_ in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        state = _string(lambda *room: raw.FPDFAnnot_GetStringValue(annotation, b"AS", *room))
        return Field(_TICKED if state not in ("", "Off") else "", name, box, True)
    is_secret = (
        type_ == raw.FPDF_FORMFIELD_TEXTFIELD
        and raw.FPDFAnnot_GetFormFieldFlags(form, annotation) & raw.FPDF_FORMFLAG_TEXT_PASSWORD
    )
    if is_secret or type_ not in (
        raw.FPDF_FORMFIELD_TEXTFIELD,
        raw.FPDF_FORMFIELD_COMBOBOX,
        raw.FPDF_FORMFIELD_LISTBOX,
    ):
        return None
    chosen = list[str]()
    if type_ != raw.FPDF_FORMFIELD_TEXTFIELD:
        chosen = _chosen_options(raw, form, annotation)
    value = ", ".join(chosen) or text_of(raw.FPDFAnnot_GetFormFieldValue)
    return Field(" ".join(value.split()), name, box, False)


def _chosen_options(raw: Any, form: Any, annotation: Any) -> list[str]:
    """The labels of the chosen options of a list."""
    count = min(raw.FPDFAnnot_GetOptionCount(form, annotation), _MOST_FIELDS)
    return [
        _string(
            lambda *room, place=number: raw.FPDFAnnot_GetOptionLabel(form, annotation, place, *room)
        )
        for number in range(max(count, 0))
        if raw.FPDFAnnot_IsOptionSelected(form, annotation, number)
    ]


def _string(get: Callable[..., int]) -> str:
    """The text of a function of PDFium that fills a buffer with UTF-16."""
    size = min(get(None, 0), _MOST_CHARACTERS)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    get(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", "ignore").rstrip("\0")


def add_fields(
    rows: Sequence[Sequence[Span]], fields: Sequence[Field], characters: Characters
) -> list[list[Span]]:
    """The rows of a page with the values of its fields, each after its label.

    The label is to the left on the same line, to the right of a box to tick, or above; a field
    without one has its own name.
    """
    filled = [list(row) for row in rows]
    if len(rows) * len(fields) > _MOST_PAIRS:
        return filled + [[Span(field.value, -1, *field.box)] for field in fields]
    for field in fields:
        row = _row_of(filled, field)
        if row is None or not _add_to_row(row, field, characters):
            _add_below(filled, field)
    return filled


def _row_of(rows: Sequence[list[Span]], field: Field) -> list[Span] | None:
    """The row that is beside a field: in it is the middle of the field, or the row's own middle."""
    _, bottom, _, top = field.box
    best: list[Span] | None = None
    nearest = 0.0
    for row in rows:
        span = row[0]
        distance = abs(span.bottom + span.top - bottom - top) / 2
        reach = max(span.height, top - bottom) / 2
        if distance < reach and (best is None or distance < nearest):
            best = row
            nearest = distance
    return best


def _add_to_row(row: list[Span], field: Field, characters: Characters) -> bool:
    """Add a value to its label in a row; False if no label is there."""
    left, _, right, _ = field.box
    if field.is_tick:
        for place, span in enumerate(row):
            if -2 <= span.left - right < _NEAR:
                row[place] = replace(span, text=f"{field.value} {span.text}")
                return True
    before = [place for place, span in enumerate(row) if span.left < left]
    if not before:
        return False
    place = max(before, key=lambda place: row[place].left)
    span = row[place]
    if span.right <= left + span.height:
        row[place] = replace(span, text=f"{span.text} {field.value}", right=max(right, span.right))
    else:
        row[place] = replace(span, text=_insert(span, field, characters))
    return True


def _insert(span: Span, field: Field, characters: Characters) -> str:
    """The text of a span with a value at its place, instead of the blank "____" there."""
    text = span.text
    if characters.text[span.start : span.start + len(text)] != text:  # it has superscripts
        return f"{text} {field.value}"
    low = 0
    high = len(text)
    while low < high:
        middle = (low + high) // 2
        if characters.box(span.start + middle)[0] < field.box[0] - 1:
            low = middle + 1
        else:
            high = middle
    before = text[:low].rstrip(_BLANK)
    after = text[low:].lstrip(_BLANK)
    glue = "" if after[:1] in ",.;:)" else " "
    return f"{before} {field.value}{glue}{after}"


def _add_below(rows: list[list[Span]], field: Field) -> None:
    """Add a value to its label above it, or as a row of its own with the field's name."""
    left, bottom, right, top = field.box
    place = 0
    for number, row in enumerate(rows):
        span = row[0]
        if (span.bottom + span.top) / 2 > (bottom + top) / 2:
            place = number + 1
    for row in rows[max(place - 1, 0) : place]:
        for number, span in enumerate(row):
            is_near = span.bottom - top < _ABOVE * span.height and not field.is_tick
            if is_near and span.left < right and span.right > left:
                colon = "" if span.text[-1:] in ":?.!" else ":"
                row[number] = replace(span, text=f"{span.text}{colon} {field.value}")
                return
    if field.is_tick:
        text = f"{field.value} {field.name}"
    else:
        text = f"{field.name.rstrip(': ')}: {field.value}" if field.name else field.value
    rows.insert(place, [Span(text, -1, left, bottom, right, top)])
