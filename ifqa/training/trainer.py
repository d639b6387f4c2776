"""What trainers share: checked settings, a training's inputs, and the choice of passages, batches
and folds.
"""

import hashlib
import importlib.util
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ifqa.errors import ConfigError, MissingInput, unknown_name
from ifqa.models.devices import resolve_device
from ifqa.protocols import Requirement, Trainer, TrainingData
from ifqa.records import Passage, Question, gold_id
from ifqa.scoring.gold_overlap import covers
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.scoring.measures.exact_match import normalize
from ifqa.settings import Natural, NotNegative, PluginSettings, Positive, parse_settings
from ifqa.training.checkpoints import StepSettings

_Trainer = TypeVar("_Trainer", bound=Trainer)
_POOL = 16  # batches whose rows are sorted by length together
_Row = TypeVar("_Row")


def configure_trainer(trainer: type[_Trainer], **settings: object) -> _Trainer:
    """A trainer with these settings, which override those of its recipe.

    ConfigError for a wrong setting, MissingInput if a library that the trainer needs is missing.
    """
    recipe = str(settings.pop("recipe", next(iter(trainer.recipes)))) if trainer.recipes else ""
    if recipe and recipe not in trainer.recipes:
        raise unknown_name("recipe", recipe, trainer.recipes)
    by_recipe = trainer.recipes[recipe].settings if recipe else {}
    checked = parse_settings(trainer.Settings, {**by_recipe, **settings}, "training setting")
    for need in trainer.requirements(checked, Path()):
        if not need.present:
            raise MissingInput(f"training needs {need.name}; {need.remedy}")
    configured = trainer(checked)
    if recipe:
        configured.recipe = recipe
    return configured


class BaseTrainer(Trainer):
    """A trainer of ifqa: the libraries that it needs, and what identifies its training."""

    libraries: ClassVar[tuple[str, ...]] = ()  # libraries of the extra "train" that it imports
    scored: ClassVar[bool] = False  # whether it learns from the passages' retrieval scores
    settings: PluginSettings

    def __init__(self, settings: PluginSettings) -> None:
        self.settings = settings

    @classmethod
    def requirements(cls, settings: PluginSettings, root: Path) -> list[Requirement]:
        mend = "install it with: pip install 'ifqa[train]'"
        return [
            Requirement(name, "" if importlib.util.find_spec(name) else mend)
            for name in cls.libraries
        ]

    def inputs(self, dataset: TrainingData) -> dict[str, Any]:
        """What identifies a training, for its manifest."""
        settings = self.settings.model_dump(exclude={*self.runtime_only})
        questions = fingerprint_questions(dataset, self.scored)
        return {
            "family": dataset.family,
            "sources": dataset.sources,
            "settings": settings,
            "questions": questions,
        }


class EpochTrainer(BaseTrainer):
    """A trainer of a network, in passes over the questions."""

    runtime_only: ClassVar[tuple[str, ...]] = ("device", "checkpoint_every")

    class Settings(PluginSettings):
        seed: Natural = 0
        """The seed for initialisation, order, random choices and dropout."""
        epochs: Positive
        """Passes over the questions."""
        batch: Positive
        """Questions per step of AdamW."""
        learning_rate: NotNegative
        """The highest learning rate, by default after a tenth of the steps; it then falls to 0."""
        device: str = "cpu"
        """The device: "cpu", "cuda", or "auto" for a GPU if present; in bfloat16 if the hardware
        supports it.
        """
        checkpoint_every: Positive = 100
        """Steps between checkpoints."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.device = resolve_device(settings.device)

    def step_settings(self, **changes: Any) -> StepSettings:
        """How its settings say that a network is trained; `changes` are other fields."""
        steps = StepSettings(
            seed=self.settings.seed,
            batch=self.settings.batch,
            learning_rate=self.settings.learning_rate,
            every=self.settings.checkpoint_every,
            device=self.device,
        )
        return replace(steps, **changes)


def require_any(dataset: TrainingData, has: Callable[[Question], object], what: str) -> None:
    if not any(map(has, dataset.questions)):
        raise ConfigError(
            f"none of {len(dataset.questions)} training questions has {what}; "
            "wanted annotated questions"
        )


def require_gold(dataset: TrainingData) -> None:
    require_any(dataset, lambda question: question.gold_passages, "a gold passage")


def require_pool(pool: int, negatives: int) -> None:
    if pool < negatives:
        raise ConfigError(
            f"training setting pool: wanted {negatives} or more (negatives), found {pool}"
        )


def refuse_family(start: str, family: str, dataset: TrainingData) -> None:
    """Raise ConfigError if the start of a training was trained on another split family."""
    if family not in ("", dataset.family):
        refusal = (
            f"{start} was trained on {family} and may not be used in a training on {dataset.family}"
        )
        raise ConfigError(f"{refusal}, which may hold the same questions; take another model")


def fingerprint_questions(dataset: TrainingData, scored: bool = False) -> str:
    """SHA-256 of the questions and their ranked passages, and of the passages' scores if
    `scored`.
    """
    digest = hashlib.sha256()
    for question, ranking in zip(dataset.questions, dataset.rankings, strict=True):
        texts = [[passage.title, passage.text] for passage in ranking]
        row = [question.text, question.answers, question.gold_passages, texts]
        digest.update(
            json.dumps([*row, *([question.choices] if question.choices else [])]).encode()
        )
    if scored and dataset.scores:
        digest.update(json.dumps([list(scores) for scores in dataset.scores]).encode())
    return digest.hexdigest()


def covers_gold(text: str, question: Question) -> bool:
    return any(covers(text, gold) for gold in question.gold_passages)


def fit_logistic(
    rows: Sequence[Mapping[str, float]],
    right: Sequence[bool],
    weights: Sequence[float] | None = None,
) -> tuple[float, dict[str, float]]:
    """The intercept and the coefficients of a logistic regression of `right` over features.

    Every row has the same features. A constant one gets the coefficient 0.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    names = list(rows[0])
    features = np.array([[row[name] for name in names] for row in rows])  # (rows, features)
    mean = features.mean(axis=0)
    spread = features.std(axis=0)
    spread[spread < 1e-9] = 1.0
    model = LogisticRegression(C=1.0, max_iter=1_000)
    model.fit((features - mean) / spread, np.array(right), sample_weight=weights)
    slopes = model.coef_[0] / spread
    coefficients = dict(zip(names, map(float, slopes), strict=True))
    return float(model.intercept_[0] - slopes @ mean), coefficients


