"""Finds a causal language model by name: a fetched or a bundled one, a GGUF file, an adapter, a
folder, or a model of the hub.
"""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from ifqa.errors import ConfigError, DamagedArtifact, FormatError, MissingInput
from ifqa.models.hub import MODELS, local_path, model_folder, model_requirement, weights_fingerprint
from ifqa.models.install import dequantise, gguf_folder, is_dequantised, is_gguf
from ifqa.storage.files import cached_sha256, read_json, typed_field

LLAMA_CPP = "xllamacpp"  # the package: llama.cpp and its server, in wheels
ADAPTER = "adapter_model.safetensors"
SETTINGS = "adapter_config.json"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class CausalLMFiles:
    """The files of a causal language model."""

    folder: Path  # has `config.json`, weights and tokenizer; for an adapter, its base model's
    adapter: Path | None = None  # the adapter's folder
    family: str = ""  # split family of the adapter's training questions
    sources: frozenset[str] = frozenset()  # SHA-256 of the files of these questions

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model's weights, tokenizer, chat template and adapter."""
        template = self.folder / "chat_template.jinja"
        parts = [
            weights_fingerprint(self.folder).encode(),
            template.read_bytes() if template.exists() else b"",
        ]
        if self.adapter:
            parts += [cached_sha256(self.adapter / name).encode() for name in (ADAPTER, SETTINGS)]
        return hashlib.sha256(b"".join(parts)).hexdigest()


def find_causal_lm(name: str, root: Path = Path()) -> CausalLMFiles:
    """A fetched or bundled model, a GGUF file (dequantised once), a folder with a model or an
    adapter, or a model on the hub.
    """
    if gguf_file(name, root):
        file = find_gguf(name, root)
        folder = gguf_folder(file, root)
        dequantise(file, folder)
        return CausalLMFiles(folder)
    folder = local_path(name, root)
    return (
        _find_adapter(folder, root)
        if is_adapter(folder)
        else CausalLMFiles(model_folder(name, root=root))
    )


def pending_conversion(name: str, root: Path = Path()) -> str:
    """What `find_causal_lm` would first write: "dequantise FILE into FOLDER"; empty if nothing."""
    folder = local_path(name, root)
    if is_adapter(folder):
        base = base_model(folder)
        return "" if is_adapter(local_path(base, root)) else pending_conversion(base, root)
    file = gguf_file(name, root)
    if file is None or not file.is_file() or is_dequantised(file, gguf_folder(file, root)):
        return ""
    return f"dequantise {file} into {gguf_folder(file, root)}"


def gguf_file(name: str, root: Path = Path()) -> Path | None:
    """The GGUF file of this name, or that of a fetched model; None for other models."""
    model = MODELS.get(name)
    # Dequantised when it was fetched
    if model and (not model.page or (root / model.folder / "config.json").is_file()):
        return None
    file = root / (model.folder / model.files[0] if model else name)
    return file if is_gguf(file.name) else None


def find_gguf(name: str, root: Path = Path()) -> Path:
    """The GGUF file of this name, or that of a fetched model."""
    if (file := gguf_file(name, root)) and file.is_file():
        return file
    hint = f"; {MODELS[name].fetch_hint}" if name in MODELS else ""
    raise MissingInput(f"{name}: file not found; wanted a GGUF file{hint}")


def is_adapter(folder: Path) -> bool:
    return (folder / SETTINGS).is_file()


def is_local_model(name: str, root: Path = Path()) -> bool:
    """Whether a name is a fetched language model, a GGUF file, or a folder with a model or an
    adapter.
    """
    if is_gguf(name) or ((model := MODELS.get(name)) and is_gguf(model.files[0])):
        return True
    return len(name) < 1000 and any(
        (local_path(name, root) / file).is_file() for file in ("config.json", SETTINGS)
    )


def local_llm(name: str, root: Path = Path()) -> str:
    """The name of the language model class that runs a local model: "llama-cpp" for a GGUF file if
    it is installed, else "hf".
    """
    return "llama-cpp" if gguf_file(name, root) and importlib.util.find_spec(LLAMA_CPP) else "hf"


def download_hint(name: str, root: Path = Path()) -> str:
    """How to get a model that is missing on this machine; empty if it is present."""
    if is_gguf(name):
        return "" if (root / name).is_file() else "file not found; put it there or name another"
    if is_adapter(folder := local_path(name, root)):
        name = base_model(folder)
        return "" if is_adapter(local_path(name, root)) else download_hint(name, root)
    return model_requirement(name, root).remedy


def base_model(folder: Path) -> str:
    settings = read_json(folder / SETTINGS)
    if not isinstance(settings, dict):
        raise FormatError(
            f"{folder / SETTINGS}: wanted a JSON object, found {type(settings).__name__}; "
            "train it again"
        )
    return str(typed_field(settings, "base_model_name_or_path", str, str(folder / SETTINGS)))


def _find_adapter(folder: Path, root: Path) -> CausalLMFiles:
    if not (folder / ADAPTER).is_file():
        raise FormatError(
            f"{folder} has {SETTINGS} but no {ADAPTER}; wanted an adapter "
            "with weights in safetensors"
        )
    name = base_model(folder)
    # Or it would look for the base of its base, perhaps for ever
    if is_adapter(local_path(name, root)):
        raise ConfigError(
            f"{folder}: its base model {name} is an adapter; wanted an adapter of a complete model"
        )
    base = find_causal_lm(name, root)
    manifest = read_json(folder / MANIFEST) if (folder / MANIFEST).exists() else {}
    trained_on = manifest.get("base", {}).get("sha256", "")
    if trained_on and trained_on != (sha256 := base.fingerprint):
        problem = (
            f"{folder} was trained on a different {name} (SHA-256 {trained_on[:8]}..., found "
            f"{sha256[:8]}...)"
        )
        raise DamagedArtifact(f"{problem}; train it again, or restore that model")
    sources = frozenset(manifest.get("sources", {}).values())
    return CausalLMFiles(base.folder, folder, manifest.get("family", ""), sources)
