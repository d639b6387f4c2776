"""Finds the lists in a document's passage that a question asks for as a whole.

A span reader would give one of "the officers in 2022". The passages of documents have a line for
each row of a table and for each item of a list, so three kinds of lists can be found in their text:

- the cells of a column, in the rows that the question speaks of
- the items of a list, one a line, and the terms that such lines explain
- the parts of an enumeration within a line: "Present: Ann Lee, Bo Ek and Cy Orr."

An item that the supposition names is left out: "If Ann Lee had been absent, who would have been
present?" Where a text can be read in two ways, there is no list, and the reader gives a span.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise, takewhile

from ifqa.reading.span.list_questions import ListQuestion, read_list_question
from ifqa.scoring.measures.exact_match import normalize

#: Start and end, exclusive, in characters of the passage.
Span = tuple[int, int]
#: Name of a column -> its cell.
Row = Mapping[str, Span]

_LONGEST_LINE = 12  # words of an item that is a line
_LONGEST_PART = 6  # words of a part of an enumeration
_LONGEST_NAME = 6  # words of a column's name, or before the colon of an enumeration

_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_LINE = re.compile(r"[^\n]+")
_CELL = re.compile(r"(?P<name>[^:;\n]{1,80}): (?P<value>[^;\n]*[^;\n.])(?:; |\.?$)", re.MULTILINE)
_MARK = re.compile(r"(?:[(\[]?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)\]]|[-*•–])\s+")
_TERM = re.compile(rf"(?:{_MARK.pattern})?(?P<term>[^:;\n]{{1,60}}): ")
_LABEL = re.compile(r"(?:^|(?<=[.;] ))(?P<name>[^.:;,\n]{1,60}): ", re.MULTILINE)
#: The end of a sentence, and not of an initial or a title.
_STOP = r"[.!?]$|(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|St))(?<!\bMrs)[.!?](?=\s)"
#: The end of what stands after a label.
_LABELLED_END = re.compile(rf"{_STOP}|;? ?$|; (?=[^;\n]*: )", re.MULTILINE)
#: The end of what an enumeration in a sentence may reach to.
_BREAK = re.compile(rf"{_STOP}|[:;](?=\s)|\n", re.MULTILINE)
#: Between two parts of an enumeration, outside brackets, and not before "D.C." or "Jr".
_PARTING = re.compile(r"(?:,? (?:and|or) |[,;] (?!(?:[A-Z]\.)+(?:\W|$)|[JS]r\b))(?![^()\n]*\))")
_LAST = re.compile(r",? (?:and|or) ")
#: What opens a sentence before an enumeration, or is no part of one: "In 1920, Ann Lee and Bo Ek".
_OPENING = re.compile(
    r"\s*(?:In|On|At|By|From|After|Before|Since|During|Until|For|Between|Under|However|Then|Later"
    r"|Today|Here|There|Thus|Also|Finally|Meanwhile|Hello|Dear|When|While|If|As|Like)\b"
)
#: Behind the last part, a word that may begin another clause: "to Oslo and Ann Lee wrote it".
_GOES_ON = re.compile(
    r"\s+(?!(?:in|on|at|by|for|from|of|to|with|as|during|under|after|before|since|until|who|which"
    r"|that|together|each|both)\b)[^\W\d_]"
)
_BRACKET = re.compile(r" *\([^()\n]*\)\W*$")
_IN_BRACKETS = re.compile(r"\((?P<inside>[^()\n]+)\)")
_WORD = re.compile(r"\S+")
#: The first word, after an article.
_FIRST_WORD = re.compile(r"(?:(?:the|an?) )?(\S+)")
_PARTICLES = frozenset("van von de da di der of the".split())  # small words within names
_ENDING = re.compile(r"(?<=...)(?:ies|y|es|e|s)$")
_JOINING = re.compile(r"(?:\([^()\n]*\)|\W|\b(?:and|or)\b)*+", re.IGNORECASE)


def find_whole_lists(question: str, text: str) -> list[tuple[Span, ...]]:
    """The lists in a passage's text that a question may ask for, each as the spans of its items.

    Each has two different items or more, and as many as the question says: "which two".
    """
    asked = read_list_question(question)
    if asked is None:
        return []
    rows = {line.span(): _row(text, line.span()) for line in _LINE.finditer(text)}
    lists = []
    for spans in (
        *_columns(asked, text, rows),
        *_lines(text, rows),
        *_terms(text, rows),
        *_labelled(text),
        *_joined(text),
    ):
        items: dict[str, Span] = {}
        for start, end in spans:
            item = text[start:end]
            if any(map(str.isalnum, item)) and not _names(asked.left_out, item):
                items.setdefault(" ".join(item.lower().split()), (start, end))
        if len(items) > 1 and asked.size in (0, len(items)):
            lists.append(tuple(items.values()))
    return lists


def list_of(span: Span, lists: Sequence[tuple[Span, ...]], text: str) -> tuple[Span, ...] | None:
    """The first of the lists that a span is an item of, or several items; None if there is none.

    The span may also have the name of the item's column, and lack up to half of an item.
    """
    for items in lists:
        if _is_made_of(span, items, text):
            return items
    return None


def join_items(items: Sequence[str]) -> str:
    """Two or more items as one answer: "Ann Lee, Bo Ek and Cy Orr"."""
    if any("," in item or " and " in item for item in items):
        return "; ".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _is_made_of(span: Span, items: Sequence[Span], text: str) -> bool:
    """Whether a span is some of these items, with nothing else but what joins or names them."""
    start, end = span
    touched = [item for item in items if item[0] < end and start < item[1]]
    if not touched:
        return False
    parts = [(max(first, start), min(last, end)) for first, last in touched]
    if any(
        2 * (right - left) < last - first
        for (left, right), (first, last) in zip(parts, touched, strict=True)
    ):
        return False
    name = text[start : parts[0][0]]
    rest = [text[left[1] : right[0]] for left, right in pairwise([*parts, (end, end)])]
    is_named = name.endswith(": ") or not name.strip()
    return is_named and all(_JOINING.fullmatch(part) for part in rest)


# Tables


def _columns(question: ListQuestion, text: str, rows: Mapping[Span, Row]) -> Iterator[list[Span]]:
    """The columns of each table, in the rows that the question speaks of.

    None for a question that compares: no cell says which rows it speaks of.
    """
    if question.compares:
        return
    for is_table, group in groupby(rows.values(), key=bool):
        table = list(group)
        if is_table:
            for column in dict.fromkeys(name for row in table for name in row):
                yield _cells(question, text, [row for row in table if column in row], column)


def _cells(question: ListQuestion, text: str, rows: Sequence[Row], column: str) -> list[Span]:
    """The cells of a column, in the rows with the other cells that the main clause says, or, if it
    says none, the whole question.

    If that says none of them, it must name the column.
    """
    said = _said_cells(question.asked, text, rows, column)
    said = said or _said_cells(question.text, text, rows, column)
    if not said and set(_stems(column)).isdisjoint(_stems(question.text)):
        return []
    return [
        row[column] for row in rows if all(row.get(other) in cells for other, cells in said.items())
    ]


def _said_cells(clause: str, text: str, rows: Sequence[Row], column: str) -> dict[str, list[Span]]:
    """The cells of other columns that a clause says, or whose year it says."""
    years = _YEAR.findall(clause)
    said: dict[str, list[Span]] = defaultdict(list)
    for row in rows:
        for other, (start, end) in row.items():
            cell = text[start:end]
            if other == column:
                continue
            if _says(clause, cell) or any(_says(cell, year) for year in years):
                said[other].append((start, end))
    return said


def _row(text: str, line: Span) -> Row:
    """The cells of a line that is a table's row, which has two or more; else none."""
    cells = {
        cell["name"].strip(): cell.span("value")
        for cell in _CELL.finditer(text, *line)
        if len(cell["name"].split()) <= _LONGEST_NAME
    }
    return cells if len(cells) > 1 else {}


