"""Reader 'decomp-attn': decomposable attention with the change as premise and the effect as hypothesis, as in WIQA's paper."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.models.devices import resolve_device
from ifqa.models.hub import encoder_folder
from ifqa.protocols import Place
from ifqa.reading.multiple_choice.options import ClassifierReader
from ifqa.reading.multiple_choice.wiqa_question import parts
from ifqa.settings import checked
from ifqa.storage.files import require

if TYPE_CHECKING:
    from ifqa.reading.multiple_choice.attention import DecomposableAttention

WEIGHTS = "model.safetensors"
_NULL = 101  # [CLS] stands for the paper's NULL token before each text, to which a token aligns that has no counterpart
_MOST = 64  # tokens of a text that are read; the longest of WIQA's changes has about 40


class DecompAttn(ClassifierReader):
    """Reads the change and the effect with all-MiniLM-L6-v2's token embeddings (the paper: GloVe). It reads no passage.

    Args:
        checkpoint: a folder that `ifqa train decomp-attn` made.
        device: "cpu", "cuda", "mps", or "auto": CUDA if there is a GPU, else the CPU.
    """

    name = "decomp-attn"
    version = 1
    weights = WEIGHTS
    batch = 64
    not_identity = ("device",)

    @checked("setting of reader 'decomp-attn'")
    def __init__(self, checkpoint: Place, device: str = "auto") -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        self._read_manifest(checkpoint)
        self._device = resolve_device(device)
        path = require(Path(checkpoint) / WEIGHTS, "weights of reader 'decomp-attn'")
        try:
            model = network(self.manifest.settings, len(self.manifest.classes))
            model.load_state_dict(load_file(path))
        except (SafetensorError, KeyError, RuntimeError, TypeError) as error:
            raise IfqaError(
                f"{checkpoint}: these weights are not whole ({str(error).splitlines()[0]}); "
                "train them again: ifqa train decomp-attn"
            ) from error
        self._model = model.to(self._device).eval()

    def _scores(self, texts: Sequence[str]) -> list[list[float]]:
        import torch

        from ifqa.reading.multiple_choice.attention import padded

        changes, effects = zip(*map(tokens, texts), strict=True)
        with torch.inference_mode():
            logits = self._model(padded(changes).to(self._device), padded(effects).to(self._device))
        scores: list[list[float]] = logits.tolist()
        return scores


def tokens(stem: str) -> tuple[list[int], list[int]]:
    """MiniLM's token ids of a question's change and effect, each after the NULL token, cut to 64."""
    from ifqa.models.transformer import tokenizer

    words = tokenizer(encoder_folder())
    change, effect = ([_NULL, *words.encode(text, add_special_tokens=False).ids][:_MOST] for text in parts(stem))
    return change, effect


def network(settings: Mapping[str, Any], classes: int) -> "DecomposableAttention":
    """The network of a training's settings, on MiniLM's embeddings, before its weights are loaded."""
    from ifqa.models.transformer import token_embeddings
    from ifqa.reading.multiple_choice.attention import DecomposableAttention

    return DecomposableAttention(token_embeddings(encoder_folder()), classes, settings["hidden"], settings["dropout"])
