"""Runs a sentence-transformers model's transformer in 8-bit integers with ONNX Runtime, on a CPU."""

import copy
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError

_SAMPLE = ["two texts", "of which one is a little longer"]


def quantised(model: Any) -> Any:
    """A copy of the model with a quantised transformer; pooling and the later modules stay in torch.

    Weights are quantised here, per output channel. Activations are quantised at each run (ONNX Runtime's dynamic
    quantisation).

    Raises:
        IfqaError: onnx is not installed, or the network cannot be exported.
    """
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ModuleNotFoundError as error:
        raise IfqaError(
            f"precision 'int8' needs {error.name}; install it with: pip install 'ifqa[onnx]', or take precision = \"auto\""
        ) from error
    import torch

    names = [name for name in model.preprocess(_SAMPLE) if name in ("input_ids", "attention_mask", "token_type_ids")]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory(prefix="ifqa-int8-") as folder:
        exported, small = Path(folder) / "model.onnx", Path(folder) / "model.int8.onnx"
        _export(model, names, exported)
        with _unheard():
            quantize_dynamic(exported, small, weight_type=QuantType.QInt8, per_channel=True)
        session = onnxruntime.InferenceSession(str(small), options, providers=["CPUExecutionProvider"])
    replaced = copy.copy(model)
    replaced._modules = dict(model._modules)
    transformer = copy.copy(model[0])
    transformer._modules = dict(model[0]._modules)
    transformer._modules["model"] = _network()(session, names, model[0].model.config)
    replaced._modules["0"] = transformer
    return replaced


def _export(model: Any, names: list[str], path: Path) -> None:
    import torch

    class Hidden(torch.nn.Module):
        def __init__(self, network: Any) -> None:
            super().__init__()
            self.network = network

        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            hidden: torch.Tensor = self.network(**dict(zip(names, tensors, strict=True))).last_hidden_state
            return hidden

    features = model.preprocess(_SAMPLE)
    rows, tokens = torch.export.Dim("rows", min=1, max=1 << 16), torch.export.Dim("tokens", min=1, max=1 << 13)
    shapes = {"tensors": tuple({0: rows, 1: tokens} for _ in names)}
    try:
        with _unheard():
            torch.onnx.export(
                Hidden(model[0].model), tuple(features[name] for name in names), str(path), dynamo=True,
                input_names=names, dynamic_shapes=shapes, external_data=False, verbose=False,
            )  # fmt: skip
    except (torch.onnx.errors.OnnxExporterError, RuntimeError, ValueError) as error:
        raise IfqaError(
            f"this model cannot be exported for precision 'int8' ({type(error).__name__}); take \"float32\""
        ) from error


@contextmanager
def _unheard() -> Iterator[None]:
    """Silence the warnings of the exporter and the quantiser, which are meant for their developers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _network() -> Any:
    import numpy as np
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    class Network(torch.nn.Module):
        """Calls ONNX Runtime where the transformer would be called."""

        def __init__(self, session: Any, names: list[str], config: Any) -> None:
            super().__init__()
            self.session, self.names, self.config = session, names, config

        def forward(self, **features: Any) -> Any:
            (hidden,) = self.session.run(None, {name: np.asarray(features[name]) for name in self.names})
            return BaseModelOutput(last_hidden_state=torch.from_numpy(hidden))

    return Network
