"""Takes out of wikitext what is no prose: tags with other content, list lines, and what dropped templates leave around them.

The names of namespaces are those of MediaWiki's languages/messages/Messages*.php: NS_FILE and NS_CATEGORY of $namespaceNames,
and their $namespaceAliases. English names work in every language.
"""

import re
from collections.abc import Mapping

_OPAQUE = re.compile(
    r"<!--|<(nowiki|math|chem|ce|pre|references|ref|gallery|timeline|score|imagemap|syntaxhighlight|source|hiero|graph"
    r"|mapframe|maplink|templatedata|includeonly|inputbox|categorytree|section|templatestyles)\b[^<>]*+>",
    re.I,
)
_FORMULAS = {"math", "chem", "ce"}
# Markup characters as entities: they are decoded with the other entities, after all markup is removed.
_LITERAL = {ord(char): f"&#{ord(char)};" for char in "<>[]{}|'=*#:;!_"}


def resolve_opaque(text: str) -> str:
    """Remove the content of tags that is not prose, number the formulas, and protect <nowiki> from further steps."""
    pieces: list[str] = []
    formulas: dict[str, int] = {}
    unclosed: set[str] = set()  # tags without an end from here on: searched once, so that time stays linear
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


_FILE = """image|datei|bild|fichier|archivo|imagen|immagine|ficheiro|arquivo|imagem|bestand|afbeelding|plik|grafika|fil|tiedosto
|kuva|billede|bilde|soubor|súbor|obrázok|fájl|kép|fișier|imagine|fitxer|imatge|dosya|resim|berkas|gambar|tập tin|hình|slika
|datoteka|файл|изображение|зображення|картинка|датотека|слика|αρχείο|εικόνα|ملف|صورة|پرونده|تصویر|קובץ|תמונה|चित्र|ไฟล์|ภาพ
|ファイル|画像|파일|그림|文件|档案|檔案|图像|圖像"""
_CATEGORY = """kategorie|catégorie|categoría|categoria|categorie|kategoria|kategori|luokka|kategória|kategorija
|thể loại|категория|категорія|категорија|κατηγορία|تصنيف|رده|קטגוריה|श्रेणी|หมวดหมู่|カテゴリ|분류|分类|分類"""
_KNOWN = dict.fromkeys(_FILE.replace("\n", "").split("|"), "File")
_KNOWN |= dict.fromkeys(_CATEGORY.replace("\n", "").split("|"), "Category")
_ENGLISH = {"6": "File", "14": "Category"}  # by namespace number
_PREFIX = re.compile(r"\[\[\s*+([^\[\]|:\n]{2,30}+):")


def in_english(text: str, names: Mapping[str, str] = _KNOWN) -> str:
    """Translate file and category prefixes of links to English; `names` maps a prefix to "File" or "Category"."""
    if "[[" not in text:
        return text
    return _PREFIX.sub(lambda link: f"[[{english}:" if (english := names.get(_plain(link[1]))) else link[0], text)


def unknown_names(siteinfo: Mapping[str, str]) -> dict[str, str]:
    """The names in a dump's siteinfo (name -> namespace number) that `in_english` does not know: name -> English name."""
    known = _KNOWN | {english.lower(): english for english in _ENGLISH.values()}
    found = {_plain(name): _ENGLISH[key] for name, key in siteinfo.items() if key in _ENGLISH}
    return {name: english for name, english in found.items() if known.get(name) != english}


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).lower()


GAP = "\x03"  # stands for a dropped template; XML forbids this character, so no dump contains it

_LINK_OF_GAP = re.compile(rf"\[\[[^\[\]|{GAP}]*+\|{GAP}\]\]")
# Most gaps need nothing more than to be removed: they are a line of their own, or stand between words
_ALONE = re.compile(rf"{GAP}(?:(?:(?<![^\n]{GAP})|(?<=[\w.] {GAP}))(?=[\w\n]|\Z)|(?<=[\w.]{GAP})(?= ?[\w\n]|\Z))")
# "gap, gap and gap" with no word before it; group 1 matches if no word follows
_ENUMERATION = re.compile(rf"{GAP}(?<![^\s(]{GAP})(?: *+[,;]?+ *+(?:(?:and|or|&) *+)?+{GAP})++( *+(?=[.,;:)\n]|\Z))?+")
# A sign before its amount, not after it (5€)
_CURRENCY = re.compile(r"(?<![0-9A-Z])(?<![0-9] )(?:(?:US|CA|AU|NZ|HK|NT|[ACRS])?[$£€¥₹]|&(?:pound|euro|yen);)\Z")
_CURRENCY_ENDS = set("$£€¥₹;")


