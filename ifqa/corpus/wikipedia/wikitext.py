"""Turns wikitext into plain text, in two profiles.

"release": text like the passages of the IfQA release. The rules are inferred from the release's 3,242 public gold
passages, which look like output of WikiExtractor 3.0. A heading is a sentence of its own ("History."), kept only if
text follows it. Templates, tables, references, images and list lines (`*`, `#`, `;`, `:`) are dropped. Italics become
double quotes. A formula becomes `formula_1`. Gaps of dropped templates stay as in the release ("(; born",
"more than ."). Where the release loses or garbles text that a reader of the page sees, the text is kept: entities and
tags are resolved, and the words of links with a colon, of <small> and of <code> stay.

"ifqa", the default: "release" plus indented prose, such as quotations, minus the brackets and separators
around dropped templates, and a raised number is kept apart from the number before it (10^6). The blank before a
mark stays where it shows that a value is missing.

Every step takes time linear in the page's length for any input: patterns use possessive quantifiers (`*+`) and stop at
the mark they start with, and deep nesting is resolved with a stack. Marks without a partner are deleted. No step
raises.
"""

import html
import re
from collections.abc import Iterator
from typing import Literal

from ifqa.corpus.wikipedia.cleanup import GAP, in_english, resolve_opaque, without_gaps, without_lists

Profile = Literal["ifqa", "release"]

VERSION = 2  # raised when a page becomes other text, so that passages of an earlier version are not used again

# Comments and plain references: most of a page's markup. Taken in order, as neither starts inside the other.
_ASIDE = re.compile(r"<!--.*?(?:-->|\Z)|<ref\b[^<>]*+(?:(?<=/)>|>[^<]*+</ref\s*+>)", re.S)
# "<(?!<)": a look-ahead that skips the long alternatives on a page full of "<".
_HTML_LIST = re.compile(r"<(?!<)(?:((?:table|ul|ol|dl)\b[^<>]*+>)|/(?:table|ul|ol|dl)\s*+>)", re.I)
_RAISED = re.compile(r"<sup>(?:(?<=[0-9]<sup>)|(?<=[0-9]</sub><sup>))(?=(?:[-+−–]|&minus;|&ndash;)?[0-9]|'')")
_FRACTION = re.compile(r"<sup>(?<=[0-9]<sup>)(?=[0-9]++</sup>(?:/|⁄|&frasl;)<sub>)")  # of a mixed number: 1 1/2
_BREAK = re.compile(r"<(?!<)/?(?:br|hr|p|div|center|blockquote|poem|caption|t[rdh]|li|d[dt]|h[1-6])\b[^<>]*+>", re.I)
_TAG = re.compile(
    r"<(?!<)/?(?:abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|indicator|ins|kbd|mark|noinclude|onlyinclude|q|rb|rp|rt"
    r"|rtc|ruby|s|samp|small|span|strike|strong|sub|sup|tbody|tfoot|thead|time|tt|u|var|wbr"
    r"|chem|ce|dl|gallery|hiero|imagemap|includeonly|math|nowiki|ol|pre|references|score|section|source|syntaxhighlight"
    r"|table|templatestyles|timeline|ul)\b[^<>]*+>|</?ref\b[^<>\n]*+>?",  # these have lost their partner
    re.I,
)
_TEMPLATE = re.compile(r"\{\{\{[^{}]*+\}\}\}|\{\{[^{}]*+\}\}")
_BRACES = re.compile(r"(\{\{)|\}\}")
_LABEL = r"[^\[\]]*+(?:\[[^\[\]]*+\][^\[\]]*+)*+"

_UNSEEN = r"\s*+(?:(?i:file|image|category)\s*+:|[a-z]{2,3}(?:-[a-z]+)*+:)"  # files, categories, other languages
_LINK = re.compile(rf"\[\[(?!{_UNSEEN}):?+(?:[^\[\]|]*+\|)?+({_LABEL})\]\]")  # [[target|label with [brackets]]]
_NESTED_LINK = re.compile(rf"(\[\[{_UNSEEN})|(\[\[)|\]\]")  # the ends of links nested in files
_UNSEEN_LINK = re.compile(rf"\[\[{_LABEL}\]\]")
_EXTERNAL_LINK = re.compile(
    r"\[(?:(?:https?:|ftps?:|ircs?:|git:)?//|mailto:|news:)[^\s\[\]<>]*+[^\S\n]*+"
    r"([^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+)*+)\]"
)
_QUOTES = re.compile("''++")
_BOLD_ITALIC = re.compile(r"'''''([^']*+(?:'(?!')[^']*+)*+)'''''")
_QUOTE_IN_ITALIC = re.compile(r"''\"([^'\"\n]*+)\"''")
_ITALIC_IN_QUOTE = re.compile(r"\"''([^'\"\n]*+)''\"")
_STRAY = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}")
_BLANKS = re.compile("  +")
_MAGIC_WORD = re.compile(r"__[A-Z]+__")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_WORD = re.compile(r"\w")


