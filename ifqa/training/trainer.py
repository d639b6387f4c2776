"""What trainers share: checked settings, what they make of questions and passages, and which two trainings are the same."""

import hashlib
import importlib.util
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

from ifqa.errors import IfqaError, unknown_name
from ifqa.models.devices import resolve_device
from ifqa.protocols import Requirement, Trainer, TrainingData
from ifqa.records import Passage, Question, gold_id
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.measures.gold_recall import covers
from ifqa.settings import Natural, NotNegative, Positive, check_settings

_Trainer = TypeVar("_Trainer", bound=Trainer)
_LIKE = 16  # batches whose rows are sorted by length together
_Row = TypeVar("_Row")


def configure_trainer(trainer: type[_Trainer], **settings: object) -> _Trainer:
    """A trainer with these settings, over those of its recipe."""
    recipe = str(settings.pop("recipe", next(iter(trainer.recipes)))) if trainer.recipes else ""
    if recipe and recipe not in trainer.recipes:
        raise unknown_name("recipe", recipe, trainer.recipes)
    check_settings("training setting", trainer, settings)
    chosen = trainer(**({**trainer.recipes[recipe].settings, **settings} if recipe else settings))
    if recipe:
        chosen.recipe = recipe
    return chosen


@dataclass(kw_only=True)
class DataclassTrainer(Trainer):
    """A trainer whose settings are the fields of a dataclass."""

    libraries: ClassVar[tuple[str, ...]] = ()  # of the extra "train", that it imports
    scored: ClassVar[bool] = False  # whether it learns from the passages' retrieval scores

    @classmethod
    def requirements(cls, *_: Any, **settings: Any) -> list[Requirement]:
        """The libraries that it imports."""
        mend = "install it with: pip install 'ifqa[train]'"
        return [Requirement(name, "" if importlib.util.find_spec(name) else mend) for name in cls.libraries]

    def inputs(self, data: TrainingData) -> dict[str, Any]:
        """What decides whether two trainings are the same: for the manifest."""
        settings = {name: value for name, value in asdict(self).items() if name not in self.runtime_only}
        questions = fingerprint_questions(data, self.scored)
        return {"family": data.family, "sources": data.sources, "settings": settings, "questions": questions}


@dataclass(kw_only=True)
class EpochTrainer(DataclassTrainer):
    """A trainer of a network, in passes over the questions.

    Attributes:
        seed: of initialisation, order, draws and dropout.
        epochs, batch: passes over the questions, and questions a step of the optimiser, AdamW.
        learning_rate: the highest; it is reached after a tenth of the steps, if nothing else is said, and then falls to 0.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; bfloat16 is used if the device multiplies in it.
        checkpoint_every: steps between checkpoints.
    """

    runtime_only: ClassVar[tuple[str, ...]] = ("device", "checkpoint_every")
    seed: Natural = 0
    epochs: Positive
    batch: Positive
    learning_rate: NotNegative
    device: str = "cpu"
    checkpoint_every: Positive = 100

    def __post_init__(self) -> None:
        """Name the device, or refuse one that is not here."""
        self.device = resolve_device(self.device)


def require_any(
    data: TrainingData, has: Callable[[Question], object], what: str, wanted: str = "annotated questions"
) -> None:
    """Raise IfqaError if no question has what a training needs."""
    if not any(map(has, data.questions)):
        raise IfqaError(f"none of {len(data.questions)} training questions has {what}; wanted {wanted}")


def require_gold(data: TrainingData) -> None:
    """Raise IfqaError if no question has a gold passage."""
    require_any(data, lambda question: question.gold_passages, "a gold passage")


def refuse_family(start: str, family: str, data: TrainingData) -> None:
    """Raise IfqaError if what a training starts from was trained on another split family."""
    if family not in ("", data.family):
        raise IfqaError(
            f"{start} was trained on {family} and may not be trained further on {data.family}, "
            "which may hold the same questions; begin with another"
        )


