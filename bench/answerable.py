"""Measures whether a reader's confidence tells questions that its passages answer from questions that they do not.

    python bench/answerable.py pool EXPERIMENT [--passages N] [--to readings.jsonl]
    python bench/answerable.py plain [EXPERIMENT] [--questions plain-questions.tsv]

`pool` reads each question of an experiment twice. First it reads the passages of the finished run. Then it reads the best
passages of the same run after every passage is taken out that holds 40% of a gold passage's word 5-grams (gold recall's
rule), or shares a run of 12 words with one. It prints the AUROC of confidence, with the readings of a gold passage as
positives and the readings without as negatives, and the shares of both that the reader abstains from. Intervals are 95%
bootstrap intervals over questions. `--to` gets a line for each reading.

`plain` asks questions of a file, without any supposition, and lists what comes out: "yes" or "no" says whether the corpus has
the answer. The bundled file was written from the titles of the sample's articles.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ifqa.config.experiment import Experiment, load_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import passages_of, rankings_of
from ifqa.pipeline.stages import open_system
from ifqa.pipeline.system import System
from ifqa.progress import bar
from ifqa.records import Passage, Question
from ifqa.scoring.measures.confidence import AUROC
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.scoring.measures.gold_recall import covers, overlaps
from ifqa.scoring.statistics import ColumnStatistic, mean_interval
from ifqa.storage.artifacts import Artifact
from ifqa.storage.files import write_jsonl

PLAIN = Path(__file__).with_name("plain-questions.tsv")
SHOWN = 10  # readings in each list


@dataclass(frozen=True)
class Reading:
    """What a reader made of a question; `gold_read` says whether a gold passage was among those it read."""

    id: str
    question: str
    removed: bool
    gold_read: bool
    answer: str
    confidence: float
    right: bool


def main() -> None:
    """Read or ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="what", required=True)
    pool = verbs.add_parser("pool")
    pool.add_argument("experiment")
    pool.add_argument("--passages", type=int, default=0, help="passages a question; 0: as many as the experiment reads")
    pool.add_argument("--to", type=Path, help="file for the readings")
    plain = verbs.add_parser("plain")
    plain.add_argument("experiment", nargs="?", default="sample")
    plain.add_argument("--questions", type=Path, default=PLAIN, help="lines of yes or no, a tab, and a question")
    arguments = parser.parse_args()
    experiment = load_experiment(arguments.experiment)
    with open_system(Run(experiment)) as system:
        if arguments.what == "plain":
            print("\n".join(asked(system, arguments.questions)))
            return
        found = readings(system, experiment, arguments.passages)
        if arguments.to:
            write_jsonl(arguments.to, [asdict(one) for one in found])
        print("\n".join(told(found, system.reader.abstain_threshold)))


def asked(system: System, path: Path) -> list[str]:
    """A line for each question of a file: whether the corpus has the answer, the confidence, what came out.

    Raises:
        IfqaError: a line is not "yes" or "no", a tab, and a question.
    """
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        known, tab, question = line.partition("\t")
        if known not in ("yes", "no") or not tab:
            raise IfqaError(f"{path}:{number}: wanted yes or no, a tab, and a question; found {line!r:.60}")
        answer = system.ask(question)
        sure = "   -" if answer.confidence is None else f"{answer.confidence:4.0%}"
        lines.append(f"{known:3}  {sure}  {question}  {answer}")
    return lines


def readings(system: System, experiment: Experiment, passages: int = 0) -> list[Reading]:
    """Both readings of each question of a finished run.

    Raises:
        IfqaError: nothing was retrieved, the reader gives no confidence, or a ranking is too short once the gold passages
            are taken out.
    """
    if experiment.retriever is None or experiment.reader is None:
        raise IfqaError(f"experiment {experiment.name} has no [retriever] or no [reader]; name one with both")
    Artifact(experiment.folder / "retrieve").require(f"ifqa retrieve {experiment.name}")
    questions, count = Run(experiment).questions, passages or experiment.reader["passages"]
    rankings = list(passages_of(experiment, rankings_of(experiment, questions)))
    found: list[Reading] = []
    with bar("reading twice", len(questions)) as advance:
        for start in range(0, len(questions), 32):
            some = list(zip(questions[start : start + 32], rankings[start : start + 32], strict=True))
            for removed in (False, True):
                read = [(without_gold(*one) if removed else one[1])[:count] for one in some]
                if short := next(
                    (one.id for (one, _), several in zip(some, read, strict=True) if len(several) < count), ""
                ):
                    raise IfqaError(
                        f"{short}: fewer than {count} passages are left to read; retrieve more: retriever.k"
                    )
                found += read_all(system, [question for question, _ in some], read, removed)
            advance(len(some))
    return found


def read_all(
    system: System, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], removed: bool
) -> list[Reading]:
    """One reading a question. A failed one has confidence 0; an abstention has its candidate for an answer."""
    found = []
    for question, several, one in zip(questions, passages, system.read(questions, passages), strict=True):
        if one.confidence is None and not one.failed:
            raise IfqaError("the reader gives no confidence; for the span reader: ifqa train calibration --to WEIGHTS")
        answer = one.answer or one.candidate
        gold_read = any(covers(passage.text, gold) for passage in several for gold in question.gold_passages)
        right = bool(answer and exact_match(answer, question.answers))
        found.append(Reading(question.id, question.text, removed, gold_read, answer, one.confidence or 0.0, right))
    return found


def without_gold(question: Question, ranking: Sequence[Passage]) -> list[Passage]:
    """The passages that overlap with no gold passage."""
    return [one for one in ranking if not any(overlaps(one.text, gold) for gold in question.gold_passages)]


def told(found: Sequence[Reading], threshold: float) -> list[str]:
    """The figures, and the readings that the confidence is most wrong about."""
    judged = [one for one in found if one.removed or one.gold_read]
    numbers = np.array([[one.confidence, float(one.gold_read)] for one in judged])
    interval = ColumnStatistic(AUROC, numbers, [one.id for one in judged]).interval(0)
    lines = [f"AUROC {shown(interval)}" if interval else "AUROC not defined: no gold passage was read"]
    for name, gold in (("answerable", True), ("unanswerable", False)):
        some = [one for one in judged if one.gold_read is gold]
        if some:
            below = mean_interval([float(one.confidence < threshold) for one in some])
            right = mean_interval([float(one.right) for one in some])
            lines.append(f"{len(some)} {name}: {shown(below)} below the threshold {threshold:.3f}; EM {shown(right)}")
    order = sorted(judged, key=lambda one: one.confidence)
    surest = [one for one in reversed(order) if not one.gold_read][:SHOWN]
    doubted = [one for one in order if one.gold_read and one.right][:SHOWN]
    for title, several in (("surest without a gold passage:", surest), ("least sure and right:", doubted)):
        lines += ["", title, *(f"{one.confidence:4.0%}  {one.id}  {one.question}  {one.answer}" for one in several)]
    return lines


def shown(interval: tuple[float, float, float]) -> str:
    """An interval in percent."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * one for one in interval))


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
