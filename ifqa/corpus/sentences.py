"""Splits a text into sentences, and counts its words.

The text need not consist of whole sentences: a 100-word passage may begin or end mid-sentence. A
line break, which only documents have, ends a sentence: before and after the row of a table or the
item of a list.

Scripts without spaces between words are counted by their characters. Two of Chinese or Japanese
are a word: most of their words have two. That is less than in the translators' standard GMX-V 2.0
(2.8 and 3), so that a passage fits into an encoder that reads each character by itself. Six of
Thai, Lao, Burmese, Khmer or Tibetan are a word, as GMX-V counts Thai.
"""

import re
from collections.abc import Iterator

ENDS = (".", "!", "?", "。", "！", "？", "｡")
_NO_BREAK = "\u00a0"
#: Ideographs, kana and bopomofo, with their marks.
_IDEOGRAPHS = (
    "\u2e80-\u2fdf\u3001-\u312f\u31a0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff9f"
    "\U00020000-\U0003ffff"
)
_THAI_OR_LAO = "\u0e00-\u0eff"
_SYLLABLES = f"{_THAI_OR_LAO}\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\uaa60-\uaa7f"
_UNSPACED = re.compile(f"[{_IDEOGRAPHS}{_SYLLABLES}]")
#: An ideograph or the like; a syllable's letter; a word or a number of another script; other marks.
_UNIT = re.compile(
    rf"([{_IDEOGRAPHS}])|([{_SYLLABLES}])"
    rf"|([^\w\s]*[^\W{_IDEOGRAPHS}{_SYLLABLES}][^\s{_IDEOGRAPHS}{_SYLLABLES}]*)"
    rf"|[^\s{_IDEOGRAPHS}{_SYLLABLES}]+"
)
_WEIGHTS = {1: 3, 2: 1, 3: 6, None: 0}  # of a unit's group, in sixths of a word
_CLOSING = "\"”’')\\]」』）】》〉〕］"
# The end of a sentence, but not "J.", "U.S." and the like, and not before a no-break space.
_SPACED_END = (
    r"(?<!\b[A-Z])(?<!\b(?:St|Mr|Dr|Jr|Sr|No|Op|Lt))(?<!\b(?:Mrs|Col|Gen))"
    r"[.!?][\"”’')\]]*[^\S\u00a0]+(?=[\"“‘(\[]?[^\W_a-z])"
)
_END = re.compile(_SPACED_END)
# In a script without spaces between words, also without a space after the mark
_UNSPACED_END = re.compile(
    rf"{_SPACED_END}"
    # After a quotation, the sentence goes on with a particle: "「…。」と"
    rf"|[。！？｡]++(?:[{_CLOSING}]++(?![ぁ-ん]))?+(?![{_CLOSING}])[^\S\u00a0]*+"
    r"(?=[\"“‘(\[「『（【《〈]?[^\W_a-z])"
    # The marks of Burmese and Khmer; Thai and Lao have spaces between sentences
    r"|[\u104b\u17d4]++[^\S\u00a0]*+(?=\S)"
    rf"|(?<=[{_THAI_OR_LAO}])[^\S\u00a0]++(?=[{_THAI_OR_LAO}])"
)
_TOKEN = re.compile(r"\S+")
#: Characters of a word; a longer one is data, such as a picture in base64. The longest of 1,300
#: documents is a sequence of DNA with 994.
LONGEST_WORD = 2_000
_KEPT = 100  # characters of a longer one
_SPACED_CHARACTER = rf"[^\s{_IDEOGRAPHS}{_SYLLABLES}]"
_OVERLONG = re.compile(
    rf"(?<!{_SPACED_CHARACTER})({_SPACED_CHARACTER}{{{_KEPT}}})"
    rf"{_SPACED_CHARACTER}{{{LONGEST_WORD - _KEPT + 1},}}"
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
    pattern = _UNSPACED_END if _is_unspaced(text) else _END
    for end in (*(match.end() for match in pattern.finditer(text)), len(text)):
        if count_words(text[start:end]) >= _FEWEST_WORDS:
            parts.append(text[start:end])
            start = end
    if start < len(text):
        parts[-1:] = ["".join([*parts[-1:], text[start:]])]
    return parts


def count_words(text: str) -> int:
    """The number of words in a text; by characters if most are of a script without spaces."""
    if not _is_unspaced(text):
        return len(text.split())
    return -(-sum(_WEIGHTS[unit.lastindex] for unit in _UNIT.finditer(text)) // _WEIGHTS[3])


def piece_spans(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of a text that is cut after every `longest` words."""
    is_unspaced = _is_unspaced(text)
    room = longest * _WEIGHTS[3]
    weight = 0
    start = end = -1
    for unit in (_UNIT if is_unspaced else _TOKEN).finditer(text):
        own = _WEIGHTS[unit.lastindex if is_unspaced else 3]
        if weight + own > room:
            yield start, end
            start = -1
            weight = 0
        start = unit.start() if start < 0 else start
        end = unit.end()
        weight += own
    if start >= 0:
        yield start, end


def cut_words(text: str) -> tuple[str, int]:
    """The text with its overlong words cut, and their number."""
    return _OVERLONG.subn(r"\1…", text) if len(text) > LONGEST_WORD else (text, 0)


def _is_unspaced(text: str) -> bool:
    """Whether most words are of a script without spaces between words.

    A few, such as the Japanese name of a town in an English sentence, do not make it so.
    """
    if text.isascii() or not _UNSPACED.search(text):  # the common cases
        return False
    groups = [unit.lastindex for unit in _UNIT.finditer(text)]
    spaced = _WEIGHTS[3] * groups.count(3)
    return _WEIGHTS[1] * groups.count(1) + _WEIGHTS[2] * groups.count(2) > spaced


def keep_whole(text: str) -> str:
    """The text as one sentence: with no-break spaces where others would begin."""
    pattern = _END if text.isascii() else _UNSPACED_END  # a passage of rows may be unspaced
    return pattern.sub(lambda match: match[0].rstrip() + _NO_BREAK, text)


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
