"""Answer recall: whether a passage holds an answer.

Gold passages of counterfactual questions often hold no answer (`ceiling`), and others hold it by
chance (`chance_floor`).
"""

import math
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from ifqa.protocols import RankingMeasure
from ifqa.records import Question


class _Spacing(dict[int, str]):
    """A table for `str.translate`: letters, numbers and marks stay, separators become a space,
    others get spaces around them.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)[0]
        if kind in "LNM":
            spaced = char
        elif kind in "ZC":
            spaced = " "
        else:
            spaced = f" {char} "
        self[code] = spaced
        return spaced


_SPACING = _Spacing()


def has_answer(text: str, answers: Collection[str]) -> bool:
    r"""Whether the text holds an answer's tokens in a row, as in DPR
    (dpr/data/qa_validation.py:119-201).

    Both are put into NFD; a token is a run of letters, numbers and marks, or another visible
    character (`[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]`); case is ignored. An answer without tokens is
    found in no text; in DPR, in every text.
    """
    if isinstance(answers, str):
        raise TypeError(
            "answers must be a collection of strings, not a string: its "
            "letters would be searched for"
        )
    line = token_line(text)
    return any(answer != " " and answer in line for answer in map(token_line, answers))


@lru_cache(maxsize=16_384)
def token_line(text: str) -> str:
    """The tokens, with a space before, between and after them; a single space if there are none."""
    tokens = unicodedata.normalize("NFD", text).translate(_SPACING).lower().split()
    return f" {' '.join(tokens)} " if tokens else " "


def answer_recall(
    question: Question, texts: Sequence[str], depths: Sequence[int]
) -> Mapping[int, float]:
    """1.0 for each depth K if one of the first K texts holds an answer, else 0.0.

    Empty for a question without answers.
    """
    if not question.answers:
        return {}
    ranked = enumerate(texts[: max(depths, default=0)], start=1)
    first = next((rank for rank, text in ranked if has_answer(text, question.answers)), math.inf)
    return {k: float(first <= k) for k in depths}


ANSWER = RankingMeasure("answer", answer_recall)


def ceiling(question: Question) -> float:
    """1.0 if a gold passage holds an answer, else 0.0: the mean is the answer recall of a perfect
    retriever.

    On IfQA it is .713 on full-dev and .647 on full-train; the other answers must be inferred.
    """
    return float(any(has_answer(text, question.answers) for text in question.gold_passages))


def chance_floor(
    questions: Sequence[Question], depths: Sequence[int] = ANSWER.depths
) -> dict[str, float]:
    """The exact expected answer recall of K random gold passages of other questions, as "answer@K",
    0..1.

    They are drawn without replacement from the distinct gold passages of all other `questions`; if
    fewer than K, all are taken.
    """
    pool = {text: token_line(text) for question in questions for text in question.gold_passages}
    numbers = {text: number for number, text in enumerate(pool)}
    # token -> the lines with it
    lines = [*pool.values()]
    holding = defaultdict[str, set[int]](set)
    for number, line in enumerate(lines):
        for token in line.split():
            holding[token].add(number)
    sums = dict.fromkeys(depths, 0.0)
    for question in questions:
        own = {numbers[text] for text in question.gold_passages}
        hits = set[int]()
        for answer in filter(str.strip, map(token_line, question.answers)):
            rarest = min((holding.get(token, set()) for token in answer.split()), key=len)
            hits |= {number for number in rarest if answer in lines[number]}
        others = len(pool) - len(own)
        misses = others - len(hits - own)
        for k in depths:
            size = min(k, others)
            sums[k] += 1 - math.comb(misses, size) / math.comb(others, size)
    return {f"answer@{k}": total / len(questions) for k, total in sums.items()}
