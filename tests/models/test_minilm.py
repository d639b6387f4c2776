"""MiniLM against the same network in transformers and peft, with and without adapters."""

from pathlib import Path

import pytest
import torch

from ifqa.errors import IfqaError
from ifqa.models import hub
from ifqa.models.hub import PACKAGE, encoder_folder
from ifqa.models.minilm import MiniLM
from ifqa.reading.span.reader import SHIPPED


def inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, 20000, (3, 24), generator=generator)
    types = torch.cat([torch.zeros(3, 9), torch.ones(3, 15)], 1).long()
    mask = torch.arange(24) < torch.tensor([[24], [17], [20]])
    return ids, types, mask


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers for it
@torch.inference_mode()
def test_hidden_states_equal_those_of_transformers_and_peft() -> None:
    from peft import PeftModel
    from safetensors.torch import load_file
    from transformers import BertModel

    ids, types, mask = inputs()
    theirs = BertModel.from_pretrained(encoder_folder()).eval()
    ours = MiniLM(encoder_folder())
    plain = theirs(input_ids=ids, token_type_ids=types, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(ours(ids, types, mask)[mask], plain[mask], atol=1e-4, rtol=1e-4)

    adapted = PeftModel.from_pretrained(theirs, SHIPPED).eval()
    ours.load_adapter(load_file(SHIPPED / "adapter_model.safetensors"))
    expected = adapted(input_ids=ids, token_type_ids=types, attention_mask=mask.long()).last_hidden_state
    assert not torch.allclose(expected[mask], plain[mask], atol=1e-2)
    torch.testing.assert_close(ours(ids, types, mask)[mask], expected[mask], atol=1e-3, rtol=1e-3)


def test_adapters_change_nothing_before_training() -> None:
    model = MiniLM(encoder_folder(), rank=4)
    model.initialise(torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(*inputs()), MiniLM(encoder_folder())(*inputs()))


def test_dropout_comes_from_the_generator_alone() -> None:
    model = MiniLM(encoder_folder(), rank=4, dropout=0.5)
    model.initialise(torch.Generator().manual_seed(0))
    first, second = (model(*inputs(), generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, model(*inputs()))


def test_weights_other_than_the_official_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / PACKAGE / "model"
    model.mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    (model / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    hub.encoder_folder.cache_clear()
    try:
        with pytest.raises(IfqaError, match="SHA-256"):
            encoder_folder()
    finally:
        hub.encoder_folder.cache_clear()
