"""A model's files: finding them, identifying them, and refusing malformed files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused
from tiny_encoder import tiny, tiny_dpr

from ifqa.errors import IfqaError
from ifqa.models.hub import MINILM, minilm_folder, model_folder, weights_fingerprint
from ifqa.retrieval.rerank import CrossEncoder
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder


def test_a_folder_counts_before_a_name_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "intfloat" / "e5-base").mkdir(parents=True)
    with pytest.raises(IfqaError, match=r"e5-base has no model: neither config\.json nor"):
        model_folder("intfloat/e5-base")
    (tmp_path / "intfloat" / "e5-base" / "config.json").write_text("{}")
    assert model_folder("intfloat/e5-base").resolve() == tmp_path / "intfloat" / "e5-base"
    assert model_folder(MINILM) == model_folder("all-MiniLM-L6-v2") == minilm_folder()
    for name in ("/nowhere/model", "a b", "a/b/c", "x" * 300):
        with pytest.raises(IfqaError, match="is neither a folder here nor a name on the hub"):
            model_folder(name)


@pytest.mark.parametrize("offline", ["1", ""])
def test_an_unreachable_hub_is_reported_in_one_line(tmp_path, offline):
    command = [
        sys.executable,
        "-c",
        "from ifqa.models.hub import model_folder\nmodel_folder('no/such')",
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
        "ifqa.errors.MissingInput: model 'no/such' is not here and cannot be downloaded"
    )
    assert "without a network, copy its folder here" in last


def test_only_files_that_decide_the_vectors_change_the_fingerprint(tmp_path):
    folder = tmp_path / "model"
    tiny(folder)
    before = weights_fingerprint(folder)
    # torch's weights are not read beside safetensors
    for name in ("README.md", "notes.log", "pytorch_model.bin"):
        (folder / name).write_text("about")
    assert weights_fingerprint(folder) == before
    shutil.copytree(folder, tmp_path / "copy")
    assert weights_fingerprint(tmp_path / "copy") == before
    for name in (
        "model.safetensors",
        "config_sentence_transformers.json",
        "1_Pooling/config.json",
        "tokenizer.json",
    ):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        assert weights_fingerprint(folder) != before, name
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("content", ["[]", '{"tokenizer_class": [1]}'])
def test_a_malformed_tokenizer_is_refused(tmp_path, content):
    context = tiny_dpr(tmp_path)
    tiny(tmp_path / "encoder")
    for folder in (tmp_path / "question_encoder", tmp_path / "encoder"):
        (folder / "tokenizer_config.json").write_text(content)
    complaint = (
        r"^[^\n]*(tokenizer_config.json: wanted"
        r"|does not load as a (DPRQuestionEncoder|cross-encoder))[^\n]*$"
    )
    with pytest.raises(IfqaError, match=complaint):
        open_encoder(EncoderSettings(context, device="cpu"))
    with pytest.raises(IfqaError, match=complaint):
        CrossEncoder(str(tmp_path / "encoder"), "cpu")


def test_a_missing_question_encoder_is_refused(tmp_path):
    context = tiny_dpr(tmp_path)
    shutil.rmtree(tmp_path / "question_encoder")
    with pytest.raises(
        IfqaError, match="question_encoder' is neither a folder here nor a name on the hub"
    ):
        open_encoder(EncoderSettings(context, device="cpu"))


def test_an_unnamed_question_encoder_is_refused(tmp_path):
    context = tiny_dpr(tmp_path)
    shutil.rmtree(tmp_path / "question_encoder")
    Path(context).rename(tmp_path / "passages")
    with pytest.raises(IfqaError, match="set query_model to its question encoder"):
        open_encoder(EncoderSettings(str(tmp_path / "passages"), device="cpu"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", "null"),
        ("modules.json", "{"),
        ("tokenizer_config.json", "[]"),
        ("1_Pooling/config.json", "{}"),
        ("modules.json", '[{"idx": 0, "name": "0", "path": "", "type": "os.Path"}]'),
        ("config.json", "[]"),
        ("config.json", {"hidden_size": "x"}),
        ("config.json", {"dtype": [1]}),
        ("model.safetensors", ""),
        ("model.safetensors", "cut"),
    ],
)
def test_malformed_model_files_are_refused_in_one_line(tmp_path, file, content):
    tiny(tmp_path)
    path = tmp_path / file
    if file == "model.safetensors":
        weights = path.read_bytes()
        path.unlink()
        path.write_bytes(weights[:100]) if content else None
    else:
        path.write_text(
            content
            if isinstance(content, str)
            else json.dumps(json.loads(path.read_text()) | content)
        )
    with refused(r"does not load|not JSON|wanted"):
        open_encoder(EncoderSettings(str(tmp_path), device="cpu", precision="float32"))
