"""The network of all-MiniLM-L6-v2 (Wang et al. 2020; sentence-transformers): the encoder of BERT (Devlin et al. 2019)."""

from pathlib import Path

import torch.nn.functional as F
from torch import Tensor

from ifqa.models.transformer import Encoder

#: The linear layers of an encoder layer, by their names in the weights' file. Each of them gets an adapter.
LINEAR = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
          "intermediate.dense", "output.dense")  # fmt: skip
_TYPES = "embeddings.token_type_embeddings.weight"


def token_embeddings(folder: Path) -> Tensor:
    """The embeddings of the encoder's tokens alone, before positions and layers, [30522, 384]."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as file:
        found: Tensor = file.get_tensor("embeddings.word_embeddings.weight")
    return found


class MiniLM(Encoder):
    """BERT's encoder: absolute positions, and types that tell the two texts of a pair apart."""

    LINEAR = LINEAR
    NORM = "attention.output.LayerNorm"
    OTHERS = (_TYPES,)
    MARKS = (("[CLS]",), ("[SEP]",), ("[SEP]",))

    def _embedded(self, ids: Tensor, types: Tensor) -> Tensor:
        return super()._embedded(ids, types) + F.embedding(types, self.weight(_TYPES))
