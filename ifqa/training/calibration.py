"""Fits the extractive reader's confidence: a logistic regression on what readers of folds get right and wrong.

A reader is surer of questions that it was trained on. So the training questions are cut into folds; for each fold a reader is
trained on the others, with the settings of the weights, and reads this one. Every question is read twice: from its retrieved
passages, and from the best of them that hold no gold passage, which the reader should not be sure of.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.models.devices import resolve_device
from ifqa.progress import bar
from ifqa.protocols import NO_DATA, PathSetting, TrainingData
from ifqa.reading.span.calibration import CALIBRATION_FILE, VERSION, Calibration
from ifqa.reading.span.reader import Extractive as Reader
from ifqa.reading.span.weights import fingerprint_weights, resolve_encoder
from ifqa.records import Passage, Prediction, Question
from ifqa.scoring.measures.confidence import AUROC, BRIER, ECE, EM_50
from ifqa.scoring.measures.exact_match import exact_match, normalize
from ifqa.scoring.measures.gold_recall import covers, overlaps
from ifqa.scoring.statistics import ColumnStatistic
from ifqa.settings import Natural, Positive, Share
from ifqa.storage.files import read_json, write_json
from ifqa.training.checkpoints import damaged_file
from ifqa.training.extractive import READING, Extractive
from ifqa.training.trainer import DataclassTrainer, configure_trainer
from ifqa.training.trainer import assign_folds as folds_of

logger = logging.getLogger(__name__)

FOLDS = "folds"
_BATCH = 32  # questions that are read together


class HeldOutPrediction(TypedDict):
    """What a reader made of one question that it was not trained on."""

    fold: int
    gold_read: bool  # whether a gold passage was among those it read
    removed: bool  # whether the gold passages were taken out
    right: bool
    features: Mapping[str, float]  # empty if it gave no answer


@dataclass(kw_only=True)
class CalibrationTrainer(DataclassTrainer):
    """Fit the span reader's confidence, on folds of its training questions; --to names its weights.

    Attributes:
        seed: of the cut into folds.
        folds: how many readers are trained; no two folds share a question or a gold passage.
        passages: passages read for each question.
        without_gold: the weight of the reading without gold passages, as a share of all.
        false_abstentions: the threshold lies where this share of the questions with a gold passage among those read are
            abstained from.
        average: seeds whose weights are averaged for each fold, whatever it was for the weights: each costs a training.
        start: where the weights' training started, if it did not start from the encoder itself; empty for `reading` in the
            folder. The folds' readers start there too: its reading questions are none of the folds'.
        encoder: as in `ifqa.reading.span.reader.Extractive`: empty for the encoder that the weights' manifest names.
        device: "cpu" or "cuda", to train and to read.
    """

    libraries = ("sklearn",)
    folder = "models/extractive"
    retrieved = 20

    seed: Natural = 0
    folds: Annotated[int, Field(ge=2)] = 4
    passages: Positive = 5
    without_gold: Annotated[float, Field(ge=0, lt=1)] = 0.2
    false_abstentions: Share = 0.1
    average: Positive = 1
    start: PathSetting = ""
    encoder: PathSetting = ""
    device: str = "cpu"

    def __post_init__(self) -> None:
        """Name the device, or refuse one that is not here."""
        self.device = resolve_device(self.device)

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Refuse weights that are missing or damaged, or were trained on other questions or on another encoder."""
        _check_start(folder, _read_manifest(folder, data), self.start)

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> dict[str, Any]:
        """Train and read the folds, fit, and write `calibration.json` beside the weights; gives its content.

        The questions are those that the weights were trained on; no others, so that nothing is fitted on dev or test. The folds'
        readers lie in `folds/N/`: an interrupted run goes on with them. `folds/` may be removed afterwards.
        """
        manifest = _read_manifest(folder, data)
        encoder = str(resolve_encoder(folder, self.encoder).folder)
        settings = {
            **manifest["settings"], "average": self.average, "device": self.device, "encoder": encoder,
            "start": _check_start(folder, manifest, self.start),
        }  # fmt: skip
        of = folds_of(data.questions, self.folds, self.seed)
        rows: list[HeldOutPrediction] = []
        for fold in range(self.folds):
            weights = folder / FOLDS / str(fold)
            held = data.select([n for n, place in enumerate(of) if place == fold])
            others = data.select([n for n, place in enumerate(of) if place != fold])
            trained, read = len(others.questions), len(held.questions)
            logger.info(f"fold {fold + 1} of {self.folds}: {trained} questions to train on, {read} to read")
            train_reader(_exclude_gold(others, held), weights, **settings)
            rows += _read_fold(
                Reader(weights=str(weights), encoder=encoder, device=self.device), fold, self.passages, held
            )
        content = {
            "version": VERSION,
            **fit_calibration(rows, self.without_gold, self.false_abstentions), "weights": fingerprint_weights(folder),
            "fitted_on": {"sources": data.sources, "folds": self.folds, "seed": self.seed, "average": self.average,
                          "passages": self.passages, "without_gold": self.without_gold,
                          "false_abstentions": self.false_abstentions, "questions": len(data.questions), "rows": len(rows)},
            "measured": cross_validate(rows, self.without_gold, self.false_abstentions),
        }  # fmt: skip
        write_json(folder / CALIBRATION_FILE, content)
        logger.info(f"{folder / CALIBRATION_FILE}: {json.dumps(content['measured'])}")
        return content


