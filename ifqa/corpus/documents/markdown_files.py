"""Reads Markdown (CommonMark with tables, strikethrough and footnotes) without its markup.

Its elements are given to the page of an HTML document, because HTML may stand between them: a
<details> around a list, a <sup> in a sentence, a whole <table>.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ifqa.corpus.documents.decoding import TextRun, Unread, split_lines
from ifqa.corpus.documents.html_page import HIDDEN, Page
from ifqa.corpus.documents.html_tokens import Token, find_unclosed, tokenize
from ifqa.corpus.documents.marks import lowered, note_mark, raised

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token as Element

DEEPEST = 100  # levels of lists and quotations; deeper text is dropped
_NOTE = re.compile(r"\[\^([^\]\s^]{1,40})\](?!:)")
_NOTE_TEXT = re.compile(r"\[\^([^\]\s^]{1,40})\]:\s*")
# Pandoc's 10^24^ and H~2~O; a number or a letter, so that other carets and tildes are kept
_RAISED = re.compile(r"(?<=[\w)])\^([-+−]?\w{1,4})\^")
_LOWERED = re.compile(r"(?<=[^\W\d_])~(\d{1,3}|[a-z])~(?!~)")
# In front matter: a key of up to three words; an empty or indented line, an item, or a bracket
_KEY = re.compile(r"(?![-#])\S+(?: \S+){0,2}?\s*:(?:\s|$)")
_BELOW_KEY = re.compile(r"\s|$|-(?:\s|$)|[\[\]{}]")
#: The elements whose tags a page needs.
_TAGS = frozenset(
    "h1 h2 h3 h4 h5 h6 p ul ol li blockquote table thead tbody tr th td s a pre".split()
)


def read_markdown(text: str) -> Iterator[TextRun | Unread]:
    """The visible text of Markdown: without front matter, comments and the addresses of links."""
    page = _parse(text)
    yield from page.runs()
    if page.unread:
        yield Unread(HIDDEN, page.unread)


def markdown_runs(text: str) -> Iterator[TextRun]:
    """The runs of `read_markdown`."""
    yield from _parse(text).runs()


def _parse(text: str) -> Page:
    lines = split_lines(text)
    end = _end_of_front_matter(lines)
    lines[:end] = [""] * end
    elements = _parser().parse("\n".join(lines))
    page = _read_page(elements, Page())
    if page.is_open:  # the end tag of what is not read is missing
        unclosed = find_unclosed(token for _, token in _tokens(elements))
        page = _read_page(elements, Page(unclosed))
    return page


def _end_of_front_matter(lines: Sequence[str]) -> int:
    """The number of the first lines that are settings between two rules: "title: Mill"; 0 if none.

    Text below a rule is none: it begins with an empty line, or a line is no key with its value.
    """
    if lines[0].strip() != "---":
        return 0
    has_key = False
    for number, line in enumerate(lines[1:], start=2):
        if line.strip() in ("---", "..."):
            return number if has_key else 0
        if _KEY.match(line):
            has_key = True
        elif not (line.startswith("#") or (has_key and _BELOW_KEY.match(line))):
            return 0
    return 0


def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import reference

    def is_reference(state: "StateBlock", first: int, last: int, silent: bool) -> bool:
        """Whether lines define a link; "[^1]: Smith" does not, but is the text of a note."""
        start = state.bMarks[first] + state.tShift[first]
        return not state.src.startswith("[^", start) and reference(state, first, last, silent)

    parser = MarkdownIt("commonmark", {"maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    parser.block.ruler.at("reference", is_reference)
    return parser


def _read_page(elements: Sequence["Element"], page: Page) -> Page:
    for line, token in _tokens(elements):
        page.line = line
        page.add(token)
    return page


def _tokens(elements: Sequence["Element"]) -> Iterator[tuple[int, Token]]:
    """The elements as tags and texts of HTML, each with its line."""
    numbers = list[int]()  # the last number of each open list; -2 of one without numbers
    for element in elements:
        line = element.map[0] + 1 if element.map else 0
        if element.type == "inline":
            yield from _inline_tokens(element.children or [], line)
        elif element.type in ("fence", "code_block"):
            yield line, ("start", "pre", "")
            yield line + (element.type == "fence"), ("plain", element.content, "")
            yield line, ("end", "pre", "")
        elif element.type == "html_block":
            yield from _html_tokens(element.content, line)
        elif element.nesting and element.tag in _TAGS:
            attributes = ""
            if element.tag in ("ul", "ol"):
                _count_list(element, numbers)
            elif element.type == "list_item_open" and numbers[-1] >= -1:
                numbers[-1] = max(numbers[-1] + 1, int(element.info or 0))
                attributes = f'value="{numbers[-1]}"'
            kind = "start" if element.nesting > 0 else "end"
            yield line, (kind, element.tag, attributes)


def _count_list(element: "Element", numbers: list[int]) -> None:
    """Open or close a list: its numbers go up from its first, and leave out what its text does."""
    if element.nesting < 0:
        numbers.pop()
    elif element.tag == "ul":
        numbers.append(-2)
    else:
        numbers.append(int(element.attrs.get("start", 1)) - 1)


def _html_tokens(content: str, line: int) -> Iterator[tuple[int, Token]]:
    for token in tokenize(content):
        yield line, token
        line += sum(piece.count("\n") for piece in token)


def _inline_tokens(elements: Sequence["Element"], line: int) -> Iterator[tuple[int, Token]]:
    """The text of a paragraph, heading or cell; an image becomes its description."""
    begins = True  # whether the next text begins a line
    for element in elements:
        if element.type in ("softbreak", "hardbreak"):
            yield line, ("plain", "\n", "")
            line += 1
            begins = True
            continue
        if element.type == "image":
            yield from _inline_tokens(element.children or [], line)
        elif element.type == "html_inline":
            yield from _html_tokens(element.content, line)
        elif element.type == "text":
            note = _NOTE_TEXT.match(element.content) if begins else None
            if note:  # the text of a note begins a paragraph
                yield line, ("start", "p", "")
                yield line, ("plain", f"[{note[1]}]: ", "")
            text = element.content[note.end() :] if note else element.content
            yield line, ("plain", _write_marks(text), "")
        elif element.type == "code_inline":
            yield line, ("plain", element.content, "")
        elif element.tag in _TAGS:
            href = str(element.attrGet("href") or "").replace('"', "%22")
            kind = "start" if element.nesting > 0 else "end"
            yield line, (kind, element.tag, f'href="{href}"' if href else "")
        begins = begins and not element.content


def _write_marks(text: str) -> str:
    if "[^" in text:
        text = _NOTE.sub(lambda match: note_mark(f"[{match[1]}]"), text)
    if "^" in text:
        text = _RAISED.sub(lambda match: raised(match[1]), text)
    return _LOWERED.sub(lambda match: lowered(match[1]), text) if "~" in text else text
