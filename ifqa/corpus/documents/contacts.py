"""Reads files of contacts (.vcf): each card as a row with the names of its fields."""

import quopri
import re
from collections.abc import Iterator

from ifqa.corpus.documents.decoding import TextRun, clean_text, decode_as, split_lines
from ifqa.corpus.documents.rows import Cell, row_text

#: Fields of a card that are read -> their names, in the order of a card's row.
_FIELDS = {
    "FN": "Name",
    "NICKNAME": "Nickname",
    "ORG": "Organisation",
    "TITLE": "Position",
    "ROLE": "Role",
    "TEL": "Telephone",
    "EMAIL": "E-mail",
    "ADR": "Address",
    "BDAY": "Birthday",
    "URL": "Website",
    "NOTE": "Note",
}
_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:]*)?):(.*)", re.DOTALL)
_KIND = re.compile(r"\b(work|home|cell|mobile|fax|pager|main)\b", re.I)
_QUOTED = "QUOTED-PRINTABLE"
_ESCAPED = re.compile(r"\\(.)")


def read_contacts(text: str) -> Iterator[TextRun]:
    """The cards of a file, each with the number of its first line."""
    cells = list[Cell]()
    parts_of_name = ""  # the name of a card that has no FN, as older cards may have none
    start = 1
    for number, line in _unfold(text):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        field = match[1].upper()
        if field == "BEGIN":
            cells = []
            parts_of_name = ""
            start = number
        elif field == "END" and (cells or parts_of_name):
            if parts_of_name and all(name != _FIELDS["FN"] for name, _ in cells):
                cells.append((_FIELDS["FN"], parts_of_name))
            order = list(_FIELDS.values())
            cells.sort(key=lambda cell: order.index(cell[0].partition(" (")[0]))
            yield TextRun(row_text(cells), start, row=tuple(cells), last=number)
            cells = []
            parts_of_name = ""
        elif field == "N":
            parts_of_name = _read_name(match[3], match[2])
        elif field in _FIELDS and (value := _read_value(match[3], match[2])):
            kind = _KIND.search(match[2])
            suffix = f" ({kind[1].lower()})" if kind else ""
            cells.append((_FIELDS[field] + suffix, value))


def _unfold(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; one that begins with a blank continues the one before."""
    parts = list[str]()
    first = 1
    is_quoted = False  # whether "=" at the end of a line continues it
    for number, line in enumerate(split_lines(text), start=1):
        is_open = is_quoted and parts[-1].endswith("=")
        if parts and (is_open or line[:1] in (" ", "\t")):
            parts.append(f"\n{line}" if is_open else line[1:])
            continue
        yield first, "".join(parts)
        parts = [line]
        first = number
        is_quoted = _QUOTED in line.upper()
    yield first, "".join(parts)


def _read_value(value: str, parameters: str) -> str:
    """The parts of a value that have text, with commas between them."""
    return ", ".join(filter(None, _read_parts(value, parameters)))


def _read_name(value: str, parameters: str) -> str:
    """A name whose parts are the family name, given and further names, titles before and after."""
    family, given, further, before, after, *_ = [*_read_parts(value, parameters), *[""] * 5]
    return " ".join(filter(None, [before, given, further, family, after]))


def _read_parts(value: str, parameters: str) -> list[str]:
    if _QUOTED in parameters.upper():
        content = quopri.decodestring(value.encode("utf-8", "replace"))
        value = decode_as(content, "utf-8") or content.decode("cp1252", "replace")
    parts = re.split(r"(?<!\\);", value)
    plain = (
        _ESCAPED.sub(lambda match: " " if match[1] in "nN" else match[1], part) for part in parts
    )
    return list(map(clean_text, plain))
