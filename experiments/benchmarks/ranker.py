"""Trains the retriever `ranker`, and prints what it gains on folds of the training questions, and without each feature.

    python experiments/benchmarks/ranker.py CORPUS [--sample 1200] [--negatives gold] [--to FILE]

CORPUS has an index "bm25". Its 100 best passages for each training question, asked with its names repeated, are the lists. The
weights are those of a linear softmax over a list (ListNet, Cao et al. 2007) in which every passage that covers a gold passage is
right, with a penalty on the squares. Questions that share a gold passage are in the same fold. The rows of the table:

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
import torch
from retrieval import control_markdown, controlled, judged, markdown, scored

from ifqa.corpus.store import PassageStore
from ifqa.errors import IfqaError
from ifqa.identities import GOLD
from ifqa.models.hub import encoder_folder
from ifqa.plugins import load, open_benchmark
from ifqa.progress import bar
from ifqa.records import Hit, Question
from ifqa.retrieval.linear_ranker import FEATURES, asked, features, weigher
from ifqa.retrieval.queries import rewrite
from ifqa.scoring.measures.covers import covers
from ifqa.storage.files import sha256, write_json

DEPTH, FOLDS, PENALTY = 100, 5, 1.0


@dataclass(frozen=True)
class Listed:
    """A question's ranking with its features, [passages, features], which passages are right, and which are gold passages."""

    hits: list[Hit]
    rows: "np.ndarray[Any, Any]"
    right: "np.ndarray[Any, Any]"
    gold: "np.ndarray[Any, Any]"


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
    bm25, store = load("retriever", "bm25")(folder / "bm25"), PassageStore(folder / "passages")
    lists = listed(questions, bm25, store)

    folds = folds_of(questions, FOLDS)
    rows = {"bm25 question": bm25.search(questions, DEPTH), "bm25 names": [one.hits for one in lists]}
    every = list(range(len(FEATURES)))
    rows["ranker"] = crossed(lists, folds, every, arguments.negatives, arguments.penalty)
    for number, name in enumerate(FEATURES):
        columns = [column for column in every if column != number]
        rows[f"without {name}"] = crossed(lists, folds, columns, arguments.negatives, arguments.penalty)
    if arguments.boosted:
        rows["boosted"] = crossed(lists, folds, every, arguments.negatives, arguments.penalty, boosted)
    own = judged(rows, questions, store)
    print(markdown(scored(rows, own)))
    print(control_markdown(controlled(rows, own)))
    weights = fitted(lists, every, arguments.negatives, arguments.penalty)
    for name, weight in zip(FEATURES, weights.tolist(), strict=True):
        print(f"{name:16} {weight:8.3f}")
    if arguments.to:
        write_json(arguments.to, {
            "family": source.family(arguments.split),
            "sources": {str(path): sha256(path) for path in source.files(arguments.split)},
            "corpus": arguments.corpus, "questions": len(questions), "depth": DEPTH,
            "negatives": arguments.negatives, "penalty": arguments.penalty,
            "weights": {name: round(weight, 6) for name, weight in zip(FEATURES, weights.tolist(), strict=True)},
        })  # fmt: skip


def listed(questions: Sequence[Question], bm25: Any, store: PassageStore) -> list[Listed]:
    """Each question's list: its best passages asked with its names repeated."""
    weigh, found = weigher(encoder_folder()), []
    with bar("lists", len(questions)) as advance:
        for question, hits in zip(questions, bm25.search(rewrite(questions, "names"), DEPTH), strict=True):
            texts = [one.text for one in store.get([hit.passage_id for hit in hits])]
            rows = features(asked(question.text, weigh), [hit.score for hit in hits], texts)
            right = [any(covers(text, gold) for gold in question.gold_passages) for text in texts]
            gold = [hit.passage_id.startswith(GOLD) for hit in hits]
            found.append(Listed(hits, rows, np.array(right, bool), np.array(gold, bool)))
            advance(1)
    return found


