"""Late interaction (ColBERT; Khattab and Zaharia, SIGIR 2020) as a model of the retriever 'rerank'.

Question and passage are encoded apart, into a vector for each token. A passage's score is MaxSim:
for each token of the question the highest inner product with a token of the passage, added up.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import FormatError
from ifqa.models import loading, places
from ifqa.models.devices import half_precision, resolve_device
from ifqa.retrieval.vectors import encoders
from ifqa.storage.files import read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

_BATCH = 32  # texts encoded together
_MODEL_TYPES = ("MultiVectorEncoder", "ColBERT")  # the second is PyLate's
_STANFORD = "HF_ColBERT"


def is_late_interaction(model: str) -> bool:
    """Whether a model's files name it one: of sentence-transformers, PyLate, or Stanford's ColBERT.

    Raises IfqaError if it is missing.
    """
    folder = places.model_folder(model)
    settings = _read_object(folder / "config_sentence_transformers.json")
    architectures = _read_object(folder / "config.json").get("architectures") or ()
    return settings.get("model_type") in _MODEL_TYPES or _STANFORD in architectures


class LateInteraction:
    """Scores pairs of question and passage; a higher score is more relevant."""

    def __init__(self, model: str, device: str = "auto") -> None:
        """Load a model, in bfloat16 if the device supports it, else in float32.

        `model` is a folder, or a name on the hub. Raises IfqaError if it is missing, does not load,
        or lacks weights.
        """
        import torch
        from sentence_transformers import MultiVectorEncoder

        loading.silence_transformers()
        device = resolve_device(device)
        folder = places.model_folder(model)
        with loading.report_load_errors(model, "a late-interaction model"):
            self._model = MultiVectorEncoder(
                str(folder), device=device, trust_remote_code=False, local_files_only=True
            )
            modules = folder / "modules.json"
            network = folder / read_json(modules)[0]["path"] if modules.exists() else folder
            report = encoders.load_report(network, self._model[0])
        loading.refuse_missing(model, report, unused="pooler.")
        if half_precision(device) == torch.bfloat16:
            self._model[0].to(torch.bfloat16)
            self._model[0].register_forward_hook(encoders.to_float32)
        self._model.eval()

    def relevance(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float32]":
        """Scores of (question, passage text) pairs, float32 [pairs].

        Each question and each passage is encoded once.
        """
        import numpy as np
        import torch

        if not pairs:
            return np.empty(0, np.float32)
        questions, texts = (list(dict.fromkeys(column)) for column in zip(*pairs, strict=True))
        with torch.inference_mode():
            encoded = self._model.encode_query(
                _readable(questions), batch_size=_BATCH, show_progress_bar=False
            )
            of_question = dict(zip(questions, encoded, strict=True))
            encoded = self._model.encode_document(
                _readable(texts), batch_size=_BATCH, show_progress_bar=False
            )
            of_text = dict(zip(texts, encoded, strict=True))
            scores: Tensor = self._model.similarity_pairwise(
                [of_question[question] for question, _ in pairs],
                [of_text[text] for _, text in pairs],
            )
        return scores.float().cpu().numpy()


def _read_object(path: Path) -> dict[str, Any]:
    """A JSON file's object; empty without the file."""
    content = read_json(path) if path.exists() else {}
    if not isinstance(content, dict):
        raise FormatError(f"{path}: wanted a JSON object, found {type(content).__name__}")
    return content


def _readable(texts: Sequence[str]) -> list[str]:
    return [encoders.replace_surrogates(text) for text in texts]
