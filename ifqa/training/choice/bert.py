"""Training the reader 'choice' (`ifqa.reading.multiple_choice.bert`): all weights of an encoder, with one logit an option."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ifqa.models.batches import BUDGET, batches
from ifqa.models.hub import NAME, identity_of
from ifqa.protocols import NO_DATA, Place, TrainingData
from ifqa.reading.multiple_choice.encoder import Encoder, open_encoder, padded, scheme_of, sequences
from ifqa.reading.multiple_choice.options import manifest_of
from ifqa.records import Passage, Question
from ifqa.settings import NotNegative, Positive, Share
from ifqa.training import checkpoints
from ifqa.training.choice.network import ChoiceTrainer
from ifqa.training.choice.questions import usable
from ifqa.training.training_data import refuse_family

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(kw_only=True)
class Choice(ChoiceTrainer):
    """Train an encoder that scores each option of a question, with or without its paragraph.

    Attributes:
        encoder: a model of the hub, a folder, or a folder of `ifqa train choice` to train further.
        paragraph, explanation: what is read beside question and option, see `ifqa.reading.multiple_choice.bert`.
        learning_rate, warmup, weight_decay: AdamW's highest rate, the share of the steps before it, and its decay. Asai and
            Hajishirzi (2020) have RoBERTa-base at 2e-5 and 64 questions a step.
        max_tokens: most tokens of a sequence; the paragraph is cut first.
    """

    not_identity = ("encoder", *ChoiceTrainer.not_identity)

    encoder: Place = NAME
    paragraph: Literal["yes", "no"] = "yes"
    explanation: Literal["yes", "no"] = "no"
    epochs: Positive = 3
    batch: Positive = 16
    learning_rate: NotNegative = 5e-5
    warmup: Share = 0.1
    weight_decay: NotNegative = 0.01
    max_tokens: Positive = 256

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write the encoder's files, its tokenizer and a `manifest.json`.

        Questions without choices or without an answer are left out; the rankings hold the paragraphs.
        """
        from transformers import set_seed

        data = usable(data)
        own = (Path(self.encoder) / "manifest.json").exists()
        start = manifest_of(self.encoder, "choice").family if own else ""
        refuse_family(self.encoder, start, data)
        inputs = {"reader": "choice"} | self.inputs(data)
        inputs["start"] = {"name": self.encoder, "sha256": identity_of(self.encoder)}
        if not checkpoints.begin(folder, inputs):
            return
        set_seed(self.seed)  # the head is drawn when the encoder is opened
        self._opened = open_encoder(self.encoder, untrained=True)
        self._scheme = scheme_of(inputs["settings"], self._opened.longest)
        record = self.fit(self._opened.model.train(), data, folder)
        self._opened.model.save_pretrained(folder)
        self._opened.tokenizer.save_pretrained(folder)
        checkpoints.finish(folder, inputs, record, ["model*.safetensors"])

    def encode(self, question: Question, passages: Sequence[Passage]) -> Any:
        """A sequence for each option."""
        return sequences(self._opened.tokenizer, question, passages, self._scheme)

    def collate(self, encoded: Sequence[Any]) -> dict[str, "Tensor"]:
        """All options of all questions as sequences, and each question's number of options."""
        import torch

        pairs = [pair for options in encoded for pair in options]
        read = padded(pairs, self._opened.tokenizer.pad_token_id or 0, self._opened.types)
        return read | {"counts": torch.tensor([len(options) for options in encoded])}

    def logits(self, model: Any, read: dict[str, "Tensor"]) -> "Tensor":
        """Logits [questions, most options], -inf where a question has fewer.

        Sequences of similar length go through the network together: a step has long paragraphs and none side by side.
        """
        import torch
        from torch.nn.utils.rnn import pad_sequence

        features = {name: tensor for name, tensor in read.items() if name != "counts"}
        network, count = Encoder(model, None), len(read["input_ids"])
        pieces = [(rows, network.logits(some)) for rows, some in batches(features, count, BUDGET[model.device.type])]
        places = torch.tensor([row for rows, _ in pieces for row in rows])
        flat = torch.cat([logits for _, logits in pieces])[places.argsort().to(model.device)]
        options = torch.split_with_sizes(flat, read["counts"].tolist())
        return pad_sequence(list(options), batch_first=True, padding_value=float("-inf"))
