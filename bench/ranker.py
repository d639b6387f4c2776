"""Trains the retriever `ranker`, and prints its gain by cross-validation on the training questions,
and without each feature.

    python bench/ranker.py CORPUS [--sample 1200] [--negatives gold] [--to FILE]

CORPUS has an index "bm25". Its 100 best passages for each training question with repeated names are
the lists. Training is that of `ifqa train ranker`. Questions that share a gold passage are in the
same fold. The rows of the table:

    bm25 question    BM25 with the question, the baseline
    bm25 names       the lists
    ranker           each fold ranked with the weights of the other four
    without X        the same without a feature
    boosted          the same with gradient-boosted trees on the features, instead of a weighted sum (--boosted)

`--negatives gold` (default) trains only on right passages and gold passages of other questions, so
the difference between gold passages and articles cannot be learned; `all` trains on every passage
of a list. `--to` trains on all questions and writes the weights. The control is that of
`retrieval.py`, which also ranks other splits (`--ranker`).
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from retrieval import control_markdown, control_table, judge, markdown, recall_table

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import open_benchmark
from ifqa.protocols import TrainingData
from ifqa.records import Hit, Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.linear_ranker import FEATURES
from ifqa.retrieval.queries import rewrite_questions
from ifqa.storage.files import sha256, write_json
from ifqa.training.ranker import (
    ListFeatures,
    Negatives,
    Ranker,
    compute_lists,
    fit_weights,
    training_lists,
)

FOLDS, PENALTY = 5, 1.0
Scorer = Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]  # features -> scores


@dataclass(frozen=True)
class Lists:
    """The questions, the ranking of each, and its features."""

    training_data: TrainingData
    hits: list[list[Hit]]
    features: list[ListFeatures]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("--benchmark", default="ifqa")
    parser.add_argument("--split", default="full-train", help="training questions")
    parser.add_argument("--negatives", choices=["gold", "all"], default="gold")
    parser.add_argument("--penalty", type=float, default=PENALTY)
    parser.add_argument(
        "--boosted",
        action="store_true",
        help="also boosted trees (scikit-learn's, with its defaults)",
    )
    parser.add_argument("--sample", type=int, help="N of the questions, drawn with seed 0")
    parser.add_argument("--to", type=Path, help="file for the weights")
    arguments = parser.parse_args()
    source = open_benchmark(arguments.benchmark)
    folder = Path("indexes") / arguments.corpus
    questions = source.questions(arguments.split)
    size = min(arguments.sample or len(questions), len(questions))
    numbers = np.random.default_rng(0).choice(len(questions), size, False)
    questions = [questions[number] for number in sorted(numbers.tolist())]
    bm25 = BM25(BM25.Settings(), index=folder / "bm25")
    store = PassageStore(folder / "passages")
    lists = retrieve_lists(source, arguments.split, questions, bm25, store)

    folds = assign_folds(questions, FOLDS)
    rows = {"bm25 question": bm25.search(questions, Ranker.retrieved), "bm25 names": lists.hits}
    columns = list(range(len(FEATURES)))
    options = (arguments.negatives, arguments.penalty)
    rows["ranker"] = cross_rank(lists, folds, columns, *options)
    for number, name in enumerate(FEATURES):
        rows[f"without {name}"] = cross_rank(
            lists, folds, [*columns[:number], *columns[number + 1 :]], *options
        )
    if arguments.boosted:
        rows["boosted"] = cross_rank(lists, folds, columns, *options, fit_boosted)
    judgements = judge(rows, questions, store)
    print(markdown(recall_table(rows, judgements)))
    print(control_markdown(control_table(rows, judgements)))
    weights = fit_weights(lists.features, columns, *options)
    for name, weight in zip(FEATURES, weights.tolist(), strict=True):
        print(f"{name:16} {weight:8.3f}")
    if arguments.to:
        trainer = Ranker(Ranker.Settings(negatives=arguments.negatives, penalty=arguments.penalty))
        write_json(
            arguments.to,
            trainer.weights_json(lists.training_data, weights) | {"corpus": arguments.corpus},
        )


def retrieve_lists(
    source: Any, split: str, questions: Sequence[Question], bm25: Any, store: PassageStore
) -> Lists:
    """Each question's list: its best passages with repeated names."""
    rankings = bm25.search(rewrite_questions(questions, Ranker.query), Ranker.retrieved)
    files = {str(path): sha256(path) for path in source.files(split)}
    training_data = TrainingData(
        questions,
        [store.get([hit.passage_id for hit in hits]) for hits in rankings],
        source.family(split),
        files,
        [[hit.score for hit in hits] for hits in rankings],
    )
    return Lists(training_data, [list(hits) for hits in rankings], compute_lists(training_data))


def assign_folds(questions: Sequence[Question], folds: int) -> list[int]:
    """The fold of each question.

    Questions that share a gold passage, also through others, are in the same fold.
    """
    group: dict[str, int] = {}
    owners: list[int] = list(range(len(questions)))

    def root(number: int) -> int:
        while owners[number] != number:
            number = owners[number]
        return number

    for number, question in enumerate(questions):
        for text in question.gold_passages:
            owners[root(number)] = root(group.setdefault(text, number))
    roots = sorted({root(number) for number in range(len(questions))})
    shuffled = dict(
        zip(np.random.default_rng(0).permutation(roots).tolist(), range(len(roots)), strict=True)
    )
    return [shuffled[root(number)] % folds for number in range(len(questions))]


def fit_linear(
    lists: Sequence[ListFeatures], columns: Sequence[int], negatives: Negatives, penalty: float
) -> Scorer:
    """The trained weighted sum."""
    weights = fit_weights(lists, columns, negatives, penalty)
    return lambda rows: rows @ weights


def fit_boosted(
    lists: Sequence[ListFeatures], columns: Sequence[int], negatives: Negatives, _: float
) -> Scorer:
    """Gradient-boosted trees that classify right and wrong passages, with scikit-learn's
    defaults.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows, right = map(np.concatenate, zip(*training_lists(lists, negatives), strict=True))
    trees = HistGradientBoostingClassifier(random_state=0).fit(rows[:, list(columns)], right)
    return lambda rows: trees.decision_function(rows[:, list(columns)])


def cross_rank(
    lists: Lists,
    folds: Sequence[int],
    columns: Sequence[int],
    negatives: Negatives,
    penalty: float,
    fit: Callable[..., Scorer] = fit_linear,
) -> list[list[Hit]]:
    """Every list, ranked by the scorer trained on the other folds."""
    rankings: list[list[Hit]] = [[] for _ in folds]
    for fold in sorted(set(folds)):
        others = [
            features for features, part in zip(lists.features, folds, strict=True) if part != fold
        ]
        score = fit(others, columns, negatives, penalty)
        for number, (features, hits) in enumerate(zip(lists.features, lists.hits, strict=True)):
            if folds[number] == fold:
                scores = score(features.rows)
                order = np.argsort(-scores, kind="stable")
                rankings[number] = [
                    Hit(hits[place].passage_id, float(scores[place])) for place in order
                ]
    return rankings


if __name__ == "__main__":
    main()
