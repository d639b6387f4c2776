"""What makes a description of a change hard: the phenomena of the paper's section 5.4, as far as a rule can tell them.

The paper's authors labelled 200 descriptions by hand; these are rules of this project, each over the words of the change:

- qualitative: a word of the lexicon that says more or less ("hotter", "fewer", "grows"). A word that the paragraph uses too,
  such as "cools" of how rock forms, tells of the process; only "more", "less" and the like count all the same. The paper: 65%.
- lexical match: of a change within the paragraph, one sentence of the paragraph has all words but function words and those
  that say more or less, up to a suffix of inflection. The paper: 15% of these.
- negation: "not", "never", "no", "without" and the like. The paper: 6%.
- juxtaposed: words that say more and words that say less ("less of an increase"). The paper: 3%.

Commonsense (the paper: 45%) is told by no rule.
"""

import re
from collections.abc import Iterable, Sequence

from ifqa.reading.multiple_choice.wiqa_question import direction

PHENOMENA = {
    "qualitative": "whose change has a word that says more or less",
    "lexical match": "whose change is in the paragraph, and one of its sentences has the words of the change",
    "negation": "whose change is negated",
    "juxtaposed": "whose change has words that say more and words that say less",
}
_NEGATION = re.compile(
    r"\b(no|not|never|none|nothing|nobody|nowhere|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
_AMOUNTS = ("more", "less", "fewer", "most", "least", "many", "few", "much", "little")
_WORD = re.compile(r"[^\W\d_]+")
_ENDS = re.compile(r"n['’]t\b|['’]s\b")  # doesn't, the sun's
_FUNCTION = frozenset(
    "a an the this that these those it its they them their there here of to in into on onto at by for from with as and "
    "or but if when while is are was were be been being has have had do does did will would can could may might ca wo not no "
    "never without cannot about very too so than then also some any all each every one".split()
)
_SUFFIX = re.compile(r"(?<=..)(ies|es|s|ed|ing|e|y)$")


def phenomena(change: str, steps: Sequence[str], in_paragraph: bool) -> tuple[str, ...]:
    """The phenomena of a change, in the order of PHENOMENA.

    Args:
        change: the description of the change.
        steps: the sentences of the paragraph.
        in_paragraph: whether the change is one of the paragraph's own.
    """
    words, sentences = _words(change), [_stems(_words(step)) for step in steps]
    stems = set().union(*sentences) if sentences else set()
    directions = {word: direction(word) for word in words if word in _AMOUNTS or _stem(word) not in stems}
    wanted = _stems(word for word in words if word not in _FUNCTION and not directions.get(word))
    telling = {
        "qualitative": any(directions.values()),
        "lexical match": in_paragraph and bool(wanted) and any(wanted <= sentence for sentence in sentences),
        "negation": bool(_NEGATION.search(change)),
        "juxtaposed": {1, -1} <= {*directions.values()},
    }
    return tuple(name for name in PHENOMENA if telling[name])


def _words(text: str) -> list[str]:
    return _WORD.findall(_ENDS.sub("", text.lower()))


def _stems(words: Iterable[str]) -> set[str]:
    return {_stem(word) for word in words}


def _stem(word: str) -> str:
    return _SUFFIX.sub("", word)
