"""Cores and GPUs, on this machine and on systems that report less."""

import os

import pytest

from ifqa.workers import hardware


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_cores_are_those_that_this_process_may_use(monkeypatch):
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert hardware.cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    monkeypatch.delattr(os, "sched_getaffinity")
    for count, expected in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert hardware.cores() == expected


def test_gpus_are_the_visible_gpus_or_else_the_devices(monkeypatch, tmp_path):
    for visible, names in (
        ("0,2", "0 2"),
        ("MIG-1", "MIG-1"),
        ("", ""),
        (" ", ""),
        ("-1", ""),
        ("0,-1,2", "0"),
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert hardware.gpu_names() == names.split()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(hardware, "Path", {"/dev": tmp_path}.__getitem__)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert hardware.gpu_names() == ["0", "1"]
