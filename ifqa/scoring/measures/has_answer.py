"""Whether an answer stands in a text, as DPR has it."""

import unicodedata
from collections.abc import Collection
from functools import lru_cache


class _Spacing(dict[int, str]):
    """Code point -> itself, set between blanks or a blank, for `str.translate`; filled as characters come up."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)[0]
        self[code] = char if kind in "LNM" else " " if kind in "ZC" else f" {char} "
        return self[code]


_SPACING = _Spacing()


def has_answer(text: str, answers: Collection[str]) -> bool:
    r"""Whether an answer's tokens stand in the text one after the other, as in DPR (dpr/data/qa_validation.py:119-201).

    Both are put into NFD; a token is a run of letters, numbers and marks, or one other visible character
    (`[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]`); case is ignored. An answer without tokens stands nowhere, while in DPR it
    stands everywhere.
    """
    if isinstance(answers, str):
        raise TypeError("answers must be several strings, not one: its letters would be looked for")
    line = token_line(text)
    return any(answer != " " and answer in line for answer in map(token_line, answers))


@lru_cache(maxsize=16_384)
def token_line(text: str) -> str:
    """Tokens with one blank before, between and after them (no token holds one); a blank alone when there are none."""
    tokens = unicodedata.normalize("NFD", text).translate(_SPACING).lower().split()
    return f" {' '.join(tokens)} " if tokens else " "
