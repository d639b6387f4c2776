"""Resolves tags whose content is not wikitext or not prose: formulas, listings, references, comments, <nowiki>."""

import re

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
