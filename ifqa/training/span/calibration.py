"""Fits the extractive reader's confidence: a logistic regression on what readers of folds get right and wrong.

A reader is surer of questions that it was trained on. So the training questions are cut into folds; for each fold a reader is
trained on the others, with the settings of the weights, and reads this one. Every question is read twice: from its retrieved
passages, and from the best of them that hold no gold passage, which the reader should not be sure of.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.progress import bar, say
from ifqa.protocols import Place
from ifqa.reading.span.confidence import FILE, VERSION, Calibration
from ifqa.reading.span.reader import Extractive
from ifqa.reading.span.weights import encoder_of, identity_of
from ifqa.records import Passage, Prediction, Question
from ifqa.scoring.columns import value_of
from ifqa.scoring.measures.confidence import AUROC, BRIER, ECE, EM_50
from ifqa.scoring.measures.covers import covers, overlaps
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.scoring.measures.normalize import normalize
from ifqa.settings import Positive, Share, checked
from ifqa.storage.files import read_json, write_json
from ifqa.training.material import Material
from ifqa.training.resume import damaged
from ifqa.training.span.folds import folds as folds_of
from ifqa.training.span.trainer import READING
from ifqa.training.span.trainer import train as train_reader

FOLDS, ROWS = "folds", "rows.json"
Asked = tuple[Question, Sequence[Passage]]  # a question and its ranking
_AT_ONCE = 32  # questions that are read together


class Row(TypedDict):
    """What a reader made of one question that it was not trained on."""

    fold: int
    id: str
    gold_read: bool  # whether a gold passage was among those it read
    removed: bool  # whether the gold passages were taken out
    right: bool
    features: Mapping[str, float]  # empty if it gave no answer


@checked("calibration setting", given=["material", "folder", "progress"])
def train(
    material: Material,
    folder: Path,
    *,
    seed: int = 0,
    folds: Annotated[int, Field(ge=2)] = 4,
    passages: Positive = 5,
    without_gold: Annotated[float, Field(ge=0, lt=1)] = 0.2,
    false_abstentions: Share = 0.1,
    average: Positive = 1,
    start: Place = "",
    encoder: Place = "",
    device: str = "cpu",
    progress: Callable[[str], None] = say,
) -> dict[str, Any]:
    """Train and read the folds, fit, and write `calibration.json` beside the weights.

    An interrupted run resumes: each fold's training in `folds/N/`, which also keeps what was read; the folds are reused while
    weights and settings stay the same. `folds/` may be removed afterwards.

    Args:
        material: the questions that the weights were trained on; no others, so that nothing is fitted on dev or test.
        folder: the folder of the weights.
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
        progress: called with a line at each step.

    Returns:
        The content of `calibration.json`.

    Raises:
        IfqaError: the weights are missing or damaged, were trained on other questions or on another encoder, or no answer is
            right, or all are.
    """
    manifest = _manifest(folder, material)
    own = str(encoder_of(folder, encoder).folder)
    chosen = {"average": average, "device": device, "encoder": own, "start": _start(folder, manifest, start)}
    settings = {**manifest["settings"], **chosen}
    of = folds_of(material.questions, folds, seed)
    rows: list[Row] = []
    for fold in range(folds):
        weights = folder / FOLDS / str(fold)
        asked = list(zip(material.questions, material.rankings, strict=True))
        held, others = (
            [one for one, own in zip(asked, of, strict=True) if (own == fold) is mine] for mine in (True, False)
        )
        progress(f"fold {fold + 1} of {folds}: {len(others)} questions to train on, {len(held)} to read")
        train_reader(_apart(material, others, held), weights, **settings, progress=progress)
        rows += _read(weights, own, fold, passages, device, held)
    fitted = fit(rows, without_gold, false_abstentions)
    content = {
        "version": VERSION, **fitted, "weights": identity_of(folder),
        "fitted_on": {"sources": material.sources, "folds": folds, "seed": seed, "average": average, "passages": passages,
                      "without_gold": without_gold, "false_abstentions": false_abstentions,
                      "questions": len(material.questions), "rows": len(rows)},
        "measured": cross_fitted(rows, without_gold, false_abstentions),
    }  # fmt: skip
    write_json(folder / FILE, content)
    progress(f"{folder / FILE}: {json.dumps(content['measured'])}")
    return content


def refuse(material: Material, folder: Path, *, start: Place = "", **_: object) -> None:
    """Raise the errors of `train` that need no rankings, before passages are retrieved; the arguments are those of `train`."""
    _start(folder, _manifest(folder, material), start)


def fit(rows: Sequence[Row], without_gold: float, false_abstentions: float) -> dict[str, Any]:
    """The "intercept", the "coefficients" and the "threshold" of a calibration; arguments are those of `train`.

    Raises:
        IfqaError: no answer is right, or all are.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    answered = [row for row in rows if row["features"]]
    right = np.array([row["right"] for row in answered])
    if len(set(right.tolist())) < 2:
        raise IfqaError(
            f"{int(right.sum())} of {len(answered)} answers on the folds are right; wanted some right and some wrong ones"
        )
    names = list(answered[0]["features"])
    values = np.array([[row["features"][name] for name in names] for row in answered])  # (rows, features)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread[spread < 1e-9] = 1.0  # a feature that never varies gets the coefficient 0
    found = LogisticRegression(C=1.0, max_iter=1_000)
    found.fit((values - mean) / spread, right, sample_weight=_weights(answered, without_gold))
    own = found.coef_[0] / spread
    coefficients = dict(zip(names, map(float, own), strict=True))
    calibration = Calibration(float(found.intercept_[0] - own @ mean), coefficients)
    sure = sorted(confidence_of(row, calibration) for row in rows if row["gold_read"])
    threshold = sure[int(false_abstentions * len(sure))] if sure and false_abstentions < 1 else 0.0
    return {"intercept": calibration.intercept, "coefficients": coefficients, "threshold": threshold}


