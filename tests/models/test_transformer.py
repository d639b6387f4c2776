"""MiniLM and MPNet against the same networks in transformers and peft.

Adapters, buckets, pairs and trained weights.
"""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_mpnet import tiny_mpnet
from transformers import BertModel, MPNetModel
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from ifqa.errors import IfqaError
from ifqa.models import places
from ifqa.models.places import PACKAGE, minilm_folder
from ifqa.models.span_encoder import load_tokenizer, open_encoder, special_token_ids
from ifqa.models.transformer import BERT_LINEAR, MiniLM, MPNet, position_buckets


def bert_inputs():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, 20000, (3, 24), generator=generator)
    types = torch.cat([torch.zeros(3, 9), torch.ones(3, 15)], 1).long()
    mask = torch.arange(24) < torch.tensor([[24], [17], [20]])
    return ids, types, mask


def test_hidden_states_of_minilm_equal_those_of_transformers():
    ids, types, mask = bert_inputs()
    reference = BertModel.from_pretrained(minilm_folder()).eval()
    ours = MiniLM(minilm_folder())
    with torch.inference_mode():
        expected = reference(
            input_ids=ids, token_type_ids=types, attention_mask=mask.long()
        ).last_hidden_state[mask]
        torch.testing.assert_close(ours(ids, types, mask)[mask], expected, atol=1e-4, rtol=1e-4)
    # With gradients
    torch.testing.assert_close(ours(ids, types, mask)[mask], expected.clone(), atol=1e-4, rtol=1e-4)
    model = MiniLM(minilm_folder(), dropout=0.5)
    first, second = (
        model(*bert_inputs(), generator=torch.Generator().manual_seed(3)) for _ in range(2)
    )
    assert torch.equal(first, second), "dropout comes from the generator alone"
    assert not torch.equal(first, model(*bert_inputs()))


# Peft asks transformers for it
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
@torch.inference_mode()
def test_adapters_are_those_of_peft():
    ids, types, mask = bert_inputs()
    ours = MiniLM(minilm_folder())
    ours.add_adapters(4, torch.Generator().manual_seed(0))
    # Not yet trained
    torch.testing.assert_close(ours(ids, types, mask), MiniLM(minilm_folder())(ids, types, mask))
    plan = LoraConfig(
        r=4, lora_alpha=4, target_modules=rf"encoder\.layer\.\d+\.({'|'.join(BERT_LINEAR)})"
    )
    reference = get_peft_model(BertModel.from_pretrained(minilm_folder()), plan).eval()
    generator = torch.Generator().manual_seed(1)
    for name in ours.layer_names():
        for side in "AB":
            tensor = ours.adapters[f"{name}.lora_{side}".replace(".", "__")]
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.1)
            reference.get_parameter(f"base_model.model.{name}.lora_{side}.default.weight").copy_(
                tensor
            )
    expected = reference(
        input_ids=ids, token_type_ids=types, attention_mask=mask.long()
    ).last_hidden_state[mask]
    torch.testing.assert_close(ours(ids, types, mask)[mask], expected, atol=1e-3, rtol=1e-3)

    merged = MiniLM(minilm_folder())
    merged.load_layers(ours.layer_tensors())
    torch.testing.assert_close(merged(ids, types, mask)[mask], expected, atol=1e-3, rtol=1e-3)


def test_weights_other_than_the_official_weights_are_refused(tmp_path, monkeypatch):
    (tmp_path / PACKAGE / "model").mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    (tmp_path / PACKAGE / "model" / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(places, "minilm_folder", places.minilm_folder.__wrapped__)
    with pytest.raises(IfqaError, match="SHA-256"):
        places.minilm_folder()


WORDS = "if ada had lost , who won ? ada rowed for brill and bo for kent ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_mpnet(tmp_path_factory.mktemp("mpnet") / "tiny", WORDS)


def mpnet_inputs(length=200):
    """Token ids with padding at the end; the distances reach the last bucket."""
    ids = torch.randint(4, 18, (3, length), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(length) < torch.tensor([[length], [7], [length // 2]])
    return ids.masked_fill(~mask, 1), torch.zeros_like(ids), mask


@torch.inference_mode()
def test_hidden_states_of_mpnet_equal_those_of_transformers(folder):
    ids, types, mask = mpnet_inputs()
    reference, report = MPNetModel.from_pretrained(
        folder, add_pooling_layer=False, output_loading_info=True
    )
    assert not report["missing_keys"]
    expected = reference.eval()(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    ours = open_encoder(folder)
    assert isinstance(ours, MPNet)
    exact = ours(ids, types, mask)[mask]
    torch.testing.assert_close(exact, expected[mask], atol=1e-5, rtol=1e-5)
    reference.encoder.relative_attention_bias.weight.zero_()
    other = reference(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    assert not torch.allclose(other[mask], expected[mask], atol=1e-2)  # the bias matters


def test_position_buckets_of_mpnet_equal_those_of_transformers():
    distances = torch.arange(-600, 601)
    assert torch.equal(
        position_buckets(distances, 32), MPNetEncoder.relative_position_bucket(distances)
    )


@torch.inference_mode()
def test_hidden_states_of_mpnet_in_bfloat16_are_close_to_exact_ones(folder):
    ids, types, mask = mpnet_inputs()
    ours = open_encoder(folder)
    exact = ours(ids, types, mask)[mask]
    ours.cast(torch.bfloat16)
    quick = ours(ids, types, mask)[mask]
    assert quick.dtype == torch.bfloat16
    assert 0 < (quick.float() - exact).abs().mean() < 0.02


def test_all_layers_of_mpnet_are_trained_without_its_embeddings(folder):
    model = open_encoder(folder)
    model.train_layers()
    names = {name.replace("__", ".") for name, _ in model.named_parameters()}
    assert names == set(model.layer_tensors()) == set(open_encoder(folder).layer_tensors())
    assert "encoder.relative_attention_bias.weight" in names
    assert not any(name.startswith("embeddings.") for name in names)


def test_every_trained_parameter_of_mpnet_has_a_gradient(folder):
    model = open_encoder(folder)
    ids, types, mask = mpnet_inputs(40)
    model.train_layers()
    torch.autograd.backward(model(ids, types, mask)[mask].square().sum())
    assert all(
        parameter.grad is not None and parameter.grad.isfinite().all()
        for parameter in model.parameters()
    )


def test_a_pair_is_marked_as_the_tokenizer_marks_it(folder):
    for place, width in ((folder, 2), (minilm_folder(), 1)):
        words = load_tokenizer(place)
        (before, between, after) = special_token_ids(place)
        first, second = (
            words.encode(text, add_special_tokens=False).ids for text in ("who won ?", "bo rowed .")
        )
        assert [*before, *first, *between, *second, *after] == words.encode(
            "who won ?", "bo rowed ."
        ).ids
        assert len(between) == width
