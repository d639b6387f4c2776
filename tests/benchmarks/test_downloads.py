from types import SimpleNamespace

import pytest

from ifqa.benchmarks import downloads
from ifqa.errors import IfqaError


def test_a_file_larger_than_any_of_a_benchmark_is_refused_and_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "LARGEST", 100)
    there = tmp_path / "there.json"
    benchmark = SimpleNamespace(name="b", folder=tmp_path / "b", downloads={"dev.json": (there.as_uri(), None)})
    there.write_bytes(b"x" * 101)
    with pytest.raises(IfqaError, match="has more than 100 bytes"):
        list(downloads.fetch(benchmark))
    assert not benchmark.folder.exists()
    there.write_bytes(b"x" * 100)
    list(downloads.fetch(benchmark))
    assert (benchmark.folder / "dev.json").read_bytes() == b"x" * 100
