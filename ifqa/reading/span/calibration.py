"""How sure the extractive reader is: features of a question's candidates, and the calibration that makes a probability of them.

The calibration is a logistic regression. `ifqa train calibration` fits it on questions that the reader was not trained on, and
writes it beside the weights as `calibration.json`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ifqa.errors import IfqaError
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import Share, StoredModel, parse_stored
from ifqa.storage.files import read_json

CALIBRATION_FILE = "calibration.json"
VERSION = 2  # raise it when a feature is computed differently
_WORD = re.compile(r"[^\W_][\w'’.-]*")
_FARTHEST = 10.0  # of log probabilities: exp(-10) is as good as none
_COMMON = frozenset(
    """a about after also an and are as at be been before but by can could did do does for from had has have he her his how if
    in instead into is it its many might more most much no not of on one only or other she should some than that the their them
    then there they this to was were what when where which while who whom whose why will with without would""".split()
)

Feature = Literal["log_probability", "margin", "score", "agreement", "passages", "known", "known_anywhere", "names",
                  "words", "repeated", "number"]  # fmt: skip
CandidateScore = tuple[float, str, int]  # a candidate: its score, its normalised text, the place of its passage


def confidence_features(
    question: str, texts: Sequence[str], scored: Sequence[CandidateScore], chosen: str
) -> dict[str, float]:
    """What tells right answers from wrong ones.

    Args:
        question: the question's text.
        texts: the passages' texts, best first.
        scored: the best candidates of every passage; their scores are compared over all passages.
        chosen: the normalised text of the answer, which is not empty and is among the candidates.

    Returns:
        log_probability: of the answer, among all candidates of all passages.
        margin: the log of how much more probable it is than the second answer.
        score: of its best candidate, before the softmax.
        agreement: the share of the passages whose own best candidate is the answer.
        passages: the log of their number.
        known: the share of the question's content words that stand in the passage of the answer's best candidate.
        known_anywhere: the share that stands in any passage.
        names: the share of the question's names and numbers that stands in any passage; 1 if the question has none.
        words: the log of the answer's number of words.
        repeated: 1 if the answer stands in the question.
        number: 1 if the answer has a digit.
    """
    best = max(score for score, _, _ in scored)
    weights: dict[str, float] = defaultdict(float)
    own: dict[int, tuple[float, str]] = {}
    for score, text, place in scored:
        weights[text] += math.exp(score - best)
        own[place] = max(own.get(place, (-math.inf, "")), (score, text))
    weights.pop("", None)
    second = max((weight for text, weight in weights.items() if text != chosen), default=0.0)
    score, place = max((score, -place) for score, text, place in scored if text == chosen)
    asked, named = set(_content(question)), _names(question)
    found = [asked & set(_content(text)) for text in texts]
    anywhere = set[str]().union(*found)
    return {
        "log_probability": _log(weights[chosen] / sum(weights.values())),
        "margin": -_log(second / weights[chosen]),
        "score": score,
        "agreement": sum(text == chosen for _, text in own.values()) / len(texts),
        "passages": math.log(len(texts)),
        "known": len(found[-place]) / max(1, len(asked)),
        "known_anywhere": len(anywhere) / max(1, len(asked)),
        "names": len(named & anywhere) / len(named) if named else 1.0,
        "words": math.log(len(chosen.split())),
        "repeated": float(f" {chosen} " in f" {normalize(question)} "),
        "number": float(bool(re.search(r"\d", chosen))),
    }


def _log(share: float) -> float:
    return max(math.log(share), -_FARTHEST) if share > 0 else -_FARTHEST


def _content(text: str) -> list[str]:
    """The content words of a text, normalised and cut to six letters, so that "direct" and "directed" are the same."""
    return [word[:6] for word in normalize(text.replace("'s", " ").replace("’s", " ")).split() if word not in _COMMON]


def _names(question: str) -> set[str]:
    """The content words with a capital or a digit at their beginning, but for the question's first word."""
    return set(
        _content(" ".join(word for word in _WORD.findall(question)[1:] if word[0].isupper() or word[0].isdigit()))
    )


class Calibration(StoredModel):
    """A logistic regression over features; an opened system gives no answer of less confidence than `threshold`.

    `version` is `VERSION`, and `weights` the hash of the reader's weights that it was fitted for.
    """

    intercept: float
    coefficients: dict[Feature, float]
    threshold: Share = 0.0
    version: int = 0
    weights: str = ""

    def confidence(self, found: Mapping[str, float]) -> float:
        """The probability that an answer with these features is right."""
        odds = self.intercept + math.fsum(weight * found[name] for name, weight in self.coefficients.items())
        return 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))


def load_calibration(folder: Path, weights: str) -> Calibration | None:
    """The calibration beside the reader's weights, whose hash is `weights`; None if there is none."""
    path = folder / CALIBRATION_FILE
    if not path.exists():
        return None
    again = f"fit it again: ifqa train calibration --to {folder}"
    stored = parse_stored(Calibration, read_json(path), str(path), again)
    if stored.version != VERSION:
        raise IfqaError(f"{path}: version {stored.version}, wanted {VERSION}; {again}")
    if stored.weights != weights:
        raise IfqaError(f"{path} was fitted for other weights than those beside it; {again}, or remove the file")
    return stored
