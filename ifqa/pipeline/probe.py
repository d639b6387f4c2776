"""`ifqa probe`: does a reader use the supposition, and its passages? It reads again with each of them changed.

Three probes change what is read, and nothing else. Retrieval stays as it was.

- "no-supposition": the question without its if-clause.
- "other-supposition": the main clause with another question's if-clause.
- "other-passages": the question with the passages of another question, which share none with its own.

A question that `ifqa.retrieval.queries` cannot split is left out of the first two, before and after alike; so is a question
without passages, or for which no other question has different ones, out of the third. The others' answers are scored by the
gold answers of the question as it was. A reader that uses the supposition loses by the first two; one that answers from memory
loses nothing by the third.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TypeVar

from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError
from ifqa.pipeline.check import asked_of_model
from ifqa.pipeline.chunk_runner import PREDICTIONS, OtherInputs, ask
from ifqa.pipeline.run import Run, as_run
from ifqa.pipeline.stage_inputs import passages_of, predictions_of, rankings_of, read_predictions
from ifqa.pipeline.system import Session, System
from ifqa.progress import counted, say
from ifqa.records import Hit, Prediction, Question
from ifqa.retrieval.queries import Clauses, split_question
from ifqa.scoring.aggregation import aggregate
from ifqa.scoring.per_question import row
from ifqa.settings import Natural, Share, Stored, check_stored
from ifqa.storage.artifacts import Artifact, identity, lock, make, read_manifest
from ifqa.storage.files import read_json, write_json
from ifqa.workers.tasks import Workers

VERSION = 1  # raise it when a probe asks something else
FOLDER, SCORE, LOSSES = "probe", "score", "losses.json"
_OPENERS = frozenset(
    """a an are at by can could did do does for from had has have how in is might of on the to under was were what when where
    which who whom whose why will with would""".split()
)
_T = TypeVar("_T")
Pairs = list[tuple[Question, Sequence[Hit]]]  # questions, each with the passages to read


@dataclass(frozen=True)
class Loss:
    """What a measure loses by a probe, over the questions that the probe can change; all but the counts in percent.

    `loss` is `before` less `after`, `low` to `high` its 95% bootstrap interval, `p` that of a paired randomisation test, 0 to 1.
    """

    probe: str
    measure: str
    questions: int
    left_out: int
    before: float
    after: float
    loss: float
    low: float
    high: float
    p: float


def without_supposition(asked: Pairs, seed: int) -> Pairs:
    """The questions that split, as their main clauses."""
    return [(replace(one, text=_sentence(clauses.question)), hits) for one, hits, clauses in _split(asked)]


def with_other_supposition(asked: Pairs, seed: int) -> Pairs:
    """The questions that split, each with the if-clause of another one that has a different if-clause."""
    several = _split(asked)
    donors = _others(several, seed, lambda one, other: one[2].presupposition != other[2].presupposition)
    return [
        (replace(one, text=_sentence(f"{donor[2].presupposition}, {_continued(clauses.question)}")), hits)
        for (one, hits, clauses), donor in zip(several, donors, strict=True)
        if donor
    ]


def with_other_passages(asked: Pairs, seed: int) -> Pairs:
    """The questions with passages, each with those of another one that shares none of them."""
    several = [one for one in asked if one[1]]
    ids = {one.id: {hit.passage_id for hit in hits} for one, hits in several}
    donors = _others(several, seed, lambda one, other: ids[one[0].id].isdisjoint(ids[other[0].id]))
    return [(one, donor[1]) for (one, _), donor in zip(several, donors, strict=True) if donor]


PROBES: Mapping[str, Callable[[Pairs, int], Pairs]] = {
    "no-supposition": without_supposition,
    "other-supposition": with_other_supposition,
    "other-passages": with_other_passages,
}


def probe(experiment: Experiment, session: Session | None = None, workers: Workers | None = None) -> list[Loss]:
    """Read the questions of a finished experiment again under each probe, and give the losses; all is kept in `probe/`.

    A finished probe is not read again, and an interrupted one goes on. A language model's caps hold for all probes together.

    Raises:
        IfqaError: the experiment has no reader, or was not run; or no probe changes a question.
    """
    if experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [reader] to probe")
    run = Run(experiment)
    run.inputs("score")  # raises if a stage before is missing or stale
    session = session or Session()
    with lock(experiment.folder):
        asked = _asked(run)
        for name in PROBES:
            changed = PROBES[name](asked, experiment.seed)
            if changed:
                _read(run, name, changed, session, workers or Workers())
            else:
                say(f"{experiment.name}: no question can be changed by the probe {name}")
        folder = experiment.folder / FOLDER / SCORE
        with make(folder, lambda: inputs_of_losses(Run(experiment))) as work:
            if work is not None:
                found = list(chain.from_iterable(_losses(experiment, name, asked) for name in PROBES))
                if not found:
                    raise IfqaError(f"experiment {experiment.name}: no probe changes one of its questions")
                write_json(work.folder / LOSSES, [asdict(one) for one in found])
    return losses_of(run)


def losses_of(experiment: Experiment | Run) -> list[Loss]:
    """The losses of an experiment that was probed; empty if it was not, or if it was run again since.

    Raises:
        IfqaError: the file is not as `probe` writes it.
    """
    run = as_run(experiment)
    folder = run.experiment.folder / FOLDER / SCORE
    losses = Artifact(folder)
    if run.experiment.reader is None or losses.manifest is None:
        return []
    try:
        if not losses.is_made_from(inputs_of_losses(run)):
            return []
    except IfqaError:  # an earlier stage is gone
        return []
    found = read_json(folder / LOSSES)
    for one in found if isinstance(found, list) else [found]:
        check_stored(_Loss, one, str(folder / LOSSES))
    return [Loss(**one) for one in found]


def inputs_of_losses(run: Run) -> dict[str, object]:
    """What the losses are made of: the scores' inputs, and the files of every probe that was read."""
    found = {name: read_manifest(run.experiment.folder / FOLDER / name) for name in PROBES}
    files = {name: dict(one["record"]["files"]) for name, one in found.items() if one}
    return {"stage": "probe score", "version": VERSION, "score": identity(run.inputs("score")), "files": files}


