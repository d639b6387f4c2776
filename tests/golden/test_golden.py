"""As they were: passages, where completions are kept, and the identities that decide reuse."""

import pytest
from golden import HERE, PARTS, differences, produce


@pytest.mark.parametrize("part", PARTS)
def test_outputs_equal_the_golden_files(part, tmp_path, capfd):
    produce(part, tmp_path / "made", tmp_path / "work")
    assert differences(HERE / part, tmp_path / "made") == []
