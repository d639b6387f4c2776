"""A model's files: finding them, identifying them, and refusing malformed files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_encoder import tiny, tiny_dpr

from ifqa.errors import IfqaError
from ifqa.models.hub import NAME, encoder_folder, model_folder, weights_identity
from ifqa.retrieval.cross_encoder import CrossEncoder
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder


def test_the_default_encoder_has_two_names():
    assert model_folder(NAME) == model_folder("all-MiniLM-L6-v2") == encoder_folder()


def test_a_folder_counts_before_a_name_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "intfloat" / "e5-base").mkdir(parents=True)
    with pytest.raises(IfqaError, match=r"e5-base holds no model: neither config\.json nor"):
        model_folder("intfloat/e5-base")
    (tmp_path / "intfloat" / "e5-base" / "config.json").write_text("{}")
    assert model_folder("intfloat/e5-base").resolve() == tmp_path / "intfloat" / "e5-base"


@pytest.mark.parametrize("name", ["/nowhere/model", "a b", "a/b/c", "x" * 300])
def test_neither_a_folder_nor_a_hub_name_is_refused_in_one_line(name):
    with pytest.raises(IfqaError, match="is neither a folder here nor a name of the hub") as caught:
        model_folder(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("offline", ["1", ""])
def test_an_unreachable_hub_is_reported_in_one_line(tmp_path, offline):
    code = "from ifqa.models.hub import model_folder\nmodel_folder('no/such')"
    nowhere = {"HF_HUB_OFFLINE": offline, "HF_ENDPOINT": "http://127.0.0.1:1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | nowhere, capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ifqa.errors.IfqaError: model 'no/such' is not here and cannot be fetched")
    assert "where there is no network, copy its folder here" in last


def test_only_files_that_decide_the_vectors_change_the_identity(tmp_path):
    folder = tmp_path / "model"
    tiny(folder)
    before = weights_identity(folder)
    (folder / "README.md").write_text("about")
    (folder / "notes.log").write_text("done")
    assert weights_identity(folder) == before
    shutil.copytree(folder, tmp_path / "copy")
    assert weights_identity(tmp_path / "copy") == before
    for name in ("model.safetensors", "config_sentence_transformers.json", "1_Pooling/config.json", "tokenizer.json"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(kept + b" ")
        assert weights_identity(folder) != before, name
        (folder / name).write_bytes(kept)
    assert weights_identity(folder) == before


def test_unused_weights_do_not_change_the_identity(tmp_path):
    """Another program may have fetched such weights into the same folder of the hub's cache."""
    tiny(tmp_path)
    before = weights_identity(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"the same weights, as torch saved them once")
    assert weights_identity(tmp_path) == before


def test_a_missing_or_unnamed_question_encoder_is_refused(tmp_path):
    context = tiny_dpr(tmp_path)
    shutil.rmtree(tmp_path / "question_encoder")
    with pytest.raises(IfqaError, match="question_encoder' is neither a folder here nor a name of the hub"):
        open_encoder(EncoderSettings(context, device="cpu"))
    Path(context).rename(tmp_path / "passages")
    with pytest.raises(IfqaError, match="name the question encoder that belongs to it as query_model"):
        open_encoder(EncoderSettings(str(tmp_path / "passages"), device="cpu"))


@pytest.mark.parametrize("kind", ["empty config", "no list", "no weights", "cut weights", "strange module", "no JSON"])
def test_a_model_that_does_not_load_is_refused_in_one_line(tmp_path, kind):
    folder = tmp_path / "model"
    tiny(folder)
    if kind in ("empty config", "no list"):
        (folder / "config.json").write_text("{}" if kind == "empty config" else "[]")
    elif kind == "no weights":
        (folder / "model.safetensors").unlink()
    elif kind == "cut weights":
        (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:100])
    else:
        strange = json.dumps([{"idx": 0, "name": "0", "path": "", "type": "os.Path"}])
        (folder / "modules.json").write_text("{" if kind == "no JSON" else strange)
    with pytest.raises(IfqaError, match=r"does not load|not JSON|wanted") as caught:
        open_encoder(EncoderSettings(str(folder), device="cpu"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", "null", "does not load as a sentence-transformers model"),
        ("modules.json", "[1]", "does not load as a sentence-transformers model"),
        (
            "modules.json",
            '[{"idx": 0, "name": "0", "path": 5, "type": "x"}]',
            "does not load as a sentence-transformers model",
        ),
        ("tokenizer_config.json", "[]", "does not load as a sentence-transformers model"),
        ("1_Pooling/config.json", "null", "does not load as a sentence-transformers model"),
        ("1_Pooling/config.json", "{}", "does not load as a sentence-transformers model"),
        ("config.json", {"hidden_size": "x"}, "does not load as a sentence-transformers model"),
        ("config.json", {"model_type": [1]}, "does not load as a sentence-transformers model"),
        ("config.json", {"dtype": "float999"}, "does not load as a sentence-transformers model"),
        ("config.json", {"dtype": [1]}, "does not load as a sentence-transformers model"),
    ],
)
def test_malformed_model_files_are_refused_in_one_line(tmp_path, file, content, message):
    tiny(tmp_path)
    path = tmp_path / file
    path.write_text(content if isinstance(content, str) else json.dumps(json.loads(path.read_text()) | content))
    with pytest.raises(IfqaError, match=message) as caught:
        open_encoder(EncoderSettings(str(tmp_path), device="cpu", precision="float32"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["[]", '{"tokenizer_class": [1]}'])
def test_a_malformed_tokenizer_is_refused_by_dpr_and_the_reranker(tmp_path, content):
    context = tiny_dpr(tmp_path)
    tiny(tmp_path / "encoder")
    for folder in (tmp_path / "question_encoder", tmp_path / "encoder"):
        (folder / "tokenizer_config.json").write_text(content)
    with pytest.raises(
        IfqaError, match=r"tokenizer_config.json: wanted|does not load as a DPRQuestionEncoder"
    ) as caught:
        open_encoder(EncoderSettings(context, device="cpu"))
    assert "\n" not in str(caught.value)
    with pytest.raises(IfqaError, match=r"tokenizer_config.json: wanted|does not load as a cross-encoder") as caught:
        CrossEncoder(str(tmp_path / "encoder"), "cpu")
    assert "\n" not in str(caught.value)
