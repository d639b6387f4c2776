"""The tuned language model that comes with the package: an adapter of a model that is fetched."""

import pytest
from refusals import refused

from ifqa.models.causal_lm import (
    base_model,
    download_hint,
    find_causal_lm,
    is_local_model,
    local_llm,
)
from ifqa.models.ledger import describe_exposure, read_model_facts
from ifqa.models.places import TUNED, local_path
from ifqa.storage.files import read_json

pytestmark = pytest.mark.usefixtures("here")


def test_it_is_known_by_its_name():
    assert is_local_model(TUNED)
    assert local_llm(TUNED) == "hf"
    assert base_model(local_path(TUNED)) == "qwen2.5-coder-0.5b"


def test_it_says_which_model_to_fetch():
    assert download_hint(TUNED) == "fetch it with: ifqa data qwen2.5-coder-0.5b"
    with refused(
        "found no model 'qwen2.5-coder-0.5b' .*; fetch it with: ifqa data qwen2.5-coder-0.5b"
    ):
        find_causal_lm(TUNED)


def test_scores_are_marked_by_what_it_was_trained_on():
    mark = describe_exposure({TUNED: read_model_facts(TUNED)}, "ifqa")
    assert mark == f"{TUNED} has seen ifqa: full train.json"


def test_it_says_where_it_comes_from():
    manifest = read_json(local_path(TUNED) / "manifest.json")
    assert manifest["family"] == "ifqa/full"
    assert {"base", "licences", "start"} <= manifest.keys()


def test_it_is_small_enough_to_travel():
    assert sum(file.stat().st_size for file in local_path(TUNED).iterdir()) < 25e6
