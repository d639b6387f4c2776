"""Fits the two probabilities below which the span reader abstains over a user's own documents.

    python bench/document_thresholds.py ANSWERS.jsonl ... [--measure ANSWERS.jsonl ...] \
        [--weights extractive-large] [--skim 0.01] [--write]

ANSWERS are files that `bench/own_questions.py --to` wrote with these weights; a file's name is the
name of its set. On the first ones together, the confidence is fitted that one in ten of the right
answers is below, and the `answerable` that one in twenty is below. An answer is right by exact
match; every answer to a question without one is wrong. --write stores both in `documents.json` next
to the weights, with how many answers are right of the questions with an answer in --measure, and
with --skim, the reader's setting that the answers were read with.

It prints, for each file: right and wrong answers and abstentions, for questions with an answer and
without, under the calibration's threshold of `answerable` (as before these two were fitted) and
under both thresholds; and the wrong answers that are more than 50% sure. For the files that are
fitted on together, it also prints what the thresholds of the others give on each.

Before these lines it prints what no threshold decides, for each file and for the fitted ones
together: EM if every question is answered, the AUROC of `answerable`, and the share of the
questions without an answer that is withheld where `answerable` withholds a tenth of the others.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sklearn.metrics import roc_auc_score

from ifqa.errors import FormatError, IfqaError, MissingInput
from ifqa.reading.span.calibration import DOCUMENTS_FILE, load_calibration
from ifqa.reading.span.reader import weights_folder
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.storage.files import read_jsonl, write_json

UNSURE = 0.1  # share of the right answers that the confidence withholds
UNLIKELY = 0.05  # and that `answerable` withholds
SURE = 0.5


class Row(NamedTuple):
    """An answer before abstention."""

    confidence: float
    answerable: float
    right: bool
    has_answer: bool  # whether the question has one


class Thresholds(NamedTuple):
    confidence: float
    answerable: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fitted", type=Path, nargs="+")
    parser.add_argument("--measure", type=Path, nargs="*", default=[])
    parser.add_argument("--weights", default="")
    parser.add_argument("--skim", type=float, default=0.0)
    parser.add_argument("--write", action="store_true", help="store them next to the weights")
    arguments = parser.parse_args()
    folder = weights_folder(arguments.weights)
    digest = fingerprint_weights(folder)
    calibration = load_calibration(folder, digest)
    if calibration is None:
        raise MissingInput(f"{folder} has no calibration; wanted weights that give a confidence")
    before = Thresholds(0.0, calibration.answerable_threshold)
    sets = {path.stem: read_rows(path) for path in arguments.fitted}
    together = [row for rows in sets.values() for row in rows]
    measured = {path.stem: read_rows(path) for path in arguments.measure}
    for name, rows in {**sets, "fitted on": together, **measured}.items():
        print(describe(name, rows))
    fitted = fit(together)
    print(f"confidence {fitted.confidence:.4f}, answerable {fitted.answerable:.4f}")
    for name, rows in sets.items():
        print(report(name, rows, {"before": before, "fitted": fitted}))
        others = [row for other, part in sets.items() if other != name for row in part]
        if others:
            print(report(name, rows, {"by the others": fit(others)}))
    for name, rows in measured.items():
        print(report(name, rows, {"before": before, "fitted": fitted}))
    if arguments.write:
        rows = [row for part in measured.values() for row in part]
        content = {
            "confidence": fitted.confidence,
            "answerable": fitted.answerable,
            "skim": arguments.skim,
            "weights": digest,
            "right": sum(row.right for row in shown_rows(rows, fitted)),
            "measured": sum(row.has_answer for row in rows),
            "measured_on": {name: len(rows) for name, rows in measured.items()},
            "fitted_on": {name: len(rows) for name, rows in sets.items()},
            "withholds": {"confidence": UNSURE, "answerable": UNLIKELY},
        }
        write_json(folder / DOCUMENTS_FILE, content)


def read_rows(path: Path) -> list[Row]:
    rows = []
    for _, record in read_jsonl(path):
        text = str(record["answer"] or record["candidate"])
        answers = [str(answer) for answer in record["answers"]]
        right = bool(answers) and exact_match(text, answers) > 0
        # None where there is no answer, or one that is withheld for its language
        confidence = float(record["confidence"] or 0)
        answerable = float(record["answerable"] or 0)
        rows.append(Row(confidence, answerable, right, bool(answers)))
    return rows


def fit(rows: Sequence[Row]) -> Thresholds:
    right = [row for row in rows if row.right]
    if not right:
        raise FormatError("no answer is right; wanted some to fit on")
    return Thresholds(
        quantile([row.confidence for row in right], UNSURE),
        quantile([row.answerable for row in right], UNLIKELY),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values is below."""
    return sorted(values)[int(share * len(values))]


def shown_rows(rows: Sequence[Row], limits: Thresholds) -> list[Row]:
    """The answers that are not withheld."""
    return [
        row
        for row in rows
        if row.confidence >= limits.confidence and row.answerable >= limits.answerable
    ]


def describe(name: str, rows: Sequence[Row]) -> str:
    """What the answers are worth before any is withheld."""
    answerable = [row.answerable for row in rows if row.has_answer]
    unanswerable = [row.answerable for row in rows if not row.has_answer]
    right = sum(row.right for row in rows)
    text = f"{name:10} EM if all are answered {100 * right / len(answerable):.1f}"
    if not unanswerable:
        return text
    area = roc_auc_score([row.has_answer for row in rows], [row.answerable for row in rows])
    limit = quantile(answerable, 0.1)
    withheld = sum(value < limit for value in unanswerable) / len(unanswerable)
    return (
        f"{text}; AUROC of answerable {100 * area:.1f}; withheld at a tenth of the answerable: "
        f"{100 * withheld:.1f}% of the unanswerable"
    )


def report(name: str, rows: Sequence[Row], kinds: Mapping[str, Thresholds]) -> str:
    lines = []
    for kind, limits in kinds.items():
        shown = shown_rows(rows, limits)
        right = sum(row.right for row in shown)
        wrong = sum(row.has_answer and not row.right for row in shown)
        answerable = sum(row.has_answer for row in rows)
        unanswerable = len(rows) - answerable
        withheld = unanswerable - sum(not row.has_answer for row in shown)
        sure = sum(not row.right and row.confidence > SURE for row in shown)
        lines.append(
            f"{name:10} {kind:14} of {answerable} with an answer: {right} right, {wrong} wrong, "
            f"{answerable - right - wrong} withheld; of {unanswerable} without: {withheld} "
            f"withheld; wrong and more than {SURE:.0%} sure: {sure}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
