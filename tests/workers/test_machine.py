"""Cores and memory, on this machine and on systems that report less."""

import os
import re
from pathlib import Path

import pytest

from ifqa.workers import machine

MEMINFO = Path("/proc/meminfo")


@pytest.fixture
def meminfo(tmp_path, monkeypatch):
    """A path that stands in for /proc/meminfo; the file does not exist yet."""
    file = tmp_path / "meminfo"
    monkeypatch.setattr(machine, "Path", {"/proc/meminfo": file}.__getitem__)
    return file


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_cores_are_those_that_this_process_may_use():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert machine.cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert machine.cores() == len(before)


@pytest.mark.parametrize(("count", "expected"), [(6, 6), (None, 1)])
def test_without_affinity_all_cores_count_or_a_single_core(monkeypatch, count, expected):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert machine.cores() == expected


@pytest.mark.parametrize(("visible", "count"), [("0,2", 2), ("MIG-1", 1), ("", 0), (" ", 0)])
def test_gpus_are_those_that_are_visible(monkeypatch, visible, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.gpus() == count


def test_gpus_are_counted_by_their_devices(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine, "Path", {"/dev": tmp_path}.__getitem__)
    assert machine.gpus() == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert machine.gpus() == 2


@pytest.mark.skipif(not MEMINFO.exists(), reason="only Linux has /proc/meminfo")
def test_total_memory_is_linuxs_memtotal_and_free_memory_its_available_memory(monkeypatch, tmp_path):
    assert machine.total_memory() == 1024 * int(re.search(r"MemTotal: *(\d+) kB", MEMINFO.read_text())[1])
    assert 0 < machine.free_memory() <= machine.total_memory()
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       9000 kB\nMemFree:         100 kB\nMemAvailable:   3000 kB\n")
    monkeypatch.setattr(machine, "Path", {"/proc/meminfo": file}.__getitem__)
    assert machine.free_memory() == 3000 * 1024
    monkeypatch.delattr(os, "sysconf_names", raising=False)
    assert (machine.total_memory(), machine.free_memory()) == (None, 3000 * 1024)


@pytest.mark.parametrize("text", ["MemTotal:  9000 kB\nMemFree:  100 kB\n", None], ids=["not reported", "no file"])
def test_total_memory_stands_in_for_unknown_free_memory(meminfo, monkeypatch, text):
    if text:
        meminfo.write_text(text)
    monkeypatch.setattr(os, "sysconf_names", {"SC_PHYS_PAGES": 1}, raising=False)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 500, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert machine.free_memory() == machine.total_memory() == 500 * 4096


def test_memory_is_unknown_where_the_system_does_not_report_it(meminfo, monkeypatch):
    monkeypatch.setattr(os, "sysconf_names", {"SC_PAGE_SIZE": 30}, raising=False)
    assert (machine.total_memory(), machine.free_memory()) == (None, None)
    monkeypatch.delattr(os, "sysconf_names")
    assert (machine.total_memory(), machine.free_memory()) == (None, None)
