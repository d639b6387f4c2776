"""Splits a text into sentences.

The text need not consist of whole sentences: a 100-word passage may begin or end mid-sentence. A
line break, which only documents have, ends a sentence: before and after the row of a table or the
item of a list.
"""

import re

_NO_BREAK = "\u00a0"
# The end of a sentence, but not "J.", "U.S." and the like, and not before a no-break space.
_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:St|Mr|Dr|Jr|Sr|No|Op|Lt))(?<!\b(?:Mrs|Col|Gen))"
    r"[.!?][\"”’')\]]*[^\S\u00a0]+(?=[\"“‘(\[]?[^\W_a-z])"
)
_LINE_START = re.compile(r"(?<=\n)")
_FEWEST_WORDS = 4  # a part with fewer, such as a heading, joins the next sentence


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it, so that joining them restores
    the text.
    """
    if "\n" not in text:
        return _split_line(text)
    return [part for line in _LINE_START.split(text) for part in _split_line(line)]


def _split_line(text: str) -> list[str]:
    parts = list[str]()
    start = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        if len(text[start:end].split()) >= _FEWEST_WORDS:
            parts.append(text[start:end])
            start = end
    if start < len(text):
        parts[-1:] = ["".join([*parts[-1:], text[start:]])]
    return parts


def keep_whole(text: str) -> str:
    """The text as one sentence: with no-break spaces where others would begin."""
    return _END.sub(lambda match: match[0].rstrip() + _NO_BREAK, text)


def sentence_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Start and end, without white space, of the sentences that contain a span of the text."""
    first = last = position = 0
    for sentence in split_sentences(text):
        if position <= start:
            first = position
        position += len(sentence)
        last = first + len(text[first:position].rstrip())
        if position >= end:
            break
    return first, last
