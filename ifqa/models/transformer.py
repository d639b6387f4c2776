"""The encoders all-MiniLM-L6-v2 and all-mpnet-base-v2 in plain torch: frozen, with adapters, or fine-tuned.

Importing transformers takes three seconds, even to answer a single question. Tests compare this with transformers and peft.
"""

import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn

from ifqa.errors import IfqaError

_NORM = "output.LayerNorm"  # after the feed-forward part
#: The linear layers of an encoder layer, by their names in the weights' file. Each of them gets an adapter.
BERT_LINEAR = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
          "intermediate.dense", "output.dense")  # fmt: skip
_TYPES = "embeddings.token_type_embeddings.weight"
_BIAS = "encoder.relative_attention_bias.weight"
_FARTHEST = 128  # tokens; larger distances share the last bucket


@cache
def load_tokenizer(folder: Path) -> Tokenizer:
    """The encoder's tokenizer, without padding or truncation."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class Encoder(nn.Module):
    """An encoder: frozen, with low-rank adapters (LoRA; Hu et al. 2022), or with its layers trained.

    Args:
        folder: has `config.json`, `model.safetensors` and `tokenizer.json`.
        dropout: share of features that training sets to zero, the same features at every position of a sequence.

    Attributes:
        LINEAR: the linear layers of an encoder layer, by their names in the weights' file: query, key, value and output of
            attention, then the two of the feed-forward part. Each of them gets an adapter.
        NORM: the layer norm after attention.
        EXTRA_WEIGHTS: weights that only this kind of network has.
        FIRST_POSITION: the row of the first token in the table of positions.
        SPECIAL_TOKENS: the special tokens before, between and after the two texts of a pair.
        positions: the maximum number of tokens of a sequence.
        padding: the id of the padding token.
    """

    LINEAR: ClassVar[tuple[str, ...]]
    NORM: ClassVar[str]
    EXTRA_WEIGHTS: ClassVar[tuple[str, ...]]
    FIRST_POSITION: ClassVar[int] = 0
    SPECIAL_TOKENS: ClassVar[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]

    def __init__(self, folder: Path, dropout: float = 0.0) -> None:
        from safetensors.torch import load_file

        super().__init__()
        self.folder = folder
        config = json.loads((folder / "config.json").read_bytes())
        self.heads: int = config["num_attention_heads"]
        self.layers: int = config["num_hidden_layers"]
        self.size: int = config["hidden_size"]
        self.positions: int = config["max_position_embeddings"] - self.FIRST_POSITION
        self.padding: int = config.get("pad_token_id") or 0
        self.epsilon: float = config["layer_norm_eps"]
        self.rank = 0  # of the adapters
        self.dropout = dropout
        for name, tensor in load_file(folder / "model.safetensors").items():
            if name.startswith(("embeddings.", "encoder.")) and tensor.is_floating_point():
                self.register_buffer(_key(name), tensor.float(), persistent=False)
        known = dict(self.named_buffers())
        if missing := next((name for name in self._required_weights() if _key(name) not in known), ""):
            raise IfqaError(
                f"{folder / 'model.safetensors'} has no {missing}; wanted a network of kind {config['model_type']}"
            )
        self.dtype = torch.float32
        self.adapters = nn.ParameterDict()

    def layer_names(self) -> list[str]:
        """Names of all linear layers."""
        return [f"encoder.layer.{layer}.{name}" for layer in range(self.layers) for name in self.LINEAR]

    def _required_weights(self) -> Iterator[str]:
        norms = [f"encoder.layer.{layer}.{name}" for layer in range(self.layers) for name in (self.NORM, _NORM)]
        for name in ("embeddings.LayerNorm", *self.layer_names(), *norms):
            yield from (f"{name}.weight", f"{name}.bias")
        yield from ("embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight", *self.EXTRA_WEIGHTS)

    def weight(self, name: str) -> Tensor:
        """A weight, by its name in the weights' file; the layers' weights are cast to `dtype`."""
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
        """The layers' weights with the adapters merged, by their names in the weights' file."""
        weights = (*self.named_parameters(), *self.named_buffers())
        tensors = {name: tensor.detach() for name, tensor in weights if name.startswith("encoder__")}
        for name in self.layer_names() if self.rank else ():
            a, b = (self.adapters[_key(f"{name}.lora_{side}")].detach() for side in "AB")
            key = _key(f"{name}.weight")
            tensors[key] = tensors[key] + b @ a
        return {_name(key): tensor for key, tensor in tensors.items()}

    def load_layers(self, tensors: dict[str, Tensor]) -> None:
        """Load the layers' weights from `layer_tensors` of another network, before adapters are added."""
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
        *projections, mixing, inner, outer = self.LINEAR
        x = self._drop(self._norm(self._embed(ids, types), "embeddings.LayerNorm").to(self.dtype), generator)
        bias = self._attention_bias(torch.where(mask, 0.0, -1e4).to(x.dtype)[:, None, None, :])
        for layer in range(self.layers):
            prefix = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(x, f"{prefix}.{part}").view(rows, length, self.heads, -1).transpose(1, 2)
                for part in projections
            )
            mixed = _attention(query, key, value, bias).transpose(1, 2).reshape(rows, length, self.size)
            mixed = self._drop(self._linear(mixed, f"{prefix}.{mixing}"), generator)
            x = self._norm(x + mixed, f"{prefix}.{self.NORM}")
            within = F.gelu(self._linear(x, f"{prefix}.{inner}"))
            x = self._norm(x + self._drop(self._linear(within, f"{prefix}.{outer}"), generator), f"{prefix}.{_NORM}")
        return x

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        """The sum of a token's embeddings, before the layer norm; arguments as in `forward`."""
        positions = self.weight("embeddings.position_embeddings.weight")[
            self.FIRST_POSITION : self.FIRST_POSITION + ids.shape[1]
        ]
        return F.embedding(ids, self.weight("embeddings.word_embeddings.weight")) + positions

    def _attention_bias(self, padding: Tensor) -> Tensor:
        """The bias on attention's scores, which broadcasts to [sequences, heads, tokens, tokens].

        Args:
            padding: 0, or very low at padding, [sequences, 1, 1, tokens].
        """
        return padding

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
        mask = torch.rand(x.shape[0], 1, x.shape[2], generator=generator).to(x.device) >= self.dropout
        return x * (mask / (1 - self.dropout)).to(x.dtype)


