"""The loss that the regression gate notices 4 times in 5, and its power by simulation with the
gate's own tests.

    python bench/gate_power.py [--trials 400]

Two systems of 83 or 700 questions differ in so many answers; EM and F1 are tested, and with a third
measure also the headline of retrieval, which a lost answer leaves as it is. For each pair it prints
the fewest lost answers that `fewest_noticed` names, and how often paired randomisation tests,
corrected by Holm's method, notice so many, and one fewer.
"""

import argparse

import numpy as np

from ifqa.report.gate import LEVEL
from ifqa.scoring.power import fewest_noticed
from ifqa.scoring.statistics import paired_randomization

RIGHT = 0.6  # share of right answers
PARTLY = 0.3  # share of answers with an F1 of their own
ROUNDS = 4_000


def make_systems(questions, differing, seed=1):
    """EM and F1 of two systems, each (questions, 2)."""
    rng = np.random.default_rng(seed)
    exact = (rng.random(questions) < RIGHT).astype(float)
    other = exact.copy()
    changed = rng.choice(questions, differing, replace=False)
    other[changed] = 1 - other[changed]
    partly = np.where(rng.random(questions) < PARTLY, rng.random(questions).round(2), 0.0)
    return [np.stack([score, np.maximum(score, partly)], axis=1) for score in (exact, other)]


def simulate(first, second, lost, tests, trials):
    """How often the gate notices so many lost answers."""
    rng = np.random.default_rng(7)
    failed = 0
    for seed in range(trials):
        swap = (rng.random(len(first)) < 0.5)[:, None]
        a = np.where(swap, second, first)
        b = np.where(swap, first, second).copy()
        b[rng.permutation(np.flatnonzero(b[:, 0] == 1))[:lost]] = 0
        halves = [paired_randomization(a[:, n], b[:, n], seed, ROUNDS) / 2 for n in range(2)]
        worse = b.sum(axis=0) < a.sum(axis=0)
        ps = [half if is_worse else 1 - half for half, is_worse in zip(halves, worse, strict=True)]
        failed += tests * min(ps) < LEVEL
    return failed / trials


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args().trials
    print("| questions | differ | measures | noticed | its power | one fewer |")
    print("|---|---|---|---|---|---|")
    for questions in (83, 700):
        for differing in (2, 5, 20, 50):
            first, second = make_systems(questions, differing)
            for tests in (2, 3):
                noticed = fewest_noticed(first, second, [1, 1], LEVEL, tests)
                powers = [
                    simulate(first, second, lost, tests, trials) for lost in (noticed, noticed - 1)
                ]
                cells = (
                    questions,
                    differing,
                    tests,
                    noticed,
                    *(f"{power:.2f}" for power in powers),
                )
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
