"""How many passages a second the span reader reads, in float32 and with `precision = "auto"`, and whether the answers are equal.

    python experiments/benchmarks/span_pace.py ifqa-dev-bm25 [--limit 700] [--rounds 3]

The experiment must have been retrieved. Both read the same questions and passages in turn, so that the machine's other work
falls on both; the passages are fetched before the clock starts.
"""

import argparse
import time
from statistics import median

from ifqa.config.experiment import load_experiment
from ifqa.pipeline.upstream import passages_of, questions_of, rankings_of
from ifqa.reading.span.reader import Extractive
from ifqa.scoring.measures.normalize import normalize


def main() -> None:
    """Time both in turn and compare their answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment")
    parser.add_argument("--limit", type=int, default=700, help="questions")
    parser.add_argument("--passages", type=int, default=5, help="passages a question")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    experiment = load_experiment(arguments.experiment)
    questions = questions_of(experiment)
    rankings = [ranking[: arguments.passages] for ranking in rankings_of(experiment, questions)]
    passages = list(passages_of(experiment, rankings))[: arguments.limit]
    questions = questions[: arguments.limit]
    readers = {name: Extractive(precision=name) for name in ("float32", "auto")}
    seconds: dict[str, list[float]] = {name: [] for name in readers}
    answers: dict[str, list[str]] = {}
    for _ in range(arguments.rounds):
        for name, reader in readers.items():
            started = time.perf_counter()
            answers[name] = [one.answer for one in reader.answer(questions, passages)]
            seconds[name].append(time.perf_counter() - started)
    count = sum(map(len, passages))
    for name, took in seconds.items():
        print(f"{name}: {count / median(took):.1f} passages a second (median of {[round(one, 1) for one in took]} s)")
    ratio = median(a / b for a, b in zip(*seconds.values(), strict=True))
    pairs = list(zip(*answers.values(), strict=True))
    texts, same = sum(a != b for a, b in pairs), sum(normalize(a) != normalize(b) for a, b in pairs)
    print(f"auto is {ratio:.2f} times as fast; of {len(pairs)} answers {texts} differ, {same} after normalising")


if __name__ == "__main__":
    main()
