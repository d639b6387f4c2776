"""BERT's encoder in plain torch, such as all-MiniLM-L6-v2: frozen, with adapters, or with its layers trained.

It is written in plain torch because importing transformers takes three seconds, even to answer a single question. Tests
compare it with transformers and peft.
"""

import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ifqa.errors import IfqaError

_NORMS = ("attention.output.LayerNorm", "output.LayerNorm")  # after attention, and after the feed-forward part
#: The linear layers of an encoder layer, by their names in the weights' file. Each of them gets an adapter.
BERT_LINEAR = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
          "intermediate.dense", "output.dense")  # fmt: skip
_WORDS, _PLACES, _TYPES = (f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type"))


@cache
def tokenizer(folder: Path) -> Any:
    """The encoder's tokenizer, without padding or truncation."""
    from tokenizers import Tokenizer

    words = Tokenizer.from_file(str(folder / "tokenizer.json"))
    words.no_padding()
    words.no_truncation()
    return words


class Encoder(nn.Module):
    """BERT's encoder (Devlin et al. 2019): all weights frozen, low-rank adapters (LoRA; Hu et al. 2022), or its layers trained.

    Args:
        folder: the folder with its `config.json`, `model.safetensors` and `tokenizer.json`.
        dropout: share of features that training sets to zero, the same features at every position of a sequence.

    Attributes:
        positions: the most tokens of a sequence.
        padding: the id of the token that fills a sequence up.
    """

    def __init__(self, folder: Path, dropout: float = 0.0) -> None:
        from safetensors.torch import load_file

        super().__init__()
        self.folder = folder
        config = json.loads((folder / "config.json").read_bytes())
        self.heads: int = config["num_attention_heads"]
        self.layers: int = config["num_hidden_layers"]
        self.size: int = config["hidden_size"]
        self.positions: int = config["max_position_embeddings"]
        self.padding: int = config.get("pad_token_id") or 0
        self.epsilon: float = config["layer_norm_eps"]
        self.rank = 0  # of the adapters
        self.dropout = dropout
        for name, tensor in load_file(folder / "model.safetensors").items():
            if name.startswith(("embeddings.", "encoder.")) and tensor.is_floating_point():
                self.register_buffer(_key(name), tensor.float(), persistent=False)
        known = dict(self.named_buffers())
        if lacking := next((name for name in self._needed() if _key(name) not in known), ""):
            raise IfqaError(
                f"{folder / 'model.safetensors'} has no {lacking}; wanted a network of kind {config['model_type']}"
            )
        self.dtype = torch.float32
        self.adapters = nn.ParameterDict()

    def layer_names(self) -> list[str]:
        """Names of all linear layers, which may have an adapter."""
        return [f"encoder.layer.{layer}.{name}" for layer in range(self.layers) for name in BERT_LINEAR]

    def _needed(self) -> Iterator[str]:
        norms = [f"encoder.layer.{layer}.{name}" for layer in range(self.layers) for name in _NORMS]
        for name in ("embeddings.LayerNorm", *self.layer_names(), *norms):
            yield from (f"{name}.weight", f"{name}.bias")
        yield from (_WORDS, _PLACES, _TYPES)

    def weight(self, name: str) -> Tensor:
        """A weight, by its name in the weights' file; those of the layers in the type that is computed in."""
        tensor: Tensor = getattr(self, _key(name))
        return tensor.to(self.dtype) if name.startswith("encoder.") else tensor

    def cast(self, dtype: torch.dtype) -> None:
        """Compute in `dtype` from now on. The weights stay in float32 and are cast at each use."""
        self.dtype = dtype

    def add_adapters(self, rank: int, generator: torch.Generator) -> None:
        """Add adapters, each of which adds `B(A(x))` to a layer's output (alpha = rank, so scale 1).

        A is drawn uniformly, as in peft, and B is zero, so that the network's output is unchanged at first.
        """
        self.rank = rank
        for name in self.layer_names():
            out_size, in_size = self.weight(f"{name}.weight").shape
            a, bound = torch.empty(rank, in_size), 1 / math.sqrt(in_size)
            self.adapters[_key(f"{name}.lora_A")] = nn.Parameter(
                nn.init.uniform_(a, -bound, bound, generator=generator)
            )
            self.adapters[_key(f"{name}.lora_B")] = nn.Parameter(torch.zeros(out_size, rank))

    def train_layers(self) -> None:
        """Make the layers' weights parameters; the embeddings stay frozen."""
        for name, tensor in list(self.named_buffers()):
            if name.startswith("encoder__"):
                delattr(self, name)
                self.register_parameter(name, nn.Parameter(tensor))

    def layer_tensors(self) -> dict[str, Tensor]:
        """The layers' weights, with what the adapters add, by their names in the weights' file."""
        weights = (*self.named_parameters(), *self.named_buffers())
        tensors = {name: tensor.detach() for name, tensor in weights if name.startswith("encoder__")}
        for name in self.layer_names() if self.rank else ():
            a, b = (self.adapters[_key(f"{name}.lora_{side}")].detach() for side in "AB")
            key = _key(f"{name}.weight")
            tensors[key] = tensors[key] + b @ a
        return {_name(key): tensor for key, tensor in tensors.items()}

    def load_layers(self, tensors: dict[str, Tensor]) -> None:
        """Take the layers' weights from `layer_tensors` of another network, before adapters are added."""
        for name, tensor in self.named_buffers():
            if name.startswith("encoder__"):
                tensor.copy_(tensors[_name(name)])

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Hidden states of the last layer, [sequences, tokens, size].

        Args:
            ids: token ids, [sequences, tokens].
            types: 0 for the first text of a pair, 1 for the second, same shape.
            mask: False at padding, same shape.
            generator: draws the dropout; without a generator there is no dropout.
        """
        rows, length = ids.shape
        *projections, mixing, inner, outer = BERT_LINEAR
        embedded = (
            F.embedding(ids, self.weight(_WORDS))
            + self.weight(_PLACES)[:length]
            + F.embedding(types, self.weight(_TYPES))
        )
        x = self._drop(self._norm(embedded, "embeddings.LayerNorm").to(self.dtype), generator)
        added = torch.where(mask, 0.0, -1e4).to(x.dtype)[:, None, None, :]
        for layer in range(self.layers):
            prefix = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(x, f"{prefix}.{part}").view(rows, length, self.heads, -1).transpose(1, 2)
                for part in projections
            )
            mixed = _attention(query, key, value, added).transpose(1, 2).reshape(rows, length, self.size)
            mixed = self._drop(self._linear(mixed, f"{prefix}.{mixing}"), generator)
            x = self._norm(x + mixed, f"{prefix}.{_NORMS[0]}")
            within = F.gelu(self._linear(x, f"{prefix}.{inner}"))
            x = self._norm(
                x + self._drop(self._linear(within, f"{prefix}.{outer}"), generator), f"{prefix}.{_NORMS[1]}"
            )
        return x

    def _linear(self, x: Tensor, name: str) -> Tensor:
        y = F.linear(x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))
        if self.rank:
            a, b = (self.adapters[_key(f"{name}.lora_{side}")].to(x.dtype) for side in "AB")
            y = torch.addmm(y.flatten(0, 1), F.linear(x, a).flatten(0, 1), b.t()).view(y.shape)
        return y

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (self.size,), self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), self.epsilon)

    def _drop(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        if generator is None or not self.dropout:
            return x
        kept = torch.rand(x.shape[0], 1, x.shape[2], generator=generator).to(x.device) >= self.dropout
        return x * (kept / (1 - self.dropout)).to(x.dtype)


def token_embeddings(folder: Path) -> Tensor:
    """The embeddings of the encoder's tokens alone, before positions and layers, [30522, 384]."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as file:
        embeddings: Tensor = file.get_tensor(_WORDS)
    return embeddings


def _attention(query: Tensor, key: Tensor, value: Tensor, added: Tensor) -> Tensor:
    """Scaled dot-product attention; all [sequences, heads, tokens, size of a head], `added` 0 and very low at padding."""
    if torch.is_grad_enabled():  # on a CPU the backward pass of torch's own takes several times as long as this one's
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2) + added
        return torch.softmax(scores, -1) @ value
    mask = added.expand(-1, -1, query.shape[2], -1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def _key(name: str) -> str:
    return name.replace(".", "__")  # torch allows no dot in a buffer's name


def _name(key: str) -> str:
    return key.replace("__", ".")
