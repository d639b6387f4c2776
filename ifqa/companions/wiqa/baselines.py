"""Baselines of WIQA's paper (Tandon et al. 2019, section 5), without passages: majority, a lexicon,
boosted trees, attention.
"""

import hashlib
import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ifqa.companions.wiqa.direction_lexicon import direction, polarity
from ifqa.companions.wiqa.options import (
    ChoiceManifest,
    OptionReader,
    choose_option,
    load_choice_manifest,
    normalize_choice,
)
from ifqa.companions.wiqa.release import split_stem
from ifqa.errors import ConfigError, DamagedArtifact
from ifqa.models.devices import resolve_device
from ifqa.plugins import open_benchmark
from ifqa.protocols import RankedPassages
from ifqa.records import Prediction, Question
from ifqa.settings import PathSetting, PluginSettings, StoredModel, parse_stored
from ifqa.storage.files import read_json, require_file, sha256

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TREES_FILE, NETWORK_FILE = "model.json", "model.safetensors"  # files of weights
_WORD = re.compile(r"\w+")


class Majority(OptionReader):
    """Gives the same answer to all questions.

    Where a question does not offer it, the prediction fails.
    """

    name = "majority"
    version = 1
    takes = ("root",)

    class Settings(PluginSettings):
        split: str = ""
        """The training questions, as benchmark/split; their most frequent answer is given, on a tie
        the first.
        """
        answer: str = ""
        """The answer to give, instead of `split`."""

    def __init__(self, settings: Settings, *, root: Path = Path()) -> None:
        split = settings.split
        if bool(split) == bool(settings.answer):
            wanted = "split (the training questions, such as sample-wiqa/train) or answer"
            raise ConfigError(f"reader 'majority': wanted either {wanted}")
        self.family = self.training_family(settings, root)
        self._answer = settings.answer
        if split:
            benchmark, _, part = split.partition("/")
            source = open_benchmark(benchmark, root)
            self.trained_on = frozenset(map(sha256, source.files(part)))
            counts = Counter(
                question.answers[0] for question in source.questions(part) if question.answers
            )
            if not counts:
                raise ConfigError(
                    f"reader 'majority': no question of {split} has an "
                    "answer; name training questions"
                )
            self._answer = counts.most_common(1)[0][0]

    def _choose(self, questions: Sequence[Question], passages: RankedPassages) -> list[Prediction]:
        predictions = []
        for question in questions:
            choices = {normalize_choice(choice): choice for choice in reversed(question.choices)}
            answer = choices.get(normalize_choice(self._answer), "")
            error = "" if answer else f"the answer {self._answer!r} is not offered"
            predictions.append(Prediction(question.id, answer, error=error))
        return predictions

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        """The split family of the training questions; empty for a fixed answer."""
        benchmark, _, part = settings.split.partition("/")
        return open_benchmark(benchmark, root).family(part) if settings.split else ""

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        """SHA-256 over the files of the training questions; empty for a fixed answer."""
        benchmark, _, part = settings.split.partition("/")
        files = open_benchmark(benchmark, root).files(part) if settings.split else ()
        return hashlib.sha256(" ".join(map(sha256, files)).encode()).hexdigest() if files else ""


class Polarity(OptionReader):
    """Answers "more" if change and effect have the same polarity, "less" if opposite.

    Chooses at random if undecided.

    The paper (Tandon et al. 2019, section 5) calls these "correct" and "opposite". Its polarity
    baseline almost never answers "no effect" (it gets 0.27% of those questions right), so the
    random choice, seeded by the question's id, is between the other two. The words of the choices
    tell which says more and which less.
    """

    name = "polarity"
    version = 1

    def _choose(self, questions: Sequence[Question], passages: RankedPassages) -> list[Prediction]:
        predictions = []
        for question in questions:
            directed = {direction(choice): choice for choice in reversed(question.choices)}
            if not {1, -1} <= directed.keys():
                predictions.append(
                    Prediction(question.id, "", error="the choices do not offer both more and less")
                )
                continue
            change, effect = split_stem(question.text)
            same = polarity(change) * polarity(effect) or random.Random(question.id).choice((1, -1))
            predictions.append(Prediction(question.id, directed[same]))
        return predictions


