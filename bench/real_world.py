"""Counts wrong answers that are answers of the real world: what the same model says without the supposition, or the passages.

    ifqa probe ifqa-dev-gold --reader llm --prompt short --model MODEL --limit 300      # after ifqa run with the same flags
    python bench/real_world.py NAME
    python bench/real_world.py NAME --closed-book OTHER

NAME and OTHER are folders of `experiments/`, as `ifqa run` prints them. IfQA's and NQ-Swap's files lack the answers of the real
world, so they are taken from the model itself:

- Without --closed-book they are its answers to the questions without their if-clauses, from the same passages: those of the
  probe "no-supposition". A question whose if-clause was not found is left out, and counted.
- With --closed-book they are its answers without passages, from memory: those of the experiment OTHER.

The share is over all questions that are counted, as in `ifqa.scoring.error_types`: a right answer is none, even if it is also the
answer of the real world. "Same answers" counts right ones, too: how often supposition or passages changed nothing.
"""

import argparse
from collections.abc import Mapping, Sequence

import ifqa
from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline.chunk_runner import PREDICTIONS
from ifqa.pipeline.probe import FOLDER
from ifqa.pipeline.stage_inputs import read_predictions
from ifqa.scoring.error_types import classify_outcome
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.score_files import QuestionRow
from ifqa.scoring.statistics import mean_interval

PROBE, REAL_WORLD = "no-supposition", "answered the real world"


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment")
    parser.add_argument("--closed-book", default="", metavar="OTHER", help="an experiment on the same questions")
    arguments = parser.parse_args()
    name, other = arguments.experiment, arguments.closed_book
    factual = (
        {answer.question.id: answer.text for answer in ifqa.answers(other)} if other else without_supposition(name)
    )
    for line in told(ifqa.run(name).rows, factual):
        print(line)


def without_supposition(name: str) -> dict[str, str]:
    """Question id -> the answer to its main clause alone.

    Raises:
        IfqaError: the experiment was not probed.
    """
    path = load_experiment(name).folder / FOLDER / PROBE / PREDICTIONS
    if not path.exists():
        raise IfqaError(f"there is no {path}; make it with: ifqa probe {name}")
    return {prediction.question_id: prediction.answer for prediction in read_predictions(path).values()}


def told(rows: Sequence[QuestionRow], factual: Mapping[str, str]) -> list[str]:
    """The lines to print.

    Raises:
        IfqaError: none of the questions has an answer of the real world.
    """
    there = [row for row in rows if row["id"] in factual]
    if not there:
        raise IfqaError(f"none of {len(rows)} questions has an answer of the real world; wanted the same questions")
    found = [classify_outcome(one, "EM", "", factual[one["id"]]) for one in there]
    same = [one["answer"] != "" and normalize(one["answer"]) == normalize(factual[one["id"]]) for one in there]
    mean, low, high = (100 * one for one in mean_interval([float(one == REAL_WORLD) for one in found], 0))
    return [
        f"{len(there)} questions, {len(rows) - len(there)} left out, EM {100 * found.count('right') / len(there):.1f}",
        f"{REAL_WORLD}: {mean:.1f}% [{low:.1f}, {high:.1f}]",
        f"same answers, right ones too: {100 * sum(same) / len(there):.1f}%",
    ]


if __name__ == "__main__":
    main()
