"""The extractive reader's confidence: features of a question's candidates, and a logistic
regression that calibrates them.

`ifqa train calibration` fits it on questions that the reader was not trained on, into
`calibration.json` next to the weights. `documents.json` has the thresholds for a user's own
documents; it is a file of its own because no scored run abstains by it, so it makes no reading
stale.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ifqa.errors import DamagedArtifact
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import Share, StoredModel, parse_stored
from ifqa.storage.files import read_json

CALIBRATION_FILE = "calibration.json"
DOCUMENTS_FILE = "documents.json"
VERSION = 3  # raise it when the file has other keys, or a feature is computed differently
_WORD = re.compile(r"[^\W_][\w'’.-]*")
_FARTHEST = 10.0  # log probabilities are at least minus this
_COMMON = frozenset(
    """
    a about after also an and are as at be been before but by can could did do does for from had has
    have he her his how if in instead into is it its many might more most much no not of on one only
    or other she should some than that the their them then there they this to was were what when
    where which while who whom whose why will with without would
    """.split()
)

Feature = Literal[
    "log_probability",
    "margin",
    "score",
    "agreement",
    "passages",
    "known",
    "known_anywhere",
    "names",
    "words",
    "repeated",
    "number",
]
# A candidate's score, normalised text, and its passage's place
CandidateScore = tuple[float, str, int]


def confidence_features(
    question: str, texts: Sequence[str], scored: Sequence[CandidateScore], chosen: str
) -> dict[str, float]:
    """Features that tell right answers from wrong ones.

    `texts` are the passages' texts, best first; `scored` the best candidates of every passage, with
    scores comparable across passages; `chosen` the answer's normalised text, which is among the
    candidates and not empty.
    """
    best = max(score for score, _, _ in scored)
    weights: dict[str, float] = defaultdict(float)
    passage_best: dict[int, tuple[float, str]] = {}
    for score, text, place in scored:
        weights[text] += math.exp(score - best)
        passage_best[place] = max(passage_best.get(place, (-math.inf, "")), (score, text))
    weights.pop("", None)
    second = max((weight for text, weight in weights.items() if text != chosen), default=0.0)
    score, place = max((score, -place) for score, text, place in scored if text == chosen)
    capitalised = [
        word for word in _WORD.findall(question)[1:] if word[0].isupper() or word[0].isdigit()
    ]
    query_words = _content_words(question)
    names = _content_words(" ".join(capitalised))
    overlaps = [query_words & _content_words(text) for text in texts]
    anywhere = set[str]().union(*overlaps)
    return {
        # Among all candidates of all passages
        "log_probability": _log(weights[chosen] / sum(weights.values())),
        # Log of how many times as probable as the second answer
        "margin": -_log(second / weights[chosen]),
        "score": score,  # the score of its best candidate, before the softmax
        "agreement": sum(text == chosen for _, text in passage_best.values()) / len(texts),
        "passages": math.log(len(texts)),
        # The question's words in its passage
        "known": len(overlaps[-place]) / max(1, len(query_words)),
        "known_anywhere": len(anywhere) / max(1, len(query_words)),
        # The question's names in any passage
        "names": len(names & anywhere) / len(names) if names else 1.0,
        "words": math.log(len(chosen.split())),
        # The question contains the answer
        "repeated": float(f" {chosen} " in f" {normalize(question)} "),
        "number": float(bool(re.search(r"\d", chosen))),
    }


def _log(share: float) -> float:
    return max(math.log(share), -_FARTHEST) if share > 0 else -_FARTHEST


def _content_words(text: str) -> set[str]:
    """A text's content words, normalised and cut to six letters, so that "direct" and "directed"
    match.
    """
    return {
        word[:6]
        for word in normalize(text.replace("'s", " ").replace("’s", " ")).split()
        if word not in _COMMON
    }


class Calibration(StoredModel):
    """A logistic regression over features, and the `answerable` below which an opened system
    abstains.
    """

    intercept: float
    coefficients: dict[Feature, float]
    answerable_threshold: Share = 0.0
    version: int = 0
    weights: str = ""  # hash of the reader's weights
    fitted_on: dict[str, Any] = Field(default_factory=dict)

    @property
    def sources(self) -> frozenset[str]:
        """SHA-256 of the files with the questions that it was fitted on."""
        return frozenset(self.fitted_on.get("sources", {}).values())

    def confidence(self, features: Mapping[str, float]) -> float:
        """The probability that an answer with these features is right."""
        odds = self.intercept + math.fsum(
            weight * features[name] for name, weight in self.coefficients.items()
        )
        return logistic(odds)


def logistic(odds: float) -> float:
    """The probability of log odds, without overflow."""
    return 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))


def load_calibration(folder: Path, weights: str) -> Calibration | None:
    """The calibration next to the reader's weights, whose hash is `weights`; None if absent."""
    path = folder / CALIBRATION_FILE
    if not path.exists():
        return None
    mend = f"fit it again: ifqa train calibration --to {folder}"
    calibration = parse_stored(Calibration, read_json(path), str(path), mend)
    if calibration.version != VERSION:
        raise DamagedArtifact(
            f"{path}: version {calibration.version}, wanted {VERSION}; {mend}, or remove the file"
        )
    if calibration.weights != weights:
        raise DamagedArtifact(
            f"{path} was not fitted for the weights next to it; {mend}, or remove the file"
        )
    return calibration


class DocumentThresholds(StoredModel):
    """The two probabilities below which an opened system abstains over a user's own documents, and
    the part of the likeliest passage's probability below which a passage is not read there (`skim`
    of the reader).

    `bench/document_thresholds.py` fits them on questions about documents, and measures them on
    others: `right` of `measured` questions with an answer.
    """

    confidence: Share
    answerable: Share
    skim: Share = 0.0
    weights: str  # hash of the reader's weights
    right: int = 0
    measured: int = 0


def load_document_thresholds(folder: Path, weights: str) -> DocumentThresholds | None:
    """`documents.json` next to the reader's weights, whose hash is `weights`; None if absent."""
    path = folder / DOCUMENTS_FILE
    if not path.exists():
        return None
    mend = "remove the file"
    thresholds = parse_stored(DocumentThresholds, read_json(path), str(path), mend)
    if thresholds.weights != weights:
        raise DamagedArtifact(f"{path} was not fitted for the weights next to it; {mend}")
    return thresholds
