"""Looks up what a language model quotes in the passages that it was shown.

Words are compared, whatever their case. White space, quotation marks and dashes are normalised, as
models change them when they copy.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby

from ifqa.records import Passage, Quote, QuotedPlace

_LONGEST = 20_000  # characters of a quote that are looked up; the time grows with both lengths
_FEWEST = 3  # words of each part of a quote from two places; shorter ones stand anywhere
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:…|\.\.\.)(?:\s*\])?\s*")
_AROUND = " \t\n'.,;:"  # at the edges of a quote, once it is normalised
_PLAIN = {
    **dict.fromkeys('‘’‚‛`´“”„‟«»‹›"″′', "'"),
    **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", ""),  # they are not seen
}


def find_quote(text: str, passages: Sequence[Passage], number: int = 0) -> Quote:
    """Where a quote stands in the passages, which are in the order that the model saw them.

    `number` is that of the passage which the model names, from 1; 0 if it names none.
    """
    plain = [_Normalised(passage) for passage in passages]
    named = number - 1 if 0 < number <= len(plain) else -1
    # The named passage first, then the others in order
    order = sorted(range(len(plain)), key=lambda place: place != named)
    ordered = [plain[place] for place in order]
    quote = _normalise(text[:_LONGEST])[0].strip(_AROUND)
    if not quote or len(text) > _LONGEST:
        return Quote(text, "missing")
    if found := _first_place(quote, ordered):
        is_named = number == 0 or (named >= 0 and found.passage_id == plain[named].passage_id)
        return Quote(text, "exact" if is_named else "other passage", (found,))
    places = _places_of_parts(text, ordered) or _two_places(quote, ordered)
    return Quote(text, "stitched" if places else "missing", places)


class _Normalised:
    """A passage's normalised text, and the place in the passage of each of its characters."""

    def __init__(self, passage: Passage) -> None:
        self.passage_id = passage.id
        self.text, self._places = _normalise(passage.text)

    def find(self, quote: str) -> QuotedPlace | None:
        """The first place where the quote stands as whole words."""
        start = self.text.find(quote)
        while start >= 0:
            end = start + len(quote)
            if _is_word_edge(self.text, start) and _is_word_edge(self.text, end):
                return QuotedPlace(self.passage_id, self._places[start], self._places[end - 1] + 1)
            start = self.text.find(quote, start + 1)
        return None


def _normalise(text: str) -> tuple[str, list[int]]:
    """A text as it is compared, and the place in the text of each of its characters."""
    characters = list[str]()
    places = list[int]()
    for is_space, run in groupby(enumerate(text), key=lambda pair: pair[1].isspace()):
        if is_space:
            characters.append(" ")
            places.append(next(run)[0])
            continue
        for place, character in run:
            plain = _PLAIN.get(character)
            if plain is None:
                plain = unicodedata.normalize("NFKC", character).casefold()
            characters.extend(plain)
            places.extend([place] * len(plain))
    return "".join(characters), places


def _is_word_edge(text: str, place: int) -> bool:
    """Whether no word goes on across a place in a text."""
    around = text[max(place - 1, 0) : place + 1]
    return not (len(around) == 2 and place > 0 and around.isalnum())


def _first_place(quote: str, passages: Sequence[_Normalised]) -> QuotedPlace | None:
    found = (passage.find(quote) for passage in passages)
    return next((place for place in found if place), None)


def _places_of_parts(text: str, passages: Sequence[_Normalised]) -> tuple[QuotedPlace, ...]:
    """The places of the parts of a quote with ellipses; none if one of them is nowhere."""
    parts = [_normalise(part)[0].strip(_AROUND) for part in _ELLIPSIS.split(text)]
    parts = [part for part in parts if part]
    places = [_first_place(part, passages) for part in parts]
    found = tuple(place for place in places if place)
    return found if len(found) == len(parts) else ()


def _two_places(quote: str, passages: Sequence[_Normalised]) -> tuple[QuotedPlace, ...]:
    """The places of a quote's beginning and of its rest; none if no division has both."""
    for first, rest in _divisions(quote):
        beginning = _first_place(first, passages)
        ending = _first_place(rest, passages) if beginning else None
        if beginning and ending:
            return beginning, ending
    return ()


def _divisions(quote: str) -> Iterator[tuple[str, str]]:
    """A quote divided between two of its words, the longest beginning first."""
    words = quote.split(" ")
    for count in range(len(words) - _FEWEST, _FEWEST - 1, -1):
        first = " ".join(words[:count]).strip(_AROUND)
        rest = " ".join(words[count:]).strip(_AROUND)
        if first and rest:
            yield first, rest
