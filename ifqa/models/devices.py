"""Chooses the device that a model runs on, and its precision."""

from typing import TYPE_CHECKING

from ifqa.errors import IfqaError, unknown

if TYPE_CHECKING:
    import torch


def resolve_device(device: str) -> str:
    """`device`, or on "auto" CUDA where there is a GPU, else the CPU."""
    import torch

    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return "cuda" if there["cuda"] else "cpu"
    if device not in there:
        raise unknown("device", device, ["auto", *there])
    if not there[device]:
        raise IfqaError(f'device {device!r} was asked for, and torch finds none here; take "auto", or see: ifqa doctor')
    return device


def half_precision(device: str) -> "torch.dtype":
    """bfloat16 where the hardware multiplies in it, else float32."""
    import torch

    if device == "cuda":  # an older GPU emulates bfloat16, which is slower than float32
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if device != "cpu":
        return torch.float32
    cpu = torch.cpu
    return torch.bfloat16 if cpu._is_avx512_bf16_supported() or cpu._is_amx_tile_supported() else torch.float32


def resolve_precision(precision: str, device: str) -> "torch.dtype":
    """The type that a setting "precision" names; on "auto" `half_precision` of the device."""
    import torch

    named = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    return half_precision(device) if precision == "auto" else named[precision]
