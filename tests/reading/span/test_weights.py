"""The span reader's weights in a folder: the low-rank adapter that is stored gives the network that was trained."""

import pytest
import torch
from refusals import refused
from tiny_mpnet import tiny_mpnet

from ifqa.models.encoders import open_encoder
from ifqa.models.hub import minilm_folder
from ifqa.reading.span.network import SpanModel, encode_pair
from ifqa.reading.span.weights import ADAPTER, load_weights, save_weights


def changed(rank, folder):
    """A network whose layers were changed by adapters of this rank, and their biases by a little noise."""
    generator = torch.Generator().manual_seed(0)
    model = SpanModel(open_encoder(folder))
    model.initialise(generator)
    model.encoder.add_adapters(rank, generator)
    for tensor in model.encoder.adapters.values():
        tensor.data.copy_(torch.randn(tensor.shape, generator=generator) * 0.05)
    for name, tensor in model.encoder.named_buffers():
        if name.startswith("encoder__") and tensor.ndim == 1:
            tensor += torch.randn(tensor.shape, generator=generator) * 0.01
    return model


@pytest.mark.parametrize("kind", ["MiniLM", "MPNet"])
@torch.inference_mode()
def test_stored_weights_give_the_scores_of_the_trained_network(tmp_path, kind):
    question, text = "If Ada had lost, who won?", "Ada, a rower from Brill, won before Bo did."
    folder = minilm_folder() if kind == "MiniLM" else tiny_mpnet(tmp_path / "tiny", question, text)
    pairs = [encode_pair(folder, question, text)]
    model, loaded = changed(3, folder), SpanModel(open_encoder(folder))
    expected, _ = model(pairs)
    found = expected > -1e3

    def error(network):
        return float((network(pairs)[0] - expected)[found].abs().max())

    save_weights(model, tmp_path, 3)
    load_weights(loaded, tmp_path)
    assert error(loaded) < 4e-3

    save_weights(model, tmp_path, 1)  # too few: the scores are not the same
    coarse = SpanModel(open_encoder(folder))
    load_weights(coarse, tmp_path)
    assert error(coarse) > 10 * error(loaded)
    (tmp_path / ADAPTER).write_bytes((tmp_path / ADAPTER).read_bytes()[:-100])
    with refused("damaged weights"):
        load_weights(loaded, tmp_path)
