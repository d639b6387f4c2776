"""Reader 'adaboost': boosted decision trees over the words of change and effect (Freund and Schapire 1997; SAMME)."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.protocols import Advance, Place, Reader, silent
from ifqa.reading.choice.offered import by_class, require_choices
from ifqa.reading.choice.stems import parts
from ifqa.reading.choice.trained import identity_of, manifest_of
from ifqa.records import Passage, Prediction, Question
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


class Trees(Stored):
    """The weights' file: the words that are counted, each as "change:WORD" or "effect:WORD", and the trees."""

    words: list[str]
    trees: list[Tree]


class AdaBoost(Reader):
    """Counts the words of change and of effect apart; the paper's features. It reads no passage.

    Args:
        checkpoint: a folder that `ifqa train adaboost` made.

    Attributes:
        family: split family of the training questions.
        trained_on: SHA-256 of the files of the training questions.

    Raises:
        IfqaError: the weights are missing or damaged.
    """

    version = 1
    chooses = True
    passages_are = "ignored"

    @checked("setting of reader 'adaboost'")
    def __init__(self, checkpoint: Place) -> None:
        manifest = manifest_of(checkpoint, "adaboost")
        self.family, self._classes = manifest.family, manifest.classes
        self.trained_on = frozenset(manifest.sources.values())
        path = require(Path(checkpoint) / WEIGHTS, "weights of reader 'adaboost'")
        mend = "train it again: ifqa train adaboost"
        self._found = check_stored(Trees, read_json(path), str(path), mend)
        for tree in self._found.trees:
            if not _whole(tree, len(self._found.words), len(self._classes)):
                raise IfqaError(f"{path}: a tree points to a node, word or class that is not there; {mend}")

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order; `score` is the logarithm of SAMME's probability.

        Raises:
            IfqaError: a question has no choices, or is not worded "suppose ... happens, how will it affect ...".
        """
        require_choices(questions, "adaboost")
        counts = counted([question.text for question in questions], self._found.words)
        scores = decisions(self._found.trees, counts, len(self._classes))
        advance(len(questions))
        # scikit-learn's `predict_proba` is the softmax of these (its AdaBoostClassifier._compute_proba_from_decision)
        scale = max(len(self._classes) - 1, 1)
        return [
            by_class(question, dict(zip(self._classes, (row / scale).tolist(), strict=True)))
            for question, row in zip(questions, scores, strict=True)
        ]

    @classmethod
    def trained(cls, checkpoint: str, **_: object) -> str:
        """The split family of the training questions, read without the weights."""
        return manifest_of(checkpoint, "adaboost").family

    @classmethod
    def fingerprint(cls, checkpoint: str, **_: object) -> str:
        """SHA-256 over the weights and what the manifest says of them."""
        return identity_of(checkpoint, WEIGHTS, "adaboost")


def words_of(stem: str) -> list[str]:
    """The words of a question's change and effect, in lower case, each with the part it is from.

    Raises:
        IfqaError: it is not worded "suppose ... happens, how will it affect ...".
    """
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
        for _ in tree.feature:  # no path is longer than the tree has nodes
            inner = left[node] >= 0
            if not inner.any():
                break
            own = node[inner]
            down = counts[every[inner], feature[own]] <= threshold[own]
            node[inner] = np.where(down, left[own], right[own])
        vote = np.array(tree.vote)[node]
        total -= tree.weight / max(classes - 1, 1)
        total[every, vote] += tree.weight + tree.weight / max(classes - 1, 1)
    weights = sum(tree.weight for tree in trees)
    return total / weights if weights else total


def _whole(tree: Tree, words: int, classes: int) -> bool:
    """Whether every node of a tree leads to a later node, a word and a class that exist."""
    nodes = len(tree.feature)
    lists: Mapping[str, list[Any]] = {name: getattr(tree, name) for name in ("threshold", "left", "right", "vote")}
    return (
        nodes > 0
        and all(len(one) == nodes for one in lists.values())
        and all(0 <= vote < classes for vote in tree.vote)
        and all(
            (tree.left[n] == tree.right[n] == -1)
            or (n < tree.left[n] < nodes and n < tree.right[n] < nodes and 0 <= tree.feature[n] < words)
            for n in range(nodes)
        )
    )
