"""Networks under test use one thread, and no bfloat16, whose rounding depends on the batch."""

from exact_training import exact  # noqa: F401 - a fixture
from one_thread import one_thread  # noqa: F401 - a fixture
