"""Fits the extractive reader's confidence: a logistic regression on right and wrong answers to
questions it was not trained on.

A reader is overconfident on its own training questions, so each fold of them is read by a reader
trained on the other folds. Every question is read three times: as retrieved, without the gold
passages, where confidence should be low, and from the first passage alone, where all passages agree
and prove nothing by it.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field

from ifqa.errors import ConfigError, DamagedArtifact, IfqaError, MissingInput
from ifqa.progress import bar
from ifqa.protocols import NO_DATA, PathSetting, TrainerFlag, TrainingData
from ifqa.reading.llm import Llm
from ifqa.reading.llm_confidence import FOLDER as CALIBRATIONS
from ifqa.reading.span.calibration import CALIBRATION_FILE, VERSION, Calibration
from ifqa.reading.span.reader import Extractive as Reader
from ifqa.reading.span.reader import ReadAnswer, weights_folder
from ifqa.reading.span.weights import (
    fingerprint_weights,
    load_span_manifest,
    resolve_encoder,
)
from ifqa.records import Passage, Question
from ifqa.scoring.gold_overlap import overlaps
from ifqa.scoring.measures.confidence import AUROC, BRIER, ECE, EM_50
from ifqa.scoring.measures.exact_match import exact_match, normalize
from ifqa.scoring.statistics import ColumnStatistic, to_percent
from ifqa.settings import Natural, PartShare, PluginSettings, Positive, setting_fields
from ifqa.storage.files import read_json, write_json
from ifqa.training.checkpoints import MANIFEST, damaged_file
from ifqa.training.extractive import READING, Extractive
from ifqa.training.llm_calibration import train_llm_calibration
from ifqa.training.trainer import (
    BaseTrainer,
    assign_folds,
    configure_trainer,
    covers_gold,
    fingerprint_questions,
    fit_logistic,
)

logger = logging.getLogger(__name__)

FOLDS = "folds"
_BATCH = 32  # questions read together
#: Settings that a calibration names.
_SETTINGS = (
    "folds",
    "read_folds",
    "seed",
    "average",
    "passages",
    "without_gold",
    "false_abstentions",
)


class HeldOutPrediction(TypedDict):
    """A reader's prediction for a question that it was not trained on."""

    fold: int
    gold_read: bool  # whether the reader saw a gold passage
    answerable: float  # 0 without an answer
    removed: bool  # whether gold passages were removed from the ranking
    alone: bool  # whether only the first passage was read
    right: bool
    features: Mapping[str, float]  # empty without an answer


#: Settings that the confidence of a language model does not have.
_SPAN_ONLY = ("read_folds", *_SETTINGS[3:], "start", "teacher", "encoder", "device")