def token_embeddings(folder: Path) -> Tensor:
    """The table of token embeddings, [30522, 384]."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as file:
        embeddings: Tensor = file.get_tensor("embeddings.word_embeddings.weight")
    return embeddings


class MiniLM(Encoder):
    """BERT's encoder (Devlin et al. 2019), as in all-MiniLM-L6-v2 (Wang et al. 2020).

    It has absolute positions, and token types for the two texts of a pair.
    """

    LINEAR = BERT_LINEAR
    NORM = "attention.output.LayerNorm"
    EXTRA_WEIGHTS = (_TYPES,)
    SPECIAL_TOKENS = (("[CLS]",), ("[SEP]",), ("[SEP]",))

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        return super()._embed(ids, types) + F.embedding(types, self.weight(_TYPES))


class MPNet(Encoder):
    """MPNet's encoder (Song et al., NeurIPS 2020), as in all-mpnet-base-v2.

    BERT's encoder with an attention bias by relative position, shared by the layers, and without token types. Two `</s>`
    separate the texts of a pair, as in RoBERTa.
    """

    LINEAR = ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o",
              "intermediate.dense", "output.dense")  # fmt: skip
    NORM = "attention.LayerNorm"
    EXTRA_WEIGHTS = (_BIAS,)
    FIRST_POSITION = 2  # the rows before are padding
    SPECIAL_TOKENS = (("<s>",), ("</s>", "</s>"), ("</s>",))

    def _attention_bias(self, padding: Tensor) -> Tensor:
        table, positions = self.weight(_BIAS), torch.arange(padding.shape[-1], device=padding.device)
        bias = F.embedding(
            position_buckets(positions - positions[:, None], len(table)), table
        )  # [tokens, tokens, heads]
        return padding + bias.permute(2, 0, 1)


def position_buckets(distances: Tensor, count: int) -> Tensor:
    """The buckets of distances in tokens, from a query to a key, as in T5: half of them for keys after the query.

    In each half, the first half has a bucket per distance; the widths of the others grow logarithmically.
    """
    half = count // 2
    exact = half // 2
    far = distances.abs()
    logarithmic = torch.log(far.clamp(min=1).float() / exact) / math.log(_FARTHEST / exact) * (half - exact)
    near = torch.where(far < exact, far, (exact + logarithmic.long()).clamp(max=half - 1))
    return near + (distances > 0).long() * half


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Scaled dot-product attention; all [sequences, heads, tokens, size of a head], `bias` from `Encoder._attention_bias`."""
    if torch.is_grad_enabled():  # on a CPU, torch's own backward pass is several times slower
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2) + bias
        return torch.softmax(scores, -1) @ value
    mask = bias.expand(-1, -1, query.shape[2], -1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def _key(name: str) -> str:
    return name.replace(".", "__")  # torch allows no dot in a buffer's name


def _name(key: str) -> str:
    return key.replace("__", ".")
