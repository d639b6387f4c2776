"""What trainers share: settings that are checked and said once, and what decides whether two trainings are the same."""

import importlib.util
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

from ifqa.errors import unknown
from ifqa.models.devices import resolve_device
from ifqa.protocols import Requirement, Trainer, TrainingData
from ifqa.settings import Natural, NotNegative, Positive, check_settings
from ifqa.training.training_data import identity

_Trainer = TypeVar("_Trainer", bound=Trainer)


def configured(trainer: type[_Trainer], **settings: object) -> _Trainer:
    """A trainer with these settings, over those of its recipe."""
    recipe = str(settings.pop("recipe", next(iter(trainer.recipes)))) if trainer.recipes else ""
    if recipe and recipe not in trainer.recipes:
        raise unknown("recipe", recipe, trainer.recipes)
    check_settings("training setting", trainer, settings)
    chosen = trainer(**({**trainer.recipes[recipe].settings, **settings} if recipe else settings))
    if recipe:
        chosen.recipe = recipe
    return chosen


@dataclass(kw_only=True)
class Settings(Trainer):
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
        settings = {name: value for name, value in asdict(self).items() if name not in self.not_identity}
        questions = identity(data, self.scored)
        return {"family": data.family, "sources": data.sources, "settings": settings, "questions": questions}


@dataclass(kw_only=True)
class Passes(Settings):
    """A trainer of a network, in passes over the questions.

    Attributes:
        seed: of initialisation, order, draws and dropout.
        epochs, batch: passes over the questions, and questions a step of the optimiser, AdamW.
        learning_rate: the highest; it is reached after a tenth of the steps, if nothing else is said, and then falls to 0.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; bfloat16 is used if the device multiplies in it.
        checkpoint_every: steps between checkpoints.
    """

    not_identity: ClassVar[tuple[str, ...]] = ("device", "checkpoint_every")
    seed: Natural = 0
    epochs: Positive
    batch: Positive
    learning_rate: NotNegative
    device: str = "cpu"
    checkpoint_every: Positive = 100

    def __post_init__(self) -> None:
        """Name the device, or refuse one that is not here."""
        self.device = resolve_device(self.device)
