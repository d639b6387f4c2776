"""How often the regression gate fails two equal systems, and how often it notices a loss.

    python bench/gate.py A B [--pairs 200] [--loss 3]

A and B are two scored experiments over the same questions. A pair of equal systems swaps their
answers to each question by chance, so that neither is better. For the loss, some of the second's
right answers become wrong.
"""

import argparse
import copy
import random

from ifqa.config.experiment import load_experiment
from ifqa.report.compare import ScoredExperiment
from ifqa.report.gate import judge
from ifqa.scoring.intervals import report_interval
from ifqa.scoring.statistics import mean_interval


def equal_pair(a, b, rng):
    """Two systems between which only chance decides."""
    first = copy.copy(a)
    second = copy.copy(b)
    first.rows = {}
    second.rows = {}
    for question_id, row in a.rows.items():
        rows = [row, b.rows[question_id]]
        rng.shuffle(rows)
        first.rows[question_id], second.rows[question_id] = rows
    return first, second


def lose(scored, share, measure, rng):
    """The system with wrong answers to some of its rightly answered questions.

    `share` is of all questions.
    """
    worse = copy.copy(scored)
    right = [question_id for question_id, row in scored.rows.items() if row[measure] == 1]
    lost = set(rng.sample(right, round(share * len(scored.rows))))
    zero = dict.fromkeys(("EM", "F1", "contains"), 0.0)
    worse.rows = {key: row | zero if key in lost else row for key, row in scored.rows.items()}
    return worse


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--loss", type=float, default=3.0, help="in percent of the questions")
    options = parser.parse_args()
    a, b = (ScoredExperiment(load_experiment(name)) for name in (options.first, options.second))
    rng = random.Random(0)
    alarms = []
    noticed = []
    for _ in range(options.pairs):
        first, second = equal_pair(a, b, rng)
        gate = judge(first, second)
        alarms.append(float(bool(gate.failed)))
        noticed.append(
            float(bool(judge(first, lose(second, options.loss / 100, "EM", rng)).failed))
        )
    measures = ", ".join(measure.difference.measure for measure in gate.measures)
    print(f"{len(a.rows)} questions, {options.pairs} pairs, measures: {measures}")
    for what, outcomes in (
        ("equal systems failed", alarms),
        (f"a loss of {options.loss:g} noticed", noticed),
    ):
        interval = report_interval(mean_interval(outcomes), len(outcomes), True)
        share, low, high = (100 * number for number in interval)
        print(f"{what}: {share:.1f}% [{low:.1f}, {high:.1f}]")


if __name__ == "__main__":
    main()
