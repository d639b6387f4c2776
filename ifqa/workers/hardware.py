"""The cores, GPUs and memory of this machine."""

import os
from pathlib import Path

import psutil


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> int:
    """The number of NVIDIA GPUs that this process may use, without loading CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([name for name in visible.split(",") if name.strip()])
    return len([path for path in Path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])


def total_memory() -> float:
    """Total memory in bytes."""
    return float(psutil.virtual_memory().total)


def free_memory() -> float:
    """Memory in bytes that is free, or that the system frees when it is needed."""
    return float(psutil.virtual_memory().available)