def folds_of(questions: Sequence[Question], folds: int) -> list[int]:
    """The fold of each question; questions that share a gold passage, also through others, are in the same fold."""
    group: dict[str, int] = {}
    owners: list[int] = list(range(len(questions)))

    def root(one: int) -> int:
        while owners[one] != one:
            one = owners[one]
        return one

    for number, question in enumerate(questions):
        for text in question.gold_passages:
            owners[root(number)] = root(group.setdefault(text, number))
    roots = sorted({root(number) for number in range(len(questions))})
    drawn = dict(zip(np.random.default_rng(0).permutation(roots).tolist(), range(len(roots)), strict=True))
    return [drawn[root(number)] % folds for number in range(len(questions))]


def usable(lists: Sequence[Listed], negatives: str) -> list[tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]]:
    """The features and the right passages of each list, of the passages that are trained on.

    Raises:
        IfqaError: no list has both a right passage and a wrong one.
    """
    found = []
    for one in lists:
        used = one.right | one.gold if negatives == "gold" else np.ones(len(one.right), bool)
        if one.right.any() and not one.right[used].all():
            found.append((one.rows[used], one.right[used]))
    if not found:
        raise IfqaError(
            "no list has both a passage that covers a gold passage and one that covers none; take a larger corpus"
        )
    return found


def fitted(lists: Sequence[Listed], columns: Sequence[int], negatives: str, penalty: float) -> "np.ndarray[Any, Any]":
    """The weights of some features, float64 [features]; those of the others are 0."""
    rows, right = zip(*usable(lists, negatives), strict=True)
    owner = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
    x = np.concatenate(rows)[:, list(columns)]
    spread = np.maximum(x.std(axis=0), 1e-9)
    inputs, of = torch.from_numpy(x / spread), torch.from_numpy(owner)
    wanted = torch.from_numpy(np.concatenate(right))
    weights = torch.zeros(len(columns), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        powers = (inputs @ weights).clamp(-50, 50).exp()
        total = torch.zeros(len(rows), dtype=torch.float64).index_add(0, of, powers)
        hit = torch.zeros(len(rows), dtype=torch.float64).index_add(0, of, powers * wanted)
        value = (total.log() - hit.log()).sum() + penalty * (weights**2).sum()
        value.backward()
        return value

    optimiser.step(loss)
    found = np.zeros(len(FEATURES))
    found[list(columns)] = weights.detach().numpy() / spread
    return found


def summed(
    lists: Sequence[Listed], columns: Sequence[int], negatives: str, penalty: float
) -> Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]:
    """A function from features to scores: the weighted sum that `lists` teach."""
    weights = fitted(lists, columns, negatives, penalty)
    return lambda rows: rows @ weights


def boosted(
    lists: Sequence[Listed], columns: Sequence[int], negatives: str, _: float
) -> Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]:
    """The same by gradient-boosted trees, which tell right passages from wrong ones, with scikit-learn's settings."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows, right = map(np.concatenate, zip(*usable(lists, negatives), strict=True))
    trees = HistGradientBoostingClassifier(random_state=0).fit(rows[:, list(columns)], right)
    return lambda one: trees.decision_function(one[:, list(columns)])


def ranked(one: Listed, scores: "np.ndarray[Any, Any]") -> list[Hit]:
    """A list, ranked by scores."""
    return [Hit(one.hits[place].passage_id, float(scores[place])) for place in np.argsort(-scores, kind="stable")]


def crossed(
    lists: Sequence[Listed], folds: Sequence[int], columns: Sequence[int], negatives: str, penalty: float,
    learn: Callable[..., Callable[["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]"]] = summed,
) -> list[list[Hit]]:  # fmt: skip
    """Every list, ranked by what the other folds taught."""
    found: list[list[Hit]] = [[] for _ in lists]
    for fold in sorted(set(folds)):
        others = [one for one, own in zip(lists, folds, strict=True) if own != fold]
        score = learn(others, columns, negatives, penalty)
        for number, (one, own) in enumerate(zip(lists, folds, strict=True)):
            if own == fold:
                found[number] = ranked(one, score(one.rows))
    return found


if __name__ == "__main__":
    main()
