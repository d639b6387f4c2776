"""Measures whether a reader knows which questions its passages answer.

    python bench/answerable.py pool EXPERIMENT [--passages N] [--to readings.jsonl]
    python bench/answerable.py plain [EXPERIMENT] [--questions plain-questions.tsv]

`pool` reads each question of an experiment twice: from the passages of the finished run, and from
its best passages without those that hold 40% of a gold passage's word 5-grams (gold recall's rule)
or share 12 consecutive words with a gold passage. It prints the AUROC of `confidence` and of
`answerable`, with readings of a gold passage as positives and readings without as negatives, and
the shares of both that an opened system abstains from. Intervals are 95% bootstrap intervals over
questions. `--to` gets a line for each reading.

`plain` asks the questions of a file, which have no supposition, and lists the answers: "yes" or
"no" says whether the corpus has the answer. The bundled file was written from the titles of the
sample's articles.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ifqa.config.experiment import Experiment, load_experiment
from ifqa.errors import ConfigError, FormatError, IfqaError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passages_of, rankings_of
from ifqa.pipeline.stages import open_system
from ifqa.pipeline.system import System
from ifqa.progress import bar
from ifqa.records import Passage, Question
from ifqa.scoring.gold_overlap import covers, overlaps
from ifqa.scoring.measures.confidence import AUROC
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.scoring.statistics import ColumnStatistic, mean_interval
from ifqa.storage.artifacts import Artifact
from ifqa.storage.files import write_jsonl

PLAIN = Path(__file__).with_name("plain-questions.tsv")
SHOWN = 10  # readings in each list


@dataclass(frozen=True)
class Reading:
    """A reader's answer to a question.

    `gold_read`: whether a gold passage was among the passages.
    """

    id: str
    question: str
    removed: bool
    gold_read: bool
    answer: str
    confidence: float
    answerable: float
    right: bool


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="what", required=True)
    pool = verbs.add_parser("pool")
    pool.add_argument("experiment")
    pool.add_argument(
        "--passages",
        type=int,
        default=0,
        help="passages a question; 0: as many as the experiment reads",
    )
    pool.add_argument("--to", type=Path, help="file for the readings")
    plain = verbs.add_parser("plain")
    plain.add_argument("experiment", nargs="?", default="sample")
    plain.add_argument(
        "--questions", type=Path, default=PLAIN, help="lines of yes or no, a tab, and a question"
    )
    arguments = parser.parse_args()
    experiment = load_experiment(arguments.experiment)
    with open_system(Run(experiment)) as system:
        if arguments.what == "plain":
            print("\n".join(answer_lines(system, arguments.questions)))
            return
        readings = read_twice(system, experiment, arguments.passages)
        if arguments.to:
            write_jsonl(arguments.to, map(asdict, readings))
        print("\n".join(summary_lines(readings, *system.thresholds())))


def answer_lines(system: System, path: Path) -> list[str]:
    """A line for each question of a file: whether the corpus has the answer, the confidence, the
    answer.
    """
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        known, tab, question = line.partition("\t")
        if known not in ("yes", "no") or not tab:
            raise FormatError(
                f"{path}:{number}: wanted yes or no, a tab, and a question; found {line!r:.60}"
            )
        answer = system.ask(question)
        confidence = "   -" if answer.confidence is None else f"{answer.confidence:4.0%}"
        lines.append(f"{known:3}  {confidence}  {question}  {answer}")
    return lines


def read_twice(system: System, experiment: Experiment, passages: int = 0) -> list[Reading]:
    if experiment.retriever is None or experiment.reader is None:
        raise ConfigError(
            f"experiment {experiment.name} has no [retriever] or no [reader]; name one with both"
        )
    Artifact(experiment.folder / "retrieve").require(f"ifqa retrieve {experiment.name}")
    questions = Run(experiment).questions
    count = passages or experiment.reader.passages
    rankings = list(passages_of(experiment, rankings_of(experiment, questions)))
    readings: list[Reading] = []
    with bar("reading twice", len(questions)) as advance:
        for start in range(0, len(questions), 32):
            batch = questions[start : start + 32]
            full = rankings[start : start + 32]
            reduced = [without_gold(*pair) for pair in zip(batch, full, strict=True)]
            for removed, batch_rankings in ((False, full), (True, reduced)):
                for question, ranking in zip(batch, batch_rankings, strict=True):
                    if len(ranking) < count:
                        problem = f"fewer than {count} passages are left to read"
                        raise ConfigError(f"{question.id}: {problem}; retrieve more: retriever.k")
                readings += read_all(
                    system, batch, [ranking[:count] for ranking in batch_rankings], removed
                )
            advance(len(batch))
    return readings


def read_all(
    system: System,
    questions: Sequence[Question],
    rankings: Sequence[Sequence[Passage]],
    removed: bool,
) -> list[Reading]:
    """A reading per question.

    A failed prediction has probabilities of 0; an abstention has its candidate as the answer.
    """
    readings = []
    # No reader with a confidence takes them
    scores = [[0.0] * len(ranking) for ranking in rankings]
    predictions = system.read(questions, rankings, scores)
    for question, ranking, prediction in zip(questions, rankings, predictions, strict=True):
        if prediction.confidence is None and not prediction.failed:
            raise ConfigError(
                "the reader gives no confidence; for the span reader: ifqa "
                "train calibration --to WEIGHTS"
            )
        answer = prediction.answer or prediction.candidate
        confidence = prediction.confidence or 0.0
        answerable = prediction.answerable or 0.0
        gold_read = any(
            covers(passage.text, gold) for passage in ranking for gold in question.gold_passages
        )
        right = bool(answer and exact_match(answer, question.answers))
        readings.append(
            Reading(
                question.id,
                question.text,
                removed,
                gold_read,
                answer,
                confidence,
                answerable,
                right,
            )
        )
    return readings


def without_gold(question: Question, ranking: Sequence[Passage]) -> list[Passage]:
    golds = question.gold_passages
    return [
        passage for passage in ranking if not any(overlaps(passage.text, gold) for gold in golds)
    ]


def summary_lines(
    all_readings: Sequence[Reading], confidence: float, answerable: float
) -> list[str]:
    """The figures, abstentions by these two thresholds, and the readings where the confidence is
    most wrong.
    """
    readings = [reading for reading in all_readings if reading.removed or reading.gold_read]
    lines = []
    for name in ("confidence", "answerable"):
        if not any(getattr(reading, name) for reading in readings):
            continue  # this reader gives none
        columns = np.array(
            [[getattr(reading, name), float(reading.gold_read)] for reading in readings]
        )
        interval = ColumnStatistic(AUROC, columns, [reading.id for reading in readings]).interval(0)
        lines.append(
            f"AUROC of {name}: "
            f"{percent(interval) if interval else 'not defined: no gold passage was read'}"
        )
    for name, gold in (("answerable", True), ("unanswerable", False)):
        if part := [reading for reading in readings if reading.gold_read is gold]:
            withheld = [
                reading.confidence < confidence or reading.answerable < answerable
                for reading in part
            ]
            below = percent(mean_interval([*map(float, withheld)]))
            em = percent(mean_interval([float(reading.right) for reading in part]))
            lines.append(f"{len(part)} {name}: {below} withheld; EM {em}")
    order = sorted(readings, key=lambda reading: reading.confidence)
    surest = [reading for reading in reversed(order) if not reading.gold_read][:SHOWN]
    doubted = [reading for reading in order if reading.gold_read and reading.right][:SHOWN]
    for title, part in (
        ("surest without a gold passage:", surest),
        ("least sure and right:", doubted),
    ):
        lines += [
            "",
            title,
            *(f"{row.confidence:4.0%}  {row.id}  {row.question}  {row.answer}" for row in part),
        ]
    return lines


def percent(interval: tuple[float, float, float]) -> str:
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * end for end in interval))


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
