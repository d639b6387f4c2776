"""ModernBERT and DeBERTa-v3 as encoders of the span reader: their network is transformers' own,
and adapters and trained weights are those of the other encoders.
"""

import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from tiny_library_encoder import KINDS, tiny_library_encoder
from transformers import AutoModel

from ifqa.models.library_encoder import LibraryEncoder
from ifqa.models.span_encoder import open_encoder
from ifqa.reading.span.network import SpanModel, encode_pair
from ifqa.reading.span.weights import load_weights, save_weights

pytestmark = pytest.mark.slow

QUESTION = "If Ada had lost, who won?"
TEXT = "Ada, a rower  from Brill, won 9 cups before Bo did."


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("library") / request.param
    return tiny_library_encoder(place, request.param, QUESTION, TEXT)


def inputs(length=24):
    ids = torch.randint(4, 20, (3, length), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(length) < torch.tensor([[length], [7], [length // 2]])
    return ids.masked_fill(~mask, 0), torch.zeros_like(ids), mask


@torch.inference_mode()
def test_hidden_states_equal_those_of_transformers(folder):
    ids, types, mask = inputs()
    reference = AutoModel.from_pretrained(folder).eval()
    expected = reference(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    ours = open_encoder(folder)
    assert isinstance(ours, LibraryEncoder)
    torch.testing.assert_close(ours(ids, types, mask)[mask], expected[mask], atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_hidden_states_in_bfloat16_are_close_to_exact_ones(folder):
    ids, types, mask = inputs()
    ours = open_encoder(folder)
    exact = ours(ids, types, mask)[mask]
    ours.cast(torch.bfloat16)
    quick = ours(ids, types, mask)[mask]
    assert quick.dtype == torch.bfloat16
    assert 0 < (quick.float() - exact).abs().mean() < 0.05


@torch.inference_mode()
def test_after_bfloat16_it_computes_in_float32_as_before(folder):
    ids, types, mask = inputs()
    ours = open_encoder(folder)
    exact = ours(ids, types, mask)
    ours.cast(torch.bfloat16)
    ours.cast(torch.float32)
    assert torch.equal(ours(ids, types, mask), exact)


def test_all_layers_are_trained_without_the_embeddings(folder):
    model = open_encoder(folder)
    model.train_layers()
    names = {name.replace("__", ".") for name, _ in model.named_parameters()}
    assert names == set(model.layer_tensors()) == set(open_encoder(folder).layer_tensors())
    assert {f"{name}.weight" for name in model.layer_names()} <= names
    assert not any(name.startswith(("embeddings.", "constant.")) for name in names)


def test_every_trained_parameter_has_a_gradient(folder):
    model = open_encoder(folder)
    ids, types, mask = inputs()
    model.train_layers()
    torch.autograd.backward(model(ids, types, mask)[mask].square().sum())
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_new_adapter_changes_nothing(folder):
    adapted = open_encoder(folder)
    adapted.add_adapters(2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(adapted(*inputs()), open_encoder(folder)(*inputs()))


@torch.inference_mode()
def test_a_trained_adapter_equals_the_merged_layers(folder):
    adapted = open_encoder(folder)
    generator = torch.Generator().manual_seed(0)
    adapted.add_adapters(2, generator)
    for tensor in adapted.adapters.values():
        tensor.data.copy_(torch.randn(tensor.shape, generator=generator) * 0.1)
    merged = open_encoder(folder)
    before = merged(*inputs())
    merged.load_layers(adapted.layer_tensors())
    torch.testing.assert_close(adapted(*inputs()), merged(*inputs()), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(before, merged(*inputs()), atol=1e-2)


def test_dropout_comes_from_the_generator_alone(folder):
    model = open_encoder(folder, dropout=0.5)
    first, second = (model(*inputs(), generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, model(*inputs()))


def test_a_span_begins_with_its_word_without_the_space_before_it(folder):
    pair = encode_pair(folder, QUESTION, TEXT, as_written=True)
    texts = [TEXT[start:end] for start, end in pair.offsets]
    assert not any(text[:1].isspace() for text in texts)
    assert "".join(texts) == "".join(TEXT.split())


@torch.inference_mode()
def test_stored_weights_give_the_scores_of_the_trained_network(folder, tmp_path):
    generator = torch.Generator().manual_seed(0)
    model = SpanModel(open_encoder(folder))
    model.initialise(generator)
    model.encoder.add_adapters(3, generator)
    for tensor in model.encoder.adapters.values():
        tensor.data.copy_(torch.randn(tensor.shape, generator=generator) * 0.05)
    save_weights(model, tmp_path, 3)
    loaded = SpanModel(open_encoder(folder))
    load_weights(loaded, tmp_path)
    pairs = [encode_pair(folder, QUESTION, TEXT)]
    expected, _ = model(pairs)
    scores, _ = loaded(pairs)
    torch.testing.assert_close(scores, expected, atol=5e-3, rtol=5e-3)


def test_weights_that_lack_a_tensor_are_refused(folder, tmp_path):
    damaged = tiny_library_encoder(tmp_path / "damaged", folder.name, QUESTION, TEXT)
    weights = load_file(damaged / "model.safetensors")
    weights.pop(next(name for name in weights if not name.startswith("embeddings.")))
    save_file(weights, damaged / "model.safetensors", {"format": "pt"})
    with refused("1 weights are missing"):
        open_encoder(damaged)
