"""Removes list lines, and keeps lines that begin with `:` or `;` if they are prose.

Writers indent quotations, enumerations and definitions with `:` and label them with `;`. The same marks also open notes
("See also"), formulas, trees of headings and continued list items, which are not prose.
"""

import re

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
