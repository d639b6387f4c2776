"""Trainings under test use one thread, and no bfloat16, whose rounding depends on the batch."""

import pytest
import tiny_t5
from exact_training import exact  # noqa: F401 - a fixture
from one_thread import one_thread  # noqa: F401 - a fixture
from short_trainings import QUESTIONS, TEXTS


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    return str(
        tiny_t5.save(
            folder, texts=[*TEXTS, *(question.text for question in QUESTIONS)], dropout_rate=0.1
        )
    )
