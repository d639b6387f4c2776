"""As they were: passages, where completions are kept, and the identities that decide reuse."""

import pytest
from golden import HERE, PARTS, produce, read_files


@pytest.mark.parametrize("part", PARTS)
def test_outputs_equal_the_golden_files(part, tmp_path, capfd):
    produce(part, tmp_path / "made", tmp_path / "work")
    assert read_files(tmp_path / "made") == read_files(HERE / part)
