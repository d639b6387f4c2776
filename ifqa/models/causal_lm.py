"""The files of a causal language model: a folder, an adapter with its base model, or a GGUF file,
which transformers converts into a folder once.
"""

import hashlib
import importlib.util
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import ConfigError, DamagedArtifact, FormatError, MissingInput
from ifqa.models.loading import report_load_errors, silence_transformers, weights_fingerprint
from ifqa.models.places import (
    MODELS,
    find_local,
    find_model,
    is_gguf,
    local_path,
    missing_model,
    model_folder,
)
from ifqa.storage.artifacts import (
    lock,
    partial_folder,
    publish_draft,
    refuse_links,
    report_full_disk,
)
from ifqa.storage.files import cached_sha256, read_json, typed_field, write_json

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

LLAMA_CPP = "xllamacpp"  # the package: llama.cpp and its server, in wheels
ADAPTER = "adapter_model.safetensors"
SETTINGS = "adapter_config.json"
MANIFEST = "manifest.json"
RECORD = "gguf.json"  # in a model's folder: the SHA-256 of the GGUF file
_EXACT = {"F32", "F64", "F16"}  # types whose values bfloat16 would round
_MEND = "wanted a GGUF file of a causal language model that transformers knows"


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
    """The files of a model, as `ifqa.models.places` finds them, or of an adapter.

    A GGUF file is dequantised once.
    """
    if is_adapter(folder := local_path(name, root)):
        return _find_adapter(folder, root)
    file = find_local(name, root)
    if file is None or not is_gguf(file.name):
        return CausalLMFiles(model_folder(name, root=root))
    folder = gguf_folder(file, root)
    dequantise(file, folder)
    return CausalLMFiles(folder)


def pending_conversion(name: str, root: Path = Path()) -> str:
    """What `find_causal_lm` would first write: "dequantise FILE into FOLDER"; empty if nothing."""
    if is_adapter(folder := local_path(name, root)):
        base = base_model(folder)
        return "" if is_adapter(local_path(base, root)) else pending_conversion(base, root)
    file = find_local(name, root)
    if file is None or not is_gguf(file.name):
        return ""
    folder = gguf_folder(file, root)
    return "" if is_dequantised(cached_sha256(file), folder) else f"dequantise {file} into {folder}"


def is_adapter(folder: Path) -> bool:
    return os.path.isfile(folder / SETTINGS)  # noqa: PTH113 - is_file raises for long names


def find_gguf(name: str, root: Path = Path()) -> Path:
    """The GGUF file of this name, or that of a fetched model; MissingInput if there is none."""
    if not is_gguf_model(name, root):
        raise MissingInput(
            f"{name} has no GGUF file; wanted one, or a fetched model that keeps one"
        )
    return find_model(name, root)


def is_gguf_model(name: str, root: Path = Path()) -> bool:
    """Whether a name is that of a GGUF file or of a fetched model that keeps one, even if it is
    missing.
    """
    if path := find_local(name, root):
        return is_gguf(path.name)
    return is_gguf(name) or bool(name in MODELS and MODELS[name].page)


def is_local_model(name: str, root: Path = Path()) -> bool:
    """Whether a name is a fetched language model, a GGUF file, or a folder with a model or an
    adapter.
    """
    model = MODELS.get(name)
    if is_gguf(model.files[0] if model else name):
        return True
    folder = local_path(name, root)
    return is_adapter(folder) or os.path.isfile(folder / "config.json")  # noqa: PTH113


def local_llm(name: str, root: Path = Path()) -> str:
    """The name of the language model class that runs a local model: "llama-cpp" for a GGUF file if
    it is installed, else "hf".
    """
    return (
        "llama-cpp" if is_gguf_model(name, root) and importlib.util.find_spec(LLAMA_CPP) else "hf"
    )


def download_hint(name: str, root: Path = Path()) -> str:
    """How to get a model that is missing on this machine; empty if it is present."""
    if is_adapter(folder := local_path(name, root)):
        name = base_model(folder)
        return "" if is_adapter(local_path(name, root)) else missing_model(name, root)
    return missing_model(name, root)


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


def gguf_folder(file: Path, root: Path) -> Path:
    """The folder below `models` for a dequantised GGUF file, named after the file and its
    SHA-256.
    """
    return root / "models" / f"{file.stem}-{cached_sha256(file)[:12]}"


def is_dequantised(sha256: str, folder: Path) -> bool:
    """Whether a folder was made from the GGUF file with this SHA-256, and has weights."""
    return _source_sha256(folder) == sha256 and any(folder.glob("*.safetensors"))


def dequantise(file: Path, folder: Path) -> None:
    """Convert a GGUF file into a model folder, once: in float32 if it has matrices in float16 or
    float32, else in bfloat16.
    """
    if is_dequantised(cached_sha256(file), folder):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder.parent), report_full_disk(folder):
        # Another process may have converted it meanwhile
        if is_dequantised(cached_sha256(file), folder):
            return
        refuse_links(folder)
        draft = partial_folder(folder)
        shutil.rmtree(draft, ignore_errors=True)
        logger.info(f"{folder}: dequantising {file}, once; this takes a minute or more")
        _convert(file, draft)
        write_json(draft / RECORD, {"sha256": cached_sha256(file)})
        publish_draft(folder)


def _source_sha256(folder: Path) -> str:
    """The SHA-256 of the GGUF file that a folder was made from.

    Empty if there is none, or the folder is incomplete.
    """
    record = read_json(folder / RECORD) if (folder / RECORD).exists() else {}
    return str(record.get("sha256", "")) if isinstance(record, dict) else ""


def _convert(file: Path, folder: Path) -> None:
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    silence_transformers()
    here = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    # later versions of transformers may keep quantised blocks, which cannot be saved
    config = getattr(transformers, "GgufConfig", None)
    options = (
        {"quantization_config": config(gguf_file=file.name, dequantize=True)} if config else {}
    )
    with report_load_errors(str(file), "a GGUF file", _MEND):
        model = AutoModelForCausalLM.from_pretrained(
            str(file.parent), dtype=_precision(file), **here, **options
        )
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **here)
    model.hf_quantizer = None  # the weights are dequantised now
    vars(model.config).pop("quantization_config", None)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _precision(file: Path) -> "torch.dtype":
    import torch
    from gguf import GGUFReader

    kinds = {
        tensor.tensor_type.name for tensor in GGUFReader(file).tensors if len(tensor.shape) > 1
    }
    return torch.float32 if kinds & _EXACT else torch.bfloat16
