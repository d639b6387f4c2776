"""Training the reader 'adaboost' (`ifqa.reading.choice.adaboost`) with scikit-learn; the trees are kept as JSON."""

from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.progress import say
from ifqa.reading.choice.adaboost import WEIGHTS, Tree, counted, words_of
from ifqa.reading.choice.offered import plain
from ifqa.settings import Natural, Positive, checked
from ifqa.storage.files import write_json
from ifqa.training import resume
from ifqa.training.choice.answered import classes_of, right, usable
from ifqa.training.material import Material


@checked("training setting", given=["material", "folder"])
def train(
    material: Material, folder: Path, *, seed: Natural = 0, rounds: Positive = 50, depth: Positive = 1, least: Positive = 1
) -> None:
    """Train, and write `model.json` and a `manifest.json`. It takes seconds, so an interrupted training begins again.

    Args:
        material: questions without choices or without an answer are left out.
        folder: the trees are written here.
        seed: for features that split equally well.
        rounds, depth: number of trees and their depth; scikit-learn's defaults, as WIQA's paper names none.
        least: number of training questions that a word must be in to count.

    Raises:
        IfqaError: nothing to train on or to learn, a setting out of range, or `folder` holds another training.
    """
    material = usable(material)
    classes = classes_of(material.questions)
    inputs = {
        "reader": "adaboost",
        "family": material.family,
        "sources": material.sources,
        "settings": {"seed": seed, "rounds": rounds, "depth": depth, "least": least},
        "classes": classes,
        "questions": resume.identity(material.questions, material.rankings),
    }
    if not resume.begin(folder, inputs):
        return
    stems = [question.text for question in material.questions]
    held: dict[str, int] = {}
    for stem in stems:
        for word in {*words_of(stem)}:
            held[word] = held.get(word, 0) + 1
    words = sorted(word for word, count in held.items() if count >= least)
    if not words:
        raise IfqaError(f"training setting 'least': no word is in {least} of {len(stems)} training questions; lower it")
    targets = [classes.index(plain(question.choices[right(question)])) for question in material.questions]
    boosted = fitted(counted(stems, words), targets, rounds, depth, seed)
    trees = trees_of(boosted)
    say(f"{folder}: {len(trees)} trees over {len(words):,} words of {len(stems):,} questions")
    write_json(folder / WEIGHTS, {"words": words, "trees": [tree.model_dump() for tree in trees]})
    resume.finish(folder, inputs, {"trees": len(trees), "words": len(words), "examples": len(stems)}, [WEIGHTS])


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
    made = []
    for estimator, weight in zip(boosted.estimators_, boosted.estimator_weights_, strict=False):
        tree = estimator.tree_  # its values are [nodes, 1, classes]
        made.append(
            Tree(
                weight=float(weight),
                feature=tree.feature.tolist(),
                threshold=tree.threshold.tolist(),
                left=tree.children_left.tolist(),
                right=tree.children_right.tolist(),
                vote=estimator.classes_[tree.value[:, 0].argmax(1)].tolist(),
            )
        )
    return made
