"""An expected refusal: an IfqaError of one line."""

import pytest

from ifqa.errors import IfqaError


def refused(message):
    """Expect an IfqaError whose message has one line and matches `message` somewhere."""
    return pytest.raises(IfqaError, match=rf"\A[^\n]*(?:{message})[^\n]*\Z")
