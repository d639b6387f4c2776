"""The cores, GPUs and memory of this machine."""

import os
import re
from pathlib import Path


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> int:
    """The number of NVIDIA GPUs that this process may use, without loading CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([name for name in visible.split(",") if name.strip()])
    return len([path for path in Path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])


def total_memory() -> float | None:
    """Total memory in bytes; None if the system does not report it (Windows)."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def free_memory() -> float | None:
    """Free memory in bytes; the total memory on systems that do not report it (macOS), None on Windows."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists() and (free := re.search(r"MemAvailable: *(\d+) kB", meminfo.read_text())):
        return 1024.0 * int(free[1])
    return total_memory()