def without_gaps(text: str) -> str:
    """Remove the gaps, and the brackets, blanks and separators that belonged to the dropped templates.

    A blank between a word and a mark after a gap stays ("a depth of ."): it shows that a value is missing. Text that touches no
    gap is unchanged.
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
                left, right = left.removesuffix(quotes), right.removeprefix(quotes)
        pieces[-1], right = _joined(left, right)
        if right:  # the end is a piece of its own, so that the next step searches a short text
            pieces += right[:-32], right[-32:]
    return "".join(pieces)


def _joined(left: str, right: str) -> tuple[str, str]:
    """The text before and after a gap, without the marks that belonged to the dropped template."""
    before, after = left.rstrip(" "), right.lstrip(" ")
    if before.endswith("("):  # "(gap; born" and "(gap)"
        after = after.lstrip(" ,;:") if after.strip(" –—") else ""  # only a dash up to the next gap
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
    doubled = pair[0] in "*#" or pair[0] == pair[1] or pair in (",;", ";,", ":,") or (pair == ".," and before != left)
    if doubled or len(before) < len(left.rstrip(" ")):
        return before, after[doubled:]
    return left, right


# Writers indent quotations, enumerations and definitions with `:` and label them with `;`. The same marks also open notes
# ("See also"), formulas, trees of headings and continued list items, which are not prose.
_MARKS = "*#:;"
_LIST_LINE = re.compile(r"\n[*#:;][^\n]*+")
_NOTE = re.compile(
    r"['\"(]*+(?:see (?:also\b|main|\[\[|the (?:main )?article)|(?:main|full|detailed) (?:articles?|page)\b"
    r"|further (?:information|reading)\b|for [^.]{1,200}?,? see\b|this (?:article|section|list|page)\b"
    r"|not to be confused\b|[^.]{1,100}? redirects? here\b)",
    re.I,
)
_ITALIC = re.compile(r"''(?!').*''[.)]?")
_SIGNED = re.compile(r"\[\[\s*user(?:[ _]talk)?\s*:|\(UTC\)\s*\Z", re.I)
_BOLD = re.compile(r"'''[^']++'''")
_PROSE_WORD = re.compile(r"(?<![\w(&])[^\W\d_]{2,}+(?![\w(])")  # no CO2, HA(aq), &nbsp;
_EQUATION = re.compile(r"[=→⇌↔]|formula_[0-9]")
_ITEM = re.compile(r"\(?(?:[a-z]|[ivx]{1,5}|[0-9]{1,2})[.)]\s", re.I)  # of an enumeration: (b), iv., 3)
_END = "'\"”’)] "  # characters that may follow the mark at the end of a sentence
_NEAR = 100  # characters kept of the text before a line, so that time stays linear
_LABEL = "======="  # a heading one level below MediaWiki's: it is shown only if text follows it


def without_lists(text: str, prose: bool) -> str:
    """Remove list lines; `prose` keeps indented lines that are prose, and makes a `;` line above text a heading."""
    if not prose or ("\n:" not in text and "\n;" not in text):
        return _LIST_LINE.sub("", text)
    lines: list[str] = []
    before = ""  # the text that an indented line may continue; empty at the start of a section
    label = -1  # index of a `;` line that has no text under it yet
    in_list = False
    for line in text.split("\n"):
        words = line.lstrip(_MARKS)
        mark, words = line[: len(line) - len(words)], words.strip()
        if not mark:
            lines.append(line)
            in_list = in_list and bool(words)  # an empty line ends a list
            if words and not words.startswith("[["):  # a file, a category: between paragraphs
                before, label, in_list = "" if words[0] == "=" else words[-_NEAR:], -1, False
        elif mark.strip(":;") or (in_list and mark[0] == ":"):  # a list item, or the continuation of an item
            in_list, label = True, _dropped(lines, label)
        elif (mark[0] == ";" and not _is_sentence(words.rstrip(": "))) or _BOLD.fullmatch(words):
            label, in_list = len(lines), False
            lines.append(f"{_LABEL} {words.rstrip(': ')} {_LABEL}")
        elif _is_prose(words, before):
            lines.append(words)
            before, label, in_list = words[-_NEAR:], -1, False
        else:
            in_list, label = False, _dropped(lines, label)
    return "\n".join(lines)


def _dropped(lines: list[str], label: int) -> int:
    """Remove a label without text under it; returns -1, for no label."""
    if label >= 0:
        lines[label] = ""
    return -1


def _is_sentence(words: str) -> bool:
    quoted = words[:1] in ('"', "“") and words[-1:] in ('"', "”")
    return " " in words and (quoted or words.rstrip(_END)[-1:] in (".", "!", "?", ";", ",", ":", "…"))


def _is_prose(words: str, before: str) -> bool:
    """Whether an indented line belongs to the text: it is a sentence, or continues a sentence that has not ended."""
    plain = [word for word in _PROSE_WORD.findall(words) if not word.isupper()]
    if not plain or (len(plain) < 4 and _EQUATION.search(words)):
        return False
    if _SIGNED.search(words) or _NOTE.match(words) or (not before and _ITALIC.fullmatch(words)):
        return False
    return bool(_ITEM.match(words)) or _is_sentence(words) or before.rstrip(_END)[-1:] not in ("", ".", "!", "?")
