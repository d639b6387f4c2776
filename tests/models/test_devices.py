"""A model's device and precision, with and without a GPU.

Batches keep all texts and tokens, with little padding.
"""

from itertools import product
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device, split_batches, to_device


def machine(monkeypatch, cuda=False, mps=False, bf16=False):
    """Make torch find the devices of another machine."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: bf16)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


MACHINES = list(product((True, False), repeat=2))


@pytest.mark.parametrize(("cuda", "mps"), MACHINES)
def test_auto_is_cuda_where_present_else_the_cpu_even_on_a_mac(monkeypatch, cuda, mps):
    machine(monkeypatch, cuda=cuda, mps=mps)
    assert resolve_device("auto") == ("cuda" if cuda else "cpu")


@pytest.mark.parametrize(("cuda", "mps"), MACHINES)
def test_a_present_device_is_used(monkeypatch, cuda, mps):
    machine(monkeypatch, cuda=cuda, mps=mps)
    for device, present in {"cpu": True, "cuda": cuda, "mps": mps}.items():
        if present:
            assert resolve_device(device) == device


@pytest.mark.parametrize(("cuda", "mps"), MACHINES)
def test_an_absent_device_is_refused(monkeypatch, cuda, mps):
    machine(monkeypatch, cuda=cuda, mps=mps)
    for device, present in {"cuda": cuda, "mps": mps}.items():
        if present:
            continue
        with pytest.raises(
            IfqaError, match=f"'{device}' is not available to torch here; use \"auto\""
        ):
            resolve_device(device)


def test_cuda_uses_float32_where_bfloat16_is_only_emulated(monkeypatch):
    """As on a V100: torch's own function, for a GPU of capability 7.0, which can hold tensors in
    bfloat16.
    """
    for module, name, patch in [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "current_device", lambda: 0),
        (torch.version, "hip", None),
        (torch.cuda, "get_device_properties", lambda _: SimpleNamespace(major=7)),
        (torch.cuda, "_check_bf16_tensor_supported", lambda _: True),
    ]:
        monkeypatch.setattr(module, name, patch)
    assert torch.cuda.is_bf16_supported()
    assert half_precision("cuda") is torch.float32


@pytest.mark.parametrize(
    ("avx512", "amx"), [(True, True), (True, False), (False, True), (False, False)]
)
def test_a_device_uses_bfloat16_where_its_hardware_multiplies_in_it(monkeypatch, avx512, amx):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    cpu = avx512 or amx
    machine(monkeypatch, cuda=True, mps=True, bf16=not cpu)
    expected = {"cpu": cpu, "cuda": not cpu, "mps": False}
    assert {device: half_precision(device) is torch.bfloat16 for device in expected} == expected
    assert half_precision("mps") is torch.float32


def padded(lengths, left):
    """Features as a tokenizer returns them: text n's tokens are n * 1000 + 1, n * 1000 + 2, ....

    0 is padding.
    """
    ids, mask = torch.zeros(2, len(lengths), max(lengths), dtype=torch.int64)
    for text, length in enumerate(lengths):
        places = slice(max(lengths) - length, None) if left else slice(0, length)
        ids[text, places] = 1000 * text + torch.arange(1, length + 1)
        mask[text, places] = 1
    return {"input_ids": ids, "attention_mask": mask, "prompt_length": 3, "modality": "text"}


def tokens_of(batch):
    """Each row's tokens without padding."""
    return [
        row[mask.bool()].tolist()
        for row, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]


BATCHED = (
    st.lists(st.integers(0, 20), min_size=1, max_size=30).filter(any),
    st.booleans(),
    st.integers(1, 200),
)


@given(*BATCHED)
def test_every_text_is_in_one_batch_with_all_of_its_tokens(lengths, left, budget):
    features = padded(lengths, left)
    tokens: dict[int, list[int]] = {}
    for places, batch in split_batches(features, len(lengths), budget):
        assert not tokens.keys() & set(places)
        tokens |= dict(zip(places, tokens_of(batch), strict=True))
    assert [tokens[text] for text in range(len(lengths))] == tokens_of(features)


@given(*BATCHED)
def test_a_batch_is_as_wide_as_its_longest_text(lengths, left, budget):
    for places, batch in split_batches(padded(lengths, left), len(lengths), budget):
        rows, width = batch["input_ids"].shape
        assert batch["attention_mask"].shape == (rows, width)
        assert width == max(1, *(lengths[place] for place in places))
        assert rows * width <= budget or rows == 1


@given(*BATCHED)
def test_the_widest_batches_come_first(lengths, left, budget):
    batches = split_batches(padded(lengths, left), len(lengths), budget)
    widths = [batch["input_ids"].shape[1] for _, batch in batches]
    assert widths == sorted(widths, reverse=True)


@given(*BATCHED)
def test_every_batch_has_the_features_that_are_no_tensors(lengths, left, budget):
    for _, batch in split_batches(padded(lengths, left), len(lengths), budget):
        assert batch["prompt_length"] == 3
        assert batch["modality"] == "text"


def places_of_batches(lengths, budget):
    batches = split_batches(padded(lengths, left=False), len(lengths), budget)
    return [places for places, _ in batches]


def test_texts_of_equal_length_keep_their_order():
    assert places_of_batches([2, 3, 2, 3, 2], 6) == [[1, 3], [0, 2, 4]]


def test_a_text_beyond_the_budget_is_alone():
    assert places_of_batches([9, 2, 2], 4) == [[0], [1, 2]]


def test_features_without_a_mask_are_one_batch():
    bags = {"input_ids": torch.arange(5), "offsets": torch.tensor([0, 2])}
    assert list(split_batches(bags, 2, 1)) == [([0, 1], bags)]


def test_texts_in_one_row_are_one_batch():
    flat = {"input_ids": torch.arange(5), "attention_mask": torch.ones(5)}
    assert list(split_batches(flat, 2, 1)) == [([0, 1], flat)]


def test_only_tensors_are_sent_to_a_device():
    sent = to_device({"input_ids": torch.ones(1, 2), "modality": "text"}, "meta")
    assert sent["input_ids"].device.type == "meta"
    assert sent["modality"] == "text"
