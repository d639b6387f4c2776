"""The encoders all-MiniLM-L6-v2 and all-mpnet-base-v2 in plain torch: frozen, with adapters, or
fine-tuned.

Importing transformers would take three seconds. Tests compare the encoders with transformers and
peft.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ifqa.errors import FormatError

_NORM = "output.LayerNorm"  # after the feed-forward part
BERT_LINEAR = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
_TYPES = "embeddings.token_type_embeddings.weight"
_BIAS = "encoder.relative_attention_bias.weight"
CONSTANT = "constant__"  # begins the names of buffers that are no weights
_FARTHEST = 128  # tokens; larger distances share the last bucket


class Encoder(nn.Module):
    """An encoder: frozen, with low-rank adapters (LoRA; Hu et al. 2022), or with its layers
    trained.

    `dropout` is the share of features that training zeroes, the same at every position of a
    sequence.

    Attributes:
        LINEAR: names in the file of weights of a layer's linear layers: query, key, value, output,
            and two feed-forward layers.
        NORM: the layer norm after attention.
        EXTRA_WEIGHTS: weights that only this kind of network has.
        FIRST_POSITION: the first token's row in the table of positions.
        SPECIAL_TOKENS: those before, between and after the texts of a pair.
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
        # Tokens of the longest sequence
        self.positions: int = config["max_position_embeddings"] - self.FIRST_POSITION
        self.padding: int = config.get("pad_token_id") or 0
        self.epsilon: float = config["layer_norm_eps"]
        self.rank = 0  # the adapters' rank; 0 without adapters
        self.dropout = dropout
        for name, tensor in load_file(folder / "model.safetensors").items():
            if name.startswith(("embeddings.", "encoder.")) and tensor.is_floating_point():
                self.register_buffer(buffer_name(name), tensor.float(), persistent=False)
        known = dict(self.named_buffers())
        if missing := next(
            (name for name in self._required_weights() if buffer_name(name) not in known), ""
        ):
            kind = config["model_type"]
            raise FormatError(
                f"{folder / 'model.safetensors'} has no {missing}; wanted a network of kind {kind}"
            )
        self.dtype = torch.float32
        self.adapters = nn.ParameterDict()

    def layer_names(self) -> list[str]:
        return [
            f"encoder.layer.{layer}.{name}" for layer in range(self.layers) for name in self.LINEAR
        ]

    def _required_weights(self) -> Iterator[str]:
        norms = [
            f"encoder.layer.{layer}.{name}"
            for layer in range(self.layers)
            for name in (self.NORM, _NORM)
        ]
        for name in ("embeddings.LayerNorm", *self.layer_names(), *norms):
            yield from (f"{name}.weight", f"{name}.bias")
        yield from (
            "embeddings.word_embeddings.weight",
            "embeddings.position_embeddings.weight",
            *self.EXTRA_WEIGHTS,
        )

    def weight(self, name: str) -> Tensor:
        """A weight by its name in the file of weights; the layers' weights are cast to `dtype`."""
        tensor: Tensor = getattr(self, buffer_name(name))
        return tensor.to(self.dtype) if name.startswith("encoder.") else tensor

    def cast(self, dtype: torch.dtype) -> None:
        """Compute in `dtype`; the weights stay in float32 and are cast at each use."""
        self.dtype = dtype

    def add_adapters(self, rank: int, generator: torch.Generator) -> None:
        """Add `B(A(inputs))` to each layer's output: A is uniform, as in peft, B is 0, and alpha =
        rank (scale 1).
        """
        self.rank = rank
        for name in self.layer_names():
            out_size, in_size = self.weight(f"{name}.weight").shape
            bound = 1 / math.sqrt(in_size)
            a = nn.init.uniform_(torch.empty(rank, in_size), -bound, bound, generator=generator)
            self.adapters[buffer_name(f"{name}.lora_A")] = nn.Parameter(a)
            self.adapters[buffer_name(f"{name}.lora_B")] = nn.Parameter(torch.zeros(out_size, rank))

    def train_layers(self) -> None:
        """Train the layers' weights; the embeddings stay frozen."""
        for name, tensor in list(self.named_buffers()):
            if _is_of_layers(name):
                delattr(self, name)
                self.register_parameter(name, nn.Parameter(tensor))

    def layer_tensors(self) -> dict[str, Tensor]:
        """The layers' weights with merged adapters, by their names in the file of weights."""
        weights = (*self.named_parameters(), *self.named_buffers())
        tensors = {name: tensor.detach() for name, tensor in weights if _is_of_layers(name)}
        for name in self.layer_names() if self.rank else ():
            a, b = (self.adapters[buffer_name(f"{name}.lora_{side}")].detach() for side in "AB")
            key = buffer_name(f"{name}.weight")
            tensors[key] = tensors[key] + b @ a
        return {_name(key): tensor for key, tensor in tensors.items()}

    def load_layers(self, tensors: dict[str, Tensor]) -> None:
        """Load another network's `layer_tensors`, before adapters are added."""
        for name, tensor in self.named_buffers():
            if _is_of_layers(name):
                tensor.copy_(tensors[_name(name)])

    def forward(
        self, ids: Tensor, types: Tensor, mask: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Hidden states of the last layer, [sequences, tokens, size].

        `ids` are token ids, [sequences, tokens]; `types`, 0 for the first text of a pair and 1 for
        the second, and `mask`, False at padding, have the same shape. Without a generator there is
        no dropout.
        """
        rows, length = ids.shape
        *projections, mixing, inner, outer = self.LINEAR
        hidden = self._drop(
            self._norm(self._embed(ids, types), "embeddings.LayerNorm").to(self.dtype), generator
        )
        bias = self._attention_bias(torch.where(mask, 0.0, -1e4).to(hidden.dtype)[:, None, None, :])
        for layer in range(self.layers):
            prefix = f"encoder.layer.{layer}"
            parts = [self._linear(hidden, f"{prefix}.{name}") for name in projections]
            query, key, value = (
                part.view(rows, length, self.heads, -1).transpose(1, 2) for part in parts
            )
            mixed = _attention(query, key, value, bias)
            mixed = self._linear(
                mixed.transpose(1, 2).reshape(rows, length, self.size), f"{prefix}.{mixing}"
            )
            hidden = self._norm(hidden + self._drop(mixed, generator), f"{prefix}.{self.NORM}")
            expanded = F.gelu(self._linear(hidden, f"{prefix}.{inner}"))
            output = self._drop(self._linear(expanded, f"{prefix}.{outer}"), generator)
            hidden = self._norm(hidden + output, f"{prefix}.{_NORM}")
        return hidden

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        table = self.weight("embeddings.position_embeddings.weight")
        first = self.FIRST_POSITION
        positions = table[first : first + ids.shape[1]]
        return F.embedding(ids, self.weight("embeddings.word_embeddings.weight")) + positions

    def _attention_bias(self, padding: Tensor) -> Tensor:
        """The bias on attention's scores, [sequences, heads, tokens, tokens], from padding's,
        [sequences, 1, 1, tokens].
        """
        return padding

    def _linear(self, inputs: Tensor, name: str) -> Tensor:
        output = F.linear(inputs, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"))
        if self.rank:
            a, b = (
                self.adapters[buffer_name(f"{name}.lora_{side}")].to(inputs.dtype) for side in "AB"
            )
            output = torch.addmm(
                output.flatten(0, 1), F.linear(inputs, a).flatten(0, 1), b.t()
            ).view(output.shape)
        return output

    def _norm(self, inputs: Tensor, name: str) -> Tensor:
        weight = self.weight(f"{name}.weight")
        bias = self.weight(f"{name}.bias")
        return F.layer_norm(inputs, (self.size,), weight, bias, self.epsilon)

    def _drop(self, inputs: Tensor, generator: torch.Generator | None) -> Tensor:
        if generator is None or not self.dropout:
            return inputs
        mask = (
            torch.rand(inputs.shape[0], 1, inputs.shape[2], generator=generator).to(inputs.device)
            >= self.dropout
        )
        return inputs * (mask / (1 - self.dropout)).to(inputs.dtype)


def token_embeddings(folder: Path) -> Tensor:
    """The table of token embeddings, [30522, 384]."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as file:
        embeddings: Tensor = file.get_tensor("embeddings.word_embeddings.weight")
    return embeddings


class MiniLM(Encoder):
    """BERT's encoder (Devlin et al. 2019), as in all-MiniLM-L6-v2 (Wang et al. 2020): absolute
    positions, and token types.
    """

    LINEAR = BERT_LINEAR
    NORM = "attention.output.LayerNorm"
    EXTRA_WEIGHTS = (_TYPES,)
    SPECIAL_TOKENS = (("[CLS]",), ("[SEP]",), ("[SEP]",))

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        return super()._embed(ids, types) + F.embedding(types, self.weight(_TYPES))


class MPNet(Encoder):
    """MPNet's encoder (Song et al., NeurIPS 2020), as in all-mpnet-base-v2: no token types, and an
    attention bias by distance.

    The layers share the bias. Two `</s>` separate the texts of a pair, as in RoBERTa.
    """

    LINEAR = ("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o",
              "intermediate.dense", "output.dense")  # fmt: skip
    NORM = "attention.LayerNorm"
    EXTRA_WEIGHTS = (_BIAS,)
    FIRST_POSITION = 2  # the rows before are padding
    SPECIAL_TOKENS = (("<s>",), ("</s>", "</s>"), ("</s>",))

    def _attention_bias(self, padding: Tensor) -> Tensor:
        table = self.weight(_BIAS)
        positions = torch.arange(padding.shape[-1], device=padding.device)
        buckets = position_buckets(positions - positions[:, None], len(table))
        # From [tokens, tokens, heads]
        return padding + F.embedding(buckets, table).permute(2, 0, 1)


def position_buckets(distances: Tensor, count: int) -> Tensor:
    """Buckets of distances from query to key, as in T5: half of them for keys after the query, far
    ones logarithmically wide.
    """
    half = count // 2
    exact = half // 2
    far = distances.abs()
    logarithmic = (
        torch.log(far.clamp(min=1).float() / exact) / math.log(_FARTHEST / exact) * (half - exact)
    )
    near = torch.where(far < exact, far, (exact + logarithmic.long()).clamp(max=half - 1))
    return near + (distances > 0).long() * half


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Scaled dot-product attention on [sequences, heads, tokens, size of a head].

    `bias` as from `Encoder._attention_bias`.
    """
    if torch.is_grad_enabled():  # torch's own backward pass is several times slower on a CPU
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2) + bias
        return torch.softmax(scores, -1) @ value
    mask = bias.expand(-1, -1, query.shape[2], -1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def buffer_name(name: str) -> str:
    """The name of a weight's buffer, in which torch allows no dot."""
    return name.replace(".", "__")


def _is_of_layers(key: str) -> bool:
    """Whether a buffer or parameter is a weight of the layers: neither of the embeddings, nor of an
    adapter, nor a constant.
    """
    return not key.startswith(("embeddings__", "adapters.", CONSTANT))


def _name(key: str) -> str:
    return key.replace("__", ".")