def confidence_of(row: Row, calibration: Calibration) -> float:
    """The confidence of an answer; 0 if there is none."""
    return calibration.confidence(row["features"]) if row["features"] else 0.0


def cross_fitted(rows: Sequence[Row], without_gold: float, false_abstentions: float) -> dict[str, float | None]:
    """How well the confidences of each fold do that are fitted on the other folds.

    Returns:
        In percent: "ECE", "Brier", "EM-50" over the questions as they were retrieved; "AUROC" of the readings with a gold
        passage against those without, "false_abstentions" and "true_abstentions", the shares of these that are abstained
        from. None where it is not defined.
    """
    import numpy as np

    numbers, gold, kept, abstained = [], [], [], []
    for fold in sorted({row["fold"] for row in rows}):
        made = fit([row for row in rows if row["fold"] != fold], without_gold, false_abstentions)
        calibration = Calibration(made["intercept"], made["coefficients"])
        for row in (row for row in rows if row["fold"] == fold):
            sure = confidence_of(row, calibration)
            numbers.append([sure, float(row["right"])])
            gold.append([sure, float(row["gold_read"])])
            kept.append(not row["removed"])
            abstained.append(sure < made["threshold"])
    usual, read, none = np.array(numbers)[kept], np.array(gold), np.array(abstained)
    with_gold = read[:, 1] == 1
    values = {one.name: value_of(one, usual) for one in (ECE, BRIER, EM_50)} | {"AUROC": value_of(AUROC, read)}
    values |= {
        name: float(none[some].mean()) if some.any() else None
        for name, some in (("false_abstentions", with_gold), ("true_abstentions", ~with_gold))
    }
    return {name: None if value is None else round(100 * value, 2) for name, value in values.items()}


def _weights(rows: Sequence[Row], without_gold: float) -> list[float]:
    removed = sum(row["removed"] for row in rows)
    each = without_gold / (1 - without_gold) * (len(rows) - removed) / max(1, removed)
    return [each if row["removed"] else 1.0 for row in rows]