def fingerprint_questions(data: TrainingData, scored: bool = False) -> str:
    """SHA-256 of questions with choices, answers and gold passages, of ranked passages, and if `scored` of their scores."""
    digest = hashlib.sha256()
    for question, ranking in zip(data.questions, data.rankings, strict=True):
        texts = [[passage.title, passage.text] for passage in ranking]
        row = [question.text, question.answers, question.gold_passages, texts]
        digest.update(json.dumps([*row, *([question.choices] if question.choices else [])]).encode())
    digest.update(json.dumps([list(scores) for scores in data.scores]).encode() if scored and data.scores else b"")
    return digest.hexdigest()


def training_passages(question: Question, ranking: Sequence[Passage], most: int, include_gold: bool) -> list[Passage]:
    """The first `most` passages of a ranking; with `include_gold`, a gold passage replaces the last if none is among them."""
    chosen, texts = list(ranking[:most]), question.gold_passages
    if include_gold and texts and not any(covers(passage.text, text) for passage in chosen for text in texts):
        return [*chosen[: most - 1], Passage(gold_id(texts[0]), "", texts[0])]
    return chosen


def hard_negatives(question: Question, ranking: Sequence[Passage], most: int) -> list[Passage]:
    """The first `most` passages of a ranking that neither cover a gold passage nor hold an answer.

    DPR's rule (Karpukhin et al. 2020, section 3.2) skips those with an answer; gold passages need not hold counterfactual ones.
    """
    wrong: list[Passage] = []
    for passage in ranking:
        if len(wrong) == most:
            break
        if has_answer(passage.text, question.answers):
            continue
        if not any(covers(passage.text, gold) for gold in question.gold_passages):
            wrong.append(passage)
    return wrong


def select_hard_negatives(data: TrainingData, least: int, most: int) -> tuple[list[list[Passage]], list[int]]:
    """The first `most` hard negatives of each question; the numbers of questions with a gold passage and `least` of them."""
    negatives = [hard_negatives(*pair, most) for pair in zip(data.questions, data.rankings, strict=True)]
    usable = [n for n, each in enumerate(negatives) if data.questions[n].gold_passages and len(each) >= least]
    if not usable:
        raise IfqaError(
            f"none of {len(negatives)} training questions has a gold passage and {least} hard negatives; "
            "wanted annotated questions, and a corpus that holds more than their gold passages"
        )
    return negatives, usable


def shuffle_batches(rows: Sequence[_Row], size: int, key: str, length: Callable[[_Row], int]) -> Iterator[list[_Row]]:
    """The batches of an epoch, shuffled by `key`; rows of a batch have similar lengths, so that there is little padding."""
    order = list(rows)
    draw = random.Random(key)
    draw.shuffle(order)
    groups = []
    for start in range(0, len(order), size * _LIKE):
        like = sorted(order[start : start + size * _LIKE], key=length)
        groups += [like[at : at + size] for at in range(0, len(like), size)]
    draw.shuffle(groups)
    yield from groups


def assign_folds(questions: Sequence[Question], count: int, seed: int) -> list[int]:
    """The fold of each question; equal questions, and questions linked by shared gold passages, get the same fold."""
    group = list(range(len(questions)))  # for each question, an earlier question of its group, or itself

    def first(number: int) -> int:
        while group[number] != number:
            number = group[number]
        return number

    seen: dict[str, int] = {}
    for number, question in enumerate(questions):
        for text in map(normalize, (question.text, *question.gold_passages)):
            group[first(number)] = first(seen.setdefault(text, number))
    members: dict[int, list[int]] = defaultdict(list)
    for number in range(len(questions)):
        members[first(number)].append(number)
    groups = list(members.values())
    random.Random(seed).shuffle(groups)
    fold, sizes = [0] * len(questions), [0] * count
    for numbers in sorted(groups, key=len, reverse=True):  # the largest first, each into the emptiest fold
        emptiest = sizes.index(min(sizes))
        sizes[emptiest] += len(numbers)
        for number in numbers:
            fold[number] = emptiest
    return fold