class CalibrationTrainer(BaseTrainer):
    """Fit a reader's confidence on training questions.

    The span reader's is fitted on folds of the questions that it was trained on; --to names its
    weights. That of a language model (--reader llm) is fitted for the model and the prompt of an
    --experiment, which also supplies the passages.
    """

    libraries = ("sklearn",)
    folder = "models/extractive"
    retrieved = 20
    takes_experiment = True

    class Settings(PluginSettings):
        reader: Annotated[Literal["extractive", "llm"], TrainerFlag()] = "extractive"
        """The reader whose confidence is fitted: extractive or llm."""
        questions: Positive = 300
        """Training questions that a language model is asked, drawn by the seed."""
        seed: Natural = 0
        """The seed that draws questions, and assigns them to folds."""
        folds: Annotated[int, Field(ge=2)] = 4
        """The number of folds; no two share a question or a gold passage."""
        read_folds: Natural = 0
        """Folds to train a reader for and to read; 0 for all, fewer are quicker."""
        passages: Positive = 5
        """Passages read per question."""
        without_gold: PartShare = 0.2
        """The total weight of the readings without gold passages."""
        false_abstentions: PartShare = 0.1
        """The share of the questions read with a gold passage that get an abstention."""
        average: Positive = 1
        """Trainings averaged for a fold's reader, however many the weights average."""
        start: PathSetting = ""
        """Where the weights' training started, if it had a start; empty for `reading` in the
        folder.
        """
        teacher: PathSetting = ""
        """The folder `folds` of the calibration of the weights' teacher, if they had one. Each
        fold's reader learns from the teacher that did not read the fold either.
        """
        encoder: PathSetting = ""
        """The encoder that the weights were trained on, as in the reader 'extractive'; empty for
        the name in their manifest.
        """
        device: str = "cpu"
        """The device: "cpu", "cuda", or "auto" for a GPU if present."""

    settings: Settings

    @property
    def fits_reader(self) -> bool:
        return self.settings.reader == "llm"

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        self._check_settings(folder)
        if self.fits_reader:
            return
        manifest = _read_manifest(folder)
        trained_on = manifest.get("sources", {})
        wanted = dataset.sources
        files = ", ".join(wanted) or "these questions"
        if sorted(trained_on.values()) != sorted(wanted.values()):
            mend = "name its training split with --benchmark and --split"
            raise ConfigError(
                f"{folder} was trained on {', '.join(trained_on) or 'no file'}, not on "
                f"{files}; {mend}"
            )
        if unknown := manifest["settings"].keys() - setting_fields(Extractive.Settings).keys():
            mend = f"train the weights again: ifqa train extractive --to {folder}"
            raise ConfigError(
                f"{folder} was trained by an earlier version of ifqa, with {min(unknown)!r}; {mend}"
            )
        _find_start(folder, manifest, self.settings.start)
        if bool(manifest.get("teacher")) != bool(self.settings.teacher):
            had = "had a teacher" if manifest.get("teacher") else "had no teacher"
            mend = "--set teacher= names the folder `folds` of a teacher's calibration"
            raise ConfigError(f"{folder}: these weights {had}; {mend}")

    def train(
        self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA
    ) -> dict[str, Any] | Path:
        """Fit on the folds, and write `calibration.json` next to the weights; returns its content.

        For a language model it returns the path of the file.

        The weights must be trained on the same questions. Folds resume from `folds/N/`, which may
        be removed afterwards.
        """
        self.check_data(dataset, folder)
        settings = self.settings
        if self.fits_reader:
            assert isinstance(self.opened_reader, Llm), "checked when it was opened"
            return train_llm_calibration(
                self.opened_reader, dataset, settings.questions, settings.folds, settings.seed
            )
        shares = (settings.without_gold, settings.false_abstentions)
        manifest = _read_manifest(folder)
        encoder = str(resolve_encoder(folder, settings.encoder).folder)
        reader_settings = {
            **manifest["settings"],
            "average": settings.average,
            "device": settings.device,
            "encoder": encoder,
            "start": _find_start(folder, manifest, settings.start),
        }
        fold_of = assign_folds(dataset.questions, settings.folds, settings.seed)
        rows: list[HeldOutPrediction] = []
        n_read = min(settings.read_folds or settings.folds, settings.folds)
        for fold in range(n_read):
            held_out = dataset.select([n for n, number in enumerate(fold_of) if number == fold])
            others = dataset.select([n for n, number in enumerate(fold_of) if number != fold])
            counts = f"{len(others.questions)} questions, reading {len(held_out.questions)}"
            logger.info(f"fold {fold + 1} of {settings.folds}: training on {counts}")
            reads = folder / FOLDS / str(fold)
            others = _exclude_gold(others, held_out)
            if settings.teacher:
                teacher = _find_fold(Path(settings.teacher) / str(fold), others)
                reader_settings |= {
                    "teacher": str(teacher),
                    "teacher_share": manifest["teacher"]["share"],
                }
            trainer = configure_trainer(Extractive, **reader_settings)
            trainer.train(others, reads)
            reader = Reader(
                Reader.Settings(weights=str(reads), encoder=encoder, device=settings.device)
            )
            rows += _read_fold(reader, fold, settings.passages, held_out)
        fitted = fit_calibration(rows, *shares)
        fitted_on: dict[str, Any] = {name: getattr(settings, name) for name in _SETTINGS}
        fitted_on |= {
            "sources": dataset.sources,
            "questions": sum(n < n_read for n in fold_of),
            "rows": len(rows),
        }
        measured = cross_validate(rows, *shares)
        content = {"version": VERSION, "weights": fingerprint_weights(folder), **fitted}
        content |= {"fitted_on": fitted_on, "measured": measured}
        write_json(folder / CALIBRATION_FILE, content)
        logger.info(f"{folder / CALIBRATION_FILE}: {json.dumps(measured)}")
        return content

    def _check_settings(self, folder: Path) -> None:
        """Refuse settings that the other reader has."""
        fields = setting_fields(self.Settings)
        changed = [
            name for name, field in fields.items() if getattr(self.settings, name) != field.default
        ]
        unused = _SPAN_ONLY if self.fits_reader else ("questions",)
        other = "extractive" if self.fits_reader else "llm"
        if wrong := [name for name in changed if name in unused]:
            raise ConfigError(f"training setting {wrong[0]}: only for --reader {other}; remove it")
        if self.fits_reader and folder != Path(self.folder):
            raise ConfigError(
                f"--to {folder} names weights of the span reader; a language model's calibration "
                f"goes to {CALIBRATIONS}; leave it out"
            )


