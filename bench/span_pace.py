"""The span reader's passages per second in float32 and with `precision = "auto"`, and whether the
answers are equal.

    python bench/span_pace.py ifqa-dev-bm25 [--limit 700] [--rounds 3] [--weights FOLDER]

The experiment must have been retrieved. Both read the same questions and passages in turn, so that
other load affects both; fetching the passages is not timed. --weights also times a reader with
other weights, perhaps of another encoder, in the same turns. Answers are compared between the two
precisions of each reader.
"""

import argparse
import time
from itertools import product
from statistics import median

from ifqa.config.experiment import load_experiment
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passages_of, rankings_of
from ifqa.reading.span.reader import Extractive
from ifqa.scoring.measures.exact_match import normalize

PRECISIONS = ("float32", "auto")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment")
    parser.add_argument("--limit", type=int, default=700, help="questions")
    parser.add_argument("--passages", type=int, default=5, help="passages a question")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights", default="", help="a folder of weights to time as well")
    arguments = parser.parse_args()
    experiment = load_experiment(arguments.experiment)
    questions = Run(experiment).questions
    rankings = [ranking[: arguments.passages] for ranking in rankings_of(experiment, questions)]
    passages = list(passages_of(experiment, rankings))[: arguments.limit]
    questions = questions[: arguments.limit]
    folders = [*dict.fromkeys(["", arguments.weights])]
    readers = {
        pair: Extractive(Extractive.Settings(weights=pair[0], precision=pair[1]))
        for pair in product(folders, PRECISIONS)
    }
    seconds: dict[tuple[str, str], list[float]] = {name: [] for name in readers}
    answers: dict[tuple[str, str], list[str]] = {}
    for _ in range(arguments.rounds):
        for name, reader in readers.items():
            started = time.perf_counter()
            answers[name] = [prediction.answer for prediction in reader.answer(questions, passages)]
            seconds[name].append(time.perf_counter() - started)
    count = sum(map(len, passages))
    for (folder, precision), times in seconds.items():
        rounds = [round(time, 1) for time in times]
        pace = f"{count / median(times):.1f} passages a second"
        print(f"{folder or 'shipped'}, {precision}: {pace} (median of {rounds} s)")
    for folder in folders:
        exact, auto = ((folder, precision) for precision in PRECISIONS)
        ratio = median(a / b for a, b in zip(seconds[exact], seconds[auto], strict=True))
        pairs = list(zip(answers[exact], answers[auto], strict=True))
        texts = sum(a != b for a, b in pairs)
        normal = sum(normalize(a) != normalize(b) for a, b in pairs)
        differ = f"of {len(pairs)} answers {texts} differ, {normal} after normalising"
        print(f"{folder or 'shipped'}: auto is {ratio:.2f} times as fast; {differ}")


if __name__ == "__main__":
    main()
