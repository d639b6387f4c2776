"""Finds the lists in a document's passage that a question asks for as a whole.

"Who were the officers in 2022?" asks for all of them, and a span is only one. The passages of
documents have a line for each row of a table and for each item of a list, so three kinds of lists
can be found in their text:

- the cells of a column, in the rows that the question speaks of
- the items of a list, one a line
- the parts of an enumeration within a line: "Present: Ann Lee, Bo Ek and Cy Orr."

An item that the supposition names is left out: "If Ann Lee had been absent, who would have been
present?"
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise, takewhile

from ifqa.clauses import AUXILIARY, split_question
from ifqa.scoring.measures.exact_match import normalize

#: Start and end, exclusive, in characters of the passage.
Span = tuple[int, int]
#: Name of a column -> its cell.
Row = Mapping[str, Span]

_LONGEST_LINE = 12  # words of an item that is a line
_LONGEST_PART = 6  # words of a part of an enumeration
_LONGEST_NAME = 6  # words of a column's name, or before the colon of an enumeration

_PLURAL = (
    r"(?!(?:does|was|is|has|as|this|its|us|his)\b)"
    r"(?:people|men|women|children|[^\W\d_][\w-]*(?<![\Wsui])s)\b(?!['’])"
)
_PLACE = r"(?: (?:of|in|on|at|for|from) (?:the )?[\w-]+)?"
_ASKS_FOR_SEVERAL = re.compile(
    r"\bwho (?:were|are)\b"
    r"|\bwho (?:was|is|would (?:have been|be)) present\b"
    # What people do together
    r"|\bwho (?:(?:would|had|has|have|been|be|first|was) ){0,3}(?:attend|help|wrote|written|author"
    r"|found|develop|create|design|invent|compose|credited|named|maintain|contribute|sign)"
    r"|\bwho would (?:have been|be|remain|be left as) (?:the|its|their) (?:[\w-]+ ){0,2}?"
    rf"{_PLURAL}"
    rf"|\b(?:which|what) (?:(?!of\b)[\w.-]+ ){{0,2}}?{_PLURAL}{_PLACE} (?!(?:is|was)\b){AUXILIARY}"
    rf"|\bwhich {_PLURAL}"
    rf"|\b(?:which|what) (?:were|are) (?:the|its|their) (?:[\w-]+ ){{0,2}}?{_PLURAL}"
    r"|\b(?:name|list) (?:all|every|the)\b",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)
_COUNTS = {word: count for count, word in enumerate("two three four five six seven".split(), 2)}
_COUNT = re.compile(rf"\b(?:which|what|the) ({'|'.join(_COUNTS)})\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|never|neither|without)\b|n['’]t\b", re.IGNORECASE)
_BESIDES = re.compile(r"\b(?:besides|except|other than|apart from)\b.*", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_LINE = re.compile(r"[^\n]+")
_CELL = re.compile(r"(?P<name>[^:;\n]{1,80}): (?P<value>[^;\n]*[^;\n.])(?:; |\.?$)", re.MULTILINE)
_MARK = re.compile(r"(?:[(\[]?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)\]]|[-*•–])\s+")
_TERM = re.compile(rf"(?:{_MARK.pattern})?(?P<term>[^:;\n]{{1,60}}): ")
_LABEL = re.compile(r"(?:^|(?<=[.;] ))(?P<name>[^.:;,\n]{1,60}): ", re.MULTILINE)
#: The end of what stands after a label; no initial, as in "Present: J. Orr, A. Lee."
_LABELLED_END = re.compile(r"(?<!\b[A-Z])[.!?](?=\s|$)|;? ?$|; (?=[^;\n]*: )", re.MULTILINE)
#: The end of what an enumeration in a sentence may reach to.
_BREAK = re.compile(r"(?<!\b[A-Z])[.!?](?=\s|$)|[:;\n]")
#: Between two parts of an enumeration, outside brackets.
_PARTING = re.compile(r",? (?:and|or) |[,;] (?![^()\n]*\))")
_LAST = re.compile(r",? (?:and|or) ")
_BRACKET = re.compile(r" *\([^()\n]*\)\W*$")
_WORD = re.compile(r"\S+")
_PLURAL_END = re.compile(r"(?<=..)(?:(?<=[sxzh])es|s)$")
_JOINING = re.compile(r"(?:\([^()\n]*\)|\W|\b(?:and|or)\b)*+", re.IGNORECASE)


def asks_for_several(question: str) -> bool:
    """Whether a question asks for all items of a list."""
    asked = split_question(question).question
    return bool(_ASKS_FOR_SEVERAL.search(asked)) and not _HOW_MANY.search(asked)


def find_whole_lists(question: str, text: str) -> list[tuple[Span, ...]]:
    """The lists in a passage's text that a question may ask for, each as the spans of its items.

    Each has two different items or more, and as many as the question says: "which two".
    """
    clauses = split_question(question)
    if not asks_for_several(question) or _NEGATED.search(clauses.question):
        return []
    besides = _BESIDES.search(clauses.question)
    left_out = f"{clauses.presupposition} {besides.group() if besides else ''}"
    count = _COUNT.search(clauses.question)
    lists = []
    for spans in (
        *_columns(clauses.question, question, text),
        *_lines(text),
        *_terms(text),
        *_labelled(text),
        *_joined(text),
    ):
        items: dict[str, Span] = {}
        for start, end in spans:
            item = text[start:end]
            if normalize(item) and not _says(left_out, item):
                items.setdefault(normalize(item), (start, end))
        if len(items) > 1 and (not count or len(items) == _COUNTS[count[1].lower()]):
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


def _columns(asked: str, question: str, text: str) -> Iterator[list[Span]]:
    """The columns of each table, in the rows that the question speaks of."""
    rows = [_row(text, line) for line in _line_spans(text)]
    for is_table, group in groupby(rows, key=bool):
        table = list(group)
        if is_table:
            for column in dict.fromkeys(name for row in table for name in row):
                yield _cells(asked, question, text, [row for row in table if column in row], column)


def _cells(asked: str, question: str, text: str, rows: Sequence[Row], column: str) -> list[Span]:
    """The cells of a column, in the rows that have the other cells that the question says, or first
    its main clause, `asked`.

    If it says none of them, the question must name the column.
    """
    said = _said_cells(asked, text, rows, column) or _said_cells(question, text, rows, column)
    if not said and set(_stems(column)).isdisjoint(_stems(question)):
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


def _lines(text: str) -> Iterator[list[Span]]:
    """The short lines below one another; not the lines of a form, most of which have a colon."""
    for is_item, group in groupby(_line_spans(text), key=lambda line: _is_item(text, line)):
        lines = list(group)
        labelled = sum(": " in text[start:end] for start, end in lines)
        if is_item and 2 * labelled < len(lines):
            yield [_without_mark(text, line) for line in lines]


def _is_item(text: str, line: Span) -> bool:
    """Whether a line is an item of a list.

    The first line of a passage is none without a mark: it may announce the list.
    """
    start, end = line
    if not start and not _MARK.match(text):
        return False
    return len(text[start:end].split()) <= _LONGEST_LINE and not _row(text, line)


def _without_mark(text: str, line: Span) -> Span:
    start, end = line
    mark = _MARK.match(text, start, end)
    return mark.end() if mark else start, start + len(text[start:end].rstrip(" .;,"))


def _terms(text: str) -> Iterator[list[Span]]:
    """What lines below one another explain, each before its colon."""
    terms = [None if _row(text, line) else _TERM.match(text, *line) for line in _line_spans(text)]
    for is_term, group in groupby(terms, key=bool):
        if is_term:
            yield [term.span("term") for term in group if term]


def _labelled(text: str) -> Iterator[list[Span]]:
    """The parts of what stands after a label and a colon.

    They are short, and all or none of them begin with a small letter. Two that do may be the halves
    of a sentence: "Texts: by Ann Lee and also sent to Bo Ek".
    """
    for label in _LABEL.finditer(text):
        end = _LABELLED_END.search(text, label.end())
        if not end or len(label["name"].split()) > _LONGEST_NAME:
            continue
        parts = _split(_PARTING, text, (label.end(), end.start()))
        parts = [_without_bracket(text, part) for part in parts]
        small = sum(_is_lower(text, part) for part in parts)
        is_alike = small == 0 or small == len(parts) > 2
        if is_alike and all(_is_short(text, part) for part in parts):
            yield parts


def _joined(text: str) -> Iterator[list[Span]]:
    """The parts of enumerations in a sentence: "written by Ann Lee, Bo Ek and Cy Orr in May"."""
    for sentence in _split(_BREAK, text, (0, len(text))):
        parts = _split(_PARTING, text, sentence)
        first = 0
        for number, (left, right) in enumerate(pairwise(parts)):
            if _LAST.fullmatch(text, left[1], right[0]):
                yield _trimmed(text, parts[first : number + 2])
                first = number + 1


def _trimmed(text: str, parts: Sequence[Span]) -> list[Span]:
    """The parts of an enumeration without the words before and after it.

    The first and the last part are cut where their capital letters and digits end, or after as
    many words as a part between them has. What stands before a long part or one in other letters
    is left out: "A version, credited to Ann Lee, Bo Ek and Cy Orr". Parts of which only some begin
    with a small letter are none: "Ann Lee, for starting it and finding members".
    """
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
    return trimmed if len({_is_lower(text, part) for part in trimmed}) == 1 else []


def _cut(text: str, part: Span, longest: int, at_end: bool = False) -> Span:
    """The first words of a part, or the last ones, that are a name or as many as `longest`."""
    words = [word.span() for word in _WORD.finditer(text, *part)]
    if at_end:
        words.reverse()
    name = list(takewhile(lambda word: not _is_lower(text, word), words))
    most = longest + 1 if longest else _LONGEST_PART
    kept = name if 0 < len(name) <= most else words[:longest]
    if not kept:
        return part[0], part[0]
    return min(kept)[0], max(kept)[1]


def _without_bracket(text: str, part: Span) -> Span:
    start, end = part
    bracket = _BRACKET.search(text, start, end)
    return start, bracket.start() if bracket else end


def _is_lower(text: str, part: Span) -> bool:
    """Whether a part begins with a word of small letters: not "x86" or "libX11"."""
    word = _WORD.match(text, *part)
    return word is not None and word.group().isalpha() and word.group().islower()


def _is_short(text: str, part: Span) -> bool:
    return 0 < len(text[slice(*part)].split()) <= _LONGEST_PART


def _line_spans(text: str) -> list[Span]:
    return [line.span() for line in _LINE.finditer(text)]


def _split(pattern: re.Pattern[str], text: str, within: Span) -> list[Span]:
    """The spans of a text between the matches of a pattern."""
    start, end = within
    found = [match.span() for match in pattern.finditer(text, start, end)]
    edges = [(start, start), *found, (end, end)]
    return [(left[1], right[0]) for left, right in pairwise(edges)]


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
    return tuple(_PLURAL_END.sub("", word) for word in words)
