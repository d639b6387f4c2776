"""Whether a text holds an answer, as DPR defines it."""

import unicodedata
from collections.abc import Collection
from functools import lru_cache


class _Spacing(dict[int, str]):
    """A table for `str.translate`, filled on demand.

    Letters, numbers and marks stay; separators become a blank; other characters get a blank before and after.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)[0]
        self[code] = char if kind in "LNM" else " " if kind in "ZC" else f" {char} "
        return self[code]


_SPACING = _Spacing()


def has_answer(text: str, answers: Collection[str]) -> bool:
    r"""Whether the text holds an answer's tokens in a row, as in DPR (dpr/data/qa_validation.py:119-201).

    Both are put into NFD; a token is a run of letters, numbers and marks, or one other visible character
    (`[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]`); case is ignored. An answer without tokens is in no text, while in DPR it is
    in every text.
    """
    if isinstance(answers, str):
        raise TypeError("answers must be several strings, not one: its letters would be looked for")
    line = token_line(text)
    return any(answer != " " and answer in line for answer in map(token_line, answers))


@lru_cache(maxsize=16_384)
def token_line(text: str) -> str:
    """The tokens with one blank before, between and after them; a single blank if there are none. No token has a blank."""
    tokens = unicodedata.normalize("NFD", text).translate(_SPACING).lower().split()
    return f" {' '.join(tokens)} " if tokens else " "
