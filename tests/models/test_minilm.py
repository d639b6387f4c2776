"""MiniLM against the same network in transformers and peft, with and without adapters."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import BertModel

from ifqa.errors import IfqaError
from ifqa.models import hub
from ifqa.models.hub import PACKAGE, minilm_folder
from ifqa.models.transformer import BERT_LINEAR, MiniLM


def inputs():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, 20000, (3, 24), generator=generator)
    types = torch.cat([torch.zeros(3, 9), torch.ones(3, 15)], 1).long()
    mask = torch.arange(24) < torch.tensor([[24], [17], [20]])
    return ids, types, mask


def test_hidden_states_equal_those_of_transformers():
    ids, types, mask = inputs()
    reference, ours = BertModel.from_pretrained(minilm_folder()).eval(), MiniLM(minilm_folder())
    with torch.inference_mode():
        expected = reference(input_ids=ids, token_type_ids=types, attention_mask=mask.long()).last_hidden_state[mask]
        torch.testing.assert_close(ours(ids, types, mask)[mask], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(ours(ids, types, mask)[mask], expected.clone(), atol=1e-4, rtol=1e-4)  # with gradients
    model = MiniLM(minilm_folder(), dropout=0.5)
    first, second = (model(*inputs(), generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second), "dropout comes from the generator alone"
    assert not torch.equal(first, model(*inputs()))


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers for it
@torch.inference_mode()
def test_adapters_are_those_of_peft():

    ids, types, mask = inputs()
    ours = MiniLM(minilm_folder())
    ours.add_adapters(4, torch.Generator().manual_seed(0))
    torch.testing.assert_close(ours(*inputs()), MiniLM(minilm_folder())(*inputs()))  # no change before training
    plan = LoraConfig(r=4, lora_alpha=4, target_modules=rf"encoder\.layer\.\d+\.({'|'.join(BERT_LINEAR)})")
    reference = get_peft_model(BertModel.from_pretrained(minilm_folder()), plan).eval()
    generator = torch.Generator().manual_seed(1)
    for name in ours.layer_names():
        for side in "AB":
            tensor = ours.adapters[f"{name}.lora_{side}".replace(".", "__")]
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.1)
            reference.get_parameter(f"base_model.model.{name}.lora_{side}.default.weight").copy_(tensor)
    expected = reference(input_ids=ids, token_type_ids=types, attention_mask=mask.long()).last_hidden_state[mask]
    torch.testing.assert_close(ours(ids, types, mask)[mask], expected, atol=1e-3, rtol=1e-3)

    merged = MiniLM(minilm_folder())
    merged.load_layers(ours.layer_tensors())
    torch.testing.assert_close(merged(ids, types, mask)[mask], expected, atol=1e-3, rtol=1e-3)


def test_weights_other_than_the_official_weights_are_refused(tmp_path, monkeypatch):
    (tmp_path / PACKAGE / "model").mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    (tmp_path / PACKAGE / "model" / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(hub, "minilm_folder", hub.minilm_folder.__wrapped__)
    with pytest.raises(IfqaError, match="SHA-256"):
        hub.minilm_folder()
