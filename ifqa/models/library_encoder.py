"""Encoders of the span reader that run in transformers: ModernBERT and DeBERTa-v3.

BERT and MPNet are computed in plain torch (`ifqa.models.transformer`), which starts three seconds
faster.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ifqa.models import loading
from ifqa.models.transformer import CONSTANT, Encoder, buffer_name


class LibraryEncoder(Encoder):
    """An encoder of transformers, with this project's adapters.

    The weights are buffers of this module, as those of `Encoder` are, and the network of
    transformers computes with them. The network's own dropout is never used: training zeroes
    features of the last hidden states alone.
    """

    SPECIAL_TOKENS = (("[CLS]",), ("[SEP]",), ("[SEP]",))

    def __init__(self, folder: Path, dropout: float = 0.0) -> None:
        from transformers import AutoModel

        nn.Module.__init__(self)
        loading.silence_transformers()
        network, report = AutoModel.from_pretrained(
            folder,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            dtype=torch.float32,
        )
        loading.refuse_missing(str(folder), report, unused="pooler.")
        config = network.config
        self.folder = folder
        self.size: int = config.hidden_size
        self.positions: int = config.max_position_embeddings
        self.padding: int = config.pad_token_id or 0
        self.rank = 0
        self.dropout = dropout
        self.dtype = torch.float32
        self.adapters = nn.ParameterDict()
        self._takes_types = bool(getattr(config, "type_vocab_size", 0))
        self._linear_names = [
            name
            for name, module in network.named_modules()
            if isinstance(module, nn.Linear) and not name.startswith("embeddings")
        ]
        self._names = [name for name, _ in network.named_parameters()]
        self._constants = [name for name, _ in network.named_buffers()]
        for name, parameter in network.named_parameters():
            self.register_buffer(buffer_name(name), parameter.detach(), persistent=False)
        for name, constant in network.named_buffers():
            self.register_buffer(CONSTANT + buffer_name(name), constant, persistent=False)
        # In a list, so that its parameters are none of this module's
        self._network: list[Any] = [network.requires_grad_(False).eval()]

    def layer_names(self) -> list[str]:
        return self._linear_names

    def forward(
        self, ids: Tensor, types: Tensor, mask: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        tensors = {name: self._weight(name) for name in self._names}
        tensors |= {name: getattr(self, CONSTANT + buffer_name(name)) for name in self._constants}
        inputs = {"input_ids": ids, "attention_mask": mask.long()}
        if self._takes_types:
            inputs["token_type_ids"] = types
        hidden: Tensor = functional_call(self._network[0], tensors, (), inputs).last_hidden_state
        return self._drop(hidden, generator)

    def _weight(self, name: str) -> Tensor:
        """A weight in `dtype`, with its adapter."""
        tensor: Tensor = getattr(self, buffer_name(name))
        layer = name.removesuffix(".weight")
        key = buffer_name(f"{layer}.lora_A")
        if self.rank and key in self.adapters:
            tensor = tensor + self.adapters[buffer_name(f"{layer}.lora_B")] @ self.adapters[key]
        return tensor.to(self.dtype)