class ClassifierReader(OptionReader):
    """Scores the classes of its training questions from the question's text.

    A question that offers none of them fails.
    """

    class Settings(PluginSettings):
        checkpoint: PathSetting
        """A folder that `ifqa train` made for this reader."""

    weights: ClassVar[str]  # the file of the weights
    model_settings: ClassVar = {"checkpoint": ""}
    manifest: ChoiceManifest

    def _read_manifest(self, checkpoint: str) -> None:
        self.manifest = load_choice_manifest(checkpoint, self.name)
        self.family = self.manifest.family
        self.trained_on = frozenset(self.manifest.sources.values())

    def _choose(self, questions: Sequence[Question], passages: RankedPassages) -> list[Prediction]:
        predictions = []
        rows = self._scores([question.text for question in questions])
        for question, row in zip(questions, rows, strict=True):
            class_scores = dict(zip(self.manifest.classes, row, strict=True))
            scores = [
                class_scores.get(normalize_choice(choice), -math.inf) for choice in question.choices
            ]
            if max(scores) == -math.inf:
                error = (
                    f"the reader learnt {', '.join(class_scores)}, but the "
                    "question offers none of these"
                )
                predictions.append(Prediction(question.id, "", error=error))
            else:
                predictions.append(choose_option(question, scores))
        return predictions

    def _scores(self, texts: Sequence[str]) -> list[list[float]]:
        """A logit for each class, [questions, classes]."""
        raise NotImplementedError

    @classmethod
    def training_family(cls, settings: Settings, root: Path) -> str:
        return load_choice_manifest(settings.checkpoint, cls.name).family

    @classmethod
    def fingerprint(cls, settings: Settings, root: Path) -> str:
        checkpoint = settings.checkpoint
        manifest = load_choice_manifest(checkpoint, cls.name)
        weights = sha256(
            require_file(Path(checkpoint) / cls.weights, f"weights of reader {cls.name!r}")
        )
        return hashlib.sha256(
            f"{weights} {manifest.settings} {manifest.classes}".encode()
        ).hexdigest()


class Tree(StoredModel):
    """A decision tree as lists over its nodes, node 0 the root."""

    weight: float  # the weight of its vote
    feature: list[int]
    threshold: list[float]
    left: list[int]  # the child where the feature is at most the threshold; -1 for a leaf
    right: list[int]
    vote: list[int]  # the class that a leaf votes for

    def is_valid(self, words: int, classes: int) -> bool:
        """Whether every node refers only to later nodes, and to a word and a class that exist."""
        nodes = len(self.feature)
        if not nodes or any(
            len(row) != nodes for row in (self.threshold, self.left, self.right, self.vote)
        ):
            return False
        return all(0 <= vote < classes for vote in self.vote) and all(
            left == right == -1 or (n < left < nodes and n < right < nodes and 0 <= word < words)
            for n, (left, right, word) in enumerate(
                zip(self.left, self.right, self.feature, strict=True)
            )
        )


class TreeEnsemble(StoredModel):
    """The file of weights: the counted words, as "change:WORD" or "effect:WORD", and the trees."""

    words: list[str]
    trees: list[Tree]


class AdaBoost(ClassifierReader):
    """Boosted decision trees (Freund and Schapire 1997; SAMME) over the words of change and of
    effect, the paper's features.
    """

    name = "adaboost"
    version = 1
    weights = TREES_FILE

    class Settings(ClassifierReader.Settings):
        checkpoint: PathSetting
        """A folder that `ifqa train adaboost` made."""

    def __init__(self, settings: Settings) -> None:
        self._read_manifest(settings.checkpoint)
        path = require_file(Path(settings.checkpoint) / TREES_FILE, "weights of reader 'adaboost'")
        mend = "train it again: ifqa train adaboost"
        self._ensemble = parse_stored(TreeEnsemble, read_json(path), str(path), mend)
        words = len(self._ensemble.words)
        classes = len(self.manifest.classes)
        if not all(tree.is_valid(words, classes) for tree in self._ensemble.trees):
            raise DamagedArtifact(
                f"{path}: a tree points to a node, word or class that does not exist; {mend}"
            )

    def _scores(self, texts: Sequence[str]) -> list[list[float]]:
        classes = len(self.manifest.classes)
        decisions = decision_function(
            self._ensemble.trees, count_words(texts, self._ensemble.words), classes
        )
        # scikit-learn's `predict_proba` is the softmax of these (its
        # AdaBoostClassifier._compute_proba_from_decision)
        scores: list[list[float]] = (decisions / max(classes - 1, 1)).tolist()
        return scores


