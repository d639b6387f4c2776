"""`ifqa train --help` names the settings of each training."""

import importlib
from inspect import signature

import pytest

from ifqa.cli.trainings import SETTINGS
from ifqa.pipeline.train import _MODULES, GIVEN

FLAGS = {"seed", "recipe", "dev", "changes", "method", "mode"}  # these are options of their own


@pytest.mark.parametrize("what", _MODULES)
def test_the_help_names_the_settings_and_changes_one_of_them(what: str) -> None:
    module = importlib.import_module(_MODULES[what])
    names = signature(module.Recipe if hasattr(module, "resolve") else module.train).parameters.keys()
    own = {*names} - FLAGS - {*GIVEN} - ({"model"} if what == "llm" else set())
    example, told = SETTINGS[what]
    assert {*told.split(", ")} == own
    assert example.partition("=")[0] in own
