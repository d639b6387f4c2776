"""A lexicon for whether a text says "more" or "less", and for its opposite."""

import re

# Pairs of a word that says "more" and its opposite; a word's first pair gives its opposite. Words
# that often describe a thing, not a change ("rain falls", "a warm stove"), are left out.
_PAIRS = """
more less, more fewer, most least, much little, many few, plenty little, increase decrease,
increases decreases, increased decreased, increasing decreasing, increase reduce, increases reduces,
increased reduced, increasing reducing, raise lower, raises lowers, raised lowered, raised dropped,
raise drop, grow shrink, grows shrinks, growing shrinking, grew shrank, gain lose, gains loses,
gained lost, gaining losing, add remove, adds removes, added removed, adding removing, start stop,
starts stops, started stopped, starting stopping, expand contract, expands contracts,
multiply dwindle, multiplies dwindles, strengthen weaken, strengthens weakens, quicken slow,
quickens slows, survive die, survives dies, survived died, succeed fail, succeeds fails,
larger smaller, largest smallest, bigger smaller, biggest smallest, greater lesser, greatest least,
higher lower, highest lowest, taller shorter, longer shorter, longest shortest, wider narrower,
deeper shallower, thicker thinner, heavier lighter, stronger weaker, strongest weakest,
faster slower, fastest slowest, quicker slower, warmer cooler, warmer colder, hotter colder,
hottest coldest, brighter dimmer, louder quieter, fuller emptier, richer poorer, better worse,
best worst, older younger, denser sparser, harder softer, rougher smoother, wetter drier,
healthier sicker, abundant scarce, often rarely, always never, likely unlikely, able unable
"""
# So that in a dict the first pair of a word wins
_REVERSED = [pair.split() for pair in reversed(_PAIRS.split(","))]
_MORE = dict(_REVERSED)
_LESS = {less: more for more, less in _REVERSED}
_NEGATIONS = frozenset(
    (
        "no not none nothing nobody without hardly barely scarcely cannot "
        "lack lacks lacking absence absent"
    ).split()
)
_WORD = re.compile(r"[a-z]+(?:'t\b)?", re.IGNORECASE)


def direction(text: str) -> int:
    """1 if more of the text's words say "more" than "less" (by the lexicon), -1 if fewer do, else
    0.
    """
    words = [word.lower() for word in _WORD.findall(text)]
    balance = sum(word in _MORE for word in words) - sum(word in _LESS for word in words)
    return (balance > 0) - (balance < 0)


def polarity(text: str) -> int:
    """The direction of a description.

    A negation reverses it, or counts as "less" if there is no direction to reverse.
    """
    words = {word.lower() for word in _WORD.findall(text)}
    sign = direction(text)
    negated = any(word in _NEGATIONS or word.endswith("n't") for word in words)
    return (-sign or -1) if negated else sign


def opposite(text: str) -> str:
    """The text with each word of the lexicon replaced by its opposite, in the same case.

    Empty if it has none.
    """
    swapped = _WORD.sub(_swap, text)
    return swapped if swapped != text else ""


def _swap(match: re.Match[str]) -> str:
    word = match[0]
    other = _MORE.get(word.lower()) or _LESS.get(word.lower()) or word
    if word.isupper() and len(word) > 1:
        return other.upper()
    return other.capitalize() if word[0].isupper() else other