def fit_calibration(
    rows: Sequence[HeldOutPrediction], without_gold: float, false_abstentions: float
) -> dict[str, Any]:
    """A calibration's "intercept", "coefficients" and "answerable_threshold".

    Arguments are as in `CalibrationTrainer`.
    """
    answered = [row for row in rows if row["features"]]
    right = [row["right"] for row in answered]
    if len(set(right)) < 2:
        problem = f"{sum(right)} of {len(answered)} answers on the folds are right"
        raise IfqaError(f"{problem}; wanted some right and some wrong answers")
    removed = sum(row["removed"] for row in answered)
    # For a row without gold
    weight = without_gold / (1 - without_gold) * (len(answered) - removed) / max(1, removed)
    weights = [weight if row["removed"] else 1.0 for row in answered]
    intercept, coefficients = fit_logistic([row["features"] for row in answered], right, weights)
    fitted: dict[str, Any] = {"intercept": intercept, "coefficients": coefficients}
    answerable = sorted(row["answerable"] for row in rows if row["gold_read"] and not row["alone"])
    threshold = answerable[int(false_abstentions * len(answerable))] if answerable else 0.0
    return fitted | {"answerable_threshold": threshold}


def confidence_of(row: HeldOutPrediction, calibration: Calibration) -> float:
    return calibration.confidence(row["features"]) if row["features"] else 0.0


def cross_validate(
    rows: Sequence[HeldOutPrediction], without_gold: float, false_abstentions: float
) -> dict[str, float | None]:
    """Measures of each fold's confidences when fitted on the other folds, in percent.

    None where undefined.

    "ECE", "Brier" and "EM-50" are over the questions as retrieved, "ECE alone" over the first
    passages. "AUROC of answerable" compares readings with and without a gold passage;
    "false_abstentions" and "true_abstentions" are the shares of these two that are below the
    threshold. Empty if only one fold was read.
    """
    import numpy as np

    table = []
    folds = sorted({row["fold"] for row in rows})
    if len(folds) < 2:
        return {}
    for fold in folds:
        fitted = fit_calibration(
            [row for row in rows if row["fold"] != fold], without_gold, false_abstentions
        )
        calibration = Calibration.model_validate(fitted)
        for row in (row for row in rows if row["fold"] == fold):
            measured = (
                confidence_of(row, calibration),
                row["right"],
                row["answerable"],
                row["gold_read"],
            )
            abstains = row["answerable"] < calibration.answerable_threshold
            table.append([*measured, abstains, row["removed"], row["alone"]])
    confidence, right, answerable, gold_read, abstentions, removed, alone = np.array(table, float).T
    answers = np.stack([confidence, right], 1)
    readings = np.stack([answerable, gold_read], 1)
    together = alone == 0
    retrieved = answers[together & (removed == 0)]
    scores = {
        measure.name: ColumnStatistic(measure, retrieved).value for measure in (ECE, BRIER, EM_50)
    }
    scores["ECE alone"] = ColumnStatistic(ECE, answers[alone == 1]).value
    scores["AUROC of answerable"] = ColumnStatistic(AUROC, readings[together]).value
    for name, read in (("false_abstentions", 1), ("true_abstentions", 0)):
        part = together & (gold_read == read)
        scores[name] = float(abstentions[part].mean()) if part.any() else None
    return {name: None if score is None else to_percent(score) for name, score in scores.items()}


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    manifest = read_json(path) if path.exists() else None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("settings"), dict):
        raise MissingInput(
            f"{folder}: no weights with a manifest; train them: ifqa train extractive --to {folder}"
        )
    if file := damaged_file(folder, manifest.get("files", {})):
        raise DamagedArtifact(f"{folder / file} is missing or altered; train the weights again")
    return manifest


