"""Tests of trainings run torch in one thread, and without bfloat16, whose rounding depends on what is computed together."""

import pytest
import torch
from one_thread import one_thread  # noqa: F401 - a fixture


@pytest.fixture(scope="module", autouse=True)
def exact():
    with pytest.MonkeyPatch.context() as patch:
        for module in ("ifqa.models.devices", "ifqa.training.checkpoints"):
            patch.setattr(f"{module}.half_precision", lambda device: torch.float32)
        yield
