"""The span reader's weights in a folder: the low-rank adapter that is stored gives the network that was trained."""

from pathlib import Path

import pytest
import torch

from ifqa.errors import IfqaError
from ifqa.models.hub import encoder_folder
from ifqa.models.minilm import MiniLM
from ifqa.reading.span.network import SpanModel, make_pair
from ifqa.reading.span.weights import ADAPTER, load_weights, save_weights


def changed(rank: int) -> SpanModel:
    """A network whose layers were changed by adapters of this rank, and their biases by a little noise."""
    generator = torch.Generator().manual_seed(0)
    model = SpanModel(MiniLM(encoder_folder()))
    model.initialise(generator)
    model.encoder.add_adapters(rank, generator)
    for tensor in model.encoder.adapters.values():
        tensor.data.copy_(torch.randn(tensor.shape, generator=generator) * 0.05)
    for name, tensor in model.encoder.named_buffers():
        if name.startswith("encoder__") and tensor.ndim == 1:
            tensor += torch.randn(tensor.shape, generator=generator) * 0.01
    return model


@torch.inference_mode()
def test_stored_weights_give_the_scores_of_the_trained_network(tmp_path: Path) -> None:
    pairs = [make_pair(encoder_folder(), "If Ada had lost, who won?", "Ada, a rower from Brill, won before Bo did.")]
    model, loaded = changed(3), SpanModel(MiniLM(encoder_folder()))
    save_weights(model, tmp_path, 3)
    load_weights(loaded, tmp_path)
    torch.testing.assert_close(loaded(pairs)[0], model(pairs)[0], atol=2e-3, rtol=2e-3)

    save_weights(model, tmp_path, 1)  # too few: the scores are not the same
    coarse = SpanModel(MiniLM(encoder_folder()))
    load_weights(coarse, tmp_path)
    assert not torch.allclose(coarse(pairs)[0], model(pairs)[0], atol=1e-1)


def test_damaged_weights_are_refused_in_one_line(tmp_path: Path) -> None:
    save_weights(changed(1), tmp_path, 1)
    (tmp_path / ADAPTER).write_bytes((tmp_path / ADAPTER).read_bytes()[:-100])
    with pytest.raises(IfqaError, match="these weights are not whole"):
        load_weights(SpanModel(MiniLM(encoder_folder())), tmp_path)
