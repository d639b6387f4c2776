"""Turns wikitext into plain text, in two profiles.

"release" gives text like the passages of the IfQA release. The rules are inferred from its 3,242
public gold passages, which look like output of WikiExtractor 3.0. A heading becomes a sentence
("History."), kept only if text follows it. Templates, tables, references, images and list lines
(`*`, `#`, `;`, `:`) are dropped. Italics become double quotes, a formula becomes `formula_1`. Gaps
of dropped templates stay ("(; born", "more than ."). Where the release loses or garbles visible
text, we keep it: entities and tags are resolved, and the words of links with a colon, <small> and
<code> stay.

"ifqa", the default, also keeps indented prose, such as quotations, removes the brackets and
separators around dropped templates, and writes exponents as 10^6.

Every step takes linear time for any input, and none raises: patterns use possessive quantifiers
(`*+`) and stop at the mark they start with, and deep nesting is resolved with a stack. Marks
without a partner are deleted.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Literal

Profile = Literal["ifqa", "release"]

# Raise it when a page yields other text, so that passages of an earlier version are not reused
VERSION = 2

# Comments and plain references: most of a page's markup. One pattern for both, as neither starts
# inside the other.
_ASIDE = re.compile(r"<!--.*?(?:-->|\Z)|<ref\b[^<>]*+(?:(?<=/)>|>[^<]*+</ref\s*+>)", re.S)
# "<(?!<)": a look-ahead that skips the long alternatives on a page full of "<".
_HTML_LIST = re.compile(r"<(?!<)(?:((?:table|ul|ol|dl)\b[^<>]*+>)|/(?:table|ul|ol|dl)\s*+>)", re.I)
_RAISED = re.compile(
    r"<sup>(?:(?<=[0-9]<sup>)|(?<=[0-9]</sub><sup>))(?=(?:[-+−–]|&minus;|&ndash;)?[0-9]|'')"
)
# Of a mixed number: 1 1/2
_FRACTION = re.compile(r"<sup>(?<=[0-9]<sup>)(?=[0-9]++</sup>(?:/|⁄|&frasl;)<sub>)")
_BREAK = re.compile(
    r"<(?!<)/?(?:br|hr|p|div|center|blockquote|poem|caption|t[rdh]|li|d[dt]|h[1-6])\b[^<>]*+>", re.I
)
_TAG = re.compile(
    r"<(?!<)/?(?:abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|indicator|ins|kbd|mark"
    r"|noinclude|onlyinclude|q|rb|rp|rt"
    r"|rtc|ruby|s|samp|small|span|strike|strong|sub|sup|tbody|tfoot|thead|time|tt|u|var|wbr"
    r"|chem|ce|dl|gallery|hiero|imagemap|includeonly|math|nowiki|ol|pre|references|score"
    r"|section|source|syntaxhighlight"
    r"|table|templatestyles|timeline|ul)\b[^<>]*+>|</?ref\b[^<>\n]*+>?",  # tags without a partner
    re.I,
)
_TEMPLATE = re.compile(r"\{\{\{[^{}]*+\}\}\}|\{\{[^{}]*+\}\}")
_BRACES = re.compile(r"(\{\{)|\}\}")
_LABEL = r"[^\[\]]*+(?:\[[^\[\]]*+\][^\[\]]*+)*+"

# files, categories, other languages
_UNSEEN = r"\s*+(?:(?i:file|image|category)\s*+:|[a-z]{2,3}(?:-[a-z]+)*+:)"
# [[target|label with [brackets]]]
_LINK = re.compile(rf"\[\[(?!{_UNSEEN}):?+(?:[^\[\]|]*+\|)?+({_LABEL})\]\]")
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
GAP = "\x03"  # replaces a dropped template; XML forbids this character, so no dump contains it


def to_text(wikitext: str, profile: Profile = "ifqa") -> str:
    """The paragraphs and headings of a page, one per line, in order. Never raises."""
    text = wikitext
    release = profile == "release"
    if "<" in text:
        if "<nowiki" not in text:  # its content may look like comments and references
            text = _ASIDE.sub("", text)
        text = resolve_opaque_tags(text)
    if "{{" in text:
        text = remove_gaps(_drop_templates(text, "" if release else GAP))
    if "<" in text:
        text = _drop_nested(text, _HTML_LIST)
        if not release:  # 10<sup>2</sup> is not 102
            text = _RAISED.sub("^", _FRACTION.sub(" ", text))
        text = _TAG.sub("", _BREAK.sub(" ", text))
    if "{|" in text:
        text = "\n".join(_drop_tables(text))
    text = remove_lists("\n" + text, prose=not release)
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
    return _drop_nested(text, _BRACES) if "{{" in text else text


def _drop_nested(text: str, mark: re.Pattern[str]) -> str:
    """Remove the spans from an opening mark (group 1) to its closing mark.

    Group 2 opens a span to keep.
    """
    opened = list[tuple[int, bool]]()
    spans = list[tuple[int, int]]()
    for match in mark.finditer(text):
        if match.lastindex:
            opened.append((match.start(), match.lastindex == 1))
        elif opened:
            start, dropped = opened.pop()
            if dropped:
                while spans and spans[-1][0] > start:  # this span contains them
                    spans.pop()
                spans.append((start, match.end()))
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    return "".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _drop_tables(text: str) -> Iterator[str]:
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
    # split() with one group alternates the text between matches and the labels: faster than sub()
    if "[[" in text:
        text = translate_prefixes(text)
        text = "".join(_LINK.split(text))
        text = _UNSEEN_LINK.sub("", text)
        if "[[" in text:  # files in the captions of files
            text = _drop_nested(text, _NESTED_LINK)
    return "".join(_EXTERNAL_LINK.split(text))


def _resolve_quotes(text: str) -> str:
    """Drop the marks of bold and bold italics; those of italics become double quotes."""
    if "''" not in text:
        return text
    if "'''" in text:
        text = _mark_possessives(text)
    text = "".join(_BOLD_ITALIC.split(text)).replace("'''''", "''").replace("'''", "")
    text = _QUOTE_IN_ITALIC.sub(r"''\1''", text)
    return _ITALIC_IN_QUOTE.sub(r"''\1''", text).replace("''", '"')


def _mark_possessives(text: str) -> str:
    """If neither bold nor italics are closed in a line, read one ''' as an apostrophe and italics:
    ''Emma'''s, L'''Emma''.
    """
    return "\n".join(_mark_possessive(line) if "'''" in line else line for line in text.split("\n"))