def to_text(wikitext: str, profile: Profile = "ifqa") -> str:
    """The paragraphs and headings of a page, one a line, in order. Never raises."""
    text, release = wikitext, profile == "release"
    if "<" in text:
        if "<nowiki" not in text:  # it may contain the marks of comments and references
            text = _ASIDE.sub("", text)
        text = resolve_opaque(text)
    if "{{" in text:
        text = without_gaps(_drop_templates(text, "" if release else GAP))
    if "<" in text:
        text = _drop(text, _HTML_LIST)
        if not release:  # 10<sup>2</sup> is not 102
            text = _RAISED.sub("^", _FRACTION.sub(" ", text))
        text = _TAG.sub("", _BREAK.sub(" ", text))
    if "{|" in text:
        text = "\n".join(_outside_tables(text))
    text = without_lists("\n" + text, prose=not release)
    text = _resolve_links(text)
    text = _resolve_quotes(text)
    if any(char in text for char in "{}[]"):
        text = _STRAY.sub("", text)
    if "__" in text:
        text = _MAGIC_WORD.sub("", text)
    text = text.replace("&nbsp;", " ").replace("\u00a0", " ")
    text = "\n".join(_paragraphs(_BLANKS.sub(" ", text)))
    if "&" in text:
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text).replace("\u00a0", " ")
    return text


def _drop_templates(text: str, gap: str) -> str:
    for _ in range(4):  # innermost first; this resolves nearly all templates without a stack
        text, count = _TEMPLATE.subn(gap, text)
        if not count or "{{" not in text:
            break
    return _drop(text, _BRACES) if "{{" in text else text


def _drop(text: str, mark: re.Pattern[str]) -> str:
    """Remove the stretches from an opening mark (group 1 of `mark`) to the closing mark of the same depth.

    Group 2, if `mark` has it, is an opening mark of stretches to keep. Marks without a partner stay.
    """
    opened: list[tuple[int, bool]] = []
    stretches: list[tuple[int, int]] = []
    for match in mark.finditer(text):
        if match.lastindex:
            opened.append((match.start(), match.lastindex == 1))
        elif opened:
            start, dropped = opened.pop()
            if dropped:
                while stretches and stretches[-1][0] > start:  # this stretch contains them
                    stretches.pop()
                stretches.append((start, match.end()))
    pieces, position = [], 0
    for start, end in stretches:
        pieces.append(text[position:start])
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _outside_tables(text: str) -> Iterator[str]:
    """The lines outside tables; a table that is never closed ends at the next heading."""
    depth = 0
    for line in text.split("\n"):
        start = line.lstrip(" \t:")
        if start.startswith("{|"):
            depth += 1
        elif depth and start.startswith("|}"):
            depth -= 1
            line = start[2:]
        elif depth and start.startswith("=="):
            depth = 0
        if not depth:
            yield line


def _resolve_links(text: str) -> str:
    # split() with one group alternates the text between matches and the labels: a replacement at C speed
    if "[[" in text:
        text = in_english(text)
        text = "".join(_LINK.split(text))
        text = _UNSEEN_LINK.sub("", text)
        if "[[" in text:  # files in the captions of files
            text = _drop(text, _NESTED_LINK)
    return "".join(_EXTERNAL_LINK.split(text))


def _resolve_quotes(text: str) -> str:
    """Bold is dropped, italics become one pair of double quotes, bold italics are dropped."""
    if "''" not in text:
        return text
    if "'''" in text:
        text = _with_possessives(text)
    text = "".join(_BOLD_ITALIC.split(text)).replace("'''''", "''").replace("'''", "")
    text = _QUOTE_IN_ITALIC.sub(r"''\1''", text)
    return _ITALIC_IN_QUOTE.sub(r"''\1''", text).replace("''", '"')


def _with_possessives(text: str) -> str:
    """If neither bold nor italics end in a line, a ''' in it is an apostrophe and italics: ''Emma'''s, L'''Emma''.

    It is the first ''' that ends italics at a word; else, as in MediaWiki, the first after a single letter; else the
    first after a word.
    """
    return "\n".join(_with_possessive(line) if "'''" in line else line for line in text.split("\n"))


def _with_possessive(line: str) -> str:
    runs = [match.span() for match in _QUOTES.finditer(line)]
    italic = [end - start == 2 or end - start > 4 for start, end in runs]  # two, or five and more
    bold = [end - start > 2 for start, end in runs]
    if not sum(italic) % 2 or not sum(bold) % 2 or any(end - start in (4, 6) for start, end in runs):
        return line  # four or six are left around a dropped template
    words, letters, possessives = [], [], []
    opened = False
    for number, (_, end) in enumerate(runs):
        at = end - 3
        if not italic[number] and (line[at - 1] != " " if at else sum(bold) == 1):
            words.append((at, opened))
            if at > 1 and line[at - 2] == " ":
                letters.append((at, opened))
            if opened and not bold[number - 1]:
                possessives.append((at, opened))
        opened ^= italic[number]
    for at, inside in (possessives or letters or words)[:1]:
        return line[:at] + ("''&#39;" if inside else "&#39;''") + line[at + 3 :]
    return line


def _paragraphs(text: str) -> Iterator[str]:
    """Lines that contain a word; the first line of a section comes after its headings."""
    headings: list[tuple[int, str]] = []
    for line in text.split("\n"):
        line = line.strip()
        if not line or line[0] == "|":  # a stray row of a table
            continue
        if line[0] == line[-1] == "=":
            title = line.strip("=")
            level = (len(line) - len(title)) // 2
            headings = [heading for heading in headings if heading[0] < level]
            title = title.strip()
            if title:
                headings.append((level, title if title[-1] in ".?!" else f"{title}."))
        elif _WORD.search(line):
            for _, title in headings:
                yield title
            headings.clear()
            yield line
