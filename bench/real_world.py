"""Counts wrong answers that are the real world's: those the same model gives without the
supposition, or without passages.

    ifqa probe ifqa-dev-gold --reader llm --prompt short --model MODEL --limit 300      \
        # after ifqa run with the same flags
    python bench/real_world.py NAME
    python bench/real_world.py NAME --closed-book OTHER

NAME and OTHER are folders of `experiments/`, as `ifqa run` prints them. IfQA's and NQ-Swap's files
lack the real world's answers, so the model gives them:

- Without --closed-book they are its answers, from the same passages, to the questions without their
  if-clauses: those of the probe "no-supposition". A question whose if-clause was not found is left
  out; the output has the number of these.
- With --closed-book they are its answers without passages: those of the experiment OTHER.

The share is over all counted questions, as in `ifqa.scoring.error_types`: a right answer never
counts, even if it is also the real world's. "Same answers" counts right answers too: how often
supposition or passages changed nothing.
"""

import argparse
from collections.abc import Mapping, Sequence

import ifqa
from ifqa.config.experiment import load_experiment
from ifqa.errors import ConfigError, MissingInput
from ifqa.pipeline.probe import FOLDER
from ifqa.pipeline.read import READ
from ifqa.pipeline.stage_outputs import read_predictions
from ifqa.scoring.error_types import classify_outcome
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.statistics import mean_interval
from ifqa.scoring.stored_scores import QuestionRow

PROBE, REAL_WORLD = "no-supposition", "answered the real world"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment")
    parser.add_argument(
        "--closed-book", default="", metavar="OTHER", help="an experiment on the same questions"
    )
    arguments = parser.parse_args()
    name = arguments.experiment
    other = arguments.closed_book
    factual = (
        {answer.question.id: answer.text for answer in ifqa.answers(other)}
        if other
        else without_supposition(name)
    )
    print("\n".join(count_answers(ifqa.run(name).rows, factual)))


def without_supposition(name: str) -> dict[str, str]:
    """Question id -> the answer to its main clause; the experiment must have been probed."""
    path = load_experiment(name).folder / FOLDER / PROBE / READ.file
    if not path.exists():
        raise MissingInput(f"there is no {path}; make it with: ifqa probe {name}")
    return {
        prediction.question_id: prediction.answer for prediction in read_predictions(path).values()
    }


def count_answers(all_rows: Sequence[QuestionRow], factual: Mapping[str, str]) -> list[str]:
    """The lines to print, over the questions with a factual answer."""
    rows = [row for row in all_rows if row["id"] in factual]
    if not rows:
        raise ConfigError(
            f"none of {len(all_rows)} questions has an answer of the real world; "
            "wanted the same questions"
        )
    outcomes = [classify_outcome(row, "EM", "", factual[row["id"]]) for row in rows]
    same = [
        row["answer"] != "" and normalize(row["answer"]) == normalize(factual[row["id"]])
        for row in rows
    ]
    mean, low, high = (
        100 * share for share in mean_interval([float(kind == REAL_WORLD) for kind in outcomes], 0)
    )
    em = 100 * outcomes.count("right") / len(rows)
    return [
        f"{len(rows)} questions, {len(all_rows) - len(rows)} left out, EM {em:.1f}",
        f"{REAL_WORLD}: {mean:.1f}% [{low:.1f}, {high:.1f}]",
        f"same answers, right ones too: {100 * sum(same) / len(rows):.1f}%",
    ]


if __name__ == "__main__":
    main()