# Lists with an item in each line


def _lines(text: str, rows: Mapping[Span, Row]) -> Iterator[list[Span]]:
    """The short lines below one another, with marks or without.

    Not the lines of a form, most of which have a colon; nor a last line that is more than twice as
    long as any other: it is the paragraph below the list.
    """
    for kind, group in groupby(rows, key=lambda line: _item_kind(text, line, rows[line])):
        lines = list(group)
        words = [len(text[start:end].split()) for start, end in lines]
        if words[-1] > 2 * max(words[:-1], default=0):
            lines.pop()
        labelled = sum(": " in text[start:end] for start, end in lines)
        if kind and 2 * labelled < len(lines):
            yield [_without_mark(text, line) for line in lines]


def _item_kind(text: str, line: Span, row: Row) -> str:
    """Whether a line is a "marked" or "plain" item; empty if it is none.

    The first line of a passage is none without a mark: it may announce the list.
    """
    start, end = line
    if row or len(text[start:end].split()) > _LONGEST_LINE:
        return ""
    if _MARK.match(text, start, end):
        return "marked"
    return "plain" if start else ""


def _without_mark(text: str, line: Span) -> Span:
    start, end = line
    mark = _MARK.match(text, start, end)
    return mark.end() if mark else start, start + len(text[start:end].rstrip(" .;,"))


def _terms(text: str, rows: Mapping[Span, Row]) -> Iterator[list[Span]]:
    """What lines below one another explain, each before its colon."""
    terms = [None if row else _TERM.match(text, *line) for line, row in rows.items()]
    for is_term, group in groupby(terms, key=bool):
        if is_term:
            yield [term.span("term") for term in group if term]


# Enumerations


