"""Cross-validates the span reader: trains on all folds of a training split except one, and reads
that fold's questions.

    python bench/extractive_folds.py data/ifqa/full_split/train.json --folds 4 --fold 0 \
        --out FOLDER \
        [--set start=models/extractive/reading] [--set learning_rate=5e-4] [--name NAME]
    python bench/extractive_folds.py --compare A.jsonl B.jsonl

The held-out questions are read from their gold passages, and from BM25's five best of all gold
passages of the split. Equal questions, and questions that share a gold passage, are in the same
fold. Negatives are BM25's best of the same passages, as in `ifqa train extractive`; --set changes
its settings. A passage of the held-out fold can be a negative; its questions and answers are never
seen.

Predictions are written to FOLDER/NAME.jsonl, weights to FOLDER/NAME. For --compare, the predictions
of all folds may be concatenated. An interrupted training resumes.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ifqa.cli.options import settings_of_flags
from ifqa.corpus.passage_store import generated_passage_line
from ifqa.protocols import TrainingData
from ifqa.reading.span.reader import Extractive
from ifqa.records import Passage, Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.question_texts import Gold
from ifqa.scoring.measures.exact_match import exact_match, f1
from ifqa.scoring.statistics import count_wins, mean_interval, paired_randomization
from ifqa.storage.files import read_json, read_jsonl, sha256, write_jsonl
from ifqa.training.extractive import Extractive as Trainer
from ifqa.training.trainer import assign_folds, configure_trainer

K = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("questions", type=Path, nargs="?", help="IfQA's training file")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--fold", type=int, default=0, help="number of the held-out fold, from 0")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        help="a setting of `ifqa train extractive`, as epochs=3",
    )
    parser.add_argument(
        "--name", default="reader", help="of the outputs; the number of the fold is added"
    )
    parser.add_argument("--seed", type=int, default=0, help="for folds and training")
    parser.add_argument("--out", type=Path, help="folder for predictions, weights and the index")
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar=("A", "B"), help="two files of predictions"
    )
    arguments = parser.parse_args()
    if arguments.compare:
        compare(*arguments.compare)
    elif arguments.questions and arguments.out and 0 <= arguments.fold < arguments.folds:
        run(arguments)
    else:
        parser.error("wanted a training file, --out and a --fold below --folds; or --compare")


def run(arguments: argparse.Namespace) -> None:
    questions = load_questions(arguments.questions)
    fold = assign_folds(questions, arguments.folds, arguments.seed)
    rankings = rank(questions, arguments.out / "index")
    train = [number for number, part in enumerate(fold) if part != arguments.fold]
    held = [number for number, part in enumerate(fold) if part == arguments.fold]
    name = f"{arguments.name}-{arguments.fold}"
    started = time.monotonic()
    training_data = TrainingData(
        [questions[number] for number in train],
        [rankings[number] for number in train],
        "cross-validation",
        {arguments.questions.name: sha256(arguments.questions)},
    )
    trainer = configure_trainer(
        Trainer, **({"seed": arguments.seed} | settings_of_flags(arguments.set))
    )
    manifest = trainer.train(training_data, arguments.out / name)
    print(f"{name}: {manifest['steps']} steps; {time.monotonic() - started:.0f} s", flush=True)
    reader = Extractive(Extractive.Settings(weights=str(arguments.out / name)))
    held_out = [questions[number] for number in held]
    sources = {
        "gold": [ranking.generated or () for ranking in Gold().search(held_out, 1)],
        f"top {K}": [rankings[number][:K] for number in held],
    }
    rows: list[dict[str, Any]] = []
    for source, passages in sources.items():
        predictions = zip(held_out, reader.answer(held_out, passages), strict=True)
        scores = [
            score(question, prediction.answer, source) for question, prediction in predictions
        ]
        for measure in ("em", "f1"):
            print_interval(
                f"{name}, {source} (n={len(scores)}), {measure}", [row[measure] for row in scores]
            )
        rows += scores
    write_jsonl(arguments.out / f"{name}.jsonl", rows)


def load_questions(path: Path) -> list[Question]:
    rows = read_json(path)
    return [
        Question(str(row["idx"]), row["question"], tuple(row["answers"]), tuple(row["context"]))
        for row in rows
    ]


def rank(questions: Sequence[Question], folder: Path) -> list[list[Passage]]:
    """BM25's best of all questions' gold passages for each question."""
    passages = {
        passage.id: passage
        for ranking in Gold().search(questions, 1)
        for passage in ranking.generated or ()
    }
    (folder / "passages").mkdir(parents=True, exist_ok=True)
    (folder / "passages" / "passages-00000.jsonl").write_bytes(
        b"".join(map(generated_passage_line, passages.values()))
    )
    BM25.build(folder / "passages", folder / "bm25", BM25.BuildSettings())
    bm25 = BM25(BM25.Settings(), index=folder / "bm25")
    rankings = bm25.search(questions, Trainer.retrieved)
    return [[passages[hit.passage_id] for hit in ranking] for ranking in rankings]


def score(question: Question, answer: str, source: str) -> dict[str, Any]:
    """A line of the output; scores in percent."""
    scores = {
        "em": 100 * exact_match(answer, question.answers),
        "f1": 100 * f1(answer, question.answers),
    }
    return {
        "id": question.id,
        "read": source,
        "question": question.text,
        "answer": answer,
        **scores,
    }


def print_interval(what: str, values: Sequence[float], more: str = "") -> None:
    mean, low, high = mean_interval(values)
    print(f"{what}: {mean:.2f} [{low:.2f} {high:.2f}]{more}", flush=True)


def compare(a: Path, b: Path) -> None:
    """Print A - B on the same questions: mean, 95% interval of the paired bootstrap, p of the
    randomisation test.
    """
    rows = [
        {(record["read"], record["id"]): record for _, record in read_jsonl(path)}
        for path in (a, b)
    ]
    if rows[0].keys() != rows[1].keys():
        raise SystemExit(
            f"{a} and {b} hold other questions; wanted two trainings read on the same folds"
        )
    for source in dict.fromkeys(source for source, _ in rows[0]):
        keys = [key for key in rows[0] if key[0] == source]
        for measure in ("em", "f1"):
            first, second = ([file[key][measure] for key in keys] for file in rows)
            won, lost, _ = count_wins(first, second)
            more = (
                f", p {paired_randomization(first, second):.4f}, {won} better, "
                f"{lost} worse of {len(keys)}"
            )
            print_interval(
                f"{source}, {measure}, A - B",
                [a - b for a, b in zip(first, second, strict=True)],
                more,
            )


if __name__ == "__main__":
    main()
