"""Selects passages for annotators: passages with a causal sentence in the past tense.

IfQA's annotators were given passages with one of six keywords in the past tense (Yu et al., EMNLP 2023). The paper does not say
how they were matched. Here a keyword matches in all forms of its verb, and its sentence must have a verb in the past tense.
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

#: Keyword of the paper -> its forms.
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
#: Words after which an -ed form is a participle: "is caused", "a united front", "the combined armies".
_NO_PAST = "is are be been being has have a an the and or".split()
_BEFORE = "".join(rf"(?<!\b{word} )" for word in _NO_PAST)
_PAST = re.compile(rf"(?<![\w-])(?:{'|'.join(_IRREGULAR)}|{_BEFORE}[a-z]{{2,}}ed)\b")


@dataclass(frozen=True, slots=True)
class CausalSentence:
    """A passage's first sentence with a keyword and a verb in the past tense."""

    keyword: str  # one of KEYWORDS
    sentence: str


def find_causal_sentence(text: str) -> CausalSentence | None:
    """The passage's first causal sentence in the past tense, or None."""
    if not _KEYWORD.search(text):  # saves splitting most passages
        return None
    for sentence in split_sentences(text):
        keyword = _KEYWORD.search(sentence)
        if keyword and keyword.lastindex and _PAST.search(sentence):
            return CausalSentence(list(KEYWORDS)[keyword.lastindex - 1], sentence.strip())
    return None


@dataclass
class PassageSample:
    """Counts of screened passages, and a random sample of them in the order of a random rank."""

    passages: int = 0
    keywords: Counter[str] = field(default_factory=Counter)  # one for each selected passage
    kept: list[tuple[bytes, Passage, CausalSentence]] = field(default_factory=list)
    left: list[tuple[bytes, Passage]] = field(default_factory=list)


def sample_shard(path: Path, kept: int, left: int, seed: int) -> PassageSample:
    """Screen a shard, and sample `kept` selected and `left` other passages by a seed."""
    sample = PassageSample()
    for passage in read_shard(path):
        sentence, seeded = find_causal_sentence(passage.text), f"{seed} {passage.id}"
        rank = blake2b(seeded.encode("utf-8", "surrogatepass")).digest()
        sample.passages += 1
        if sentence:
            sample.keywords[sentence.keyword] += 1
            sample.kept.append((rank, passage, sentence))
        elif left:
            sample.left.append((rank, passage))
    _truncate(sample, kept, left)
    return sample


def merge_samples(parts: Iterable[PassageSample], kept: int, left: int) -> PassageSample:
    """Merge the samples of shards; their order and their boundaries do not matter."""
    total = PassageSample()
    for part in parts:
        total.passages += part.passages
        total.keywords.update(part.keywords)
        total.kept += part.kept
        total.left += part.left
        _truncate(total, kept, left)
    return total


def _truncate(sample: PassageSample, kept: int, left: int) -> None:
    sample.kept = heapq.nsmallest(kept, sample.kept, key=lambda ranked: ranked[0])
    sample.left = heapq.nsmallest(left, sample.left, key=lambda ranked: ranked[0])
