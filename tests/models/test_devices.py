"""The device and precision of a model, on machines with and without a GPU."""

from types import SimpleNamespace

import pytest
import torch

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device


def machine(monkeypatch, cuda=False, mps=False, bf16=False):
    """Make torch find the devices of another machine."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: bf16)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


def processor(monkeypatch, avx512, amx):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, False, "cuda"), (True, True, "cuda"), (False, True, "cpu"), (False, False, "cpu")],
)
def test_auto_is_cuda_where_present_else_the_cpu_even_on_a_mac(monkeypatch, cuda, mps, expected):
    machine(monkeypatch, cuda=cuda, mps=mps)
    assert resolve_device("auto") == expected


@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_a_present_device_is_used(monkeypatch, device):
    machine(monkeypatch, cuda=True, mps=True)
    assert resolve_device(device) == device


@pytest.mark.parametrize(("device", "other"), [("cuda", "mps"), ("mps", "cuda")])
def test_an_absent_device_is_refused_in_one_line(monkeypatch, device, other):
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
def test_an_unknown_device_gets_the_nearest_known_name(monkeypatch, device, nearest):
    machine(monkeypatch, cuda=True, mps=True)
    message = f"unknown device '{device}'; did you mean '{nearest}'[?] known: auto, cpu, cuda, mps$"
    with pytest.raises(IfqaError, match=message):
        resolve_device(device)


def test_the_automatic_device_can_compute_here():
    device = resolve_device("auto")
    ones = torch.ones(2, 2, device=device, dtype=half_precision(device))
    assert (ones @ ones).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_cuda_uses_float32_where_bfloat16_is_only_emulated(monkeypatch):
    """As on a V100: torch's own function, for a GPU of capability 7.0, which can hold tensors in bfloat16."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(major=7))
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda _: True)
    monkeypatch.setattr(torch.version, "hip", None)
    assert torch.cuda.is_bf16_supported()
    assert half_precision("cuda") is torch.float32


@pytest.mark.parametrize(("bf16", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_cuda_uses_bfloat16_only_where_supported(monkeypatch, bf16, expected):
    processor(monkeypatch, avx512=not bf16, amx=not bf16)
    machine(monkeypatch, cuda=True, bf16=bf16)
    assert half_precision("cuda") is expected


def test_mps_uses_float32(monkeypatch):
    processor(monkeypatch, avx512=True, amx=True)
    machine(monkeypatch, cuda=True, mps=True, bf16=True)
    assert half_precision("mps") is torch.float32


@pytest.mark.parametrize(("avx512", "amx"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_cpu_uses_bfloat16_where_its_hardware_multiplies_in_it(monkeypatch, avx512, amx):
    processor(monkeypatch, avx512=avx512, amx=amx)
    machine(monkeypatch, cuda=True, bf16=not (avx512 or amx))
    assert half_precision("cpu") is (torch.bfloat16 if avx512 or amx else torch.float32)
