"""Reader 'decomp-attn': decomposable attention with the change as premise and the effect as hypothesis, as in WIQA's paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.protocols import Advance, Place, Reader, silent
from ifqa.reading.choice.offered import by_class, require_choices
from ifqa.reading.choice.stems import parts
from ifqa.reading.choice.trained import Manifest, identity_of, manifest_of
from ifqa.records import Passage, Prediction, Question
from ifqa.settings import checked
from ifqa.storage.files import require

if TYPE_CHECKING:
    from ifqa.reading.choice.alignment import DecomposableAttention

WEIGHTS = "model.safetensors"
_BATCH = 64  # questions in the network at once
_NULL = 101  # [CLS] stands for the paper's NULL token before each text, to which a token aligns that has no counterpart


class DecompAttn(Reader):
    """Reads the change and the effect with all-MiniLM-L6-v2's token embeddings (the paper: GloVe). It reads no passage.

    Args:
        checkpoint: a folder that `ifqa train decomp-attn` made.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.

    Attributes:
        family: split family of the training questions.
        trained_on: SHA-256 of the files of the training questions.

    Raises:
        IfqaError: the weights are missing or damaged, or there is no such device.
    """

    version = 1
    not_identity = ("device",)
    chooses = True
    passages_are = "ignored"

    @checked("setting of reader 'decomp-attn'")
    def __init__(self, checkpoint: Place, device: str = "auto") -> None:
        from ifqa.models.devices import resolve_device

        manifest = manifest_of(checkpoint, "decomp-attn")
        self.family, self._classes = manifest.family, manifest.classes
        self.trained_on = frozenset(manifest.sources.values())
        self._device = resolve_device(device)
        self._model = _load(Path(checkpoint), manifest).to(self._device).eval()

    def answer(
        self, questions: Sequence[Question], passages: Sequence[Sequence[Passage]], advance: Advance = silent
    ) -> list[Prediction]:
        """One prediction a question, in their order, with the logarithm of its probability.

        Raises:
            IfqaError: a question has no choices, or is not worded "suppose ... happens, how will it affect ...".
        """
        import torch

        from ifqa.reading.choice.alignment import padded

        require_choices(questions, "decomp-attn")
        made = []
        for start in range(0, len(questions), _BATCH):
            some = questions[start : start + _BATCH]
            changes, effects = zip(*(tokens(question.text) for question in some), strict=True)
            with torch.inference_mode():
                logits = self._model(padded(changes).to(self._device), padded(effects).to(self._device)).tolist()
            made += [
                by_class(one, dict(zip(self._classes, row, strict=True))) for one, row in zip(some, logits, strict=True)
            ]
            advance(len(some))
        return made

    @classmethod
    def trained(cls, checkpoint: str, **_: object) -> str:
        """The split family of the training questions, read without the weights."""
        return manifest_of(checkpoint, "decomp-attn").family

    @classmethod
    def fingerprint(cls, checkpoint: str, **_: object) -> str:
        """SHA-256 over the weights and what the manifest says of them."""
        return identity_of(checkpoint, WEIGHTS, "decomp-attn")


def tokens(stem: str) -> tuple[list[int], list[int]]:
    """MiniLM's token ids of a question's change and effect, each after the NULL token, cut to `MOST`.

    Raises:
        IfqaError: the question is not worded "suppose ... happens, how will it affect ...".
    """
    from ifqa.models.hub import encoder_folder
    from ifqa.models.transformer import tokenizer
    from ifqa.reading.choice.alignment import MOST

    words = tokenizer(encoder_folder())
    change, effect = ([_NULL, *words.encode(text, add_special_tokens=False).ids][:MOST] for text in parts(stem))
    return change, effect


def network(settings: dict[str, Any], classes: int) -> "DecomposableAttention":
    """The network of a training's settings, on MiniLM's embeddings, before its weights are loaded."""
    from ifqa.models.hub import encoder_folder
    from ifqa.models.transformer import token_embeddings
    from ifqa.reading.choice.alignment import DecomposableAttention

    return DecomposableAttention(token_embeddings(encoder_folder()), classes, settings["hidden"], settings["dropout"])


def _load(folder: Path, manifest: Manifest) -> "DecomposableAttention":
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = require(folder / WEIGHTS, "weights of reader 'decomp-attn'")
    try:
        model = network(manifest.settings, len(manifest.classes))
        model.load_state_dict(load_file(path))
    except (SafetensorError, KeyError, RuntimeError, TypeError) as error:
        raise IfqaError(
            f"{folder}: these weights are not whole ({str(error).splitlines()[0]}); train them again: ifqa train decomp-attn"
        ) from error
    return model