def _mark_possessive(line: str) -> str:
    """Choose the first ''' that ends italics at a word.

    Else, like MediaWiki, the first after one letter; else after a word.
    """
    runs = [match.span() for match in _QUOTES.finditer(line)]
    italic = [end - start == 2 or end - start > 4 for start, end in runs]  # two, or five or more
    bold = [end - start > 2 for start, end in runs]
    if (
        not sum(italic) % 2
        or not sum(bold) % 2
        or any(end - start in (4, 6) for start, end in runs)
    ):
        return line  # four or six: quotes around a dropped template
    words = []
    letters = []
    possessives = []
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
    """Lines that contain a word; headings without text below them are dropped."""
    headings: list[tuple[int, str]] = []
    for line in text.split("\n"):
        line = line.strip()
        if not line or line[0] == "|":  # a stray row of a table
            continue
        if line[0] == line[-1] == "=":
            title = line.strip("=")
            level = (len(line) - len(title)) // 2
            headings = [heading for heading in headings if heading[0] < level]
            if title := title.strip():
                headings.append((level, title if title[-1] in ".?!" else f"{title}."))
        elif _WORD.search(line):
            yield from (title for _, title in headings)
            headings.clear()
            yield line


# Tags whose content is not wikitext
_OPAQUE = re.compile(
    r"<!--|<(nowiki|math|chem|ce|pre|references|ref|gallery|timeline|score|imagemap"
    r"|syntaxhighlight|source|hiero|graph"
    r"|mapframe|maplink|templatedata|includeonly|inputbox|categorytree|section"
    r"|templatestyles)\b[^<>]*+>",
    re.I,
)
_FORMULAS = {"math", "chem", "ce"}
# Markup characters as entities, which are decoded after all markup is removed
_LITERAL = {ord(char): f"&#{ord(char)};" for char in "<>[]{}|'=*#:;!_"}


