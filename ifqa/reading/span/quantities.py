"""What a number counts, and when two numbers are of one kind: only then an answer is computed from them.

A number counts money in a currency, a length, a mass or a volume in a unit, a span of time, things that a noun names, or it is
a label ("room 14"), which counts nothing.
"""

import re
import unicodedata

_UNSPACED = frozenset("CJK HIRAGANA KATAKANA THAI LAO KHMER MYANMAR".split())
#: Unit -> dimension and size. Sizes are exact by definition (the international foot, the avoirdupois pound, the US gallon).
UNITS: dict[str, tuple[str, float]] = {
    "millimetre": ("length", 0.001), "centimetre": ("length", 0.01), "metre": ("length", 1), "kilometre": ("length", 1000),
    "inch": ("length", 0.0254), "foot": ("length", 0.3048), "yard": ("length", 0.9144), "mile": ("length", 1609.344),
    "gram": ("mass", 0.001), "kilogram": ("mass", 1), "tonne": ("mass", 1000), "ounce": ("mass", 0.028349523125),
    "pound": ("mass", 0.45359237), "millilitre": ("volume", 0.001), "litre": ("volume", 1), "pint": ("volume", 0.473176473),
    "gallon": ("volume", 3.785411784), "acre": ("area", 4046.8564224), "hectare": ("area", 10_000),
}  # fmt: skip
_SPELLED = {
    "mm": "millimetre", "cm": "centimetre", "m": "metre", "km": "kilometre", "kilometer": "kilometre", "meter": "metre",
    "centimeter": "centimetre", "millimeter": "millimetre", "feet": "foot", "ft": "foot", "inches": "inch", "mi": "mile",
    "yd": "yard", "g": "gram", "kg": "kilogram", "kilo": "kilogram", "ton": "tonne", "lb": "pound", "lbs": "pound", "oz": "ounce",
    "l": "litre", "liter": "litre", "ml": "millilitre", "milliliter": "millilitre", "ha": "hectare",
}  # fmt: skip
_CURRENCIES = {"dollar": "$", "euro": "€", "rupee": "₹", "yen": "¥", "yuan": "¥"}
CURRENCY = re.compile(r"(?:US|A|C|NZ|HK)?[$£€¥₹₩₽]\s?$")
#: What stands between a number and what it counts.
_MODIFIERS = frozenset(
    """more fewer less additional extra other further different new older younger longer shorter larger smaller higher lower
    earlier later sooner taller deeper wider heavier lighter greater bigger better worse total consecutive such""".split()
)
_STOPS = frozenset(
    """a about after against ahead all along also an and another any are as at away be because been before between both but
    by can could did do does during each either even ever every far first for from had has have he her here his how i
    if in instead into is it its just last long high tall deep wide old late least like many may might much must near
    never next no nor not now of off on once one only or out over per prior she should since so some still than that
    the their them then there these they this those through to together too under until up was we well were what when
    where which while who whole whom whose will with within without would yet you""".split()
)
_WORD = re.compile(r"[ -]([^\W\d_]+(?:'s)?)")
_LABEL = re.compile(
    r"\b(?:room|page|pages|chapter|section|no\.?|number|nr\.?|flight|route|highway|road|gate|platform|apartment|volume|figure|table"
    r"|line|track|channel|pp?\.|act|scene|bus|building|house|box|cell|ward|lot|plate|verse|psalm|class|type|model|mark|unit|grade)"
    r"\s*#?\s*$",
    re.IGNORECASE,
)
_NUMBER_OF = re.compile(r"\bnumber of\s*$", re.IGNORECASE)
_AGE = re.compile(r"\b(?:aged?|age of|at age|ages of)\s*$", re.IGNORECASE)


#: Nouns that count the same things -> one of them.
_SAME = {
    **dict.fromkeys("individual participant man woman other life guest passenger driver player".split(), "person"),
    **dict.fromkeys("member figure victim".split(), "person"),
    **dict.fromkeys("championship victory win".split(), "title"),
    "track": "song", "movie": "film", "defeat": "loss", "cannon": "gun",
}  # fmt: skip


def stem(noun: str) -> str:
    """A noun without the ending of its plural, and of several for the same thing one."""
    singular = _singular(noun)
    return _SAME.get(singular, singular)


