"""Lists out, prose in: which of the lines that begin with `:` or `;` belong to the sentences around them.

Writers indent quotations, enumerations and definitions with `:` and name them with `;`. The same marks stand before notes
("See also"), formulas, trees of headings and what goes on with an item of a list, which are no prose.
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
_END = "'\"”’)] "  # what may stand behind the mark that ends a sentence
_NEAR = 100  # characters, so that time stays linear
_LABEL = "======="  # one level below MediaWiki's headings: said before the text under it, and only if there is any


def without_lists(text: str, prose: bool) -> str:
    """Without the lines of lists; `prose` keeps indented lines that are, and gives a `;` line above text as a heading."""
    if not prose or ("\n:" not in text and "\n;" not in text):
        return _LIST_LINE.sub("", text)
    lines: list[str] = []
    before = ""  # the text that an indented line may go on with; none at the start of a section
    label = -1  # where a `;` line stands that has no text under it yet
    in_list = False
    for line in text.split("\n"):
        words = line.lstrip(_MARKS)
        mark, words = line[: len(line) - len(words)], words.strip()
        if not mark:
            lines.append(line)
            if words and not words.startswith("[["):  # a file, a category: between paragraphs
                before, label, in_list = "" if words[0] == "=" else words[-_NEAR:], -1, False
        elif mark.strip(":;") or (in_list and mark[0] == ":"):  # what goes on with an item goes with it
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
    """Take the label out under which nothing is kept."""
    if label >= 0:
        lines[label] = ""
    return -1


def _is_sentence(words: str) -> bool:
    quoted = words[:1] in ('"', "“") and words[-1:] in ('"', "”")
    return " " in words and (quoted or words.rstrip(_END)[-1:] in (".", "!", "?", ";", ",", ":", "…"))


def _is_prose(words: str, before: str) -> bool:
    """Whether an indented line belongs to the text: it is a sentence, or goes on with one that has not ended."""
    plain = [word for word in _PROSE_WORD.findall(words) if not word.isupper()]
    if not plain or (len(plain) < 4 and _EQUATION.search(words)):
        return False
    if _SIGNED.search(words) or _NOTE.match(words) or (not before and _ITALIC.fullmatch(words)):
        return False
    return _is_sentence(words) or before.rstrip(_END)[-1:] not in ("", ".", "!", "?")
