"""The encoders of the span reader: found by name or folder, opened by their kind, and refused in
one line.
"""

import json

import pytest
from refusals import refused
from tiny_mpnet import tiny_mpnet

from ifqa.errors import IfqaError
from ifqa.models.places import MINILM, WEIGHTS_SHA256, minilm_folder, model_requirement
from ifqa.models.span_encoder import find_encoder, open_encoder, special_token_ids
from ifqa.reading.span.network import SpanModel


@pytest.mark.parametrize("name", [MINILM, "all-MiniLM-L6-v2", str(minilm_folder())])
def test_an_encoder_is_found_by_its_names(name):
    files = find_encoder(name)
    assert files.folder == minilm_folder()
    assert files.identity == {"name": MINILM, "sha256": WEIGHTS_SHA256}


def test_an_encoder_is_found_in_a_folder_below_root(tmp_path):
    tiny_mpnet(tmp_path / "mine", "a")
    files = find_encoder("mine", tmp_path)
    assert files.name == "mine"
    assert files.folder == tmp_path / "mine"


def test_a_model_is_present_only_below_its_root(tmp_path):
    tiny_mpnet(tmp_path / "mine", "a")
    assert [
        model_requirement("mine", root).present for root in (tmp_path, tmp_path / "elsewhere")
    ] == [True, False]


@pytest.mark.parametrize(
    ("file", "changed", "complaint"),
    [
        (
            "config.json",
            {"model_type": "roberta"},
            r"unknown model_type in .*config\.json: 'roberta'; .*known: bert, deberta-v2, modernbert, mpnet",
        ),
        (
            "config.json",
            {"num_hidden_layers": 3},
            r"has no encoder\.layer\.2\.attention\.attn\.q\.weight; wanted a network of kind mpnet",
        ),
        ("config.json", {"num_hidden_layers": "two"}, r"does not load as an encoder \(TypeError"),
        (
            "config.json",
            {"max_position_embeddings": 200},
            "reads 198 tokens; wanted an encoder of 256 or more",
        ),
        (
            "tokenizer.json",
            {
                "added_tokens": [],
                "model": {
                    "type": "WordLevel",
                    "vocab": {"<s>": 0, "[UNK]": 1},
                    "unk_token": "[UNK]",
                },
                "post_processor": None,
            },
            "has no token </s>",
        ),
    ],
)
def test_an_encoder_that_does_not_fit_is_refused_in_one_line(tmp_path, file, changed, complaint):
    folder = tiny_mpnet(tmp_path / "tiny", "a")
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with refused(complaint):
        SpanModel(open_encoder(folder))
        special_token_ids(folder)


def test_damaged_or_missing_weights_are_refused_in_one_line(tmp_path):
    folder = tiny_mpnet(tmp_path / "tiny", "a")
    (folder / "model.safetensors").write_bytes(b"{")
    with pytest.raises(IfqaError, match="does not load as an encoder"):
        open_encoder(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(
        IfqaError, match=r"has no model\.safetensors; wanted a folder with an encoder, or all-mpnet"
    ):
        find_encoder(str(folder))
