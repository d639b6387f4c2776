"""Which device a model runs on, and in which precision, on machines that have one and on those that have none."""

from types import SimpleNamespace

import pytest
import torch

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device


def machine(monkeypatch, cuda=False, mps=False, bf16=False):
    """What torch would find on another machine."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: bf16)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


def processor(monkeypatch, avx512, amx):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)


@pytest.mark.parametrize(
    ("cuda", "mps", "wanted"),
    [(True, False, "cuda"), (True, True, "cuda"), (False, True, "cpu"), (False, False, "cpu")],
)
def test_auto_is_cuda_where_there_is_one_else_the_processor_even_on_a_mac(monkeypatch, cuda, mps, wanted):
    machine(monkeypatch, cuda=cuda, mps=mps)
    assert resolve_device("auto") == wanted


@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_a_device_that_is_there_is_taken_as_it_was_asked_for(monkeypatch, device):
    machine(monkeypatch, cuda=True, mps=True)
    assert resolve_device(device) == device


@pytest.mark.parametrize(("device", "other"), [("cuda", "mps"), ("mps", "cuda")])
def test_a_device_that_is_absent_is_refused_in_one_line_whatever_else_is_there(monkeypatch, device, other):
    machine(monkeypatch, **{other: True})
    with pytest.raises(
        IfqaError, match=f"'{device}' was asked for, and torch finds none here; take \"auto\""
    ) as caught:
        resolve_device(device)
    assert "\n" not in str(caught.value)
    assert resolve_device("cpu") == "cpu"


@pytest.mark.parametrize(
    ("device", "nearest"), [("cdua", "cuda"), ("cuda:1", "cuda"), ("gpu", "cpu"), ("Auto", "auto")]
)
def test_an_unknown_device_gets_the_nearest_known_one(monkeypatch, device, nearest):
    machine(monkeypatch, cuda=True, mps=True)
    message = f"unknown device '{device}'; did you mean '{nearest}'[?] known: auto, cpu, cuda, mps$"
    with pytest.raises(IfqaError, match=message):
        resolve_device(device)


def test_what_auto_stands_for_here_can_be_computed_on():
    device = resolve_device("auto")
    ones = torch.ones(2, 2, device=device, dtype=half_precision(device))
    assert (ones @ ones).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_cuda_computes_in_float32_where_bfloat16_is_only_emulated(monkeypatch):
    """As on a V100: torch's own function, of a GPU of capability 7.0 that can hold tensors in bfloat16."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(major=7))
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda _: True)
    monkeypatch.setattr(torch.version, "hip", None)
    assert torch.cuda.is_bf16_supported()
    assert half_precision("cuda") is torch.float32


@pytest.mark.parametrize(("bf16", "wanted"), [(True, torch.bfloat16), (False, torch.float32)])
def test_cuda_computes_in_bfloat16_only_where_it_can(monkeypatch, bf16, wanted):
    processor(monkeypatch, avx512=not bf16, amx=not bf16)
    machine(monkeypatch, cuda=True, bf16=bf16)
    assert half_precision("cuda") is wanted


def test_mps_computes_in_float32_whatever_the_others_can(monkeypatch):
    processor(monkeypatch, avx512=True, amx=True)
    machine(monkeypatch, cuda=True, mps=True, bf16=True)
    assert half_precision("mps") is torch.float32


@pytest.mark.parametrize(("avx512", "amx"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_processor_computes_in_bfloat16_where_it_multiplies_in_it(monkeypatch, avx512, amx):
    processor(monkeypatch, avx512=avx512, amx=amx)
    machine(monkeypatch, cuda=True, bf16=not (avx512 or amx))
    assert half_precision("cpu") is (torch.bfloat16 if avx512 or amx else torch.float32)
