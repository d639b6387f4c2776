"""How many passages a second the span reader reads, in float32 and with `precision = "auto"`, and whether the answers are equal.

    python bench/span_pace.py ifqa-dev-bm25 [--limit 700] [--rounds 3] [--weights FOLDER]

The experiment must have been retrieved. Both read the same questions and passages in turn, so that the machine's other work
falls on both; the passages are fetched before the clock starts. With --weights, the reader with these weights, which may be
of another encoder, is timed in the same turns; answers are compared between the two precisions of each.
"""

import argparse
import time
from statistics import median

from ifqa.config.experiment import load_experiment
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import passages_of, rankings_of
from ifqa.reading.span.reader import Extractive
from ifqa.scoring.measures.exact_match import normalize

PRECISIONS = ("float32", "auto")


def main() -> None:
    """Time both in turn and compare their answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment")
    parser.add_argument("--limit", type=int, default=700, help="questions")
    parser.add_argument("--passages", type=int, default=5, help="passages a question")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights", default="", help="a folder of weights to time beside the shipped ones")
    arguments = parser.parse_args()
    experiment = load_experiment(arguments.experiment)
    questions = Run(experiment).questions
    rankings = [ranking[: arguments.passages] for ranking in rankings_of(experiment, questions)]
    passages = list(passages_of(experiment, rankings))[: arguments.limit]
    questions = questions[: arguments.limit]
    several = {"shipped": ""} | ({arguments.weights: arguments.weights} if arguments.weights else {})
    readers = {
        (about, precision): Extractive(precision=precision, weights=weights)
        for about, weights in several.items()
        for precision in PRECISIONS
    }
    seconds: dict[tuple[str, str], list[float]] = {name: [] for name in readers}
    answers: dict[tuple[str, str], list[str]] = {}
    for _ in range(arguments.rounds):
        for name, reader in readers.items():
            started = time.perf_counter()
            answers[name] = [prediction.answer for prediction in reader.answer(questions, passages)]
            seconds[name].append(time.perf_counter() - started)
    count = sum(map(len, passages))
    for (about, one), second in seconds.items():
        pace, times = count / median(second), [round(each, 1) for each in second]
        print(f"{about}, {one}: {pace:.1f} passages a second (median of {times} s)")
    for about in several:
        exact, auto = ((about, precision) for precision in PRECISIONS)
        ratio = median(a / b for a, b in zip(seconds[exact], seconds[auto], strict=True))
        pairs = list(zip(answers[exact], answers[auto], strict=True))
        texts, same = sum(a != b for a, b in pairs), sum(normalize(a) != normalize(b) for a, b in pairs)
        print(
            f"{about}: auto is {ratio:.2f} times as fast; of {len(pairs)} answers {texts} differ, {same} after normalising"
        )


if __name__ == "__main__":
    main()
