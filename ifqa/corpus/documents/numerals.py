"""Writes the number of an item of a list in digits, letters or Roman numerals."""

_ROMAN = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)
_LARGEST_ROMAN = 3999


def write_number(number: int, style: str) -> str:
    """A number in a style of HTML's `type`: "1", "a", "A", "i" or "I".

    Digits if it is too small or too large for the style.
    """
    if style in ("a", "A") and number > 0:
        text = _write_letters(number)
    elif style in ("i", "I") and 0 < number <= _LARGEST_ROMAN:
        text = write_roman(number)
    else:
        return str(number)
    return text.upper() if style.isupper() else text


def _write_letters(number: int) -> str:
    """1 is a, 26 is z, 27 is aa."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def write_roman(number: int) -> str:
    """A number from 0 on in lower-case Roman numerals; 0 is empty."""
    text = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        text += letters * count
    return text


def read_number(text: str) -> tuple[str, int]:
    """The style and the value of a number that `write_number` can write; "i" is one."""
    if text.isdecimal():
        return "1", int(text)
    lower = text.lower()
    is_upper = text.isupper()
    if len(lower) > 1 or lower == "i":
        return "I" if is_upper else "i", _read_roman(lower)
    return "A" if is_upper else "a", ord(lower) - ord("a") + 1


def _read_roman(text: str) -> int:
    values = {letters: value for value, letters in _ROMAN if len(letters) == 1}
    numbers = [values.get(letter, 0) for letter in text]
    following = [*numbers[1:], 0]
    return sum(
        -value if value < after else value for value, after in zip(numbers, following, strict=True)
    )