def train_reader(data: TrainingData, folder: Path, **settings: object) -> None:
    """Train the reader of a fold."""
    configure_trainer(Extractive, **settings).train(data, folder)


def fit_calibration(rows: Sequence[HeldOutPrediction], without_gold: float, false_abstentions: float) -> dict[str, Any]:
    """The "intercept", the "coefficients" and the "threshold" of a calibration; arguments are as in `CalibrationTrainer`."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    answered = [row for row in rows if row["features"]]
    right = np.array([row["right"] for row in answered])
    if len(set(right.tolist())) < 2:
        raise IfqaError(
            f"{int(right.sum())} of {len(answered)} answers on the folds are right; wanted some right and some wrong ones"
        )
    removed = np.array([row["removed"] for row in answered])
    each = without_gold / (1 - without_gold) * (~removed).sum() / max(1, removed.sum())
    names = list(answered[0]["features"])
    values = np.array([[row["features"][name] for name in names] for row in answered])  # (rows, features)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread[spread < 1e-9] = 1.0  # a feature that never varies gets the coefficient 0
    model = LogisticRegression(C=1.0, max_iter=1_000)
    model.fit((values - mean) / spread, right, sample_weight=np.where(removed, each, 1.0))
    slopes = model.coef_[0] / spread
    coefficients = dict(zip(names, map(float, slopes), strict=True))
    fitted = {"intercept": float(model.intercept_[0] - slopes @ mean), "coefficients": coefficients}
    calibration = Calibration.model_validate(fitted)
    sure = sorted(confidence_of(row, calibration) for row in rows if row["gold_read"])
    threshold = sure[int(false_abstentions * len(sure))] if sure and false_abstentions < 1 else 0.0
    return fitted | {"threshold": threshold}


def confidence_of(row: HeldOutPrediction, calibration: Calibration) -> float:
    """The confidence of an answer; 0 if there is none."""
    return calibration.confidence(row["features"]) if row["features"] else 0.0


def cross_validate(
    rows: Sequence[HeldOutPrediction], without_gold: float, false_abstentions: float
) -> dict[str, float | None]:
    """How well the confidences of each fold do that are fitted on the other folds, in percent; None where it is not defined.

    "ECE", "Brier" and "EM-50" are over the questions as they were retrieved, "AUROC" of the readings with a gold passage against
    those without; "false_abstentions" and "true_abstentions" are the shares of these that are abstained from.
    """
    import numpy as np

    numbers = []  # of each row: confidence, right, gold read, removed, abstained from
    for fold in sorted({row["fold"] for row in rows}):
        fitted = fit_calibration([row for row in rows if row["fold"] != fold], without_gold, false_abstentions)
        calibration = Calibration.model_validate(fitted)
        for row in (row for row in rows if row["fold"] == fold):
            sure = confidence_of(row, calibration)
            numbers.append([sure, row["right"], row["gold_read"], row["removed"], sure < fitted["threshold"]])
    table = np.array(numbers, float)
    usual, with_gold, abstained = table[table[:, 3] == 0][:, :2], table[:, 2] == 1, table[:, 4]
    values = {measure.name: ColumnStatistic(measure, usual).value for measure in (ECE, BRIER, EM_50)}
    values["AUROC"] = ColumnStatistic(AUROC, table[:, [0, 2]]).value
    for name, part in (("false_abstentions", with_gold), ("true_abstentions", ~with_gold)):
        values[name] = float(abstained[part].mean()) if part.any() else None
    return {name: None if value is None else round(100 * value, 2) for name, value in values.items()}


def _read_manifest(folder: Path, data: TrainingData) -> dict[str, Any]:
    path = folder / "manifest.json"
    manifest = read_json(path) if path.exists() else None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("settings"), dict):
        raise IfqaError(f"{folder}: no weights with a manifest; train them first: ifqa train extractive --to {folder}")
    if file := damaged_file(folder, manifest.get("files", {})):
        raise IfqaError(f"{folder / file} is missing or altered; train the weights again")
    if sorted(manifest.get("sources", {}).values()) != sorted(data.sources.values()):
        raise IfqaError(
            f"{folder} was trained on {', '.join(manifest.get('sources', {})) or 'no file'}, not on "
            f"{', '.join(data.sources) or 'these questions'}; name its training split with --benchmark and --split"
        )
    return manifest


def _check_start(folder: Path, manifest: Mapping[str, Any], start: str) -> str:
    """The folder that the weights' training started from; empty if from the encoder itself."""
    if (wanted := manifest.get("start")) is None:
        return ""
    place = Path(start or folder / READING)
    if not place.is_dir() or fingerprint_weights(place) != wanted["sha256"]:
        raise IfqaError(
            f"{folder} was trained from other weights than {place} holds; name the folder with --set start=, or train again: "
            "ifqa train extractive --reading"
        )
    return str(place)


