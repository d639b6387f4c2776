"""Trainings under test use one thread, and no bfloat16, whose rounding depends on the batch."""

import pytest
import tiny_t5
import torch
from one_thread import one_thread  # noqa: F401 - a fixture
from short_trainings import QUESTIONS, TEXTS


@pytest.fixture(scope="module", autouse=True)
def exact():
    with pytest.MonkeyPatch.context() as patch:
        for module in ("ifqa.models.devices", "ifqa.training.checkpoints"):
            patch.setattr(f"{module}.half_precision", lambda device: torch.float32)
        yield


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    return str(
        tiny_t5.save(
            folder, texts=[*TEXTS, *(question.text for question in QUESTIONS)], dropout_rate=0.1
        )
    )
