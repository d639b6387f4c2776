"""The scores that the bundled experiments expect, against the committed baselines."""

import tomllib
from pathlib import Path

import pytest

from ifqa.storage.files import read_json

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "baselines").iterdir()))
def test_an_expected_score_is_that_of_the_baseline(name):
    """`make demo` ends with 1 where a score is not the expected one."""
    expected = tomllib.loads((ROOT / f"experiments/{name}.toml").read_text())["expected"]["EM"]
    measured = read_json(ROOT / f"baselines/{name}/scores.json")["measures"]["EM"]["value"]
    assert measured == pytest.approx(expected["value"], abs=expected["tolerance"])
