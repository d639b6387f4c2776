"""A small lexicon of words that say "more" and words that say "less", and what it tells about a text."""

import re

# Each pair is a word that says "more" and its opposite. The first pair of a word gives its opposite.
_PAIRS = """
more less, more fewer, most least, much little, many few, plenty little, lots few,
increase decrease, increases decreases, increased decreased, increasing decreasing, increase reduce, increases reduces,
increased reduced, increasing reducing, rise fall, rises falls, rising falling, rose fell, raise lower, raises lowers, raised lowered,
raised dropped, grow shrink, grows shrinks, growing shrinking, grew shrank, gain lose, gains loses, gained lost, gaining losing,
add remove, adds removes, added removed, adding removing, start stop, starts stops, started stopped, begin end, begins ends,
expand contract, expands contracts, multiply dwindle, multiplies dwindles, strengthen weaken, strengthens weakens,
speed slow, speeds slows, quicken slow, heat cool, heats cools, heated cooled, warm cool, warms cools, warmed cooled,
larger smaller, largest smallest, large small, bigger smaller, biggest smallest, big small, greater lesser, greatest least,
great small, higher lower, highest lowest, high low, taller shorter, tall short, longer shorter, longest shortest, long short,
wider narrower, wide narrow, deeper shallower, deep shallow, thicker thinner, thick thin, heavier lighter, heavy light,
stronger weaker, strongest weakest, strong weak, faster slower, fastest slowest, fast slow, quicker slower, quickly slowly,
warmer cooler, warmer colder, warm cold, hotter colder, hottest coldest, hot cold, brighter dimmer, bright dim, louder quieter,
fuller emptier, full empty, richer poorer, rich poor, better worse, best worst, good bad, older younger, denser sparser,
harder softer, rougher smoother, wetter drier, wet dry, healthier sicker, healthy sick, abundant scarce, often rarely, always never,
likely unlikely, able unable, happy unhappy, success failure, succeeds fails, succeed fail, survive die, survives dies, survived died
"""
_MORE: dict[str, str] = {}
_LESS: dict[str, str] = {}
for _pair in _PAIRS.replace("\n", " ").split(","):
    _up, _down = _pair.split()
    _MORE.setdefault(_up, _down)
    _LESS.setdefault(_down, _up)
_NEGATIONS = frozenset(
    "no not never none nothing nobody without hardly barely scarcely cannot lack lacks lacking absence absent".split()
)
_WORD = re.compile(r"[a-z]+(?:'t\b)?", re.IGNORECASE)


def direction(text: str) -> int:
    """1 if most of a text's words of the lexicon say "more", -1 if most say "less", else 0."""
    words = [word.lower() for word in _WORD.findall(text)]
    found = sum(word in _MORE for word in words) - sum(word in _LESS for word in words)
    return (found > 0) - (found < 0)


def polarity(text: str) -> int:
    """The direction of a description; a negation turns it round, and is "less" where nothing else is said."""
    words = {word.lower() for word in _WORD.findall(text)}
    found = direction(text)
    negated = any(word in _NEGATIONS or word.endswith("n't") for word in words)
    return (-found or -1) if negated else found


def opposite(text: str) -> str:
    """The text with every word of the lexicon replaced by its opposite, in the same case; empty if it has none."""
    swapped = _WORD.sub(_swap, text)
    return swapped if swapped != text else ""


def _swap(found: re.Match[str]) -> str:
    word = found[0]
    other = _MORE.get(word.lower()) or _LESS.get(word.lower()) or word
    return other.upper() if word.isupper() and len(word) > 1 else other.capitalize() if word[0].isupper() else other
