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


def test_auto_is_cuda_where_present_else_the_cpu_even_on_a_mac_and_a_present_device_is_used(monkeypatch):
    for cuda, mps, expected in [
        (True, False, "cuda"),
        (True, True, "cuda"),
        (False, True, "cpu"),
        (False, False, "cpu"),
    ]:
        machine(monkeypatch, cuda=cuda, mps=mps)
        assert resolve_device("auto") == expected
        for device, present in {"cpu": True, "cuda": cuda, "mps": mps}.items():
            if present:
                assert resolve_device(device) == device
                continue
            with pytest.raises(IfqaError, match=f"'{device}' was asked for, and torch finds none here; take \"auto\""):
                resolve_device(device)


def test_an_unknown_device_gets_the_nearest_known_name_and_the_automatic_device_can_compute_here():
    for device, nearest in {"cdua": "cuda", "cuda:1": "cuda", "gpu": "cpu", "Auto": "auto"}.items():
        with pytest.raises(
            IfqaError, match=f"device '{device}'; did you mean '{nearest}'[?] known: auto, cpu, cuda, mps$"
        ):
            resolve_device(device)
    device = resolve_device("auto")
    ones = torch.ones(2, 2, device=device, dtype=half_precision(device))
    assert (ones @ ones).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_cuda_uses_float32_where_bfloat16_is_only_emulated(monkeypatch):
    """As on a V100: torch's own function, for a GPU of capability 7.0, which can hold tensors in bfloat16."""
    for place, name, value in [
        (torch.cuda, "is_available", lambda: True), (torch.cuda, "current_device", lambda: 0), (torch.version, "hip", None),
        (torch.cuda, "get_device_properties", lambda _: SimpleNamespace(major=7)),
        (torch.cuda, "_check_bf16_tensor_supported", lambda _: True),
    ]:  # fmt: skip
        monkeypatch.setattr(place, name, value)
    assert torch.cuda.is_bf16_supported()
    assert half_precision("cuda") is torch.float32


@pytest.mark.parametrize(("avx512", "amx"), [(True, True), (True, False), (False, True), (False, False)])
def test_a_device_uses_bfloat16_where_its_hardware_multiplies_in_it(monkeypatch, avx512, amx):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    cpu = avx512 or amx
    machine(monkeypatch, cuda=True, mps=True, bf16=not cpu)
    expected = {"cpu": cpu, "cuda": not cpu, "mps": False}
    assert {device: half_precision(device) is torch.bfloat16 for device in expected} == expected
    assert half_precision("mps") is torch.float32
