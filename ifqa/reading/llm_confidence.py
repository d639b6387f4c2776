"""The confidence of a language model's answer: features of the reply, of its quote and of what the
span reader says, and a logistic regression over them that was fitted for the model and the prompt.

`ifqa train calibration --reader llm` fits it.
"""

import hashlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.formatting import pluralize
from ifqa.llms.logprobs import span_logprobs
from ifqa.reading.span.calibration import logistic
from ifqa.reading.span.reader import ReadAnswer
from ifqa.records import Completion, Prediction, Question
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.files import read_json

FOLDER = Path("models") / "calibrations"  # below the root
VERSION = 1  # raise it when the file has other keys, or a feature is computed differently
_FARTHEST = 10.0  # log probabilities and log odds are at most this far from 0
#: Features that only a reply with log probabilities has.
OF_LOGPROBS = ("log_probability", "mean_log_probability")

Features = Mapping[str, float]


class Sampling(NamedTuple):
    """How a question's answers are sampled, on which the agreement among them depends."""

    samples: int = 1
    temperature: float = 0.0

    def __str__(self) -> str:
        return f"{pluralize(self.samples, 'sample')} at temperature {self.temperature:g}"


ONE_ANSWER = Sampling()  # the reader's default, for which files without these keys count


def llm_features(
    question: Question,
    prediction: Prediction,
    completion: Completion,
    agreement: float,
    read: ReadAnswer | None,
) -> dict[str, float]:
    """Features that tell right answers from wrong ones.

    `completion` is the one that the answer was parsed from, `agreement` the share of the samples
    with the same answer, `read` what the span reader says of the same passages, if it read them.
    Without log probabilities those of `OF_LOGPROBS` are missing.
    """
    answer = normalize(prediction.answer)
    outcome = prediction.quote.outcome if prediction.quote else ""
    features = {
        "agreement": agreement,
        "quote_exact": float(outcome == "exact"),
        "quote_other": float(outcome == "other passage"),
        "quote_stitched": float(outcome == "stitched"),
        "supported": float(prediction.how is not None),
        "words": math.log(max(1, len(answer.split()))),
        "number": float(bool(re.search(r"\d", answer))),
        # The question contains the answer
        "repeated": float(f" {answer} " in f" {normalize(question.text)} "),
    }
    features |= _span_features(answer, read)
    return features | _logprob_features(prediction.answer, completion)


def _span_features(answer: str, read: ReadAnswer | None) -> dict[str, float]:
    """What the span reader says of an answer, which is normalised, and of the passages."""
    shares = {normalize(text): share for text, share in read.shares.items()} if read else {}
    share = shares.get(answer, 0.0)
    own = read.prediction if read else Prediction("", "")
    own_text = normalize(own.answer or own.candidate)
    is_best = bool(own_text) and answer == own_text
    sure = 0.0 if own.confidence is None else _log_odds(own.confidence)
    return {
        "span_share": max(math.log(share), -_FARTHEST) if share > 0 else -_FARTHEST,
        "span_same": float(is_best),
        # The span reader's confidence counts for its own answer, and against another
        "span_sure_of_it": sure if is_best else 0.0,
        "span_sure_of_other": 0.0 if is_best else sure,
        "answerable": 0.0 if own.answerable is None else _log_odds(own.answerable),
    }


def _logprob_features(answer: str, completion: Completion) -> dict[str, float]:
    """The log probability of the answer's tokens, and the mean of all; empty if unknown."""
    start = completion.text.rfind(answer)
    if not completion.logprobs or start < 0:
        return {}
    of_answer = span_logprobs(completion, start, start + len(answer))
    of_all = [logprob for _, logprob in completion.logprobs]
    return {
        "log_probability": max(math.fsum(of_answer), -_FARTHEST),
        "mean_log_probability": max(math.fsum(of_all) / len(of_all), -_FARTHEST),
    }


def _log_odds(share: float) -> float:
    nearest = logistic(-_FARTHEST)
    inner = min(max(share, nearest), 1 - nearest)
    return math.log(inner / (1 - inner))