def _manifest(folder: Path, material: Material) -> dict[str, Any]:
    path = folder / "manifest.json"
    manifest = read_json(path) if path.exists() else None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("settings"), dict):
        raise IfqaError(f"{folder}: no weights with a manifest; train them first: ifqa train extractive --to {folder}")
    if file := damaged(folder, manifest.get("files", {})):
        raise IfqaError(f"{folder / file} is missing or altered; train the weights again")
    if sorted(manifest.get("sources", {}).values()) != sorted(material.sources.values()):
        raise IfqaError(
            f"{folder} was trained on {', '.join(manifest.get('sources', {})) or 'no file'}, not on "
            f"{', '.join(material.sources) or 'these questions'}; name its training split with --benchmark and --split"
        )
    return manifest


def _start(folder: Path, manifest: Mapping[str, Any], start: str) -> str:
    """The folder that the weights' training started from; empty if from the encoder itself."""
    wanted = manifest.get("start")
    if wanted is None:
        return ""
    found = Path(start or folder / READING)
    if not found.is_dir() or identity_of(found) != wanted["sha256"]:
        raise IfqaError(
            f"{folder} was trained from other weights than {found} holds; name the folder with --set start=, or train again: "
            "ifqa train extractive --reading"
        )
    return str(found)


def _apart(material: Material, others: Sequence[Asked], held: Sequence[Asked]) -> Material:
    """The material of the other folds, without the gold passages of the fold that is held out, even as negatives."""
    unseen = {normalize(text) for question, _ in held for text in question.gold_passages}
    rankings = [[one for one in ranking if normalize(one.text) not in unseen] for _, ranking in others]
    return Material([question for question, _ in others], rankings, material.family, material.sources)


def _read(weights: Path, encoder: str, fold: int, count: int, device: str, asked: Sequence[Asked]) -> list[Row]:
    """The rows of a fold, from what an earlier run kept if it was made from the same."""
    inputs = {"weights": identity_of(weights), "passages": count, "version": [VERSION, Extractive.version],
              "read": sha1(json.dumps([[one.id, one.answers, one.text, [p.text for p in ranking]]
                                       for one, ranking in asked]).encode(), usedforsecurity=False).hexdigest()}  # fmt: skip
    path = weights / ROWS
    kept: Any = read_json(path) if path.exists() else None
    if isinstance(kept, dict) and kept.get("inputs") == inputs:
        return list(kept["rows"])
    reader = Extractive(weights=str(weights), encoder=encoder, device=device)
    rows: list[Row] = []
    with bar(f"reading fold {fold + 1}", len(asked)) as advance:
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            both = [(question, _without_gold(question, ranking)) for question, ranking in some]
            for removed, several in ((False, some), (True, both)):
                read = [ranking[:count] for _, ranking in several]
                found = reader.read([question for question, _ in several], read)
                rows += [_row(fold, *one, removed) for one in zip(several, found, read, strict=True)]
            advance(len(some))
    write_json(path, {"inputs": inputs, "rows": rows})
    return rows


def _row(
    fold: int,
    asked: Asked,
    found: tuple[Prediction, Mapping[str, float]],
    read: Sequence[Passage],
    removed: bool,
) -> Row:
    (question, _), (prediction, own) = asked, found
    right = not prediction.failed and bool(exact_match(prediction.answer, question.answers))
    return {"fold": fold, "id": question.id, "removed": removed, "right": right, "features": own,
            "gold_read": any(covers(one.text, gold) for one in read for gold in question.gold_passages)}  # fmt: skip


def _without_gold(question: Question, ranking: Sequence[Passage]) -> list[Passage]:
    """The ranking's passages that share no run of 12 words with a gold passage."""
    return [one for one in ranking if not any(overlaps(one.text, gold) for gold in question.gold_passages)]
