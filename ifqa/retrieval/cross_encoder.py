"""Cross-encoders: a model that reads question and passage together and scores the pair (Nogueira and Cho 2019)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.models.batches import BUDGET, CHUNK, batches, to_device
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import (
    WEIGHTS_SHA256,
    encoder_folder,
    loading,
    model_folder,
    number_in,
    quiet,
    refuse_missing,
    weights_identity,
)
from ifqa.settings import Positive, Stored, check_stored
from ifqa.storage.files import read_json
from ifqa.storage.resources import BUNDLED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedModel

OWN = "ifqa"  # the adapter that ships with the package
_WEIGHTS = BUNDLED / "weights" / "rerank"
PREFIX = "base_model.model."  # of an adapter's tensors, by peft
_MOST = 512  # maximal tokens of a pair, also for a model that names no limit
_MEND = "train it again: ifqa train rerank"


class _Encoder(Stored):
    sha256: str


class _Settings(Stored):
    max_tokens: Positive
    rank: Positive


class Adapter(Stored):
    """What is read of the manifest of an adapter of all-MiniLM-L6-v2, as `ifqa train rerank` writes it."""

    family: str  # the split family that it was trained on, such as "ifqa/full"
    sources: dict[str, str]  # file of training questions -> SHA-256
    encoder: _Encoder = _Encoder(sha256="")
    settings: _Settings


def adapter_folder(model: str) -> Path | None:
    """The folder of an adapter; None for a whole model."""
    folder = _WEIGHTS if model == OWN else Path(model)
    return folder if (folder / "adapter_config.json").exists() else None


def adapter_of(model: str) -> Adapter | None:
    """The manifest of an adapter; None for a whole model.

    Raises:
        IfqaError: it is damaged, or that of an adapter of another model.
    """
    if (folder := adapter_folder(model)) is None:
        return None
    adapter = check_stored(Adapter, read_json(folder / "manifest.json"), str(folder / "manifest.json"), _MEND)
    if adapter.encoder.sha256 != WEIGHTS_SHA256:
        raise IfqaError(f"{folder} is no adapter of all-MiniLM-L6-v2 from `ifqa train rerank`")
    return adapter


def identity(model: str) -> str:
    """SHA-256 of a model's files."""
    return weights_identity(adapter_folder(model) or model_folder(model))


def tensors_of(model: str) -> "dict[str, Tensor]":
    """The tensors of an adapter, under peft's names, which begin with `PREFIX`.

    Raises:
        IfqaError: the file cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file((adapter_folder(model) or Path(model)) / "adapter_model.safetensors")
    except (SafetensorError, FileNotFoundError) as error:
        raise IfqaError(f"{model}: its weights cannot be read ({error}); {_MEND}") from error


class CrossEncoder:
    """Scores pairs of question and passage; a higher score is more relevant."""

    def __init__(self, model: str = OWN, device: str = "auto") -> None:
        """Load a model. It runs in bfloat16 where the device multiplies in it, else in float32.

        Args:
            model: "ifqa", a folder of `ifqa train rerank`, or any cross-encoder with one label (a folder, or a name on the
                hub, such as "cross-encoder/ms-marco-MiniLM-L6-v2").
            device: see `resolve_device`.

        Raises:
            IfqaError: the model is missing, does not load, or is no cross-encoder with one label.
        """
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        quiet()
        self.device, self.adapter = resolve_device(device), adapter_of(model)
        folder = encoder_folder() if self.adapter else model_folder(model)
        labels = {"num_labels": 1} if self.adapter else {}
        with loading(model, "a cross-encoder"):
            self._tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            network, report = AutoModelForSequenceClassification.from_pretrained(
                folder, trust_remote_code=False, output_loading_info=True, **labels
            )
        if self.adapter:  # it brings the classifier that its encoder lacks
            self._tokens = self.adapter.settings.max_tokens
            with loading(model, "an adapter of `ifqa train rerank`"):
                _merge(network, model)
        else:
            self._tokens = min(number_in(network.config, "max_position_embeddings") or _MOST, _MOST)
            refuse_missing(model, report)
        if network.config.num_labels != 1:
            raise IfqaError(
                f"{model} gives {network.config.num_labels} scores a pair; wanted a cross-encoder with one label"
            )
        self._network = network.to(self.device, half_precision(self.device)).eval()

    def relevance(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float32]":
        """Scores of (question, passage text) pairs, float32 [pairs]."""
        import numpy as np
        import torch

        scores = np.empty(len(pairs), np.float32)
        with torch.inference_mode():
            for start in range(0, len(pairs), CHUNK):
                questions, texts = map(list, zip(*pairs[start : start + CHUNK], strict=True))
                features = self._tokenizer(
                    questions, texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt"
                )
                for places, batch in batches(dict(features), len(questions), BUDGET[self.device]):
                    logits = self._network(**to_device(batch, self.device)).logits
                    scores[start + np.array(places)] = logits.squeeze(-1).float().cpu().numpy()
        return scores


def _merge(network: "PreTrainedModel", model: str) -> None:
    """Add an adapter's low-rank products to the weights (Hu et al. 2022), and copy its classifier."""
    config = read_json((adapter_folder(model) or Path(model)) / "adapter_config.json")
    scale = config["lora_alpha"] / config["r"]
    tensors, weights = tensors_of(model), network.state_dict()
    for name, tensor in tensors.items():
        place = name.removeprefix(PREFIX)
        if place.endswith(".lora_A.weight"):
            raised = tensors[name.replace("lora_A", "lora_B")].float()
            weights[place.replace(".lora_A", "")] += scale * (raised @ tensor.float())
        elif not place.endswith(".lora_B.weight"):
            weights[place].copy_(tensor.float())
