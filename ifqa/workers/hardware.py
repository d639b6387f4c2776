"""The cores and GPUs of this machine."""

import os
from itertools import takewhile
from pathlib import Path


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> int:
    """The number of NVIDIA GPUs that this process may use, without loading CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([*takewhile(lambda name: name and name[0] != "-", map(str.strip, visible.split(",")))])
    return len([path for path in Path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])
