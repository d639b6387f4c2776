"""Models in a GGUF file, llama.cpp's format: dequantised once into a folder that transformers loads as any other.

transformers reads the file, with the package gguf (`pip install 'ifqa[gguf]'`). That takes a minute or more, so the result is
kept.
"""

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.models.hub import loading, quiet
from ifqa.progress import say
from ifqa.storage.artifacts import lock, partial, publish, refuse_links, room_for
from ifqa.storage.files import cached_sha256, read_json, write_json

if TYPE_CHECKING:
    import torch

SUFFIX = ".gguf"
RECORD = "gguf.json"  # in the folder: the SHA-256 of the file that it was made from
_NEEDS = ("gguf", "accelerate")
_EXACT = {"F32", "F64", "F16"}  # types whose values bfloat16 would round
_MEND = "wanted a GGUF file of a causal language model that transformers knows"


def is_gguf(name: str) -> bool:
    """Whether a name is that of a GGUF file."""
    return name.lower().endswith(SUFFIX)


def folder_of(file: Path, root: Path) -> Path:
    """The folder below `models` that a GGUF file is dequantised into, named by the file and its content."""
    if not file.is_file():
        raise IfqaError(f"{file}: no such file; wanted a GGUF file")
    return root / "models" / f"{file.stem}-{cached_sha256(file)[:12]}"


def made_from(folder: Path) -> str:
    """The SHA-256 of the GGUF file that a folder was made from; empty if it was not, or is not complete."""
    record = read_json(folder / RECORD) if (folder / RECORD).exists() else {}
    return str(record.get("sha256", "")) if isinstance(record, dict) else ""


def dequantise(file: Path, folder: Path) -> None:
    """Write the weights, the settings and the tokenizer of a GGUF file into a folder; a folder made from it is left alone.

    Weights are stored in bfloat16, or in float32 if the file holds matrices in float16 or float32.
    """
    if made_from(folder) == cached_sha256(file):
        return
    for library in _NEEDS:
        if importlib.util.find_spec(library) is None:
            raise IfqaError(f"reading {file.name} needs {library}; install it with: pip install 'ifqa[gguf]'")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder.parent), room_for(folder):
        if made_from(folder) == cached_sha256(file):  # by another process in the meantime
            return
        refuse_links(folder)
        draft = partial(folder)
        shutil.rmtree(draft, ignore_errors=True)
        say(f"{folder}: dequantising {file}, once; this takes a minute or more")
        _save(file, draft)
        write_json(draft / RECORD, {"sha256": cached_sha256(file)})
        publish(folder)


def _save(file: Path, folder: Path) -> None:
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    quiet()
    here = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    # A later transformers may keep the weights in their blocks, which cannot be saved
    config = getattr(transformers, "GgufConfig", None)
    whole = {"quantization_config": config(gguf_file=file.name, dequantize=True)} if config else {}
    with loading(str(file), "a GGUF file", _MEND):
        precision = _precision(file)
        model = AutoModelForCausalLM.from_pretrained(str(file.parent), dtype=precision, **here, **whole)
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), **here)
    model.hf_quantizer = None  # the weights are plain now
    vars(model.config).pop("quantization_config", None)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _precision(file: Path) -> "torch.dtype":
    """bfloat16 for weights of 4 or 8 bits and of bfloat16, float32 for others."""
    import torch
    from gguf import GGUFReader

    kinds = {tensor.tensor_type.name for tensor in GGUFReader(file).tensors if len(tensor.shape) > 1}
    return torch.float32 if kinds & _EXACT else torch.bfloat16