def tagged_words(stem: str) -> list[str]:
    """The words of a question's change and effect, in lower case, tagged like "change:rain"."""
    parts = zip(("change", "effect"), split_stem(stem), strict=True)
    return [f"{part}:{word}" for part, text in parts for word in _WORD.findall(text.lower())]


def count_words(stems: Sequence[str], words: Sequence[str]) -> "NDArray[np.float32]":
    """How often each word occurs in each question, [questions, words]."""
    import numpy as np

    rows = [Counter(tagged_words(stem)) for stem in stems]
    return np.array([[row[word] for word in words] for row in rows], np.float32).reshape(
        len(stems), len(words)
    )


def decision_function(
    trees: Sequence[Tree], counts: "NDArray[np.float32]", classes: int
) -> "NDArray[np.float64]":
    """SAMME's decision function (Zhu et al. 2009), [questions, classes].

    A tree adds its weight to the class it votes for, and takes weight / (classes - 1) from each
    other class; the sum is divided by the sum of the weights. With two classes scikit-learn gives a
    single column, the second minus the first.
    """
    import numpy as np

    total = np.zeros((len(counts), classes))
    every = np.arange(len(counts))
    for tree in trees:
        left = np.array(tree.left)
        right = np.array(tree.right)
        feature = np.array(tree.feature)
        threshold = np.array(tree.threshold)
        node = np.zeros(len(counts), int)
        while (inner := left[node] >= 0).any():  # a child's number is higher than its parent's
            split = node[inner]
            down = counts[every[inner], feature[split]] <= threshold[split]
            node[inner] = np.where(down, left[split], right[split])
        total -= tree.weight / max(classes - 1, 1)
        total[every, np.array(tree.vote)[node]] += tree.weight + tree.weight / max(classes - 1, 1)
    weights = sum(tree.weight for tree in trees)
    return total / weights if weights else total


class DecompAttn(ClassifierReader):
    """Decomposable attention with the change as premise and the effect as hypothesis, on MiniLM's
    embeddings, not GloVe's.
    """

    name = "decomp-attn"
    version = 1
    weights = NETWORK_FILE
    batch = 64
    runtime_only = ("device",)

    class Settings(ClassifierReader.Settings):
        checkpoint: PathSetting
        """A folder that `ifqa train decomp-attn` made."""
        device: str = "auto"
        """The device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU."""

    def __init__(self, settings: Settings) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        from ifqa.companions.wiqa.attention import build_network

        checkpoint = settings.checkpoint
        self._read_manifest(checkpoint)
        self._device = resolve_device(settings.device)
        path = require_file(Path(checkpoint) / NETWORK_FILE, "weights of reader 'decomp-attn'")
        try:
            model = build_network(self.manifest.settings, len(self.manifest.classes))
            model.load_state_dict(load_file(path))
        except (SafetensorError, KeyError, RuntimeError, TypeError) as error:
            reason = str(error).splitlines()[0]
            mend = "train them again: ifqa train decomp-attn"
            raise DamagedArtifact(f"{checkpoint}: damaged weights ({reason}); {mend}") from error
        self._model = model.to(self._device).eval()

    def _scores(self, texts: Sequence[str]) -> list[list[float]]:
        import torch

        from ifqa.companions.wiqa.attention import encode_stem, pad_ids

        changes, effects = zip(*map(encode_stem, texts), strict=True)
        with torch.inference_mode():
            logits = self._model(
                pad_ids(changes).to(self._device), pad_ids(effects).to(self._device)
            )
        scores: list[list[float]] = logits.tolist()
        return scores