def resolve_opaque_tags(text: str) -> str:
    """Remove the content of tags without prose, number the formulas, and protect <nowiki> from
    later steps.
    """
    pieces = list[str]()
    formulas = dict[str, int]()
    # Tags without an end from here on: searched once, to keep the time linear
    unclosed: set[str] = set()
    position = count = 0
    while (opening := _OPAQUE.search(text, position)) is not None:
        pieces.append(text[position : opening.start()])
        position = opening.end()
        name = (opening[1] or "").lower()
        if not name:  # a comment; without an end it hides the rest of the page, as in MediaWiki
            end = text.find("-->", position)
            position = end + 3 if end >= 0 else len(text)
            continue
        if text[position - 2] == "/" or name in unclosed:
            continue
        closing = re.compile(rf"</{name}\s*+>", re.I).search(text, position)
        if closing is None:
            unclosed.add(name)
            continue
        content = text[position : closing.start()]
        position = closing.end()
        if name == "nowiki":
            pieces.append(content.translate(_LITERAL))
        elif name in _FORMULAS:
            count += 1  # counts all formulas; a repeated formula keeps its first number
            pieces.append(f"formula_{formulas.setdefault(content, count)}")
    pieces.append(text[position:])
    return "".join(pieces)


# Prefixes of links, from MediaWiki's languages/messages/Messages*.php: NS_FILE and NS_CATEGORY of
# $namespaceNames, and their $namespaceAliases; the English names work in every language
_FILE = """image|datei|bild|fichier|archivo|imagen|immagine|ficheiro|arquivo|imagem
|bestand|afbeelding|plik|grafika|fil|tiedosto|kuva|billede|bilde|soubor|súbor|obrázok
|fájl|kép|fișier|imagine|fitxer|imatge|dosya|resim|berkas|gambar|tập tin|hình|slika
|datoteka|файл|изображение|зображення|картинка|датотека|слика|αρχείο|εικόνα|ملف|صورة
|پرونده|تصویر|קובץ|תמונה|चित्र|ไฟล์|ภาพ|ファイル|画像|파일|그림|文件|档案|檔案|图像|圖像"""
_CATEGORY = """kategorie|catégorie|categoría|categoria|categorie|kategoria|kategori
|luokka|kategória|kategorija|thể loại|категория|категорія|категорија|κατηγορία|تصنيف|رده
|קטגוריה|श्रेणी|หมวดหมู่|カテゴリ|분류|分类|分類"""
_KNOWN = dict.fromkeys(_FILE.replace("\n", "").split("|"), "File")
_KNOWN |= dict.fromkeys(_CATEGORY.replace("\n", "").split("|"), "Category")
_ENGLISH = {"6": "File", "14": "Category"}  # by namespace number
_PREFIX = re.compile(r"\[\[\s*+([^\[\]|:\n]{2,30}+):")


def translate_prefixes(text: str, names: Mapping[str, str] = _KNOWN) -> str:
    """Translate file and category prefixes of links to English.

    `names` maps a prefix to "File" or "Category".
    """

    def translate(link: re.Match[str]) -> str:
        english = names.get(_normalize_prefix(link[1]))
        return f"[[{english}:" if english else link[0]

    return _PREFIX.sub(translate, text)


def find_local_prefixes(siteinfo: Mapping[str, str]) -> dict[str, str]:
    """English name of each prefix in a dump's siteinfo (name -> namespace number) that
    `translate_prefixes` does not know.
    """
    known = _KNOWN | {english.lower(): english for english in _ENGLISH.values()}
    prefixes = {
        _normalize_prefix(name): _ENGLISH[key] for name, key in siteinfo.items() if key in _ENGLISH
    }
    return {name: english for name, english in prefixes.items() if known.get(name) != english}


