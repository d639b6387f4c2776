"""The cores and GPUs of this machine."""

import os
from itertools import takewhile
from pathlib import Path


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_names() -> list[str]:
    """The names, for CUDA_VISIBLE_DEVICES, of the NVIDIA GPUs that this process may use.

    Does not load CUDA.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [
            *takewhile(lambda name: name and name[0] != "-", map(str.strip, visible.split(",")))
        ]
    names = (path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia*"))
    return sorted(name for name in names if name.isdigit())
