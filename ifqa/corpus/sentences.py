"""The sentences of a text. A passage is 100 words, so it begins and ends within a sentence."""

import re

#: A sentence ends here, but not after "J.", "U.S." and the like. What is shorter than four words, such as a heading, is part
#: of the next.
_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:St|Mr|Dr|Jr|Sr|No|Op|Lt))(?<!\b(?:Mrs|Col|Gen))[.!?][\"”’')\]]*\s+(?=[\"“‘(\[]?[^\W_a-z])"
)
_LEAST = 4


def split_sentences(text: str) -> list[str]:
    """The sentences of a text with the white space behind them: joined, they are the text."""
    parts, start = [], 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        if len(text[start:end].split()) >= _LEAST:
            parts.append(text[start:end])
            start = end
    if start < len(text):
        parts[-1:] = ["".join([*parts[-1:], text[start:]])]
    return parts


def sentence_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Start and end, exclusive and without white space, of the sentence of a text that holds a part of it, or those that do."""
    left = right = place = 0
    for sentence in split_sentences(text):
        if place <= start:
            left = place
        place += len(sentence)
        right = left + len(text[left:place].rstrip())
        if place >= end:
            break
    return left, right
