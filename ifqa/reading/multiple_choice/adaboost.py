"""Reader 'adaboost': boosted decision trees over the words of change and effect (Freund and Schapire 1997; SAMME)."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.protocols import Place
from ifqa.reading.multiple_choice.options import ClassifierReader
from ifqa.reading.multiple_choice.wiqa_question import parts
from ifqa.settings import Stored, check_stored, checked
from ifqa.storage.files import read_json, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WEIGHTS = "model.json"
_WORD = re.compile(r"\w+")


class Tree(Stored):
    """A decision tree as lists over its nodes, node 0 the root.

    A question goes to `left` where its feature is at most the threshold, else to `right`; -1 marks a leaf. A leaf votes for
    the class `vote`, with the tree's `weight`.
    """

    weight: float
    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    vote: list[int]

    def is_whole(self, words: int, classes: int) -> bool:
        """Whether every node leads to a later node, a word and a class that exist."""
        nodes = len(self.feature)
        if not nodes or any(len(row) != nodes for row in (self.threshold, self.left, self.right, self.vote)):
            return False
        return all(0 <= vote < classes for vote in self.vote) and all(
            left == right == -1 or (n < left < nodes and n < right < nodes and 0 <= word < words)
            for n, (left, right, word) in enumerate(zip(self.left, self.right, self.feature, strict=True))
        )


class Trees(Stored):
    """The weights' file: the words that are counted, each as "change:WORD" or "effect:WORD", and the trees."""

    words: list[str]
    trees: list[Tree]


class AdaBoost(ClassifierReader):
    """Counts the words of change and of effect apart; the paper's features. It reads no passage.

    Args:
        checkpoint: a folder that `ifqa train adaboost` made.
    """

    name = "adaboost"
    version = 1
    weights = WEIGHTS

    @checked("setting of reader 'adaboost'")
    def __init__(self, checkpoint: Place) -> None:
        self._read_manifest(checkpoint)
        path = require(Path(checkpoint) / WEIGHTS, "weights of reader 'adaboost'")
        mend = "train it again: ifqa train adaboost"
        self._ensemble = check_stored(Trees, read_json(path), str(path), mend)
        words, classes = len(self._ensemble.words), len(self.manifest.classes)
        if not all(tree.is_whole(words, classes) for tree in self._ensemble.trees):
            raise IfqaError(f"{path}: a tree points to a node, word or class that is not there; {mend}")

    def _scores(self, texts: Sequence[str]) -> list[list[float]]:
        classes = len(self.manifest.classes)
        decided = decisions(self._ensemble.trees, counted(texts, self._ensemble.words), classes)
        # scikit-learn's `predict_proba` is the softmax of these (its AdaBoostClassifier._compute_proba_from_decision)
        scores: list[list[float]] = (decided / max(classes - 1, 1)).tolist()
        return scores


def words_of(stem: str) -> list[str]:
    """The words of a question's change and effect, in lower case, each with the part it is from, as "change:rain"."""
    named = zip(("change", "effect"), parts(stem), strict=True)
    return [f"{part}:{word}" for part, text in named for word in _WORD.findall(text.lower())]


def counted(stems: Sequence[str], words: Sequence[str]) -> "NDArray[np.float32]":
    """How often each question has each word, [questions, words]."""
    import numpy as np

    place = {word: n for n, word in enumerate(words)}
    counts = np.zeros((len(stems), len(words)), np.float32)
    for row, stem in enumerate(stems):
        for word in words_of(stem):
            if word in place:
                counts[row, place[word]] += 1
    return counts


def decisions(trees: Sequence[Tree], counts: "NDArray[np.float32]", classes: int) -> "NDArray[np.float64]":
    """SAMME's decision function (Zhu et al. 2009), [questions, classes].

    A tree adds its weight to the class it votes for, and takes weight / (classes - 1) from each other class; the sum is divided
    by the sum of the weights. With two classes scikit-learn gives one column, the second minus the first.
    """
    import numpy as np

    total = np.zeros((len(counts), classes))
    every = np.arange(len(counts))
    for tree in trees:
        left, right = np.array(tree.left), np.array(tree.right)
        feature, threshold = np.array(tree.feature), np.array(tree.threshold)
        node = np.zeros(len(counts), int)
        while (inner := left[node] >= 0).any():  # a child's number is higher than its parent's
            split = node[inner]
            down = counts[every[inner], feature[split]] <= threshold[split]
            node[inner] = np.where(down, left[split], right[split])
        total -= tree.weight / max(classes - 1, 1)
        total[every, np.array(tree.vote)[node]] += tree.weight + tree.weight / max(classes - 1, 1)
    weights = sum(tree.weight for tree in trees)
    return total / weights if weights else total