class Fit(StoredModel):
    """A logistic regression over features."""

    intercept: float
    coefficients: dict[str, float]

    def confidence(self, features: Features) -> float:
        """The probability that an answer with these features is right."""
        odds = self.intercept + math.fsum(
            weight * features[name] for name, weight in self.coefficients.items()
        )
        return logistic(odds)


def has_logprobs(features: Features) -> bool:
    """Whether the features are of a reply with log probabilities."""
    return all(name in features for name in OF_LOGPROBS)


def fitted_confidence(
    features: Features, with_logprobs: Fit | None, without_logprobs: Fit
) -> float:
    """The probability that an answer is right, by the fit for its kind of reply.

    0 without features, that is without an answer.
    """
    if not features:
        return 0.0
    if with_logprobs is not None and has_logprobs(features):
        return with_logprobs.confidence(features)
    return without_logprobs.confidence(features)


class LlmCalibration(StoredModel):
    """What was fitted for a model, a prompt, and a way to sample answers.

    Attributes:
        model: the model's name with its server, under which its completions are stored.
        prompt: the prompt's name.
        prompt_sha256: of its file.
        span_weights: the hash of the weights of the span reader that read along; empty if none did.
        samples, temperature: of the reader; earlier files do not name them.
        with_logprobs: for replies with log probabilities; None if those that it was fitted on had
            none.
        without_logprobs: for all others.
    """

    version: int
    model: str
    prompt: str
    prompt_sha256: str
    span_weights: str
    samples: int = ONE_ANSWER.samples
    temperature: float = ONE_ANSWER.temperature
    with_logprobs: Fit | None
    without_logprobs: Fit
    fitted_on: dict[str, Any] = Field(default_factory=dict)
    measured: dict[str, Any] = Field(default_factory=dict)

    @property
    def sources(self) -> frozenset[str]:
        """SHA-256 of the files with the questions that it was fitted on."""
        return frozenset(self.fitted_on.get("sources", {}).values())

    def confidence(self, features: Features) -> float:
        """The probability that an answer with these features is right."""
        return fitted_confidence(features, self.with_logprobs, self.without_logprobs)


def calibration_path(root: Path, model: str, prompt: str, sampling: Sampling = ONE_ANSWER) -> Path:
    """The file of a model's calibration for a prompt and a way to sample."""
    names = [model, prompt]
    if sampling != ONE_ANSWER:
        names.append(str(sampling))
    words = re.sub(r"[^A-Za-z0-9.]+", "-", " ".join(names)).strip("-.")[:80]
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]
    return root / FOLDER / f"{words}-{digest}.json"


def calibrations_of(root: Path, prompt: str, sampling: Sampling = ONE_ANSWER) -> list[Path]:
    """The files of all models' calibrations for a prompt and a way to sample.

    A reading depends on them; which model reads is not known where this is asked.
    """
    files = sorted((root / FOLDER).glob("*.json"))
    return [path for path in files if _fitted_for(path) == (prompt, *sampling)]


def _fitted_for(path: Path) -> tuple[object, ...]:
    """The prompt and the sampling that a calibration was fitted for; empty for a damaged file."""
    try:
        content = read_json(path)
    except IfqaError:  # it is refused where it is used
        return ()
    if not isinstance(content, dict):
        return ()
    sampling = (content.get(name, default) for name, default in ONE_ANSWER._asdict().items())
    return (content.get("prompt"), *sampling)


def load_llm_calibration(
    path: Path, prompt_sha256: str, span_weights: str, sampling: Sampling = ONE_ANSWER
) -> tuple[LlmCalibration | None, str]:
    """The calibration in a file, and why there is none.

    One that was fitted for another text of the prompt, for other weights of the span reader, or for
    answers that are sampled in another way, is none.
    """
    mend = "remove the file, or fit it again"
    calibration = parse_stored(LlmCalibration, read_json(path), str(path), mend)
    same = (calibration.version, calibration.prompt_sha256, calibration.span_weights)
    if same != (VERSION, prompt_sha256, span_weights):
        return None, f"{path} was fitted for another version, prompt or span reader"
    fitted_for = Sampling(calibration.samples, calibration.temperature)
    if fitted_for != sampling:
        return None, f"{path} was fitted for {fitted_for}"
    return calibration, ""
