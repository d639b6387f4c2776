"""Which questions a retriever misses, and whether their gold passages have the question's names.

    python bench/missed.py EXPERIMENT [--k 20]

EXPERIMENT has been retrieved and scored. A name is what the query "names" takes from a question
(`ifqa.retrieval.queries.content_terms`): capitalised words and numbers. It prints the share of the
questions' names that a gold passage has, for the questions that are missed at k and for the others,
and each missed question with its gold passages.
"""

import argparse
from statistics import fmean

from ifqa.config.experiment import load_experiment
from ifqa.errors import MissingInput
from ifqa.pipeline.run import Run
from ifqa.records import Question
from ifqa.retrieval.queries import content_terms
from ifqa.storage.files import read_jsonl


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment")
    parser.add_argument("--k", type=int, default=20)
    arguments = parser.parse_args()
    run = Run(load_experiment(arguments.experiment))
    scores = run.experiment.folder / "score" / "per_question.jsonl"
    if not scores.exists():
        raise MissingInput(f"{scores} is not there; first: ifqa run {arguments.experiment}")
    found = {str(row["id"]): row[f"gold_any@{arguments.k}"] > 0 for _, row in read_jsonl(scores)}
    questions = [question for question in run.questions if question.id in found]
    missed = [question for question in questions if not found[question.id]]
    others = [question for question in questions if found[question.id]]
    for name, part in (("missed", missed), ("found", others)):
        shares = [share for question in part if (share := name_share(question)) is not None]
        print(
            f"{name} at {arguments.k}: {len(part)} questions, {100 * fmean(shares):.0f}% of names"
        )
    for question in missed:
        print(f"\n{question.id}: {question.text}")
        for text in question.gold_passages:
            print(f"  {text}")


def name_share(question: Question) -> float | None:
    """The share of a question's names that one of its gold passages has; None without names."""
    names = content_terms(question.text)
    texts = " ".join(question.gold_passages).lower()
    return fmean(name.lower() in texts for name in names) if names else None


if __name__ == "__main__":
    main()
