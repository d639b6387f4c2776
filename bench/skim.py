"""What `skim` of the larger weights saves, and what it changes.

    python bench/skim.py EXPERIMENT [--weights extractive-large] [--parts 0.003 0.01 0.05]
    python bench/skim.py --docs FOLDER --set fit [--weights extractive-large] ...

The experiment must have been retrieved. --docs reads a set of questions about documents instead,
from the folder that `bench/own_questions.py FOLDER --set SET` has filled.

It prints, for each value of `skim` and for 0: EM over all questions with an answer, how many of the
answers are others than with 0, the passages that the weights read a question, and the seconds of
processor time a question, in multiples of those of the default weights. All readers read in turn, a
part of the questions after another, so that other load affects each of them.
"""

import argparse
import time
from pathlib import Path

import ifqa
from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_outputs import passages_of, rankings_of
from ifqa.progress import bar
from ifqa.reading.span.reader import Extractive
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match, normalize
from ifqa.storage.files import read_jsonl

HERE = Path(__file__).parent
DEPTH = 5  # passages a question
BATCH = 20  # questions that a reader reads before the next one does
DEFAULT, WHOLE = "default weights", "skim 0"

Asked = tuple[list[Question], list[list[Passage]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", nargs="?", default="")
    parser.add_argument("--docs", type=Path, help="a folder of bench/own_questions.py")
    parser.add_argument("--set", default="fit", help="its set of questions")
    parser.add_argument("--weights", default="extractive-large")
    parser.add_argument("--parts", type=float, nargs="+", default=[0.003, 0.01, 0.05])
    parser.add_argument("--limit", type=int, default=700, help="questions")
    arguments = parser.parse_args()
    if arguments.docs:
        questions, passages = of_documents(arguments.docs, arguments.set)
    else:
        questions, passages = of_experiment(arguments.experiment)
    questions, passages = questions[: arguments.limit], passages[: arguments.limit]
    readers = {DEFAULT: Extractive(Extractive.Settings())}
    for part in (0.0, *arguments.parts):
        settings = Extractive.Settings(weights=arguments.weights, skim=part)
        readers[f"skim {part:g}"] = Extractive(settings)
    seconds = dict.fromkeys(readers, 0.0)
    answers: dict[str, list[str]] = {name: [] for name in readers}
    with bar("reading", len(questions) * len(readers)) as advance:
        for start in range(0, len(questions), BATCH):
            batch = slice(start, start + BATCH)
            for name, reader in readers.items():
                started = time.process_time()
                predictions = reader.answer(questions[batch], passages[batch])
                seconds[name] += time.process_time() - started
                answers[name] += [prediction.answer for prediction in predictions]
                advance(len(predictions))
    print(f"{len(questions)} questions, {sum(map(len, passages))} passages")
    for name, given in answers.items():
        right = [
            exact_match(answer, question.answers)
            for answer, question in zip(given, questions, strict=True)
            if question.answers
        ]
        others = sum(
            normalize(a) != normalize(b) for a, b in zip(given, answers[WHOLE], strict=True)
        )
        ratio = seconds[name] / seconds[DEFAULT]
        line = f"{name}: EM {100 * sum(right) / len(right):.1f}, {ratio:.2f} times the cost"
        if name != DEFAULT:
            line += f", {others} other answers"
        print(line)
    for part in arguments.parts:
        kept = readers[DEFAULT].likely_passages(questions, passages, part)
        print(f"skim {part:g}: {sum(map(len, kept)) / len(kept):.2f} passages read a question")


def of_experiment(name: str) -> Asked:
    experiment = load_experiment(name)
    questions = list(Run(experiment).questions)
    rankings = [ranking[:DEPTH] for ranking in rankings_of(experiment, questions)]
    return questions, [list(ranking) for ranking in passages_of(experiment, rankings)]


def of_documents(folder: Path, name: str) -> Asked:
    records = [record for _, record in read_jsonl(HERE / f"{name}-questions.jsonl")]
    questions = [
        Question(str(record["id"]), str(record["question"]), tuple(record["answers"]))
        for record in records
    ]
    with ifqa.open(docs=(folder / "docs").resolve(), root=folder / "work") as system:
        rankings = system.retrieve(questions, DEPTH)
    return questions, [list(ranking.passages) for ranking in rankings]


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
