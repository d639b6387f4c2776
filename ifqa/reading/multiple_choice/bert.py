"""Reader 'choice': an encoder reads paragraph, question and one option at a time, and scores the option (BERT's scheme)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ifqa.models.batches import BUDGET, batches, to_device
from ifqa.models.devices import resolve_device, resolve_precision
from ifqa.models.hub import model_folder, weights_identity
from ifqa.protocols import Place
from ifqa.reading.multiple_choice.encoder import MEND, Scheme, open_encoder, padded, scheme_of, sequences
from ifqa.reading.multiple_choice.options import Manifest, OptionReader, chosen, manifest_of
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import Natural, Precision, YesNo, checked

_UNTOLD = Scheme(paragraph=True, explanation=False, max_tokens=512)  # of a checkpoint that ifqa did not train


class Choice(OptionReader):
    """Scores `[CLS] paragraph [SEP] question [SEP] option [SEP]` for each option; the softmax over the options decides.

    The paragraph is the text of the passages: with the retriever 'context', the text that comes with the question.

    Args:
        checkpoint: a folder that `ifqa train choice` made, or any model of transformers with a head for multiple choice.
        paragraph: whether the passages are read; "auto" as in training.
        explanation: whether the question's label "explanation" is read too, which gives the answer away; "auto" as in training.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
        precision: "float32", "bfloat16", or "auto": bfloat16 if the hardware multiplies in it.
        batch_tokens: tokens read at a time, padding included; 0 for the device's default.

    Attributes:
        family: split family of the training questions; empty if `ifqa train choice` did not make the weights.
        trained_on: SHA-256 of the files of the training questions.
        label: shown with the scores if it is unknown what the weights were trained on.

    Raises:
        IfqaError: the checkpoint is missing, not whole or of another kind, or there is no such device.
    """

    name = "choice"
    version = 1
    not_identity = ("device", "batch_tokens")

    @checked("setting of reader 'choice'")
    def __init__(
        self,
        checkpoint: Place,
        paragraph: YesNo = "auto",
        explanation: YesNo = "auto",
        device: str = "auto",
        precision: Precision = "float32",
        batch_tokens: Natural = 0,
    ) -> None:

        manifest = _manifest(checkpoint)
        self._device = resolve_device(device)
        self._encoder = open_encoder(checkpoint)
        longest = self._encoder.longest
        scheme = scheme_of(manifest.settings, longest) if manifest else replace(_UNTOLD, max_tokens=longest)
        self._scheme = replace(
            scheme,
            paragraph=_resolve(paragraph, scheme.paragraph),
            explanation=_resolve(explanation, scheme.explanation),
        )
        self.family = manifest.family if manifest else ""
        self.trained_on = frozenset(manifest.sources.values() if manifest else ())
        self.label = "" if manifest else f"{checkpoint} was not trained by ifqa and may have seen these questions"
        self._budget = batch_tokens or BUDGET[self._device]
        self._encoder.model.to(self._device, resolve_precision(precision, self._device))

    def _choose(self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]]) -> list[Prediction]:
        pairs = [
            pair
            for question, texts in zip(questions, passages, strict=True)
            for pair in sequences(self._encoder.tokenizer, question, texts, self._scheme)
        ]
        scores = iter(self._scores(pairs))
        return [
            chosen(question, [next(scores) for _ in question.choices], texts if self._scheme.paragraph else ())
            for question, texts in zip(questions, passages, strict=True)
        ]

    def _scores(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
        """The logit of each sequence."""
        import torch

        encoder = self._encoder
        features = padded(pairs, encoder.tokenizer.pad_token_id or 0, encoder.types)
        scores = torch.empty(len(pairs))
        with torch.inference_mode():
            for rows, batch in batches(features, len(pairs), self._budget):
                scores[rows] = encoder.logits(to_device(batch, self._device)).float().cpu()
        return [float(score) for score in scores]

    @classmethod
    def trained(cls, checkpoint: str, **_: object) -> str:
        """The split family of the training questions, read without the weights."""
        manifest = _manifest(checkpoint)
        return manifest.family if manifest else ""

    @classmethod
    def fingerprint(cls, checkpoint: str, **_: object) -> str:
        """SHA-256 over the model's files, its manifest's too."""
        _manifest(checkpoint)  # refuses weights of another reader by their name
        return weights_identity(model_folder(checkpoint, MEND))


def _manifest(checkpoint: str) -> Manifest | None:
    """The manifest of `ifqa train choice`; None for a model from elsewhere."""
    is_ours = any((Path(checkpoint) / name).exists() for name in ("manifest.json", "inputs.json"))
    return manifest_of(checkpoint, "choice") if is_ours else None


def _resolve(setting: Literal["auto", "yes", "no"], default: bool) -> bool:
    return default if setting == "auto" else setting == "yes"
