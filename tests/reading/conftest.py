"""Tests of readers run torch in one thread."""

from one_thread import one_thread  # noqa: F401 - a fixture
