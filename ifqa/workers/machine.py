"""What this machine has: cores and memory."""

import os
import re
from pathlib import Path


def cores() -> int:
    """How many processes can run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def total_memory() -> float | None:
    """Bytes of memory in all, where the system tells (Windows does not)."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def free_memory() -> float | None:
    """Bytes of memory that are free; where the system tells only how many there are in all, as macOS, all of them."""
    told = Path("/proc/meminfo")
    if told.exists() and (free := re.search(r"MemAvailable: *(\d+) kB", told.read_text())):
        return 1024.0 * int(free[1])
    return total_memory()
