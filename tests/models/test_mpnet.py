"""MPNet against the same network in transformers, with random weights; its buckets, pairs and trained weights."""

import pytest
import torch
from tiny_mpnet import tiny_mpnet
from transformers import MPNetModel
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from ifqa.models.hub import minilm_folder
from ifqa.models.span_encoder import open_encoder, special_token_ids
from ifqa.models.transformer import MPNet, load_tokenizer, position_buckets

WORDS = "if ada had lost , who won ? ada rowed for brill and bo for kent ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_mpnet(tmp_path_factory.mktemp("mpnet") / "tiny", WORDS)


def inputs(length=200):
    """Token ids with padding at the end; the distances reach the last bucket."""
    ids = torch.randint(4, 18, (3, length), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(length) < torch.tensor([[length], [7], [length // 2]])
    return ids.masked_fill(~mask, 1), torch.zeros_like(ids), mask


@torch.inference_mode()
def test_hidden_states_and_buckets_equal_those_of_transformers(folder):
    ids, types, mask = inputs()
    reference, report = MPNetModel.from_pretrained(folder, add_pooling_layer=False, output_loading_info=True)
    assert not report["missing_keys"]
    expected = reference.eval()(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    ours = open_encoder(folder)
    assert isinstance(ours, MPNet)
    exact = ours(ids, types, mask)[mask]
    torch.testing.assert_close(exact, expected[mask], atol=1e-5, rtol=1e-5)
    reference.encoder.relative_attention_bias.weight.zero_()
    other = reference(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    assert not torch.allclose(other[mask], expected[mask], atol=1e-2)  # the bias matters
    distances = torch.arange(-600, 601)
    assert torch.equal(position_buckets(distances, 32), MPNetEncoder.relative_position_bucket(distances))
    ours.cast(torch.bfloat16)
    quick = ours(ids, types, mask)[mask]
    assert quick.dtype == torch.bfloat16
    assert 0 < (quick.float() - exact).abs().mean() < 0.02


def test_all_of_the_layers_and_their_bias_are_trained_but_no_embedding(folder):
    model, (ids, types, mask) = open_encoder(folder), inputs(40)
    model.train_layers()
    names = {name.replace("__", ".") for name, _ in model.named_parameters()}
    assert names == set(model.layer_tensors()) == set(open_encoder(folder).layer_tensors())
    assert "encoder.relative_attention_bias.weight" in names
    assert not any(name.startswith("embeddings.") for name in names)
    torch.autograd.backward(model(ids, types, mask)[mask].square().sum())
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_a_pair_is_marked_as_the_tokenizer_marks_it(folder):
    for place, width in ((folder, 2), (minilm_folder(), 1)):
        words, (before, between, after) = load_tokenizer(place), special_token_ids(place)
        first, second = (words.encode(text, add_special_tokens=False).ids for text in ("who won ?", "bo rowed ."))
        assert [*before, *first, *between, *second, *after] == words.encode("who won ?", "bo rowed .").ids
        assert len(between) == width
