"""A model's files: identifying them, and refusing malformed files."""

import json
import shutil

import pytest
from refusals import refused
from tiny_encoder import tiny, tiny_dpr

from ifqa.errors import IfqaError
from ifqa.models.loading import weights_fingerprint
from ifqa.retrieval.rerank import CrossEncoder
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder


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
