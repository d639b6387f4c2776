"""Trainings under test compute in float32: bfloat16 rounds in a way that depends on the batch."""

import pytest
import torch


@pytest.fixture(scope="module", autouse=True)
def exact():
    with pytest.MonkeyPatch.context() as patch:
        for module in ("ifqa.models.devices", "ifqa.training.checkpoints"):
            patch.setattr(f"{module}.half_precision", lambda device: torch.float32)
        yield