def _inputs(run: Run, name: str) -> dict[str, object]:
    read = identity(run.inputs("read"))
    return {"stage": "probe", "probe": name, "version": VERSION, "seed": run.experiment.seed, "read": read}


def _asked(run: Run) -> Pairs:
    """The questions with the hits that the reader was given."""
    experiment, questions = run.experiment, run.questions
    assert experiment.reader is not None  # `probe` has checked that
    depth = experiment.reader["passages"]
    rankings = rankings_of(experiment, questions)
    return [(one, ranking[:depth]) for one, ranking in zip(questions, rankings, strict=True)]


def _read(run: Run, name: str, changed: Pairs, session: Session, workers: Workers) -> None:
    experiment = run.experiment
    folder = experiment.folder / FOLDER / name
    with make(folder, lambda: _inputs(Run(experiment), name), resume="same") as work:
        if work is None:
            return
        questions = [one for one, _ in changed]
        if experiment.asks_llm("reader"):
            system = System(run, session)
            passages = list(passages_of(experiment, [hits for _, hits in changed]))
            say(asked_of_model(system, system.reader.requests(questions, passages), f"probe {name}").line.strip())
        ask(work, run, "read", session, workers, OtherInputs(folder, questions, [hits for _, hits in changed]))
    say(f"{folder}: {counted(len(changed), 'question')} read")


def _losses(experiment: Experiment, name: str, asked: Pairs) -> Iterator[Loss]:
    """The loss in each measure of answers that tables show."""
    folder, by = experiment.folder / FOLDER / name, experiment.scheme
    changed = [one.id for one, _ in PROBES[name](asked, experiment.seed)]
    if not changed or read_manifest(folder) is None:
        return
    every = [one for one, _ in asked]
    usual = dict(zip([one.id for one in every], predictions_of(experiment, every), strict=True))
    probed = read_predictions(folder / PREDICTIONS)
    questions = [one for one in every if one.id in set(changed)]
    shown = by.shown([one.name for one in by.answers]) or [one.name for one in by.answers]
    read_again = [probed.get(one.id) or Prediction(one.id, "", error="no prediction") for one in questions]
    samples = []
    for predictions in ([usual[one.id] for one in questions], read_again):
        rows = [row(question, by, prediction=answer) for question, answer in zip(questions, predictions, strict=True)]
        samples.append(aggregate(rows, questions, by, None).sample())
    before, after = samples
    for key, count, paired in after.differences(before, shown, experiment.seed):
        second, first, more, low, high = paired.percents()
        yield Loss(name, key, count, len(every) - count, first, second, more, low, high, paired.p)


def _split(asked: Pairs) -> list[tuple[Question, Sequence[Hit], Clauses]]:
    found = ((one, hits, split_question(one.text)) for one, hits in asked)
    return [one for one in found if one[2].presupposition and one[2].question]


def _sentence(text: str) -> str:
    """A question with a capital first letter and a question mark."""
    return text[:1].upper() + text[1:].rstrip(" .?") + "?"


def _continued(clause: str) -> str:
    """A main clause as it stands after a comma: a capital is lowered, unless it may be of a name."""
    word = clause.partition(" ")[0]
    return clause[0].lower() + clause[1:] if word.lower() in _OPENERS else clause


def _others(several: Sequence[_T], seed: int, differ: Callable[[_T, _T], bool]) -> list[_T | None]:
    """For each, the next one in a drawn order, round about, that differs from it; None if there is none."""
    order = list(range(len(several)))
    random.Random(seed).shuffle(order)
    found: list[_T | None] = [None] * len(several)
    for at, place in enumerate(order):
        ahead = (several[other] for other in (*order[at + 1 :], *order[:at]))
        found[place] = next((one for one in ahead if differ(several[place], one)), None)
    return found


class _Loss(Stored):
    probe: str
    measure: str
    questions: Natural
    left_out: Natural
    before: float
    after: float
    loss: float
    low: float
    high: float
    p: Share
