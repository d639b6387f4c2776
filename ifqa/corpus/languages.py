"""Detects the language of a question, or of a corpus, offline."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

#: ISO 639-1 codes of the languages, besides English, that Lucene analyses here.
Language = Literal["de", "es", "fr", "it", "ja", "nl", "no", "pt", "ru", "sv", "zh"]
ENGLISH = "en"
_OTHERS = {
    "ar": "Arabic",
    "cs": "Czech",
    "el": "Greek",
    "fi": "Finnish",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "ko": "Korean",
    "pl": "Polish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
}
NAMES = {
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "nl": "Dutch",
    "no": "Norwegian",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "zh": "Chinese",
    **_OTHERS,
}
# Below this probability a text counts as English: a lone name could be of any language
_CERTAIN = 0.5
# Below this probability the language of a document's text is unknown: rows of names and numbers
# reach 0.96 in a language that they are not written in
_SURE = 0.97
_ENGLISH_START = re.compile(
    r"\W*(?:if|what|who|whom|whose|which|when|where|why|how|the|suppose)\b", re.IGNORECASE
)
_LONGEST = 2000  # characters of a text that are looked at
# Frequent in English, and in no other language in `NAMES` ("was" is German too, but not frequent)
_ENGLISH_WORDS = frozenset(
    "and been from had has have of that the their they this was were which with".split()
)
_ENGLISH_SHARE = 0.12  # of a text's words
_FEW_WORDS = 20
_WORD = re.compile(r"[^\W\d_]+")
LANGUAGE_SAMPLE = 200  # files of a folder that are looked at
FILE_SAMPLE = 5  # passages of a file that are looked at


def detect_language(text: str) -> str:
    """The ISO 639-1 code of a text's language in `NAMES`; English if that is uncertain."""
    if _ENGLISH_START.match(text):
        return ENGLISH
    best, share = _most_probable(text)
    return best if share >= _CERTAIN else ENGLISH


def passage_language(text: str) -> str:
    """The ISO 639-1 code of a passage's language in `NAMES`; empty if it is not certain.

    A few words, and rows of names and numbers, are in no certain language.
    """
    best, share = _most_probable(text)
    return best if share >= _SURE else ""


def is_plainly_english(text: str) -> bool:
    """Whether a text has as many of English's most frequent words as only English has.

    It costs a hundredth of the third of a second that it takes to load the statistics of all
    languages. False says nothing: half of all English passages are less plain.
    """
    sample = text[:_LONGEST]
    words = _WORD.findall(sample.lower())
    if len(words) < _FEW_WORDS or not sample.isascii():
        return False
    return sum(word in _ENGLISH_WORDS for word in words) >= _ENGLISH_SHARE * len(words)


def majority_language(files: Iterable[Sequence[str]]) -> Language | None:
    """The language of most of a folder's text, if Lucene analyses it; else None, for English.

    Each of the files is a few of its passages. A passage weighs as much as it has characters, so a
    long file does not outweigh all others, and many tiny files do not outweigh a real text. One in
    no certain language weighs nothing.
    """
    weights = Counter[str]()
    for passages in files:
        for text in passages:
            if language := passage_language(text):
                weights[language] += min(len(text), _LONGEST)
    code, weight = max(weights.items(), key=lambda pair: pair[1], default=(ENGLISH, 0))
    if 2 * weight <= weights.total():
        return None
    return next((known for known in get_args(Language) if known == code), None)


def _most_probable(text: str) -> tuple[str, float]:
    """The most probable language of a text, and its probability."""
    ranked = _identifier().rank(text[:_LONGEST].encode("utf-8", "replace").decode())
    shares = Counter[str]()  # of both kinds of Norwegian together
    for code, share in ranked:
        shares["no" if code == "nn" else code] += share
    [(best, share)] = shares.most_common(1)
    return best, share


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([*NAMES, "nn"])
    return identifier