def _exclude_gold(others: TrainingData, held: TrainingData) -> TrainingData:
    """The other folds, without the gold passages of the fold that is held out, even as negatives."""
    unseen = {normalize(text) for question in held.questions for text in question.gold_passages}
    rankings = [
        [passage for passage in ranking if normalize(passage.text) not in unseen] for ranking in others.rankings
    ]
    return TrainingData(others.questions, rankings, others.family, others.sources)


def _read_fold(reader: Reader, fold: int, count: int, held: TrainingData) -> list[HeldOutPrediction]:
    """The rows of a fold: each question read as it was retrieved, and without the passages that share text with a gold one."""
    rows: list[HeldOutPrediction] = []
    with bar(f"reading fold {fold + 1}", len(held.questions)) as advance:
        for start in range(0, len(held.questions), _BATCH):
            questions, rankings = held.questions[start : start + _BATCH], held.rankings[start : start + _BATCH]
            bare = [_remove_gold(*pair) for pair in zip(questions, rankings, strict=True)]
            for removed, lists in ((False, rankings), (True, bare)):
                shown = [ranking[:count] for ranking in lists]
                predictions = reader.read(questions, shown)
                rows += [_row(fold, *each, removed) for each in zip(questions, predictions, shown, strict=True)]
            advance(len(questions))
    return rows


def _row(
    fold: int, question: Question, read: tuple[Prediction, Mapping[str, float]], shown: Sequence[Passage], removed: bool
) -> HeldOutPrediction:
    prediction, features = read
    right = not prediction.failed and bool(exact_match(prediction.answer, question.answers))
    gold_read = any(covers(passage.text, gold) for passage in shown for gold in question.gold_passages)
    return {"fold": fold, "gold_read": gold_read, "removed": removed, "right": right, "features": features}


def _remove_gold(question: Question, ranking: Sequence[Passage]) -> list[Passage]:
    """The ranking's passages that share no run of 12 words with a gold passage."""
    return [passage for passage in ranking if not any(overlaps(passage.text, gold) for gold in question.gold_passages)]
