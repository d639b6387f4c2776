"""Picks the passages that a counterfactual question can be written about: a cause is told, in the past tense.

The IfQA paper (Yu et al., EMNLP 2023) gave its annotators passages with the keywords "lead to", "cause", "because", "due to",
"originally" and "initially", in the past tense. How it matched them is not known. Here a keyword counts in all forms of its verb,
and the sentence with the keyword must have a verb in the past tense.
"""

import heapq
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from ifqa.corpus.passage_store import read_shard
from ifqa.corpus.sentences import split_sentences
from ifqa.records import Passage

#: The paper's keyword -> its forms.
KEYWORDS = {
    "lead to": r"(?:lead(?:s|ing)?|led) to",
    "cause": r"caus(?:e|es|ed|ing)",
    "because": r"because",
    "due to": r"due to",
    "originally": r"originally",
    "initially": r"initially",
}
_KEYWORD = re.compile(r"\b(?:" + "|".join(f"({forms})" for forms in KEYWORDS.values()) + r")\b", re.I)
_IRREGULAR = (
    "was were had did became began broke brought built came chose drew drove fell felt fought found flew forgot gave got grew "
    "held kept knew led left lent lost made meant met paid ran rose said sang sank saw sent shot sold spent spoke stood struck "
    "swam taught thought threw told took understood went withdrew won wore wrote"
).split()
#: Words before a participle that is no past tense: "is caused", "a united front", "the combined armies".
_NO_PAST = "is are be been being has have a an the and or".split()
_BEFORE = "".join(rf"(?<!\b{word} )" for word in _NO_PAST)
_PAST = re.compile(rf"(?<![\w-])(?:{'|'.join(_IRREGULAR)}|{_BEFORE}[a-z]{{2,}}ed)\b")


@dataclass(frozen=True, slots=True)
class CausalSentence:
    """Why a passage was picked: its first sentence with a keyword and a verb in the past tense."""

    keyword: str  # one of KEYWORDS
    sentence: str


def find_causal_sentence(text: str) -> CausalSentence | None:
    """The first sentence of a passage that tells a cause in the past tense; None if there is none."""
    if not _KEYWORD.search(text):
        return None
    for sentence in split_sentences(text):
        keyword = _KEYWORD.search(sentence)
        if keyword and keyword.lastindex and _PAST.search(sentence):
            return CausalSentence(list(KEYWORDS)[keyword.lastindex - 1], sentence.strip())
    return None


@dataclass
class PassageSample:
    """Counts of screened passages, and those drawn, each with its rank in the draw, lowest first."""

    passages: int = 0
    keywords: Counter[str] = field(default_factory=Counter)  # of the passages that are kept, each once
    kept: list[tuple[bytes, Passage, CausalSentence]] = field(default_factory=list)
    left: list[tuple[bytes, Passage]] = field(default_factory=list)


def sample_shard(path: Path, kept: int, left: int, seed: int) -> PassageSample:
    """Screen the passages of a shard, and draw some by a seed: of those that are kept, and of the others."""
    drawn = PassageSample()
    for passage in read_shard(path):
        reason, seeded = find_causal_sentence(passage.text), f"{seed} {passage.id}"
        rank = blake2b(seeded.encode("utf-8", "surrogatepass")).digest()
        drawn.passages += 1
        if reason:
            drawn.keywords[reason.keyword] += 1
            drawn.kept.append((rank, passage, reason))
        elif left:
            drawn.left.append((rank, passage))
    _truncate(drawn, kept, left)
    return drawn


def merge_samples(parts: Iterable[PassageSample], kept: int, left: int) -> PassageSample:
    """The counts of all shards, and the passages drawn from all of them; they depend neither on order nor on shards."""
    total = PassageSample()
    for part in parts:
        total.passages += part.passages
        total.keywords.update(part.keywords)
        total.kept += part.kept
        total.left += part.left
        _truncate(total, kept, left)
    return total


def _truncate(drawn: PassageSample, kept: int, left: int) -> None:
    drawn.kept = heapq.nsmallest(kept, drawn.kept, key=lambda ranked: ranked[0])
    drawn.left = heapq.nsmallest(left, drawn.left, key=lambda ranked: ranked[0])