def _find_start(folder: Path, manifest: Mapping[str, Any], start: str) -> str:
    """The folder that the weights' training started from.

    Empty if it started from the encoder itself.
    """
    if (recorded := manifest.get("start")) is None:
        return ""
    source = weights_folder(start) if start else folder / READING
    if not source.is_dir() or fingerprint_weights(source) != recorded["sha256"]:
        mend = "name the folder with --set start=, or train again: ifqa train extractive --reading"
        raise ConfigError(f"{folder} was not trained from the weights in {source}; {mend}")
    return str(source)


def _find_fold(teacher: Path, others: TrainingData) -> Path:
    """The folder of a fold's teacher; ConfigError if it was not trained on these questions."""
    if load_span_manifest(teacher).get("questions") != fingerprint_questions(others):
        raise ConfigError(
            f"{teacher} was not trained on the other folds' questions; wanted the folder of its "
            "calibration with the same folds and seed"
        )
    return teacher


def _exclude_gold(others: TrainingData, held_out: TrainingData) -> TrainingData:
    """The other folds without the held-out fold's gold passages, even as negatives."""
    unseen = {normalize(text) for question in held_out.questions for text in question.gold_passages}
    rankings = [
        [each for each in ranking if normalize(each.text) not in unseen]
        for ranking in others.rankings
    ]
    return replace(others, rankings=rankings, scores=())


def _read_fold(
    reader: Reader, fold: int, most: int, held_out: TrainingData
) -> list[HeldOutPrediction]:
    """Read each question of a fold: as retrieved, without the passages that overlap a gold one, and
    from the first alone.
    """
    rows: list[HeldOutPrediction] = []
    with bar(f"reading fold {fold + 1}", len(held_out.questions)) as advance:
        for start in range(0, len(held_out.questions), _BATCH):
            questions = held_out.questions[start : start + _BATCH]
            rankings = held_out.rankings[start : start + _BATCH]
            without_gold = [
                [
                    each
                    for each in ranking
                    if not any(overlaps(each.text, gold) for gold in question.gold_passages)
                ]
                for question, ranking in zip(questions, rankings, strict=True)
            ]
            readings = [
                (question, ranking[: 1 if alone else most], removed, alone)
                for lists, removed, alone in (
                    (rankings, False, False),
                    (without_gold, True, False),
                    (rankings, False, True),
                )
                for question, ranking in zip(questions, lists, strict=True)
            ]
            # Together, because a passage of several readings is then read once
            answers = reader.read(
                [question for question, *_ in readings], [shown for _, shown, *_ in readings]
            )
            rows += [
                _row(fold, question, answer, shown, removed, alone)
                for (question, shown, removed, alone), answer in zip(readings, answers, strict=True)
            ]
            advance(len(questions))
    return rows


def _row(
    fold: int,
    question: Question,
    answer: ReadAnswer,
    shown: Sequence[Passage],
    removed: bool,
    alone: bool,
) -> HeldOutPrediction:
    prediction = answer.prediction
    right = not prediction.failed and bool(exact_match(prediction.answer, question.answers))
    gold_read = any(covers_gold(passage.text, question) for passage in shown)
    return {
        "fold": fold,
        "gold_read": gold_read,
        "answerable": prediction.answerable or 0.0,
        "removed": removed,
        "alone": alone,
        "right": right,
        "features": answer.features,
    }