def training_passages(
    question: Question, ranking: Sequence[Passage], most: int, include_gold: bool
) -> list[Passage]:
    """The first `most` passages.

    With `include_gold`, a gold passage replaces the last if there is none among them.
    """
    top = list(ranking[:most])
    golds = question.gold_passages
    if include_gold and golds and not any(covers_gold(passage.text, question) for passage in top):
        return [*top[: most - 1], Passage(gold_id(golds[0]), "", golds[0])]
    return top


def hard_negatives(question: Question, ranking: Sequence[Passage], most: int) -> list[Passage]:
    """The first `most` passages without an answer, as in DPR (Karpukhin et al. 2020, section 3.2),
    that cover no gold passage.
    """

    def is_negative(passage: Passage) -> bool:  # a counterfactual gold passage may lack the answer
        return not has_answer(passage.text, question.answers) and not covers_gold(
            passage.text, question
        )

    return list(islice(filter(is_negative, ranking), most))


def select_hard_negatives(
    dataset: TrainingData, least: int, most: int
) -> tuple[list[list[Passage]], list[int]]:
    """Up to `most` hard negatives per question, and the indices of questions with a gold passage
    and `least` negatives.
    """
    negatives = [
        hard_negatives(*pair, most)
        for pair in zip(dataset.questions, dataset.rankings, strict=True)
    ]
    golds = [question.gold_passages for question in dataset.questions]
    usable = [n for n, texts in enumerate(golds) if texts and len(negatives[n]) >= least]
    if not usable:
        problem = (
            f"none of {len(golds)} training questions has a gold passage and {least} hard negatives"
        )
        raise ConfigError(
            f"{problem}; wanted annotated questions, and a corpus with "
            "more than their gold passages"
        )
    return negatives, usable


def shuffle_batches(
    rows: Sequence[_Row], size: int, key: str, length: Callable[[_Row], int]
) -> Iterator[list[_Row]]:
    """The batches of an epoch, shuffled by `key`.

    A batch has rows of similar length, to save padding.
    """
    draw = random.Random(key)
    order = list(rows)
    draw.shuffle(order)
    batches = []
    for start in range(0, len(order), size * _POOL):
        pool = sorted(order[start : start + size * _POOL], key=length)
        batches += [pool[at : at + size] for at in range(0, len(pool), size)]
    draw.shuffle(batches)
    yield from batches


def assign_folds(questions: Sequence[Question], count: int, seed: int) -> list[int]:
    """The fold of each question.

    Equal questions, and those linked by shared gold passages, get the same fold.
    """
    # An earlier question of the same group, or the question itself
    parent = list(range(len(questions)))

    def root(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    owners: dict[str, int] = {}
    for number, question in enumerate(questions):
        for text in map(normalize, (question.text, *question.gold_passages)):
            parent[root(number)] = root(owners.setdefault(text, number))
    groups: dict[int, list[int]] = defaultdict(list)
    for number in range(len(questions)):
        groups[root(number)].append(number)
    shuffled = list(groups.values())
    random.Random(seed).shuffle(shuffled)
    folds = [0] * len(questions)
    sizes = [0] * count
    # The largest first, each into the emptiest fold
    for group in sorted(shuffled, key=len, reverse=True):
        emptiest = sizes.index(min(sizes))
        sizes[emptiest] += len(group)
        for number in group:
            folds[number] = emptiest
    return folds
