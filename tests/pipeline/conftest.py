import pytest
from outside_plugins import five_questions


@pytest.fixture
def five(tmp_path, monkeypatch):
    """The working directory has an experiment of five questions, with its plugins."""
    yield from five_questions(tmp_path, monkeypatch)
