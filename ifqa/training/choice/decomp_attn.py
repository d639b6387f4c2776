"""Training the reader 'decomp-attn' (`ifqa.reading.multiple_choice.decomp_attn`): all but MiniLM's embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ifqa.models.hub import NAME, WEIGHTS_SHA256
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.reading.multiple_choice.decomp_attn import WEIGHTS, network, tokens
from ifqa.reading.multiple_choice.options import plain
from ifqa.records import Passage, Question
from ifqa.settings import NotNegative, Positive
from ifqa.training import checkpoints
from ifqa.training.choice.network import ChoiceTrainer
from ifqa.training.choice.questions import classes_of, usable

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True)
class DecompAttn(ChoiceTrainer):
    """Train decomposable attention on change and effect, for questions of multiple choice.

    Attributes:
        learning_rate: AdamW's first, which falls to 0. (Parikh et al. 2016 have Adagrad at 0.05, which did not learn from a few
            thousand questions.)
        hidden, dropout: size of the layers, and share of features dropped before each, as in that paper's section 5.1.
    """

    epochs: Positive = 5
    batch: Positive = 32
    learning_rate: NotNegative = 1e-3
    hidden: Positive = 200
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write `model.safetensors` and a `manifest.json`. Questions without choices or an answer are left out."""
        from transformers import set_seed

        data = usable(data)
        self._classes = classes_of(data.questions)
        inputs = {"reader": "decomp-attn"} | self.inputs(data)
        inputs |= {"classes": self._classes, "encoder": {"name": NAME, "sha256": WEIGHTS_SHA256}}
        if not checkpoints.begin(folder, inputs):
            return
        set_seed(self.seed)
        model = network(inputs["settings"], len(self._classes))
        record = self.fit(model, data, folder)
        checkpoints.save_tensors(folder / WEIGHTS, model.state_dict())
        checkpoints.finish(folder, inputs, record, [WEIGHTS])

    def encode(self, question: Question, passages: Sequence[Passage]) -> Any:
        """The tokens of change and effect."""
        return tokens(question.text)

    def collate(self, encoded: Sequence[Any]) -> dict[str, "Tensor"]:
        """Changes and effects, padded."""
        from ifqa.reading.multiple_choice.attention import padded

        changes, effects = zip(*encoded, strict=True)
        return {"change": padded(changes), "effect": padded(effects)}

    def logits(self, model: Any, read: dict[str, "Tensor"]) -> "Tensor":
        """Those of the classes."""
        logits: Tensor = model(read["change"], read["effect"])
        return logits

    def column(self, question: Question, place: int) -> int:
        """The class of the choice."""
        return self._classes.index(plain(question.choices[place]))
