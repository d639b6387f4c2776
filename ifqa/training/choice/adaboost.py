"""Training the reader 'adaboost' (`ifqa.reading.multiple_choice.adaboost`) with scikit-learn; the trees are kept as JSON."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.progress import say
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.reading.multiple_choice.adaboost import WEIGHTS, Tree, counted, words_of
from ifqa.reading.multiple_choice.options import plain
from ifqa.settings import Natural, Positive
from ifqa.storage.files import write_json
from ifqa.training import checkpoints
from ifqa.training.choice.questions import classes_of, right, usable
from ifqa.training.trainer import Settings


@dataclass(kw_only=True)
class AdaBoost(Settings):
    """Train boosted trees over the words of change and effect, for questions of multiple choice.

    Attributes:
        rounds, depth: number of trees and their depth; scikit-learn's defaults, as WIQA's paper names none.
        least: number of training questions that a word must be in to count.
        seed: for features that split equally well.
    """

    libraries = ("sklearn",)
    benchmark = "wiqa"
    split = "train"
    corpus = None

    rounds: Positive = 50
    depth: Positive = 1
    least: Positive = 1
    seed: Natural = 0

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write `model.json` and a `manifest.json`. It takes seconds, so an interrupted training begins again.

        Questions without choices or without an answer are left out.
        """
        data = usable(data)
        classes = classes_of(data.questions)
        inputs = {"reader": "adaboost"} | self.inputs(data) | {"classes": classes}
        if not checkpoints.begin(folder, inputs):
            return
        stems = [question.text for question in data.questions]
        holders = Counter(word for stem in stems for word in {*words_of(stem)})
        words = sorted(word for word, count in holders.items() if count >= self.least)
        if not words:
            raise IfqaError(
                f"training setting 'least': no word is in {self.least} of {len(stems)} training questions; lower it"
            )
        targets = [classes.index(plain(question.choices[right(question)])) for question in data.questions]
        trees = trees_of(fitted(counted(stems, words), targets, self.rounds, self.depth, self.seed))
        say(f"{folder}: {len(trees)} trees over {len(words):,} words of {len(stems):,} questions")
        write_json(folder / WEIGHTS, {"words": words, "trees": [tree.model_dump() for tree in trees]})
        record = {"trees": len(trees), "words": len(words), "examples": len(stems)}
        checkpoints.finish(folder, inputs, record, [WEIGHTS])


def fitted(counts: Any, targets: list[int], rounds: int, depth: int, seed: int) -> Any:
    """scikit-learn's AdaBoostClassifier on counts of words [questions, words] and their classes' numbers.

    Raises:
        IfqaError: not even the first tree is better than chance.
    """
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    boosted = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=rounds, random_state=seed)
    try:
        return boosted.fit(counts, targets)
    except ValueError as error:
        if "worse than random" not in str(error):
            raise
        raise IfqaError(
            f"no tree of depth {depth} is better than chance on {len(targets)} training questions; set depth higher"
        ) from error


def trees_of(boosted: Any) -> list[Tree]:
    """The trees of a fitted AdaBoostClassifier whose classes are numbers."""
    trees = []
    for estimator, weight in zip(boosted.estimators_, boosted.estimator_weights_, strict=False):
        tree = estimator.tree_  # its values are [nodes, 1, classes]
        trees.append(
            Tree(
                weight=float(weight),
                feature=tree.feature.tolist(),
                threshold=tree.threshold.tolist(),
                left=tree.children_left.tolist(),
                right=tree.children_right.tolist(),
                vote=estimator.classes_[tree.value[:, 0].argmax(1)].tolist(),
            )
        )
    return trees
