"""A text in pieces, of which every second one is marked: where answers stand in it, token by token."""

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from ifqa.scoring.measures.has_answer import has_answer

Pieces = str | list[str]


def cut(text: str, spans: Sequence[tuple[int, int]]) -> Pieces:
    """The text in pieces, the spans (rising, apart) at the odd places; the text itself if there are no spans."""
    if not spans:
        return text
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def answer_spans(text: str, answers: Collection[str]) -> list[tuple[int, int]]:
    """The places of answers in a text, token by token: (start, end) in characters, rising; touching spans are joined.

    There is a span exactly if `scoring.measures.has_answer` is true. A span never separates a letter from its accents.
    """
    if not has_answer(text, answers):
        return []
    tokens = _tokens(text)
    line, number_at = " ", {}
    for number, (token, _, _) in enumerate(tokens):
        number_at[len(line) - 1] = number
        line += f"{token} "
    number_at[len(line) - 1] = len(tokens)
    found: list[tuple[int, int]] = []
    for wanted in {tuple(token for token, _, _ in _tokens(answer)) for answer in answers} - {()}:
        phrase = f" {' '.join(wanted)} "
        place = line.find(phrase)
        while place >= 0:
            first, last = number_at[place], number_at[place + len(phrase) - 1] - 1
            found.append((tokens[first][1], tokens[last][2]))
            place = line.find(phrase, place + 1)
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """The tokens that `has_answer` compares, each with its start and end in the text before NFD."""
    tokens: list[tuple[str, int, int]] = []
    joins = False  # whether a letter, number or mark continues the last token
    for start, end in _clusters(text):
        for char in unicodedata.normalize("NFD", text[start:end]):
            kind = unicodedata.category(char)[0]
            if kind in "ZC":
                joins = False
            elif joins and kind in "LNM":
                tokens[-1] = (tokens[-1][0] + char, tokens[-1][1], end)
            else:
                tokens.append((char, start, end))
                joins = kind in "LNM"
    return [(token.lower(), start, end) for token, start, end in tokens]


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that NFD treats separately: a character and the marks after it, which NFD may reorder."""
    start = 0
    for place in range(1, len(text)):
        char = text[place]
        if char < "\u0300" or not unicodedata.combining(unicodedata.normalize("NFD", char)[0]):
            yield start, place
            start = place
    if text:
        yield start, len(text)
