"""Retrieval scores of one question: gold recall and answer recall, 0 or 1 at each cutoff.

Gold recall asks whether annotated passages were found. Dumps differ and so does the cutting into passages, so a gold
passage is recognised by its words. Answer recall asks whether a passage holds an answer; in counterfactual questions it
often need not (see `ceiling`), and may by accident (see `chance_floor`).
"""

import html
import math
import string
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache

from ifqa.errors import IfqaError
from ifqa.records import Question

CUTOFFS = (1, 5, 10, 20, 50, 100)
COVERED_SHARE = 0.4  # of a gold passage's 5-grams; cut in two anywhere, one half of a 100-word passage has 46 of 96
GRAM_WORDS = 5

_EDGE_MARKS = string.punctuation + "–—−‘’“”„«»…·•′″"


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
    line = _token_line(text)
    return any(answer != " " and answer in line for answer in map(_token_line, answers))


@lru_cache(maxsize=16_384)
def _token_line(text: str) -> str:
    """Tokens with one blank before, between and after them (no token holds one); a blank alone when there are none."""
    tokens = unicodedata.normalize("NFD", text).translate(_SPACING).lower().split()
    return f" {' '.join(tokens)} " if tokens else " "


def covers(passage_text: str, gold_text: str) -> bool:
    """Whether the passage holds at least 40% of the gold passage's distinct word 5-grams.

    Words are what white space parts, HTML entities resolved (the IfQA release writes "A&amp;M"), lower-cased,
    punctuation stripped from both ends. A gold of under five words must stand in the passage whole; one without words
    is covered by nothing.
    """
    return _covers(_words(passage_text), _gold_grams(gold_text))


def word_grams(text: str, size: int = GRAM_WORDS) -> frozenset[tuple[str, ...]]:
    """The distinct runs of `size` words in a text, words as in `covers`; the whole text as one run if it is shorter."""
    words = _words(text)
    size = min(size, len(words))
    return frozenset(zip(*(words[start:] for start in range(size)), strict=False))


_gold_grams = lru_cache(maxsize=1_024)(word_grams)  # one gold passage is held against a whole ranking


def _words(text: str) -> list[str]:
    return [bare for word in html.unescape(text).lower().split() if (bare := word.strip(_EDGE_MARKS))]


def _covers(words: list[str], gold: frozenset[tuple[str, ...]]) -> bool:
    if not gold:
        return False
    size = len(next(iter(gold)))
    shared = gold.intersection(zip(*(words[start:] for start in range(size)), strict=False))
    return len(shared) / len(gold) >= COVERED_SHARE


def score_ranking(question: Question, texts: Sequence[str], cutoffs: Sequence[int] = CUTOFFS) -> dict[str, float]:
    """Whether the first K passage texts of a ranking, best first, cover gold passages and hold an answer; 1.0 or 0.0.

    Keys for each K: "gold_any@K" and "gold_all@K" (any, or every, gold passage is covered; only if the question has
    gold passages) and "answer@K" (only if it has answers). A ranking shorter than K counts as it is.
    """
    depth = min(len(texts), max(cutoffs, default=0))
    scores: dict[str, float] = {}
    if question.gold_passages:
        passages = [_words(text) for text in texts[:depth]]
        firsts = [
            next((rank for rank, words in enumerate(passages, start=1) if _covers(words, grams)), math.inf)
            for grams in map(_gold_grams, question.gold_passages)
        ]
        scores |= {f"gold_any@{k}": float(min(firsts) <= k) for k in cutoffs}
        scores |= {f"gold_all@{k}": float(max(firsts) <= k) for k in cutoffs}
    if question.answers:
        ranked = enumerate(texts[:depth], start=1)
        first = next((rank for rank, text in ranked if has_answer(text, question.answers)), math.inf)
        scores |= {f"answer@{k}": float(first <= k) for k in cutoffs}
    return scores


def ceiling(question: Question) -> float:
    """1.0 when a gold passage holds an answer, else 0.0: the mean is the answer recall of a perfect retriever.

    Measured on IfQA: .713 on full-dev, .647 on full-train; the rest must be inferred and not found.

    Raises:
        IfqaError: the question has no gold passages.
    """
    if not question.gold_passages:
        raise IfqaError(f"{question.id}: found no gold passage, wanted one for a ceiling; annotate it or score none")
    return float(any(has_answer(text, question.answers) for text in question.gold_passages))


def chance_floor(questions: Sequence[Question], cutoffs: Sequence[int] = CUTOFFS) -> dict[str, float]:
    """Answer recall, "answer@K" for each K, expected of K random gold passages of other questions; exact, 0..1.

    Drawn without repetition from the distinct gold passages of all `questions` but the question's own; where there are
    fewer than K, all are taken.

    Raises:
        IfqaError: there are no questions.
    """
    if not questions:
        raise IfqaError("found no questions, wanted at least one for a chance floor; name a split that has some")
    pool = {text: _token_line(text) for question in questions for text in question.gold_passages}
    sums = dict.fromkeys(cutoffs, 0.0)
    for question in questions:
        answers = [line for line in map(_token_line, question.answers) if line != " "]
        others = [line for text, line in pool.items() if text not in question.gold_passages]
        misses = sum(not any(answer in line for answer in answers) for line in others)
        for k in cutoffs:
            drawn = min(k, len(others))
            sums[k] += 1 - math.comb(misses, drawn) / math.comb(len(others), drawn)
    return {f"answer@{k}": total / len(questions) for k, total in sums.items()}