def _labelled(text: str) -> Iterator[list[Span]]:
    """The parts of what stands after a label and a colon, without brackets.

    They are short, and alike: all or none begin with a small letter, and, without a final "and",
    all or none have a digit or "@". Two parts that begin with small letters may be the halves of a
    sentence, and two with only a comma a name in reverse.
    """
    for label in _LABEL.finditer(text):
        end = _LABELLED_END.search(text, label.end())
        if not end or len(label["name"].split()) > _LONGEST_NAME:
            continue
        parts = _split(_PARTING, text, (label.end(), end.start()))
        if len(parts) < 2 or not all(_is_short(text, part) for part in parts):
            continue
        has_and = _LAST.fullmatch(text, parts[-2][1], parts[-1][0]) is not None
        parts = [_without_bracket(text, part) for part in parts]
        small = sum(_is_lower(text, part) for part in parts)
        coded = sum(bool(re.search(r"[\d@]", text[start:end])) for start, end in parts)
        is_alike = small in (0, len(parts)) and (has_and or coded in (0, len(parts)))
        is_pair = len(parts) == 2 and (small or not has_and)
        if is_alike and not is_pair:
            yield parts


def _joined(text: str) -> Iterator[list[Span]]:
    """The parts of enumerations in a sentence, or in brackets: "written by Ann Lee, Bo Ek and Cy
    Orr in May".
    """
    brackets = [bracket.span("inside") for bracket in _IN_BRACKETS.finditer(text)]
    for within in (*_split(_BREAK, text, (0, len(text))), *brackets):
        parts = _split(_PARTING, text, within)
        first = 0
        for number, (left, right) in enumerate(pairwise(parts)):
            if _LAST.fullmatch(text, left[1], right[0]):
                yield _trimmed(text, parts[first : number + 2])
                first = number + 1


def _trimmed(text: str, parts: Sequence[Span]) -> list[Span]:
    """The parts of an enumeration without the words before and after it, and without brackets.

    The first and the last part are cut where their capital letters and digits end, or after as
    many words as a part between them has. What stands before a long part or one in other letters
    is left out: "A version, credited to Ann Lee, Bo Ek and Cy Orr".

    None if only some parts begin with a small letter ("Ann Lee, for starting it and finding
    members"), if the first opens a sentence, or if two may belong to two clauses.
    """
    end = parts[-1][1]
    parts = [_without_bracket(text, part) for part in parts]
    last = parts[-1]
    inner: list[Span] = []
    for part in reversed(parts[1:-1]):
        if not _is_short(text, part) or _is_lower(text, part) != _is_lower(text, last):
            break
        inner.insert(0, part)
    first = parts[-len(inner) - 2]
    longest = max((len(text[start:end].split()) for start, end in inner), default=0)
    trimmed = [_cut(text, first, longest, at_end=True), *inner, _cut(text, last, longest)]
    if len({_is_lower(text, part) for part in trimmed}) > 1 or _OPENING.match(text, first[0]):
        return []
    is_cut = trimmed[0][0] > first[0]
    if not inner and is_cut and _GOES_ON.match(text, trimmed[-1][1], end):
        return []
    return trimmed


def _cut(text: str, part: Span, longest: int, at_end: bool = False) -> Span:
    """The first words of a part, or the last ones, that are a name or as many as `longest`."""
    words = [word.span() for word in _WORD.finditer(text, *part)]
    if at_end:
        words.reverse()
    name = list(takewhile(lambda word: _is_of_name(text, word), words))
    while name and _is_lower(text, name[-1]):
        name.pop()
    most = longest + 1 if longest else _LONGEST_PART
    kept = name if 0 < len(name) <= most else words[:longest]
    if not kept:
        return part[0], part[0]
    return _without_bracket(text, (min(kept)[0], max(kept)[1]))


def _is_of_name(text: str, word: Span) -> bool:
    return text[slice(*word)] in _PARTICLES or not _is_lower(text, word)


def _without_bracket(text: str, part: Span) -> Span:
    start, end = part
    bracket = _BRACKET.search(text, start, end)
    return start, bracket.start() if bracket else end


def _is_lower(text: str, part: Span) -> bool:
    """Whether a part begins with a word of small letters: not "x86" or "libX11"."""
    word = _FIRST_WORD.match(text, *part)
    return word is not None and word[1].isalpha() and word[1].islower()


def _is_short(text: str, part: Span) -> bool:
    return 0 < len(text[slice(*part)].split()) <= _LONGEST_PART


# Words


def _split(pattern: re.Pattern[str], text: str, within: Span) -> list[Span]:
    """The spans of a text between the matches of a pattern."""
    start, end = within
    found = [match.span() for match in pattern.finditer(text, start, end)]
    edges = [(start, start), *found, (end, end)]
    return [(left[1], right[0]) for left, right in pairwise(edges)]


def _names(clause: str, item: str) -> bool:
    """Whether a clause has an item, or a person's last name."""
    *others, last = item.split() or [""]
    return _says(clause, item) or bool(others and last.istitle() and _says(clause, last))


def _says(clause: str, words: str) -> bool:
    """Whether a clause has these words, one after another, in singular or plural."""
    said = _stems(words)
    return bool(said) and f" {' '.join(said)} " in f" {' '.join(_stems(clause))} "


@lru_cache(maxsize=256)
def _stems(text: str) -> tuple[str, ...]:
    """The normalised words of a text, without the ending of a plural.

    Cached: those of the question are compared with each cell.
    """
    words = normalize(text.replace("-", " ")).split()
    return tuple(_ENDING.sub("", word) for word in words)
