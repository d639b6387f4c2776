"""The span reader's stored weights: the low-rank adapter restores the trained network."""

from pathlib import Path

import pytest
import torch
from refusals import refused
from tiny_mpnet import tiny_mpnet

from ifqa.models.ledger import describe_exposure, read_model_facts
from ifqa.models.places import LARGE, MPNET, minilm_folder
from ifqa.models.span_encoder import open_encoder
from ifqa.reading.span.calibration import load_calibration
from ifqa.reading.span.network import SpanModel, encode_pair
from ifqa.reading.span.reader import Extractive, weights_folder
from ifqa.reading.span.weights import (
    ADAPTER,
    fingerprint_weights,
    load_span_manifest,
    load_weights,
    save_weights,
)


def trained_network(rank, folder):
    """A network with random adapters of this rank, and noise in its biases."""
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
    model = trained_network(3, folder)
    loaded = SpanModel(open_encoder(folder))
    expected, _ = model(pairs)

    def error(network):
        return float((network(pairs)[0] - expected)[expected > -1e3].abs().max())

    save_weights(model, tmp_path, 3)
    load_weights(loaded, tmp_path)
    assert error(loaded) < 4e-3
    save_weights(model, tmp_path, 1)  # a rank too low
    coarse = SpanModel(open_encoder(folder))
    load_weights(coarse, tmp_path)
    assert error(coarse) > 10 * error(loaded)
    (tmp_path / ADAPTER).write_bytes((tmp_path / ADAPTER).read_bytes()[:-100])
    with refused("damaged weights"):
        load_weights(loaded, tmp_path)


def test_the_larger_weights_ship_with_a_calibration_and_name_the_encoder_to_fetch(
    here, monkeypatch
):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(here))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    folder = weights_folder(LARGE)
    manifest = load_span_manifest(folder)
    assert manifest["encoder"] == {"name": MPNET.hub, "sha256": MPNET.sha256}
    large = Extractive.Settings(weights=LARGE)
    assert manifest["family"] == Extractive.training_family(large, Path()) == "ifqa/full"
    assert {"rows", "licences"} <= manifest["start"]["trained"].keys()
    calibration = load_calibration(folder, fingerprint_weights(folder))
    assert calibration is not None
    assert 0 < calibration.answerable_threshold < 1
    assert sum(file.stat().st_size for file in folder.iterdir()) < 25e6
    assert describe_exposure({LARGE: read_model_facts(LARGE)}, "ifqa").startswith(
        f"{LARGE} has seen ifqa"
    )
    shipped = Extractive.fingerprint(Extractive.Settings(weights="shipped"), Path())
    assert Extractive.fingerprint(large, Path()) != shipped
    assert Extractive.fingerprint(Extractive.Settings(), Path()) == shipped
    (missing,) = (need for need in Extractive.requirements(large, Path()) if not need.present)
    assert (missing.name, missing.remedy) == (MPNET.hub, f"fetch it with: ifqa data {MPNET.name}")
    with refused(f"fetch it with: ifqa data {MPNET.name}"):
        Extractive(large)