def _normalize_prefix(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()


# Gaps of dropped templates
_LINK_OF_GAP = re.compile(rf"\[\[[^\[\]|{GAP}]*+\|{GAP}\]\]")
# Most gaps can simply be removed: those alone on a line, or between words
_ALONE = re.compile(
    rf"{GAP}(?:(?:(?<![^\n]{GAP})|(?<=[\w.] {GAP}))(?=[\w\n]|\Z)|(?<=[\w.]{GAP})(?= ?[\w\n]|\Z))"
)
# "gap, gap and gap" with no word before it; group 1 matches if no word follows
_ENUMERATION = re.compile(
    rf"{GAP}(?<![^\s(]{GAP})(?: *+[,;]?+ *+(?:(?:and|or|&) *+)?+{GAP})++( *+(?=[.,;:)\n]|\Z))?+"
)
# A sign before its amount, not after it (5€)
_CURRENCY = re.compile(
    r"(?<![0-9A-Z])(?<![0-9] )(?:(?:US|CA|AU|NZ|HK|NT|[ACRS])?[$£€¥₹]|&(?:pound|euro|yen);)\Z"
)
_CURRENCY_ENDS = set("$£€¥₹;")


def remove_gaps(text: str) -> str:
    """Remove the gaps, and the brackets, spaces and separators around dropped templates.

    A space between a word and a mark after a gap stays ("a depth of ."): it shows that a value is
    missing.
    """
    if GAP not in text:
        return text
    text = _ALONE.sub("", text)
    if f"|{GAP}]]" in text:
        text = _LINK_OF_GAP.sub(GAP, text)
    text = _ENUMERATION.sub(lambda match: match[0] if match[1] is None else GAP + match[1], text)
    first, *rest = text.split(GAP)
    pieces = [first]
    for right in rest:
        left = pieces[-1]
        if left[-1:] in _CURRENCY_ENDS and not right[:1].isdigit():
            left = _CURRENCY.sub("", left)  # its amount was in the dropped template
        for quotes in ("'''''", "'''", "''"):
            if left.endswith(quotes) and right.startswith(quotes):  # they enclosed the gap alone
                left = left.removesuffix(quotes)
                right = right.removeprefix(quotes)
        pieces[-1], right = _join_at_gap(left, right)
        if right:  # the end is a separate piece, so that the next step searches a short text
            pieces += right[:-32], right[-32:]
    return "".join(pieces)


def _join_at_gap(left: str, right: str) -> tuple[str, str]:
    """The text before and after a gap, without the marks of the dropped template."""
    before = left.rstrip(" ")
    after = right.lstrip(" ")
    if before.endswith("("):  # "(gap; born" and "(gap)"
        # Nothing but a dash up to the next gap
        after = after.lstrip(" ,;:") if after.strip(" –—") else ""
        return (before[:-1].rstrip(" "), after[1:]) if after.startswith(")") else (before, after)
    if after.startswith(")"):
        return before.rstrip(" ,;:"), after
    if not after.startswith((",", ";", ".", ":")) or not before[-1:].strip():
        return left, right
    if before[-1] + after[0] == ":;":  # a label without its value
        return before[:-1], after
    if after[0] == ".":
        before = before.rstrip(" ,;:") or before
    pair = before[-1] + after[0]
    doubled = (
        pair[0] in "*#"
        or pair[0] == pair[1]
        or pair in (",;", ";,", ":,")
        or (pair == ".," and before != left)
    )
    if doubled or len(before) < len(left.rstrip(" ")):
        return before, after[doubled:]
    return left, right


# Writers indent quotations, enumerations and definitions with `:` and label them with `;`, but also
# notes ("See also"), formulas, trees of headings and continued list items, which are not prose.
_MARKS = "*#:;"
_LIST_LINE = re.compile(r"\n[*#:;][^\n]*+")
_NOTE = re.compile(
    r"['\"(]*+(?:see (?:also\b|main|\[\[|the (?:main )?article)"
    r"|(?:main|full|detailed) (?:articles?|page)\b"
    r"|further (?:information|reading)\b|for [^.]{1,200}?,? see\b"
    r"|this (?:article|section|list|page)\b|not to be confused\b|[^.]{1,100}? redirects? here\b)",
    re.I,
)
_ITALIC = re.compile(r"''(?!').*''[.)]?")
_SIGNED = re.compile(r"\[\[\s*user(?:[ _]talk)?\s*:|\(UTC\)\s*\Z", re.I)
_BOLD = re.compile(r"'''[^']++'''")
_PROSE_WORD = re.compile(r"(?<![\w(&])[^\W\d_]{2,}+(?![\w(])")  # no CO2, HA(aq), &nbsp;
_EQUATION = re.compile(r"[=→⇌↔]|formula_[0-9]")
# Of an enumeration: (b), iv., 3)
_ITEM = re.compile(r"\(?(?:[a-z]|[ivx]{1,5}|[0-9]{1,2})[.)]\s", re.I)
_END = "'\"”’)] "  # characters that may follow the mark at the end of a sentence
_NEAR = 100  # characters kept of the text before a line, to keep the time linear
_TERM = "======="  # a heading one level below MediaWiki's: kept only if text follows it


def remove_lists(text: str, prose: bool) -> str:
    """Remove list lines.

    With `prose`, indented prose is kept, and a `;` line above text becomes a heading.
    """
    if not prose or ("\n:" not in text and "\n;" not in text):
        return _LIST_LINE.sub("", text)
    lines = list[str]()
    in_list = False
    before = ""  # the text that an indented line may continue; empty at the start of a section
    label = -1  # index of a `;` line without text below it so far
    for line in text.split("\n"):
        words = line.lstrip(_MARKS)
        mark = line[: len(line) - len(words)]
        words = words.strip()
        if not mark:
            lines.append(line)
            in_list = in_list and bool(words)  # an empty line ends a list
            # Not a file or category, which may stand between paragraphs
            if words and not words.startswith("[["):
                before = "" if words[0] == "=" else words[-_NEAR:]
                label = -1
                in_list = False
        elif mark.strip(":;") or (in_list and mark[0] == ":"):
            # a list item, or the continuation of an item
            in_list = True
            label = _drop_label(lines, label)
        elif (mark[0] == ";" and not _is_sentence(words.rstrip(": "))) or _BOLD.fullmatch(words):
            label = len(lines)
            in_list = False
            lines.append(f"{_TERM} {words.rstrip(': ')} {_TERM}")
        elif _is_prose(words, before):
            lines.append(words)
            before = words[-_NEAR:]
            label = -1
            in_list = False
        else:
            in_list = False
            label = _drop_label(lines, label)
    return "\n".join(lines)


def _drop_label(lines: list[str], label: int) -> int:
    """Remove a label without text below it; returns -1, which means no label."""
    if label >= 0:
        lines[label] = ""
    return -1


def _is_sentence(words: str) -> bool:
    quoted = words[:1] in ('"', "“") and words[-1:] in ('"', "”")
    return " " in words and (
        quoted or words.rstrip(_END)[-1:] in (".", "!", "?", ";", ",", ":", "…")
    )


def _is_prose(words: str, before: str) -> bool:
    """Whether an indented line is prose: a sentence, or the continuation of one."""
    plain = [word for word in _PROSE_WORD.findall(words) if not word.isupper()]
    if not plain or (len(plain) < 4 and _EQUATION.search(words)):
        return False
    if _SIGNED.search(words) or _NOTE.match(words) or (not before and _ITALIC.fullmatch(words)):
        return False
    return (
        bool(_ITEM.match(words))
        or _is_sentence(words)
        or before.rstrip(_END)[-1:] not in ("", ".", "!", "?")
    )
