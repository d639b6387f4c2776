"""What a checkout and an installed package share."""

from pathlib import Path

import pytest

from ifqa.errors import DamagedArtifact
from ifqa.storage import resources
from ifqa.storage.resources import read_licence

LICENSE = Path(__file__).parents[2] / "LICENSE"


def test_the_licence_is_that_of_the_checkout():
    assert read_licence() == LICENSE.read_text(encoding="utf-8")


def test_the_licence_of_a_wheel_is_that_of_the_distribution(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "ifqa")
    assert "Apache License" in read_licence()


def test_a_missing_licence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "ifqa")
    monkeypatch.setattr(resources.metadata.PathDistribution, "read_text", lambda *_: None)
    with pytest.raises(DamagedArtifact, match="install ifqa again"):
        read_licence()
