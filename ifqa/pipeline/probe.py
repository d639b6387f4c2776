"""`ifqa probe`: tests whether a reader uses the supposition and its passages, by changing one of
them and reading again.

Retrieval stays as it was. There are three probes:

- "no-supposition": the question without its if-clause.
- "other-supposition": the main clause with another question's if-clause.
- "other-passages": the question with the passages of another question, none of which are its own.

The first two leave out questions that `ifqa.clauses` cannot split, from both scores; the third
leaves out questions without passages, and those for which no other question has different ones.
Answers are scored by the gold answers of the original question. A reader that uses the supposition
loses under the first two; a reader that answers from memory loses nothing under the third.
"""

import logging
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

from ifqa.clauses import Clauses, as_question, split_question
from ifqa.errors import IfqaError
from ifqa.formatting import pluralize
from ifqa.pipeline.asking import AskedQuestions, ask
from ifqa.pipeline.check import estimate_requests
from ifqa.pipeline.read import READ
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.served import refuse_other_server
from ifqa.pipeline.session import Session
from ifqa.pipeline.stage_outputs import (
    passages_of,
    prediction_for_each,
    predictions_of,
    rankings_of,
    read_predictions,
)
from ifqa.pipeline.system import System
from ifqa.records import Hit, Question
from ifqa.scoring.aggregation import aggregate_rows
from ifqa.scoring.intervals import report_interval
from ifqa.scoring.per_question import score_question
from ifqa.scoring.statistics import to_percent
from ifqa.storage.artifacts import (
    Artifact,
    compute_fingerprint,
    lock,
    read_manifest,
    warn_of_failures,
)
from ifqa.storage.files import read_json, write_json
from ifqa.workers.pool import Workers

logger = logging.getLogger(__name__)

VERSION = 1  # raise it when a probe's questions change
FOLDER = "probe"
LOSSES_FOLDER = "score"
LOSSES = "losses.json"
_OPENERS = frozenset(
    """
    a an are at by can could did do does for from had has have how in is might of on the to under
    was were what when where which who whom whose why will with would
    """.split()
)
_T = TypeVar("_T")
Pairs = list[tuple[Question, Sequence[Hit]]]  # questions, each with the passages to read


@dataclass(frozen=True)
class Loss:
    """A measure's loss under a probe, over the questions that the probe can change.

    Scores are in percent.

    `loss` is `before` minus `after`, `low` to `high` its 95% bootstrap interval, and `p` that of a
    paired randomisation test. There is no interval over too few questions, nor one without width.
    """

    probe: str
    measure: str
    questions: int
    left_out: int
    before: float
    after: float
    loss: float
    low: float | None
    high: float | None
    p: float


def without_supposition(pairs: Pairs, seed: int) -> Pairs:
    """The questions that can be split, reduced to their main clauses."""
    parts = _split_pairs(pairs)
    return [
        (replace(question, text=as_question(clauses.question)), hits)
        for question, hits, clauses in parts
    ]


def with_other_supposition(pairs: Pairs, seed: int) -> Pairs:
    """The questions that can be split, each with a different if-clause, from another question."""
    parts = _split_pairs(pairs)
    donors = _draw_donors(
        parts, seed, lambda part, other: part[2].presupposition != other[2].presupposition
    )
    changed = []
    for (question, hits, clauses), donor in zip(parts, donors, strict=True):
        if donor:
            text = f"{donor[2].presupposition}, {_lower_first_word(clauses.question)}"
            changed.append((replace(question, text=as_question(text)), hits))
    return changed


def with_other_passages(pairs: Pairs, seed: int) -> Pairs:
    """The questions with passages, each with the passages of another question that shares none of
    them.
    """
    pairs = [(question, hits) for question, hits in pairs if hits]
    ids = {question.id: {hit.passage_id for hit in hits} for question, hits in pairs}
    donors = _draw_donors(
        pairs, seed, lambda pair, other: ids[pair[0].id].isdisjoint(ids[other[0].id])
    )
    return [
        (question, donor[1]) for (question, _), donor in zip(pairs, donors, strict=True) if donor
    ]


PROBES: Mapping[str, Callable[[Pairs, int], Pairs]] = {
    "no-supposition": without_supposition,
    "other-supposition": with_other_supposition,
    "other-passages": with_other_passages,
}


def probe(run: Run, workers: Workers | None = None) -> list[Loss]:
    """Read the questions of a finished experiment again under each probe.

    The results are kept in `probe/`.

    A finished probe is not read again, and an interrupted one resumes. A language model's caps hold
    for all probes together. IfqaError if the experiment has no reader or was not run, or if no
    probe changes a question.
    """
    experiment = run.experiment
    depth = run.require_reader().passages
    run.inputs(SCORE)  # raises if an earlier stage is missing or stale
    refuse_other_server(run, READ)
    session = Session()
    with lock(experiment.folder):
        rankings = rankings_of(experiment, run.questions)
        usual: Pairs = [
            (question, ranking[:depth])
            for question, ranking in zip(run.questions, rankings, strict=True)
        ]
        changed = {name: changing(usual, experiment.seed) for name, changing in PROBES.items()}
        if not any(changed.values()):
            raise IfqaError(f"experiment {experiment.name}: no probe changes any of its questions")
        for name, pairs in changed.items():
            if pairs:
                _read(run, name, pairs, session, workers or Workers())
        for part in (
            experiment.folder / "read",
            *(experiment.folder / FOLDER / name for name in PROBES),
        ):
            if manifest := read_manifest(part):
                warn_of_failures(part, manifest["record"])
        folder = experiment.folder / FOLDER / LOSSES_FOLDER
        with Artifact(folder).make(lambda: loss_inputs(run), lambda _: _inputs_again(run)) as work:
            if work is not None:
                losses = [
                    loss for name, pairs in changed.items() for loss in _losses(run, name, pairs)
                ]
                write_json(work.folder / LOSSES, [asdict(loss) for loss in losses])
    return read_losses(run)


