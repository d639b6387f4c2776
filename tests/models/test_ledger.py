"""What models have seen: by name, file, folder and adapter; and what is unknown."""

import json

import pytest

from ifqa.config.experiment import load_experiment
from ifqa.config.overrides import override
from ifqa.errors import ConfigError
from ifqa.models import places
from ifqa.models.ledger import describe_exposure, list_exposures, read_model_facts
from ifqa.pipeline.run import Run
from ifqa.report.exposure import collect_models
from ifqa.storage.files import sha256
from ifqa.storage.resources import BUNDLED

FLAN = "{} has seen wiqa: train"


def mark(name, benchmark="wiqa", root=None, **others):
    return describe_exposure(
        {name: read_model_facts(name, *([root] if root else []))},
        benchmark,
        *([root] if root else []),
    )


@pytest.mark.parametrize("name", ["google/flan-t5-small", "Flan_T5.gguf", "models/flan-t5-base"])
def test_a_model_is_recognised_by_a_part_of_its_name(name):
    assert mark(name) == FLAN.format(name)


@pytest.mark.parametrize("name", ["gpt-4.1-mini", "models/flan-t", "gpt-t05"])
def test_an_unknown_model_is_said_to_be_unknown_on_a_benchmark_of_the_ledger(name):
    assert mark(name) == f"unknown what {name} has seen"
    assert mark(name, "sample") == ""


def test_a_model_of_which_nobody_tells_the_training_is_unknown_whatever_its_name_resembles():
    assert mark("splade-v3", "causalqa").startswith("splade-v3 has seen causalqa")
    assert mark("models/splade-tiny", "causalqa") == "unknown what models/splade-tiny has seen"


def test_a_folder_is_recognised_by_the_model_that_it_started_from(tmp_path):
    folder = tmp_path / "mine"
    for file, content in {
        "config.json": {"_name_or_path": "google/flan-t5-base"},
        "adapter_config.json": {"base_model_name_or_path": "google/flan-t5-base"},
        "manifest.json": {"start": {"encoder": {"name": "google/flan-t5-base"}}},
    }.items():
        folder.mkdir(exist_ok=True)
        (folder / file).write_text(json.dumps(content))
        assert mark(str(folder)) == FLAN.format(folder)
        # No local path
        assert "/" not in "".join(read_model_facts(str(folder))["names"]).replace("google/flan", "")
        (folder / file).unlink()


def test_a_loop_of_adapters_ends(tmp_path):
    for name, base in {"a": "b", "b": "a"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter_config.json").write_text(
            json.dumps({"base_model_name_or_path": base})
        )
    assert read_model_facts("a", tmp_path)["names"] == ["a", "b"]


def test_a_model_trained_here_names_the_files_of_its_questions(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    manifest = {"family": "ifqa/full", "sources": {"data/ifqa/full_split/train.json": "ab"}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert mark("mine", "ifqa", tmp_path) == "mine has seen ifqa: full train.json"
    assert mark("mine", "wiqa", tmp_path) == ""  # known, and not of WIQA


@pytest.mark.parametrize(
    "content", [[], {"sources": [1]}, {"sources": {"a": 1}, "family": 3}, {"model": 7, "name": ""}]
)
def test_a_manifest_of_another_shape_names_nothing(tmp_path, content):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/manifest.json").write_text(json.dumps(content))
    assert read_model_facts("mine", tmp_path)["names"] == ["mine"]


def test_a_copied_file_is_recognised_by_its_hash(tmp_path, monkeypatch):
    file = tmp_path / "x.gguf"
    file.write_text("weights")
    model = places.FetchedModel("flan-t5-copy", (), ("x.gguf",), sha256(file))
    monkeypatch.setitem(places.MODELS, model.name, model)
    assert mark("x.gguf", "wiqa", tmp_path) == FLAN.format("x.gguf")


def test_a_ledger_in_the_working_directory_adds_models(tmp_path):
    evidence = 'benchmark = "wiqa"\nquestions = "test"\nevidence = "its README"\n'
    (tmp_path / "ledger.toml").write_text(
        f'[[model]]\nnames = ["=mine"]\n[[model.seen]]\n{evidence}'
    )
    assert mark("mine", "wiqa", tmp_path) == "mine has seen wiqa: test"
    assert mark("mine-2", "wiqa", tmp_path) == "unknown what mine-2 has seen"
    assert mark("flan-t5", "wiqa", tmp_path) == FLAN.format("flan-t5")
    (tmp_path / "ledger.toml").write_text('[[model]]\nname = ["mine"]\n')
    with pytest.raises(ConfigError, match=r"ledger\.toml"):
        mark("mine", "wiqa", tmp_path)


def test_a_language_model_that_nothing_asks_is_not_named():
    experiment = load_experiment("table3-full-qa-prompt")
    assert list(collect_models(Run(experiment))) == ["gpt-4.1-mini"]
    other = {"reader": "predictions", "reader.path": "answers.jsonl"}
    assert collect_models(Run(override(experiment, other))) == {}


def test_an_adapter_that_ships_is_marked_by_the_data_of_its_manifest():
    name = "qwen2.5-coder-0.5b-ifqa"
    assert mark(name, "causalqa") == (
        f"{name} has seen causalqa: training questions of SQuAD 1.1, which are in SQuAD 2.0"
    )


def test_exposures_of_the_package_s_own_ledger_are_listed_once():
    names = [exposure.benchmark for exposure in list_exposures(["ifqa-fid"], BUNDLED)]
    assert sorted(names) == ["causalqa", "ifqa", "wiqa"]