def _singular(noun: str) -> str:
    noun = noun.lower().removesuffix("'s")
    noun = {
        "people": "person",
        "men": "man",
        "women": "woman",
        "children": "child",
        "lives": "life",
        "wives": "wife",
    }.get(noun, noun)
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    if noun.endswith(("ches", "shes", "xes", "sses")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun


def is_edge(text: str, at: int) -> bool:
    """Whether an answer may begin or end at a character: not within a word, and not within an amount such as "€1,250.50"."""
    if not 0 < at < len(text):
        return True
    before, after = text[at - 1], text[at]
    if before.isalnum() and after.isalnum():
        return _unspaced(before) or _unspaced(after)
    if after.isdigit():
        return unicodedata.category(before) != "Sc" and not (before in ".," and text[max(at - 2, 0)].isdigit())
    if before.isdigit() and after in ".,":
        return not text[at + 1 : at + 2].isdigit()
    return not unicodedata.combining(after)


def _unspaced(char: str) -> bool:
    """Whether a character is of a script without blanks between its words."""
    return char >= "\u0e00" and unicodedata.name(char, "").split(" ")[0] in _UNSPACED


def unit_of(word: str) -> str:
    """The name of a unit of measure in `UNITS`; empty for another word."""
    name = _SPELLED.get(word.lower(), _SPELLED.get(stem(word), stem(word)))
    return name if name in UNITS else ""


def currency_of(word: str) -> str:
    """The sign of a currency that a word names; empty for another word."""
    return _CURRENCIES.get(stem(word), "")


def counted(text: str, start: int, end: int) -> str:
    """What the number at `start` to `end` (its "million" included) counts.

    A currency's sign, the name of a unit of measure, the stem of a noun, "age", "label", or empty if nothing tells.
    """
    before = text[max(start - 16, 0) : start]
    if prefix := CURRENCY.search(before):
        return prefix[0].strip()[-1]
    if _AGE.search(before):
        return "age"
    if _LABEL.search(before) and not _NUMBER_OF.search(before):
        return "label"
    words, place = list[str](), end
    while (match := _WORD.match(text, place)) and len(words) < 4:
        word, place = match[1], match.end()
        if not words and (unit := unit_of(word)):
            return unit
        if not words and (sign := currency_of(word)):
            return sign
        if word.lower() in _STOPS:
            break
        if word.lower() not in _MODIFIERS:
            words.append(word)
        if match[0][0] == "-" and len(words) == 1:  # a ten-album contract
            break
    plural = next((word for word in words if len(word) > 3 and _singular(word) != word.lower()), "")
    noun = plural or (words[-1] if words and not words[-1].lower().endswith(("ed", "ing", "ly")) else "")
    return stem(noun)


_AS = re.compile(r"\s+as\s+(\w+)")
_DIMENSIONS = {
    **dict.fromkeys("long far high tall deep wide short low thick".split(), "extent"), **dict.fromkeys(("old", "young"), "age"),
    **dict.fromkeys("fast quick slow quickly slowly often good strong".split(), "label"), "heavy": "kilogram",
}  # fmt: skip


def multiplied(text: str, end: int) -> str:
    """What a factor that ends at `end` multiplies: "twice as many goals", "half as long"; as `counted`, or "extent"."""
    match = _AS.match(text, end)
    if match is None:
        return ""
    return counted(text, end, match.end()) if match[1].lower() == "many" else _DIMENSIONS.get(match[1].lower(), "")


def shown_as(text: str, start: int, end: int) -> tuple[str, str]:
    """What the text writes before and behind an amount of money or of a unit: "€" and "", or "" and "km"."""
    if sign := CURRENCY.search(text, max(start - 5, 0), start):
        return sign[0].strip()[-1], ""
    word = _WORD.match(text, end)
    if word and (unit_of(word[1]) or currency_of(word[1])):
        return "", "" if word[0][0] == "-" else word[0]  # "an 8350-ft runway"
    return "", ""


def ratio(counts: str, other: str) -> float | None:
    """How many of what `counts` names are in one of the `other`; 1 where nothing tells; None if they are not of one kind."""
    if "label" in (counts, other):
        return None
    if counts == other or not other:
        return 1.0
    if counts in UNITS and other in UNITS:
        (dimension, size), (other_dimension, other_size) = UNITS[counts], UNITS[other]
        return other_size / size if dimension == other_dimension else None
    return None if counts else 1.0
