"""Fits a language model's confidence: a logistic regression on its right and wrong answers to
training questions, for one model, prompt and way to sample.
"""

import json
import logging
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ifqa.errors import ConfigError, IfqaError
from ifqa.formatting import pluralize
from ifqa.llms.budget import refuse_failures
from ifqa.progress import bar
from ifqa.protocols import TrainingData
from ifqa.reading.llm import Llm
from ifqa.reading.llm_confidence import (
    OF_LOGPROBS,
    VERSION,
    Features,
    Fit,
    LlmCalibration,
    calibration_path,
    fitted_confidence,
    has_logprobs,
)
from ifqa.scoring.measures.confidence import AUROC, BRIER, ECE, EM_50, EM_80
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.scoring.statistics import ColumnStatistic, to_percent
from ifqa.storage.files import write_json
from ifqa.training.trainer import assign_folds, fit_logistic

logger = logging.getLogger(__name__)

_BATCH = 16  # questions that an interrupted training reads again; their completions are stored
FEWEST = 30  # answers that a fit needs
#: How often a right answer has more confidence than a wrong one. The AUROC of scores compares other
#: classes: questions with a gold passage, and without.
RIGHT_AUROC = "AUROC of right answers"


class LlmAnswer(NamedTuple):
    """A model's answer to a training question."""

    fold: int
    right: bool
    features: Features  # empty without an answer


def train_llm_calibration(
    reader: Llm, dataset: TrainingData, count: int, folds: int, seed: int, root: Path = Path()
) -> Path:
    """Ask the model `count` questions, fit its confidence, and write the file that the reader looks
    for; returns its path.

    Raises:
        ConfigError: no question has an answer, or there are fewer questions than a fit needs.
        ServiceError: requests failed that may succeed later, or a cap was reached.
        IfqaError: there are too few answers, or all are right, or all are wrong.
    """
    chosen = _draw(dataset, count, seed)
    if len(chosen.questions) < FEWEST:
        raise ConfigError(
            f"found {pluralize(len(chosen.questions), 'question')}; wanted {FEWEST} or more to fit "
            "a confidence (--set questions=300, and a file with as many)"
        )
    prompt = reader.prompt_name
    asked = pluralize(len(chosen.questions), "question")
    seen = [file for file, digest in dataset.sources.items() if digest in reader.trained_on]
    if seen:
        logger.warning(
            f"{reader.llm.name} was tuned on {', '.join(seen)}: it answers these questions more "
            "often than others, so its confidence will be too high; wanted a --split that it has "
            "not seen"
        )
    estimate = reader.llm.estimate(reader.requests(chosen.questions, chosen.rankings))
    logger.info(f"asking {reader.llm.name} {asked} with the prompt {prompt}: {estimate}")
    rows = _ask(reader, chosen, assign_folds(chosen.questions, folds, seed))
    path = calibration_path(root, reader.llm.name, prompt, reader.sampling)
    with_logprobs, without_logprobs = fit_answers(rows)
    measured = cross_validate_answers(rows)
    calibration = LlmCalibration(
        version=VERSION,
        model=reader.llm.name,
        prompt=prompt,
        prompt_sha256=reader.prompt_sha256,
        span_weights=reader.span_weights,
        samples=reader.samples,
        temperature=reader.temperature,
        with_logprobs=with_logprobs,
        without_logprobs=without_logprobs,
        fitted_on={
            "sources": dict(dataset.sources),
            "questions": len(rows),
            "answered": sum(bool(row.features) for row in rows),
            "right": sum(row.right for row in rows),
            "folds": folds,
            "seed": seed,
        },
        measured=measured,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, calibration.model_dump())
    logger.info(f"{path}: {json.dumps(measured)}")
    return path


def _draw(dataset: TrainingData, count: int, seed: int) -> TrainingData:
    """The questions to ask, among those with an answer."""
    answered = [n for n, question in enumerate(dataset.questions) if question.answers]
    if not answered:
        raise ConfigError("no training question has an answer; wanted annotated questions")
    random.Random(seed).shuffle(answered)
    return dataset.select(sorted(answered[:count]))


def _ask(reader: Llm, dataset: TrainingData, folds: Sequence[int]) -> list[LlmAnswer]:
    rows = list[LlmAnswer]()
    count = len(dataset.questions)
    with bar("asking", count) as advance:
        for start in range(0, count, _BATCH):
            part = dataset.select(range(start, min(start + _BATCH, count)))
            replies = reader.explain(reader.ask(part.questions, part.rankings, advance))
            failed = reader.usage().get("retry", 0)  # a fit would count them as wrong
            what = f"{pluralize(failed, 'question')} not answered"
            refuse_failures(failed, [reply.prediction.error for reply in replies], what)
            for fold, reply in zip(folds[start:], replies, strict=False):
                answer = reply.prediction.answer
                right = bool(answer) and exact_match(answer, reply.question.answers) > 0
                rows.append(LlmAnswer(fold, right, reader.features(reply)))
    return rows


def fit_answers(rows: Sequence[LlmAnswer]) -> tuple[Fit | None, Fit]:
    """The fits for replies with and without log probabilities.

    None for the first if fewer than 30 replies have them.

    Raises:
        IfqaError: fewer than 30 answers, or all are right, or all are wrong.
    """
    answered = [row for row in rows if row.features]
    right = sum(row.right for row in answered)
    if len(answered) < FEWEST or right in (0, len(answered)):
        raise IfqaError(
            f"{right} of {len(answered)} answers are right; wanted {FEWEST} answers or more, some "
            "right and some wrong: ask more questions, or another model"
        )
    complete = [row for row in answered if has_logprobs(row.features)]
    some = 0 < sum(row.right for row in complete) < len(complete)
    with_logprobs = None
    if some and len(complete) >= FEWEST:
        with_logprobs = _fit(complete, lambda name: True)
    return with_logprobs, _fit(answered, lambda name: name not in OF_LOGPROBS)


def _fit(rows: Sequence[LlmAnswer], takes: Callable[[str], bool]) -> Fit:
    """The fit over the features whose names it `takes`."""
    features = [
        {name: value for name, value in row.features.items() if takes(name)} for row in rows
    ]
    intercept, coefficients = fit_logistic(features, [row.right for row in rows])
    return Fit(intercept=intercept, coefficients=coefficients)


def cross_validate_answers(rows: Sequence[LlmAnswer]) -> dict[str, float | None]:
    """Measures of each fold's confidences when fitted on the other folds, in percent.

    Over all questions: one without an answer is wrong, with a confidence of 0. None where a measure
    is undefined; empty if the other folds of one have too few answers.
    """
    import numpy as np

    table = []
    for fold in sorted({row.fold for row in rows}):
        try:
            fits = fit_answers([row for row in rows if row.fold != fold])
        except IfqaError:
            return {}
        held_out = [row for row in rows if row.fold == fold]
        table += [[fitted_confidence(row.features, *fits), float(row.right)] for row in held_out]
    columns = np.array(table, float)
    measures = {RIGHT_AUROC: AUROC} | {each.name: each for each in (ECE, BRIER, EM_50, EM_80)}
    scores = {name: ColumnStatistic(each, columns).value for name, each in measures.items()}
    return {name: None if score is None else to_percent(score) for name, score in scores.items()}