def read_losses(run: Run) -> list[Loss]:
    """The losses of a probed experiment; empty if it was not probed, or was run again since."""
    folder = run.experiment.folder / FOLDER / LOSSES_FOLDER
    losses = Artifact(folder)
    try:
        if (
            run.experiment.reader is None
            or not losses.manifest
            or not losses.is_current_for(loss_inputs(run))
        ):
            return []
    except IfqaError:  # an earlier stage is gone
        return []
    return [Loss(**row) for row in read_json(folder / LOSSES)]


def loss_inputs(run: Run) -> dict[str, object]:
    """The inputs of the losses: the scores' inputs, and the files of every probe that was read."""
    manifests = {name: read_manifest(run.experiment.folder / FOLDER / name) for name in PROBES}
    files = {
        name: dict(manifest["record"]["files"]) for name, manifest in manifests.items() if manifest
    }
    score = compute_fingerprint(run.inputs(SCORE))
    return {"stage": "probe score", "version": VERSION, "score": score, "files": files}


def _inputs_again(run: Run) -> dict[str, object]:
    """The inputs of the losses from files that are looked at again."""
    run.refresh()
    return loss_inputs(run)


def _read(run: Run, name: str, changed: Pairs, session: Session, workers: Workers) -> None:
    experiment = run.experiment
    folder = experiment.folder / FOLDER / name

    def inputs() -> dict[str, object]:
        return {
            "stage": "probe",
            "probe": name,
            "version": VERSION,
            "seed": experiment.seed,
            "read": compute_fingerprint(run.inputs(READ)),
        }

    def inputs_again(_: Path) -> dict[str, object]:
        run.refresh()
        return inputs()

    with Artifact(folder, run.incomplete).make(inputs, inputs_again, resume="same") as work:
        if work is None:
            return
        questions, rankings = zip(*changed, strict=True)
        if READ.asker(run):
            system = System(run, session)
            requests = system.reader.requests(questions, list(passages_of(experiment, rankings)))
            logger.info(str(estimate_requests(run, system, requests, f"probe {name}")).strip())
        asked = AskedQuestions(folder, questions, iter(rankings), experiment.name)
        ask(work, run, READ, asked, session, workers)
    logger.info(f"{folder}: {pluralize(len(changed), 'question')} read")


def _losses(run: Run, name: str, changed: Pairs) -> Iterator[Loss]:
    """The loss in each measure of answers that tables show."""
    experiment = run.experiment
    scheme = run.experiment.scheme
    ids = {question.id for question, _ in changed}
    if not changed:
        return
    questions = [question for question in run.questions if question.id in ids]
    usual = {
        prediction.question_id: prediction
        for prediction in predictions_of(experiment, run.questions)
    }
    probed = read_predictions(experiment.folder / FOLDER / name / READ.file)
    names = [measure.name for measure in scheme.answers]
    samples = []
    for predictions in (usual, probed):
        pairs = zip(questions, prediction_for_each(questions, predictions), strict=True)
        rows = [score_question(question, scheme, prediction=answer) for question, answer in pairs]
        samples.append(aggregate_rows(rows, questions, scheme, None).sample())
    before, after = samples
    for key, count, paired in after.differences(
        before, scheme.table_keys(names) or names, experiment.seed
    ):
        _, *ends = report_interval(paired.interval, paired.units, is_share=False)
        low, high = (None if math.isnan(end) else to_percent(end) for end in ends)
        yield Loss(
            name,
            key,
            count,
            len(run.questions) - count,
            to_percent(paired.second),
            to_percent(paired.first),
            to_percent(paired.delta),
            low,
            high,
            paired.p,
        )


def _split_pairs(pairs: Pairs) -> list[tuple[Question, Sequence[Hit], Clauses]]:
    parts = ((question, hits, split_question(question.text)) for question, hits in pairs)
    return [part for part in parts if part[2].presupposition and part[2].question]


def _lower_first_word(clause: str) -> str:
    """A main clause that follows a comma: its first letter is lowered, unless it may begin a
    name.
    """
    word = clause.partition(" ")[0]
    return clause[0].lower() + clause[1:] if word.lower() in _OPENERS else clause


def _draw_donors(
    parts: Sequence[_T], seed: int, differ: Callable[[_T, _T], bool]
) -> list[_T | None]:
    """For each part, the next part in a random circular order that differs from it, or None."""
    order = list(range(len(parts)))
    random.Random(seed).shuffle(order)
    donors: list[_T | None] = [None] * len(parts)
    for at, place in enumerate(order):
        ahead = (parts[other] for other in (*order[at + 1 :], *order[:at]))
        donors[place] = next((part for part in ahead if differ(parts[place], part)), None)
    return donors
