"""Trains the retriever `ranker`, and prints what it gains on folds of the training questions, and without each feature.

    python bench/ranker.py CORPUS [--sample 1200] [--negatives gold] [--to FILE]

CORPUS has an index "bm25". Its 100 best passages for each training question, asked with its names repeated, are the lists. The
weights are trained as `ifqa train ranker` does. Questions that share a gold passage are in the same fold. The rows of the table:

    bm25 question    BM25 asked the question: what the other rows are compared with
    bm25 names       the lists as they are
    ranker           each fold ranked with the weights of the other four
    without X        the same without one feature
    boosted          the same with gradient-boosted trees on the features, in place of a weighted sum (--boosted)

`--negatives gold` (default) trains on the right passages and on gold passages of other questions alone, so that nothing can be
learned of how gold passages differ from articles; `all` on every passage of a list. `--to` trains on all questions and writes
the weights. The control is that of `retrieval.py`, which also ranks other splits (`--ranker`).
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from retrieval import control_markdown, controlled, judged, markdown, scored

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import load_plugin, open_benchmark
from ifqa.protocols import TrainingData
from ifqa.records import Hit, Question
from ifqa.retrieval.linear_ranker import FEATURES
from ifqa.retrieval.queries import rewrite_questions
from ifqa.storage.files import sha256, write_json
from ifqa.training.ranker import ListFeatures, Negatives, Ranker, compute_lists, fit_weights, training_lists

FOLDS, PENALTY = 5, 1.0


@dataclass(frozen=True)
class Lists:
    """The questions, the ranking of each, and its features."""

    data: TrainingData
    hits: list[list[Hit]]
    features: list[ListFeatures]


def main() -> None:
    """Make lists, train, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--benchmark", default="ifqa")
    parser.add_argument("--split", default="full-train", help="training questions")
    parser.add_argument("--negatives", choices=["gold", "all"], default="gold")
    parser.add_argument("--penalty", type=float, default=PENALTY)
    parser.add_argument("--boosted", action="store_true", help="also boosted trees (scikit-learn's, with its defaults)")
    parser.add_argument("--sample", type=int, help="N of the questions, drawn with seed 0")
    parser.add_argument("--to", type=Path, help="file for the weights")
    arguments = parser.parse_args()
    source, folder = open_benchmark(arguments.benchmark), Path("indexes") / arguments.corpus
    questions = source.questions(arguments.split)
    drawn = np.random.default_rng(0).choice(
        len(questions), min(arguments.sample or len(questions), len(questions)), False
    )
    questions = [questions[number] for number in sorted(drawn.tolist())]
    bm25, store = load_plugin("retriever", "bm25")(folder / "bm25"), PassageStore(folder / "passages")
    lists = retrieve_lists(source, arguments.split, questions, bm25, store)

    folds = assign_folds(questions, FOLDS)
    rows = {"bm25 question": bm25.search(questions, Ranker.retrieved), "bm25 names": lists.hits}
    every = list(range(len(FEATURES)))
    rows["ranker"] = cross_rank(lists, folds, every, arguments.negatives, arguments.penalty)
    for number, name in enumerate(FEATURES):
        columns = [column for column in every if column != number]
        rows[f"without {name}"] = cross_rank(lists, folds, columns, arguments.negatives, arguments.penalty)
    if arguments.boosted:
        rows["boosted"] = cross_rank(lists, folds, every, arguments.negatives, arguments.penalty, fit_boosted)
    judgements = judged(rows, questions, store)
    print(markdown(scored(rows, judgements)))
    print(control_markdown(controlled(rows, judgements)))
    weights = fit_weights(lists.features, every, arguments.negatives, arguments.penalty)
    for name, weight in zip(FEATURES, weights.tolist(), strict=True):
        print(f"{name:16} {weight:8.3f}")
    if arguments.to:
        trainer = Ranker(negatives=arguments.negatives, penalty=arguments.penalty)
        write_json(arguments.to, trainer.weights_json(lists.data, weights) | {"corpus": arguments.corpus})


def retrieve_lists(source: Any, split: str, questions: Sequence[Question], bm25: Any, store: PassageStore) -> Lists:
    """Each question's list: its best passages asked with its names repeated."""
    rankings = bm25.search(rewrite_questions(questions, Ranker.query), Ranker.retrieved)
    files = {str(path): sha256(path) for path in source.files(split)}
    data = TrainingData(
        questions, [store.get([hit.passage_id for hit in hits]) for hits in rankings], source.family(split), files,
        [[hit.score for hit in hits] for hits in rankings],
    )  # fmt: skip
    return Lists(data, [list(hits) for hits in rankings], compute_lists(data))


def assign_folds(questions: Sequence[Question], folds: int) -> list[int]:
    """The fold of each question; questions that share a gold passage, also through others, are in the same fold."""
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
    drawn = dict(zip(np.random.default_rng(0).permutation(roots).tolist(), range(len(roots)), strict=True))
    return [drawn[root(number)] % folds for number in range(len(questions))]


def fit_linear(
    lists: Sequence[ListFeatures], columns: Sequence[int], negatives: Negatives, penalty: float
) -> Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]:
    """A function from features to scores: the weighted sum that `lists` teach."""
    weights = fit_weights(lists, columns, negatives, penalty)
    return lambda rows: rows @ weights


def fit_boosted(
    lists: Sequence[ListFeatures], columns: Sequence[int], negatives: Negatives, _: float
) -> Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]:
    """The same by gradient-boosted trees, which tell right passages from wrong ones, with scikit-learn's settings."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows, right = map(np.concatenate, zip(*training_lists(lists, negatives), strict=True))
    trees = HistGradientBoostingClassifier(random_state=0).fit(rows[:, list(columns)], right)
    return lambda rows: trees.decision_function(rows[:, list(columns)])


def cross_rank(
    lists: Lists, folds: Sequence[int], columns: Sequence[int], negatives: Negatives, penalty: float,
    learn: Callable[..., Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]] = fit_linear,
) -> list[list[Hit]]:  # fmt: skip
    """Every list, ranked by what the other folds taught."""
    rankings: list[list[Hit]] = [[] for _ in folds]
    for fold in sorted(set(folds)):
        others = [each for each, own in zip(lists.features, folds, strict=True) if own != fold]
        score = learn(others, columns, negatives, penalty)
        for number, (each, hits) in enumerate(zip(lists.features, lists.hits, strict=True)):
            if folds[number] == fold:
                scores = score(each.rows)
                order = np.argsort(-scores, kind="stable")
                rankings[number] = [Hit(hits[place].passage_id, float(scores[place])) for place in order]
    return rankings


if __name__ == "__main__":
    main()
